/* SPDX-License-Identifier: MIT */
/* How puts meet reuse and the end of a device, forks meet calls, and opens meet closes: a thread is held at a
   point of the library while another goes on. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held.h"

static int reset(void **state)
{
	(void)state;
	held_reset();
	return 0;
}

static struct bench open_bench(void)
{
	struct polled_options o = help_options();

	return help_open(&o);
}

/* ---- Put beside reuse ---- */

static void memory_between_its_last_put_and_the_cache_is_nobodys(void **state)
{
	struct bench b = open_bench();
	struct actor putter = {.deed = held_put, .buffer = help_buffer(b.d, HELD_BYTES)};
	uint64_t address = rig_buffer_address(putter.buffer);
	struct rig_buffer *other, *again;

	(void)state;
	held_start_at(RT_HOOK_PUT, b.d, &putter);
	other = help_buffer(b.d, HELD_BYTES);
	assert_int_not_equal(rig_buffer_address(other), address);
	assert_int_equal(polled_count(b.p, POLLED_ALLOC), 2);
	assert_ok(held_let_go(RT_HOOK_PUT, &putter));
	again = help_buffer(b.d, HELD_BYTES);
	assert_int_equal(rig_buffer_address(again), address);
	assert_int_equal(polled_count(b.p, POLLED_ALLOC), 2);
	rig_buffer_put(other);
	rig_buffer_put(again);
	help_close(&b);
}

static void memory_put_while_two_look_for_some_goes_to_one(void **state)
{
	struct bench b = open_bench();
	struct rig_buffer *buffer = help_buffer(b.d, HELD_BYTES);
	uint64_t address = rig_buffer_address(buffer);
	struct actor creators[2];
	unsigned i, reused = 0;

	(void)state;
	held_close(RT_HOOK_REUSE, b.d, 2);
	for (i = 0; i < 2; i++) {
		creators[i] = (struct actor){.deed = held_create, .d = b.d};
		held_start(&creators[i]);
	}
	held_await(RT_HOOK_REUSE, 2);
	rig_buffer_put(buffer);
	held_open(RT_HOOK_REUSE);
	for (i = 0; i < 2; i++) {
		assert_ok(held_join(&creators[i]));
		reused += rig_buffer_address(creators[i].buffer) == address;
	}
	assert_int_equal(reused, 1);
	assert_int_equal(polled_count(b.p, POLLED_ALLOC), 2);
	for (i = 0; i < 2; i++)
		rig_buffer_put(creators[i].buffer);
	help_close(&b);
}

/* The device is found again by the next open of its name, or by who puts. */
static void expect_all_back(struct bench *b)
{
	assert_null(polled_breach(b->p));
	assert_int_equal(polled_left(b->p), 0);
	assert_int_equal(polled_count(b->p, POLLED_STOP), 1);
	assert_int_equal(polled_count(b->p, POLLED_RELEASE), 1);
	assert_int_equal(polled_count(b->p, POLLED_FREE), polled_count(b->p, POLLED_ALLOC));
	polled_free(b->p);
}

static void memory_put_beside_its_devices_whole_end_goes_back_to_the_driver(void **state)
{
	struct bench b = open_bench();
	struct actor putter = {.deed = held_put, .buffer = help_buffer(b.d, HELD_BYTES)};

	(void)state;
	held_start_at(RT_HOOK_PUT, b.d, &putter);
	assert_ok(rig_close(b.d));
	rig_device_put(b.d);
	assert_int_equal(polled_count(b.p, POLLED_RELEASE), 0);
	assert_ok(held_let_go(RT_HOOK_PUT, &putter));
	expect_all_back(&b);
}

static void end_beside_a_put(enum rig_rt_hook_point point)
{
	struct bench b = open_bench();
	struct rig_buffer *buffer = help_buffer(b.d, HELD_BYTES);
	struct actor closer = {.deed = held_end, .d = b.d};

	held_start_at(point, b.d, &closer);
	rig_buffer_put(buffer);
	assert_int_equal(polled_count(b.p, POLLED_FREE), 0);
	assert_ok(held_let_go(point, &closer));
	rig_device_put(b.d);
	expect_all_back(&b);
}

/* E-012 */
static void memory_put_before_a_stop_goes_back_after_it(void **state)
{
	(void)state;
	end_beside_a_put(RT_HOOK_LOST);
	held_reset();
	end_beside_a_put(RT_HOOK_STOP);
}

/* Who puts then gives back: stop returned. */
static void memory_put_right_after_a_stop_goes_back(void **state)
{
	struct bench b = open_bench();
	struct rig_buffer *buffer = help_buffer(b.d, HELD_BYTES);
	struct actor closer = {.deed = held_end, .d = b.d};

	(void)state;
	held_start_at(RT_HOOK_ENDED, b.d, &closer);
	rig_buffer_put(buffer);
	assert_ok(held_let_go(RT_HOOK_ENDED, &closer));
	rig_device_put(b.d);
	expect_all_back(&b);
}

/* ---- Fork beside a call ---- */

static unsigned count_calls(struct polled *p)
{
	unsigned n = 0;
	int i;

	for (i = 0; i < POLLED_CALLS; i++)
		n += polled_count(p, (enum polled_call)i);
	return n;
}

struct inherited {
	struct bench b;
	struct rig_submission *s;
	struct rig_buffer *buffer;
	struct rig_point open;
	unsigned calls;
};

/* 0, or the step that failed: a child asserts nothing. */
static int use_inherited(struct inherited *x)
{
	struct rig_buffer *buffer;
	uint8_t byte = 0;

	if (!rig_lost(x->b.d, NULL))
		return 1;
	if (rig_submit(x->s, NULL, NULL, 0, NULL) != RIG_LOST)
		return 2;
	if (rig_buffer_create(x->b.d, RIG_DEVICE, HELD_BYTES, &buffer) != RIG_LOST)
		return 3;
	if (rig_buffer_write(x->buffer, 0, &byte, 1) != RIG_LOST)
		return 4;
	if (rig_wait(x->open) != RIG_LOST)
		return 5;
	if (rig_close(x->b.d))
		return 6;
	rig_buffer_put(x->buffer);
	rig_submission_put(x->s);
	rig_device_put(x->b.d);
	return count_calls(x->b.p) == x->calls ? 0 : 7;
}

static int open_own(void)
{
	struct polled_options o = help_options();
	struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct polled *p = polled_new(&o);
	struct rig_submission *s;
	struct rig_point point;
	struct rig_device *d;

	if (rig_open(polled_opener(p), &d))
		return 10;
	if (rig_submission_make(d, &description, &s) || rig_submit(s, NULL, NULL, 0, &point) ||
	        rig_wait(point))
		return 11;
	rig_submission_put(s);
	if (rig_close(d))
		return 12;
	rig_device_put(d);
	return polled_breach(p) || polled_left(p) ? 13 : 0;
}

/* In a child, while a thread of the parent stands where the test put it. */
static void expect_child_apart(struct inherited *x)
{
	pid_t child;
	int step, status;

	x->calls = count_calls(x->b.p);
	child = fork();
	if (child == 0) {
		held_child();
		step = use_inherited(x);
		_exit(step ? step : open_own());
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static struct inherited prepare(void)
{
	struct inherited x = {.b = open_bench()};

	x.s = help_empty(x.b.d);
	x.buffer = help_buffer(x.b.d, HELD_BYTES);
	x.open = help_submit(x.s, NULL);
	return x;
}

static void drop(struct inherited *x)
{
	rig_submission_put(x->s);
	rig_buffer_put(x->buffer);
}

/* E-237, E-241 */
static void a_fork_beside_a_counted_call_leaves_it_to_the_parent(void **state)
{
	struct inherited x = prepare();
	struct actor creator = {.deed = held_create, .d = x.b.d};

	(void)state;
	held_start_at(RT_HOOK_ENTERED, x.b.d, &creator);
	expect_child_apart(&x);
	assert_ok(held_let_go(RT_HOOK_ENTERED, &creator));
	assert_ok(rig_wait(x.open));
	rig_buffer_put(creator.buffer);
	drop(&x);
	help_close(&x.b);
}

static void a_fork_beside_a_turn_leaves_its_lock_to_the_parent(void **state)
{
	struct inherited x = prepare();
	struct actor submitter = {.deed = held_submit, .s = x.s};

	(void)state;
	held_start_at(RT_HOOK_RECORDED, x.b.d, &submitter);
	expect_child_apart(&x);
	assert_ok(held_let_go(RT_HOOK_RECORDED, &submitter));
	assert_ok(rig_wait(submitter.point));
	drop(&x);
	help_close(&x.b);
}

/* At each step of a loss the child finds the device lost and waits for nothing of it. */
static void fork_beside_a_loss(enum rig_rt_hook_point point)
{
	struct inherited x = prepare();
	struct actor loser = {.deed = held_create, .d = x.b.d};

	polled_gate(x.b.p, 0);
	polled_fail(x.b.p, POLLED_ALLOC, 1, POLLED_FAULTS);
	held_start_at(point, x.b.d, &loser);
	expect_child_apart(&x);
	assert_int_equal(held_let_go(point, &loser), RIG_LOST);
	assert_int_equal(rig_wait(x.open), RIG_LOST);
	assert_int_equal(polled_count(x.b.p, POLLED_STOP), 1);
	drop(&x);
	help_close(&x.b);
}

static void a_fork_beside_a_loss_leaves_the_stop_to_the_parent(void **state)
{
	(void)state;
	fork_beside_a_loss(RT_HOOK_LOST);
	held_reset();
	fork_beside_a_loss(RT_HOOK_STOP);
	held_reset();
	fork_beside_a_loss(RT_HOOK_ENDED);
}

static void fork_beside_a_put(enum rig_rt_hook_point point)
{
	struct inherited x = prepare();
	struct actor putter = {.deed = held_put, .buffer = help_buffer(x.b.d, HELD_BYTES)};
	uint64_t address = rig_buffer_address(putter.buffer);
	struct rig_buffer *again;

	held_start_at(point, x.b.d, &putter);
	expect_child_apart(&x);
	assert_ok(held_let_go(point, &putter));
	again = help_buffer(x.b.d, HELD_BYTES);
	assert_int_equal(rig_buffer_address(again), address);
	rig_buffer_put(again);
	drop(&x);
	help_close(&x.b);
}

/* Also from within the lock of what the device holds. */
static void a_fork_beside_a_put_leaves_the_memory_to_the_parent(void **state)
{
	(void)state;
	fork_beside_a_put(RT_HOOK_PUT);
	held_reset();
	fork_beside_a_put(RT_HOOK_CACHING);
}

/* ---- Close beside open ---- */

/* Drops the device that was closed, and closes the one that its opener made since. */
static void close_second(struct bench *b, struct rig_device *d)
{
	rig_device_put(b->d);
	b->d = d;
	help_close(b);
}

/* E-035, E-252 */
static void an_open_waits_for_the_stop_of_the_device_before(void **state)
{
	struct bench b = open_bench();
	struct actor closer = {.deed = held_end, .d = b.d};
	struct actor opener = {.deed = held_begin, .opener = polled_opener(b.p)};

	(void)state;
	held_start_at(RT_HOOK_STOP, b.d, &closer);
	held_start(&opener);
	held_await_came(RT_HOOK_EARLIER, 1);
	assert_int_equal(polled_count(b.p, POLLED_MAKE), 1);
	assert_ok(held_let_go(RT_HOOK_STOP, &closer));
	assert_ok(held_join(&opener));
	assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
	assert_int_equal(polled_count(b.p, POLLED_MAKE), 2);
	close_second(&b, opener.d);
}

/* The device before is stopped and all of its memory is the library's to give back: nobody does it twice. */
static void an_open_meets_a_close_that_has_given_nothing_back(void **state)
{
	struct bench b = open_bench();
	struct actor closer = {.deed = held_end, .d = b.d};
	struct actor opener = {.deed = held_begin, .opener = polled_opener(b.p)};

	(void)state;
	rig_buffer_put(help_buffer(b.d, HELD_BYTES));
	held_start_at(RT_HOOK_ENDED, b.d, &closer);
	held_start(&opener);
	assert_ok(held_let_go(RT_HOOK_ENDED, &closer));
	assert_ok(held_join(&opener));
	assert_int_equal(polled_count(b.p, POLLED_FREE), 1);
	close_second(&b, opener.d);
}

/* An open that found the device before while it stopped, and goes on only when all of it is over. */
static void an_open_that_comes_late_to_a_close_opens(void **state)
{
	struct bench b = open_bench();
	struct actor closer = {.deed = held_end, .d = b.d};
	struct actor opener = {.deed = held_begin, .opener = polled_opener(b.p)};

	(void)state;
	held_start_at(RT_HOOK_STOP, b.d, &closer);
	held_start_at(RT_HOOK_EARLIER, b.d, &opener);
	held_close(RT_HOOK_ENDED, b.d, 1);
	held_open(RT_HOOK_STOP);
	held_await(RT_HOOK_ENDED, 1);
	held_open(RT_HOOK_EARLIER);
	assert_ok(held_let_go(RT_HOOK_ENDED, &closer));
	assert_ok(held_join(&opener));
	close_second(&b, opener.d);
}

/* E-240 */
static void two_closes_stop_once_and_return_after_it(void **state)
{
	struct bench b = open_bench();
	struct actor closers[2] = {{.deed = held_end, .d = b.d}, {.deed = held_end, .d = b.d}};

	(void)state;
	held_close(RT_HOOK_STOP, b.d, 2);
	held_start(&closers[0]);
	held_await(RT_HOOK_STOP, 1);
	held_start(&closers[1]);
	assert_ok(held_let_go(RT_HOOK_STOP, &closers[1]));
	assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
	assert_ok(held_join(&closers[0]));
	help_end(&b);
}

/* Who asks for the word first gives all back; who comes meanwhile leaves it to that one. */
static void one_thread_gives_back_what_a_stopped_device_had(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct actor closer = {.deed = held_end};
	struct bench b, other;

	(void)state;
	o.own_word = true;
	o1.name = "P1";
	b = help_open(&o);
	closer.d = b.d;
	rig_buffer_put(help_buffer(b.d, HELD_BYTES));
	held_driver(b.p, POLLED_SIGNALED);
	held_start(&closer);
	held_driver_await();
	/* Looks at every device for what is to be given back. */
	other = help_open(&o1);
	rig_cache_trim(b.d, 0);
	assert_int_equal(polled_count(b.p, POLLED_FREE), 0);
	assert_int_equal(polled_count(b.p, POLLED_SIGNALED), 1);
	held_driver_open();
	assert_ok(held_join(&closer));
	help_end(&b);
	help_close(&other);
}

#define HELD(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        HELD(memory_between_its_last_put_and_the_cache_is_nobodys),
	        HELD(memory_put_while_two_look_for_some_goes_to_one),
	        HELD(memory_put_beside_its_devices_whole_end_goes_back_to_the_driver),
	        HELD(memory_put_before_a_stop_goes_back_after_it),
	        HELD(memory_put_right_after_a_stop_goes_back),
	        HELD(a_fork_beside_a_counted_call_leaves_it_to_the_parent),
	        HELD(a_fork_beside_a_turn_leaves_its_lock_to_the_parent),
	        HELD(a_fork_beside_a_loss_leaves_the_stop_to_the_parent),
	        HELD(a_fork_beside_a_put_leaves_the_memory_to_the_parent),
	        HELD(an_open_waits_for_the_stop_of_the_device_before),
	        HELD(an_open_meets_a_close_that_has_given_nothing_back),
	        HELD(an_open_that_comes_late_to_a_close_opens),
	        HELD(one_thread_gives_back_what_a_stopped_device_had),
	        HELD(two_closes_stop_once_and_return_after_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
