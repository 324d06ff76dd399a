/* SPDX-License-Identifier: MIT */
/* A name opens again as soon as its device is closed and put, whichever threads of the library are at it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "rig_help.h"

#define THREADS 4
#define ROUNDS  300
#define YIELDS  2000

struct race {
	struct bench b; /* of one name, which the threads open and close in turn */
	pthread_mutex_t turn;
	atomic_bool quit;
	atomic_uint overlaps; /* a handle was made while another was not released */
	atomic_uint failures;
	_Atomic uint64_t last; /* a point that others wait for */
	int64_t watchdog;
};

static void look(void *arg, enum polled_call call)
{
	struct race *r = arg;

	if (call == POLLED_MAKE && polled_left(r->b.p))
		atomic_fetch_add(&r->overlaps, 1);
}

static int use(struct race *r, struct rig_device *d)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct rig_submission *s;
	struct rig_buffer *buffer;
	struct rig_point point = {0};
	int code = rig_submission_make(d, &description, &s);

	if (code)
		return code;
	code = rig_buffer_create(d, RIG_DEVICE, 4096, &buffer);
	if (!code)
		code = rig_submit(s, NULL, NULL, 0, &point);
	if (!code)
		atomic_store(&r->last, point.bits);
	rig_buffer_put(buffer);
	rig_submission_put(s);
	return code;
}

/* Opens, closes and puts it. */
static void *reopen(void *arg)
{
	struct race *r = arg;
	const struct rig_open_options options = {
	        .version = RIG_EDGE_VERSION, .hang_ms = r->watchdog, .watchdog = r->watchdog != 0};
	struct rig_device *d;
	int i, code;

	for (i = 0; i < ROUNDS; i++) {
		(void)pthread_mutex_lock(&r->turn);
		code = rig_open_with(polled_opener(r->b.p), &options, &d);
		if (code || use(r, d) || rig_close(d))
			atomic_fetch_add(&r->failures, 1);
		if (!code)
			rig_device_put(d);
		(void)pthread_mutex_unlock(&r->turn);
	}
	return NULL;
}

/* Waits for points of the device, which holds it for a moment, whatever the answer is. */
static void *wait_for_last(void *arg)
{
	struct race *r = arg;

	while (!atomic_load(&r->last) && !atomic_load(&r->quit))
		(void)sched_yield();
	while (!atomic_load(&r->quit)) {
		(void)rig_wait((struct rig_point){atomic_load(&r->last)});
		(void)rig_reached((struct rig_point){atomic_load(&r->last)});
	}
	return NULL;
}

/* Every open and close walks over all devices, and gives back what is due. */
static void *walk(void *arg)
{
	struct race *r = arg;
	struct polled_options o = help_options();
	struct polled *p;

	o.name = "P1";
	p = polled_new(&o);
	while (!atomic_load(&r->quit)) {
		struct rig_device *d;

		if (rig_open(polled_opener(p), &d)) {
			atomic_fetch_add(&r->failures, 1);
			break;
		}
		if (rig_close(d))
			atomic_fetch_add(&r->failures, 1);
		rig_device_put(d);
	}
	polled_free(p);
	return NULL;
}

static void run(struct polled_options o, int64_t watchdog)
{
	struct race r = {.turn = PTHREAD_MUTEX_INITIALIZER, .watchdog = watchdog};
	pthread_t threads[THREADS], walker, waiter;
	int i;

	r.b.p = polled_new(&o);
	assert_non_null(r.b.p);
	polled_hook(r.b.p, look, &r);
	assert_int_equal(pthread_create(&walker, NULL, walk, &r), 0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_last, &r), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reopen, &r), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	atomic_store(&r.quit, true);
	assert_int_equal(pthread_join(waiter, NULL), 0);
	assert_int_equal(pthread_join(walker, NULL), 0);
	assert_int_equal(atomic_load(&r.failures), 0);
	assert_int_equal(atomic_load(&r.overlaps), 0);
	if (polled_breach(r.b.p))
		fail_msg("breach: %s", polled_breach(r.b.p));
	assert_int_equal(polled_left(r.b.p), 0);
	polled_free(r.b.p);
}

static void a_name_opens_again_only_when_its_last_device_was_released(void **state)
{
	struct polled_options o = help_options();

	(void)state;
	o.thread = true;
	run(o, 0);
}

static void also_under_a_watchdog(void **state)
{
	struct polled_options o = help_options();

	(void)state;
	o.thread = true;
	run(o, 60000);
}

/* -- A release that another thread is at -- */

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool inside, asked, open;
	unsigned made;
	unsigned made_inside; /* how many were made when the release went on */
};

static void hold_release(void *arg, enum polled_call call)
{
	struct gate *g = arg;

	(void)pthread_mutex_lock(&g->lock);
	g->made += call == POLLED_MAKE;
	if (call == POLLED_RELEASE && !g->open) {
		g->inside = true;
		(void)pthread_cond_broadcast(&g->changed);
		while (!g->asked)
			(void)pthread_cond_wait(&g->changed, &g->lock);
		/* Who did not wait gets its chance to be seen. */
		for (int i = 0; i < YIELDS && !g->made; i++) {
			(void)pthread_mutex_unlock(&g->lock);
			(void)sched_yield();
			(void)pthread_mutex_lock(&g->lock);
		}
		g->made_inside = g->made;
		g->open = true;
	}
	(void)pthread_mutex_unlock(&g->lock);
}

static void *put(void *arg)
{
	rig_device_put(arg);
	return NULL;
}

struct opening {
	struct gate *gate;
	struct polled *p;
	int code;
	struct rig_device *d;
};

static void *open_again(void *arg)
{
	struct opening *o = arg;

	(void)pthread_mutex_lock(&o->gate->lock);
	o->gate->asked = true;
	(void)pthread_cond_broadcast(&o->gate->changed);
	(void)pthread_mutex_unlock(&o->gate->lock);
	o->code = rig_open(polled_opener(o->p), &o->d);
	return NULL;
}

static void an_open_waits_for_the_release_that_another_thread_is_at(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	struct opening opening = {.gate = &gate, .p = b.p};
	pthread_t putter, opener;

	(void)state;
	polled_hook(b.p, hold_release, &gate);
	assert_ok(rig_close(b.d));
	assert_int_equal(pthread_create(&putter, NULL, put, b.d), 0);
	(void)pthread_mutex_lock(&gate.lock);
	while (!gate.inside)
		(void)pthread_cond_wait(&gate.changed, &gate.lock);
	(void)pthread_mutex_unlock(&gate.lock);
	assert_int_equal(pthread_create(&opener, NULL, open_again, &opening), 0);
	assert_int_equal(pthread_join(putter, NULL), 0);
	assert_int_equal(pthread_join(opener, NULL), 0);
	assert_int_equal(opening.code, 0);
	assert_int_equal(gate.made_inside, 0);
	polled_hook(b.p, NULL, NULL);
	b.d = opening.d;
	help_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_name_opens_again_only_when_its_last_device_was_released),
	        cmocka_unit_test(also_under_a_watchdog),
	        cmocka_unit_test(an_open_waits_for_the_release_that_another_thread_is_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
