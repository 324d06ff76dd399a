/* SPDX-License-Identifier: MIT */
/* What a device that is open and has nothing to do costs: how often this process and the model's wake up. A
 * slow or busy machine only wakes them less often, so that an upper bound holds on each. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "system_device.h"

/* A second: the naps of a device at rest, 10 ms and 100 ms (manual, section 5.2; docs/architecture.md, "The
 * word"), and room for what else a process has, as ThreadSanitizer's own thread. The best of some seconds
 * counts: rest begins with the second. */
enum { SECONDS = 20, MOST_OF_MODEL = 150, MOST_OF_DRIVER = 30 };

/* Times that a thread went to sleep. */
static uint64_t thread_sleeps(pid_t process, const char *thread)
{
	char path[300], line[128];
	uint64_t count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)process, thread);
	file = fopen(path, "re");
	if (!file)
		return 0; /* it ended */
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &count) == 1)
			break;
	fclose(file);
	return count;
}

static uint64_t process_sleeps(pid_t process)
{
	char path[64];
	uint64_t sum = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.')
			sum += thread_sleeps(process, e->d_name);
	closedir(dir);
	return sum;
}

static uint64_t now_ns(void)
{
	struct timespec at;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &at), 0);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* How often both wake up in a second, for about that long. */
static void count_second(pid_t model, uint64_t *of_model, uint64_t *of_driver)
{
	uint64_t start = now_ns(), m = process_sleeps(model), d = process_sleeps(getpid()), took;

	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	m = process_sleeps(model) - m;
	d = process_sleeps(getpid()) - d;
	took = now_ns() - start;
	*of_model = m * 1000000000 / took;
	*of_driver = d * 1000000000 / took;
}

static void stay_idle(const char *text)
{
	struct rig_device *device = sys_open(text);
	uint64_t of_model, of_driver;
	unsigned i = 0;
	pid_t model;

	assert_int_equal(sys_find("rvx1-model", &model, 1), 1);
	sys_device_works(device);
	do
		count_second(model, &of_model, &of_driver);
	while (++i < SECONDS && (of_model > MOST_OF_MODEL || of_driver > MOST_OF_DRIVER));
	print_message("%s: the model wakes %" PRIu64 " times a second, the driver's process %" PRIu64 "\n",
	        text, of_model, of_driver);
	assert_in_range(of_model, 0, MOST_OF_MODEL);
	assert_in_range(of_driver, 0, MOST_OF_DRIVER);
	sys_device_works(device);
	sys_close(device);
}

static void an_idle_device_wakes_30_times_a_second_at_most_and_its_model_150_times(void **state)
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
	        cmocka_unit_test(an_idle_device_wakes_30_times_a_second_at_most_and_its_model_150_times),
	        cmocka_unit_test(the_same_with_completion_by_store),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
