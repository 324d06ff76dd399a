/* SPDX-License-Identifier: MIT */
/*
 * RVX-1 as a PCI function behind a vfio-user socket (docs/rvx1.md), one object a board.
 *
 * One thread calls everything. rvx_board_run() is the whole life of a board with clients: it serves messages,
 * runs the processor and the engines in slices, raises interrupts, and sleeps when there is nothing to do.
 * Failure is a negative errno.
 */
#ifndef RVX_BOARD_H
#define RVX_BOARD_H

#include "rvx_mischief.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define RVX_DEFAULT_MEMORY    (256ull << 20)
#define RVX_DEFAULT_DRIFT_PPM 40
#define RVX_MIN_APERTURE      (16ull << 20)
#define RVX_MEMORY_STEP       (2ull << 20) /* section 3: MEMORY_BYTES is a multiple of it */
#define RVX_MIN_QUEUES        2u

enum rvx_log_level {
	RVX_LOG_ERROR,
	RVX_LOG_WARN,
	RVX_LOG_INFO,
};

struct rvx_config {
	uint64_t memory_bytes;   /* 64 MiB to 8 GiB, a multiple of RVX_MEMORY_STEP */
	uint64_t aperture_bytes; /* a power of two from RVX_MIN_APERTURE to memory_bytes */
	uint32_t queues;         /* RVX_MIN_QUEUES to RVX1_MAX_QUEUES */
	uint64_t clock_hz;       /* RVX_CLOCK_MIN_HZ to RVX_CLOCK_MAX_HZ; 0: RVX_CLOCK_NOMINAL_HZ */
	int drift_ppm;           /* at most RVX_CLOCK_MAX_PPM either way */
	/* The clock jumps ahead by so many microseconds every so many milliseconds; both 0: never. */
	uint32_t clock_step_us, clock_step_ms;
	struct rvx_plan plan;
	void (*log)(void *ctx, enum rvx_log_level level, const char *text); /* NULL: silent */
	void *log_ctx;
};

struct rvx_board;

/* The largest power of two that memory holds: what the aperture is when nobody says. */
uint64_t rvx_default_aperture(uint64_t memory_bytes);

/* Powers a board on. -EINVAL: a configuration out of range; -ENOMEM and what the system answers. */
int rvx_board_open(const struct rvx_config *config, struct rvx_board **out);

/* Accepts NULL. */
void rvx_board_close(struct rvx_board *board);

/* One of the two: serve the peer of a connected socket (taken over, also on failure), or listen at a path
 * (vfu.h). */
int rvx_board_attach(struct rvx_board *board, int fd);
int rvx_board_listen(struct rvx_board *board, const char *path);

/*
 * Serves until *stop is not 0 (set by a signal handler; `unblocked` is the signal mask while sleeping) or,
 * after rvx_board_attach(), the peer went. Returns 0. Both may be NULL.
 */
int rvx_board_run(struct rvx_board *board, const volatile sig_atomic_t *stop, const sigset_t *unblocked);

#endif
