/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

/*
 * Packets are words: the first says how many words the packet has, no-ops have NOP set. A queue of (value,
 * end) and the words themselves model what the device sees.
 */
#define NOP       UINT32_C(0x80000000)
#define PAST_2_32 (UINT64_C(0xfffffff0))

enum { MOST_UNITS = 256, MARKS = 8 };

struct fixture {
	struct rig_ring ring;
	uint32_t memory[MOST_UNITS + 1]; /* one word behind the ring that nobody may touch */
	struct rig_mark marks[MARKS];
	uint64_t fillers;
};

static void fill_gap(void *arg, void *at, uint64_t units)
{
	struct fixture *f = arg;
	uint32_t *word = at;

	f->fillers++;
	assert_true(word + units == f->memory + f->ring.units);
	memset(word, 0, units * sizeof(*word));
	*word = NOP | (uint32_t)units;
}

static void begin(struct fixture *f, uint64_t units, uint64_t start)
{
	struct rig_ring_setup setup = {
	        .base = f->memory,
	        .units = units,
	        .unit_bytes = sizeof(uint32_t),
	        .marks = f->marks,
	        .nmarks = MARKS,
	        .start = start,
	        .filler = fill_gap,
	        .filler_arg = f,
	};

	memset(f, 0, sizeof(*f));
	f->memory[units] = 0xfeedf00d;
	assert_int_equal(rig_ring_init(&f->ring, &setup), 0);
}

static void finish(const struct fixture *f)
{
	assert_int_equal(f->memory[f->ring.units], 0xfeedf00d);
}

static void reserve_one(struct fixture *f, uint64_t units)
{
	uint32_t *at = rig_ring_reserve(&f->ring, units);

	assert_non_null(at);
	assert_true(at >= f->memory && at + units <= f->memory + f->ring.units);
	*at = (uint32_t)units;
}

static void a_size_that_is_no_power_of_two_is_refused(void **state)
{
	struct rig_mark marks[2];
	uint32_t word;
	struct rig_ring ring;
	struct rig_ring_setup good = {
	        .base = &word, .units = 1, .unit_bytes = 4, .marks = marks, .nmarks = 2};
	struct rig_ring_setup bad = good;

	(void)state;
	assert_int_equal(rig_ring_init(&ring, &good), 0);
	bad.units = 3;
	assert_int_equal(rig_ring_init(&ring, &bad), -EINVAL);
	bad = good;
	bad.unit_bytes = 12;
	assert_int_equal(rig_ring_init(&ring, &bad), -EINVAL);
	bad = good;
	bad.nmarks = 0;
	assert_int_equal(rig_ring_init(&ring, &bad), -EINVAL);
	bad = good;
	bad.base = NULL;
	assert_int_equal(rig_ring_init(&ring, &bad), -EINVAL);
	bad = good;
	bad.marks = NULL;
	assert_int_equal(rig_ring_init(&ring, &bad), -EINVAL);
	bad = good;
	bad.units = UINT64_C(1) << 63;
	assert_int_equal(rig_ring_init(&ring, &bad), -EINVAL);
}

static void a_packet_that_ends_at_the_end_needs_no_filler_and_one_more_does(void **state)
{
	struct fixture f;

	(void)state;
	for (uint64_t over = 0; over < 3; over++) {
		begin(&f, 16, 13); /* 3 units before the end */
		reserve_one(&f, 2 + over);
		assert_int_equal(f.fillers, over == 2);
		assert_int_equal(f.ring.filled, over == 2 ? 16 + 4 : 13 + 2 + over);
		if (over == 2)
			assert_int_equal(f.memory[13], NOP | 3);
		finish(&f);
	}
}

static void room_at_one_under_and_one_over_the_free_units(void **state)
{
	struct fixture f;

	(void)state;
	for (uint64_t offset = 0; offset < 16; offset++) {
		begin(&f, 16, offset);
		for (uint64_t used = 0; used <= 16; used++) {
			uint64_t left = 16 - used;

			assert_int_equal(rig_ring_free(&f.ring), left);
			if (left)
				assert_int_equal(rig_ring_room(&f.ring, left - 1, 1), RIG_RING_FITS);
			assert_int_equal(rig_ring_room(&f.ring, left, 1), RIG_RING_FITS);
			assert_int_equal(
			        rig_ring_room(&f.ring, left + 1, 1), used ? RIG_RING_LATER : RIG_RING_NEVER);
			if (left)
				reserve_one(&f, 1);
			else
				assert_null(rig_ring_reserve(&f.ring, 1));
		}
		finish(&f);
	}
}

static void packets_that_end_before_the_memory_does_need_no_gap(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 16, 4);
	reserve_one(&f, 2);
	rig_ring_publish(&f.ring);
	rig_ring_mark(&f.ring, 1);
	for (unsigned i = 0; i < 4; i++) /* 6 .. 10 */
		reserve_one(&f, 1);
	/* 10 are free: 6 before the end and 4 behind it. */
	assert_int_equal(rig_ring_room(&f.ring, 6, 6), RIG_RING_FITS);
	assert_int_equal(rig_ring_room(&f.ring, 7, 5), RIG_RING_LATER);
	assert_int_equal(rig_ring_room(&f.ring, 7, 4), RIG_RING_FITS);
	reserve_one(&f, 6);
	assert_int_equal(f.fillers, 0);
	assert_int_equal(rig_ring_room(&f.ring, 4, 4), RIG_RING_FITS);
	finish(&f);
}

static void never_is_said_only_of_what_the_empty_ring_cannot_hold_everywhere(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 16, 0);
	assert_int_equal(rig_ring_room(&f.ring, 8, 8), RIG_RING_FITS);
	assert_int_equal(rig_ring_room(&f.ring, 9, 9), RIG_RING_NEVER);
	assert_int_equal(rig_ring_room(&f.ring, 16, 1), RIG_RING_FITS);
	assert_int_equal(rig_ring_room(&f.ring, 17, 1), RIG_RING_NEVER);
	assert_int_equal(rig_ring_room(&f.ring, 13, 4), RIG_RING_FITS);
	assert_int_equal(rig_ring_room(&f.ring, 14, 4), RIG_RING_NEVER);
	assert_int_equal(rig_ring_room(&f.ring, UINT64_MAX, 1), RIG_RING_NEVER);
	assert_int_equal(rig_ring_room(&f.ring, UINT64_MAX, UINT64_MAX), RIG_RING_NEVER);
	assert_int_equal(rig_ring_room(&f.ring, 1, UINT64_MAX), RIG_RING_NEVER);
	assert_int_equal(rig_ring_room(&f.ring, 0, 0), RIG_RING_FITS);
}

static void after_later_reclaiming_everything_makes_it_fit(void **state)
{
	struct fixture f;

	(void)state;
	for (uint64_t offset = 0; offset < 16; offset++) {
		begin(&f, 16, offset);
		for (uint64_t i = 0; i < 16; i++)
			reserve_one(&f, 1);
		rig_ring_publish(&f.ring);
		rig_ring_mark(&f.ring, 1);
		assert_int_equal(rig_ring_room(&f.ring, 8, 8), RIG_RING_LATER);
		assert_true(rig_ring_reclaim(&f.ring, 1));
		assert_int_equal(rig_ring_room(&f.ring, 8, 8), RIG_RING_FITS);
		reserve_one(&f, 8);
		finish(&f);
	}
}

static void a_reservation_that_does_not_fit_changes_nothing(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 16, 10);
	reserve_one(&f, 4);
	assert_null(rig_ring_reserve(&f.ring, 11)); /* 2 to skip and 11 */
	assert_null(rig_ring_reserve(&f.ring, UINT64_MAX));
	assert_int_equal(f.ring.filled, 14);
	assert_int_equal(f.fillers, 0);
	assert_non_null(rig_ring_reserve(&f.ring, 10));
	finish(&f);
}

static void without_a_filler_a_packet_is_never_split(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 16, 15);
	f.ring.filler = NULL;
	assert_null(rig_ring_reserve(&f.ring, 2));
	assert_non_null(rig_ring_reserve(&f.ring, 1));
	assert_non_null(rig_ring_reserve(&f.ring, 2));
}

static void nothing_is_published_before_publish_and_a_drop_forgets_it(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 16, 3);
	reserve_one(&f, 4);
	assert_int_equal(f.ring.published, 3);
	rig_ring_drop(&f.ring);
	assert_int_equal(f.ring.filled, 3);
	reserve_one(&f, 4);
	assert_int_equal(rig_ring_publish(&f.ring), 7);
	assert_int_equal(f.ring.published, 7);
}

static void more_values_than_marks_come_back_late_and_never_early(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 64, PAST_2_32);
	for (uint64_t value = 1; value <= 2 * MARKS; value++) {
		reserve_one(&f, 1);
		rig_ring_publish(&f.ring);
		rig_ring_mark(&f.ring, value);
	}
	for (uint64_t value = 1; value <= 2 * MARKS; value++) {
		rig_ring_reclaim(&f.ring, value);
		assert_true(f.ring.head - PAST_2_32 <= value);
		if (value < MARKS)
			assert_int_equal(f.ring.head - PAST_2_32, value);
	}
	assert_true(rig_ring_empty(&f.ring));
	assert_false(rig_ring_reclaim(&f.ring, UINT64_MAX));
}

/* The device of the property below: walks packets from where it stands to what is published. */
static uint64_t consume(const struct fixture *f, uint64_t from, uint64_t to, uint64_t *packets)
{
	while (from != to) {
		uint32_t word = f->memory[from & f->ring.mask];
		uint64_t units = word & ~NOP;

		assert_true(units > 0 && units <= to - from);
		assert_true((from & f->ring.mask) + units <= f->ring.units);
		*packets += !(word & NOP);
		from += units;
	}
	return from;
}

struct submission {
	uint64_t value, end;
};

static void submit_some(struct fixture *f, uint64_t value, uint64_t *sent)
{
	uint64_t sizes[6], total = 0, largest = 1;
	unsigned count = (unsigned)rand() % 6 + 1;
	enum rig_ring_room room;

	for (unsigned i = 0; i < count; i++) {
		sizes[i] = (uint64_t)rand() % 7 + 1;
		total += sizes[i];
		largest = sizes[i] > largest ? sizes[i] : largest;
	}
	room = rig_ring_room(&f->ring, total, largest);
	if (rig_ring_empty(&f->ring))
		assert_true(room != RIG_RING_LATER);
	if (room != RIG_RING_FITS)
		return;
	for (unsigned i = 0; i < count; i++)
		reserve_one(f, sizes[i]);
	rig_ring_publish(&f->ring);
	rig_ring_mark(&f->ring, value);
	*sent += count;
}

static void random_submissions_agree_with_a_queue_across_2_32(void **state)
{
	struct fixture f;

	(void)state;
	srand(1);
	for (uint64_t units = 16; units <= MOST_UNITS; units *= 2) {
		uint64_t sent = 0, seen = 0, device = PAST_2_32 - 1000, value = 0, done = 0;
		uint64_t ends[4001] = {device};

		begin(&f, units, device);
		while (value < 4000) {
			submit_some(&f, ++value, &sent);
			ends[value] = f.ring.published;
			if (rand() % 3)
				continue;
			done += (uint64_t)rand() % (value - done + 1);
			device = consume(&f, device, f.ring.published, &seen);
			rig_ring_reclaim(&f.ring, done);
			/* What an unfinished value used is never free. */
			assert_true(f.ring.head <= ends[done]);
			assert_int_equal(seen, sent);
		}
		rig_ring_reclaim(&f.ring, value);
		assert_true(rig_ring_empty(&f.ring));
		assert_true(f.ring.head > UINT32_MAX);
		finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_size_that_is_no_power_of_two_is_refused),
	        cmocka_unit_test(a_packet_that_ends_at_the_end_needs_no_filler_and_one_more_does),
	        cmocka_unit_test(room_at_one_under_and_one_over_the_free_units),
	        cmocka_unit_test(packets_that_end_before_the_memory_does_need_no_gap),
	        cmocka_unit_test(never_is_said_only_of_what_the_empty_ring_cannot_hold_everywhere),
	        cmocka_unit_test(after_later_reclaiming_everything_makes_it_fit),
	        cmocka_unit_test(a_reservation_that_does_not_fit_changes_nothing),
	        cmocka_unit_test(without_a_filler_a_packet_is_never_split),
	        cmocka_unit_test(nothing_is_published_before_publish_and_a_drop_forgets_it),
	        cmocka_unit_test(more_values_than_marks_come_back_late_and_never_early),
	        cmocka_unit_test(random_submissions_agree_with_a_queue_across_2_32),
	};

	return cmocka_run_group_tests_name("ring ring", tests, NULL, NULL);
}
