/* SPDX-License-Identifier: MIT */
/* Work: the word, order, copies, commits. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "conform_groups.h"
#include "dut.h"

enum { BYTES = 256, HELD = 20 /* looks at something that must not happen, a millisecond apart */ };

/* Host memory in and out, and memory of the device between them. */
struct route {
	struct dut d;
	void *in, *mid, *out;
	uint8_t *src, *dst;
	struct rig_part there, back;
};

static void set_up(struct conform *c, struct route *r, uint64_t bytes)
{
	dut_open(c, &r->d, 0);
	r->in = dut_alloc_host(&r->d, bytes, &r->src);
	r->mid = dut_alloc(&r->d, RIG_DEVICE, bytes);
	r->out = dut_alloc_host(&r->d, bytes, &r->dst);
	memset(r->dst, 0, bytes);
	r->there = dut_copy(&r->d, r->mid, 0, r->in, 0, bytes);
	r->back = dut_copy(&r->d, r->out, 0, r->mid, 0, bytes);
}

static void check_arrived(struct route *r, uint64_t bytes, const char *when)
{
	conform_check(r->d.c, !memcmp(r->src, r->dst, bytes), "%s, %llu bytes are not what was copied", when,
	        (unsigned long long)bytes);
}

static void copies_keep_every_byte(struct conform *c)
{
	static const uint64_t sizes[] = {1, 2, 3, 7, 8, 63, 64, 65, 255, 256, 1000, 4095, 4096, 4097, 70000};
	struct dut d;
	size_t i;

	dut_open(c, &d, 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *mid = dut_try_alloc(&d, RIG_DEVICE, sizes[i] + 2), *in, *out;
		struct rig_part there, back;
		uint8_t *src, *dst;

		if (!mid)
			break;
		in = dut_alloc_host(&d, sizes[i] + 2, &src);
		out = dut_alloc_host(&d, sizes[i] + 2, &dst);
		dut_pattern(src, sizes[i] + 2, i);
		memset(dst, 0, sizes[i] + 2);
		there = dut_copy(&d, mid, 1, in, 1, sizes[i]);
		back = dut_copy(&d, out, 1, mid, 1, sizes[i]);
		dut_wait(&d, dut_run(&d, &there, 1));
		dut_wait(&d, dut_run(&d, &back, 1));
		conform_check(c, !memcmp(src + 1, dst + 1, sizes[i]), "%llu bytes are not what was copied",
		        (unsigned long long)sizes[i]);
		conform_check(c, !dst[0] && !dst[sizes[i] + 1],
		        "a copy of %llu bytes changed a byte beside them", (unsigned long long)sizes[i]);
		while (d.nregions)
			dut_free(&d, d.regions[0]);
	}
	dut_close(&d);
}

static void rows_are_copied_with_their_pitches_and_nothing_between(struct conform *c)
{
	enum { AREA = 2048, ROUNDS = 40, WIDTH = 60, ROWS = 12, SPARE = 40 };
	static uint8_t want[AREA];
	uint64_t seed = 1, row;
	struct route r;
	unsigned i;

	set_up(c, &r, AREA);
	dut_pattern(r.src, AREA, 5);
	for (i = 0; i < ROUNDS; i++) {
		uint64_t bytes = 1 + test_draw(&seed, WIDTH), rows = 1 + test_draw(&seed, ROWS);
		uint64_t dp = bytes + test_draw(&seed, SPARE), sp = bytes + test_draw(&seed, SPARE);
		uint64_t da = test_draw(&seed, AREA / 4), sa = test_draw(&seed, AREA / 4);
		struct rig_part clear = dut_copy(&r.d, r.mid, 0, r.out, 0, AREA);
		struct rig_part part = dut_copy(&r.d, r.mid, da, r.in, sa, bytes);

		part.u.copy.rows = rows;
		part.u.copy.dst.pitch = dp;
		part.u.copy.src.pitch = sp;
		memset(r.dst, 0, AREA);
		memset(want, 0, AREA);
		for (row = 0; row < rows; row++)
			memcpy(want + da + row * dp, r.src + sa + row * sp, bytes);
		dut_wait(&r.d, dut_run(&r.d, &clear, 1));
		dut_wait(&r.d, dut_run(&r.d, &part, 1));
		dut_wait(&r.d, dut_run(&r.d, &r.back, 1));
		conform_check(c, !memcmp(want, r.dst, AREA),
		        "%llu rows of %llu bytes, pitches %llu and %llu, went wrong",
		        (unsigned long long)rows, (unsigned long long)bytes, (unsigned long long)dp,
		        (unsigned long long)sp);
	}
	dut_close(&r.d);
}

static void fills_write_their_byte_and_nothing_beside(struct conform *c)
{
	enum { AREA = 1024 };
	static uint8_t want[AREA];
	struct rig_part part;
	struct route r;
	unsigned i;

	set_up(c, &r, AREA);
	for (i = 1; i <= 20; i++) {
		uint64_t at = 3 * i, bytes = 1 + 13 * i, rows = 1 + i % 3, pitch = bytes + i, row;

		dut_pattern(r.src, AREA, i);
		memcpy(want, r.src, AREA);
		part = dut_fill(&r.d, r.mid, at, bytes, (uint8_t)(0xA0 + i));
		part.u.copy.rows = rows;
		part.u.copy.dst.pitch = pitch;
		for (row = 0; row < rows; row++)
			memset(want + at + row * pitch, 0xA0 + (int)i, bytes);
		dut_wait(&r.d, dut_run(&r.d, &r.there, 1));
		dut_wait(&r.d, dut_run(&r.d, &part, 1));
		dut_wait(&r.d, dut_run(&r.d, &r.back, 1));
		conform_check(c, !memcmp(want, r.dst, AREA), "a fill of %llu rows of %llu bytes went wrong",
		        (unsigned long long)rows, (unsigned long long)bytes);
	}
	dut_close(&r.d);
}

static void copies_name_buffers_of_the_run_by_their_slots(struct conform *c)
{
	struct rig_slot slots[2];
	struct rig_run run = {.slots = slots, .nslots = 2};
	struct dut_work work;
	struct rig_part part;
	struct route r;

	set_up(c, &r, BYTES);
	dut_pattern(r.src, BYTES, 2);
	dut_wait(&r.d, dut_run(&r.d, &r.there, 1));
	slots[0] = (struct rig_slot){.address = dut_locate(&r.d, r.out).address + 16,
	        .handle = dut_locate(&r.d, r.out).handle,
	        .offset = 16};
	slots[1] = (struct rig_slot){.address = dut_locate(&r.d, r.mid).address + 32,
	        .handle = dut_locate(&r.d, r.mid).handle,
	        .offset = 32};
	part = dut_copy(&r.d, r.out, 4, r.mid, 8, 40);
	part.u.copy.dst.slot = 0;
	part.u.copy.src.slot = 1;
	part.u.copy.dst.handle = part.u.copy.src.handle = 0;
	work = (struct dut_work){.parts = &part, .nparts = 1, .run = &run};
	dut_wait(&r.d, dut_submit(&r.d, &work));
	conform_check(c, !memcmp(r.dst + 20, r.src + 40, 40), "a copy between slots moved other bytes");
	dut_close(&r.d);
}

static void the_effects_of_a_value_are_there_once_the_word_shows_it(struct conform *c)
{
	enum { TIMES = 200 };
	struct route r;
	unsigned i;

	set_up(c, &r, BYTES);
	for (i = 0; i < TIMES; i++) {
		dut_pattern(r.src, BYTES, i);
		(void)dut_run(&r.d, &r.there, 1);
		(void)dut_run(&r.d, &r.back, 1);
		/* Without sleep: the word alone is looked at. */
		conform_check(c, dut_await(&r.d, r.d.last), "a value is not reached");
		check_arrived(&r, BYTES, "when the word shows the value");
	}
	dut_close(&r.d);
}

static void the_word_comes_with_no_further_call(struct conform *c)
{
	struct route r;

	set_up(c, &r, BYTES);
	dut_pattern(r.src, BYTES, 1);
	(void)dut_run(&r.d, &r.there, 1);
	(void)dut_run(&r.d, &r.back, 1);
	conform_check(c, dut_await(&r.d, r.d.last),
	        "the word stands at %llu of %llu although nothing is missing",
	        (unsigned long long)dut_shown(&r.d), (unsigned long long)r.d.last);
	check_arrived(&r, BYTES, "with no further call");
	dut_close(&r.d);
}

static void a_value_that_waits_is_not_shown_and_has_no_effect(struct conform *c)
{
	struct rig_wait gate;
	struct route r;
	unsigned i;

	set_up(c, &r, BYTES);
	gate = dut_gate(&r.d, 0);
	dut_pattern(r.src, BYTES, 1);
	(void)dut_run(&r.d, &r.there, 1);
	dut_wait(&r.d, r.d.last);
	(void)dut_copy_after(&r.d, &r.back, &gate);
	(void)dut_run(&r.d, NULL, 0);
	for (i = 0; i < HELD; i++) {
		conform_check(c, dut_shown(&r.d) == r.d.last - 2,
		        "the word shows %llu, work that has not run", (unsigned long long)dut_shown(&r.d));
		conform_check(c, !r.dst[0] && !r.dst[BYTES - 1], "work ran before the word it waits for");
		dut_nap();
	}
	dut_open_gate(&gate);
	dut_wait(&r.d, r.d.last);
	check_arrived(&r, BYTES, "after the wait");
	dut_close(&r.d);
}

struct sampler {
	struct dut *d;
	_Atomic bool stop;
	_Atomic uint64_t lowered, past;
	_Atomic uint64_t last; /* submitted or about to be */
};

static void *sample(void *arg)
{
	struct sampler *s = arg;
	uint64_t before = s->d->base, now;

	while (!atomic_load(&s->stop)) {
		now = rig_word_load(s->d->word);
		if (now < before)
			atomic_store(&s->lowered, before);
		if (now > atomic_load(&s->last))
			atomic_store(&s->past, now);
		before = now;
	}
	return NULL;
}

static void the_word_only_grows_and_never_runs_ahead(struct conform *c)
{
	enum { TIMES = 500 };
	struct sampler s = {0};
	pthread_t thread;
	struct dut d;
	unsigned i;

	dut_open(c, &d, 0);
	if (d.own_word)
		conform_skip(c, "the word is the driver's own");
	s.d = &d;
	atomic_store(&s.last, d.last);
	conform_check(c, !pthread_create(&thread, NULL, sample, &s), "no thread");
	for (i = 0; i < TIMES; i++) {
		atomic_store(&s.last, d.last + 1);
		(void)dut_run(&d, NULL, 0);
		if (i % 8 == 7)
			dut_wait(&d, d.last);
	}
	dut_wait(&d, d.last);
	atomic_store(&s.stop, true);
	(void)pthread_join(thread, NULL);
	conform_check(c, !atomic_load(&s.lowered), "the word was lowered from %llu",
	        (unsigned long long)atomic_load(&s.lowered));
	conform_check(c, !atomic_load(&s.past), "the word showed %llu, which was not submitted",
	        (unsigned long long)atomic_load(&s.past));
	dut_close(&d);
}

static void a_value_starts_after_all_work_of_the_one_before(struct conform *c)
{
	enum { TIMES = 100, LARGE = 4000 };
	struct route r;
	unsigned i;

	set_up(c, &r, LARGE);
	for (i = 0; i < TIMES; i++) {
		dut_pattern(r.src, LARGE, i);
		memset(r.dst, 0, LARGE);
		(void)dut_run(&r.d, &r.there, 1);
		(void)dut_run(&r.d, NULL, 0);
		dut_wait(&r.d, dut_run(&r.d, &r.back, 1));
		check_arrived(&r, LARGE, "in value order");
	}
	dut_close(&r.d);
}

static void parts_of_one_queue_run_in_their_order(struct conform *c)
{
	enum { TIMES = 50 };
	struct rig_part parts[4];
	struct route r;
	unsigned i;

	set_up(c, &r, BYTES);
	parts[0] = r.there;
	parts[1] = r.back;
	parts[2] = dut_copy(&r.d, r.mid, 0, r.in, BYTES / 2, BYTES / 2);
	parts[3] = dut_copy(&r.d, r.out, BYTES / 2, r.mid, 0, BYTES / 2);
	for (i = 0; i < TIMES; i++) {
		dut_pattern(r.src, BYTES, i);
		memset(r.dst, 0, BYTES);
		dut_wait(&r.d, dut_run(&r.d, parts, 4));
		conform_check(c,
		        !memcmp(r.dst, r.src, BYTES / 2) &&
		                !memcmp(r.dst + BYTES / 2, r.src + BYTES / 2, BYTES / 2),
		        "parts of one queue ran in another order");
	}
	dut_close(&r.d);
}

/* Each value moves the first byte one further: only in order does it get to the end. */
static void many_values_under_way_run_in_order(struct conform *c)
{
	enum { VALUES = 300 };
	struct rig_part part;
	struct route r;
	unsigned i;

	set_up(c, &r, VALUES);
	dut_pattern(r.src, VALUES, 3);
	(void)dut_run(&r.d, &r.there, 1);
	for (i = 0; i + 1 < VALUES; i++) {
		part = dut_copy(&r.d, r.mid, i + 1, r.mid, i, 1);
		(void)dut_run(&r.d, &part, 1);
	}
	dut_wait(&r.d, dut_run(&r.d, &r.back, 1));
	memset(r.src, r.src[0], VALUES);
	check_arrived(&r, VALUES, "after many values");
	dut_close(&r.d);
}

static void what_room_saw_may_change_before_submit(struct conform *c)
{
	struct rig_part part;
	struct dut_work work = {.parts = &part, .nparts = 1};
	struct route r;

	set_up(c, &r, BYTES);
	dut_pattern(r.src, BYTES, 8);
	(void)dut_run(&r.d, &r.there, 1);
	part = dut_copy(&r.d, r.out, 0, r.mid, 0, 1);
	while (dut_room(&r.d, &work) != RIG_FITS)
		dut_nap();
	part = r.back;
	dut_wait(&r.d, dut_submit_now(&r.d, &work));
	check_arrived(&r, BYTES, "with a copy changed after room");
	dut_close(&r.d);
}

static void what_a_submit_was_given_may_go_when_it_returns(struct conform *c)
{
	struct dut_work work;
	struct rig_part *part;
	struct rig_wait *wait, gate;
	struct route r;

	set_up(c, &r, BYTES);
	gate = dut_gate(&r.d, 0);
	part = malloc(sizeof(*part));
	wait = malloc(sizeof(*wait));
	conform_check(c, part && wait, "no host memory");
	dut_pattern(r.src, BYTES, 8);
	(void)dut_run(&r.d, &r.there, 1);
	*part = r.back;
	*wait = gate;
	work = (struct dut_work){.parts = part, .nparts = 1, .waits = wait, .nwaits = 1};
	(void)dut_submit(&r.d, &work);
	memset(part, 0xEE, sizeof(*part));
	memset(wait, 0xEE, sizeof(*wait));
	memset(r.d.scratch, 0xEE, (size_t)DUT_PARTS * RIG_SCRATCH);
	free(part);
	free(wait);
	dut_open_gate(&gate);
	dut_wait(&r.d, r.d.last);
	check_arrived(&r, BYTES, "with the caller's parts gone");
	dut_close(&r.d);
}

static void committing_what_is_committed_changes_nothing(struct conform *c)
{
	const char *failure = NULL;
	struct route r;
	uint64_t value;

	set_up(c, &r, BYTES);
	if (!r.d.hot->commit)
		conform_skip(c, "the driver has no commit");
	dut_pattern(r.src, BYTES, 1);
	(void)dut_run(&r.d, &r.there, 1);
	value = dut_run(&r.d, &r.back, 1);
	dut_wait(&r.d, value);
	memset(r.dst, 0, BYTES);
	conform_check(c,
	        r.d.hot->commit(r.d.facts.edge, value, &failure) == RIG_OK &&
	                r.d.hot->commit(r.d.facts.edge, value - 1, &failure) == RIG_OK,
	        "commit of a reached value does not answer RIG_OK: %s", failure ? failure : "no text");
	dut_wait(&r.d, dut_run(&r.d, NULL, 0));
	conform_check(c, dut_shown(&r.d) == value + 1, "the word shows %llu after value %llu",
	        (unsigned long long)dut_shown(&r.d), (unsigned long long)value + 1);
	conform_check(c, !r.dst[0], "a second commit ran the work again");
	dut_close(&r.d);
}

/* Nothing is known of a driver's k: either it commits by itself, or the value stays until the commit. */
static void an_encoded_value_is_reached_only_once_committed(struct conform *c)
{
	struct dut_work work = {0};
	const char *failure = NULL;
	struct dut d;
	int answer;

	dut_open(c, &d, 0);
	conform_check(c, dut_room(&d, &work) == RIG_FITS, "an empty value does not fit");
	answer = dut_submit_raw(&d, &work, false);
	if (answer == RIG_COMMITTED) {
		conform_check(c, dut_await(&d, d.last), "RIG_COMMITTED, and the value is not reached");
		dut_close(&d);
		return;
	}
	conform_check(c, d.hot->commit && d.hot->commit(d.facts.edge, d.last, &failure) == RIG_OK,
	        "commit does not answer RIG_OK: %s", failure ? failure : "no text");
	conform_check(c, dut_await(&d, d.last), "committed, and the value is not reached");
	dut_close(&d);
}

static void a_later_commit_commits_what_came_before(struct conform *c)
{
	struct dut_work work = {0};
	struct dut d;
	unsigned i;

	dut_open(c, &d, 0);
	for (i = 0; i < 5; i++) {
		while (dut_room(&d, &work) != RIG_FITS)
			dut_nap();
		(void)dut_submit_raw(&d, &work, i == 4);
	}
	conform_check(c, dut_await(&d, d.last),
	        "the last of 5 values is committed and the word stands at %llu of %llu",
	        (unsigned long long)dut_shown(&d), (unsigned long long)d.last);
	dut_close(&d);
}

/* Nothing is known of a driver's k but that it is no larger than what a law has patience for. */
static void values_are_committed_unasked_while_work_is_submitted(struct conform *c)
{
	enum { MOST = 10000 };
	struct dut_work work = {0};
	uint64_t end = rig_now_ns() + dut_wait_ms(c) * 1000000u;
	struct dut d;
	unsigned i;

	dut_open(c, &d, 0);
	for (i = 0; i < MOST && dut_shown(&d) == d.base; i++) {
		while (dut_room(&d, &work) != RIG_FITS && dut_shown(&d) == d.base) {
			conform_check(
			        c, rig_now_ns() < end, "the queues are full of %u values, none committed", i);
			dut_nap();
		}
		if (dut_shown(&d) == d.base)
			(void)dut_submit_raw(&d, &work, false);
	}
	conform_check(c, dut_await(&d, d.base + 1), "of %u values none was committed", i);
	(void)dut_run(&d, NULL, 0);
	dut_wait(&d, d.last);
	dut_close(&d);
}

static void hot_calls_do_not_block_on_earlier_work(struct conform *c)
{
	struct rig_wait gate;
	struct route r;
	unsigned i;

	set_up(c, &r, BYTES);
	if (r.d.facts.may_block)
		conform_skip(c, "the driver says that they may");
	gate = dut_gate(&r.d, 0);
	(void)dut_copy_after(&r.d, &r.there, &gate);
	/* Were one to wait for the work, this would never end: the gate opens below. */
	for (i = 0; i < 5; i++)
		(void)dut_run(&r.d, &r.back, 1);
	dut_open_gate(&gate);
	dut_wait(&r.d, r.d.last);
	dut_close(&r.d);
}

static void sleep_ends_by_its_time_and_when_the_word_differs(struct conform *c)
{
	const char *fault = NULL;
	struct rig_wait gate;
	struct route r;
	uint64_t seen;

	set_up(c, &r, BYTES);
	gate = dut_gate(&r.d, 0);
	seen = dut_copy_after(&r.d, &r.there, &gate) - 1;
	conform_check(c, !r.d.m->sleep(r.d.device, seen, 1, &fault), "sleep faulted: %s", fault);
	conform_check(c, !r.d.m->sleep(r.d.device, seen, 20, &fault), "sleep faulted: %s", fault);
	dut_open_gate(&gate);
	dut_wait(&r.d, r.d.last);
	/* The word differs already: however long it may sleep, it returns. */
	conform_check(c, !r.d.m->sleep(r.d.device, seen, UINT32_MAX, &fault), "sleep faulted: %s", fault);
	dut_close(&r.d);
}

static void sleep_of_no_time_is_a_look(struct conform *c)
{
	enum { LOOKS = 1000 };
	const char *fault = NULL;
	struct rig_wait gate;
	struct route r;
	uint64_t seen;
	unsigned i;

	set_up(c, &r, BYTES);
	gate = dut_gate(&r.d, 0);
	seen = dut_copy_after(&r.d, &r.there, &gate) - 1;
	/* The gate opens below. One that blocks until the word moves never ends. */
	for (i = 0; i < LOOKS; i++)
		conform_check(c, !r.d.m->sleep(r.d.device, seen, 0, &fault), "sleep faulted: %s", fault);
	dut_open_gate(&gate);
	dut_wait(&r.d, r.d.last);
	conform_check(c, !r.d.m->sleep(r.d.device, seen, 0, &fault), "sleep faulted: %s", fault);
	dut_close(&r.d);
}

static void sleep_ends_when_the_word_moves(struct conform *c)
{
	enum { TIMES = 50 };
	const char *fault = NULL;
	struct dut d;
	unsigned i;

	dut_open(c, &d, 0);
	for (i = 0; i < TIMES; i++) {
		uint64_t value = dut_run(&d, NULL, 0), seen;

		/* A sleep that misses the move sleeps longer than the law may take. */
		while ((seen = dut_shown(&d)) < value)
			conform_check(c, !d.m->sleep(d.device, seen, UINT32_MAX, &fault), "sleep faulted: %s",
			        fault);
	}
	dut_close(&d);
}

static const struct conform_law laws[] = {
        LAW(copies_keep_every_byte, "E-093 E-181"),
        LAW(rows_are_copied_with_their_pitches_and_nothing_between, "E-093"),
        LAW(fills_write_their_byte_and_nothing_beside, "E-094"),
        LAW(copies_name_buffers_of_the_run_by_their_slots, "E-093 E-113 E-187"),
        LAW(the_effects_of_a_value_are_there_once_the_word_shows_it, "E-007 E-002"),
        LAW(the_word_comes_with_no_further_call, "E-004 E-014 E-015 E-129 E-141"),
        LAW(a_value_that_waits_is_not_shown_and_has_no_effect, "E-002 E-054 E-055 E-126"),
        LAW(the_word_only_grows_and_never_runs_ahead, "E-001 E-003 E-006"),
        LAW(a_value_starts_after_all_work_of_the_one_before, "E-097 E-127"),
        LAW(parts_of_one_queue_run_in_their_order, "E-096"),
        LAW(many_values_under_way_run_in_order, "E-097 E-100"),
        LAW(what_room_saw_may_change_before_submit, "E-113"),
        LAW(what_a_submit_was_given_may_go_when_it_returns, "E-129"),
        LAW(committing_what_is_committed_changes_nothing, "E-142 E-143"),
        LAW(an_encoded_value_is_reached_only_once_committed, "E-130 E-140 E-141"),
        LAW(a_later_commit_commits_what_came_before, "E-130 E-140"),
        LAW(values_are_committed_unasked_while_work_is_submitted, "E-146"),
        LAW(hot_calls_do_not_block_on_earlier_work, "E-060 E-099"),
        LAW(sleep_ends_by_its_time_and_when_the_word_differs, "E-026"),
        LAW(sleep_of_no_time_is_a_look, "E-026"),
        LAW(sleep_ends_when_the_word_moves, "E-026 E-100"),
};
CONFORM_GROUP(work, laws);
