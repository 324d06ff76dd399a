/* SPDX-License-Identifier: MIT */
/* The copy engine against a byte-by-byte model, and its faults (docs/rvx1.md, section 5.3). */
#include "board_fake.h"
#include "rvx_copier.h"

#include <stdlib.h>
/* cmocka wants the lines above */
#include "test.h"

#define ROUNDS     300
#define AREA       0x800000ull /* board memory that jobs use */
#define AREA_BYTES 0x40000ull
#define SMALL_STEP 1000u

static struct fake fake;
static struct rvx_copier copier;

static int begin(void **state)
{
	(void)state;
	if (fake_open(&fake))
		return -1;
	rvx_copier_init(&copier, &fake.space);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fake_close(&fake);
	return 0;
}

static void set(uint32_t off, uint64_t value)
{
	assert_int_equal(rvx_engine_store(&copier.engine, off, 8, value), RVX_ORDER_NONE);
}

/* Runs a job to its end, in steps; its final state. */
static uint32_t run(const struct rvx_copier_job *job, uint64_t step)
{
	set(RVX1_COPIER_SRC, job->src);
	set(RVX1_COPIER_DST, job->dst);
	set(RVX1_COPIER_ROW_BYTES, job->row_bytes);
	set(RVX1_COPIER_ROWS, job->rows);
	set(RVX1_COPIER_SRC_PITCH, job->src_pitch);
	set(RVX1_COPIER_DST_PITCH, job->dst_pitch);
	rvx_engine_store(&copier.engine, RVX1_COPIER_FILL, 4, job->fill ? RVX1_FILL_ON | job->byte : 0);
	rvx_engine_store(&copier.engine, RVX1_ENGINE_CTRL, 4, RVX1_ENGINE_ACK);
	assert_int_equal(
	        rvx_engine_store(&copier.engine, RVX1_ENGINE_CTRL, 4, RVX1_ENGINE_START), RVX_ORDER_START);
	rvx_copier_start(&copier);
	while (rvx_engine_state(&copier.engine) == RVX1_ENGINE_RUNNING)
		rvx_copier_step(&copier, step);
	return rvx_engine_state(&copier.engine);
}

static uint32_t word(uint32_t off)
{
	return (uint32_t)rvx_engine_load(&copier.engine, off, 4);
}

static uint64_t random_below(uint64_t n)
{
	return ((uint64_t)random() << 20 ^ (uint64_t)random()) % n;
}

static uint8_t *place_of(uint64_t va)
{
	if (va >= FAKE_VA_BUS)
		return fake.bus + (va - FAKE_VA_BUS);
	return fake.memory.host + (va - FAKE_VA);
}

/* A half of the bus or the area, so that source and destination differ. */
static uint64_t place(unsigned which)
{
	static const uint64_t places[] = {
	        FAKE_VA + AREA, FAKE_VA + AREA + AREA_BYTES, FAKE_VA_BUS, FAKE_VA_BUS + FAKE_BUS_BYTES};

	return places[which];
}

static void random_jobs_do_what_a_loop_over_bytes_does(void **state)
{
	uint8_t *expected = malloc(AREA_BYTES);

	(void)state;
	assert_non_null(expected);
	srandom(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned from = (unsigned)random_below(4), to = (from + 1 + (unsigned)random_below(3)) % 4;
		struct rvx_copier_job job = {.rows = 1 + random_below(20),
		        .fill = random_below(4) == 0,
		        .byte = (uint8_t)random()};
		job.row_bytes = 1 + random_below(AREA_BYTES / 2 / job.rows);
		job.src_pitch = random_below(AREA_BYTES / 2 / job.rows);
		job.dst_pitch = job.row_bytes + random_below(100);
		if (job.dst_pitch * job.rows > AREA_BYTES / 2)
			job.dst_pitch = job.row_bytes;
		job.src = place(from) + random_below(5000);
		job.dst = place(to) + random_below(5000);
		for (unsigned i = 0; i < 4096; i++)
			place_of(place(from))[random_below(AREA_BYTES)] = (uint8_t)random();
		memcpy(expected, place_of(place(to)), AREA_BYTES);
		for (uint64_t row = 0; row < job.rows; row++)
			for (uint64_t i = 0; i < job.row_bytes; i++)
				expected[job.dst - place(to) + row * job.dst_pitch + i] =
				        job.fill ? job.byte : place_of(job.src)[row * job.src_pitch + i];
		assert_int_equal(run(&job, round % 2 ? SMALL_STEP : 1u << 20), RVX1_ENGINE_DONE);
		assert_memory_equal(expected, place_of(place(to)), AREA_BYTES);
	}
	assert_true(fake.transfers > 0);
	free(expected);
}

static void nothing_to_do_is_done_at_once_without_touching_addresses(void **state)
{
	struct rvx_copier_job no_rows = {.src = 0, .dst = 0, .row_bytes = 8};
	struct rvx_copier_job no_bytes = {.src = 0, .dst = 0, .rows = UINT64_MAX};

	(void)state;
	assert_int_equal(run(&no_rows, 1), RVX1_ENGINE_DONE);
	assert_int_equal(run(&no_bytes, 1), RVX1_ENGINE_DONE);
}

static void expect_fault(const struct rvx_copier_job *job, uint32_t code, uint32_t access, uint64_t address)
{
	assert_int_equal(run(job, 1u << 20), RVX1_ENGINE_FAULTED);
	assert_int_equal(word(RVX1_ENGINE_FAULT), code);
	assert_int_equal(word(RVX1_ENGINE_ACCESS), access);
	assert_true(rvx_engine_load(&copier.engine, RVX1_ENGINE_ADDRESS, 8) == address);
}

static void a_hole_faults_with_its_first_address_after_what_came_before(void **state)
{
	uint64_t hole = FAKE_VA + AREA + (2 << 20);
	struct rvx_copier_job job = {
	        .src = hole - 100, .dst = FAKE_VA_BUS, .row_bytes = 200, .rows = 1, .src_pitch = 0};

	(void)state;
	fake_leaf(&fake, hole, 0, 0, 1);
	memset(place_of(job.src), 0x5A, 100);
	memset(fake.bus, 0, 200);
	expect_fault(&job, RVX1_FAULT_PAGE, RVX1_ACCESS_READ, hole);
	assert_int_equal(fake.bus[99], 0x5A);
	assert_int_equal(fake.bus[100], 0);
	job.dst = hole - 100;
	job.src = FAKE_VA_BUS;
	expect_fault(&job, RVX1_FAULT_PAGE, RVX1_ACCESS_WRITE, hole);
	fake_leaf(&fake, hole, AREA + (2 << 20), FAKE_ALL, 1);
}

static void a_page_without_the_right_faults(void **state)
{
	uint64_t va = FAKE_VA + (48ull << 20);
	struct rvx_copier_job write = {.src = FAKE_VA_BUS, .dst = va + 3, .row_bytes = 1, .rows = 1};
	struct rvx_copier_job read = {.src = va + 4, .dst = FAKE_VA_BUS, .row_bytes = 1, .rows = 1};

	(void)state;
	fake_leaf(&fake, va, 48 << 20, RVX1_PTE_U | RVX1_PTE_R | RVX1_PTE_X, 1);
	expect_fault(&write, RVX1_FAULT_PAGE, RVX1_ACCESS_WRITE, va + 3);
	fake_leaf(&fake, va, 48 << 20, RVX1_PTE_U | RVX1_PTE_X, 1);
	expect_fault(&read, RVX1_FAULT_PAGE, RVX1_ACCESS_READ, va + 4);
	fake_leaf(&fake, va, 48 << 20, RVX1_PTE_R | RVX1_PTE_W, 1);
	expect_fault(&read, RVX1_FAULT_PAGE, RVX1_ACCESS_READ, va + 4);
	fake_leaf(&fake, va, 48 << 20, FAKE_ALL, 1);
}

static void system_memory_that_nothing_answers_faults_with_its_page(void **state)
{
	uint64_t end_va = FAKE_VA_BUS + sizeof(fake.bus);
	struct rvx_copier_job read = {
	        .src = end_va - 5000, .dst = FAKE_VA + AREA, .row_bytes = 5001, .rows = 1};
	struct rvx_copier_job write = {
	        .src = FAKE_VA + AREA, .dst = end_va - 5000, .row_bytes = 5001, .rows = 1};

	(void)state;
	memset(fake.bus + sizeof(fake.bus) - 5000, 0x77, 5000);
	expect_fault(&read, RVX1_FAULT_BUS, RVX1_ACCESS_READ, end_va);
	assert_int_equal(place_of(read.dst)[4999], 0x77);
	expect_fault(&write, RVX1_FAULT_BUS, RVX1_ACCESS_WRITE, end_va);
}

static void a_row_of_everything_faults_where_the_map_ends(void **state)
{
	struct rvx_copier_job job = {
	        .dst = FAKE_VA + (62ull << 20), .row_bytes = UINT64_MAX, .rows = UINT64_MAX, .fill = true};

	(void)state;
	expect_fault(&job, RVX1_FAULT_PAGE, RVX1_ACCESS_WRITE, FAKE_VA + FAKE_BYTES);
}

static void a_step_does_about_its_budget(void **state)
{
	struct rvx_copier_job job = {.dst = FAKE_VA + AREA, .row_bytes = 1, .rows = 1u << 30, .fill = true};

	(void)state;
	run(&(struct rvx_copier_job){0}, 1);
	set(RVX1_COPIER_DST, job.dst);
	set(RVX1_COPIER_ROW_BYTES, 1);
	set(RVX1_COPIER_ROWS, job.rows);
	rvx_engine_store(&copier.engine, RVX1_COPIER_FILL, 4, RVX1_FILL_ON);
	rvx_engine_store(&copier.engine, RVX1_ENGINE_CTRL, 4, RVX1_ENGINE_ACK);
	rvx_engine_store(&copier.engine, RVX1_ENGINE_CTRL, 4, RVX1_ENGINE_START);
	rvx_copier_start(&copier);
	rvx_copier_step(&copier, 65536);
	assert_int_equal(rvx_engine_state(&copier.engine), RVX1_ENGINE_RUNNING);
	assert_in_range(copier.row, 1, 65536);
	rvx_copier_reset(&copier);
	assert_int_equal(rvx_engine_state(&copier.engine), RVX1_ENGINE_IDLE);
}

static void registers_of_a_running_job_are_its_own(void **state)
{
	uint64_t first = FAKE_VA + AREA, second = FAKE_VA + AREA + 0x10000;

	(void)state;
	memset(place_of(first), 0, 0x20000);
	run(&(struct rvx_copier_job){0}, 1);
	set(RVX1_COPIER_DST, first);
	set(RVX1_COPIER_ROW_BYTES, 256);
	set(RVX1_COPIER_ROWS, 1);
	rvx_engine_store(&copier.engine, RVX1_COPIER_FILL, 4, RVX1_FILL_ON | 9);
	rvx_engine_store(&copier.engine, RVX1_ENGINE_CTRL, 4, RVX1_ENGINE_ACK);
	rvx_engine_store(&copier.engine, RVX1_ENGINE_CTRL, 4, RVX1_ENGINE_START);
	rvx_copier_start(&copier);
	rvx_copier_step(&copier, 1);
	set(RVX1_COPIER_DST, second);
	assert_int_equal(
	        rvx_engine_store(&copier.engine, RVX1_ENGINE_CTRL, 4, RVX1_ENGINE_START), RVX_ORDER_NONE);
	rvx_copier_step(&copier, 1u << 20);
	assert_int_equal(rvx_engine_state(&copier.engine), RVX1_ENGINE_DONE);
	assert_int_equal(place_of(first)[255], 9);
	assert_int_equal(place_of(second)[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(random_jobs_do_what_a_loop_over_bytes_does),
	        cmocka_unit_test(nothing_to_do_is_done_at_once_without_touching_addresses),
	        cmocka_unit_test(a_hole_faults_with_its_first_address_after_what_came_before),
	        cmocka_unit_test(a_page_without_the_right_faults),
	        cmocka_unit_test(system_memory_that_nothing_answers_faults_with_its_page),
	        cmocka_unit_test(a_row_of_everything_faults_where_the_map_ends),
	        cmocka_unit_test(a_step_does_about_its_budget),
	        cmocka_unit_test(registers_of_a_running_job_are_its_own),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
