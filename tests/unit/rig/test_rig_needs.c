/* SPDX-License-Identifier: MIT */
/* Work that waits for other devices: whoever waits for it is told what became of those, and the hang clock
   stands still only while the next value waits for another device. */
#include <string.h>

#include "rig_help.h"

#define BYTES 4096u
#define MS    UINT64_C(1000000)

struct clock {
	uint64_t now, step; /* each look moves it */
};

static uint64_t read_clock(void *arg)
{
	struct clock *c = arg;

	c->now += c->step;
	return c->now;
}

/* A device whose queue waits for others, with a hang bound in ms by this clock (0: none). */
static struct bench open_waiter(const char *name, int64_t hang_ms, struct clock *clock)
{
	struct rig_open_options options = {.version = RIG_EDGE_VERSION, .now = read_clock, .arg = clock};
	struct polled_options o = help_options();
	struct bench b;

	o.name = name;
	o.completion = RIG_HOST;
	o.waits.hosts = true;
	o.times = true;
	o.capacity = 4;
	o.hang_ms = hang_ms;
	o.memory = o.budget = 4 * BYTES;
	if (clock)
		o.sleep = POLLED_SLEEP_IDLE;
	b.p = polled_new(&o);
	assert_non_null(b.p);
	assert_ok(rig_open_with(polled_opener(b.p), clock ? &options : NULL, &b.d));
	return b;
}

static struct rig_point submit_after(struct rig_device *d, const struct rig_point *waits, uint32_t nwaits)
{
	struct rig_submission *s = help_empty(d);
	struct rig_point point;

	assert_ok(rig_submit(s, NULL, waits, nwaits, &point));
	rig_submission_put(s);
	return point;
}

/* ---- Every call that waits ---- */

struct scene {
	struct bench a, b, c; /* b waits for a, c for b */
	struct rig_buffer *buffer, *other, *pinned;
	struct rig_profile *profile;
	struct rig_point point; /* the last of c */
};

static int wait_point(struct scene *s)
{
	return rig_wait(s->point);
}

static int wait_device(struct scene *s)
{
	return rig_wait_device(s->c.d, rig_submitted(s->c.d));
}

static int poll_point(struct scene *s)
{
	int reached;

	do
		reached = rig_reached(s->point);
	while (!reached);
	return reached;
}

static int close_device(struct scene *s)
{
	assert_ok(rig_close(s->c.d));
	return RIG_LOST;
}

static int read_buffer(struct scene *s)
{
	char byte;

	return rig_buffer_read(s->buffer, 0, &byte, 1);
}

static int write_buffer(struct scene *s)
{
	char byte = 1;

	return rig_buffer_write(s->buffer, 0, &byte, 1);
}

static int copy_buffer(struct scene *s)
{
	return rig_buffer_copy(s->other, 0, s->buffer, 0, BYTES);
}

static int wait_buffer(struct scene *s)
{
	return rig_buffer_wait(s->buffer, RIG_WRITE);
}

/* The host reads pinned memory itself, once the work on it is done. */
static int read_pinned(struct scene *s)
{
	char byte;

	return rig_buffer_read(s->pinned, 0, &byte, 1);
}

static int fill_queue(struct scene *s)
{
	struct rig_submission *more = help_empty(s->c.d);
	int code = 0;

	while (!code)
		code = rig_submit(more, NULL, NULL, 0, NULL);
	rig_submission_put(more);
	return code;
}

static int use_memory_in_use(struct scene *s)
{
	struct rig_buffer *made;

	rig_buffer_put(s->buffer);
	s->buffer = NULL;
	return rig_buffer_create(s->c.d, RIG_DEVICE, 3 * BYTES, &made);
}

static int stop_profile(struct scene *s)
{
	assert_ok(rig_profile_stop(s->profile));
	return RIG_LOST;
}

static int submit_elsewhere(struct scene *s)
{
	struct polled_options o = help_options();
	struct bench d;
	struct rig_submission *more;
	int code;

	o.name = "D"; /* its queue waits for nothing: here */
	d = help_open(&o);
	more = help_empty(d.d);
	code = rig_submit(more, NULL, &s->point, 1, NULL);
	rig_submission_put(more);
	help_close(&d);
	return code;
}

static const struct {
	const char *name;
	int (*call)(struct scene *s);
} calls[] = {
        {"wait", wait_point},
        {"wait_device", wait_device},
        {"reached", poll_point},
        {"close", close_device},
        {"read", read_buffer},
        {"write", write_buffer},
        {"copy", copy_buffer},
        {"buffer_wait", wait_buffer},
        {"read of pinned memory", read_pinned},
        {"submit to full queues", fill_queue},
        {"create where memory is in use", use_memory_in_use},
        {"profile_stop", stop_profile},
        {"submit that waits on the host", submit_elsewhere},
};

/* c's one value copies, after b's, which is after a's. */
static void set_scene(struct scene *s, struct clock *clock)
{
	struct rig_submission *copy;
	struct rig_run_args *run;
	struct rig_point a, b;

	memset(s, 0, sizeof(*s));
	s->a = open_waiter("A", clock ? 50 : 0, clock);
	s->b = open_waiter("B", 0, NULL);
	s->c = open_waiter("C", 0, NULL);
	s->buffer = help_buffer(s->c.d, BYTES);
	s->other = help_buffer(s->c.d, BYTES);
	assert_ok(rig_buffer_create(s->c.d, RIG_PINNED, BYTES, &s->pinned));
	assert_ok(rig_profile_start(&s->c.d, 1, &s->profile));
	polled_gate(s->a.p, polled_last(s->a.p));
	a = submit_after(s->a.d, NULL, 0);
	b = submit_after(s->b.d, &a, 1);
	copy = help_copy(s->c.d, BYTES);
	run = help_copy_run(copy, s->buffer, s->pinned);
	assert_ok(rig_submit(copy, run, &b, 1, &s->point));
	rig_run_put(run);
	run = help_copy_run(copy, s->pinned, s->buffer);
	s->point = help_submit(copy, run);
	rig_run_put(run);
	rig_submission_put(copy);
}

static void end_scene(struct scene *s)
{
	rig_profile_put(s->profile);
	rig_buffer_put(s->buffer);
	rig_buffer_put(s->other);
	rig_buffer_put(s->pinned);
	help_end(&s->c);
	help_end(&s->b);
	help_end(&s->a);
}

static void expect_reason(struct bench *b, const char *expected)
{
	const char *reason;

	assert_true(rig_lost(b->d, &reason));
	assert_string_equal(reason, expected);
}

/* E-233, E-238 */
static void every_wait_is_told_of_a_fault_of_a_device_that_the_work_stands_on(void **state)
{
	struct scene s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		set_scene(&s, NULL);
		polled_fail(s.a.p, POLLED_SLEEP, 1, POLLED_FAULTS);
		if (calls[i].call(&s) != RIG_LOST)
			fail_msg("%s does not answer lost: %s", calls[i].name, rig_error());
		if (!rig_lost(s.c.d, NULL))
			fail_msg("%s: the device is not lost", calls[i].name);
		expect_reason(&s.a, "injected fault");
		expect_reason(&s.b, "A lost: injected fault");
		expect_reason(&s.c, "A lost: injected fault");
		end_scene(&s);
	}
}

/* E-234, E-242 */
static void every_wait_is_told_of_a_hang_of_a_device_that_the_work_stands_on(void **state)
{
	struct clock clock = {0, MS};
	struct scene s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].call == poll_point)
			continue; /* nobody waits */
		set_scene(&s, &clock);
		if (calls[i].call(&s) != RIG_LOST)
			fail_msg("%s does not answer lost: %s", calls[i].name, rig_error());
		expect_reason(&s.a, "no progress for 50 ms");
		expect_reason(&s.c, "A lost: no progress for 50 ms");
		end_scene(&s);
	}
}

/* One of several that are waited for, whichever. */
static void each_of_several_devices_that_hold_work_up_is_looked_at(void **state)
{
	int failing;

	(void)state;
	for (failing = 0; failing < 3; failing++) {
		struct bench p[3] = {
		        open_waiter("A", 0, NULL), open_waiter("B", 0, NULL), open_waiter("C", 0, NULL)};
		struct bench d = open_waiter("D", 0, NULL);
		struct rig_point points[3], last;
		int i;

		for (i = 0; i < 3; i++) {
			polled_gate(p[i].p, polled_last(p[i].p));
			points[i] = submit_after(p[i].d, NULL, 0);
		}
		last = submit_after(d.d, points, 3);
		polled_fail(p[failing].p, POLLED_SLEEP, 1, POLLED_FAULTS);
		assert_int_equal(rig_wait(last), RIG_LOST);
		assert_non_null(strstr(rig_error(), "injected fault"));
		help_end(&d);
		for (i = 0; i < 3; i++) {
			polled_gate(p[i].p, UINT64_MAX);
			if (i == failing)
				help_end(&p[i]);
			else
				help_close(&p[i]);
		}
	}
}

/* The device itself may fail while it waits for another. */
static void a_device_that_fails_while_it_waits_for_another_is_told_of(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s, NULL);
	polled_fail(s.b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_wait(s.point), RIG_LOST);
	expect_reason(&s.c, "B lost: injected fault");
	polled_gate(s.a.p, UINT64_MAX);
	assert_ok(rig_close(s.a.d));
	end_scene(&s);
}

/* ---- A way that comes back ---- */

/* What the device waits for is reached while it is asked, and what that waits for next is the device's. */
static void reach_first(void *arg, enum polled_call call)
{
	struct polled **producer = arg;

	if (call != POLLED_SLEEP || !*producer)
		return;
	(void)polled_run(*producer, 1);
	*producer = NULL;
}

/* Nobody keeps it: then its close waits for nobody, and its end releases it. */
static void a_device_that_is_its_own_holder_is_let_go(void **state)
{
	struct bench a = open_waiter("A", 0, NULL), b = open_waiter("B", 0, NULL);
	struct rig_point a1 = submit_after(a.d, NULL, 0), b1 = submit_after(b.d, &a1, 1), b2, a2;
	struct polled *producer = a.p;

	(void)state;
	b2 = submit_after(b.d, NULL, 0);
	a2 = submit_after(a.d, &b2, 1);
	polled_hook(b.p, reach_first, &producer);
	assert_ok(rig_wait(b1));
	polled_hook(b.p, NULL, NULL);
	assert_null(producer);
	assert_ok(rig_wait(a2));
	help_close(&b);
	help_close(&a);
}

/* ---- The hang clock ---- */

struct tangle {
	struct clock clock;
	struct bench a, b;
	struct rig_point last;
};

/* a1 never ends; b1 waits for a1, a2 for b1, b2 for a2: each has a producer that is not reached. */
static void tangle(struct tangle *t, int64_t a_ms, int64_t b_ms)
{
	struct rig_point point;

	t->clock = (struct clock){0, MS};
	t->a = open_waiter("A", a_ms, &t->clock);
	t->b = open_waiter("B", b_ms, &t->clock);
	polled_gate(t->a.p, polled_last(t->a.p));
	point = submit_after(t->a.d, NULL, 0);
	point = submit_after(t->b.d, &point, 1);
	point = submit_after(t->a.d, &point, 1);
	t->last = submit_after(t->b.d, &point, 1);
}

static void of_devices_that_wait_for_each_other_the_one_that_hangs_is_lost_and_named(void **state)
{
	struct tangle t;
	int side;

	(void)state;
	for (side = 0; side < 2; side++) {
		tangle(&t, 50, 50);
		assert_ok(rig_close(side ? t.b.d : t.a.d));
		expect_reason(&t.a, "no progress for 50 ms");
		expect_reason(&t.b, "A lost: no progress for 50 ms");
		assert_int_equal(rig_wait(t.last), RIG_LOST);
		assert_non_null(strstr(rig_error(), "hang_ms"));
		help_end(&t.b);
		help_end(&t.a);
	}
}

/* A producer of a later value stops no clock. */
static void a_wait_of_a_later_value_stops_no_clock(void **state)
{
	struct clock clock = {0, MS};
	struct bench a = open_waiter("A", 0, NULL), b = open_waiter("B", 50, &clock);
	struct rig_point first, point;

	(void)state;
	polled_gate(a.p, polled_last(a.p));
	polled_gate(b.p, polled_last(b.p));
	point = submit_after(a.d, NULL, 0);
	first = submit_after(b.d, NULL, 0);
	(void)submit_after(b.d, &point, 1);
	assert_int_equal(rig_wait(first), RIG_LOST);
	expect_reason(&b, "no progress for 50 ms");
	assert_false(rig_lost(a.d, NULL));
	help_end(&b);
	polled_gate(a.p, UINT64_MAX);
	help_close(&a);
}

struct stopped {
	struct bench b;
	struct clock *clock;
	unsigned sleeps;
};

/* The process stands still for longer than the bound, the device does not: the next look shows it. */
static void stand_still(void *arg, enum polled_call call)
{
	struct stopped *s = arg;

	if (call != POLLED_SLEEP)
		return;
	if (++s->sleeps == 1)
		s->clock->now += 1000 * MS;
	else
		(void)polled_run(s->b.p, 1);
}

static void a_device_is_looked_at_before_it_is_judged(void **state)
{
	struct clock clock = {0, MS};
	struct stopped s = {open_waiter("A", 50, &clock), &clock, 0};
	struct rig_point point;

	(void)state;
	point = submit_after(s.b.d, NULL, 0);
	polled_hook(s.b.p, stand_still, &s);
	assert_ok(rig_wait(point));
	polled_hook(s.b.p, NULL, NULL);
	help_close(&s.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_wait_is_told_of_a_fault_of_a_device_that_the_work_stands_on),
	        cmocka_unit_test(every_wait_is_told_of_a_hang_of_a_device_that_the_work_stands_on),
	        cmocka_unit_test(each_of_several_devices_that_hold_work_up_is_looked_at),
	        cmocka_unit_test(a_device_that_fails_while_it_waits_for_another_is_told_of),
	        cmocka_unit_test(a_device_that_is_its_own_holder_is_let_go),
	        cmocka_unit_test(of_devices_that_wait_for_each_other_the_one_that_hangs_is_lost_and_named),
	        cmocka_unit_test(a_wait_of_a_later_value_stops_no_clock),
	        cmocka_unit_test(a_device_is_looked_at_before_it_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
