/* SPDX-License-Identifier: MIT */
/*
 * The floor of round trips: RVX-1 driven by hand. A second board of the same kind, booted by its port's
 * stages; then nothing of the driver, the rings module, the page-table walker or librig: packets written
 * straight into the ring (docs/rvx1.md, section 7), a doorbell store, a spin on the status page's VALUE. No
 * interrupt is armed and no thread runs beside it.
 *
 * One thread. Errors: negative errno with rig_error(). A wait ends with -EIO after some seconds or when the
 * board faults.
 */
#ifndef RIGCTL_BENCH_HAND_H
#define RIGCTL_BENCH_HAND_H

#include <stdbool.h>
#include <stdint.h>

struct bench_hand;

/* Starts a board as the device text says. -ENOTSUP: only sim, which may be there twice, and only with its
 * memory mapped. */
int bench_hand_open(const char *device_text, struct bench_hand **out);
void bench_hand_close(struct bench_hand *hand);

/* Puts the code of the image into board memory, over what it put there before: through DMA memory, by the
 * copy engine. */
int bench_hand_place(struct bench_hand *hand, const void *image, uint64_t bytes);
/* The same, and makes `function` of it what bench_hand_launch launches. */
int bench_hand_load(struct bench_hand *hand, const void *image, uint64_t bytes, const char *function);

/* Each: packets, doorbell; returns the value that the packets complete, and waits for nothing. Room is the
   caller's duty: at most BENCH_HAND_PACKETS packets between two waits for the last value. */
#define BENCH_HAND_PACKETS 1024u
uint64_t bench_hand_empty(struct bench_hand *hand);
uint64_t bench_hand_launch(struct bench_hand *hand, unsigned launches);
uint64_t bench_hand_copy(struct bench_hand *hand, uint64_t dst, uint64_t src, uint64_t bytes);

/* Spins until the value is complete. */
int bench_hand_wait(struct bench_hand *hand, uint64_t value);

/* Memory for copies, which lives until the next call of the same function. Board memory: its device-virtual
   address. DMA memory: also as the host addresses it. -ENOMEM. */
int bench_hand_board(struct bench_hand *hand, uint64_t bytes, uint64_t *address);
int bench_hand_dma(struct bench_hand *hand, uint64_t bytes, uint64_t *address, uint8_t **host);

/* Board memory as the host addresses it, at least 64 KiB. */
uint8_t *bench_hand_window(struct bench_hand *hand);

/* One DMA mapping of the caller's page-aligned memory, made and undone. */
int bench_hand_map(struct bench_hand *hand, void *host, uint64_t bytes);
/* The same of fresh, populated memory of the system (memfd). */
int bench_hand_map_fresh(struct bench_hand *hand, uint64_t bytes);

/* The model's process and the handshake of the protocol, and their end. Times both. */
int bench_hand_start_and_end(const char *device_text, uint64_t *start_ns, uint64_t *end_ns);

#endif
