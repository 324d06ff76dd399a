/* SPDX-License-Identifier: MIT */
/* In which order a controller learns of values. */
#include <time.h>

#include "agent_inside.h"

static const char *const plain[INSIDE_DRIVERS] = {"", ""};

static void nap_ms(unsigned ms)
{
	const struct timespec moment = {.tv_nsec = 1000000L * ms};

	(void)nanosleep(&moment, NULL);
}

/* P1's value waits for P0's; who says that P0's is reached stands still when both are. */
static void a_value_is_not_told_before_those_that_it_waited_for(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	talk_open(&t, "P1");
	polled_gate(in->drivers[0], 0);
	talk_empty(&t, 0, 1);
	inside_await(in, 0, POLLED_SUBMIT, 1);
	talk_follow(&t, 1, 1, 0, 1);
	inside_await(in, 1, POLLED_SUBMIT, 1);
	inside_stop(in, 0, POLLED_SLEEP);
	inside_await_stopped(in, 0);
	polled_gate(in->drivers[0], UINT64_MAX);
	while (polled_word(in->drivers[1]) < 1)
		nap_ms(1);
	/* For a thread that does not wait to say it. */
	nap_ms(300);
	inside_go(in, 0);
	talk_await_value(&t, 1, 1);
	assert_true(t.reached[0] == 1);
	talk_end(&t);
	inside_end(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_value_is_not_told_before_those_that_it_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
