/* SPDX-License-Identifier: MIT */
/* What a controller may have under way at an agent, however it is cut into messages. */
#include <stdlib.h>

#include "test.h"

#include "agent_queue.h"

enum { MOST = 1 << 20, KIND = 3, SOME = 1000 };

static unsigned fill(struct queue *q, size_t bytes)
{
	static const uint8_t payload[SOME];
	unsigned n = 0;

	while (queue_push(q, KIND, payload, bytes))
		n++;
	return n;
}

static unsigned empty(struct queue *q)
{
	struct item *item;
	unsigned n = 0;

	while ((item = queue_pop(q, 0))) {
		free(item);
		n++;
	}
	return n;
}

static void messages_without_bytes_are_bounded_too(void **state)
{
	struct queue q;
	unsigned n;

	(void)state;
	queue_init(&q, MOST);
	n = fill(&q, 0);
	assert_in_range(n, 1, MOST / sizeof(struct item));
	/* Again and again: what is taken out makes room for as much. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(empty(&q), n);
		assert_int_equal(fill(&q, 0), n);
	}
	queue_fini(&q);
}

static void messages_of_many_bytes_fill_it_by_their_bytes(void **state)
{
	struct queue q;
	unsigned n;

	(void)state;
	queue_init(&q, MOST);
	n = fill(&q, SOME);
	assert_in_range(n, MOST / SOME * 9 / 10, MOST / SOME);
	assert_int_equal(empty(&q), n);
	queue_fini(&q);
}

static void what_must_not_fail_goes_into_a_full_queue(void **state)
{
	struct item *item = queue_item(KIND + 1);
	struct queue q;
	unsigned n;

	(void)state;
	assert_non_null(item);
	queue_init(&q, MOST);
	n = fill(&q, 0);
	queue_put(&q, item);
	assert_int_equal(empty(&q), n + 1);
	assert_int_equal(fill(&q, 0), n);
	queue_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(messages_without_bytes_are_bounded_too),
	        cmocka_unit_test(messages_of_many_bytes_fill_it_by_their_bytes),
	        cmocka_unit_test(what_must_not_fail_goes_into_a_full_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
