/* SPDX-License-Identifier: MIT */
/* Loss: once, for good, with its reason; what it takes along and what it leaves alone. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "rig_help.h"

/* Loses the device by a fault in sleep; the work in flight stays unreached. */
static struct rig_point lose(struct bench *b, unsigned values)
{
	struct rig_submission *s = help_empty(b->d);
	struct rig_point point = {0};
	unsigned i;

	polled_gate(b->p, polled_last(b->p));
	for (i = 0; i < values; i++)
		point = help_submit(s, NULL);
	rig_submission_put(s);
	polled_fail(b->p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_wait(point), RIG_LOST);
	return point;
}

/* E-233, E-010: stop raised the word past the dropped values. */
static void dropped_values_never_count_as_reached(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o), c;
	struct rig_point last = lose(&b, 3), first = {last.bits - 2};
	const char *reason;

	(void)state;
	assert_true(rig_lost(b.d, &reason));
	assert_string_equal(reason, "injected fault");
	assert_string_equal(polled_stop_reason(b.p), "injected fault");
	assert_int_equal(rig_word_load(&rig_words()[rig_point_slot(last)]), rig_point_value(last));
	assert_int_equal(rig_reached(last), RIG_LOST);
	assert_int_equal(rig_reached(first), RIG_LOST);
	assert_int_equal(rig_wait(first), RIG_LOST);
	assert_non_null(strstr(rig_error(), "P0"));
	assert_non_null(strstr(rig_error(), "injected fault"));
	assert_int_equal(rig_signaled(b.d), rig_point_value(first) - 1);
	assert_int_equal(rig_submitted(b.d), rig_point_value(last));
	help_end(&b);
	/* Also once another device has the slot. */
	c = help_open(&o);
	assert_int_equal(rig_reached(last), RIG_LOST);
	help_close(&c);
	assert_int_equal(rig_reached(first), RIG_LOST);
}

/* A word that stands still tells nothing of a fault, so polling asks now and then. */
static void a_program_that_only_polls_is_told_of_a_fault(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point;
	int reached;

	(void)state;
	polled_gate(b.p, polled_last(b.p));
	point = help_submit(s, NULL);
	rig_submission_put(s);
	polled_fail(b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	do
		reached = rig_reached(point);
	while (!reached);
	assert_int_equal(reached, RIG_LOST);
	assert_non_null(strstr(rig_error(), "injected fault"));
	help_end(&b);
}

static void reached_values_of_a_lost_device_stay_reached(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_submission *s = help_empty(b.d);
	struct rig_point done = help_submit(s, NULL);

	(void)state;
	assert_ok(rig_wait(done));
	rig_submission_put(s);
	(void)lose(&b, 1);
	assert_ok(rig_wait(done));
	assert_int_equal(rig_reached(done), 1);
	help_end(&b);
}

static void a_lost_device_answers_lost_to_every_use(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *buffer = help_buffer(b.d, 64), *other;
	struct rig_image *image = help_image(b.d), *more;
	struct rig_submission *s = help_copy(b.d, 64), *t;
	struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct rig_run_args *run = help_copy_run(s, buffer, buffer);
	struct rig_dma_answer answer;
	struct rig_entry entry;
	char byte = 0;

	(void)state;
	(void)lose(&b, 1);
	assert_int_equal(rig_submit(s, run, NULL, 0, NULL), RIG_LOST);
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 1, &other), RIG_LOST);
	assert_int_equal(rig_buffer_write(buffer, 0, &byte, 1), RIG_LOST);
	assert_int_equal(rig_buffer_read(buffer, 0, &byte, 1), RIG_LOST);
	assert_int_equal(rig_buffer_copy(buffer, 0, buffer, 32, 1), RIG_LOST);
	assert_int_equal(rig_buffer_dma(buffer, &answer), RIG_LOST);
	assert_int_equal(rig_image_load(b.d, POLLED_BINARY, sizeof(POLLED_BINARY), &more), RIG_LOST);
	assert_int_equal(rig_image_entry(image, "add", &entry), RIG_LOST);
	assert_int_equal(rig_submission_make(b.d, &description, &t), RIG_LOST);
	assert_non_null(strstr(rig_error(), "injected fault"));
	assert_ok(rig_close(b.d));
	rig_run_put(run);
	rig_submission_put(s);
	rig_image_put(image);
	rig_buffer_put(buffer);
	help_end(&b);
}

/* E-132, E-011: the failed submit's value counts as submitted. */
static void a_failed_submit_loses_the_device_with_its_text(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_submission *s = help_empty(b.d);
	uint64_t before = rig_submitted(b.d);
	const char *reason;

	(void)state;
	polled_fail(b.p, POLLED_SUBMIT, 1, POLLED_FAULTS);
	assert_int_equal(rig_submit(s, NULL, NULL, 0, NULL), RIG_LOST);
	assert_true(rig_lost(b.d, &reason));
	assert_string_equal(reason, "injected failure of submit");
	assert_int_equal(rig_submitted(b.d), before + 1);
	assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
	rig_submission_put(s);
	help_end(&b);
}

/* E-144 */
static void a_failed_commit_loses_the_device(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_submission *s;
	struct rig_point point;

	(void)state;
	o.batch = true;
	b = help_open(&o);
	s = help_empty(b.d);
	point = help_submit(s, NULL);
	polled_fail(b.p, POLLED_COMMIT, 1, POLLED_FAULTS);
	assert_int_equal(rig_wait(point), RIG_LOST);
	assert_string_equal(polled_stop_reason(b.p), "injected failure of commit");
	rig_submission_put(s);
	help_end(&b);
}

/* E-238: b's queue waits for a; c waited on the host and lives. */
static void a_loss_takes_the_devices_whose_queues_wait_for_it(void **state)
{
	struct polled_options o = help_options(), o1 = help_options(), o2 = help_options();
	struct rig_submission *sa, *sb, *sc;
	struct rig_point pa, pb;
	struct bench a, b, c;
	const char *reason;

	(void)state;
	o.completion = RIG_HOST;
	o1.name = "P1";
	o1.waits.hosts = true;
	o2.name = "P2";
	a = help_open(&o);
	b = help_open(&o1);
	c = help_open(&o2);
	sa = help_empty(a.d);
	sb = help_empty(b.d);
	sc = help_empty(c.d);
	polled_gate(a.p, 1 + polled_last(a.p));
	pa = help_submit(sa, NULL);
	assert_ok(rig_submit(sb, NULL, &pa, 1, NULL)); /* will be reached: harms nothing */
	assert_int_equal(polled_run(a.p, 1), 1);
	assert_int_equal(polled_run(b.p, 1), 1);
	pa = help_submit(sa, NULL);
	assert_ok(rig_submit(sb, NULL, &pa, 1, &pb));
	polled_fail(a.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_submit(sc, NULL, &pa, 1, NULL), RIG_LOST);
	assert_true(rig_lost(a.d, NULL));
	assert_true(rig_lost(b.d, &reason));
	assert_string_equal(reason, "P0 lost: injected fault");
	assert_int_equal(rig_reached(pb), RIG_LOST);
	assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
	/* stop is told of faults and hangs of the device itself. */
	assert_string_equal(polled_stop_reason(a.p), "injected fault");
	assert_null(polled_stop_reason(b.p));
	assert_false(rig_lost(c.d, NULL));
	assert_ok(rig_wait(help_submit(sc, NULL)));
	rig_submission_put(sa);
	rig_submission_put(sb);
	rig_submission_put(sc);
	help_end(&a);
	help_end(&b);
	help_close(&c);
}

static void a_producers_loss_spares_a_queue_that_is_past_it(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct rig_submission *sa, *sb;
	struct rig_point pa, pb;
	struct bench a, b;

	(void)state;
	o.completion = RIG_HOST;
	o1.name = "P1";
	o1.waits.hosts = true;
	a = help_open(&o);
	b = help_open(&o1);
	sa = help_empty(a.d);
	sb = help_empty(b.d);
	pa = help_submit(sa, NULL);
	assert_ok(rig_submit(sb, NULL, &pa, 1, &pb));
	assert_int_equal(polled_run(a.p, 1), 1);
	(void)lose(&a, 1);
	assert_false(rig_lost(b.d, NULL));
	assert_ok(rig_wait(pb));
	rig_submission_put(sa);
	rig_submission_put(sb);
	help_end(&a);
	help_close(&b);
}

/* Memory whose points the lost device reached is ordinary again; memory it did not is lost with it. */
static void memory_follows_the_points_of_the_lost_device(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct rig_buffer *reached, *unreached, *there[2];
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point point;
	struct bench a, b;
	char text[4] = "abc";

	(void)state;
	o.peers = o1.peers = true;
	o1.name = "P1";
	a = help_open(&o);
	b = help_open(&o1);
	reached = help_buffer(a.d, 64);
	unreached = help_buffer(a.d, 64);
	assert_ok(rig_buffer_borrow(b.d, reached, &there[0]));
	assert_ok(rig_buffer_borrow(b.d, unreached, &there[1]));
	s = help_copy(b.d, 64);
	run = help_copy_run(s, there[0], there[0]);
	assert_ok(rig_wait(help_submit(s, run)));
	rig_run_put(run);
	run = help_copy_run(s, there[1], there[1]);
	polled_gate(b.p, polled_last(b.p));
	point = help_submit(s, run);
	rig_run_put(run);
	rig_submission_put(s);
	polled_fail(b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_wait(point), RIG_LOST);
	assert_ok(rig_buffer_write(reached, 0, text, 4));
	assert_int_equal(rig_buffer_write(unreached, 0, text, 4), RIG_LOST);
	assert_non_null(strstr(rig_error(), "P1"));
	assert_false(rig_lost(a.d, NULL));
	rig_buffer_put(there[0]);
	rig_buffer_put(there[1]);
	rig_buffer_put(reached);
	rig_buffer_put(unreached);
	help_end(&b);
	help_close(&a);
}

/* E-235: close waits for what was submitted. */
static void close_waits_for_the_work_before_it(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point;

	(void)state;
	(void)help_submit(s, NULL);
	point = help_submit(s, NULL);
	rig_submission_put(s);
	assert_ok(rig_close(b.d));
	assert_int_equal(rig_reached(point), 1);
	assert_ok(rig_wait(point));
	help_end(&b);
}

/* E-042 */
static void a_lost_name_opens_again_after_its_stop(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_device *again;
	struct rig_submission *s;

	(void)state;
	(void)lose(&b, 2);
	assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
	polled_gate(b.p, UINT64_MAX);
	assert_ok(rig_open(polled_opener(b.p), &again));
	s = help_empty(again);
	assert_ok(rig_wait(help_submit(s, NULL)));
	rig_submission_put(s);
	assert_ok(rig_close(again));
	rig_device_put(again);
	help_end(&b);
}

/* All its work is done, none: the value before its first is the last one of the device that was lost. */
static void a_device_in_the_slot_of_a_lost_one_does_not_inherit_the_loss(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_point dropped = lose(&b, 2), first;
	struct rig_device *again;
	struct rig_submission *s;

	(void)state;
	polled_gate(b.p, UINT64_MAX);
	assert_ok(rig_open(polled_opener(b.p), &again));
	assert_int_equal(rig_submitted(again), rig_point_value(dropped));
	assert_ok(rig_wait_device(again, rig_submitted(again)));
	assert_false(rig_lost(again, NULL));
	assert_int_equal(rig_wait(dropped), RIG_LOST); /* which stays so */
	s = help_empty(again);
	first = help_submit(s, NULL);
	assert_int_equal(rig_point_slot(first), rig_point_slot(dropped));
	assert_ok(rig_wait(first));
	rig_submission_put(s);
	assert_ok(rig_close(again));
	rig_device_put(again);
	help_end(&b);
}

struct blocked {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum polled_call call;
	bool inside, open;
	struct bench b;
	struct rig_submission *s;
	struct rig_image *image;
	int answer;
};

static void block(void *arg, enum polled_call call)
{
	struct blocked *x = arg;

	if (call != x->call)
		return;
	(void)pthread_mutex_lock(&x->lock);
	x->inside = true;
	(void)pthread_cond_broadcast(&x->changed);
	while (!x->open)
		(void)pthread_cond_wait(&x->changed, &x->lock);
	(void)pthread_mutex_unlock(&x->lock);
}

static void *call_blocked(void *arg)
{
	struct blocked *x = arg;
	struct rig_buffer *buffer = NULL;
	struct rig_image *image = NULL;
	struct rig_entry entry;

	switch (x->call) {
	case POLLED_ALLOC:
		x->answer = rig_buffer_create(x->b.d, RIG_DEVICE, 64, &buffer);
		rig_buffer_put(buffer);
		break;
	case POLLED_LOAD:
	case POLLED_PLACE:
		x->answer = rig_image_load(x->b.d, POLLED_BINARY, sizeof(POLLED_BINARY), &image);
		rig_image_put(image);
		break;
	case POLLED_ENTRY:
		x->answer = rig_image_entry(x->image, "add", &entry);
		break;
	default:
		x->answer = rig_submit(x->s, NULL, NULL, 0, NULL);
	}
	return NULL;
}

/* E-061, E-216, E-239: the driver's checks tell a stop beside a call; stop comes when the call returned. */
static void stop_waits_for_the_call_in_flight(void **state)
{
	static const enum polled_call calls[] = {
	        POLLED_SUBMIT, POLLED_ROOM, POLLED_ALLOC, POLLED_LOAD, POLLED_PLACE, POLLED_ENTRY};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct polled_options o = help_options();
		struct blocked x = {.lock = PTHREAD_MUTEX_INITIALIZER,
		        .changed = PTHREAD_COND_INITIALIZER,
		        .call = calls[i]};
		struct rig_submission *s;
		struct rig_point point;
		pthread_t thread;

		o.may_block = true;
		o.place = calls[i] == POLLED_PLACE;
		x.b = help_open(&o);
		x.s = help_empty(x.b.d);
		x.image = help_image(x.b.d);
		s = help_empty(x.b.d);
		polled_gate(x.b.p, polled_last(x.b.p));
		point = help_submit(s, NULL);
		polled_hook(x.b.p, block, &x);
		assert_int_equal(pthread_create(&thread, NULL, call_blocked, &x), 0);
		(void)pthread_mutex_lock(&x.lock);
		while (!x.inside)
			(void)pthread_cond_wait(&x.changed, &x.lock);
		(void)pthread_mutex_unlock(&x.lock);
		polled_fail(x.b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
		assert_int_equal(rig_wait(point), RIG_LOST);
		assert_int_equal(polled_count(x.b.p, POLLED_STOP), 0);
		(void)pthread_mutex_lock(&x.lock);
		x.open = true;
		(void)pthread_cond_broadcast(&x.changed);
		(void)pthread_mutex_unlock(&x.lock);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(polled_count(x.b.p, POLLED_STOP), 1);
		polled_hook(x.b.p, NULL, NULL);
		rig_image_put(x.image);
		rig_submission_put(x.s);
		rig_submission_put(s);
		help_end(&x.b);
	}
}

struct closes {
	struct rig_device *d;
	struct bench *b;
};

static void *close_it(void *arg)
{
	struct closes *c = arg;

	(void)rig_close(c->d);
	return NULL;
}

static void *fault_it(void *arg)
{
	struct closes *c = arg;
	struct rig_buffer *buffer;

	polled_fail(c->b->p, POLLED_ALLOC, 1, POLLED_FAULTS);
	if (rig_buffer_create(c->d, RIG_DEVICE, 64, &buffer) == 0)
		rig_buffer_put(buffer);
	return NULL;
}

/* E-240, E-241 */
static void racing_causes_stop_the_device_once(void **state)
{
	int round;

	(void)state;
	for (round = 0; round < 200; round++) {
		struct polled_options o = help_options();
		struct bench b = help_open(&o);
		struct closes c = {b.d, &b};
		pthread_t threads[3];
		size_t i;

		for (i = 0; i < 3; i++)
			assert_int_equal(
			        pthread_create(&threads[i], NULL, i == 1 ? fault_it : close_it, &c), 0);
		for (i = 0; i < 3; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_ok(rig_close(b.d));
		assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
		help_end(&b);
	}
}

static void fail_in_make(void *arg, enum polled_call call)
{
	if (call == POLLED_MAKE)
		rig_fail(arg);
}

/* E-236: last, for a failed process stays failed. It fails while a device opens, which is lost too. */
static void a_failed_process_loses_every_device_and_opens_none(void **state)
{
	static char why[] = "the other machine is gone";
	struct polled_options o = help_options(), o1 = help_options(), o2 = help_options();
	struct bench a = help_open(&o), b, late;
	struct rig_device *again;
	const char *reason;
	unsigned makes;

	(void)state;
	/* The first loss that was no close, of the tests before. */
	assert_non_null(rig_failure());
	o1.name = "P1";
	b = help_open(&o1);
	o2.name = "P2";
	late.p = polled_new(&o2);
	polled_hook(late.p, fail_in_make, why);
	assert_ok(rig_open(polled_opener(late.p), &late.d));
	assert_true(rig_lost(a.d, &reason));
	assert_string_equal(reason, why);
	assert_true(rig_lost(b.d, NULL));
	assert_true(rig_lost(late.d, &reason));
	assert_string_equal(reason, why);
	assert_string_equal(rig_failure(), why);
	rig_fail("later");
	assert_string_equal(rig_failure(), why);
	makes = polled_count(a.p, POLLED_MAKE);
	assert_int_equal(rig_open(polled_opener(a.p), &again), -ECANCELED);
	assert_int_equal(polled_count(a.p, POLLED_MAKE), makes);
	help_end(&a);
	help_end(&b);
	help_end(&late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(dropped_values_never_count_as_reached),
	        cmocka_unit_test(a_program_that_only_polls_is_told_of_a_fault),
	        cmocka_unit_test(reached_values_of_a_lost_device_stay_reached),
	        cmocka_unit_test(a_lost_device_answers_lost_to_every_use),
	        cmocka_unit_test(a_failed_submit_loses_the_device_with_its_text),
	        cmocka_unit_test(a_failed_commit_loses_the_device),
	        cmocka_unit_test(a_loss_takes_the_devices_whose_queues_wait_for_it),
	        cmocka_unit_test(a_producers_loss_spares_a_queue_that_is_past_it),
	        cmocka_unit_test(memory_follows_the_points_of_the_lost_device),
	        cmocka_unit_test(close_waits_for_the_work_before_it),
	        cmocka_unit_test(a_lost_name_opens_again_after_its_stop),
	        cmocka_unit_test(a_device_in_the_slot_of_a_lost_one_does_not_inherit_the_loss),
	        cmocka_unit_test(stop_waits_for_the_call_in_flight),
	        cmocka_unit_test(racing_causes_stop_the_device_once),
	        cmocka_unit_test(a_failed_process_loses_every_device_and_opens_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
