/* SPDX-License-Identifier: MIT */
/*
 * A timed value with the k-th access of the function, or the k-th allocation, failing, for every k until all
 * goes well: each step answers an error or works, and nothing is left behind.
 */
#include "test.h"
#include <string.h>

#include "allocs.h"
#include "counters.h"
#include "passive.h"

#define HZ   62500000u
#define MOST 2000u

static struct passive t;
static struct rig_launch function;

/* Runs the packets of queue 0 as far as times need it. */
static void execute(void)
{
	const uint64_t counters[RVX1_COUNTERS] = {passive_clock(&t), passive_clock(&t), 1, 2, 3, 4};
	uint64_t ring, clock, i;
	struct rvx1_packet p;

	memcpy(&ring, t.regs + RVX1_QUEUE_BASE + RVX1_QUEUE_RING, sizeof(ring));
	for (i = 0; i < passive_written(&t, 0); i++) {
		memcpy(&p, t.memory + ring + i * RVX1_PACKET_BYTES, sizeof(p));
		clock = i < 2 ? counters[0] : passive_clock(&t);
		if (p.opcode == RVX1_OP_STAMP)
			memcpy(t.memory + p.u.word.address, &clock, sizeof(clock));
		if (p.opcode == RVX1_OP_COUNTERS)
			memcpy(t.memory + p.u.word.address, counters, sizeof(counters));
		if (p.opcode == RVX1_OP_RELEASE)
			passive_complete(&t, p.u.word.value);
	}
}

/* Whether every call worked. */
static bool timed_value(void)
{
	static uint8_t scratch[RIG_SCRATCH] __attribute__((aligned(16)));
	const struct rig_block block = {.groups = {1, 1, 1}, .threads = {1, 1, 1}};
	const struct rig_run run = {.args = &block, .args_bytes = sizeof(block)};
	struct rig_part part = {.kind = RIG_LAUNCH, .u.launch.launch = (uintptr_t)&function};
	struct rig_times times = {7, 7};
	const char *failure = NULL;
	uint64_t row[7] = {0};

	assert_int_equal(t.dev->hot->room(t.device, &part, 1, 0, &run, scratch), RIG_FITS);
	if (t.dev->hot->submit(t.device, 1, &part, 1, NULL, 0, &run, scratch, &times, &failure) !=
	        RIG_COMMITTED) {
		assert_non_null(failure);
		return false;
	}
	execute();
	rig_dev_progress(t.dev);
	if (rig_word_load(t.word) < 1)
		return false;
	if (t.dev->hot->settle(t.device, 1, &failure) != RIG_OK) {
		assert_non_null(failure);
		return false;
	}
	assert_true(times.start && times.start <= times.end);
	assert_int_equal(t.dev->hot->measures(t.device, 1, row, &failure), RIG_OK);
	assert_int_equal(row[0], 1);
	assert_int_equal(t.dev->hot->measures(t.device, 1, NULL, &failure), RIG_OK);
	return true;
}

static bool life(const struct passive_options *options, uint64_t fail_at)
{
	bool all = !passive_make(&t, options, fail_at) && timed_value();

	if (t.device && fail_at)
		all = all && !rig_dev_check_fault(t.dev);
	passive_close(&t);
	return all;
}

static void a_failing_access_fails_cleanly(void **state)
{
	const struct passive_options options = {.clock_hz = HZ};
	struct test_counts before;
	uint64_t k = 0;
	bool all = false;

	(void)state;
	assert_true(life(&options, 0));
	test_counts_take(&before);
	while (!all && k++ < MOST) {
		all = life(&options, k);
		test_counts_same(&before);
	}
	assert_true(k > 20 && k < MOST);
}

static void a_failing_allocation_fails_cleanly(void **state)
{
	struct passive_options options = {.clock_hz = HZ};
	struct test_counts before;
	bool all = false;

	(void)state;
	assert_true(life(&options, 0));
	test_counts_take(&before);
	while (!all && options.fail_allocation++ < MOST) {
		all = life(&options, 0);
		test_counts_same(&before);
	}
	assert_true(options.fail_allocation > 20 && options.fail_allocation < MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_failing_access_fails_cleanly),
	        cmocka_unit_test(a_failing_allocation_fails_cleanly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
