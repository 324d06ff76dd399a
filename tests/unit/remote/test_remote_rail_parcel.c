/* SPDX-License-Identifier: MIT */
/* Parcels: what goes arrives, and every ticket is resolved once, after which nothing writes there. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "rail_pair.h"
#include "rail_private.h"

enum { PIECE = 4096, ODD = 3, GUARD = 64, MANY = 300 };

/* What an engine told of a parcel. */
struct fate {
	unsigned told;
	int err;
};

static void tell(void *arg, int err)
{
	struct fate *fate = arg;

	__atomic_store_n(&fate->err, err, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&fate->told, 1, __ATOMIC_RELEASE);
}

static bool is_told(const struct fate *fate)
{
	return __atomic_load_n(&fate->told, __ATOMIC_ACQUIRE) != 0;
}

static void wait_told(const struct fate *fate, int err)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);

	while (!is_told(fate)) {
		if (rig_deadline_passed(&deadline))
			fail_msg("a parcel is not resolved");
		(void)sched_yield();
	}
	assert_int_equal(__atomic_load_n(&fate->err, __ATOMIC_RELAXED), err); /* may be told again */
}

static const char *provider;

static void begin(struct rail_pair *pair, size_t piece)
{
	struct rig_rails_options options = {.provider = provider, .spin_ns = UINT64_MAX, .piece = piece};
	int code = rail_pair_open(pair, &options);

	if (code == -ENODEV)
		skip();
	assert_int_equal(code, 0);
}

static uint8_t pattern(uint64_t seed, size_t at)
{
	return (uint8_t)(seed * 31 + at * 7 + at / 251);
}

/* Memory with what must not be touched before and behind, at an odd address. */
struct landing {
	uint8_t *memory, *at;
	size_t bytes;
	struct fate landed, sent;
	struct rig_parcel_ticket ticket;
};

static void make_landing(struct landing *l, size_t bytes)
{
	*l = (struct landing){.memory = malloc(bytes + 2 * GUARD + ODD), .bytes = bytes};
	assert_non_null(l->memory);
	memset(l->memory, 0xa5, bytes + 2 * GUARD + ODD);
	l->at = l->memory + GUARD + ODD;
}

static void expect(struct rail_pair *pair, int side, struct landing *l, size_t bytes)
{
	make_landing(l, bytes);
	assert_int_equal(rig_rail_expect(pair->link[side], l->at, bytes, tell, &l->landed, &l->ticket), 0);
	assert_true(l->ticket.bytes == bytes);
}

static void assert_landed(const struct landing *l, uint64_t seed)
{
	for (size_t i = 0; i < l->bytes; i++)
		if (l->at[i] != pattern(seed, i))
			fail_msg("byte %zu of %zu is wrong", i, l->bytes);
	for (size_t i = 0; i < GUARD; i++)
		assert_true(l->at[l->bytes + i] == 0xa5 && l->at[-1 - (ptrdiff_t)i] == 0xa5);
}

static uint8_t *make_source(size_t bytes, uint64_t seed)
{
	uint8_t *memory = malloc(bytes + 1);

	assert_non_null(memory);
	for (size_t i = 0; i < bytes; i++)
		memory[1 + i] = pattern(seed, i);
	return memory;
}

static void parcels_of_any_size_arrive_whole_both_ways(void **state)
{
	static const size_t sizes[] = {1, 2, 64, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 100 * PIECE + 77};
	struct rail_pair pair;

	(void)state;
	begin(&pair, PIECE);
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		uint8_t *from = make_source(sizes[i / 2], i);
		int to = (int)(i % 2);
		struct landing l;

		expect(&pair, to, &l, sizes[i / 2]);
		assert_int_equal(rig_rail_send(pair.link[!to], from + 1, &l.ticket, tell, &l.sent), 0);
		wait_told(&l.landed, 0);
		wait_told(&l.sent, 0);
		assert_landed(&l, i);
		assert_int_equal(l.landed.told, 1);
		assert_int_equal(l.sent.told, 1);
		free(from);
		free(l.memory);
	}
	assert_null(rig_rails_why(pair.rails[0]));
	rail_pair_close(&pair);
}

static void more_parcels_than_the_first_table_has_go_at_once_in_any_order(void **state)
{
	static struct landing l[2][MANY];
	uint8_t *from[2][MANY];
	struct rail_pair pair;

	(void)state;
	begin(&pair, PIECE);
	for (int to = 0; to < 2; to++)
		for (size_t i = 0; i < MANY; i++) {
			expect(&pair, to, &l[to][i], 1 + i * 61 % (3 * PIECE));
			assert_int_equal(l[to][i].ticket.number, i);
		}
	for (size_t k = 0; k < MANY; k++)
		for (int to = 0; to < 2; to++) {
			/* 7 and MANY have no common factor. */
			size_t i = k * 7 % MANY;

			from[to][i] = make_source(l[to][i].bytes, i + 1000 * (size_t)to);
			assert_int_equal(rig_rail_send(pair.link[!to], from[to][i] + 1, &l[to][i].ticket,
			                         tell, &l[to][i].sent),
			        0);
		}
	for (int to = 0; to < 2; to++)
		for (size_t i = 0; i < MANY; i++) {
			wait_told(&l[to][i].landed, 0);
			wait_told(&l[to][i].sent, 0);
			assert_landed(&l[to][i], i + 1000 * (size_t)to);
			free(from[to][i]);
			free(l[to][i].memory);
		}
	rail_pair_close(&pair);
	for (int to = 0; to < 2; to++)
		for (size_t i = 0; i < MANY; i++) {
			assert_int_equal(l[to][i].landed.told, 1);
			assert_int_equal(l[to][i].sent.told, 1);
		}
}

static void a_number_is_used_again_and_names_the_new_parcel_alone(void **state)
{
	struct landing first, second;
	struct rail_pair pair;
	uint8_t *from;

	(void)state;
	begin(&pair, PIECE);
	expect(&pair, 0, &first, 3 * PIECE);
	assert_int_equal(rig_rail_unexpect(pair.link[0], first.ticket.number), 0);
	expect(&pair, 0, &second, 2 * PIECE);
	assert_int_equal(second.ticket.number, first.ticket.number);
	from = make_source(2 * PIECE, 5);
	assert_int_equal(rig_rail_send(pair.link[1], from + 1, &second.ticket, tell, &second.sent), 0);
	wait_told(&second.landed, 0);
	wait_told(&second.sent, 0);
	assert_landed(&second, 5);
	assert_int_equal(first.landed.told, 1);
	assert_int_equal(first.landed.err, -ECANCELED);
	rail_pair_close(&pair);
	free(from);
	free(first.memory);
	free(second.memory);
}

static void what_is_not_sent_is_unexpected_once(void **state)
{
	struct rail_pair pair;
	struct landing l;

	(void)state;
	begin(&pair, PIECE);
	expect(&pair, 1, &l, 10);
	assert_int_equal(rig_rail_unexpect(pair.link[1], l.ticket.number + 1), -ENOENT);
	assert_int_equal(rig_rail_unexpect(pair.link[1], UINT32_MAX), -ENOENT);
	assert_int_equal(rig_rail_unexpect(pair.link[0], l.ticket.number), -ENOENT);
	assert_non_null(strstr(rig_error(), "parcel"));
	assert_int_equal(l.landed.told, 0);
	assert_int_equal(rig_rail_unexpect(pair.link[1], l.ticket.number), 0);
	assert_int_equal(l.landed.told, 1);
	assert_int_equal(l.landed.err, -ECANCELED);
	assert_int_equal(rig_rail_unexpect(pair.link[1], l.ticket.number), -ENOENT);
	rail_pair_close(&pair);
	assert_int_equal(l.landed.told, 1);
	free(l.memory);
}

static void no_bytes_are_no_parcel(void **state)
{
	struct rig_parcel_ticket ticket = {.bytes = 0};
	struct rail_pair pair;
	struct fate fate = {0};
	uint8_t byte = 0;

	(void)state;
	begin(&pair, PIECE);
	assert_int_equal(rig_rail_expect(pair.link[0], &byte, 0, tell, &fate, &ticket), -EINVAL);
	assert_int_equal(rig_rail_send(pair.link[0], &byte, &ticket, tell, &fate), -EINVAL);
	rail_pair_close(&pair);
	assert_int_equal(fate.told, 0);
}

static void a_link_expects_so_many_parcels_and_no_more(void **state)
{
	static uint8_t byte[RIG_RAIL_PARCELS];
	static struct fate fates[RIG_RAIL_PARCELS];
	static uint32_t numbers[RIG_RAIL_PARCELS];
	struct rig_parcel_ticket ticket;
	struct rail_pair pair;
	struct fate extra = {0};
	uint8_t *from = make_source(1, 9);

	(void)state;
	memset(fates, 0, sizeof(fates));
	begin(&pair, PIECE);
	for (uint32_t i = 0; i < RIG_RAIL_PARCELS; i++) {
		assert_int_equal(rig_rail_expect(pair.link[0], &byte[i], 1, tell, &fates[i], &ticket), 0);
		numbers[i] = ticket.number;
	}
	assert_int_equal(ticket.number, RIG_RAIL_PARCELS - 1);
	assert_int_equal(rig_rail_expect(pair.link[0], &byte[0], 1, tell, &extra, &ticket), -EMFILE);
	/* The highest number's notes are its own. */
	assert_int_equal(rig_rail_unexpect(pair.link[0], numbers[7]), 0);
	assert_int_equal(rig_rail_unexpect(pair.link[0], RIG_RAIL_PARCELS - 1), 0);
	assert_int_equal(rig_rail_expect(pair.link[0], &byte[7], 1, tell, &extra, &ticket), 0);
	assert_int_equal(ticket.number, 7);
	assert_int_equal(rig_rail_expect(pair.link[0], &byte[8], 1, tell, &extra, &ticket), 0);
	assert_int_equal(rig_rail_send(pair.link[1], from + 1, &ticket, tell, &extra), 0);
	wait_told(&extra, 0);
	rail_pair_close(&pair);
	assert_int_equal(extra.told, 3);
	for (uint32_t i = 0; i < RIG_RAIL_PARCELS; i++)
		assert_int_equal(fates[i].told, 1);
	assert_int_equal(fates[6].err, -ECONNABORTED);
	free(from);
}

/* ---- Beside rails ---- */

enum { BUSY_BYTES = 1 << 20, BUSY_COUNTS = 400, TURNS = 50 };

struct busy {
	struct rail_ends *ends;
	bool stop; /* atomic */
};

/* A rail that always has more ready than a link takes. */
static void *keep_busy(void *arg)
{
	struct busy *b = arg;
	const struct rig_remote_end *end = b->ends->end[0];

	while (!__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE)) {
		rail_ready(end, rig_remote_load(end, RIG_REMOTE_SENT) + BUSY_COUNTS);
		(void)sched_yield();
	}
	return NULL;
}

static void parcels_get_on_beside_a_rail_that_is_never_done(void **state)
{
	struct rig_remote_transfer t = {0, 0, BUSY_BYTES};
	struct rail_pair pair;
	struct rail_ends ends;
	struct busy busy = {&ends, false};
	pthread_t thread;
	uint8_t *from = make_source(3 << 20, 1);

	(void)state;
	begin(&pair, 0);
	assert_int_equal(rail_pair_make(&pair, 1, &t, 1, NULL, 0, &ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, keep_busy, &busy), 0);
	rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 10);
	for (int i = 0; i < 4; i++) {
		struct landing l;

		expect(&pair, 1, &l, 3 << 20);
		assert_int_equal(rig_rail_send(pair.link[0], from + 1, &l.ticket, tell, &l.sent), 0);
		wait_told(&l.landed, 0);
		wait_told(&l.sent, 0);
		assert_landed(&l, 1);
		free(l.memory);
	}
	__atomic_store_n(&busy.stop, true, __ATOMIC_RELEASE);
	(void)pthread_join(thread, NULL);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
	free(from);
}

static void a_rails_counts_get_on_beside_parcels_that_never_end(void **state)
{
	enum { LARGE = 64 << 20 };
	struct rig_remote_transfer t = {0, 0, 64};
	struct rail_pair pair;
	struct rail_ends ends;
	struct landing l[2];
	uint8_t *from = make_source(LARGE, 2);
	unsigned before = 0;

	(void)state;
	begin(&pair, 0);
	assert_int_equal(rail_pair_make(&pair, 1, &t, 1, &t, 1, &ends), 0);
	for (int i = 0; i < 2; i++) {
		expect(&pair, i, &l[i], LARGE);
		assert_int_equal(rig_rail_send(pair.link[!i], from + 1, &l[i].ticket, tell, &l[i].sent), 0);
	}
	for (uint64_t c = 1; c <= TURNS; c++) {
		memset(ends.end[0]->outbound.at, (int)c, ends.end[0]->outbound.bytes);
		rail_ready(ends.end[0], c);
		rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, c);
		assert_int_equal(
		        ((uint8_t *)ends.end[1]->inbound.at)[c % 2 ? 0 : ends.end[1]->inbound.bytes / 2], c);
		rail_ready(ends.end[1], c);
		rail_wait(ends.end[0], RIG_REMOTE_ARRIVED, c);
		before += !is_told(&l[0].landed) || !is_told(&l[1].landed);
	}
	/* The first ones at least: 128 MiB are more than one turn takes. */
	assert_true(before > 0);
	for (int i = 0; i < 2; i++) {
		wait_told(&l[i].landed, 0);
		wait_told(&l[i].sent, 0);
		assert_landed(&l[i], 2);
		free(l[i].memory);
	}
	rail_ends_put(&ends);
	rail_pair_close(&pair);
	free(from);
}

/* ---- Ends ---- */

enum { OPEN = 8, LONG_BYTES = 16 << 20 };

/* Parcels under way at any stage both ways: not sent, sent, some of it there. */
struct flights {
	struct rail_pair pair;
	struct landing l[2][OPEN];
	uint8_t *from, *seen[2][OPEN];
};

static void begin_flights(struct flights *f)
{
	begin(&f->pair, 0);
	f->from = make_source(LONG_BYTES, 3);
	for (int to = 0; to < 2; to++)
		for (int i = 0; i < OPEN; i++) {
			expect(&f->pair, to, &f->l[to][i], LONG_BYTES);
			f->seen[to][i] = malloc(LONG_BYTES);
			assert_non_null(f->seen[to][i]);
		}
	for (int i = 0; i < OPEN - 1; i++)
		for (int to = 0; to < 2; to++)
			assert_int_equal(rig_rail_send(f->pair.link[!to], f->from + 1, &f->l[to][i].ticket,
			                         tell, &f->l[to][i].sent),
			        0);
	wait_told(&f->l[0][0].landed, 0);
}

static void end_flights(struct flights *f)
{
	rail_pair_close(&f->pair);
	for (int to = 0; to < 2; to++)
		for (int i = 0; i < OPEN; i++) {
			const struct landing *l = &f->l[to][i];

			assert_int_equal(l->landed.told, 1);
			assert_int_equal(l->sent.told, i < OPEN - 1);
			assert_true(!l->landed.err || l->landed.err == -ECONNABORTED);
			assert_true(!l->sent.err || l->sent.err == -ECONNABORTED);
			if (!l->landed.err)
				assert_landed(l, 3);
			free(f->seen[to][i]);
			free(l->memory);
		}
	assert_int_equal(f->l[0][OPEN - 1].landed.err, -ECONNABORTED);
	free(f->from);
}

/* Resolved; what is there now stays. */
static void note_side(struct flights *f, int side)
{
	for (int i = 0; i < OPEN; i++) {
		assert_true(is_told(&f->l[side][i].landed));
		memcpy(f->seen[side][i], f->l[side][i].at, LONG_BYTES);
	}
}

static void assert_side_as_noted(struct flights *f, int side)
{
	for (int i = 0; i < OPEN; i++)
		assert_memory_equal(f->seen[side][i], f->l[side][i].at, LONG_BYTES);
}

static void await_side(struct flights *f, int side)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);

	for (int i = 0; i < OPEN; i++)
		while (!is_told(&f->l[side][i].landed) || (i < OPEN - 1 && !is_told(&f->l[!side][i].sent))) {
			if (rig_deadline_passed(&deadline))
				fail_msg("parcel %d to side %d is not resolved", i, side);
			(void)sched_yield();
		}
}

static void a_failure_of_the_receiving_engine_resolves_all_and_nothing_writes_afterwards(void **state)
{
	static struct flights f;

	(void)state;
	begin_flights(&f);
	rig_rails_fail(f.pair.rails[0], "the test");
	await_side(&f, 0);
	note_side(&f, 0);
	/* The other engine goes on until it notices, and then has resolved its own. */
	await_side(&f, 1);
	assert_non_null(rig_rails_why(f.pair.rails[1]));
	assert_side_as_noted(&f, 0);
	end_flights(&f);
}

static void a_failure_of_both_engines_at_once_resolves_all_once(void **state)
{
	static struct flights f;

	(void)state;
	begin_flights(&f);
	for (int side = 0; side < 2; side++)
		rig_rails_fail(f.pair.rails[side], "the test");
	for (int side = 0; side < 2; side++) {
		await_side(&f, side);
		note_side(&f, side);
	}
	for (int side = 0; side < 2; side++)
		assert_side_as_noted(&f, side);
	end_flights(&f);
}

static void rails_that_are_down_have_resolved_all_and_nothing_writes_afterwards(void **state)
{
	static struct flights f;
	struct rig_parcel_ticket ticket;
	struct fate fate = {0};

	(void)state;
	begin_flights(&f);
	rig_rails_stop(f.pair.rails[1]);
	rig_rails_down(f.pair.rails[0]);
	note_side(&f, 0);
	assert_int_equal(rig_rail_expect(f.pair.link[0], f.from, 1, tell, &fate, &ticket), -ECONNABORTED);
	assert_int_equal(
	        rig_rail_send(f.pair.link[0], f.from, &f.l[1][OPEN - 1].ticket, tell, &fate), -ECONNABORTED);
	assert_int_equal(rig_rail_unexpect(f.pair.link[0], f.l[0][OPEN - 1].ticket.number), -ENOENT);
	rig_rails_down(f.pair.rails[0]);
	rig_rails_down(f.pair.rails[1]);
	note_side(&f, 1);
	assert_side_as_noted(&f, 0);
	end_flights(&f);
	assert_int_equal(fate.told, 0);
}

/* Expects from several threads, and gives up, while the engine fails. */
struct racer {
	struct rail_pair *pair;
	unsigned made, told;
	uint8_t memory[64];
};

static void count_told(void *arg, int err)
{
	struct racer *r = arg;

	(void)err;
	(void)__atomic_add_fetch(&r->told, 1, __ATOMIC_RELEASE);
}

static void *race(void *arg)
{
	struct racer *r = arg;
	struct rig_parcel_ticket ticket;

	while (!rig_rail_expect(r->pair->link[0], r->memory, sizeof(r->memory), count_told, r, &ticket)) {
		r->made++;
		if (r->made % 3)
			(void)rig_rail_unexpect(r->pair->link[0], ticket.number);
		if (!rig_rail_send(r->pair->link[0], r->memory,
		            &(struct rig_parcel_ticket){.number = 0, .bytes = 8}, count_told, r))
			r->made++;
		if (r->made > 200)
			rig_rails_fail(r->pair->rails[0], "enough");
	}
	return NULL;
}

static void tickets_that_are_made_and_given_up_while_the_engine_fails_are_resolved_once(void **state)
{
	static struct racer racers[3];
	struct rail_pair pair;
	pthread_t threads[3];

	(void)state;
	begin(&pair, PIECE);
	for (int i = 0; i < 3; i++) {
		racers[i] = (struct racer){.pair = &pair};
		assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		(void)pthread_join(threads[i], NULL);
	rail_pair_close(&pair);
	for (int i = 0; i < 3; i++)
		assert_int_equal(racers[i].told, racers[i].made);
}

/* ---- A peer that breaks the protocol ---- */

static void send_note(struct rail_pair *pair, uint32_t note)
{
	struct rig_rail_link *link = pair->link[1];
	int code;

	rig_rail_link_lock(link);
	do
		code = rig_conn_write(link->conn, link->letter, &link->letter_memory, sizeof(link->letter),
		        &link->peer_mailbox, 0, note, &link->free_ops->op);
	while (code == -EAGAIN);
	assert_true(code >= 0);
	link->wrote = true;
	rig_rail_link_serve(link);
}

static void await_failure(struct rail_pair *pair, const char *why)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);

	while (!rig_rails_why(pair->rails[0])) {
		if (rig_deadline_passed(&deadline))
			fail_msg("the engine does not fail");
		(void)sched_yield();
	}
	if (!strstr(rig_rails_why(pair->rails[0]), why))
		fail_msg("the reason is \"%s\"", rig_rails_why(pair->rails[0]));
}

static void a_note_of_a_parcel_that_nobody_expects_fails_the_job(void **state)
{
	static const uint32_t numbers[] = {1, 63, 64, RIG_RAIL_PARCELS - 1, RIG_RAIL_PARCELS, UINT16_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct rail_pair pair;
		struct landing l;

		begin(&pair, PIECE);
		expect(&pair, 0, &l, 8);
		send_note(&pair, (uint32_t)RIG_PARCEL_SLOT << RIG_NOTE_SLOT | numbers[i]);
		await_failure(&pair, "which nobody expects");
		wait_told(&l.landed, -ECONNABORTED);
		rail_pair_close(&pair);
		assert_int_equal(l.landed.told, 1);
		free(l.memory);
	}
}

static void more_pieces_than_a_parcel_has_fail_the_job(void **state)
{
	struct rail_pair pair;
	struct landing l;

	(void)state;
	begin(&pair, PIECE);
	expect(&pair, 0, &l, 2 * PIECE);
	for (int i = 0; i < 3; i++)
		send_note(&pair, (uint32_t)RIG_PARCEL_SLOT << RIG_NOTE_SLOT | l.ticket.number);
	await_failure(&pair, "which nobody expects");
	wait_told(&l.landed, 0);
	rail_pair_close(&pair);
	assert_int_equal(l.landed.told, 1);
	free(l.memory);
}

static void a_ticket_that_is_none_is_the_end_of_its_own_link_alone(void **state)
{
	static const uint32_t numbers[] = {5, RIG_RAIL_PARCELS, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct rig_parcel_ticket bad;
		struct rail_pair pair;
		struct fate sent = {0};
		struct landing l;
		uint8_t *from = make_source(100 * PIECE, 4);

		begin(&pair, PIECE);
		expect(&pair, 0, &l, 100 * PIECE);
		bad = l.ticket;
		bad.number = numbers[i];
		assert_int_equal(rig_rail_send(pair.link[1], from + 1, &bad, tell, &sent), 0);
		await_failure(&pair, "nobody expects");
		wait_told(&l.landed, -ECONNABORTED);
		rail_pair_close(&pair);
		assert_int_equal(sent.told, 1);
		free(from);
		free(l.memory);
	}
}

/* ---- A peer that writes to what was given back ---- */

static void assert_untouched(const struct landing *l)
{
	for (size_t i = 0; i < l->bytes; i++)
		if (l->at[i] != 0x33)
			fail_msg("byte %zu of memory that was given back has changed", i);
}

static void a_ticket_that_is_used_again_changes_nothing_and_fails_the_job(void **state)
{
	uint8_t *from = make_source(3 * PIECE, 9);
	struct fate again = {0};
	struct rail_pair pair;
	struct landing l;

	(void)state;
	begin(&pair, PIECE);
	expect(&pair, 0, &l, 3 * PIECE);
	assert_int_equal(rig_rail_send(pair.link[1], from + 1, &l.ticket, tell, &l.sent), 0);
	wait_told(&l.landed, 0);
	memset(l.at, 0x33, l.bytes);
	assert_int_equal(rig_rail_send(pair.link[1], from + 1, &l.ticket, tell, &again), 0);
	await_failure(&pair, strcmp(provider, "sealed") ? "which nobody expects" : "not lent to it");
	rail_pair_close(&pair);
	assert_untouched(&l);
	free(from);
	free(l.memory);
}

/* The memory is this side's from here on. */
static void seize(void *arg, int err)
{
	struct landing *l = arg;

	memset(l->at, 0x33, l->bytes);
	tell(&l->landed, err);
}

/* A liar: a byte with the note that ends the parcel, and behind it a write of all of it, which has begun when
   the other side looks. */
static void a_write_that_has_begun_when_its_parcel_has_landed_changes_nothing(void **state)
{
	enum { LONG = 8 << 20 };
	uint8_t *from = make_source(LONG, 4);
	struct rig_fabric_memory memory;
	struct rail_pair pair;
	struct landing l;
	struct rig_fabric_target to;

	(void)state;
	begin(&pair, 2 * LONG);
	make_landing(&l, LONG);
	assert_int_equal(rig_rail_expect(pair.link[0], l.at, LONG, seize, &l, &l.ticket), 0);
	to = (struct rig_fabric_target){l.ticket.address, l.ticket.key};
	assert_int_equal(rig_fabric_register(pair.rails[1]->fabric, from + 1, LONG, &memory, NULL), 0);
	rig_rail_link_lock(pair.link[0]);
	rig_rail_link_lock(pair.link[1]);
	for (size_t i = 0; i < 2; i++)
		assert_true(rig_rail_write(pair.link[1], (struct rig_rail_op){.bytes = i ? LONG : 1},
		                    from + 1, &memory, &to, 0,
		                    (uint32_t)RIG_PARCEL_SLOT << RIG_NOTE_SLOT | l.ticket.number) >= 0);
	rig_rail_link_unlock(pair.link[1]);
	rig_conn_wake(pair.link[1]->conn);
	rig_rail_link_unlock(pair.link[0]);
	await_failure(&pair, strcmp(provider, "sealed") ? "which nobody expects" : "not lent to it");
	rig_rails_down(pair.rails[1]);
	rig_fabric_unregister(&memory);
	rail_pair_close(&pair);
	assert_int_equal(l.landed.told, 1);
	assert_int_equal(l.landed.err, 0);
	assert_untouched(&l);
	free(from);
	free(l.memory);
}

/* Until so many bytes have gone to it, or all have landed. */
static void await_sent(struct rail_pair *pair, const struct landing *l, uint64_t bytes)
{
	struct rig_rails_stats stats;

	do {
		(void)sched_yield();
		rig_rails_stats(pair->rails[1], &stats);
	} while (stats.bytes <= bytes && !is_told(&l->landed));
}

/* Taken back while its bytes are on their way: from the callback on the memory is this side's. */
static void what_comes_for_a_ticket_that_was_given_up_changes_nothing(void **state)
{
	enum { PIECES = 4000, ROUNDS = 20 };
	uint8_t *from = make_source(PIECES * PIECE, 9);

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct rail_pair pair;
		struct landing l;

		begin(&pair, PIECE);
		expect(&pair, 0, &l, PIECES * PIECE);
		assert_int_equal(rig_rail_send(pair.link[1], from + 1, &l.ticket, tell, &l.sent), 0);
		await_sent(&pair, &l, (uint64_t)round * PIECE);
		if (!rig_rail_unexpect(pair.link[0], l.ticket.number)) {
			wait_told(&l.landed, -ECANCELED);
			memset(l.at, 0x33, l.bytes);
			await_failure(&pair, ""); /* by the bytes, or by the note of those that came before */
			rail_pair_close(&pair);
			assert_untouched(&l);
		} else {
			rail_pair_close(&pair);
		}
		free(l.memory);
	}
	free(from);
}

/* ---- Where there are none ---- */

static void a_provider_without_connections_carries_none_and_says_so(void **state)
{
	struct rig_rails_options options = {.provider = "shm", .spin_ns = UINT64_MAX};
	struct rig_parcel_ticket ticket = {.bytes = 1};
	struct rail_pair pair;
	struct fate fate = {0};
	uint8_t byte = 0;

	(void)state;
	if (rail_pair_open(&pair, &options))
		skip();
	assert_false(rig_rails_parcels(pair.rails[0]));
	assert_int_equal(rig_rail_expect(pair.link[0], &byte, 1, tell, &fate, &ticket), -ENOTSUP);
	assert_non_null(strstr(rig_error(), "shm"));
	assert_int_equal(rig_rail_send(pair.link[0], &byte, &ticket, tell, &fate), -ENOTSUP);
	assert_int_equal(rig_rail_unexpect(pair.link[0], 0), -ENOENT);
	rail_pair_close(&pair);
	assert_int_equal(fate.told, 0);
}

static void a_child_of_fork_neither_makes_nor_resolves_a_ticket(void **state)
{
	struct rig_parcel_ticket ticket = {.bytes = 1};
	struct rail_pair pair;
	struct landing l;
	uint8_t *from = make_source(3 * PIECE, 6), byte = 0;
	int status;
	pid_t pid;

	(void)state;
	begin(&pair, PIECE);
	expect(&pair, 0, &l, 3 * PIECE);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct fate fate = {0};
		bool refused =
		        rig_rail_expect(pair.link[0], &byte, 1, tell, &fate, &ticket) == -ECONNABORTED &&
		        rig_rail_send(pair.link[1], &byte, &ticket, tell, &fate) == -ECONNABORTED &&
		        rig_rail_unexpect(pair.link[0], l.ticket.number) == -ENOENT;

		rig_rails_fail(pair.rails[0], "the child");
		rig_rails_down(pair.rails[0]);
		rig_rails_close(pair.rails[0]);
		rig_rails_close(pair.rails[1]);
		_exit(refused && !l.landed.told && !fate.told ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_int_equal(rig_rail_send(pair.link[1], from + 1, &l.ticket, tell, &l.sent), 0);
	wait_told(&l.landed, 0);
	wait_told(&l.sent, 0);
	assert_landed(&l, 6);
	rail_pair_close(&pair);
	free(from);
	free(l.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(parcels_of_any_size_arrive_whole_both_ways),
	        cmocka_unit_test(more_parcels_than_the_first_table_has_go_at_once_in_any_order),
	        cmocka_unit_test(a_number_is_used_again_and_names_the_new_parcel_alone),
	        cmocka_unit_test(what_is_not_sent_is_unexpected_once),
	        cmocka_unit_test(no_bytes_are_no_parcel),
	        cmocka_unit_test(a_link_expects_so_many_parcels_and_no_more),
	        cmocka_unit_test(parcels_get_on_beside_a_rail_that_is_never_done),
	        cmocka_unit_test(a_rails_counts_get_on_beside_parcels_that_never_end),
	        cmocka_unit_test(
	                a_failure_of_the_receiving_engine_resolves_all_and_nothing_writes_afterwards),
	        cmocka_unit_test(a_failure_of_both_engines_at_once_resolves_all_once),
	        cmocka_unit_test(rails_that_are_down_have_resolved_all_and_nothing_writes_afterwards),
	        cmocka_unit_test(tickets_that_are_made_and_given_up_while_the_engine_fails_are_resolved_once),
	        cmocka_unit_test(a_note_of_a_parcel_that_nobody_expects_fails_the_job),
	        cmocka_unit_test(more_pieces_than_a_parcel_has_fail_the_job),
	        cmocka_unit_test(a_ticket_that_is_none_is_the_end_of_its_own_link_alone),
	        cmocka_unit_test(a_provider_without_connections_carries_none_and_says_so),
	        cmocka_unit_test(a_child_of_fork_neither_makes_nor_resolves_a_ticket),
	};

	const struct CMUnitTest hostile[] = {
	        cmocka_unit_test(a_ticket_that_is_used_again_changes_nothing_and_fails_the_job),
	        cmocka_unit_test(what_comes_for_a_ticket_that_was_given_up_changes_nothing),
	        cmocka_unit_test(a_write_that_has_begun_when_its_parcel_has_landed_changes_nothing),
	};
	int failed;

	provider = "sealed";
	failed = cmocka_run_group_tests_name("hostile", hostile, NULL, NULL);
	failed += cmocka_run_group_tests_name("sealed", tests, NULL, NULL);
	provider = "tcp";
	failed += cmocka_run_group_tests_name("hostile, plain", hostile, NULL, NULL);
	return failed + cmocka_run_group_tests_name("tcp", tests, NULL, NULL);
}
