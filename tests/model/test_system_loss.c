/* SPDX-License-Identifier: MIT */
/* Kernels and boards that fail while they run, through rigctl: status 1 and one line with the reason, nothing
 * is written, no process stays, and the device works again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

enum { LOST = 1, NOT_OPENED = 3 };

struct loss {
	const char *kernel;     /* function and image */
	const char *options;    /* of rigctl run */
	const char *why, *also; /* both are in the line */
};

/* What each bad kernel says in its source. */
static const struct loss kernels[] = {
        {"read_null", "", "page fault: read of 0x0 ", "kernel read_null+0x"},
        {"write_outside", "", "page fault: write of 0x200000000010 ", "kernel write_outside+0x"},
        {"garbage", "", "illegal instruction 0xffffffff", "kernel garbage"},
        {"recurse", "", "page fault: write", "kernel recurse"},
        {"barrier_short", " --group 2", "barrier", "kernel barrier_short"},
        {"trap", "", "pc 0x", "kernel trap+0x"},
        {"misaligned", "", "misaligned", "kernel misaligned"},
};

enum { KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

static void lose(const char *device, const struct loss *loss)
{
	char command[512], before[SYS_TEXT];
	struct sys_result result;

	snprintf(before, sizeof(before), "%s", sys_names());
	snprintf(command, sizeof(command), "rigctl run %s k/%s.elf %s%s", device, loss->kernel, loss->kernel,
	        loss->options);
	sys_run(&result, command);
	sys_assert_failed(&result, LOST, loss->why);
	if (!strstr(result.err, "lost") || !strstr(result.err, loss->also))
		fail_msg("\"lost\" and \"%s\" are not in: %s", loss->also, result.err);
	assert_string_equal(sys_names(), before);
}

static void a_kernel_that_faults_says_how_where_and_which(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < KERNELS; i++) {
		lose("sim", &kernels[i]);
		lose("sim:completion=store", &kernels[i]);
		sys_assert_no_process();
		sys_assert_works("sim");
	}
}

static void a_fault_in_one_thread_of_many_names_it(void **state)
{
	static const struct loss loss = {
	        "read_null", " --grid 3,2 --group 5,5", "page fault: read of 0x0 ", "thread"};

	(void)state;
	lose("sim", &loss);
	sys_assert_works("sim");
}

static void a_kernel_that_never_ends_is_lost_after_the_hang_bound(void **state)
{
	static const struct loss loss = {
	        "loop_forever", " --grid 2 --group 3", "no progress for 1000 ms", "lost"};

	(void)state;
	lose("sim:hang=1s", &loss);
	lose("sim:hang=1s,completion=store", &loss);
	sys_assert_no_process();
	sys_assert_works("sim");
}

/* The same process of the board serves the next client after each loss. */
static void a_served_board_works_after_every_bad_kernel(void **state)
{
	static const struct loss loop = {"loop_forever", "", "no progress for 1000 ms", "lost"};
	struct sys_process model;
	char device[256];
	unsigned i;

	(void)state;
	sys_serve(&model, "");
	snprintf(device, sizeof(device), "%s,hang=1s", sys_served());
	for (i = 0; i < KERNELS; i++) {
		lose(sys_served(), &kernels[i]);
		sys_assert_works(sys_served());
	}
	lose(device, &loop);
	sys_assert_works(sys_served());
	sys_serve_end(&model);
}

/* ---- Boards that misbehave ---- */

struct misbehaviour {
	const char *options; /* of sim */
	const char *why;
};

static void lose_to(const struct misbehaviour *m)
{
	char command[512], before[SYS_TEXT];
	struct sys_result result;

	snprintf(before, sizeof(before), "%s", sys_names());
	snprintf(
	        command, sizeof(command), "rigctl run sim:%s k/globals.elf globals out:o.bin,64", m->options);
	sys_run(&result, command);
	sys_assert_failed(&result, LOST, m->why);
	if (!strstr(result.err, "lost"))
		fail_msg("\"lost\" is not in: %s", result.err);
	assert_string_equal(sys_names(), before);
	sys_assert_no_process();
}

static void a_board_that_dies_halts_hangs_or_vanishes_is_lost_with_the_reason(void **state)
{
	static const struct misbehaviour rows[] = {
	        {"fault=die", "hung up"},
	        {"fault=die=2", "hung up"},
	        {"fault=die=3", "hung up"},
	        {"fault=die=3,completion=store", "hung up"},
	        {"fault=halt", "halted"},
	        {"fault=halt=2", "halted"},
	        {"fault=halt=3", "halted"},
	        {"fault=halt=2,completion=store", "halted"},
	        {"fault=hang,hang=1s", "no progress for 1000 ms"},
	        {"fault=hang,hang=1s,completion=store", "no progress for 1000 ms"},
	        {"fault=bus", "system memory did not answer"},
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		lose_to(&rows[i]);
	sys_assert_works("sim");
}

static void a_board_that_leaves_the_bus_during_a_kernel_is_lost_as_gone(void **state)
{
	char command[256];
	struct sys_result result;

	(void)state;
	/* Later than any boot takes, sooner than the hang bound: the kernel never ends. */
	snprintf(command, sizeof(command), "rigctl run sim:fault=gone=2000 k/loop_forever.elf loop_forever");
	sys_run(&result, command);
	sys_assert_failed(&result, LOST, "vendor id reads 0xffff");
	sys_assert_no_process();
	sys_assert_works("sim");
}

static void a_board_that_is_late_or_slow_or_loses_interrupts_works(void **state)
{
	(void)state;
	sys_assert_works("sim:fault=late=50");
	sys_assert_works("sim:fault=late=50,completion=store");
	sys_assert_works("sim:fault=slow-boot=200");
	sys_assert_works("sim:fault=lose-irq");
	sys_assert_works("sim:fault=lose-irq=2");
	sys_assert_no_process();
}

static void a_board_that_refuses_its_reset_is_not_opened(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl info sim:fault=refuse-reset");
	sys_assert_failed(&result, NOT_OPENED, "reset");
	sys_assert_no_process();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_kernel_that_faults_says_how_where_and_which),
	        cmocka_unit_test(a_fault_in_one_thread_of_many_names_it),
	        cmocka_unit_test(a_kernel_that_never_ends_is_lost_after_the_hang_bound),
	        cmocka_unit_test(a_served_board_works_after_every_bad_kernel),
	        cmocka_unit_test(a_board_that_dies_halts_hangs_or_vanishes_is_lost_with_the_reason),
	        cmocka_unit_test(a_board_that_leaves_the_bus_during_a_kernel_is_lost_as_gone),
	        cmocka_unit_test(a_board_that_is_late_or_slow_or_loses_interrupts_works),
	        cmocka_unit_test(a_board_that_refuses_its_reset_is_not_opened),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
