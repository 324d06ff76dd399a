/* SPDX-License-Identifier: MIT */
/* Two devices, each with memory that the other's work uses: copies, launches, what a loss of one means. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "system_device.h"

enum { BYTES = 300000, WORDS = 8 };

static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_MAPPED};

static struct rig_buffer *borrow(struct rig_device *device, struct rig_buffer *buffer)
{
	struct rig_buffer *borrowed;

	sys_ok(rig_buffer_borrow(device, buffer, &borrowed));
	assert_int_equal(rig_buffer_bytes(borrowed), rig_buffer_bytes(buffer));
	assert_ptr_equal(rig_buffer_device(borrowed), device);
	return borrowed;
}

/* A run of a copy on src's device. */
static int copy(struct rig_buffer *src, struct rig_buffer *dst, uint64_t bytes)
{
	struct sys_launch l;
	int answer;

	sys_copy_make(&l, src, 0, dst, 0, bytes);
	answer = sys_launch_try(&l);
	sys_launch_end(&l);
	return answer;
}

/* The device's engine writes to the lender's memory and reads it back. */
static void copies_both_ways(struct rig_device *device, struct rig_device *lender, enum rig_memory kind)
{
	struct rig_buffer *lent = sys_buffer(lender, kind, BYTES), *borrowed = borrow(device, lent);
	struct rig_buffer *own = sys_buffer(device, RIG_DEVICE, BYTES);
	static uint8_t out[BYTES], in[BYTES];

	sys_fill(out, BYTES, kind);
	memset(in, 0, BYTES);
	sys_ok(rig_buffer_write(lent, 0, in, BYTES));
	sys_ok(rig_buffer_write(own, 0, out, BYTES));
	sys_ok(copy(own, borrowed, BYTES));
	sys_ok(rig_buffer_read(lent, 0, in, BYTES));
	assert_memory_equal(in, out, BYTES);

	sys_fill(out, BYTES, kind + 10u);
	sys_ok(rig_buffer_write(lent, 0, out, BYTES));
	sys_ok(copy(borrowed, own, BYTES));
	sys_ok(rig_buffer_read(own, 0, in, BYTES));
	assert_memory_equal(in, out, BYTES);
	rig_buffer_put(own);
	rig_buffer_put(borrowed);
	rig_buffer_put(lent);
}

static void two_sims_copy_into_each_others_memory(void **state)
{
	struct rig_device *a, *b;
	struct test_counts before;

	(void)state;
	a = sys_open("sim"); /* what is made once in a process is made */
	sys_close(a);
	test_counts_take(&before);
	a = sys_open("sim");
	b = sys_open("sim:completion=store");
	for (unsigned i = 0; i < 2; i++) {
		copies_both_ways(a, b, kinds[i]);
		copies_both_ways(b, a, kinds[i]);
	}
	sys_close(a);
	sys_close(b);
	test_counts_same(&before);
	sys_assert_no_process();
}

static void a_launch_writes_into_anothers_memory_and_that_one_goes_on_with_it(void **state)
{
	static const uint64_t expected[WORDS] = {1, 41, 42, 610, 'e' + 3, 14, 40, 'z'};
	struct rig_device *a = sys_open("sim"), *b = sys_open("sim");
	uint64_t zero = 0, answer[WORDS] = {0};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct rig_buffer *lent = sys_buffer(b, kinds[i], sizeof(answer)),
		                  *borrowed = borrow(a, lent);
		struct rig_buffer *next = sys_buffer(b, RIG_DEVICE, sizeof(answer));
		struct rig_image *image = sys_image(a, "globals");
		const struct sys_params params = {.device = a,
		        .bytes = &zero,
		        .count = sizeof(zero),
		        .nbuffers = 1,
		        .buffer = {borrowed}};
		struct sys_launch l, then;

		sys_launch_make(&l, image, "globals", &params, 1, 1);
		(void)sys_launch_submit(&l);
		/* Not waited for here: b's copy waits for a's launch by itself. */
		sys_copy_make(&then, lent, 0, next, 0, sizeof(answer));
		sys_ok(sys_launch_try(&then));
		sys_ok(rig_buffer_read(next, 0, answer, sizeof(answer)));
		assert_memory_equal(answer, expected, sizeof(answer));
		sys_launch_end(&then);
		sys_launch_end(&l);
		rig_image_put(image);
		rig_buffer_put(next);
		rig_buffer_put(borrowed);
		rig_buffer_put(lent);
	}
	sys_close(b);
	sys_close(a);
}

static void memory_is_mapped_once_however_often_it_is_borrowed(void **state)
{
	struct rig_device *a = sys_open("sim"), *b = sys_open("sim");
	struct rig_buffer *lent = sys_buffer(b, RIG_MAPPED, BYTES), *view, *one, *two, *three;
	struct rig_vfio_stats before, after;

	(void)state;
	sys_stats(a, &before);
	one = borrow(a, lent);
	two = borrow(a, lent);
	sys_ok(rig_buffer_view(lent, 4096, 8192, &view));
	three = borrow(a, view);
	sys_stats(a, &after);
	assert_int_equal(after.dma_maps, before.dma_maps + 1);
	assert_int_equal(rig_buffer_address(three), rig_buffer_address(one) + 4096);
	rig_buffer_put(three);
	rig_buffer_put(two);
	rig_buffer_put(one);
	rig_buffer_put(view);
	rig_buffer_put(lent);
	sys_close(a);
	sys_close(b);
}

static void memory_outside_the_aperture_cannot_be_borrowed_and_mapped_memory_can(void **state)
{
	struct rig_device *a = sys_open("sim"), *b = sys_open("sim:aperture=16M");
	struct rig_buffer *lent = sys_buffer(b, RIG_DEVICE, 4096), *borrowed;

	(void)state;
	assert_int_equal(rig_buffer_borrow(a, lent, &borrowed), -ENOTSUP);
	assert_non_null(strstr(rig_error(), "RIG_MAPPED"));
	copies_both_ways(a, b, RIG_MAPPED);
	rig_buffer_put(lent);
	sys_close(a);
	sys_close(b);
}

/* Whether work of the device is refused as lost. */
static bool is_lost(void *device)
{
	const struct rig_description nothing = {.version = RIG_EDGE_VERSION};
	struct rig_submission *empty;
	struct rig_point point;
	int answer = rig_submission_make(device, &nothing, &empty);

	if (answer)
		return answer == RIG_LOST;
	answer = rig_submit(empty, NULL, NULL, 0, &point);
	if (!answer)
		answer = rig_wait(point);
	rig_submission_put(empty);
	return answer == RIG_LOST;
}

/* The lender's process dies; who borrowed of it is told so, and works on. */
static void a_lender_that_dies_is_lost_alone(void **state)
{
	struct rig_device *a = sys_open("sim"), *b;
	struct rig_buffer *own = sys_buffer(a, RIG_DEVICE, BYTES), *lent, *borrowed;
	const char *reason = "";
	pid_t models[2];
	unsigned first;

	(void)state;
	assert_int_equal(sys_find("rvx1-model", models, 2), 1);
	first = (unsigned)models[0];
	b = sys_open("sim");
	lent = sys_buffer(b, RIG_MAPPED, BYTES);
	borrowed = borrow(a, lent);
	sys_ok(copy(own, borrowed, BYTES));
	assert_int_equal(sys_find("rvx1-model", models, 2), 2);
	kill(models[0] == (pid_t)first ? models[1] : models[0], SIGKILL);
	sys_await(is_lost, b, "the lender to be lost");
	assert_int_equal(copy(own, borrowed, BYTES), RIG_LOST);
	assert_true(rig_lost(b, &reason));
	assert_false(rig_lost(a, &reason));
	sys_device_works(a);
	rig_buffer_put(borrowed);
	rig_buffer_put(lent);
	rig_device_put(b);
	sys_device_works(a);
	/* Its memory is borrowed of the next as before. */
	b = sys_open("sim");
	copies_both_ways(a, b, RIG_MAPPED);
	rig_buffer_put(own);
	sys_close(b);
	sys_close(a);
}

/* Work that is under way in the lender's memory while the lender is reset and closed harms neither. */
static void a_lender_is_reset_and_closed_under_work_that_uses_its_memory(void **state)
{
	struct rig_device *a = sys_open("sim"), *b = sys_open("sim:hang=300ms");
	struct rig_buffer *own = sys_buffer(a, RIG_DEVICE, BYTES), *lent, *borrowed;
	struct rig_image *image = sys_image(b, "loop_forever");
	const struct sys_params params = {.device = b};
	struct sys_launch l, forever;
	struct rig_point point = {0}, hung;
	const char *reason = "";

	(void)state;
	lent = sys_buffer(b, RIG_MAPPED, BYTES);
	borrowed = borrow(a, lent);
	sys_copy_make(&l, own, 0, borrowed, 0, BYTES);
	sys_launch_make(&forever, image, "loop_forever", &params, 1, 1);
	hung = sys_launch_submit(&forever);
	for (unsigned i = 0; i < 50; i++)
		point = sys_launch_submit(&l);
	assert_int_equal(rig_wait(hung), RIG_LOST);
	assert_true(rig_lost(b, &reason));
	sys_ok(rig_wait(point));
	assert_int_equal(sys_launch_try(&l), RIG_LOST);
	assert_false(rig_lost(a, &reason));
	sys_launch_end(&l);
	sys_launch_end(&forever);
	rig_image_put(image);
	rig_device_put(b);
	rig_buffer_put(lent);
	rig_buffer_put(borrowed); /* the last that held b */
	sys_device_works(a);
	rig_buffer_put(own);
	sys_close(a);
	sys_assert_no_process();
}

static void dma_bufs_are_of_functions_of_the_machine(void **state)
{
	struct rig_device *a = sys_open("sim:dma=dmabuf");
	struct rig_buffer *buffer = sys_buffer(a, RIG_MAPPED, 4096);
	struct rig_dma_answer answer;

	(void)state;
	assert_int_equal(rig_buffer_dma(buffer, &answer), RIG_NO_DMA);
	assert_non_null(strstr(answer.reason, "vfio-user exports no BAR as a dma-buf"));
	assert_int_equal(answer.fd, -1);
	rig_buffer_put(buffer);
	sys_device_works(a);
	sys_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(two_sims_copy_into_each_others_memory),
	        cmocka_unit_test(a_launch_writes_into_anothers_memory_and_that_one_goes_on_with_it),
	        cmocka_unit_test(memory_is_mapped_once_however_often_it_is_borrowed),
	        cmocka_unit_test(memory_outside_the_aperture_cannot_be_borrowed_and_mapped_memory_can),
	        cmocka_unit_test(a_lender_that_dies_is_lost_alone),
	        cmocka_unit_test(a_lender_is_reset_and_closed_under_work_that_uses_its_memory),
	        cmocka_unit_test(dma_bufs_are_of_functions_of_the_machine),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
