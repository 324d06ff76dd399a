/* SPDX-License-Identifier: MIT */
/* Losses in one process, through librig: each with its reason, and the same opener opens again and works. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "system_device.h"

struct loss {
	const char *kernel;
	const char *why, *also; /* both are in rig_error() and in rig_lost's reason */
	uint32_t threads;
	int64_t hang_ms; /* 0: the device's own */
};

static const struct loss kernels[] = {
        {"read_null", "page fault: read of 0x0 ", "kernel read_null", 1, 0},
        {"write_outside", "page fault: write of 0x200000000010 ", "kernel write_outside", 1, 0},
        {"garbage", "illegal instruction 0xffffffff", "kernel garbage", 1, 0},
        {"recurse", "page fault: write", "kernel recurse", 1, 0},
        {"barrier_short", "barrier", "kernel barrier_short", 4, 0},
        {"trap", "pc 0x", "kernel trap", 1, 0},
        {"misaligned", "misaligned", "kernel misaligned", 1, 0},
        {"loop_forever", "no progress for 1000 ms", "1000", 1, 1000},
};

/* Points never repeat, and those that were not reached answer RIG_LOST with the reason for ever: one block
   for a device that is lost with such points. */
enum { KEPT = 1 };

enum { KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

static void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text);
}

/* What everything of a lost device answers. */
static void assert_lost(struct rig_device *device, struct rig_buffer *buffer, struct rig_point unreached)
{
	struct rig_buffer *more;
	uint8_t byte = 0;

	assert_int_equal(rig_wait(unreached), RIG_LOST);
	assert_int_equal(rig_reached(unreached), RIG_LOST);
	assert_int_equal(rig_buffer_read(buffer, 0, &byte, 1), RIG_LOST);
	assert_int_equal(rig_buffer_write(buffer, 0, &byte, 1), RIG_LOST);
	assert_int_equal(rig_buffer_create(device, RIG_DEVICE, 1, &more), RIG_LOST);
	assert_int_equal(rig_close(device), 0);
}

static void lose(struct rig_opener *opener, const struct loss *loss)
{
	const struct rig_open_options options = {.version = RIG_EDGE_VERSION, .hang_ms = loss->hang_ms};
	struct rig_device *device;
	struct rig_image *image;
	struct rig_buffer *buffer;
	struct sys_launch launch;
	struct rig_point point;
	const char *reason = NULL;

	sys_ok(rig_open_with(opener, &options, &device));
	buffer = sys_buffer(device, RIG_DEVICE, 4096);
	image = sys_image(device, loss->kernel);
	sys_launch_make(
	        &launch, image, loss->kernel, &(struct sys_params){.device = device}, 1, loss->threads);
	point = sys_launch_submit(&launch);
	assert_int_equal(rig_wait(point), RIG_LOST);
	assert_says(rig_error(), loss->why);
	assert_says(rig_error(), loss->also);
	assert_true(rig_lost(device, &reason));
	assert_says(reason, loss->why);
	assert_int_equal(sys_launch_try(&launch), RIG_LOST);
	assert_lost(device, buffer, point);
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_buffer_put(buffer);
	rig_device_put(device);
}

static void lose_all(struct rig_opener *opener)
{
	struct rig_device *device;
	unsigned i;

	for (i = 0; i < KERNELS; i++) {
		lose(opener, &kernels[i]);
		sys_ok(rig_open(opener, &device));
		sys_device_works(device);
		sys_close(device);
	}
}

static void lose_and_count(const char *text)
{
	const struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .name = "board"};
	struct test_counts before;
	struct rig_opener *opener;

	sys_ok(rig_vfio_opener(text, &options, &opener));
	lose_all(opener);
	test_counts_take(&before);
	lose_all(opener);
	before.blocks += KERNELS * KEPT;
	test_counts_same(&before);
	rig_vfio_opener_free(opener);
}

static void after_every_bad_kernel_the_same_opener_opens_a_device_that_works(void **state)
{
	(void)state;
	lose_and_count("sim");
	sys_assert_no_process();
}

static void the_same_with_completion_by_store(void **state)
{
	(void)state;
	lose_and_count("sim:completion=store");
	sys_assert_no_process();
}

static void the_same_on_one_served_board(void **state)
{
	struct sys_process model;

	(void)state;
	sys_serve(&model, "");
	lose_and_count(sys_served());
	sys_serve_end(&model);
}

/* ---- Boards that misbehave ---- */

struct misbehaviour {
	const char *text, *why;
};

static int try_load(struct rig_device *device, const char *kernel, struct rig_image **image)
{
	uint8_t *bytes;
	size_t count = sys_kernel_bytes(kernel, &bytes);
	int err = rig_image_load(device, bytes, count, image);

	free(bytes);
	return err;
}

/* Opens, works until the loss comes, and puts all. */
static void lose_board(const struct misbehaviour *m)
{
	const struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .name = "board"};
	struct rig_submission *empty;
	struct rig_opener *opener;
	struct rig_device *device;
	struct rig_image *image = NULL;
	struct sys_launch launch;
	struct rig_point point;
	const char *reason;
	unsigned i;
	int err = 0;

	sys_ok(rig_vfio_opener(m->text, &options, &opener));
	sys_ok(rig_open(opener, &device));
	rig_vfio_opener_free(opener);
	empty = sys_empty(device);
	for (i = 0; i < 3 && !err; i++) {
		err = rig_submit(empty, NULL, NULL, 0, &point);
		if (!err)
			err = rig_wait(point);
	}
	if (!err)
		err = try_load(device, "limits", &image);
	if (!err) {
		static const uint8_t params[24];

		sys_launch_make(&launch, image, "limits",
		        &(struct sys_params){.device = device, .bytes = params, .count = sizeof(params)}, 1,
		        1);
		err = sys_launch_try(&launch);
		sys_launch_end(&launch);
	}
	assert_int_equal(err, RIG_LOST);
	assert_says(rig_error(), m->why);
	assert_true(rig_lost(device, &reason));
	assert_says(reason, m->why);
	rig_image_put(image);
	rig_submission_put(empty);
	rig_device_put(device);
}

static void a_board_that_dies_halts_or_hangs_is_lost_and_its_name_opens_again(void **state)
{
	static const struct misbehaviour rows[] = {
	        {"sim:fault=die=2", "hung up"},
	        {"sim:fault=die=4", "hung up"}, /* loading the image */
	        {"sim:fault=die=5", "hung up"}, /* the launch */
	        {"sim:fault=die=2,completion=store", "hung up"},
	        {"sim:fault=halt", "halted"},
	        {"sim:fault=halt=3,completion=store", "halted"},
	        {"sim:fault=hang,hang=1s", "no progress"},
	        {"sim:fault=hang,hang=1s,completion=store", "no progress"},
	};
	const struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .name = "board"};
	struct rig_opener *good;
	struct rig_device *device;
	struct test_counts before;
	unsigned i;

	(void)state;
	sys_ok(rig_vfio_opener("sim", &options, &good));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_counts_take(&before);
		lose_board(&rows[i]);
		before.blocks += KEPT;
		test_counts_same(&before);
		sys_ok(rig_open(good, &device));
		sys_device_works(device);
		sys_close(device);
	}
	rig_vfio_opener_free(good);
	sys_assert_no_process();
}

static void a_board_that_refuses_or_dies_while_booting_is_not_opened_and_leaves_nothing(void **state)
{
	static const struct misbehaviour rows[] = {
	        {"sim:fault=refuse-boot", "refused"},
	        {"sim:fault=die-boot", "hung up"},
	        {"sim:fault=refuse-reset", "reset"},
	};
	struct test_counts before;
	struct rig_device *device;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_not_equal(sys_try_open(rows[i].text, &device), 0);
		test_counts_take(&before);
		assert_int_not_equal(sys_try_open(rows[i].text, &device), 0);
		assert_null(device);
		assert_says(rig_error(), rows[i].why);
		test_counts_same(&before);
	}
	device = sys_open("sim");
	sys_device_works(device);
	sys_close(device);
	sys_assert_no_process();
}

/* A device's work goes on while another one in the process is lost. */
static void a_loss_leaves_the_other_devices_alone(void **state)
{
	static const struct loss loss = {"garbage", "illegal", "garbage", 1, 0};
	const struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .name = "board"};
	struct rig_device *other = sys_open("sim:completion=store");
	struct rig_opener *opener;

	(void)state;
	sys_ok(rig_vfio_opener("sim", &options, &opener));
	lose(opener, &loss);
	rig_vfio_opener_free(opener);
	assert_false(rig_lost(other, NULL));
	sys_device_works(other);
	sys_close(other);
}

/* ---- Threads ---- */

enum { TURNS = 15, THREADS = 3 };

struct turns {
	const char *text; /* a device that serves one client */
	pthread_mutex_t turn;
	atomic_bool over;
	atomic_int failed;
	char why[SYS_TEXT];
	_Atomic uint64_t last;
};

/* With the turn. */
static void note(struct turns *t, const char *what)
{
	if (!atomic_exchange(&t->failed, 1))
		snprintf(t->why, sizeof(t->why), "%s: %s", what, rig_error());
}

static void open_once(struct turns *t)
{
	struct rig_submission *empty;
	struct rig_device *device;
	struct rig_point point;

	if (sys_try_open(t->text, &device)) {
		note(t, "open");
		return;
	}
	empty = sys_empty(device);
	if (rig_submit(empty, NULL, NULL, 0, &point))
		note(t, "submit");
	else
		atomic_store(&t->last, point.bits);
	rig_submission_put(empty);
	(void)rig_close(device);
	rig_device_put(device);
}

static void *take_turns(void *arg)
{
	struct turns *t = arg;
	int i;

	for (i = 0; i < TURNS; i++) {
		(void)pthread_mutex_lock(&t->turn);
		open_once(t);
		(void)pthread_mutex_unlock(&t->turn);
	}
	return NULL;
}

/* Holds the device for a moment, whatever became of it. */
static void *wait_for_last(void *arg)
{
	struct turns *t = arg;
	uint64_t bits;

	while (!atomic_load(&t->over)) {
		bits = atomic_load(&t->last);
		if (bits)
			(void)rig_wait((struct rig_point){bits});
		else
			(void)sched_yield();
	}
	return NULL;
}

/* Each open and close of another device looks after all of them. */
static void *look_after_all(void *arg)
{
	struct turns *t = arg;
	struct rig_opener opener;
	struct rig_device *device;

	rig_host_opener("other", &opener);
	while (!atomic_load(&t->over)) {
		if (rig_open(&opener, &device))
			continue;
		(void)rig_close(device);
		rig_device_put(device);
	}
	return NULL;
}

static void a_board_that_serves_one_client_opens_in_the_next_thread_at_once(void **state)
{
	struct turns t = {.turn = PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread[THREADS], waiter, other;
	struct sys_process model;
	int i;

	(void)state;
	sys_serve(&model, "");
	t.text = sys_served();
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_last, &t), 0);
	assert_int_equal(pthread_create(&other, NULL, look_after_all, &t), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_turns, &t), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	atomic_store(&t.over, true);
	assert_int_equal(pthread_join(waiter, NULL), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	if (atomic_load(&t.failed))
		fail_msg("%s", t.why);
	sys_serve_end(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(after_every_bad_kernel_the_same_opener_opens_a_device_that_works),
	        cmocka_unit_test(the_same_with_completion_by_store),
	        cmocka_unit_test(the_same_on_one_served_board),
	        cmocka_unit_test(a_board_that_dies_halts_or_hangs_is_lost_and_its_name_opens_again),
	        cmocka_unit_test(a_board_that_refuses_or_dies_while_booting_is_not_opened_and_leaves_nothing),
	        cmocka_unit_test(a_loss_leaves_the_other_devices_alone),
	        cmocka_unit_test(a_board_that_serves_one_client_opens_in_the_next_thread_at_once),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
