/* SPDX-License-Identifier: MIT */
/*
 * A client of the reference board for its tests: it speaks vfio-user over a socketpair and does what it is
 * told, right or wrong. It shares nothing with the driver. The board runs in a thread of this process, or as
 * the program rvx1-model.
 *
 * Every call fails the running cmocka test when the other side does not do its part. Waits have a deadline
 * and serve DMA messages meanwhile. One thread.
 */
#ifndef RVX_CLIENT_H
#define RVX_CLIENT_H

#include "rvx_board.h"
#include "rvx1/regs.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RVX_HOST_BYTES (16u << 20) /* memory of the client, by descriptor */
#define RVX_HOST_IOVA  0x100000000ull
#define RVX_MSG_BYTES  (1u << 20) /* memory of the client that takes messages */
#define RVX_MSG_IOVA   0x200000000ull
#define RVX_CONFIG     7u /* region of the configuration space */

struct rvx_client {
	int fd;
	uint16_t next_id;

	/* The board as a thread, or as a process. */
	struct rvx_board *board;
	pthread_t thread;
	bool threaded;
	pid_t pid;

	/* BARs as mapped, NULL before rvx_client_map(). */
	uint8_t *memory, *status, *doorbells;
	uint64_t memory_bytes;

	uint8_t *host; /* RVX_HOST_BYTES at RVX_HOST_IOVA */
	int host_fd;
	uint8_t *msg;                   /* RVX_MSG_BYTES at RVX_MSG_IOVA */
	unsigned dma_reads, dma_writes; /* messages served */
	bool mute;                      /* answers DMA messages with an error */

	int irq[RVX1_VECTORS];
};

/* Default configuration: 64 MiB, aperture 64 MiB, 2 queues. */
struct rvx_config rvx_client_config(void);

/* Connects and shakes hands; no more. */
void rvx_client_open(struct rvx_client *c, const struct rvx_config *config);

/* The same with the program; `args` end with NULL and may be NULL. */
void rvx_client_spawn(struct rvx_client *c, const char *const *args);

/* The program by itself, with /dev/null as input; and its exit status, or -signal. */
pid_t rvx_server_spawn(const char *const *args);
int rvx_server_wait(pid_t pid);

/* A client of a server at that path. */
void rvx_client_connect(struct rvx_client *c, const char *path);

/* Memory and bus mastering on, BARs mapped, client memory mapped, interrupts assigned. */
void rvx_client_map(struct rvx_client *c);

/* Hangs up; the board's thread ends, the process is waited for: its exit status, or -signal. 0 for a
 * thread. */
int rvx_client_close(struct rvx_client *c);

/* One request. Returns 0 or the error of the reply, positive. `reply` gets at most room bytes of the body. */
int rvx_client_request(struct rvx_client *c, unsigned cmd, const void *body, size_t len, const int *fds,
        size_t fd_count, void *reply, size_t room, int *reply_fd);

uint64_t rvx_read(struct rvx_client *c, unsigned region, uint64_t off, unsigned width);
void rvx_write(struct rvx_client *c, unsigned region, uint64_t off, unsigned width, uint64_t value);
void rvx_read_bytes(struct rvx_client *c, unsigned region, uint64_t off, void *to, size_t len);
void rvx_write_bytes(struct rvx_client *c, unsigned region, uint64_t off, const void *from, size_t len);

/* BAR0 registers. */
uint32_t rvx_reg32(struct rvx_client *c, uint32_t off);
uint64_t rvx_reg64(struct rvx_client *c, uint32_t off);
void rvx_set32(struct rvx_client *c, uint32_t off, uint32_t value);
void rvx_set64(struct rvx_client *c, uint32_t off, uint64_t value);

void rvx_command(struct rvx_client *c, uint16_t value); /* COMMAND */
int rvx_reset_message(struct rvx_client *c);            /* DEVICE_RESET: 0 or an error */
void rvx_reset_flr(struct rvx_client *c);               /* by Device Control */

int rvx_dma_map(struct rvx_client *c, uint64_t iova, uint64_t bytes, unsigned prot, int fd, uint64_t offset);
int rvx_dma_unmap(struct rvx_client *c, uint64_t iova, uint64_t bytes);

/* Serves DMA messages that wait. False: the board hung up. */
bool rvx_serve(struct rvx_client *c);

/* Until the register or word is (at least) that; fails the test at the deadline. */
void rvx_await_reg(struct rvx_client *c, uint32_t off, uint32_t value);
void rvx_await_word(struct rvx_client *c, const void *at, uint64_t least);
void rvx_await_irq(struct rvx_client *c, unsigned vector);
bool rvx_has_irq(struct rvx_client *c, unsigned vector); /* and takes it */
bool rvx_await_hangup(struct rvx_client *c);

/* Seconds on a monotonic clock; the deadline of every wait. */
double rvx_seconds(void);
#define RVX_DEADLINE_S 120.0

/* ---- a board at work ---- */

#define RVX_AT_TABLES 0x100000ull /* board addresses */
#define RVX_AT_RING   0x200000ull /* queue q at + q * 64 KiB */
#define RVX_AT_CODE   0x400000ull
#define RVX_AT_DATA   0x800000ull
#define RVX_AT_STACKS 0x1000000ull /* 24 MiB */

/* Device-virtual addresses after rvx_linear(): board memory from 1 TiB, the client's two memories. */
#define RVX_VA_BOARD 0x10000000000ull
#define RVX_VA_HOST  0x20000000000ull
#define RVX_VA_MSG   0x20040000000ull

/* Writes words of code to board memory and starts the processor there. */
void rvx_start_code(struct rvx_client *c, uint64_t at, const uint32_t *code, size_t words);

/* Loads the project's firmware and waits until it is ready. False: there is no image (skip the test). */
bool rvx_boot(struct rvx_client *c);

/* Adds a leaf; tables come from RVX_AT_TABLES on. `pte` without V and address; level 0 to 3. */
void rvx_pt_leaf(struct rvx_client *c, uint64_t va, uint64_t address, uint64_t bits, unsigned level);
void rvx_pt_clear(struct rvx_client *c);
/* The usual map, and PT_ROOT. */
void rvx_linear(struct rvx_client *c);

/* Rings: a cursor for each queue. */
struct rvx1_packet;
struct rvx_queue {
	struct rvx_client *client;
	unsigned id;
	uint64_t written;
	uint32_t entries;
};

void rvx_queue_open(struct rvx_client *c, struct rvx_queue *q, unsigned id, uint32_t entries);
void rvx_put(struct rvx_queue *q, const struct rvx1_packet *packet); /* no doorbell */
void rvx_ring(struct rvx_queue *q);
void rvx_release(struct rvx_queue *q, uint64_t value); /* packet and doorbell */
void rvx_await_value(struct rvx_client *c, uint64_t value);
void rvx_await_fault(struct rvx_client *c, uint32_t code);

#endif
