/* SPDX-License-Identifier: MIT */
/*
 * Rails against a model: random transfers, both directions at once, over each provider. Each direction has
 * a thread that sends and one that receives; the receiver keeps a model of what its inbound must hold. A
 * sampler watches all counts. With RAIL_DELAYED the provider is late: rail_delay.h.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "draw.h"
#include "rail_pair.h"
#include "rail_private.h"
#ifdef RAIL_DELAYED
#include "rail_delay.h"
#else
/* Nothing is late, and nobody watches. */
static unsigned rail_delay_spoilt(void)
{
	return 0;
}

static unsigned rail_delay_overtaken(void)
{
	return 1;
}

static uint64_t rail_delay_stored(const struct rig_remote_end *end, enum rig_remote_count count)
{
	(void)end;
	(void)count;
	return RIG_RAIL_FAILED;
}

static void rail_delay_forget(void)
{
}
#endif

enum { MOST = 128, ROUNDS = 12, COUNTS = 70000 };

/* One direction of a rail. */
struct direction {
	const struct rig_remote_end *from, *to;
	struct rig_remote_transfer transfers[MOST];
	size_t n;
	size_t from_bytes, to_bytes; /* of a copy */
	uint64_t runs;
	uint64_t taken; /* atomic: runs that the receiver has looked at */
	bool apart;     /* no two transfers land on one byte */
	bool failed;    /* atomic: a thread saw the failure value */
	bool wrong;     /* the model says otherwise */
	uint64_t random;
	char said[128];
};

static uint8_t pattern(uint64_t run, size_t i)
{
	uint64_t x = (run + 1) * UINT64_C(0x9e3779b97f4a7c15) + i * UINT64_C(0xbf58476d1ce4e5b9);

	return (uint8_t)(x >> 37);
}

static void dawdle(uint64_t *random)
{
	if (test_draw(random, 4))
		return;
	for (uint32_t i = test_draw(random, 20); i; i--)
		(void)sched_yield();
}

/* Whether the job has failed. */
static bool wait_count(
        struct direction *d, const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c)
{
	if (rail_wait(end, count, c) != RIG_RAIL_FAILED)
		return false;
	__atomic_store_n(&d->failed, true, __ATOMIC_RELEASE);
	return true;
}

/* Runs r and r + 2 land in one copy: the receiver has to have looked at the first. */
static bool wait_taken(struct direction *d, uint64_t run)
{
	while (run >= 2 && __atomic_load_n(&d->taken, __ATOMIC_ACQUIRE) < run - 1) {
		if (__atomic_load_n(&d->failed, __ATOMIC_ACQUIRE))
			return false;
		(void)sched_yield();
	}
	return true;
}

static void place(struct direction *d, uint64_t run)
{
	uint8_t *copy = (uint8_t *)d->from->outbound.at + run % 2 * d->from_bytes;

	for (size_t i = 0; i < d->from_bytes; i++)
		copy[i] = pattern(run, i);
}

static void *send_runs(void *arg)
{
	struct direction *d = arg;
	uint64_t random = d->random;

	for (uint64_t run = 0; run < d->runs; run++) {
		bool singly = test_draw(&random, 2);

		if (run >= 2) {
			if (wait_count(d, d->from, RIG_REMOTE_SENT, d->n * (run - 1)))
				return NULL;
			/* Sent: what is written there now reaches nobody. */
			memset((char *)d->from->outbound.at + run % 2 * d->from_bytes, 0xee, d->from_bytes);
		}
		if (!wait_taken(d, run))
			return NULL;
		place(d, run);
		for (size_t j = 0; j < d->n; j++) {
			dawdle(&random);
			if (singly || j == d->n - 1)
				rail_ready(d->from, run * d->n + j + 1);
		}
	}
	return NULL;
}

static void say_wrong(struct direction *d, uint64_t run, size_t j, size_t at)
{
	d->wrong = true;
	(void)snprintf(
	        d->said, sizeof(d->said), "run %llu, transfer %zu, byte %zu", (unsigned long long)run, j, at);
}

static void check_transfer(struct direction *d, uint64_t run, size_t j)
{
	const struct rig_remote_transfer *t = &d->transfers[j];
	const uint8_t *in = (uint8_t *)d->to->inbound.at + run % 2 * d->to_bytes + t->dst;

	for (size_t i = 0; i < (size_t)t->length && !d->wrong; i++)
		if (in[i] != pattern(run, (size_t)t->src + i))
			say_wrong(d, run, j, i);
}

static void check_copy(struct direction *d, uint64_t run, uint8_t *model)
{
	const uint8_t *in = (uint8_t *)d->to->inbound.at + run % 2 * d->to_bytes;

	for (size_t j = 0; j < d->n; j++)
		for (size_t i = 0; i < (size_t)d->transfers[j].length; i++)
			model[(size_t)d->transfers[j].dst + i] =
			        pattern(run, (size_t)d->transfers[j].src + i);
	for (size_t i = 0; i < d->to_bytes && !d->wrong; i++)
		if (in[i] != model[i])
			say_wrong(d, run, d->n, i);
}

static void *receive_runs(void *arg)
{
	struct direction *d = arg;
	uint64_t random = d->random + 1;
	uint8_t *model = calloc(2, d->to_bytes ? d->to_bytes : 1);

	for (uint64_t run = 0; run < d->runs && !d->wrong; run++) {
		for (size_t j = 0; j < d->n; j++) {
			if (!d->apart && j < d->n - 1)
				continue;
			if (wait_count(d, d->to, RIG_REMOTE_ARRIVED, run * d->n + j + 1))
				goto out;
			if (d->apart)
				check_transfer(d, run, j);
		}
		check_copy(d, run, model + run % 2 * d->to_bytes);
		dawdle(&random);
		__atomic_store_n(&d->taken, run + 1, __ATOMIC_RELEASE);
	}
	if (d->wrong)
		__atomic_store_n(&d->failed, true, __ATOMIC_RELEASE);
out:
	free(model);
	return NULL;
}

/* ---- What is watched all the time ---- */

struct sampler {
	struct rail_ends *ends;
	bool stop; /* atomic */
	bool may_fail;
	bool fell, showed_failure, foreign;
};

/* Whether the engine did not store it. */
static bool is_foreign(const struct rig_remote_end *end, enum rig_remote_count count, uint64_t now)
{
	return count != RIG_REMOTE_READY && now > rail_delay_stored(end, count);
}

static void *sample(void *arg)
{
	static const enum rig_remote_count counts[] = {RIG_REMOTE_READY, RIG_REMOTE_SENT, RIG_REMOTE_ARRIVED};
	struct sampler *s = arg;
	uint64_t seen[6] = {0};

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 6; i++) {
			uint64_t now = rig_remote_load(s->ends->end[i / 3], counts[i % 3]);

			s->fell |= now < seen[i];
			s->foreign |= is_foreign(s->ends->end[i / 3], counts[i % 3], now);
			s->showed_failure |= now == RIG_RAIL_FAILED;
			seen[i] = now;
		}
		(void)sched_yield();
	}
	return NULL;
}

/* ---- Random rails ---- */

static bool are_apart(const struct direction *d)
{
	for (size_t i = 0; i < d->n; i++)
		for (size_t j = 0; j < i; j++) {
			const struct rig_remote_transfer *a = &d->transfers[i], *b = &d->transfers[j];

			if (a->dst < b->dst + b->length && b->dst < a->dst + a->length)
				return false;
		}
	return true;
}

static void draw_transfers(struct direction *d, uint64_t *random, size_t n)
{
	int64_t at = 0;
	bool apart = test_draw(random, 3) != 0;

	d->n = n;
	for (size_t j = 0; j < n; j++) {
		int64_t length = 1 + test_draw(random, test_draw(random, 8) ? 1500 : 90000);

		if (apart)
			at += test_draw(random, 100);
		d->transfers[j] = (struct rig_remote_transfer){
		        test_draw(random, 2000), apart ? at : test_draw(random, 3000), length};
		at += length;
	}
	d->apart = are_apart(d);
	d->random = *random;
}

static void begin(struct direction *d, const struct rig_remote_end *from, const struct rig_remote_end *to,
        uint64_t runs)
{
	d->from = from;
	d->to = to;
	d->runs = d->n ? runs : 0;
	d->from_bytes = rig_remote_copy_bytes(d->transfers, d->n, false);
	d->to_bytes = rig_remote_copy_bytes(d->transfers, d->n, true);
	assert_int_equal(from->outbound.bytes, 2 * d->from_bytes);
	assert_int_equal(to->inbound.bytes, 2 * d->to_bytes);
}

static void say_moved(void *arg)
{
	uint64_t random = rig_now_ns();

	(void)arg;
	dawdle(&random);
}

static void open_pair(struct rail_pair *pair, void **state, size_t piece)
{
	struct rig_rails_options options = {
	        .provider = *state, .spin_ns = UINT64_MAX, .piece = piece, .moved = say_moved};
	int code = rail_pair_open(pair, &options);

	rail_delay_forget();
	if (code == -ENODEV)
		skip();
	if (code)
		fail_msg("no pair: %s", rig_error());
}

struct traffic {
	struct direction d[2];
	struct sampler sampler;
	pthread_t threads[5];
};

static void start(struct traffic *t, struct rail_ends *ends, uint64_t runs)
{
	begin(&t->d[0], ends->end[0], ends->end[1], runs);
	begin(&t->d[1], ends->end[1], ends->end[0], runs);
	t->sampler.ends = ends;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&t->threads[2 * i], NULL, send_runs, &t->d[i]), 0);
		assert_int_equal(pthread_create(&t->threads[2 * i + 1], NULL, receive_runs, &t->d[i]), 0);
	}
	assert_int_equal(pthread_create(&t->threads[4], NULL, sample, &t->sampler), 0);
}

static void finish(struct traffic *t)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(t->threads[i], NULL), 0);
	__atomic_store_n(&t->sampler.stop, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(t->threads[4], NULL), 0);
	assert_false(t->sampler.fell);
	assert_false(t->sampler.foreign);
	assert_int_equal(rail_delay_spoilt(), 0);
	assert_true(rail_delay_overtaken() > 0);
	for (int i = 0; i < 2; i++)
		if (t->d[i].wrong)
			fail_msg("direction %d: %s is not what the model has", i, t->d[i].said);
}

static void rails_carry_random_transfers_as_the_model_does(void **state)
{
	static const size_t pieces[] = {0, 1000, 4096, 65536};
	uint64_t random = 42;

	for (int round = 0; round < ROUNDS; round++) {
		static struct traffic traffic;
		struct rail_pair pair;
		struct rail_ends ends;
		size_t n[2] = {test_draw(&random, 9), test_draw(&random, 9)};

		memset(&traffic, 0, sizeof(traffic));
		n[0] += !n[0] && !n[1];
		for (int i = 0; i < 2; i++)
			draw_transfers(&traffic.d[i], &random, n[i]);
		open_pair(&pair, state, pieces[test_draw(&random, 4)]);
		assert_int_equal(rail_pair_make(&pair, 1, traffic.d[0].transfers, n[0],
		                         traffic.d[1].transfers, n[1], &ends),
		        0);
		start(&traffic, &ends, 40);
		finish(&traffic);
		assert_false(traffic.sampler.showed_failure);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(rail_wait(ends.end[i], RIG_REMOTE_SENT, 40 * n[i]), 40 * n[i]);
			assert_int_equal(rig_remote_load(ends.end[!i], RIG_REMOTE_ARRIVED), 40 * n[i]);
		}
		rail_ends_put(&ends);
		rail_pair_close(&pair);
	}
}

static void a_failure_at_any_point_ends_every_wait(void **state)
{
	uint64_t random = 4711;

	for (int round = 0; round < ROUNDS; round++) {
		static struct traffic traffic;
		struct rail_pair pair;
		struct rail_ends ends;

		memset(&traffic, 0, sizeof(traffic));
		for (int i = 0; i < 2; i++)
			draw_transfers(&traffic.d[i], &random, 3);
		open_pair(&pair, state, 4096);
		assert_int_equal(
		        rail_pair_make(&pair, 1, traffic.d[0].transfers, 3, traffic.d[1].transfers, 3, &ends),
		        0);
		start(&traffic, &ends, UINT64_MAX / 8);
		rail_wait(ends.end[round % 2], RIG_REMOTE_ARRIVED, test_draw(&random, 100));
		for (int i = 0; i < 2; i++)
			rig_rails_fail(pair.rails[i], "at random");
		finish(&traffic);
		for (int i = 0; i < 2; i++) {
			assert_true(rig_remote_load(ends.end[i], RIG_REMOTE_READY) == RIG_RAIL_FAILED);
			assert_true(rig_remote_load(ends.end[i], RIG_REMOTE_SENT) == RIG_RAIL_FAILED);
			assert_true(rig_remote_load(ends.end[i], RIG_REMOTE_ARRIVED) == RIG_RAIL_FAILED);
		}
		rail_ends_put(&ends);
		rail_pair_close(&pair);
	}
}

static void several_rails_of_a_link_do_not_disturb_each_other(void **state)
{
	enum { RAILS = 3 };
	static struct traffic traffic[RAILS];
	struct rail_ends ends[RAILS];
	uint64_t random = 99;
	struct rail_pair pair;

	memset(traffic, 0, sizeof(traffic));
	open_pair(&pair, state, 8192);
	for (uint64_t i = 0; i < RAILS; i++) {
		for (int side = 0; side < 2; side++)
			draw_transfers(&traffic[i].d[side], &random, 1 + i);
		assert_int_equal(rail_pair_make(&pair, i, traffic[i].d[0].transfers, 1 + i,
		                         traffic[i].d[1].transfers, 1 + i, &ends[i]),
		        0);
	}
	for (int i = 0; i < RAILS; i++)
		start(&traffic[i], &ends[i], 30);
	for (int i = 0; i < RAILS; i++)
		finish(&traffic[i]);
	for (int i = 0; i < RAILS; i++)
		rail_ends_put(&ends[i]);
	rail_pair_close(&pair);
}

/* 10^6 counts in all, small ones. */
static void counts_beyond_16_bits_arrive_in_order_both_ways(void **state)
{
	const char *counts = getenv("RIG_RAIL_COUNTS"); /* a soak takes more */
	static struct traffic traffic;
	struct rail_pair pair;
	struct rail_ends ends;

	memset(&traffic, 0, sizeof(traffic));
	for (int i = 0; i < 2; i++) {
		struct direction *d = &traffic.d[i];

		d->n = MOST;
		d->apart = true;
		for (size_t j = 0; j < MOST; j++)
			d->transfers[j] = (struct rig_remote_transfer){
			        (int64_t)(MOST - 1 - j) * 8, (int64_t)j * 16, 1 + (int64_t)j % 16};
	}
	open_pair(&pair, state, 0);
	assert_int_equal(
	        rail_pair_make(&pair, 1, traffic.d[0].transfers, MOST, traffic.d[1].transfers, MOST, &ends),
	        0);
	start(&traffic, &ends, (counts ? strtoull(counts, NULL, 0) : COUNTS) / MOST + 1);
	finish(&traffic);
	assert_false(traffic.sampler.showed_failure);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        RAIL_TEST(rails_carry_random_transfers_as_the_model_does),
	        RAIL_TEST(a_failure_at_any_point_ends_every_wait),
	        RAIL_TEST(several_rails_of_a_link_do_not_disturb_each_other),
	        RAIL_TEST(counts_beyond_16_bits_arrive_in_order_both_ways),
	};

	/* Of no concern to tcp. */
	if (getenv("FI_SHM_DISABLE_CMA"))
		cmocka_set_test_filter("*_over_shm");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
