/* SPDX-License-Identifier: MIT */
/* What is read of a device that left, and what it keeps when others go on. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "system_device.h"

#define MIB   ((uint64_t)1 << 20)
#define BYTES ((uint64_t)4096)

static bool is_blank(void *arg)
{
	return __atomic_load_n((const uint8_t *)arg, __ATOMIC_RELAXED) == UINT8_MAX;
}

/* A device with a buffer of zeroes in its window, whose model was killed, and whose window shows it
 * already. */
static struct rig_buffer *blanked(struct rig_device *device)
{
	struct rig_buffer *buffer = sys_buffer(device, RIG_MAPPED, BYTES);
	pid_t model;

	memset(rig_buffer_host(buffer), 0, BYTES);
	assert_int_equal(sys_find("rvx1-model", &model, 1), 1);
	assert_int_equal(kill(model, SIGKILL), 0);
	sys_await(is_blank, rig_buffer_host(buffer), "the window to show ones");
	return buffer;
}

static void what_a_window_shows_of_a_device_that_left_is_not_believed(void **state)
{
	static const uint64_t counts[] = {1, 8, BYTES};
	uint8_t bytes[BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct rig_device *device = sys_open("sim:mem=64M");
		struct rig_buffer *buffer = blanked(device);

		assert_int_equal(rig_buffer_read(buffer, BYTES - counts[i], bytes, counts[i]), RIG_LOST);
		assert_non_null(strstr(rig_error(), "hung up"));
		rig_buffer_put(buffer);
		rig_device_put(device);
	}
}

static void nor_is_what_was_copied_from_it(void **state)
{
	struct rig_device *device = sys_open("sim:mem=64M");
	struct rig_buffer *buffer = blanked(device), *to;
	struct rig_device *other = sys_open("sim:mem=64M");

	(void)state;
	to = sys_buffer(other, RIG_PINNED, BYTES);
	assert_int_equal(rig_buffer_copy(to, 0, buffer, 0, BYTES), RIG_LOST);
	assert_true(rig_lost(device, NULL));
	sys_device_works(other);
	rig_buffer_put(to);
	rig_buffer_put(buffer);
	rig_device_put(device);
	sys_close(other);
}

/* Ones that a live device holds are its data. */
static void ones_of_a_device_that_is_there_are_read(void **state)
{
	struct rig_device *device = sys_open("sim:mem=64M");
	struct rig_buffer *buffer = sys_buffer(device, RIG_MAPPED, 4 * MIB);
	struct rig_submission *empty = sys_empty(device);
	uint8_t bytes[BYTES];
	int i;

	(void)state;
	memset(rig_buffer_host(buffer), UINT8_MAX, 4 * MIB);
	for (i = 0; i < 100; i++) {
		sys_ok(rig_submit(empty, NULL, NULL, 0, NULL));
		sys_ok(rig_buffer_read(buffer, 0, bytes, BYTES));
		assert_int_equal(bytes[BYTES - 1], UINT8_MAX);
	}
	rig_submission_put(empty);
	rig_buffer_put(buffer);
	sys_close(device);
}

/* The work of one device uses memory of another, which is closed and dropped meanwhile. */
static void a_closed_device_ends_when_another_whose_work_used_its_memory_does(void **state)
{
	struct rig_device *user = sys_open("sim:mem=256M"), *owner = sys_open("sim:mem=64M");
	struct rig_buffer *memory = sys_buffer(owner, RIG_PINNED, 64 * MIB), *borrowed,
	                  *to = sys_buffer(user, RIG_DEVICE, 64 * MIB);
	struct rig_point point;
	int i;

	(void)state;
	sys_ok(rig_buffer_borrow(user, memory, &borrowed));
	for (i = 0; i < 4; i++)
		sys_ok(rig_buffer_copy_async(to, 0, borrowed, 0, 64 * MIB, &point));
	rig_buffer_put(borrowed);
	rig_buffer_put(memory);
	sys_close(owner);
	sys_ok(rig_wait(point));
	rig_buffer_put(to);
	sys_close(user);
	sys_assert_no_process();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(what_a_window_shows_of_a_device_that_left_is_not_believed),
	        cmocka_unit_test(nor_is_what_was_copied_from_it),
	        cmocka_unit_test(ones_of_a_device_that_is_there_are_read),
	        cmocka_unit_test(a_closed_device_ends_when_another_whose_work_used_its_memory_does),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
