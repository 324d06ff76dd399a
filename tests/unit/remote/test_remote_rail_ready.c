/* SPDX-License-Identifier: MIT */
/* What an end is and what its ready does, over each provider. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "test.h"

#include "rail_pair.h"
#include "rail_private.h"

enum { COPY = 4096, PAGE = 4096 };

static void areas_start_on_pages_and_have_two_copies_and_counts_of_zero(void **state)
{
	struct rig_remote_transfer t[2] = {{0, 0, 100}, {300, 900, 200}};
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin(&pair, state);
	assert_int_equal(rail_pair_make(&pair, 5, t, 2, NULL, 0, &ends), 0);
	assert_int_equal(ends.end[0]->outbound.bytes, 2 * 512);
	assert_int_equal(ends.end[0]->inbound.bytes, 0);
	assert_null(ends.end[0]->inbound.at);
	assert_int_equal(ends.end[1]->inbound.bytes, 2 * 1280);
	assert_int_equal(ends.end[1]->outbound.bytes, 0);
	for (int i = 0; i < 2; i++) {
		const struct rig_remote_end *end = ends.end[i];

		assert_int_equal((uintptr_t)end->outbound.at % PAGE, 0);
		assert_int_equal((uintptr_t)end->inbound.at % PAGE, 0);
		assert_int_equal((uintptr_t)end->counts.at % PAGE, 0);
		assert_true(end->counts.bytes >= RIG_REMOTE_COUNTS_BYTES);
		for (size_t j = 0; j < end->counts.bytes; j++)
			assert_int_equal(((char *)end->counts.at)[j], 0);
	}
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

typedef void (*advance_fn)(const struct rig_remote_end *end, uint64_t c);

static void by_ready(const struct rig_remote_end *end, uint64_t c)
{
	end->ready(end->ready_arg, c);
}

static void by_ready_fn(const struct rig_remote_end *end, uint64_t c)
{
	end->ready_fn(end->counts.at, c);
}

static void both_forms_of_ready_raise_the_count_and_never_lower_it(void **state)
{
	static const advance_fn forms[] = {by_ready, by_ready_fn};

	for (int i = 0; i < 2; i++) {
		struct rail_pair pair;
		struct rail_ends ends;

		rail_pair_begin_one(&pair, state, COPY, &ends);
		forms[i](ends.end[0], 5);
		assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_READY), 5);
		forms[i](ends.end[0], 3);
		assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_READY), 5);
		rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 5);
		rail_wait(ends.end[0], RIG_REMOTE_SENT, 5);
		rail_ends_put(&ends);
		rail_pair_close(&pair);
	}
}

static void ready_ignores_zero_and_values_from_the_failure_on(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	rail_ready(ends.end[0], 0);
	rail_ready(ends.end[0], RIG_RAIL_FAILED);
	rail_ready(ends.end[0], RIG_RAIL_FAILED + 1);
	rail_ready(ends.end[0], UINT64_MAX);
	assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_READY), 0);
	rail_ready(ends.end[0], 1);
	assert_int_equal(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 1), 1);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

static void an_end_that_sends_nothing_advances_ready_and_moves_nothing(void **state)
{
	struct rig_remote_transfer t = {0, 0, 64};
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin(&pair, state);
	assert_int_equal(rail_pair_make(&pair, 1, &t, 1, NULL, 0, &ends), 0);
	rail_ready(ends.end[1], 9);
	rail_ready(ends.end[0], 2);
	rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 2);
	assert_int_equal(rig_remote_load(ends.end[1], RIG_REMOTE_READY), 9);
	assert_int_equal(rig_remote_load(ends.end[1], RIG_REMOTE_SENT), 0);
	assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_ARRIVED), 0);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

static void a_transfer_moves_only_once_it_is_ready(void **state)
{
	struct rig_remote_transfer t[2] = {{0, 0, 64}, {64, 64, 64}};
	struct rail_pair pair;
	struct rail_ends ends;
	const char *in;

	rail_pair_begin(&pair, state);
	assert_int_equal(rail_pair_make(&pair, 1, t, 2, NULL, 0, &ends), 0);
	memset(ends.end[0]->outbound.at, 0x77, 512);
	in = ends.end[1]->inbound.at;
	for (uint64_t c = 1; c <= 3; c++) {
		rail_ready(ends.end[0], c);
		assert_int_equal(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, c), c);
		/* The next one's place is as it was. */
		assert_int_equal(in[c % 2 * 64 + c / 2 * 256], 0);
	}
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

static void later_runs_land_in_a_copy_that_nobody_has_looked_at(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	for (uint64_t c = 1; c <= 6; c++) {
		memset((char *)ends.end[0]->outbound.at + (c - 1) % 2 * COPY, (int)c, COPY);
		rail_ready(ends.end[0], c);
		rail_wait(ends.end[0], RIG_REMOTE_SENT, c);
	}
	assert_int_equal(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 6), 6);
	assert_int_equal(((char *)ends.end[1]->inbound.at)[COPY - 1], 5);
	assert_int_equal(((char *)ends.end[1]->inbound.at)[2 * COPY - 1], 6);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

/* Nothing waits for the one that holds the link, and what was said meanwhile is seen at once. */
static void many_ready_counts_while_the_link_is_busy_cost_one_wake(void **state)
{
	struct rig_rails_stats before, after;
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, 8, &ends);
	rig_rails_stats(pair.rails[0], &before);
	rig_rail_link_lock(pair.link[0]);
	for (uint64_t c = 1; c <= 100; c++)
		rail_ready(ends.end[0], c);
	assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_READY), 100);
	rig_rail_link_unlock(pair.link[0]);
	rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 100);
	rig_rails_stats(pair.rails[0], &after);
	/* None, if the link's thread looked first. */
	assert_true(after.wakes - before.wakes <= 1);
	assert_int_equal(after.writes - before.writes, 100);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

enum { THREADS = 4, EACH = 2000 };

struct caller {
	const struct rig_remote_end *end;
	uint64_t *next;
};

static void *call_ready(void *arg)
{
	struct caller *caller = arg;

	for (int i = 0; i < EACH; i++)
		rail_ready(caller->end, __atomic_add_fetch(caller->next, 1, __ATOMIC_RELAXED));
	return NULL;
}

static void ready_may_be_called_from_many_threads(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;
	pthread_t threads[THREADS];
	uint64_t next = 0;
	struct caller caller;

	rail_pair_begin_one(&pair, state, 8, &ends);
	caller = (struct caller){ends.end[0], &next};
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_ready, &caller), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, THREADS * EACH), THREADS * EACH);
	assert_int_equal(rail_wait(ends.end[0], RIG_REMOTE_SENT, THREADS * EACH), THREADS * EACH);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

static void a_store_to_the_count_alone_is_not_needed_and_harms_nothing(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, 8, &ends);
	__atomic_store_n((uint64_t *)ends.end[0]->counts.at, 2, __ATOMIC_RELEASE);
	rail_ready(ends.end[0], 1);
	assert_int_equal(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 2), 2);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

static void counts_go_up_to_the_last_below_the_failure(void **state)
{
	const uint64_t last = RIG_RAIL_FAILED - 1;
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, 300, &ends);
	for (int i = 0; i < 2; i++)
		rig_rail_renumber(ends.end[i], last - 600);
	for (uint64_t c = last - 599; c <= last; c += c == last ? 1 : 7) {
		memset((char *)ends.end[0]->outbound.at + (c - 1) % 2 * 512, (int)(c & 0x7f), 300);
		rail_ready(ends.end[0], c);
		assert_true(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, c) == c);
		assert_int_equal(((char *)ends.end[1]->inbound.at)[(c - 1) % 2 * 512 + 299], c & 0x7f);
		rail_wait(ends.end[0], RIG_REMOTE_SENT, c); /* before it is written again */
		if (c < last && c + 7 > last)
			c = last - 7;
	}
	rail_ready(ends.end[0], RIG_RAIL_FAILED);
	assert_true(rig_remote_load(ends.end[0], RIG_REMOTE_READY) == last);
	assert_true(rail_wait(ends.end[0], RIG_REMOTE_SENT, last) == last);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

static uint64_t sleeps_of(struct rail_pair *pair, int side)
{
	struct rig_rails_stats stats;

	rig_rails_stats(pair->rails[side], &stats);
	return stats.sleeps;
}

static void await_sleep(struct rail_pair *pair, int side, uint64_t before)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);

	while (sleeps_of(pair, side) == before)
		assert_false(rig_deadline_passed(&deadline));
}

/* What moved woke both sides' threads, and each goes to sleep again before the next call. A
   sealed write is done when it was handed over, so that the sender's thread slept on. */
static void a_link_with_nothing_to_do_sleeps_and_a_call_wakes_it(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	for (uint64_t c = 1; c <= 20; c++) {
		uint64_t before[2] = {sleeps_of(&pair, 0), sleeps_of(&pair, 1)};

		rail_ready(ends.end[0], c);
		assert_int_equal(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, c), c);
		rail_wait(ends.end[0], RIG_REMOTE_SENT, c);
		for (int i = strcmp(*state, "sealed") ? 0 : 1; i < 2; i++)
			await_sleep(&pair, i, before[i]);
	}
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

struct one_call {
	const struct rig_remote_end *end;
	bool returned;
};

static void *call_once(void *arg)
{
	struct one_call *call = arg;

	call->end->ready_fn(call->end->counts.at, 1);
	__atomic_store_n(&call->returned, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The call returns while `lock` is held by another thread. */
static void check_call_beside(pthread_mutex_t *lock, const struct rig_remote_end *end, const char *what)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	struct one_call call = {end, false};
	pthread_t thread;

	(void)pthread_mutex_lock(lock);
	assert_int_equal(pthread_create(&thread, NULL, call_once, &call), 0);
	while (!__atomic_load_n(&call.returned, __ATOMIC_ACQUIRE))
		if (rig_deadline_passed(&deadline))
			fail_msg("ready waits for %s", what);
	(void)pthread_mutex_unlock(lock);
	(void)pthread_join(thread, NULL);
}

/* But for the registry of live rails, a leaf, and what the provider has of the connection. */
static void ready_waits_for_no_lock_of_the_engine_or_the_link(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, 8, &ends);
	for (int i = 0; i < 2; i++) {
		check_call_beside(&pair.rails[i]->lock, ends.end[0], "an engine's lock");
		check_call_beside(&pair.link[i]->lock, ends.end[0], "a link's lock");
	}
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

#ifndef RAIL_LATE /* which wraps writes itself */
/* Writes that a thread began, by --wrap. */
static __thread unsigned begun;
int __real_rig_conn_write(struct rig_conn *conn, const void *from, const struct rig_fabric_memory *source,
        size_t bytes, const struct rig_fabric_target *to, uint64_t offset, uint32_t note,
        struct rig_conn_op *op);
int __wrap_rig_conn_write(struct rig_conn *conn, const void *from, const struct rig_fabric_memory *source,
        size_t bytes, const struct rig_fabric_target *to, uint64_t offset, uint32_t note,
        struct rig_conn_op *op);

int __wrap_rig_conn_write(struct rig_conn *conn, const void *from, const struct rig_fabric_memory *source,
        size_t bytes, const struct rig_fabric_target *to, uint64_t offset, uint32_t note,
        struct rig_conn_op *op)
{
	int code = __real_rig_conn_write(conn, from, source, bytes, to, offset, note, op);

	begun += code >= 0;
	return code;
}

/* And the rest goes all the same; a failure ends it long before the last. */
static void a_count_far_ahead_begins_few_writes_in_its_call_and_a_failure_ends_the_rest(void **state)
{
	enum { FAR = 4000000, SOME = 2000 };
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, 64, &ends);
	begun = 0;
	rail_ready(ends.end[0], FAR);
	assert_in_range(begun, 0, RIG_LOOK_CALL);
	assert_true(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, SOME) < FAR);
	rig_rails_fail(pair.rails[0], "enough");
	rail_wait(ends.end[0], RIG_REMOTE_SENT, RIG_RAIL_FAILED);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

/* A rail is made while ready of another is called: by this, with the link's lock. */
static struct rail_ends *meanwhile;
void *__real_realloc(void *at, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);

void *__wrap_realloc(void *at, size_t bytes)
{
	struct rail_ends *ends = meanwhile;

	meanwhile = NULL;
	if (ends)
		rail_ready(ends->end[0], 1);
	return __real_realloc(at, bytes);
}

static void a_call_of_ready_while_a_rail_is_made_is_seen(void **state)
{
	enum { MOST = 64 }; /* more than a link's first table of rails */
	struct rig_remote_transfer t = {0, 0, 64};
	const struct rig_remote_end *more[MOST];
	struct rig_rail_blob blob;
	struct rail_pair pair;
	struct rail_ends ends;
	uint64_t n = 0;
	int code;

	/* Its thread looks no longer than it must. */
	code = rail_pair_open(&pair, &(struct rig_rails_options){.provider = *state});
	if (code == -ENODEV)
		skip();
	assert_int_equal(code, 0);
	assert_int_equal(rail_pair_make(&pair, 1, &t, 1, NULL, 0, &ends), 0);
	meanwhile = &ends;
	while (meanwhile && n < MOST) {
		assert_int_equal(rig_rail_make(pair.link[0], n + 2, &t, 1, NULL, 0, &blob, &more[n]), 0);
		n++;
	}
	assert_null(meanwhile);
	rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 1);
	while (n)
		rig_remote_end_put(more[--n]);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
	        RAIL_TEST(areas_start_on_pages_and_have_two_copies_and_counts_of_zero),
	        RAIL_TEST(both_forms_of_ready_raise_the_count_and_never_lower_it),
	        RAIL_TEST(ready_ignores_zero_and_values_from_the_failure_on),
	        RAIL_TEST(an_end_that_sends_nothing_advances_ready_and_moves_nothing),
	        RAIL_TEST(a_transfer_moves_only_once_it_is_ready),
	        RAIL_TEST(later_runs_land_in_a_copy_that_nobody_has_looked_at),
	        RAIL_TEST(many_ready_counts_while_the_link_is_busy_cost_one_wake),
	        RAIL_TEST(ready_may_be_called_from_many_threads),
	        RAIL_TEST(a_store_to_the_count_alone_is_not_needed_and_harms_nothing),
	        RAIL_TEST(counts_go_up_to_the_last_below_the_failure),
	        RAIL_TEST(a_link_with_nothing_to_do_sleeps_and_a_call_wakes_it),
	        RAIL_TEST(ready_waits_for_no_lock_of_the_engine_or_the_link),
#ifndef RAIL_LATE
	        RAIL_TEST(a_count_far_ahead_begins_few_writes_in_its_call_and_a_failure_ends_the_rest),
	        RAIL_TEST(a_call_of_ready_while_a_rail_is_made_is_seen),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
