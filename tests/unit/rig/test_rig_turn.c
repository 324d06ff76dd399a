/* SPDX-License-Identifier: MIT */
/* The turn of a device's hot calls. A shim's room says "later" to submissions of two parts, for as long as
   told. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "rig_help.h"

static struct shim {
	const struct rig_driver *hot; /* first: what facts.edge points to */
	void *inner;
	const struct rig_driver *below;
	struct rig_driver table;
	atomic_bool full;
	atomic_uint refused;
} shim;

static int d_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	(void)self;
	if (nparts > 1 && atomic_load(&shim.full)) {
		atomic_fetch_add(&shim.refused, 1);
		return RIG_LATER;
	}
	return shim.below->room(shim.inner, parts, nparts, nwaits, run, scratch);
}

static int d_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	(void)self;
	return shim.below->submit(
	        shim.inner, value, parts, nparts, waits, nwaits, run, scratch, times, failure);
}

static int d_commit(void *self, uint64_t value, const char **failure)
{
	(void)self;
	return shim.below->commit(shim.inner, value, failure);
}

static void put_shim_between(struct rig_facts *facts)
{
	shim.inner = facts->edge;
	shim.below = rig_driver_of(facts->edge);
	shim.table = (struct rig_driver){RIG_EDGE_VERSION, d_room, d_submit, d_commit, NULL, NULL};
	shim.hot = &shim.table;
	facts->edge = &shim;
}

static struct rig_submission *make_large(struct rig_device *d)
{
	static const uint32_t word = 1;
	struct rig_work parts[2] = {
	        {.kind = RIG_WORDS, .u.words = {&word, 1}}, {.kind = RIG_WORDS, .u.words = {&word, 1}}};
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = parts, .nparts = 2};
	struct rig_submission *s;

	assert_ok(rig_submission_make(d, &description, &s));
	return s;
}

struct submitter {
	pthread_t thread;
	struct rig_submission *s;
	struct rig_point point;
	int code;
};

static void *submit_large(void *arg)
{
	struct submitter *large = arg;

	large->code = rig_submit(large->s, NULL, NULL, 0, &large->point);
	return NULL;
}

static void a_small_submission_passes_one_that_waits_for_room(void **state)
{
	struct polled_options o = help_options();
	struct bench b = {.p = polled_new(&o)};
	struct submitter large;
	struct rig_submission *small;
	struct rig_point first, second;

	(void)state;
	polled_edit_facts(b.p, put_shim_between);
	assert_ok(rig_open(polled_opener(b.p), &b.d));
	polled_gate(b.p, polled_word(b.p));
	atomic_store(&shim.full, true);
	small = help_empty(b.d);
	first = help_submit(small, NULL);
	large.s = make_large(b.d);
	assert_int_equal(pthread_create(&large.thread, NULL, submit_large, &large), 0);
	while (!atomic_load(&shim.refused))
		(void)sched_yield();
	second = help_submit(small, NULL);
	assert_int_equal(rig_point_value(second), rig_point_value(first) + 1);
	atomic_store(&shim.full, false);
	polled_gate(b.p, UINT64_MAX);
	assert_ok(rig_wait(second));
	assert_int_equal(pthread_join(large.thread, NULL), 0);
	assert_ok(large.code);
	assert_int_equal(rig_point_value(large.point), rig_point_value(second) + 1);
	rig_submission_put(small);
	rig_submission_put(large.s);
	help_close(&b);
}

/* A refusal takes no value. */
static void a_loss_while_a_submission_waits_for_room_hands_nothing_over(void **state)
{
	struct polled_options o = help_options();
	struct bench b = {.p = polled_new(&o)};
	struct submitter large;
	struct rig_submission *small;
	struct rig_point first;

	(void)state;
	atomic_store(&shim.refused, 0);
	polled_edit_facts(b.p, put_shim_between);
	assert_ok(rig_open(polled_opener(b.p), &b.d));
	polled_gate(b.p, polled_word(b.p));
	atomic_store(&shim.full, true);
	small = help_empty(b.d);
	first = help_submit(small, NULL);
	large.s = make_large(b.d);
	assert_int_equal(pthread_create(&large.thread, NULL, submit_large, &large), 0);
	while (!atomic_load(&shim.refused))
		(void)sched_yield();
	rig_fail("stop here");
	assert_int_equal(pthread_join(large.thread, NULL), 0);
	assert_int_equal(large.code, RIG_LOST);
	assert_int_equal(rig_submitted(b.d), rig_point_value(first));
	rig_submission_put(small);
	rig_submission_put(large.s);
	help_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_small_submission_passes_one_that_waits_for_room),
	        /* The last: the process has failed then. */
	        cmocka_unit_test(a_loss_while_a_submission_waits_for_room_hands_nothing_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
