/* SPDX-License-Identifier: MIT */
/* An agent without host memory for a moment: nobody waits for what it could not say or do. */
#include <string.h>

#include "agent_inside.h"
#include "allocs.h"

enum { BYTES = 4096, MOST_ALLOCATIONS = 12 };

static const char *const plain[INSIDE_DRIVERS] = {"", ""};

static void a_job_ends_without_memory(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	test_allocs_fail_at(1);
	talk_end(&t);
	inside_await(in, 0, POLLED_RELEASE, 1);
	test_allocs_fail_at(0);
	inside_end(in);
}

/* Whichever allocation fails between the end of the work and the message. Whether one did. */
static bool complete_without(struct inside *in, uint64_t allocation)
{
	struct talk t;
	uint32_t from, to;
	bool failed;

	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	from = talk_alloc(&t, 0, BYTES);
	to = talk_alloc(&t, 0, BYTES);
	polled_gate(in->drivers[0], 0);
	talk_copy(&t, 0, 1, to, from, BYTES);
	inside_await(in, 0, POLLED_SUBMIT, (unsigned)allocation);
	test_allocs_fail_at(allocation);
	polled_gate(in->drivers[0], UINT64_MAX);
	talk_await_end(&t, 0, 1);
	failed = test_allocs_failed();
	test_allocs_fail_at(0);
	talk_end(&t);
	inside_await(in, 0, POLLED_RELEASE, (unsigned)allocation);
	return failed;
}

static void a_value_that_cannot_be_told_ends_its_device_or_job(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	uint64_t allocation = 1;

	(void)state;
	while (complete_without(in, allocation))
		assert_true(++allocation < MOST_ALLOCATIONS);
	inside_end(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_job_ends_without_memory),
	        cmocka_unit_test(a_value_that_cannot_be_told_ends_its_device_or_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
