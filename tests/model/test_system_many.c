/* SPDX-License-Identifier: MIT */
/* Many sims at once: in several processes, and in one, whose devices wait on each other's words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"
#include "system_device.h"

enum { PROCESSES = 6, DEVICES = 8, STEPS = 100, CELL_BYTES = 64 };

static void several_processes_run_several_sims_at_once(void **state)
{
	static const char *const options[] = {"", ":completion=store", ":aperture=16M", ":mem=64M"};
	struct sys_process p[PROCESSES];
	struct sys_result result;
	char command[256];
	unsigned i;

	(void)state;
	for (i = 0; i < PROCESSES; i++) {
		snprintf(command, sizeof(command),
		        "rigctl run sim%s k/globals.elf globals --repeat 50 out:o%u.bin,64", options[i % 4],
		        i);
		sys_start(&p[i], command);
	}
	for (i = 0; i < PROCESSES; i++) {
		uint8_t *bytes;
		char name[16];

		sys_finish(&p[i], &result);
		sys_assert_done(&result);
		snprintf(name, sizeof(name), "o%u.bin", i);
		assert_int_equal(sys_read_file(sys_path(name), &bytes), 64);
		/* Launches, and 40 more: the last of fifty. */
		assert_int_equal(((uint64_t *)(void *)bytes)[0], 50);
		assert_int_equal(((uint64_t *)(void *)bytes)[1], 90);
		free(bytes);
		unlink(sys_path(name));
	}
	sys_assert_no_process();
}

static void several_sims_in_one_process_work_side_by_side(void **state)
{
	struct rig_device *device[DEVICES];
	struct test_counts before;
	unsigned i;

	(void)state;
	device[0] = sys_open("sim"); /* what is made once in a process is made */
	sys_close(device[0]);
	test_counts_take(&before);
	for (i = 0; i < DEVICES; i++)
		device[i] = sys_open(i % 2 ? "sim:completion=store" : "sim");
	assert_int_equal(rig_devices(NULL, 0), DEVICES);
	assert_int_equal(sys_find("rvx1-model", NULL, 0), DEVICES);
	for (i = 0; i < DEVICES; i++)
		sys_device_works(device[i]);
	for (i = 0; i < DEVICES; i++)
		sys_close(device[(i * 3) % DEVICES]);
	test_counts_same(&before);
	sys_assert_no_process();
}

/* ---- Two devices wait on each other's words ---- */

struct side {
	struct rig_device *device;
	struct rig_buffer *cells; /* the same host memory on both sides */
	struct rig_submission *submission;
	struct rig_run_args *run[STEPS];
};

/*
 * Step i copies cell i to cell i + 1. A side makes every second step, each after the other side's step
 * before, so that the number in cell 0 reaches the last cell only if every wait holds.
 */
static void open_side(struct side *side, const char *text, uint8_t *memory)
{
	const struct rig_work work = {.kind = RIG_COPY,
	        .u.copy = {.src = {.slot = 0}, .dst = {.slot = 1}, .row_bytes = CELL_BYTES, .rows = 1}};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &work, .nparts = 1, .reads = 1, .writes = 1};

	side->device = sys_open(text);
	sys_ok(rig_buffer_of_host(side->device, memory, (2 * STEPS + 1) * CELL_BYTES, &side->cells));
	sys_ok(rig_submission_make(side->device, &description, &side->submission));
}

static void make_step(struct side *side, unsigned index, unsigned step)
{
	struct rig_buffer *src, *dst;

	sys_ok(rig_buffer_view(side->cells, step * CELL_BYTES, CELL_BYTES, &src));
	sys_ok(rig_buffer_view(side->cells, (step + 1) * CELL_BYTES, CELL_BYTES, &dst));
	sys_ok(rig_run_make(side->submission, &side->run[index]));
	sys_ok(rig_run_buffer(side->run[index], 0, src));
	sys_ok(rig_run_buffer(side->run[index], 1, dst));
	rig_buffer_put(src);
	rig_buffer_put(dst);
}

static void close_side(struct side *side)
{
	unsigned i;

	for (i = 0; i < STEPS; i++)
		rig_run_put(side->run[i]);
	rig_submission_put(side->submission);
	rig_buffer_put(side->cells);
	sys_close(side->device);
}

static void pipeline(const char *even, const char *odd)
{
	const size_t bytes = (2 * STEPS + 1) * CELL_BYTES;
	uint8_t first[CELL_BYTES],
	        *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_point last = {0};
	struct side side[2];
	unsigned i, step;

	assert_ptr_not_equal(memory, MAP_FAILED);
	sys_fill(first, sizeof(first), 7);
	memcpy(memory, first, sizeof(first));
	open_side(&side[0], even, memory);
	open_side(&side[1], odd, memory);
	for (i = 0; i < STEPS; i++) {
		make_step(&side[0], i, 2 * i);
		make_step(&side[1], i, 2 * i + 1);
	}
	/* Nothing is waited for until all is handed over. */
	for (step = 0; step < 2 * STEPS; step++) {
		struct side *mine = &side[step % 2];

		sys_ok(rig_submit(mine->submission, mine->run[step / 2], &last, step ? 1 : 0, &last));
	}
	sys_ok(rig_wait(last));
	sys_order(side[0].device);
	sys_order(side[1].device);
	for (step = 0; step <= 2 * STEPS; step++)
		assert_memory_equal(memory + step * CELL_BYTES, first, CELL_BYTES);
	close_side(&side[0]);
	close_side(&side[1]);
	munmap(memory, bytes);
}

static void two_devices_wait_on_each_other_in_a_pipeline_with_every_completion(void **state)
{
	static const char *const texts[] = {"sim", "sim:completion=store"};
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		pipeline(texts[i % 2], texts[i / 2]);
	sys_assert_no_process();
}

/* The queue of the one waits for the other's word, which shows the value late. */
static void a_point_of_a_late_device_is_waited_for_in_the_queue(void **state)
{
	struct rig_device *slow = sys_open("sim:fault=late=100"), *fast = sys_open("sim:completion=store");
	struct rig_submission *a = sys_empty(slow), *b = sys_empty(fast);
	struct rig_point far, after;

	(void)state;
	sys_ok(rig_submit(a, NULL, NULL, 0, &far));
	sys_ok(rig_submit(b, NULL, &far, 1, &after));
	sys_ok(rig_wait(after));
	assert_int_equal(rig_reached(far), 1);
	rig_submission_put(a);
	rig_submission_put(b);
	sys_close(slow);
	sys_close(fast);
}

/* What waits for a lost device is lost with it, with its name as the reason; nobody else. */
static void a_loss_takes_along_who_waits_for_it_and_nobody_else(void **state)
{
	struct rig_device *bad = sys_open("sim:hang=1s"), *waits = sys_open("sim"), *other = sys_open("sim");
	struct rig_image *image = sys_image(bad, "loop_forever");
	struct rig_submission *empty = sys_empty(waits);
	struct rig_point never, after;
	struct sys_launch launch;
	const char *reason;

	(void)state;
	sys_launch_make(&launch, image, "loop_forever", &(struct sys_params){.device = bad}, 1, 1);
	never = sys_launch_submit(&launch);
	sys_ok(rig_submit(empty, NULL, &never, 1, &after));
	assert_int_equal(rig_wait(never), RIG_LOST);
	assert_int_equal(rig_wait(after), RIG_LOST);
	assert_true(rig_lost(waits, &reason));
	assert_non_null(strstr(reason, rig_name(bad)));
	assert_false(rig_lost(other, NULL));
	sys_device_works(other);
	sys_launch_end(&launch);
	rig_submission_put(empty);
	rig_image_put(image);
	rig_device_put(bad);
	rig_device_put(waits);
	sys_close(other);
	sys_assert_no_process();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(several_processes_run_several_sims_at_once),
	        cmocka_unit_test(several_sims_in_one_process_work_side_by_side),
	        cmocka_unit_test(two_devices_wait_on_each_other_in_a_pipeline_with_every_completion),
	        cmocka_unit_test(a_point_of_a_late_device_is_waited_for_in_the_queue),
	        cmocka_unit_test(a_loss_takes_along_who_waits_for_it_and_nobody_else),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
