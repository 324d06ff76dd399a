/* SPDX-License-Identifier: MIT */
#include "rig_help.h"

static void open_and_close_stop_and_release_the_handle(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);

	(void)state;
	assert_string_equal(rig_name(b.d), "P0");
	assert_false(rig_lost(b.d, NULL));
	help_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(open_and_close_stop_and_release_the_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
