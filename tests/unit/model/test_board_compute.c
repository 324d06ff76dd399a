/* SPDX-License-Identifier: MIT */
/* The compute engine with kernels written by hand (docs/rvx1.md, section 11). */
#include "board_fake.h"
#include "rvx_asm.h"
#include "rvx_compute.h"

#include <stdlib.h>
/* cmocka wants the lines above */
#include "test.h"

#define CODE        0x800000ull /* board addresses */
#define DATA        0xA00000ull
#define STACKS      0x1000000ull
#define HERE(at)    (FAKE_VA + (at))
#define STEP        10000u
#define STEPS       100000u
#define GARBAGE     2000u
#define COUNT(code) (sizeof(code) / sizeof((code)[0]))

static struct fake fake;
static struct rvx_clock board_clock;
static struct rvx_compute compute;
static struct rvx_compute_job job;

/* A job of one thread, with stacks whose guards are unmapped. */
static void plain_job(void)
{
	job = (struct rvx_compute_job){.entry = HERE(CODE),
	        .params = HERE(DATA),
	        .stacks = 0x7000000000ull,
	        .grid = {1, 1, 1},
	        .group = {1, 1, 1},
	        .slots = 1024};
}

static int begin(void **state)
{
	(void)state;
	if (fake_open(&fake))
		return -1;
	for (uint64_t slot = 0; slot < 16; slot++)
		for (uint64_t page = 1; page < 5; page++)
			fake_leaf(&fake, 0x7000000000ull + slot * RVX1_STACK_PITCH + page * 4096,
			        STACKS + slot * RVX1_STACK_PITCH + page * 4096,
			        RVX1_PTE_R | RVX1_PTE_W | RVX1_PTE_U, 0);
	rvx_clock_reset(&board_clock);
	return rvx_compute_open(&compute, &fake.space, &board_clock);
}

static int end(void **state)
{
	(void)state;
	rvx_compute_close(&compute);
	fake_close(&fake);
	return 0;
}

static void set64(uint32_t off, uint64_t value)
{
	rvx_engine_store(&compute.engine, off, 8, value);
}

static void set32(uint32_t off, uint32_t value)
{
	rvx_engine_store(&compute.engine, off, 4, value);
}

static uint32_t get32(uint32_t off)
{
	return (uint32_t)rvx_engine_load(&compute.engine, off, 4);
}

static uint64_t get64(uint32_t off)
{
	return rvx_engine_load(&compute.engine, off, 8);
}

static uint64_t counter(enum rvx1_counter which)
{
	return get64(RVX1_COMPUTE_COUNTERS + (uint32_t)which * 8);
}

static void start(void)
{
	set32(RVX1_ENGINE_CTRL, RVX1_ENGINE_ACK);
	set64(RVX1_COMPUTE_ENTRY, job.entry);
	set64(RVX1_COMPUTE_PARAMS, job.params);
	set64(RVX1_COMPUTE_STACKS, job.stacks);
	for (uint32_t d = 0; d < 3; d++) {
		set32(RVX1_COMPUTE_GRID + 4 * d, job.grid[d]);
		set32(RVX1_COMPUTE_GROUP + 4 * d, job.group[d]);
	}
	set32(RVX1_COMPUTE_SHARED, job.shared);
	set32(RVX1_COMPUTE_SLOTS, job.slots);
	assert_int_equal(
	        rvx_engine_store(&compute.engine, RVX1_ENGINE_CTRL, 4, RVX1_ENGINE_START), RVX_ORDER_START);
	rvx_compute_start(&compute);
}

/* Runs `job` with that code to its end; the final state, or RUNNING if it does not end. */
static uint32_t run(const uint32_t *code, size_t words)
{
	memcpy(fake.memory.host + CODE, code, words * sizeof(*code));
	start();
	for (unsigned i = 0; i < STEPS && get32(RVX1_ENGINE_STATE) == RVX1_ENGINE_RUNNING; i++)
		rvx_compute_step(&compute, STEP);
	return get32(RVX1_ENGINE_STATE);
}

#define RUN(code)         run(code, COUNT(code))
#define ASSERT_DONE(code) assert_int_equal(RUN(code), RVX1_ENGINE_DONE)

static void assert_fault(uint32_t code, uint32_t access, uint64_t address, uint64_t pc, uint32_t insn)
{
	assert_int_equal(get32(RVX1_ENGINE_STATE), RVX1_ENGINE_FAULTED);
	assert_int_equal(get32(RVX1_ENGINE_FAULT), code);
	assert_int_equal(get32(RVX1_ENGINE_ACCESS), access);
	assert_true(get64(RVX1_ENGINE_ADDRESS) == address);
	assert_true(get64(RVX1_ENGINE_PC) == pc);
	assert_int_equal(get32(RVX1_ENGINE_INSN), insn);
}

static uint64_t data64(uint64_t index)
{
	return rvx_load64(fake.memory.host + DATA + index * 8);
}

static void every_thread_of_every_group_runs_once_with_its_numbers(void **state)
{
	/* The linear index over grid and group, whose word is added to: x + 3 * (y + 2 * (z + 2 * (gx +
	 * ...))). */
	const uint32_t code[] = {CSRR(T0, RVX1_CSR_GROUP_ID + 2), LI(T1, 2), MUL(T0, T0, T1),
	        CSRR(T1, RVX1_CSR_GROUP_ID + 1), ADD(T0, T0, T1), LI(T1, 5), MUL(T0, T0, T1),
	        CSRR(T1, RVX1_CSR_GROUP_ID), ADD(T0, T0, T1), CSRR(T1, RVX1_CSR_GROUP_SIZE + 2),
	        MUL(T0, T0, T1), CSRR(T1, RVX1_CSR_THREAD_ID + 2), ADD(T0, T0, T1),
	        CSRR(T1, RVX1_CSR_GROUP_SIZE + 1), MUL(T0, T0, T1), CSRR(T1, RVX1_CSR_THREAD_ID + 1),
	        ADD(T0, T0, T1), CSRR(T1, RVX1_CSR_GROUP_SIZE), MUL(T0, T0, T1), CSRR(T1, RVX1_CSR_THREAD_ID),
	        ADD(T0, T0, T1), SLLI(T0, T0, 3), ADD(A0, A0, T0), LI(T1, 1), AMOADD_D(ZERO, T1, A0), RET};
	uint32_t threads = 5 * 2 * 3 * 3 * 4 * 2;

	(void)state;
	plain_job();
	memcpy(job.grid, (uint32_t[]){5, 2, 3}, sizeof(job.grid));
	memcpy(job.group, (uint32_t[]){3, 4, 2}, sizeof(job.group));
	memset(fake.memory.host + DATA, 0, (threads + 1) * 8);
	ASSERT_DONE(code);
	for (uint32_t i = 0; i < threads; i++)
		assert_int_equal(data64(i), 1);
	assert_int_equal(data64(threads), 0);
	assert_true(counter(RVX1_COUNTER_INSTRUCTIONS) == threads * COUNT(code));
	assert_true(counter(RVX1_COUNTER_BYTES_READ) == threads * 8);
	assert_true(counter(RVX1_COUNTER_BYTES_WRITTEN) == threads * 8);
	assert_true(counter(RVX1_COUNTER_CYCLES) > counter(RVX1_COUNTER_INSTRUCTIONS));
	assert_true(counter(RVX1_COUNTER_END) >= counter(RVX1_COUNTER_START));
}

static void grid_and_shared_csrs_show_the_launch_and_are_read_only(void **state)
{
	const uint32_t code[] = {CSRR(T0, RVX1_CSR_GRID_SIZE), SD(T0, A0, 0),
	        CSRR(T0, RVX1_CSR_GRID_SIZE + 1), SD(T0, A0, 8), CSRR(T0, RVX1_CSR_GRID_SIZE + 2),
	        SD(T0, A0, 16), CSRR(T0, RVX1_CSR_SHARED_BYTES), SD(T0, A0, 24), RET};
	const uint32_t unknown[] = {CSRR(T0, RVX1_CSR_THREAD_ID + 3)};
	const uint32_t write[] = {RV_I(0x73u, 1u, ZERO, T0, RVX1_CSR_THREAD_ID)};

	(void)state;
	plain_job();
	memcpy(job.grid, (uint32_t[]){2, 3, 4}, sizeof(job.grid));
	job.shared = 100;
	ASSERT_DONE(code);
	assert_true(data64(0) == 2 && data64(1) == 3 && data64(2) == 4 && data64(3) == 100);
	RUN(unknown);
	assert_fault(RVX1_FAULT_ILLEGAL, 0, 0, HERE(CODE), unknown[0]);
	RUN(write);
	assert_fault(RVX1_FAULT_ILLEGAL, 0, 0, HERE(CODE), write[0]);
}

static void a_thread_starts_with_the_registers_of_the_manual(void **state)
{
	/* Adds up everything but zero, ra, sp and a0: 0. */
	uint32_t code[40];
	unsigned n = 0;

	(void)state;
	code[n++] = SD(SP, A0, 0);
	code[n++] = SD(RA, A0, 8);
	for (unsigned r = 3; r < 32; r++)
		if (r != A0)
			code[n++] = OR(3, 3, r);
	code[n++] = SD(3, A0, 16);
	code[n++] = RV_I(0x73u, 2u, 4, ZERO, 3); /* fcsr */
	code[n++] = SD(4, A0, 24);
	code[n++] = RET;
	plain_job();
	memset(fake.memory.host + DATA, 0xFF, 64);
	assert_int_equal(run(code, n), RVX1_ENGINE_DONE);
	assert_true(data64(0) == job.stacks + RVX1_STACK_PITCH);
	assert_true(data64(1) == RVX1_RETURN);
	assert_true(data64(2) == 0 && data64(3) == 0);
}

static void each_thread_has_a_stack_of_its_own_and_a_guard_below(void **state)
{
	const uint32_t fits[] = {LUI(T0, 4), RV_R(0x33u, 0u, 0x20u, T0, SP, T0), SB(ZERO, T0, 0),
	        SB(ZERO, SP, -1), CSRR(T1, RVX1_CSR_THREAD_ID), SLLI(T1, T1, 3), ADD(A0, A0, T1),
	        SD(SP, A0, 0), RET};
	const uint32_t over[] = {LUI(T0, 4), RV_R(0x33u, 0u, 0x20u, T0, SP, T0), SB(ZERO, T0, -1), RET};

	(void)state;
	plain_job();
	job.group[0] = 16;
	ASSERT_DONE(fits);
	for (uint64_t i = 0; i < 16; i++)
		assert_true(data64(i) == job.stacks + (i + 1) * RVX1_STACK_PITCH);
	RUN(over);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_WRITE, job.stacks + 0xFFF, HERE(CODE) + 8, 0);
	assert_int_equal(get32(RVX1_ENGINE_THREAD), 0);
}

static void shared_memory_is_the_groups_and_zero_at_its_start(void **state)
{
	/* Each thread adds its shared word to its own result, then adds one to that word; two groups. */
	const uint32_t code[] = {LI(T0, 1), SLLI(T0, T0, 36), CSRR(T1, RVX1_CSR_THREAD_ID), SLLI(T1, T1, 3),
	        ADD(T0, T0, T1), ADD(A0, A0, T1), LD(T2, T0, 0), AMOADD_D(ZERO, T2, A0), ADDI(T2, T2, 1),
	        SD(T2, T0, 0), RET};
	const uint32_t last_byte[] = {
	        LI(T0, 1), SLLI(T0, T0, 36), LUI(T1, 1), ADD(T0, T0, T1), LBU(T2, T0, -1), RET};
	const uint32_t beyond[] = {
	        LI(T0, 1), SLLI(T0, T0, 36), LUI(T1, 1), ADD(T0, T0, T1), LBU(T2, T0, 0), RET};
	const uint32_t jump[] = {LI(T0, 1), SLLI(T0, T0, 36), JALR(ZERO, T0, 0)};

	(void)state;
	plain_job();
	job.group[0] = 64;
	job.grid[0] = 2;
	job.shared = 512;
	memset(fake.memory.host + DATA, 0, 512);
	ASSERT_DONE(code);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(data64(i), 0);
	ASSERT_DONE(last_byte);
	RUN(beyond);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_READ, RVX1_SHARED_BASE + 4096, HERE(CODE) + 16, 0);
	RUN(jump);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_FETCH, RVX1_SHARED_BASE, RVX1_SHARED_BASE, 0);
}

static void shared_memory_does_not_go_through_the_mmu(void **state)
{
	const uint32_t code[] = {LI(T0, 1), SLLI(T0, T0, 36), LBU(T2, T0, 0), RET};

	(void)state;
	plain_job();
	fake_leaf(&fake, RVX1_SHARED_BASE, DATA, FAKE_ALL, 0);
	RUN(code);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_READ, RVX1_SHARED_BASE, HERE(CODE) + 8, 0);
	job.shared = 65536;
	ASSERT_DONE(code);
	fake_leaf(&fake, RVX1_SHARED_BASE, 0, 0, 0);
}

static void a_barrier_lets_nobody_through_before_all_came(void **state)
{
	/* Writes its shared word, waits, reads that of the thread on the other end. */
	const uint32_t code[] = {LI(T0, 1), SLLI(T0, T0, 36), CSRR(T1, RVX1_CSR_THREAD_ID), SLLI(A1, T1, 3),
	        ADD(A2, T0, A1), ADDI(T1, T1, 1), SD(T1, A2, 0), BARRIER, CSRR(A3, RVX1_CSR_GROUP_SIZE),
	        SLLI(A3, A3, 3), RV_R(0x33u, 0u, 0x20u, A3, A3, A1), ADD(A3, A3, T0), LD(A4, A3, -8), BARRIER,
	        ADD(A0, A0, A1), SD(A4, A0, 0), BARRIER, RET};
	const uint32_t sizes[] = {1, 2, 255, 1024};

	(void)state;
	for (unsigned s = 0; s < COUNT(sizes); s++) {
		plain_job();
		job.group[0] = sizes[s];
		job.grid[0] = 3;
		job.shared = 65536;
		job.stacks = HERE(STACKS);
		ASSERT_DONE(code);
		for (uint64_t i = 0; i < sizes[s]; i++)
			assert_int_equal(data64(i), sizes[s] - i);
	}
}

static void a_barrier_that_not_all_reach_faults(void **state)
{
	/* Thread 3 does not wait; or waits once more. */
	const uint32_t short_one[] = {CSRR(T0, RVX1_CSR_THREAD_ID), LI(T1, 3), BEQ(T0, T1, 8), BARRIER, RET};
	const uint32_t long_one[] = {
	        CSRR(T0, RVX1_CSR_THREAD_ID), LI(T1, 3), BARRIER, BNE(T0, T1, 8), BARRIER, RET};

	(void)state;
	plain_job();
	job.group[0] = 8;
	job.grid[0] = 2;
	RUN(short_one);
	assert_fault(RVX1_FAULT_BARRIER, 0, 0, HERE(CODE) + 12, BARRIER);
	assert_int_not_equal(get32(RVX1_ENGINE_THREAD), 3);
	RUN(long_one);
	assert_fault(RVX1_FAULT_BARRIER, 0, 0, HERE(CODE) + 16, BARRIER);
	assert_int_equal(get32(RVX1_ENGINE_THREAD), 3);
}

static void threads_that_wait_for_each_other_make_progress(void **state)
{
	/* Thread 0 spins until the last one has stored. */
	const uint32_t code[] = {CSRR(T0, RVX1_CSR_THREAD_ID), BNE(T0, ZERO, 16), LD(T1, A0, 0),
	        BEQ(T1, ZERO, -4), RET, LI(T1, 7), BNE(T0, T1, 8), SD(T1, A0, 0), RET};

	(void)state;
	plain_job();
	job.group[0] = 8;
	memset(fake.memory.host + DATA, 0, 8);
	ASSERT_DONE(code);
	assert_int_equal(data64(0), 7);
}

static void a_lock_of_lr_and_sc_serves_all_threads(void **state)
{
	/* lr.d t0,(a0); addi; sc.d t1,t0,(a0); bnez t1 -12 */
	const uint32_t code[] = {RV_R(0x2Fu, 3u, 0x08u, T0, A0, 0), ADDI(T0, T0, 1),
	        RV_R(0x2Fu, 3u, 0x0Cu, T1, A0, T0), BNE(T1, ZERO, -12), RET};

	(void)state;
	plain_job();
	job.group[0] = 1024;
	job.stacks = HERE(STACKS);
	memset(fake.memory.host + DATA, 0, 8);
	ASSERT_DONE(code);
	assert_int_equal(data64(0), 1024);
}

static void an_endless_thread_leaves_each_step_bounded(void **state)
{
	const uint32_t code[] = {J_SELF};

	(void)state;
	plain_job();
	job.group[0] = 1024;
	memcpy(fake.memory.host + CODE, code, sizeof(code));
	start();
	for (unsigned i = 0; i < 10; i++)
		rvx_compute_step(&compute, STEP);
	assert_int_equal(get32(RVX1_ENGINE_STATE), RVX1_ENGINE_RUNNING);
	rvx_compute_reset(&compute);
	assert_int_equal(get32(RVX1_ENGINE_STATE), RVX1_ENGINE_IDLE);
}

static void illegal_instructions_fault_with_their_bits(void **state)
{
	const uint32_t none[] = {NOP, UNKNOWN}, wfi[] = {WFI}, custom[] = {0x0000008Bu},
	               half[] = {0x00000000u};

	(void)state;
	plain_job();
	RUN(none);
	assert_fault(RVX1_FAULT_ILLEGAL, 0, 0, HERE(CODE) + 4, UNKNOWN);
	RUN(wfi);
	assert_fault(RVX1_FAULT_ILLEGAL, 0, 0, HERE(CODE), WFI);
	RUN(custom);
	assert_fault(RVX1_FAULT_ILLEGAL, 0, 0, HERE(CODE), 0x8Bu);
	RUN(half);
	assert_fault(RVX1_FAULT_ILLEGAL, 0, 0, HERE(CODE), 0);
}

static void traps_fault_where_they_stand(void **state)
{
	const uint32_t call[] = {NOP, ECALL}, stop[] = {EBREAK};

	(void)state;
	plain_job();
	RUN(call);
	assert_fault(RVX1_FAULT_TRAP, 0, 0, HERE(CODE) + 4, ECALL);
	RUN(stop);
	assert_fault(RVX1_FAULT_TRAP, 0, 0, HERE(CODE), EBREAK);
}

static void misaligned_atomics_fault_and_plain_accesses_work(void **state)
{
	const uint32_t atomic[] = {ADDI(A0, A0, 4), AMOADD_D(ZERO, ZERO, A0)};
	const uint32_t plain[] = {LI(T0, -1), SD(T0, A0, 3), LD(T1, A0, 3), SD(T1, A0, 16), RET};

	(void)state;
	plain_job();
	RUN(atomic);
	assert_fault(RVX1_FAULT_MISALIGNED, RVX1_ACCESS_WRITE, HERE(DATA) + 4, HERE(CODE) + 4, 0);
	ASSERT_DONE(plain);
	assert_true(data64(2) == UINT64_MAX);
	job.entry |= 1;
	RUN(plain);
	assert_fault(RVX1_FAULT_MISALIGNED, RVX1_ACCESS_FETCH, HERE(CODE) + 1, HERE(CODE) + 1, 0);
}

static void accesses_without_the_right_fault(void **state)
{
	const uint32_t load[] = {LW(T0, A0, 4)}, store[] = {SW(T0, A0, 8)}, null[] = {LD(T0, ZERO, 0)};
	const uint32_t jump[] = {JALR(RA, A0, 0)};
	uint64_t va = 0x7100000000ull;

	(void)state;
	plain_job();
	job.params = va;
	fake_leaf(&fake, va, DATA, RVX1_PTE_U | RVX1_PTE_X, 0);
	RUN(load);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_READ, va + 4, HERE(CODE), 0);
	fake_leaf(&fake, va, DATA, RVX1_PTE_U | RVX1_PTE_R, 0);
	RUN(store);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_WRITE, va + 8, HERE(CODE), 0);
	RUN(jump);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_FETCH, va, va, 0);
	RUN(null);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_READ, 0, HERE(CODE), 0);
	job.entry = 0;
	RUN(null);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_FETCH, 0, 0, 0);
	job.entry = 1ull << 47;
	RUN(null);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_FETCH, 1ull << 47, 1ull << 47, 0);
}

static void the_fault_names_group_and_thread(void **state)
{
	/* Thread (1,2,0) of group (1,0,2) of a 2 x 1 x 3 grid of 2 x 3 x 1 reads null. */
	const uint32_t code[] = {CSRR(T0, RVX1_CSR_GROUP_ID), CSRR(T1, RVX1_CSR_GROUP_ID + 2), LI(T2, 1),
	        BNE(T0, T2, 36), LI(T2, 2), BNE(T1, T2, 28), CSRR(T0, RVX1_CSR_THREAD_ID), LI(T2, 1),
	        BNE(T0, T2, 16), CSRR(T0, RVX1_CSR_THREAD_ID + 1), LI(T2, 2), BEQ(T0, T2, 8), RET,
	        LD(T0, ZERO, 0)};

	(void)state;
	plain_job();
	memcpy(job.grid, (uint32_t[]){2, 1, 3}, sizeof(job.grid));
	memcpy(job.group, (uint32_t[]){2, 3, 1}, sizeof(job.group));
	RUN(code);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_READ, 0, HERE(CODE) + 52, 0);
	assert_int_equal(get32(RVX1_ENGINE_GROUP), 1);
	assert_int_equal(get32(RVX1_ENGINE_GROUP + 4), 0);
	assert_int_equal(get32(RVX1_ENGINE_GROUP + 8), 2);
	assert_int_equal(get32(RVX1_ENGINE_THREAD), 1 + 2 * 2);
}

static void launches_out_of_limits_fault(void **state)
{
	const uint32_t code[] = {RET};

	(void)state;
	for (unsigned which = 0; which < 10; which++) {
		plain_job();
		if (which < 3)
			job.grid[which] = 0;
		else if (which < 6)
			job.group[which - 3] = 0;
		else if (which == 6)
			job.group[1] = 1025;
		else if (which == 7)
			memcpy(job.group, (uint32_t[]){1u << 16, 1u << 16, 1}, sizeof(job.group));
		else if (which == 8)
			job.shared = 65537;
		else
			job.slots = 0;
		RUN(code);
		assert_fault(RVX1_FAULT_LAUNCH, 0, 0, 0, 0);
	}
	plain_job();
	job.group[2] = 1024;
	job.shared = 65536;
	ASSERT_DONE(code);
	job.slots = 1023;
	RUN(code);
	assert_fault(RVX1_FAULT_LAUNCH, 0, 0, 0, 0);
}

static void system_memory_is_reached_by_address_and_by_transfers(void **state)
{
	const uint32_t code[] = {LD(T0, A0, 0), ADDI(T0, T0, 1), SD(T0, A0, 8), SB(T0, A0, 17), LI(T1, 5),
	        AMOADD_D(T2, T1, A0), SD(T2, A0, 24), RET};
	const uint64_t at[] = {0, FAKE_BUS_BYTES};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t *words = (uint64_t *)(void *)(fake.bus + at[i]);
		plain_job();
		job.params = FAKE_VA_BUS + at[i];
		words[0] = 41;
		memset(&words[1], 0, 24);
		unsigned transfers = fake.transfers;
		ASSERT_DONE(code);
		assert_true((fake.transfers > transfers) == (i == 1));
		assert_true(words[0] == 46 && words[1] == 42 && words[2] == 42 << 8 && words[3] == 41);
	}
}

static void code_may_lie_in_system_memory_of_either_kind(void **state)
{
	const uint32_t code[] = {LI(T0, 77), SD(T0, A0, 0), RET};
	const uint64_t at[] = {0x1000, FAKE_BUS_BYTES + 0x1000};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		plain_job();
		job.entry = FAKE_VA_BUS + at[i];
		memcpy(fake.bus + at[i], code, sizeof(code));
		memset(fake.memory.host + DATA, 0, 8);
		ASSERT_DONE(code);
		assert_int_equal(data64(0), 77);
	}
}

static void system_memory_that_nothing_answers_is_a_bus_fault(void **state)
{
	const uint32_t load[] = {LD(T0, A0, 8)}, store[] = {SD(T0, A0, 8)}, jump[] = {JALR(RA, A0, 0)};
	uint64_t va = FAKE_VA_BUS + sizeof(fake.bus);

	(void)state;
	plain_job();
	job.params = va;
	RUN(load);
	assert_fault(RVX1_FAULT_BUS, RVX1_ACCESS_READ, va + 8, HERE(CODE), 0);
	RUN(store);
	assert_fault(RVX1_FAULT_BUS, RVX1_ACCESS_WRITE, va + 8, HERE(CODE), 0);
	RUN(jump);
	assert_fault(RVX1_FAULT_BUS, RVX1_ACCESS_FETCH, va, va, 0);
}

static void an_invalidation_ends_the_use_of_an_old_translation(void **state)
{
	/* Spins until the word it reads is not 0; the page behind it is exchanged meanwhile. */
	const uint32_t code[] = {LD(T0, A0, 0), BEQ(T0, ZERO, -4), SD(T0, A0, 8), RET};
	uint64_t va = 0x7200000000ull;

	(void)state;
	plain_job();
	job.params = va;
	memset(fake.memory.host + DATA, 0, 8192);
	rvx_store64(fake.memory.host + DATA + 4096, 99);
	fake_leaf(&fake, va, DATA, FAKE_ALL, 0);
	memcpy(fake.memory.host + CODE, code, sizeof(code));
	start();
	for (unsigned i = 0; i < 5; i++)
		rvx_compute_step(&compute, STEP);
	fake_leaf(&fake, va, DATA + 4096, FAKE_ALL, 0);
	rvx_compute_forget(&compute, va, 1);
	rvx_compute_step(&compute, STEP);
	assert_int_equal(get32(RVX1_ENGINE_STATE), RVX1_ENGINE_DONE);
	assert_true(rvx_load64(fake.memory.host + DATA + 4096 + 8) == 99);
}

static void a_new_mapping_needs_no_invalidation(void **state)
{
	const uint32_t code[] = {LD(T0, A0, 0), RET};
	uint64_t va = 0x7300000000ull;

	(void)state;
	plain_job();
	job.params = va;
	RUN(code);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_READ, va, HERE(CODE), 0);
	fake_leaf(&fake, va, DATA, FAKE_ALL, 0);
	ASSERT_DONE(code);
}

static void a_launch_sees_code_as_of_its_start(void **state)
{
	const uint32_t one[] = {LI(T0, 1), SD(T0, A0, 0), RET}, two[] = {LI(T0, 2), SD(T0, A0, 0), RET};

	(void)state;
	plain_job();
	ASSERT_DONE(one);
	assert_int_equal(data64(0), 1);
	ASSERT_DONE(two);
	assert_int_equal(data64(0), 2);
}

static void counter_csrs_read_as_the_threads_own(void **state)
{
	const uint32_t code[] = {NOP, CSRR(T0, 0xC02), SD(T0, A0, 0), CSRR(T0, 0xC01), SD(T0, A0, 8),
	        CSRR(T0, 0xC00), SD(T0, A0, 16), RET};

	(void)state;
	plain_job();
	job.grid[0] = 3;
	uint64_t before = rvx_clock_read(&board_clock);
	ASSERT_DONE(code);
	assert_true(data64(0) == 1);
	assert_true(data64(1) >= before && data64(1) <= rvx_clock_read(&board_clock));
	assert_true(data64(2) > 5 && data64(2) < 100);
}

static void garbage_faults_or_runs_but_never_hangs_a_step(void **state)
{
	uint32_t code[64];

	(void)state;
	srandom(7);
	for (unsigned round = 0; round < GARBAGE; round++) {
		for (unsigned i = 0; i < COUNT(code); i++)
			code[i] = (uint32_t)random() << 1 ^ (uint32_t)random();
		plain_job();
		job.group[0] = 1 + (uint32_t)random() % 4;
		memcpy(fake.memory.host + CODE, code, sizeof(code));
		start();
		for (unsigned i = 0; i < 5 && get32(RVX1_ENGINE_STATE) == RVX1_ENGINE_RUNNING; i++)
			rvx_compute_step(&compute, STEP);
		rvx_compute_reset(&compute);
	}
}

static void code_on_the_last_bytes_of_memory_does_not_run_over_the_end(void **state)
{
	const uint32_t code[] = {NOP};

	(void)state;
	plain_job();
	job.entry = HERE(FAKE_BYTES - 4);
	memcpy(fake.memory.host + FAKE_BYTES - 4, code, sizeof(code));
	start();
	for (unsigned i = 0; i < 10 && get32(RVX1_ENGINE_STATE) == RVX1_ENGINE_RUNNING; i++)
		rvx_compute_step(&compute, STEP);
	assert_fault(RVX1_FAULT_PAGE, RVX1_ACCESS_FETCH, HERE(FAKE_BYTES), HERE(FAKE_BYTES), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_thread_of_every_group_runs_once_with_its_numbers),
	        cmocka_unit_test(grid_and_shared_csrs_show_the_launch_and_are_read_only),
	        cmocka_unit_test(a_thread_starts_with_the_registers_of_the_manual),
	        cmocka_unit_test(each_thread_has_a_stack_of_its_own_and_a_guard_below),
	        cmocka_unit_test(shared_memory_is_the_groups_and_zero_at_its_start),
	        cmocka_unit_test(shared_memory_does_not_go_through_the_mmu),
	        cmocka_unit_test(a_barrier_lets_nobody_through_before_all_came),
	        cmocka_unit_test(a_barrier_that_not_all_reach_faults),
	        cmocka_unit_test(threads_that_wait_for_each_other_make_progress),
	        cmocka_unit_test(a_lock_of_lr_and_sc_serves_all_threads),
	        cmocka_unit_test(an_endless_thread_leaves_each_step_bounded),
	        cmocka_unit_test(illegal_instructions_fault_with_their_bits),
	        cmocka_unit_test(traps_fault_where_they_stand),
	        cmocka_unit_test(misaligned_atomics_fault_and_plain_accesses_work),
	        cmocka_unit_test(accesses_without_the_right_fault),
	        cmocka_unit_test(the_fault_names_group_and_thread),
	        cmocka_unit_test(launches_out_of_limits_fault),
	        cmocka_unit_test(system_memory_is_reached_by_address_and_by_transfers),
	        cmocka_unit_test(code_may_lie_in_system_memory_of_either_kind),
	        cmocka_unit_test(system_memory_that_nothing_answers_is_a_bus_fault),
	        cmocka_unit_test(an_invalidation_ends_the_use_of_an_old_translation),
	        cmocka_unit_test(a_new_mapping_needs_no_invalidation),
	        cmocka_unit_test(a_launch_sees_code_as_of_its_start),
	        cmocka_unit_test(counter_csrs_read_as_the_threads_own),
	        cmocka_unit_test(garbage_faults_or_runs_but_never_hangs_a_step),
	        cmocka_unit_test(code_on_the_last_bytes_of_memory_does_not_run_over_the_end),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
