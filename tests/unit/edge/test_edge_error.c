/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <pthread.h>

#include "rig_edge.h"

static void error_set_answers_its_code(void **state)
{
	(void)state;
	assert_int_equal(rig_error_set(-EINVAL, "arg %d above %d", 5, 4), -EINVAL);
	assert_string_equal(rig_error(), "arg 5 above 4");
}

static void a_text_may_contain_the_earlier_one(void **state)
{
	(void)state;
	(void)rig_error_set(-EIO, "inner");
	(void)rig_error_set(-EIO, "outer: %s", rig_error());
	assert_string_equal(rig_error(), "outer: inner");
}

static void a_long_text_is_cut_at_1023_bytes(void **state)
{
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)rig_error_set(-EIO, "%s", text);
	assert_int_equal(strlen(rig_error()), 1023);
}

static void *other(void *arg)
{
	*(int *)arg = rig_error()[0] == '\0' && rig_locks_held() == 0;
	(void)rig_error_set(-EIO, "other thread");
	return NULL;
}

static void texts_and_lock_counts_are_each_threads_own(void **state)
{
	pthread_t thread;
	int fresh = 0;

	(void)state;
	(void)rig_error_set(-EIO, "mine");
	rig_locks_add(1);
	assert_int_equal(pthread_create(&thread, NULL, other, &fresh), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(fresh);
	assert_string_equal(rig_error(), "mine");
	assert_int_equal(rig_locks_held(), 1);
	rig_locks_add(-1);
	assert_int_equal(rig_locks_held(), 0);
}

static void the_clock_does_not_go_back(void **state)
{
	uint64_t last = rig_now_ns(), now;
	int i;

	(void)state;
	for (i = 0; i < 1000; i++, last = now) {
		now = rig_now_ns();
		assert_true(now >= last);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(error_set_answers_its_code),
	        cmocka_unit_test(a_text_may_contain_the_earlier_one),
	        cmocka_unit_test(a_long_text_is_cut_at_1023_bytes),
	        cmocka_unit_test(texts_and_lock_counts_are_each_threads_own),
	        cmocka_unit_test(the_clock_does_not_go_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
