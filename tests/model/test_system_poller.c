/* SPDX-License-Identifier: MIT */
/* Devices whose poller has a CPU of its own, and losses that nobody waits for, with what is still held
 * then. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "counters.h"
#include "system_device.h"

enum { PAGE = 4096, ROUNDS = 3 };

static const char *const completions[] = {"sim", "sim:completion=store"};

enum { COMPLETIONS = sizeof(completions) / sizeof(completions[0]) };

/* ---- poller=CPU ---- */

static void work_on(const char *format, int cpu)
{
	char text[64];
	struct rig_device *device;

	snprintf(text, sizeof(text), format, cpu);
	device = sys_open(text);
	sys_device_works(device);
	sys_device_works(device);
	sys_close(device);
}

static void a_poller_on_a_cpu_runs_and_ends_with_its_device(void **state)
{
	struct test_counts before;

	(void)state;
	work_on("sim:poller=%d", sched_getcpu());
	test_counts_take(&before);
	work_on("sim:poller=%d", sched_getcpu());
	work_on("sim:completion=store,poller=%d", sched_getcpu());
	test_counts_same(&before);
	sys_assert_no_process();
}

static void a_poller_on_a_cpu_that_does_not_exist_is_refused_and_nothing_stays(void **state)
{
	char text[64];
	struct rig_device *device;

	(void)state;
	snprintf(text, sizeof(text), "sim:poller=%d", CPU_SETSIZE - 1);
	assert_int_equal(sys_try_open(text, &device), -EINVAL);
	assert_non_null(strstr(rig_error(), "is there such a CPU?"));
	sys_assert_no_process();
}

/* ---- Losses that nobody waits for ---- */

static void submit_fault(struct rig_device *device, struct rig_point *point)
{
	struct rig_image *image = sys_image(device, "read_null");
	struct sys_launch launch;

	sys_launch_make(&launch, image, "read_null", &(struct sys_params){.device = device}, 1, 1);
	*point = sys_launch_submit(&launch);
	sys_launch_end(&launch);
	rig_image_put(image);
}

/* Whether the fault is seen before or after a submission depends on the time it takes. */
static void fault_unnoticed(const char *text)
{
	struct rig_device *device = sys_open(text);
	struct rig_submission *empty = sys_empty(device);
	struct rig_point fault, later;
	unsigned i;
	int err = 0;

	submit_fault(device, &fault);
	for (i = 0; i < ROUNDS && !err; i++)
		err = rig_submit(empty, NULL, NULL, 0, &later);
	assert_true(err == 0 || err == RIG_LOST);
	rig_submission_put(empty);
	sys_ok(rig_close(device));
	assert_int_equal(rig_reached(fault), RIG_LOST);
	rig_device_put(device);
}

static void a_fault_that_nobody_noticed_is_a_loss_and_the_next_open_works(void **state)
{
	struct rig_device *device;
	unsigned i;

	(void)state;
	for (i = 0; i < COMPLETIONS; i++) {
		fault_unnoticed(completions[i]);
		sys_assert_no_process();
		device = sys_open(completions[i]);
		sys_device_works(device);
		sys_close(device);
	}
	sys_assert_no_process();
}

static void host_memory_that_a_lost_device_maps_is_given_back_after_its_stop(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < COMPLETIONS; i++) {
		struct rig_device *device = sys_open(completions[i]);
		char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct rig_buffer *mapped;
		struct rig_point fault;

		assert_true(memory != MAP_FAILED);
		strcpy(memory, "the program's");
		sys_ok(rig_buffer_of_host(device, memory, PAGE, &mapped));
		submit_fault(device, &fault);
		assert_int_equal(rig_wait(fault), RIG_LOST);
		sys_ok(rig_close(device));
		rig_buffer_put(mapped);
		assert_string_equal(memory, "the program's");
		assert_int_equal(munmap(memory, PAGE), 0);
		rig_device_put(device);
		sys_assert_no_process();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_poller_on_a_cpu_runs_and_ends_with_its_device),
	        cmocka_unit_test(a_poller_on_a_cpu_that_does_not_exist_is_refused_and_nothing_stays),
	        cmocka_unit_test(a_fault_that_nobody_noticed_is_a_loss_and_the_next_open_works),
	        cmocka_unit_test(host_memory_that_a_lost_device_maps_is_given_back_after_its_stop),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
