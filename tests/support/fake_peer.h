/* SPDX-License-Identifier: MIT */
#ifndef FAKE_PEER_H
#define FAKE_PEER_H

/*
 * A vfio-user device process for tests of the client: a thread at the other end of a socketpair. It behaves,
 * unless the test's hook says otherwise for a message. Written from the protocol's text with byte offsets,
 * not with the client's structs, so that a wrong layout shows.
 *
 * The function: vendor 0x1234, device 0x5258; BAR0 64 KiB with mappable areas [0x2000, 0x3000) and [0x4000,
 * 0x5000); BAR2 1 MiB, all mappable; MSI-X with 4 vectors, INTx, ERR and REQ with one each; reset.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rig_pci_taking;

enum {
	PEER_BAR0_BYTES = 0x10000,
	PEER_BAR2_BYTES = 0x100000,
	PEER_CONFIG_BYTES = 256,
	PEER_COMMANDS = 32,
	PEER_MAPS = 64,
	PEER_VECTORS = 16,
	PEER_HEADER = 16,
};

enum { /* "Commands" */
	PEER_VERSION = 1,
	PEER_DMA_MAP,
	PEER_DMA_UNMAP,
	PEER_GET_INFO,
	PEER_REGION_INFO,
	PEER_IO_FDS,
	PEER_IRQ_INFO,
	PEER_SET_IRQS,
	PEER_REGION_READ,
	PEER_REGION_WRITE,
	PEER_DMA_READ,
	PEER_DMA_WRITE,
	PEER_RESET,
};

struct peer_message {
	uint16_t id, command;
	uint32_t flags, error;
	const unsigned char *body;
	size_t len; /* of body */
	int fd[16];
	unsigned nfds;
};

enum peer_do {
	PEER_BEHAVE, /* the default */
	PEER_DONE,   /* the hook has answered, or will not */
	PEER_HANG_UP,
};

struct peer_map {
	uint64_t iova, bytes, offset;
	uint32_t flags;
	int fd; /* -1: none came */
};

struct fake_peer {
	/* Set by the test before fake_peer_start: */
	const char *json; /* NULL: the default capabilities; "": none */
	bool twin;        /* offers a second socket for its own commands */
	uint16_t minor;
	enum peer_do (*hook)(struct fake_peer *p, const struct peer_message *m);
	void *hook_arg;

	int fd;
	atomic_int twin_fd; /* -1: none */
	pthread_t thread;
	int bar_fd[3]; /* of BAR 0 and 2 */
	unsigned char *bar[3];
	unsigned char config[PEER_CONFIG_BYTES];

	atomic_uint seen[PEER_COMMANDS]; /* messages of each command */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	struct peer_map map[PEER_MAPS];
	unsigned maps;
	int irq[5][PEER_VECTORS]; /* eventfds, -1 */
	bool answered;            /* a reply to a DMA command came */
	uint32_t answer_flags, answer_error;
	uint16_t answer_id;
	unsigned char answer[65536];
	size_t answer_len;
};

/* Starts it; *client_fd is the client's end. Fails the running test if it cannot. */
void fake_peer_start(struct fake_peer *p, int *client_fd);

/* The client's end as options' transport; 0: the default deadline. Its answer is rig_vuser_new's. */
int fake_peer_give(int client_fd, unsigned deadline_ms, struct rig_pci_taking *options);

/* Waits until it has seen the client hang up, or hangs up itself if the client has gone quiet, and frees
 * all. */
void fake_peer_stop(struct fake_peer *p);

/* Closes its end, as a process that dies. Any thread. */
void fake_peer_die(struct fake_peer *p);

/* A reply to m with a body and at most one descriptor (-1: none). */
void peer_reply(struct fake_peer *p, const struct peer_message *m, const void *body, size_t len, int fd);
void peer_error(struct fake_peer *p, const struct peer_message *m, uint32_t error);

/* Any bytes at all, in one piece. */
void peer_send_raw(struct fake_peer *p, const void *bytes, size_t len, const int *fds, unsigned nfds);

/* As peer_send_raw, over the socket of the device's own commands. */
void peer_send_own(struct fake_peer *p, const void *bytes, size_t len);

/* One message from fd, whose body of at most `room` bytes goes to body. False: it hung up. */
bool peer_take(int fd, struct peer_message *m, void *body, size_t room);

/* A header alone, for raw messages. */
void peer_header(
        unsigned char *to, uint16_t id, uint16_t command, uint32_t size, uint32_t flags, uint32_t error);

/* Sends a DMA command as the device and waits for the client's answer. Answers its errno (0: done). Reads
 * land in buf, whose length the answer must have. From a hook only with a twin. As libvfio-user, a peer
 * with a twin takes the next message there for the answer. */
int peer_dma_read(struct fake_peer *p, uint64_t iova, void *buf, uint64_t len);
int peer_dma_write(struct fake_peer *p, uint64_t iova, const void *buf, uint64_t len);

#endif
