/* SPDX-License-Identifier: MIT */
/*
 * What a submit and a look at a point cost other processors: the device's lock, taken and given back, is the
 * only two locked operations, and there is no full fence. Each is counted by steps of one instruction,
 * through librig, the driver and the board's port, in a process of its own (steps.h).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "steps.h"
#include "system_device.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { CACHED_BYTES = 65536 };
enum { WARM_UP = 3, SUBMIT_LOCKED = 2, CREATE_LOCKED = 4, CHILD_SECONDS = 120 };

/* -- In a process of its own -- */

struct hot {
	struct rig_device *device, *other;
	struct rig_submission *empty, *other_empty;
	struct rig_image *image;
	struct rig_buffer *buffer;
	struct sys_launch launch;
	struct rig_point point, foreign;
};

static void do_empty(struct hot *h)
{
	sys_ok(rig_submit(h->empty, NULL, NULL, 0, &h->point));
}

static void do_launch(struct hot *h)
{
	sys_ok(rig_submit(h->launch.submission, h->launch.run, NULL, 0, &h->point));
}

static void do_foreign(struct hot *h)
{
	sys_ok(rig_submit(h->empty, NULL, &h->foreign, 1, &h->point));
}

static void do_reached(struct hot *h)
{
	if (rig_reached(h->point) != 1)
		fail_msg("a point that was waited for is not reached");
}

static void do_wait(struct hot *h)
{
	sys_ok(rig_wait(h->point));
}

static void do_create(struct hot *h)
{
	rig_buffer_put(sys_buffer(h->device, RIG_DEVICE, CACHED_BYTES));
}

/* What the counter must see: a read-modify-write, and a fence, which compilers make one or the other of. */
static void do_locked(struct hot *h)
{
	static atomic_uint word;

	(void)h;
	atomic_fetch_add(&word, 1);
	atomic_thread_fence(memory_order_seq_cst);
}

static const struct operation {
	const char *name;
	void (*run)(struct hot *h);
} operations[] = {
        {"empty", do_empty},
        {"launch", do_launch},
        {"foreign", do_foreign},
        {"reached", do_reached},
        {"wait", do_wait},
        {"create", do_create},
        {"locked", do_locked},
};

static void open_hot(struct hot *h, const char *text)
{
	static uint64_t params[1];

	h->device = sys_open(text);
	h->other = sys_open("sim:mem=64M");
	h->empty = sys_empty(h->device);
	h->other_empty = sys_empty(h->other);
	h->image = sys_image(h->device, "globals");
	h->buffer = sys_buffer(h->device, RIG_DEVICE, 64);
	sys_launch_make(&h->launch, h->image, "globals",
	        &(struct sys_params){.device = h->device,
	                .bytes = params,
	                .count = sizeof(params),
	                .nbuffers = 1,
	                .buffer = {h->buffer}},
	        1, 1);
	sys_ok(rig_submit(h->other_empty, NULL, NULL, 0, &h->foreign));
	sys_ok(rig_wait(h->foreign));
	do_empty(h);
	do_wait(h);
}

static void close_hot(struct hot *h)
{
	do_wait(h);
	sys_launch_end(&h->launch);
	rig_submission_put(h->empty);
	rig_submission_put(h->other_empty);
	rig_buffer_put(h->buffer);
	rig_image_put(h->image);
	sys_close(h->device);
	sys_close(h->other);
}

static void run_between_marks(const struct operation *op, const char *text)
{
	struct hot h = {0};

	(void)alarm(CHILD_SECONDS);
	open_hot(&h, text);
	for (unsigned i = 0; i < WARM_UP; i++) {
		op->run(&h);
		do_wait(&h);
	}
	test_steps_mark();
	op->run(&h);
	test_steps_mark();
	close_hot(&h);
}

static int child(const char *name, const char *text)
{
	for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(operations[i].name, name)) {
			run_between_marks(&operations[i], text);
			return 0;
		}
	return 1;
}

/* -- The tests -- */

static const char *const devices[] = {"sim", "sim:completion=store"};

static void count(const char *operation, const char *device, struct test_steps *steps)
{
	char *argv[] = {(char *)(uintptr_t) "/proc/self/exe", (char *)(uintptr_t)operation,
	        (char *)(uintptr_t)device, NULL};
	int status = test_steps_run(argv, steps);

	if (status == -EPERM)
		skip(); /* nobody may trace here */
	if (status)
		fail_msg("%s on %s: %d", operation, device, status);
	printf("%s on %s: %lu instructions, %u locked, %u fences\n", operation, device, steps->instructions,
	        steps->locked, steps->fences);
}

static void assert_at_most(const char *operation, unsigned locked)
{
	struct test_steps steps;

	if (SANITIZED || !test_steps_can())
		skip(); /* the sanitizers have locks of their own; other machines other instructions */
	for (unsigned i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		count(operation, devices[i], &steps);
		assert_in_range(steps.locked, 0, locked);
		assert_int_equal(steps.fences, 0);
		assert_int_equal(steps.calls, 0);
	}
}

static void an_empty_submit_has_two_locked_operations_and_no_fence(void **state)
{
	(void)state;
	assert_at_most("empty", SUBMIT_LOCKED);
}

static void a_launch_with_a_buffer_has_no_more(void **state)
{
	(void)state;
	assert_at_most("launch", SUBMIT_LOCKED);
}

static void a_submit_that_follows_a_reached_point_has_no_more(void **state)
{
	(void)state;
	assert_at_most("foreign", SUBMIT_LOCKED);
}

static void a_look_at_a_reached_point_and_a_wait_for_it_have_none(void **state)
{
	(void)state;
	assert_at_most("reached", 0);
	assert_at_most("wait", 0);
}

static void a_cached_create_and_its_put_have_four(void **state)
{
	(void)state;
	assert_at_most("create", CREATE_LOCKED);
}

static void a_locked_operation_and_a_fence_are_seen(void **state)
{
	struct test_steps steps;

	(void)state;
	if (SANITIZED || !test_steps_can())
		skip();
	count("locked", "sim", &steps);
	assert_int_equal(steps.locked + steps.fences, 2);
}

/* As assemblers write them. */
static void instructions_are_told_apart(void **state)
{
	static const struct {
		unsigned char bytes[8];
		unsigned locked, fences, calls;
	} known[] = {
	        {{0xf0, 0x0f, 0xb1, 0x17}, 1, 0, 0},       /* lock cmpxchg %edx,(%rdi) */
	        {{0xf0, 0x48, 0x0f, 0xb1, 0x17}, 1, 0, 0}, /* the same of 64 bits */
	        {{0x66, 0xf0, 0x0f, 0xc1, 0x07}, 1, 0, 0}, /* lock xadd %ax,(%rdi) */
	        {{0x64, 0xf0, 0xff, 0x00}, 1, 0, 0},       /* lock incl %fs:(%rax) */
	        {{0x87, 0x07}, 1, 0, 0},                   /* xchg %eax,(%rdi) */
	        {{0x48, 0x87, 0x07}, 1, 0, 0},             /* xchg %rax,(%rdi) */
	        {{0x86, 0x07}, 1, 0, 0},                   /* xchg %al,(%rdi) */
	        {{0x48, 0x87, 0xf7}, 0, 0, 0},             /* xchg %rsi,%rdi */
	        {{0x66, 0x90}, 0, 0, 0},                   /* a nop */
	        {{0x0f, 0xae, 0xf0}, 0, 1, 0},             /* mfence */
	        {{0x0f, 0xae, 0xe8}, 0, 0, 0},             /* lfence */
	        {{0x0f, 0xae, 0xf8}, 0, 0, 0},             /* sfence */
	        {{0x0f, 0xa2}, 0, 1, 0},                   /* cpuid */
	        {{0x0f, 0x05}, 0, 0, 1},                   /* syscall */
	        {{0xf3, 0x90}, 0, 0, 0},                   /* pause */
	        {{0x48, 0xb8, 0xf0, 0x0f, 0xb1, 0x17, 0, 0}, 0, 0,
	                0}, /* mov of a constant that looks like one */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct test_steps steps = {0};

		test_steps_add(&steps, known[i].bytes, sizeof(known[i].bytes));
		if (steps.locked != known[i].locked || steps.fences != known[i].fences ||
		        steps.calls != known[i].calls)
			fail_msg("instruction %u", i);
		assert_int_equal(steps.instructions, 1);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(instructions_are_told_apart),
	        cmocka_unit_test(a_locked_operation_and_a_fence_are_seen),
	        cmocka_unit_test(an_empty_submit_has_two_locked_operations_and_no_fence),
	        cmocka_unit_test(a_launch_with_a_buffer_has_no_more),
	        cmocka_unit_test(a_submit_that_follows_a_reached_point_has_no_more),
	        cmocka_unit_test(a_look_at_a_reached_point_and_a_wait_for_it_have_none),
	        cmocka_unit_test(a_cached_create_and_its_put_have_four),
	};

	if (argc == 3)
		return child(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
