/* SPDX-License-Identifier: MIT */
/* How submits, losses and commits meet: a thread is held at a point of the library while another goes on. */
#include <string.h>

#include "held.h"

static int reset(void **state)
{
	(void)state;
	held_reset();
	return 0;
}

/* A device whose cold calls can be made to lose it, by a thread that allocates. */
static void lose_by_alloc(struct bench *b, struct actor *loser)
{
	polled_fail(b->p, POLLED_ALLOC, 1, POLLED_FAULTS);
	*loser = (struct actor){.deed = held_create, .d = b->d};
	held_start(loser);
}

/* Reached or lost: nothing stays open. */
static void expect_judged(const struct actor *a)
{
	if (a->code == 0)
		assert_true(rig_reached(a->point) == 1 || rig_reached(a->point) == RIG_LOST);
	else
		assert_int_equal(a->code, RIG_LOST);
}

/* The how-manieth value of the device it is; slots and their values serve devices in turn. */
static uint64_t order_of(const struct bench *b, struct rig_point point)
{
	return rig_point_value(point) + polled_count(b->p, POLLED_SUBMIT) - rig_submitted(b->d);
}

/* ---- The turn ---- */

/* E-103 */
static void who_comes_to_a_taken_turn_gets_a_later_value(void **state)
{
	struct polled_options o = help_options();
	struct actor first = {.deed = held_submit}, second[2];
	struct bench b;
	int i;

	(void)state;
	o.may_block = true;
	b = help_open(&o);
	first.s = help_empty(b.d);
	held_driver(b.p, POLLED_SUBMIT);
	held_start(&first);
	held_driver_await();
	for (i = 0; i < 2; i++) {
		second[i] = (struct actor){.deed = held_submit, .s = first.s};
		held_start(&second[i]);
	}
	held_await_came(RT_HOOK_TURN_WAITS, 2);
	assert_int_equal(polled_count(b.p, POLLED_SUBMIT), 1);
	held_driver_open();
	assert_ok(held_join(&first));
	for (i = 0; i < 2; i++)
		assert_ok(held_join(&second[i]));
	assert_int_equal(order_of(&b, first.point), 1);
	assert_int_equal(order_of(&b, second[0].point) + order_of(&b, second[1].point), 2 + 3);
	rig_submission_put(first.s);
	help_close(&b);
}

/* The same where the lock is the turn. */
static void who_has_the_turn_gets_the_earlier_value(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct actor first = {.deed = held_submit, .s = help_empty(b.d)}, second = first;

	(void)state;
	held_start_at(RT_HOOK_TURN, b.d, &first);
	held_start(&second);
	assert_ok(held_let_go(RT_HOOK_TURN, &first));
	assert_ok(held_join(&second));
	assert_int_equal(order_of(&b, first.point), 1);
	assert_int_equal(order_of(&b, second.point), 2);
	rig_submission_put(first.s);
	help_close(&b);
}

static struct rig_submission *words_of(struct rig_device *d, uint32_t nparts)
{
	static const uint32_t word = 1;
	struct rig_work parts[4] = {{.kind = RIG_WORDS, .u.words = {&word, 1}}};
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = parts, .nparts = nparts};
	struct rig_submission *s;
	uint32_t i;

	for (i = 1; i < nparts; i++)
		parts[i] = parts[0];
	assert_ok(rig_submission_make(d, &description, &s));
	return s;
}

static void a_small_submission_passes_one_that_waits_for_room(void **state)
{
	struct polled_options o = help_options();
	struct actor large = {.deed = held_submit};
	struct rig_submission *small;
	struct rig_point point;
	struct bench b;

	(void)state;
	o.capacity = 1;
	b = help_open(&o);
	large.s = words_of(b.d, 4);
	small = words_of(b.d, 1);
	assert_ok(rig_submit(small, NULL, NULL, 0, NULL));
	held_start_at(RT_HOOK_LATER, b.d, &large);
	assert_int_equal(polled_run(b.p, 1), 1);
	point = help_submit(small, NULL);
	assert_int_equal(order_of(&b, point), 2);
	assert_int_equal(polled_run(b.p, 1), 1);
	assert_ok(held_let_go(RT_HOOK_LATER, &large));
	assert_int_equal(order_of(&b, large.point), 3);
	rig_submission_put(large.s);
	rig_submission_put(small);
	help_close(&b);
}

/* ---- Loss beside submit ---- */

/* E-239, E-240: the stop comes after the call that is in the driver. */
static void a_loss_tells_who_waits_for_the_turn_and_stops_after_who_has_it(void **state)
{
	struct polled_options o = help_options();
	struct actor inside = {.deed = held_submit}, waiting, loser;
	struct bench b;

	(void)state;
	o.may_block = true;
	b = help_open(&o);
	inside.s = help_empty(b.d);
	waiting = inside;
	held_driver(b.p, POLLED_SUBMIT);
	held_start(&inside);
	held_driver_await();
	held_start(&waiting);
	held_await_came(RT_HOOK_TURN_WAITS, 1);
	lose_by_alloc(&b, &loser);
	assert_int_equal(held_join(&loser), RIG_LOST);
	assert_int_equal(held_join(&waiting), RIG_LOST);
	assert_int_equal(polled_count(b.p, POLLED_STOP), 0);
	held_driver_open();
	assert_int_equal(held_join(&inside), RIG_LOST);
	assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
	assert_int_equal(polled_count(b.p, POLLED_SUBMIT), 1);
	rig_submission_put(inside.s);
	help_close(&b);
}

struct pair {
	struct bench producer, consumer;
	struct rig_submission *theirs;
	struct rig_point open; /* of the producer; cannot be reached */
	struct actor submitter, loser;
};

static struct pair open_pair(void)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct pair x = {.submitter.deed = held_submit};

	o1.name = "P1";
	o1.waits.hosts = o1.waits.stores = true;
	x.producer = help_open(&o);
	x.consumer = help_open(&o1);
	polled_gate(x.producer.p, 0);
	x.theirs = help_empty(x.producer.d);
	x.open = help_submit(x.theirs, NULL);
	x.submitter.s = help_empty(x.consumer.d);
	x.submitter.wait = x.open;
	return x;
}

static void close_pair(struct pair *x)
{
	rig_submission_put(x->theirs);
	rig_submission_put(x->submitter.s);
	help_close(&x->consumer);
	help_close(&x->producer);
}

/* E-238 */
static void a_loss_between_the_record_and_the_hand_over_takes_the_submitters_device(void **state)
{
	struct pair x = open_pair();
	const char *reason;

	(void)state;
	held_start_at(RT_HOOK_RECORDED, x.consumer.d, &x.submitter);
	held_close(RT_HOOK_LOST, x.producer.d, 1);
	lose_by_alloc(&x.producer, &x.loser);
	held_await(RT_HOOK_LOST, 1);
	assert_true(rig_lost(x.producer.d, NULL));
	/* Its lock is held by who stands: the driver is not asked, as in a callback. */
	rig_locks_add(1);
	assert_false(rig_lost(x.consumer.d, NULL));
	rig_locks_add(-1);
	held_open(RT_HOOK_LOST);
	held_open(RT_HOOK_RECORDED);
	assert_int_equal(held_join(&x.loser), RIG_LOST);
	(void)held_join(&x.submitter);
	assert_true(rig_lost(x.consumer.d, &reason));
	assert_string_equal(reason, "P0 lost: injected fault");
	expect_judged(&x.submitter);
	assert_int_not_equal(rig_reached(x.submitter.point), 1);
	close_pair(&x);
}

static void who_submits_after_a_loss_finds_it_before_it_is_told(void **state)
{
	struct pair x = open_pair();

	(void)state;
	held_close(RT_HOOK_LOST, x.producer.d, 1);
	lose_by_alloc(&x.producer, &x.loser);
	held_await(RT_HOOK_LOST, 1);
	held_start(&x.submitter);
	assert_int_equal(held_join(&x.submitter), RIG_LOST);
	assert_int_equal(polled_count(x.consumer.p, POLLED_SUBMIT), 0);
	assert_int_equal(held_let_go(RT_HOOK_LOST, &x.loser), RIG_LOST);
	assert_ok(rig_wait(help_submit(x.submitter.s, NULL)));
	close_pair(&x);
}

/* It was not there when the submit asked for the point, and comes to look at the record too late. */
static void a_loss_before_the_record_is_found_in_the_turn(void **state)
{
	struct pair x = open_pair();

	(void)state;
	held_start_at(RT_HOOK_TURN, x.consumer.d, &x.submitter);
	held_close(RT_HOOK_LOST, x.producer.d, 1);
	lose_by_alloc(&x.producer, &x.loser);
	held_await(RT_HOOK_LOST, 1);
	assert_int_equal(held_let_go(RT_HOOK_TURN, &x.submitter), RIG_LOST);
	assert_int_equal(held_let_go(RT_HOOK_LOST, &x.loser), RIG_LOST);
	assert_int_equal(polled_count(x.consumer.p, POLLED_SUBMIT), 0);
	assert_ok(rig_wait(help_submit(x.submitter.s, NULL)));
	close_pair(&x);
}

/* E-238: what a stop that follows raises must not let the waiting queue run. */
static void no_device_stops_before_those_that_wait_for_it_are_lost(void **state)
{
	struct pair x = open_pair();

	(void)state;
	held_start(&x.submitter);
	assert_ok(held_join(&x.submitter));
	held_close(RT_HOOK_STOP, NULL, 1);
	lose_by_alloc(&x.producer, &x.loser);
	held_await(RT_HOOK_STOP, 1);
	assert_true(rig_lost(x.producer.d, NULL));
	assert_true(rig_lost(x.consumer.d, NULL));
	assert_int_equal(rig_reached(x.submitter.point), RIG_LOST);
	assert_int_equal(held_let_go(RT_HOOK_STOP, &x.loser), RIG_LOST);
	close_pair(&x);
}

/* E-251 */
static void a_value_handed_over_beside_a_close_is_reached_or_lost(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct actor submitter = {.deed = held_submit, .s = help_empty(b.d)};
	struct actor closer = {.deed = held_end, .d = b.d};

	(void)state;
	held_start_at(RT_HOOK_TURN, b.d, &submitter);
	held_start(&closer);
	assert_ok(held_let_go(RT_HOOK_TURN, &submitter));
	assert_ok(held_join(&closer));
	expect_judged(&submitter);
	assert_int_equal(polled_count(b.p, POLLED_SUBMIT), 1);
	rig_submission_put(submitter.s);
	help_end(&b);
}

/* ---- Commit beside loss ---- */

static struct bench open_batching(bool may_block)
{
	struct polled_options o = help_options();

	o.batch = true;
	o.may_block = may_block;
	return help_open(&o);
}

/* E-239 */
static void a_loss_beside_a_commit_in_the_driver_stops_after_it(void **state)
{
	struct bench b = open_batching(true);
	struct rig_submission *s = help_empty(b.d);
	struct actor waiter = {.deed = held_wait}, loser;

	(void)state;
	polled_gate(b.p, 0);
	waiter.wait = help_submit(s, NULL);
	held_driver(b.p, POLLED_COMMIT);
	held_start(&waiter);
	held_driver_await();
	lose_by_alloc(&b, &loser);
	assert_int_equal(held_join(&loser), RIG_LOST);
	assert_int_equal(polled_count(b.p, POLLED_STOP), 0);
	held_driver_open();
	assert_int_equal(held_join(&waiter), RIG_LOST);
	assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
	rig_submission_put(s);
	help_close(&b);
}

static void who_waits_on_a_lost_device_commits_nothing(void **state)
{
	struct bench b = open_batching(false);
	struct rig_submission *s = help_empty(b.d);
	struct actor waiter = {.deed = held_wait}, loser;

	(void)state;
	waiter.wait = help_submit(s, NULL);
	held_close(RT_HOOK_LOST, b.d, 1);
	lose_by_alloc(&b, &loser);
	held_await(RT_HOOK_LOST, 1);
	held_start(&waiter);
	assert_int_equal(held_join(&waiter), RIG_LOST);
	assert_int_equal(polled_count(b.p, POLLED_COMMIT), 0);
	assert_int_equal(held_let_go(RT_HOOK_LOST, &loser), RIG_LOST);
	rig_submission_put(s);
	help_close(&b);
}

/* The loser is in its call, so that it needs the lock for nothing but the loss. */
static void a_loss_follows_a_commit_under_the_lock(void **state)
{
	struct bench b = open_batching(false);
	struct rig_submission *s = help_empty(b.d);
	struct actor waiter = {.deed = held_wait}, loser;

	(void)state;
	polled_gate(b.p, 0);
	waiter.wait = help_submit(s, NULL);
	held_close(RT_HOOK_ENTERED, b.d, 1);
	lose_by_alloc(&b, &loser);
	held_await(RT_HOOK_ENTERED, 1);
	held_start_at(RT_HOOK_COMMIT, b.d, &waiter);
	held_open(RT_HOOK_ENTERED);
	held_open(RT_HOOK_COMMIT);
	assert_int_equal(held_join(&loser), RIG_LOST);
	assert_int_equal(held_join(&waiter), RIG_LOST);
	assert_int_equal(polled_count(b.p, POLLED_COMMIT), 1);
	rig_submission_put(s);
	help_close(&b);
}

#define HELD(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        HELD(who_comes_to_a_taken_turn_gets_a_later_value),
	        HELD(who_has_the_turn_gets_the_earlier_value),
	        HELD(a_small_submission_passes_one_that_waits_for_room),
	        HELD(a_loss_tells_who_waits_for_the_turn_and_stops_after_who_has_it),
	        HELD(a_loss_between_the_record_and_the_hand_over_takes_the_submitters_device),
	        HELD(who_submits_after_a_loss_finds_it_before_it_is_told),
	        HELD(a_loss_before_the_record_is_found_in_the_turn),
	        HELD(no_device_stops_before_those_that_wait_for_it_are_lost),
	        HELD(a_value_handed_over_beside_a_close_is_reached_or_lost),
	        HELD(a_loss_beside_a_commit_in_the_driver_stops_after_it),
	        HELD(who_waits_on_a_lost_device_commits_nothing),
	        HELD(a_loss_follows_a_commit_under_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
