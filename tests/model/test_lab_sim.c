/* SPDX-License-Identifier: MIT */
/* What the lab counts on the kernel's transports (docs/lab.md), by the same program on vfio-user. */
#include <stdio.h>
#include <stdlib.h>

#include "system.h"

static void check(const char *arguments)
{
	struct sys_result result;
	char command[512];

	snprintf(command, sizeof(command), "%s %s", LAB_DEVICE, arguments);
	sys_run(&result, command);
	sys_assert_done(&result);
}

static void submit_and_poll_send_no_message(void **state)
{
	(void)state;
	check("quiet sim");
	check("quiet sim:completion=store");
}

static void a_gibibyte_of_arena_takes_few_messages(void **state)
{
	(void)state;
	check("arena sim");
	check("arena sim 2");
}

static void fifty_opens_leave_nothing(void **state)
{
	(void)state;
	check("cycle sim 50");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(submit_and_poll_send_no_message),
	        cmocka_unit_test(a_gibibyte_of_arena_takes_few_messages),
	        cmocka_unit_test(fifty_opens_leave_nothing),
	};

	setenv("RIG_LAB_IMAGES", "k", 1);
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
