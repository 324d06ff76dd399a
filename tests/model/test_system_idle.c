/* SPDX-License-Identifier: MIT */
/* What a device that is open and has nothing to do costs: the processor time of this process and of the
 * model's, as a part of the time that passes. The best of a few intervals counts, because other work of the
 * machine only adds. */
#include <sys/types.h>
#include <time.h>

#include "system_device.h"

enum { INTERVALS = 10, INTERVAL_S = 1, MOST_PERCENT = 3 };

static uint64_t read_clock(clockid_t clock)
{
	struct timespec at;

	assert_int_equal(clock_gettime(clock, &at), 0);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static uint64_t cpu_ns(clockid_t model)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID) + read_clock(model);
}

/* Processor time per million of the interval's length. */
static uint64_t idle_ppm(clockid_t model)
{
	uint64_t cpu = cpu_ns(model), wall = read_clock(CLOCK_MONOTONIC);

	nanosleep(&(struct timespec){.tv_sec = INTERVAL_S}, NULL);
	cpu = cpu_ns(model) - cpu;
	return cpu * 1000000 / (read_clock(CLOCK_MONOTONIC) - wall);
}

static void stay_idle(const char *text)
{
	struct rig_device *device;
	uint64_t best = UINT64_MAX;
	clockid_t clock;
	pid_t model;
	unsigned i;

	if (SYS_TSAN)
		skip(); /* its own threads use the processor */
	device = sys_open(text);
	assert_int_equal(sys_find("rvx1-model", &model, 1), 1);
	assert_int_equal(clock_getcpuclockid(model, &clock), 0);
	sys_device_works(device);
	for (i = 0; i < INTERVALS && best > MOST_PERCENT * 10000; i++) {
		uint64_t ppm = idle_ppm(clock);

		if (ppm < best)
			best = ppm;
	}
	print_message("%s: idle at %llu.%02llu %% of a core\n", text, (unsigned long long)best / 10000,
	        (unsigned long long)best / 100 % 100);
	if (best > MOST_PERCENT * 10000)
		fail_msg("%s: idle at %llu ppm of a core", text, (unsigned long long)best);
	sys_device_works(device);
	sys_close(device);
}

static void an_idle_device_and_its_model_use_at_most_3_percent_of_a_core(void **state)
{
	(void)state;
	stay_idle("sim");
}

static void the_same_with_completion_by_store(void **state)
{
	(void)state;
	stay_idle("sim:completion=store");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_idle_device_and_its_model_use_at_most_3_percent_of_a_core),
	        cmocka_unit_test(the_same_with_completion_by_store),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
