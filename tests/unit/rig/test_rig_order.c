/* SPDX-License-Identifier: MIT */
/* Work of two devices in the order their memory asks for: in the queue where it can be, else on the host. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "rig_help.h"

#define BYTES 64u

struct pair {
	struct bench a, b;
	struct rig_buffer *mine;   /* on a */
	struct rig_buffer *theirs; /* the same memory on b */
	struct rig_buffer *local;  /* on b */
};

static struct pair open_pair(enum rig_completion completion, bool stores, bool hosts, bool batch)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct pair p;

	o.completion = completion;
	o.batch = batch;
	o1.name = "P1";
	o1.waits.stores = stores;
	o1.waits.hosts = hosts;
	o.peers = o1.peers = true;
	p.a = help_open(&o);
	p.b = help_open(&o1);
	p.mine = help_buffer(p.a.d, BYTES);
	assert_ok(rig_buffer_borrow(p.b.d, p.mine, &p.theirs));
	p.local = help_buffer(p.b.d, BYTES);
	return p;
}

static void close_pair(struct pair *p)
{
	rig_buffer_put(p->theirs);
	rig_buffer_put(p->mine);
	rig_buffer_put(p->local);
	help_close(&p->b);
	help_close(&p->a);
}

/* a fills its memory with `byte`, gated; the point of it. */
static struct rig_point fill(struct pair *p, uint8_t byte)
{
	struct rig_work part = {.kind = RIG_COPY};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .writes = 1};
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point point;

	part.u.copy.row_bytes = BYTES;
	part.u.copy.rows = 1;
	part.u.copy.fill = true;
	part.u.copy.byte = byte;
	assert_ok(rig_submission_make(p->a.d, &description, &s));
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_buffer(run, 0, p->mine));
	point = help_submit(s, run);
	rig_run_put(run);
	rig_submission_put(s);
	return point;
}

static struct rig_point copy_to_local(struct pair *p)
{
	struct rig_submission *s = help_copy(p->b.d, BYTES);
	struct rig_run_args *run = help_copy_run(s, p->theirs, p->local);
	struct rig_point point = help_submit(s, run);

	rig_run_put(run);
	rig_submission_put(s);
	return point;
}

static void expect_local(struct pair *p, uint8_t byte)
{
	uint8_t bytes[BYTES];
	uint32_t i;

	assert_ok(rig_buffer_read(p->local, 0, bytes, BYTES));
	for (i = 0; i < BYTES; i++)
		assert_int_equal(bytes[i], byte);
}

/* Which producers b's queue waits for: E-022, E-054 to E-056. */
static void a_read_follows_a_foreign_write_in_the_queue_where_the_facts_cover_it(void **state)
{
	static const struct {
		enum rig_completion completion;
		bool stores, hosts;
		uint32_t waits;
	} cases[] = {
	        {RIG_STORE, true, false, 1},
	        {RIG_STORE, false, true, 0},
	        {RIG_HOST, false, true, 1},
	        {RIG_HOST, true, false, 0},
	        {RIG_STORE, true, true, 1},
	        {RIG_HOST, false, false, 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair p = open_pair(cases[i].completion, cases[i].stores, cases[i].hosts, false);
		struct rig_point written = fill(&p, 0x41);
		struct rig_point copied = copy_to_local(&p);

		assert_int_equal(polled_nwaits(p.b.p), cases[i].waits);
		/* On the host: the submit came only after the producer's value. */
		assert_int_equal(rig_reached(written), cases[i].waits ? 0 : 1);
		if (cases[i].waits) {
			assert_int_equal(polled_run(p.b.p, 1), 0);
			assert_int_equal(polled_run(p.a.p, 1), 1);
		}
		assert_ok(rig_wait(copied));
		expect_local(&p, 0x41);
		close_pair(&p);
	}
}

static void a_write_follows_every_foreign_use(void **state)
{
	struct pair p = open_pair(RIG_HOST, true, true, false);
	struct rig_point copied, written;

	(void)state;
	assert_ok(rig_wait(fill(&p, 1)));
	copied = copy_to_local(&p); /* b reads, has not run */
	written = fill(&p, 2); /* a must not overwrite before: its facts wait for nothing, so on the host */
	assert_int_equal(rig_reached(copied), 1);
	assert_ok(rig_wait(written));
	expect_local(&p, 1);
	close_pair(&p);
}

/* A run that was submitted while its memory was the device's alone finds out that it no longer is. */
static void a_borrow_made_between_two_submits_of_a_run_is_followed(void **state)
{
	struct pair p = open_pair(RIG_STORE, true, true, false);
	struct rig_submission *s = help_copy(p.b.d, BYTES);
	struct rig_buffer *other = help_buffer(p.b.d, BYTES), *borrowed;
	struct rig_run_args *run = help_copy_run(s, p.local, other);
	struct rig_submission *on_a = help_copy(p.a.d, BYTES);
	struct rig_run_args *run_a;

	(void)state;
	assert_ok(rig_wait(help_submit(s, run)));
	assert_ok(rig_wait(help_submit(s, run)));
	assert_int_equal(polled_nwaits(p.b.p), 0);
	assert_ok(rig_buffer_borrow(p.a.d, other, &borrowed));
	run_a = help_copy_run(on_a, p.mine, borrowed);
	(void)help_submit(on_a, run_a);
	(void)help_submit(s, run);
	assert_int_equal(polled_nwaits(p.b.p), 1);
	(void)polled_run(p.a.p, 1);
	rig_run_put(run);
	rig_run_put(run_a);
	rig_submission_put(s);
	rig_submission_put(on_a);
	rig_buffer_put(borrowed);
	rig_buffer_put(other);
	close_pair(&p);
}

/* Every wait commits its producer first, in-queue ones too. */
static void an_in_queue_wait_commits_its_producer(void **state)
{
	struct pair p = open_pair(RIG_HOST, true, true, true);
	struct rig_point copied;

	(void)state;
	(void)fill(&p, 7);
	assert_int_equal(polled_count(p.a.p, POLLED_COMMIT), 0);
	copied = copy_to_local(&p);
	assert_int_equal(polled_nwaits(p.b.p), 1);
	assert_int_equal(polled_count(p.a.p, POLLED_COMMIT), 1);
	assert_int_equal(polled_run(p.a.p, 1), 1);
	assert_ok(rig_wait(copied));
	expect_local(&p, 7);
	close_pair(&p);
}

static void explicit_waits_are_merged_to_the_latest_of_a_producer(void **state)
{
	struct pair p = open_pair(RIG_HOST, true, true, false);
	struct rig_submission *mine = help_empty(p.a.d), *theirs = help_empty(p.b.d);
	struct rig_point points[3], last;

	(void)state;
	points[0] = help_submit(mine, NULL);
	points[2] = help_submit(mine, NULL);
	points[1] = help_submit(mine, NULL);
	assert_ok(rig_submit(theirs, NULL, points, 3, &last));
	assert_int_equal(polled_nwaits(p.b.p), 1);
	assert_int_equal(polled_run(p.a.p, 2), 2);
	assert_int_equal(polled_run(p.b.p, 1), 0);
	assert_int_equal(polled_run(p.a.p, 1), 1);
	assert_int_equal(polled_run(p.b.p, 1), 1);
	assert_ok(rig_wait(last));
	rig_submission_put(mine);
	rig_submission_put(theirs);
	close_pair(&p);
}

static void a_devices_own_earlier_points_cost_no_wait(void **state)
{
	struct pair p = open_pair(RIG_HOST, true, true, false);
	struct rig_submission *theirs = help_empty(p.b.d);
	struct rig_point first, second;

	(void)state;
	first = help_submit(theirs, NULL);
	assert_ok(rig_submit(theirs, NULL, &first, 1, &second));
	assert_int_equal(polled_nwaits(p.b.p), 0);
	assert_ok(rig_wait(second));
	rig_submission_put(theirs);
	close_pair(&p);
}

/* Many producers: more than a queue takes are waited for on the host. */
static void more_producers_than_a_queue_takes_are_waited_for_here(void **state)
{
	enum { N = 70, MOST_NEEDS = 1024 };
	static char names[N][8];
	struct polled_options o = help_options();
	struct bench producers[N], consumer;
	struct rig_submission *s[N], *mine;
	struct rig_point points[N], last;
	int i, k;

	(void)state;
	for (i = 0; i < N; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "Q%d", i);
		o = help_options();
		o.name = names[i];
		o.completion = RIG_HOST;
		o.capacity = MOST_NEEDS / 64 + 1;
		producers[i] = help_open(&o);
		s[i] = help_empty(producers[i].d);
		points[i] = help_submit(s[i], NULL);
	}
	o = help_options();
	o.waits.hosts = true;
	consumer = help_open(&o);
	mine = help_empty(consumer.d);
	assert_ok(rig_submit(mine, NULL, points, N, &last));
	assert_int_equal(polled_nwaits(consumer.p), 64);
	for (i = 0; i < 64; i++)
		assert_int_equal(rig_reached(points[i]), 0);
	for (; i < N; i++)
		assert_int_equal(rig_reached(points[i]), 1);
	for (i = 0; i < N; i++)
		(void)polled_run(producers[i].p, 1);
	assert_ok(rig_wait(last));
	/* As many needs as are kept; those of one value more are waited for here. */
	for (k = 0; k <= MOST_NEEDS / 64; k++) {
		for (i = 0; i < 64; i++)
			points[i] = help_submit(s[i], NULL);
		assert_ok(rig_submit(mine, NULL, points, 64, &last));
		assert_int_equal(polled_nwaits(consumer.p), k < MOST_NEEDS / 64 ? 64 : 0);
	}
	assert_int_equal(rig_reached(points[0]), 1);
	assert_ok(rig_wait(last));
	/* Others, once those are past: in the queue. */
	for (i = N - 64; i < N; i++)
		points[i] = help_submit(s[i], NULL);
	assert_ok(rig_submit(mine, NULL, points + N - 64, 64, &last));
	assert_int_equal(polled_nwaits(consumer.p), 64);
	for (i = N - 64; i < N; i++)
		(void)polled_run(producers[i].p, 1);
	assert_ok(rig_wait(last));
	rig_submission_put(mine);
	for (i = 0; i < N; i++) {
		rig_submission_put(s[i]);
		help_close(&producers[i]);
	}
	help_close(&consumer);
}

/* ---- The hang clock (contract.md 2.11) ---- */

struct clock {
	uint64_t now;
	uint64_t step; /* each look moves it */
};

static uint64_t read_clock(void *arg)
{
	struct clock *c = arg;

	c->now += c->step;
	return c->now;
}

#define MS UINT64_C(1000000)

static struct bench open_hanging(struct clock *clock, int64_t bound, struct polled_options *o)
{
	struct rig_open_options options = {.version = RIG_EDGE_VERSION, .now = read_clock, .arg = clock};
	struct bench b;

	o->hang_ms = bound;
	o->sleep = POLLED_SLEEP_IDLE;
	b.p = polled_new(o);
	assert_non_null(b.p);
	assert_ok(rig_open_with(polled_opener(b.p), &options, &b.d));
	return b;
}

/* E-234, E-242, E-247: exactly this text, also for stop. */
static void a_word_that_stands_still_loses_the_device_at_the_bound(void **state)
{
	struct clock clock = {1000 * MS, MS};
	struct polled_options o = help_options();
	struct bench b = open_hanging(&clock, 50, &o);
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point = help_submit(s, NULL);
	uint64_t start = clock.now;
	const char *reason;

	(void)state;
	assert_int_equal(rig_wait(point), RIG_LOST);
	assert_true(rig_lost(b.d, &reason));
	assert_string_equal(reason, "no progress for 50 ms");
	assert_string_equal(polled_stop_reason(b.p), "no progress for 50 ms");
	/* Who waited is told what to do about it. */
	assert_int_equal(rig_wait(point), RIG_LOST);
	assert_non_null(strstr(rig_error(), "P0 lost: no progress for 50 ms"));
	assert_non_null(strstr(rig_error(), "hang_ms"));
	/* E-244: the first look starts the clock, 50 more end it. */
	assert_int_equal((clock.now - start) / MS, 51);
	rig_submission_put(s);
	help_end(&b);
}

struct mover {
	struct polled *p;
	struct clock *clock;
	unsigned sleeps, every, most;
};

static void move_word(void *arg, enum polled_call call)
{
	struct mover *m = arg;

	if (call == POLLED_SLEEP && ++m->sleeps % m->every == 0 && m->sleeps / m->every <= m->most)
		(void)polled_run(m->p, 1);
}

/* E-245 */
static void a_word_that_moves_within_the_bound_is_never_lost(void **state)
{
	struct clock clock = {0, MS};
	struct polled_options o = help_options();
	struct bench b = open_hanging(&clock, 50, &o);
	struct mover m = {b.p, &clock, 0, 50, 20};
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point;
	int i;

	(void)state;
	for (i = 0; i < 20; i++)
		point = help_submit(s, NULL);
	polled_hook(b.p, move_word, &m);
	assert_ok(rig_wait(point));
	assert_true(clock.now > 900 * MS);
	polled_hook(b.p, NULL, NULL);
	rig_submission_put(s);
	help_close(&b);
}

/* E-243 */
static void nobody_waiting_means_no_hang(void **state)
{
	struct clock clock = {0, 1000 * MS};
	struct polled_options o = help_options();
	struct bench b = open_hanging(&clock, 50, &o);
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point = help_submit(s, NULL);

	(void)state;
	clock.now += 1000 * 1000 * MS;
	assert_int_equal(rig_signaled(b.d), rig_point_value(point) - 1);
	assert_false(rig_lost(b.d, NULL));
	assert_int_equal(polled_run(b.p, 1), 1);
	assert_ok(rig_wait(point));
	rig_submission_put(s);
	help_close(&b);
}

/* E-246 */
static void without_a_bound_nothing_is_lost_for_time(void **state)
{
	struct clock clock = {0, 1000 * 1000 * MS};
	struct polled_options o = help_options();
	struct bench b = open_hanging(&clock, 0, &o);
	struct mover m = {b.p, &clock, 0, 500, 1};
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point = help_submit(s, NULL);

	(void)state;
	polled_hook(b.p, move_word, &m);
	assert_ok(rig_wait(point));
	polled_hook(b.p, NULL, NULL);
	rig_submission_put(s);
	help_close(&b);
}

struct waits {
	struct bench *producer;
	struct clock *clock;
	unsigned sleeps;
	uint64_t resumed;
};

static void release_after_ten_bounds(void *arg, enum polled_call call)
{
	struct waits *w = arg;

	if (call == POLLED_SLEEP)
		w->clock->now += MS;
	if (call != POLLED_SLEEP || ++w->sleeps != 500)
		return;
	(void)polled_run(w->producer->p, 1);
	w->resumed = w->clock->now;
}

/* The clock stands still while the queue waits for another device, then starts from zero. */
static void waiting_for_another_device_is_no_hang(void **state)
{
	struct clock clock = {0, MS};
	struct polled_options o = help_options(), o1 = help_options();
	struct bench producer, b;
	struct waits w = {&producer, &clock, 0, 0};
	struct rig_submission *s, *t;
	struct rig_point point, produced;

	(void)state;
	o1.name = "P1";
	o1.completion = RIG_HOST;
	o1.sleep = POLLED_SLEEP_IDLE;
	producer = help_open(&o1);
	o.waits.hosts = true;
	b = open_hanging(&clock, 50, &o);
	s = help_empty(b.d);
	t = help_empty(producer.d);
	produced = help_submit(t, NULL);
	assert_ok(rig_submit(s, NULL, &produced, 1, &point));
	/* Who waits for work that waits for another device sleeps at that one. */
	polled_hook(producer.p, release_after_ten_bounds, &w);
	/* Freed after 500 looks, it then never runs: lost one bound later. */
	assert_int_equal(rig_wait(point), RIG_LOST);
	assert_true(w.sleeps >= 500);
	assert_in_range((clock.now - w.resumed) / MS, 50, 52);
	rig_submission_put(s);
	rig_submission_put(t);
	help_end(&b);
	help_close(&producer);
}

static void the_bound_of_the_open_options_wins(void **state)
{
	struct clock clock = {0, MS};
	struct polled_options o = help_options();
	struct rig_open_options options = {
	        .version = RIG_EDGE_VERSION, .now = read_clock, .arg = &clock, .hang_ms = 7};
	struct bench b;
	struct rig_submission *s;
	const char *reason;

	(void)state;
	o.hang_ms = 50;
	o.sleep = POLLED_SLEEP_IDLE;
	b.p = polled_new(&o);
	assert_ok(rig_open_with(polled_opener(b.p), &options, &b.d));
	s = help_empty(b.d);
	assert_int_equal(rig_wait(help_submit(s, NULL)), RIG_LOST);
	assert_true(rig_lost(b.d, &reason));
	assert_string_equal(reason, "no progress for 7 ms");
	rig_submission_put(s);
	help_end(&b);
}

/* The watchdog runs the clock with nobody waiting. */
static void a_watchdog_loses_a_hung_device_by_itself(void **state)
{
	struct polled_options o = help_options();
	struct rig_open_options options = {.version = RIG_EDGE_VERSION, .hang_ms = 5, .watchdog = true};
	struct bench b;
	struct rig_submission *s;

	(void)state;
	o.batch = true;
	b.p = polled_new(&o);
	assert_ok(rig_open_with(polled_opener(b.p), &options, &b.d));
	s = help_empty(b.d);
	(void)help_submit(s, NULL);
	/* Closing would run the work: the test waits for the loss alone, which ends the loop or the test's
	 * time. */
	while (!rig_lost(b.d, NULL))
		(void)sched_yield();
	assert_ok(rig_close(b.d));
	assert_string_equal(polled_stop_reason(b.p), "no progress for 5 ms");
	rig_submission_put(s);
	while (polled_count(b.p, POLLED_RELEASE) == 0) {
		/* The watchdog's thread drops its reference when it notices. */
		if (b.d)
			rig_device_put(b.d);
		b.d = NULL;
		(void)sched_yield();
	}
	assert_null(polled_breach(b.p));
	polled_free(b.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_read_follows_a_foreign_write_in_the_queue_where_the_facts_cover_it),
	        cmocka_unit_test(a_write_follows_every_foreign_use),
	        cmocka_unit_test(a_borrow_made_between_two_submits_of_a_run_is_followed),
	        cmocka_unit_test(an_in_queue_wait_commits_its_producer),
	        cmocka_unit_test(explicit_waits_are_merged_to_the_latest_of_a_producer),
	        cmocka_unit_test(a_devices_own_earlier_points_cost_no_wait),
	        cmocka_unit_test(more_producers_than_a_queue_takes_are_waited_for_here),
	        cmocka_unit_test(a_word_that_stands_still_loses_the_device_at_the_bound),
	        cmocka_unit_test(a_word_that_moves_within_the_bound_is_never_lost),
	        cmocka_unit_test(nobody_waiting_means_no_hang),
	        cmocka_unit_test(without_a_bound_nothing_is_lost_for_time),
	        cmocka_unit_test(waiting_for_another_device_is_no_hang),
	        cmocka_unit_test(the_bound_of_the_open_options_wins),
	        cmocka_unit_test(a_watchdog_loses_a_hung_device_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
