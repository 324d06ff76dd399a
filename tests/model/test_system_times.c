/* SPDX-License-Identifier: MIT */
/*
 * Times and measures of real work, against what the host sees of it: the work waits for a word, so that it
 * starts after the host raised that, and is over when the host sees its value. The board's clock has another
 * frequency than the host's, drifts and jumps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw_sim.h"
#include "rvx1/packet.h"
#include "system.h"

#define COMPUTE  0u
#define COPIER   1u
#define MS       UINT64_C(1000000)
#define GATE     (rig_words() + 11)
#define BYTES    4096u
#define COUNTERS 4u
#define ROW      (3u + COUNTERS)

/* Of every time: what the driver says of the worst so far. */
static uint64_t error_of(struct raw *r)
{
	struct rig_vfio_stats stats;

	raw_stats(r, &stats);
	return stats.times_error_ns;
}

static void settle(struct raw *r, uint64_t value)
{
	const char *failure = "";

	if (r->hot->settle(r->facts.edge, value, &failure) != RIG_OK)
		fail_msg("settle of %llu: %s", (unsigned long long)value, failure);
}

static void measure(struct raw *r, uint64_t value, uint64_t *out)
{
	const char *failure = "";

	if (r->hot->measures(r->facts.edge, value, out, &failure) != RIG_OK)
		fail_msg("measures of %llu: %s", (unsigned long long)value, failure);
}

/* spin.k.c */
struct spin {
	uint64_t number, loops, add;
};

static struct raw r;
static struct raw_memory memory;
static struct raw_work w;

static void open_with(const char *text)
{
	raw_open(&r, text);
	raw_kernel(&r, "spin");
	memory = raw_memory(&r, BYTES);
	w = (struct raw_work){0};
	__atomic_store_n((uint64_t *)(void *)GATE, 0, __ATOMIC_RELEASE);
}

static int open_plain(void **state)
{
	(void)state;
	open_with("sim");
	return 0;
}

static int close_it(void **state)
{
	(void)state;
	raw_close(&r);
	return 0;
}

static void launch(uint32_t queue, uint64_t loops)
{
	const struct spin params = {memory.address, loops, 1};

	raw_launch(&r, &w, queue, &params, sizeof(params));
}

/* One value that the host lets start, and sees the end of. */
static void one_gated_value(uint64_t loops)
{
	const struct rig_wait wait = {.word = GATE, .value = r.last + 1};
	struct rig_times times = {1, 1};
	uint64_t opened, seen, value, error;

	w.n = 0;
	w.waits = &wait;
	w.nwaits = 1;
	launch(COMPUTE, loops);
	raw_copy(&w, COPIER, &memory, 1024, &memory, 2048, 512);
	value = raw_submit(&r, &w, &times);
	assert_true(times.start == 0 && times.end == 0);
	opened = rig_now_ns();
	__atomic_store_n((uint64_t *)(void *)GATE, value, __ATOMIC_RELEASE);
	raw_wait(&r, value);
	seen = rig_now_ns();
	settle(&r, value);
	error = error_of(&r);
	if (times.start + error < opened || times.end > seen + error || times.start > times.end)
		fail_msg("the work ran from %lld to %lld ns after it was let, was seen complete at %lld, and "
		         "times "
		         "are within %llu",
		        (long long)(times.start - opened), (long long)(times.end - opened),
		        (long long)(seen - opened), (unsigned long long)error);
}

static void times_lie_between_what_the_host_sees_within_the_error_whatever_the_clock_does(void **state)
{
	static const char *const clocks[] = {"sim", "sim:clock-hz=1000000,clock-drift=-100",
	        "sim:clock-hz=4000000000,clock-drift=100", "sim:clock-step=3000/7",
	        "sim:clock-step=1000000/50", "sim:completion=store,clock-step=50/1"};
	unsigned i, n;

	(void)state;
	for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		open_with(clocks[i]);
		for (n = 0; n < 30; n++)
			one_gated_value(n * n * 200);
		raw_close(&r);
	}
}

/* Without jumps a reading beside the work is what the error comes from: some microseconds here, and a hundred
   times that is for machines that are busy. */
static void the_error_without_jumps_is_that_of_reading_the_clock(void **state)
{
	uint64_t least = UINT64_MAX;
	unsigned n;

	(void)state;
	for (n = 0; n < 20; n++) {
		open_with("sim");
		one_gated_value(1000);
		one_gated_value(1000);
		if (error_of(&r) < least)
			least = error_of(&r);
		raw_close(&r);
	}
	assert_true(least < 20 * MS);
}

/* Pipelined values, of which the last is settled first. */
static void values_follow_each_other_without_overlap_also_when_the_last_is_settled_first(void **state)
{
	enum { VALUES = 3000 };
	struct rig_times *times = calloc(VALUES, sizeof(*times)), again;
	uint64_t i, before = rig_now_ns(), after;

	(void)state;
	assert_non_null(times);
	for (i = 0; i < VALUES; i++) {
		w.n = 0;
		if (i % 3)
			launch(COMPUTE, i % 500);
		if (i % 3 != 1)
			raw_copy(&w, COPIER, &memory, 1024, &memory, 2048, 512);
		raw_submit(&r, &w, &times[i]);
	}
	raw_wait(&r, r.last);
	settle(&r, r.last);
	after = rig_now_ns();
	for (i = 0; i < VALUES; i++) {
		/* The first may find the queues full. */
		if (!times[i].start && !times[i].end && i < 100)
			continue;
		assert_true(times[i].start <= times[i].end);
		assert_true(times[i].start + error_of(&r) >= before && times[i].end <= after + error_of(&r));
		if (i)
			assert_true(times[i].start >= times[i - 1].end);
	}
	again = times[7];
	settle(&r, 8);
	assert_memory_equal(&again, &times[7], sizeof(again));
	free(times);
}

/* Beside the poller, which reads the clock in its own time. */
static void each_of_many_values_is_settled_at_once(void **state)
{
	uint64_t i, end = 0;

	(void)state;
	for (i = 0; i < 4000; i++) {
		struct rig_times times;

		w.n = 0;
		raw_copy(&w, COPIER, &memory, 1024, &memory, 2048, 512);
		raw_wait(&r, raw_submit(&r, &w, &times));
		settle(&r, r.last);
		assert_true(times.start >= end && times.end >= times.start);
		end = times.end;
	}
}

static void settle_never_waits_for_later_work(void **state)
{
	struct rig_times times[2];
	uint64_t first;

	(void)state;
	raw_copy(&w, COPIER, &memory, 1024, &memory, 2048, 512);
	first = raw_submit(&r, &w, &times[0]);
	w.n = 0;
	raw_packet(&w, COMPUTE, RVX1_OP_WAIT, raw_board_address(&memory), 1);
	raw_submit(&r, &w, &times[1]);
	raw_wait(&r, first);
	settle(&r, first);
	assert_true(times[0].end != 0);
	assert_true(times[1].start == 0 && times[1].end == 0);
	__atomic_store_n(memory.host, 1, __ATOMIC_RELEASE);
	raw_wait(&r, r.last);
	settle(&r, r.last);
	assert_true(times[1].start >= times[0].end);
}

static void each_launch_has_a_row_in_part_order_inside_the_value_and_counts_what_it_did(void **state)
{
	static const uint64_t loops[] = {50, 4000, 0, 900};
	enum { LAUNCHES = 4 };
	uint64_t rows[LAUNCHES * ROW + 1], value, i;
	struct rig_times times;

	(void)state;
	raw_close(&r);
	open_with("sim:queues=8,clock-drift=-77");
	assert_int_equal(r.facts.ncounters, COUNTERS);
	assert_string_equal(r.facts.counters[1].name, "instructions");
	for (i = 0; i < LAUNCHES; i++) {
		launch(2 * (uint32_t)(LAUNCHES - 1 - i), loops[i]);
		raw_copy(&w, COPIER, &memory, 1024, &memory, 2048, 512);
	}
	value = raw_submit(&r, &w, &times);
	raw_wait(&r, value);
	memset(rows, 0, sizeof(rows));
	rows[LAUNCHES * ROW] = 4711;
	measure(&r, value, rows);
	settle(&r, value);
	assert_int_equal(rows[LAUNCHES * ROW], 4711);
	for (i = 0; i < LAUNCHES; i++) {
		const uint64_t *row = rows + i * ROW;

		assert_int_equal(row[0], 1);
		assert_true(row[1] >= times.start && row[1] <= row[2] && row[2] <= times.end);
		assert_true(row[3] >= row[4]); /* cycles, instructions */
		assert_true(row[4] >= 2 * loops[i] && row[4] <= 8 * loops[i] + 100);
		assert_true(row[5] >= 8 && row[5] < 4096); /* read */
		assert_true(row[6] >= 8 && row[6] < 4096); /* written */
	}
	measure(&r, value, NULL);
	memset(rows, 0, sizeof(rows));
	measure(&r, value, rows);
	assert_int_equal(rows[0], 0);
}

static void measures_are_kept_until_they_are_given_up_and_in_any_order(void **state)
{
	enum { VALUES = 600 };
	static struct rig_times times[VALUES];
	uint64_t row[ROW], i, dropped = 0;

	(void)state;
	for (i = 0; i < VALUES; i++) {
		w.n = 0;
		launch(COMPUTE, 10);
		raw_submit(&r, &w, &times[i]);
		if (i % 5 == 0)
			measure(&r, r.last, NULL); /* before it is complete */
	}
	raw_wait(&r, r.last);
	for (i = VALUES; i-- > 0;) {
		memset(row, 0, sizeof(row));
		measure(&r, i + 1, row);
		if (i % 5 == 0)
			assert_int_equal(row[0], 0);
		dropped += !row[0];
		if (row[0])
			assert_true(row[1] >= times[i].start && row[2] <= times[i].end);
		measure(&r, i + 1, NULL);
	}
	assert_in_range(dropped, VALUES / 5, VALUES / 5 + 100);
}

/* More rounds than rows are kept, each given up. */
static void rows_come_back(void **state)
{
	enum { VALUES = 40000 };
	static struct rig_times times;
	uint64_t row[ROW], i;

	(void)state;
	for (i = 0; i < VALUES; i++) {
		w.n = 0;
		launch(COMPUTE, 1);
		launch(COMPUTE, 1);
		if (i % 64 == 63)
			raw_wait(&r, r.last);
		raw_submit(&r, &w, &times);
		measure(&r, r.last, NULL);
	}
	w.n = 0;
	launch(COMPUTE, 1);
	raw_submit(&r, &w, &times);
	raw_wait(&r, r.last);
	memset(row, 0, sizeof(row));
	measure(&r, r.last, row);
	assert_int_equal(row[0], 1);
}

static void without_times_a_submission_has_no_packet_more(void **state)
{
	struct rig_times times;
	uint64_t i;

	(void)state;
	for (i = 0; i < 200; i++) {
		w.n = 0;
		raw_copy(&w, COPIER, &memory, 1024, &memory, 2048, 512);
		raw_submit(&r, &w, i % 20 == 7 ? &times : NULL);
		raw_wait(&r, r.last);
		settle(&r, r.last);
	}
	assert_true(times.end > times.start);
}

static void a_corrupt_stamp_loses_the_device_and_says_of_which_value(void **state)
{
	unsigned n;

	(void)state;
	for (n = 1; n <= 2; n++) { /* the start's, the end's */
		struct rig_times times;
		const char *failure = "";
		char text[64];

		snprintf(text, sizeof(text), "sim:fault=corrupt-stamp=%u", n);
		open_with(text);
		raw_copy(&w, COPIER, &memory, 1024, &memory, 2048, 512);
		raw_wait(&r, raw_submit(&r, &w, &times));
		assert_int_equal(r.hot->settle(r.facts.edge, 1, &failure), RIG_FAILED);
		assert_non_null(strstr(failure, "value 1"));
		assert_true(times.start == 0 && times.end == 0);
		raw_close(&r);
	}
}

static void a_dma_to_an_unmapped_address_is_refused_and_reported_as_that(void **state)
{
	const char *fault;
	uint64_t value;

	(void)state;
	open_with("sim:fault=dma-unmapped=2");
	raw_copy(&w, COPIER, &memory, 1024, &memory, 2048, 512);
	raw_wait(&r, raw_submit(&r, &w, NULL));
	value = raw_submit(&r, &w, NULL);
	fault = raw_wait_fault(&r, value);
	assert_non_null(fault);
	assert_non_null(strstr(fault, "system memory did not answer: write of 0x"));
	assert_non_null(strstr(fault, "value 2"));
	raw_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(
	                times_lie_between_what_the_host_sees_within_the_error_whatever_the_clock_does),
	        cmocka_unit_test(the_error_without_jumps_is_that_of_reading_the_clock),
	        cmocka_unit_test_setup_teardown(
	                values_follow_each_other_without_overlap_also_when_the_last_is_settled_first,
	                open_plain, close_it),
	        cmocka_unit_test_setup_teardown(each_of_many_values_is_settled_at_once, open_plain, close_it),
	        cmocka_unit_test_setup_teardown(settle_never_waits_for_later_work, open_plain, close_it),
	        cmocka_unit_test_setup_teardown(
	                each_launch_has_a_row_in_part_order_inside_the_value_and_counts_what_it_did,
	                open_plain, close_it),
	        cmocka_unit_test_setup_teardown(
	                measures_are_kept_until_they_are_given_up_and_in_any_order, open_plain, close_it),
	        cmocka_unit_test_setup_teardown(rows_come_back, open_plain, close_it),
	        cmocka_unit_test_setup_teardown(
	                without_times_a_submission_has_no_packet_more, open_plain, close_it),
	        cmocka_unit_test(a_corrupt_stamp_loses_the_device_and_says_of_which_value),
	        cmocka_unit_test(a_dma_to_an_unmapped_address_is_refused_and_reported_as_that),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
