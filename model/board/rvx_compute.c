/* SPDX-License-Identifier: MIT */
#include "rvx_compute.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TURN_INSTRUCTIONS 4096u /* longer than any sensible lr/sc loop, and short beside a group's life */
#define SLOW_INSTRUCTIONS 256u  /* a turn of a job whose accesses are transfers */
#define TRANSFER_COST     1000u /* of one that may be an exchange of messages, in instructions */
#define START_COST        32u   /* of a thread, in instructions */
#define REG_RA            1u
#define REG_SP            2u
#define REG_A0            10u

int rvx_compute_open(
        struct rvx_compute *compute, const struct rvx_space *space, const struct rvx_clock *clock)
{
	memset(compute, 0, sizeof(*compute));
	compute->space = space;
	compute->clock = clock;
	compute->pool = calloc(RVX1_MAX_GROUP_THREADS, sizeof(*compute->pool));
	compute->shared = aligned_alloc(RV_PAGE_SIZE, RVX1_MAX_SHARED);
	if (!compute->pool || !compute->shared || rv_bus_alloc(&compute->bus, &rvx_view_ops, compute)) {
		rvx_compute_close(compute);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < RVX1_MAX_GROUP_THREADS; i++)
		compute->live[i] = &compute->pool[i];
	return 0;
}

void rvx_compute_close(struct rvx_compute *compute)
{
	rvx_view_fini(compute);
	rv_bus_free(compute->bus);
	free(compute->shared);
	free(compute->pool);
	memset(compute, 0, sizeof(*compute));
}

void rvx_compute_forget(struct rvx_compute *compute, uint64_t va, uint64_t bytes)
{
	if (bytes)
		rv_bus_flush(compute->bus, va, bytes);
	else
		rv_bus_flush_all(compute->bus);
}

/* No thread is in flight. */
static void drop_group(struct rvx_compute *compute)
{
	compute->started = 0;
	compute->ended = 0;
	compute->waiting = 0;
	compute->live_count = 0;
	compute->turn = 0;
}

void rvx_compute_reset(struct rvx_compute *compute)
{
	rvx_engine_reset(&compute->engine);
	drop_group(compute);
	compute->hung = false;
	rv_bus_flush_all(compute->bus);
}

/* ---- jobs ---- */

static void publish_counters(struct rvx_compute *compute)
{
	compute->counter[RVX1_COUNTER_END] = rvx_clock_read(compute->clock);
	for (uint32_t i = 0; i < RVX1_COUNTERS; i++)
		rvx_engine_set64(&compute->engine, RVX1_COMPUTE_COUNTERS + i * 8, compute->counter[i]);
}

static void finish(struct rvx_compute *compute)
{
	publish_counters(compute);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* the threads' stores before DONE, for whoever sees DONE */
	rvx_engine_finish(&compute->engine);
}

/* The threads a group, or 0: out of limits. */
static uint32_t threads_of(const struct rvx_compute_job *job)
{
	uint64_t threads = 1;

	for (unsigned d = 0; d < 3; d++) {
		if (!job->grid[d] || !job->group[d] || job->group[d] > RVX1_MAX_GROUP_THREADS)
			return 0;
		threads *= job->group[d];
	}
	if (threads > RVX1_MAX_GROUP_THREADS || threads > job->slots || job->shared > RVX1_MAX_SHARED)
		return 0;
	return (uint32_t)threads;
}

static void take_registers(struct rvx_compute *compute)
{
	const struct rvx_engine *engine = &compute->engine;
	struct rvx_compute_job *job = &compute->job;

	job->entry = rvx_engine_get64(engine, RVX1_COMPUTE_ENTRY);
	job->params = rvx_engine_get64(engine, RVX1_COMPUTE_PARAMS);
	job->stacks = rvx_engine_get64(engine, RVX1_COMPUTE_STACKS);
	for (unsigned d = 0; d < 3; d++) {
		job->grid[d] = engine->word[RVX1_COMPUTE_GRID / 4 + d];
		job->group[d] = engine->word[RVX1_COMPUTE_GROUP / 4 + d];
	}
	job->shared = engine->word[RVX1_COMPUTE_SHARED / 4];
	job->slots = engine->word[RVX1_COMPUTE_SLOTS / 4];
	job->threads = threads_of(job);
}

static void open_group(struct rvx_compute *compute)
{
	uint64_t pages = (compute->job.shared + RV_PAGE_SIZE - 1) / RV_PAGE_SIZE;

	drop_group(compute);
	memset(compute->shared, 0, pages * RV_PAGE_SIZE);
}

void rvx_compute_start(struct rvx_compute *compute)
{
	struct rvx_refusal refusal = {0};

	take_registers(compute);
	memset(compute->counter, 0, sizeof(compute->counter));
	compute->counter[RVX1_COUNTER_START] = rvx_clock_read(compute->clock);
	memset(compute->at, 0, sizeof(compute->at));
	if (!compute->job.threads) {
		refusal.code = RVX1_FAULT_LAUNCH;
	} else if (compute->job.entry & 1) {
		refusal.code = RVX1_FAULT_MISALIGNED;
		refusal.access = RVX1_ACCESS_FETCH;
		refusal.address = compute->job.entry;
		refusal.pc = compute->job.entry;
	}
	if (refusal.code) {
		publish_counters(compute);
		rvx_engine_refuse(&compute->engine, &refusal);
		return;
	}
	rv_bus_flush_all(compute->bus); /* section 11: a launch sees code as of its start */
	open_group(compute);
}

/* Goes to the next group of the grid; after the last one the job is done. */
static void next_group(struct rvx_compute *compute)
{
	for (unsigned d = 0; d < 3; d++) {
		if (++compute->at[d] < compute->job.grid[d]) {
			open_group(compute);
			return;
		}
		compute->at[d] = 0;
	}
	finish(compute);
}

/* ---- threads ---- */

static struct rvx_thread *start_thread(struct rvx_compute *compute)
{
	const struct rvx_compute_job *job = &compute->job;
	struct rvx_thread *thread = compute->live[compute->live_count++];
	uint32_t linear = compute->started++;

	rv_hart_init(&thread->hart);
	thread->hart.user = thread;
	thread->hart.pc = job->entry;
	thread->hart.x[REG_A0] = job->params;
	thread->hart.x[REG_RA] = RVX1_RETURN;
	thread->hart.x[REG_SP] = job->stacks + ((uint64_t)linear + 1) * RVX1_STACK_PITCH;
	thread->linear = linear;
	thread->index[0] = linear % job->group[0];
	thread->index[1] = linear / job->group[0] % job->group[1];
	thread->index[2] = linear / job->group[0] / job->group[1];
	return thread;
}

/* Whose turn it is. Threads are started in their first turn, so that those that end in it reuse one hart. */
static struct rvx_thread *pick(struct rvx_compute *compute)
{
	if (compute->turn < compute->live_count)
		return compute->live[compute->turn];
	if (compute->started < compute->job.threads)
		return start_thread(compute);
	compute->turn = compute->waiting;
	return compute->live[compute->turn];
}

static void swap(struct rvx_compute *compute, uint32_t a, uint32_t b)
{
	struct rvx_thread *thread = compute->live[a];

	compute->live[a] = compute->live[b];
	compute->live[b] = thread;
}

static void account(struct rvx_compute *compute, const struct rv_hart *hart)
{
	compute->counter[RVX1_COUNTER_CYCLES] += rv_cycles(hart);
	compute->counter[RVX1_COUNTER_INSTRUCTIONS] += hart->count.instructions;
	compute->counter[RVX1_COUNTER_BYTES_READ] += hart->count.bytes_read;
	compute->counter[RVX1_COUNTER_BYTES_WRITTEN] += hart->count.bytes_written;
}

/* The job ends with that fault at that thread; what all threads in flight did still counts. */
static void refuse(struct rvx_compute *compute, const struct rvx_thread *thread, struct rvx_refusal refusal)
{
	for (uint32_t i = 0; i < compute->live_count; i++)
		account(compute, &compute->live[i]->hart);
	memcpy(refusal.group, compute->at, sizeof(refusal.group));
	refusal.thread = thread->linear;
	publish_counters(compute);
	rvx_engine_refuse(&compute->engine, &refusal);
	drop_group(compute);
}

static void refuse_instruction(
        struct rvx_compute *compute, const struct rvx_thread *thread, uint32_t code, uint64_t pc)
{
	refuse(compute, thread,
	        (struct rvx_refusal){.code = code, .pc = pc, .insn = thread->hart.cause.bits});
}

/* Some threads of a group are at a barrier that others will never reach: names one that waits. */
static void refuse_barrier(struct rvx_compute *compute, const struct rvx_thread *thread)
{
	refuse_instruction(compute, thread, RVX1_FAULT_BARRIER, thread->hart.pc - thread->hart.cause.length);
}

static void refuse_access(struct rvx_compute *compute, const struct rvx_thread *thread)
{
	static const enum rvx1_access accesses[] = {
	        [RV_FETCH] = RVX1_ACCESS_FETCH,
	        [RV_LOAD] = RVX1_ACCESS_READ,
	        [RV_STORE] = RVX1_ACCESS_WRITE,
	};
	const struct rv_cause *cause = &thread->hart.cause;

	refuse(compute, thread,
	        (struct rvx_refusal){
	                .code = cause->misaligned ? RVX1_FAULT_MISALIGNED : compute->denied,
	                .access = accesses[cause->access],
	                .address = cause->address,
	                .pc = thread->hart.pc,
	        });
}

static void end_thread(struct rvx_compute *compute, struct rvx_thread *thread)
{
	if (compute->waiting) {
		refuse_barrier(compute, compute->live[0]);
		return;
	}
	account(compute, &thread->hart);
	compute->ended++;
	swap(compute, compute->turn, --compute->live_count);
	if (!compute->live_count && compute->started == compute->job.threads)
		next_group(compute);
}

static void wait_at_barrier(struct rvx_compute *compute, struct rvx_thread *thread)
{
	if (compute->ended) {
		refuse_barrier(compute, thread);
		return;
	}
	swap(compute, compute->turn++, compute->waiting++);
	if (compute->waiting == compute->job.threads) {
		compute->waiting = 0;
		compute->turn = 0;
	}
}

static bool has_returned(const struct rv_hart *hart)
{
	return hart->cause.access == RV_FETCH && hart->pc == RVX1_RETURN;
}

/* A thread's turn is over, for that reason. */
static void settle(struct rvx_compute *compute, struct rvx_thread *thread, enum rv_stop stop)
{
	const struct rv_hart *hart = &thread->hart;

	switch (stop) {
	case RV_BUDGET:
		compute->turn++;
		return;
	case RV_FAULT:
		if (has_returned(hart))
			end_thread(compute, thread);
		else
			refuse_access(compute, thread);
		return;
	case RV_CUSTOM:
		if (hart->cause.bits == RVX1_INSN_BARRIER)
			wait_at_barrier(compute, thread);
		else
			refuse_instruction(
			        compute, thread, RVX1_FAULT_ILLEGAL, hart->pc - hart->cause.length);
		return;
	case RV_ECALL:
	case RV_EBREAK:
		refuse_instruction(compute, thread, RVX1_FAULT_TRAP, hart->pc);
		return;
	case RV_WFI: /* privileged, and so none of the board's threads' */
		refuse_instruction(compute, thread, RVX1_FAULT_ILLEGAL, hart->pc - hart->cause.length);
		return;
	case RV_ILLEGAL:
	default:
		refuse_instruction(compute, thread, RVX1_FAULT_ILLEGAL, hart->pc);
		return;
	}
}

void rvx_compute_step(struct rvx_compute *compute, uint64_t budget)
{
	uint64_t spent = 0;

	while (!compute->hung && spent < budget &&
	        rvx_engine_state(&compute->engine) == RVX1_ENGINE_RUNNING) {
		struct rvx_thread *thread = pick(compute);
		uint64_t before = thread->hart.count.instructions;
		unsigned turn = compute->transfers ? SLOW_INSTRUCTIONS : TURN_INSTRUCTIONS;
		compute->transfers = 0;
		enum rv_stop stop = rv_run(compute->bus, &thread->hart, turn);
		spent += thread->hart.count.instructions - before + START_COST +
		         (uint64_t)compute->transfers * TRANSFER_COST;
		settle(compute, thread, stop);
	}
}
