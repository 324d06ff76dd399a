/* SPDX-License-Identifier: MIT */
/* Many threads at once; the driver checks its calls and TSan the rest. */
#include <pthread.h>
#include <stdatomic.h>

#include "rig_help.h"

#define THREADS 4
#define ROUNDS  400
#define BYTES   256u

struct job {
	struct rig_device *d, *other;
	struct rig_submission *s;
	struct rig_submission *theirs;
	int index;
	int failures;
};

static int copy_round(
        struct job *j, struct rig_run_args *run, struct rig_buffer *src, struct rig_buffer *dst, int i)
{
	uint8_t in[BYTES], out[BYTES];
	struct rig_point point;

	memset(in, j->index * 50 + i, BYTES);
	if (rig_buffer_write(src, 0, in, BYTES) || rig_submit(j->s, run, NULL, 0, &point))
		return 1;
	if (i % 3 == 0 && rig_wait(point))
		return 1;
	/* Another device waits for it, in its queue or on the host. */
	if (j->theirs && rig_submit(j->theirs, NULL, &point, 1, NULL))
		return 1;
	if (rig_buffer_read(dst, 0, out, BYTES))
		return 1;
	return memcmp(in, out, BYTES) != 0;
}

static void *work(void *arg)
{
	struct job *j = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct rig_buffer *src, *dst;
		struct rig_run_args *run;

		if (rig_buffer_create(j->d, RIG_DEVICE, BYTES, &src) ||
		        rig_buffer_create(j->d, RIG_DEVICE, BYTES, &dst) || rig_run_make(j->s, &run) ||
		        rig_run_buffer(run, 0, src) || rig_run_buffer(run, 1, dst)) {
			j->failures++;
			return NULL;
		}
		j->failures += copy_round(j, run, src, dst, i);
		rig_run_put(run);
		rig_buffer_put(src);
		rig_buffer_put(dst);
	}
	return NULL;
}

static void run_threads(struct polled_options o, struct polled_options o1)
{
	struct bench a, b;
	struct job jobs[THREADS];
	pthread_t threads[THREADS];
	struct rig_submission *s, *theirs;
	int i;

	o1.name = "P1";
	a = help_open(&o);
	b = help_open(&o1);
	s = help_copy(a.d, BYTES);
	theirs = help_empty(b.d);
	for (i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){a.d, b.d, s, theirs, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(jobs[i].failures, 0);
	}
	rig_submission_put(s);
	rig_submission_put(theirs);
	help_close(&b);
	help_close(&a);
}

/* E-103, E-111, E-125, E-250 */
static void threads_share_a_device_and_a_submission(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();

	(void)state;
	o.thread = o1.thread = true;
	o.capacity = 8;
	o1.waits.stores = true;
	run_threads(o, o1);
}

static void threads_share_a_device_that_may_block_and_batches(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();

	(void)state;
	o.thread = o1.thread = true;
	o.may_block = o1.may_block = true;
	o.batch = true;
	o.capacity = 4;
	o.completion = RIG_HOST;
	o1.waits.hosts = true;
	run_threads(o, o1);
}

static void threads_share_a_device_with_a_word_of_its_own(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();

	(void)state;
	o.thread = o1.thread = true;
	o.own_word = true;
	o.completion = RIG_HOST;
	run_threads(o, o1);
}

/* E-249: a's submit stands still; b's goes on. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool inside, open;
};

static void hold_submit(void *arg, enum polled_call call)
{
	struct gate *g = arg;

	if (call != POLLED_SUBMIT)
		return;
	(void)pthread_mutex_lock(&g->lock);
	g->inside = true;
	(void)pthread_cond_broadcast(&g->changed);
	while (!g->open)
		(void)pthread_cond_wait(&g->changed, &g->lock);
	(void)pthread_mutex_unlock(&g->lock);
}

static void *submit_one(void *arg)
{
	(void)rig_submit(arg, NULL, NULL, 0, NULL);
	return NULL;
}

static void a_blocked_submit_holds_only_its_own_device(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
	struct rig_submission *s, *t;
	struct rig_buffer *buffer;
	struct bench a, b;
	pthread_t thread;

	(void)state;
	o1.name = "P1";
	o.may_block = true;
	a = help_open(&o);
	b = help_open(&o1);
	s = help_empty(a.d);
	t = help_empty(b.d);
	polled_hook(a.p, hold_submit, &gate);
	assert_int_equal(pthread_create(&thread, NULL, submit_one, s), 0);
	(void)pthread_mutex_lock(&gate.lock);
	while (!gate.inside)
		(void)pthread_cond_wait(&gate.changed, &gate.lock);
	(void)pthread_mutex_unlock(&gate.lock);
	assert_ok(rig_wait(help_submit(t, NULL)));
	/* Also the blocked device's cold calls and facts. */
	buffer = help_buffer(a.d, 64);
	assert_false(rig_lost(a.d, NULL));
	rig_buffer_put(buffer);
	(void)pthread_mutex_lock(&gate.lock);
	gate.open = true;
	(void)pthread_cond_broadcast(&gate.changed);
	(void)pthread_mutex_unlock(&gate.lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	polled_hook(a.p, NULL, NULL);
	rig_submission_put(s);
	rig_submission_put(t);
	help_close(&a);
	help_close(&b);
}

static void *submit_until_lost(void *arg)
{
	struct job *j = arg;
	struct rig_point point;
	int code = 0;

	while (!code) {
		code = rig_submit(j->s, NULL, NULL, 0, &point);
		if (!code)
			code = rig_wait(point);
	}
	j->failures = code != RIG_LOST;
	return NULL;
}

/* E-251 */
static void a_loss_beside_submits_and_waits_is_told_to_all(void **state)
{
	int round, blocks;

	(void)state;
	for (round = 0; round < 60; round++)
		for (blocks = 0; blocks < 2; blocks++) {
			struct polled_options o = help_options();
			struct job jobs[THREADS];
			pthread_t threads[THREADS];
			struct rig_submission *s;
			struct bench b;
			int i;

			o.thread = true;
			o.may_block = blocks;
			b = help_open(&o);
			s = help_empty(b.d);
			for (i = 0; i < THREADS; i++) {
				jobs[i] = (struct job){.d = b.d, .s = s};
				assert_int_equal(
				        pthread_create(&threads[i], NULL, submit_until_lost, &jobs[i]), 0);
			}
			if (round % 2)
				polled_fail(b.p, POLLED_SUBMIT, 5, POLLED_FAULTS);
			else
				assert_ok(rig_close(b.d));
			for (i = 0; i < THREADS; i++) {
				assert_int_equal(pthread_join(threads[i], NULL), 0);
				assert_int_equal(jobs[i].failures, 0);
			}
			rig_submission_put(s);
			assert_ok(rig_close(b.d));
			help_end(&b);
		}
}

#define PROFILES 60

struct submitting {
	struct rig_device *d;
	atomic_bool *stop;
	int failures;
};

static void *submit_until_told(void *arg)
{
	struct submitting *job = arg;
	struct rig_submission *s = help_empty(job->d);
	struct rig_point point;

	while (!atomic_load(job->stop)) {
		job->failures += rig_submit(s, NULL, NULL, 0, &point) != 0;
		job->failures += rig_wait(point) != 0;
	}
	rig_submission_put(s);
	return NULL;
}

/* Each of two profiles that overlap has every value of its time, timed. */
static void check_profiles(struct rig_device *d)
{
	struct rig_profile *profiles[2];
	struct rig_profile_summary summary;
	const struct rig_event *events;
	size_t n, i, spans, k;

	for (i = 0; i < 2; i++)
		assert_ok(rig_profile_start(&d, 1, &profiles[i]));
	for (i = 0; i < 2; i++) {
		assert_ok(rig_profile_stop(profiles[i]));
		assert_ok(rig_profile_events(profiles[i], &events, &n));
		assert_ok(rig_profile_summary(profiles[i], &summary));
		for (k = 0, spans = 0; k < n; k++)
			spans += events[k].kind == RIG_EVENT_SPAN;
		assert_int_equal(spans, summary.values);
		assert_int_equal(summary.untimed, 0);
		rig_profile_put(profiles[i]);
	}
}

static void profiles_are_taken_beside_submits(void **state)
{
	struct polled_options o = help_options();
	struct submitting jobs[THREADS];
	pthread_t threads[THREADS];
	atomic_bool stop = false;
	struct bench b;
	int i;

	(void)state;
	o.settle = o.thread = true;
	b = help_open(&o);
	for (i = 0; i < THREADS; i++) {
		jobs[i] = (struct submitting){.d = b.d, .stop = &stop};
		assert_int_equal(pthread_create(&threads[i], NULL, submit_until_told, &jobs[i]), 0);
	}
	for (i = 0; i < PROFILES; i++)
		check_profiles(b.d);
	atomic_store(&stop, true);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(jobs[i].failures, 0);
	}
	help_close(&b);
}

#define ENDS 300

static void *put_last(void *arg)
{
	rig_buffer_put(arg);
	return NULL;
}

/* A buffer may be what keeps its device: its put and the device's end meet at every point. */
static void the_last_put_of_a_buffer_meets_the_end_of_its_device(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < ENDS; i++) {
		struct polled_options o = help_options();
		struct bench b = help_open(&o);
		struct rig_buffer *buffer = help_buffer(b.d, BYTES);
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, put_last, buffer), 0);
		assert_ok(rig_close(b.d));
		rig_device_put(b.d);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(polled_left(b.p), 0);
		assert_null(polled_breach(b.p));
		polled_free(b.p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(threads_share_a_device_and_a_submission),
	        cmocka_unit_test(threads_share_a_device_that_may_block_and_batches),
	        cmocka_unit_test(threads_share_a_device_with_a_word_of_its_own),
	        cmocka_unit_test(a_blocked_submit_holds_only_its_own_device),
	        cmocka_unit_test(profiles_are_taken_beside_submits),
	        cmocka_unit_test(the_last_put_of_a_buffer_meets_the_end_of_its_device),
	        cmocka_unit_test(a_loss_beside_submits_and_waits_is_told_to_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
