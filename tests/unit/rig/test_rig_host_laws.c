/* SPDX-License-Identifier: MIT */
/* The device of host memory against the laws of the contract (tests/contract). */
#include <stdio.h>
#include <string.h>
#include "test.h"

#define LINE_BYTES 1024

static void the_host_device_keeps_the_laws_of_drivers(void **state)
{
	FILE *laws = popen(RIG_CONFORM " module:" HOST_MODULE " 2>&1", "r");
	char line[LINE_BYTES], last[LINE_BYTES] = "";
	unsigned passed = 0, failed = 0;

	(void)state;
	assert_non_null(laws);
	while (fgets(line, sizeof(line), laws)) {
		if (!strncmp(line, "FAILED", strlen("FAILED")))
			print_message("%s", line);
		(void)strcpy(last, line);
	}
	assert_int_equal(pclose(laws), 0);
	assert_int_equal(sscanf(last, "%u passed, %u failed", &passed, &failed), 2);
	assert_int_equal(failed, 0);
	/* Those of copies, memory, values, loss and life; the rest needs launches or waits in queues. */
	assert_true(passed >= 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_host_device_keeps_the_laws_of_drivers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
