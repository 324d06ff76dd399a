/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "segment.h"

enum { BYTES = 256, MARKS = 8 };

static void begin(struct rig_segment *segment, struct rig_mark *marks)
{
	assert_int_equal(rig_segment_init(segment, BYTES, marks, MARKS), 0);
}

static void a_size_that_is_no_power_of_two_is_refused(void **state)
{
	struct rig_segment segment;
	struct rig_mark marks[MARKS];

	(void)state;
	assert_int_equal(rig_segment_init(&segment, 3, marks, MARKS), -EINVAL);
	assert_int_equal(rig_segment_init(&segment, 0, marks, MARKS), -EINVAL);
	assert_int_equal(rig_segment_init(&segment, BYTES, marks, 3), -EINVAL);
	assert_int_equal(rig_segment_init(&segment, BYTES, NULL, MARKS), -EINVAL);
}

static void the_empty_segment_holds_its_size_wherever_it_stands_and_not_one_more(void **state)
{
	struct rig_segment segment;
	struct rig_mark marks[MARKS];
	uint64_t at;

	(void)state;
	begin(&segment, marks);
	for (uint64_t value = 1; value < 300; value++) {
		assert_true(rig_segment_take(&segment, value % 7 + 1, 1, &at));
		rig_segment_mark(&segment, value);
		rig_segment_reclaim(&segment, value);
		assert_int_equal(rig_segment_room(&segment, BYTES, BYTES), RIG_RING_FITS);
		assert_int_equal(rig_segment_room(&segment, BYTES + 1, 1), RIG_RING_NEVER);
		assert_int_equal(rig_segment_room(&segment, 1, 2 * BYTES), RIG_RING_NEVER);
		assert_int_equal(rig_segment_room(&segment, UINT64_MAX, 1), RIG_RING_NEVER);
	}
	assert_true(rig_segment_take(&segment, BYTES, BYTES, &at));
	assert_int_equal(at, 0);
	assert_int_equal(rig_segment_room(&segment, 1, 1), RIG_RING_LATER);
}

static void a_piece_ends_at_the_end_or_starts_over(void **state)
{
	struct rig_segment segment;
	struct rig_mark marks[MARKS];
	uint64_t first, at;

	(void)state;
	for (uint64_t over = 0; over < 3; over++) {
		begin(&segment, marks);
		assert_true(rig_segment_take(&segment, 100, 1, &first));
		rig_segment_mark(&segment, 1);
		assert_true(rig_segment_take(&segment, 100, 1, &at));
		rig_segment_mark(&segment, 2);
		rig_segment_reclaim(&segment, 1);
		assert_true(rig_segment_take(&segment, 55 + over, 1, &at)); /* 56 are left before the end */
		assert_int_equal(at, over == 2 ? 0 : 200);
	}
}

static void a_piece_up_to_the_oldest_byte_fits_and_one_more_is_later(void **state)
{
	struct rig_segment segment;
	struct rig_mark marks[MARKS];
	uint64_t at;

	(void)state;
	begin(&segment, marks);
	assert_true(rig_segment_take(&segment, 100, 1, &at));
	rig_segment_mark(&segment, 1);
	assert_true(rig_segment_take(&segment, 156, 1, &at));
	rig_segment_mark(&segment, 2);
	rig_segment_reclaim(&segment, 1);
	assert_int_equal(rig_segment_room(&segment, 101, 1), RIG_RING_LATER);
	assert_false(rig_segment_take(&segment, 101, 1, &at));
	assert_true(rig_segment_take(&segment, 100, 1, &at));
	assert_int_equal(at, 0);
}

static void a_value_that_used_nothing_does_not_move_a_segment_back(void **state)
{
	struct rig_segment segment;
	struct rig_mark marks[MARKS];
	uint64_t at;

	(void)state;
	begin(&segment, marks);
	assert_true(rig_segment_take(&segment, 100, 1, &at));
	rig_segment_mark(&segment, 1);
	rig_segment_reclaim(&segment, 1);
	rig_segment_mark(&segment, 2);                        /* used nothing */
	assert_true(rig_segment_take(&segment, 200, 1, &at)); /* skips the 156 before the end */
	assert_int_equal(at, 0);
	rig_segment_mark(&segment, 3);
	rig_segment_reclaim(&segment, 2);
	assert_int_equal(rig_segment_room(&segment, 56, 1), RIG_RING_FITS);
	assert_int_equal(rig_segment_room(&segment, 57, 1), RIG_RING_LATER);
	rig_segment_reclaim(&segment, 3);
	assert_int_equal(rig_segment_room(&segment, BYTES, 1), RIG_RING_FITS);
}

/* Random takes beside a map of bytes: the value that owns each, or 0. */
static void random_pieces_never_overlap_what_is_in_use(void **state)
{
	struct rig_segment segment;
	struct rig_mark marks[MARKS];
	uint64_t owner[BYTES] = {0}, value = 0, done = 0;

	(void)state;
	srand(1);
	begin(&segment, marks);
	segment.head = segment.tail = UINT64_C(0xffffff00);
	for (unsigned n = 0; n < 100000; n++) {
		uint64_t bytes = (uint64_t)rand() % (BYTES / 2) + 1, align = UINT64_C(1) << rand() % 6, at;
		bool fits = rig_segment_room(&segment, bytes, align) == RIG_RING_FITS;

		assert_int_equal(rig_segment_take(&segment, bytes, align, &at), fits);
		value++;
		if (fits) {
			assert_true(at % align == 0 && at + bytes <= BYTES);
			for (uint64_t i = at; i < at + bytes; i++) {
				assert_true(owner[i] <= done);
				owner[i] = value;
			}
		}
		rig_segment_mark(&segment, value);
		if (fits && rand() % 2)
			continue;
		done += (uint64_t)rand() % (value - done + 1);
		rig_segment_reclaim(&segment, done);
		if (done == value)
			assert_int_equal(rig_segment_room(&segment, BYTES, 1), RIG_RING_FITS);
	}
	assert_true(segment.tail > UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_size_that_is_no_power_of_two_is_refused),
	        cmocka_unit_test(the_empty_segment_holds_its_size_wherever_it_stands_and_not_one_more),
	        cmocka_unit_test(a_piece_ends_at_the_end_or_starts_over),
	        cmocka_unit_test(a_piece_up_to_the_oldest_byte_fits_and_one_more_is_later),
	        cmocka_unit_test(a_value_that_used_nothing_does_not_move_a_segment_back),
	        cmocka_unit_test(random_pieces_never_overlap_what_is_in_use),
	};

	return cmocka_run_group_tests_name("ring segment", tests, NULL, NULL);
}
