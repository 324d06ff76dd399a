/* SPDX-License-Identifier: MIT */
/*
 * The compute engine: grids of groups of RISC-V threads (manual, section 11). One group is in flight at a
 * time; its threads take turns, each for some thousand instructions. A thread that ends in its first turn
 * costs little more than its instructions: most do.
 */
#ifndef RVX_COMPUTE_H
#define RVX_COMPUTE_H

#include "rv.h"
#include "rvx_clock.h"
#include "rvx_engine.h"
#include "rvx_space.h"

#define RVX_STACK_SLOTS RVX1_MAX_GROUP_THREADS /* one group in flight */

struct rvx_compute_job {
	uint64_t entry, params, stacks;
	uint32_t grid[3], group[3];
	uint32_t shared, slots;
	uint32_t threads; /* a group */
};

/* Copies of code pages that are reached by transfers: code is fetched from memory with an address only. */
#define RVX_CODE_PAGES 16u
struct rvx_code {
	uint64_t va[RVX_CODE_PAGES];
	uint8_t *bytes[RVX_CODE_PAGES]; /* NULL: never used */
	unsigned next;                  /* to be replaced */
};

struct rvx_thread {
	struct rv_hart hart;
	uint32_t index[3]; /* in its group */
	uint32_t linear;
};

struct rvx_compute {
	struct rvx_engine engine;
	const struct rvx_space *space;
	const struct rvx_clock *clock;
	struct rv_bus *bus;
	struct rvx_compute_job job;
	bool hung; /* --fault hang: RUNNING and nothing happens */

	/* The group in flight. Threads [0, waiting) of `live` are at a barrier, [waiting, live_count) run in
	 * turn. */
	uint32_t at[3];
	uint32_t started, ended, waiting, live_count, turn;
	struct rvx_thread *live[RVX1_MAX_GROUP_THREADS];
	struct rvx_thread *pool;
	uint8_t *shared; /* RVX1_MAX_SHARED bytes */

	/* The job so far, of threads that ended. */
	uint64_t counter[RVX1_COUNTERS];

	unsigned transfers; /* to memory without an address here, in this turn */
	uint32_t denied;    /* why the last translation or transfer was refused: RVX1_FAULT_PAGE or _BUS */
	struct rvx_code code;
};

/* space and clock must outlive it. 0 or -ENOMEM. */
int rvx_compute_open(
        struct rvx_compute *compute, const struct rvx_space *space, const struct rvx_clock *clock);
void rvx_compute_close(struct rvx_compute *compute);
void rvx_compute_reset(struct rvx_compute *compute);

/* Takes the job's registers: after RVX_ORDER_START. A job out of limits is FAULTED at once. */
void rvx_compute_start(struct rvx_compute *compute);

/* Forgets translations of [va, va + bytes), bytes 0: all (section 6.2). */
void rvx_compute_forget(struct rvx_compute *compute, uint64_t va, uint64_t bytes);

/* What threads see: the callbacks of the engine's bus, whose context is the engine (rvx_view.c). */
extern const struct rv_bus_ops rvx_view_ops;
void rvx_view_fini(struct rvx_compute *compute);

/* Goes on with a RUNNING job for about `budget` instructions. */
void rvx_compute_step(struct rvx_compute *compute, uint64_t budget);

#endif
