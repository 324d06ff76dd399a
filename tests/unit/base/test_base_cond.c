/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>

#include "test.h"

#include "clock.h"
#include "cond.h"

static int64_t ns_between(const struct timespec *from, const struct timespec *to)
{
	return (int64_t)(to->tv_sec - from->tv_sec) * 1000000000 + (to->tv_nsec - from->tv_nsec);
}

static void check_end(struct timespec end, const struct timespec *before, uint64_t ns)
{
	struct timespec after;

	(void)clock_gettime(CLOCK_MONOTONIC, &after);
	assert_in_range(end.tv_nsec, 0, 999999999);
	assert_true(ns_between(before, &end) >= (int64_t)ns);
	assert_true(ns_between(&after, &end) <= (int64_t)ns);
}

static void an_end_is_so_far_ahead(void **state)
{
	static const uint64_t ms[] = {0, 1, 999, 1000, 1001, 86400000};
	struct timespec before;

	(void)state;
	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		(void)clock_gettime(CLOCK_MONOTONIC, &before);
		check_end(rig_cond_end_ms(ms[i]), &before, ms[i] * RIG_NS_PER_MS);
		check_end(rig_cond_end(ms[i] * RIG_NS_PER_MS + 1), &before, ms[i] * RIG_NS_PER_MS + 1);
	}
}

static void an_end_too_far_ahead_is_still_ahead(void **state)
{
	struct timespec now, end = rig_cond_end_ms(UINT64_MAX);

	(void)state;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	assert_true(end.tv_sec > now.tv_sec + 1000000000);
	assert_in_range(end.tv_nsec, 0, 999999999);
	end = rig_cond_end(UINT64_MAX);
	assert_true(end.tv_sec > now.tv_sec + 100000000);
}

struct told {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool is;
};

static void *tell(void *arg)
{
	struct told *t = arg;

	(void)pthread_mutex_lock(&t->lock);
	t->is = true;
	(void)pthread_cond_signal(&t->cond);
	(void)pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void a_wait_ends_when_it_is_told_or_by_its_time(void **state)
{
	struct told t = {.lock = PTHREAD_MUTEX_INITIALIZER};
	uint64_t from = rig_clock_ns();
	pthread_t thread;
	int err = 0;

	(void)state;
	rig_cond_init(&t.cond);
	(void)pthread_mutex_lock(&t.lock);
	while (!err)
		err = rig_cond_wait(&t.cond, &t.lock, 2 * RIG_NS_PER_MS);
	assert_int_equal(err, ETIMEDOUT);
	assert_true(rig_clock_ns() - from >= 2 * RIG_NS_PER_MS);
	assert_int_equal(pthread_create(&thread, NULL, tell, &t), 0);
	for (err = 0; !t.is && !err;)
		err = rig_cond_wait_ms(&t.cond, &t.lock, UINT64_MAX);
	(void)pthread_mutex_unlock(&t.lock);
	(void)pthread_join(thread, NULL);
	assert_int_equal(err, 0);
	(void)pthread_cond_destroy(&t.cond);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_end_is_so_far_ahead),
	        cmocka_unit_test(an_end_too_far_ahead_is_still_ahead),
	        cmocka_unit_test(a_wait_ends_when_it_is_told_or_by_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
