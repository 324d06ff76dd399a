/* SPDX-License-Identifier: MIT */
/*
 * A board's clock on the host's: whatever the clock does, what it showed lies in the range that is answered.
 * The clock here is one whose truth is known: steps of the host's time, each with a drift of its own, and
 * jumps.
 */
#include "test.h"
#include <string.h>

#include "draw.h"
#include "times_clock.h"

#define MS       1000000ull
#define SECOND   (1000 * MS)
#define HZ       62500000ull
#define PPM      100u
#define SLICE_NS 10000u /* the true clock's resolution in time; a multiple of a tick's 16 ns */
#define SLICES   100000u
#define BASE     (7 * SECOND) /* of the host's clock */

static uint64_t ticks_at[SLICES + 1]; /* in 1/1000 of a tick */
static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	return test_draw(&seed, below);
}

/* drift_every: slices between changes of the drift, 0: constant; jump_every: slices between jumps of up to
   most ticks, 0: none. */
static void make_clock(uint32_t drift_every, uint32_t jump_every, uint32_t most)
{
	const int64_t slice = SLICE_NS * (int64_t)HZ / 1000000; /* in 1/1000 of a tick */
	int32_t ppm = (int32_t)draw(2 * PPM + 1) - (int32_t)PPM;
	uint32_t i;

	ticks_at[0] = (uint64_t)draw(1000000) * 1000;
	for (i = 0; i < SLICES; i++) {
		if (drift_every && i % drift_every == 0)
			ppm = draw(2) ? (int32_t)PPM : -(int32_t)PPM;
		ticks_at[i + 1] = ticks_at[i] + (uint64_t)(slice + slice * ppm / 1000000);
		if (jump_every && i % jump_every == jump_every / 2)
			ticks_at[i + 1] += (uint64_t)draw(most + 1) * 1000;
	}
}

/* What the clock shows in slice i. */
static uint64_t shown(uint32_t i)
{
	return ticks_at[i] / 1000;
}

static uint64_t host_of(uint32_t i)
{
	return BASE + (uint64_t)i * SLICE_NS;
}

/* A reading that took up to `longest` slices either way. */
static void read_at(struct rig_times_clock *clock, uint32_t i, uint32_t longest)
{
	struct rig_times_point point = {.ticks = shown(i),
	        .before = host_of(i) - draw(longest * SLICE_NS),
	        .after = host_of(i) + draw(longest * SLICE_NS)};

	rig_times_clock_add(clock, &point);
}

static struct rig_times_clock empty(void)
{
	return (struct rig_times_clock){.hz = HZ, .ppm = PPM};
}

/* The largest error that was answered. */
static uint64_t check(const struct rig_times_clock *clock, unsigned times)
{
	uint64_t worst = 0, best, error;

	while (times--) {
		struct rig_times_range range = {0, UINT64_MAX};
		uint32_t i = draw(SLICES);

		assert_true(rig_times_clock_at(clock, shown(i), &range, &best));
		assert_true(range.least <= host_of(i));
		assert_true(range.most >= host_of(i));
		assert_true(best >= range.least && best <= range.most);
		error = rig_times_error(&range, best);
		assert_true((best > host_of(i) ? best - host_of(i) : host_of(i) - best) <= error);
		if (error > worst)
			worst = error;
	}
	return worst;
}

static void points_every(struct rig_times_clock *clock, uint32_t slices, uint32_t longest)
{
	uint32_t i;

	for (i = longest; i < SLICES; i += slices)
		read_at(clock, i, longest);
}

static void without_jumps_the_error_is_that_of_the_readings_and_of_600_ppm_between_them(void **state)
{
	unsigned round;

	(void)state;
	for (round = 1; round <= 20; round++) {
		struct rig_times_clock clock = empty();
		const uint32_t apart = SLICES / 40;

		seed = round;
		make_clock(round % 2 ? 0 : 77, 0, 0);
		points_every(&clock, apart, 5);
		read_at(&clock, SLICES, 5);
		read_at(&clock, SLICES, 1); /* not after the last: left out */
		assert_true(check(&clock, 2000) <=
		            2 * 5 * SLICE_NS + (uint64_t)apart * SLICE_NS * 600 / 1000000 + 100);
	}
}

static void drift_that_changes_and_jumps_stay_in_the_bound(void **state)
{
	unsigned round;

	(void)state;
	for (round = 1; round <= 40; round++) {
		struct rig_times_clock clock = empty();

		seed = round * 991;
		make_clock(1 + draw(500), 1 + draw(3000), 1u << draw(20));
		points_every(&clock, SLICES / (5 + draw(50)), 1 + draw(20));
		check(&clock, 2000);
	}
}

static void a_jump_costs_at_most_the_time_between_two_readings(void **state)
{
	struct rig_times_clock clock = empty();
	const uint32_t apart = SLICES / 50;

	(void)state;
	seed = 5;
	make_clock(0, SLICES / 7, 1u << 30);
	points_every(&clock, apart, 3);
	read_at(&clock, SLICES, 3);
	assert_true(check(&clock, 3000) <= (uint64_t)(apart + 6) * SLICE_NS);
}

static void before_the_first_reading_and_after_the_last_the_bound_grows_and_holds(void **state)
{
	struct rig_times_clock clock = empty();

	(void)state;
	seed = 3;
	make_clock(50, 0, 0);
	read_at(&clock, SLICES / 2, 2);
	check(&clock, 3000);
}

static void a_short_reading_serves_what_lies_beside_a_long_one(void **state)
{
	struct rig_times_clock clock = empty();
	struct rig_times_point wide = {.ticks = 1000, .before = BASE, .after = BASE + 50 * MS};
	struct rig_times_point narrow = {
	        .ticks = 1000 + HZ / 10, .before = BASE + 130 * MS, .after = BASE + 130 * MS + 1000};
	struct rig_times_range range = {0, UINT64_MAX};
	uint64_t best;

	(void)state;
	rig_times_clock_add(&clock, &wide);
	rig_times_clock_add(&clock, &narrow);
	assert_true(rig_times_clock_at(&clock, 1000 + HZ / 10 - 100, &range, &best));
	/* Before the second reading by 100 ticks, 1600 ns, if the clock did not jump. */
	assert_in_range(best, BASE + 130 * MS - 1600 - 10, BASE + 130 * MS - 1600 + 1010);
}

static void readings_of_two_threads_may_overlap(void **state)
{
	struct rig_times_clock clock = empty();
	struct rig_times_point first = {.ticks = 1000, .before = BASE, .after = BASE + 500};
	struct rig_times_point second = {.ticks = 1010, .before = BASE + 100, .after = BASE + 300};

	(void)state;
	rig_times_clock_add(&clock, &first);
	rig_times_clock_add(&clock, &second);
	assert_int_equal(clock.count, 2);
	rig_times_clock_add(&clock, &first);
	assert_int_equal(clock.count, 2);
}

static void stamps_that_the_clock_cannot_have_shown_then_are_refused(void **state)
{
	struct rig_times_clock clock = empty();
	struct rig_times_point point = {.ticks = HZ, .before = BASE, .after = BASE + 10};
	struct rig_times_range range;
	uint64_t best = 42;

	(void)state;
	rig_times_clock_add(&clock, &point);
	/* One second of ticks later, not before a second less 600 ppm ago could not be: jumps only shorten
	   it. */
	range = (struct rig_times_range){BASE + SECOND + 2 * MS, UINT64_MAX};
	assert_false(rig_times_clock_at(&clock, 2 * HZ, &range, &best));
	assert_int_equal(range.least, BASE + SECOND + 2 * MS);
	/* Later than the reading, but submitted and complete before it. */
	range = (struct rig_times_range){0, BASE - 1};
	assert_false(rig_times_clock_at(&clock, 2 * HZ, &range, &best));
	range = (struct rig_times_range){0, UINT64_MAX};
	assert_true(rig_times_clock_at(&clock, UINT64_MAX - 1, &range, &best));
}

static void a_full_array_goes_on_covering_from_the_first_to_the_last(void **state)
{
	struct rig_times_clock clock = empty();

	(void)state;
	seed = 9;
	make_clock(300, 0, 0);
	points_every(&clock, 20, 2); /* 5,000 of them */
	read_at(&clock, SLICES, 2);
	assert_int_equal(clock.count, RIG_TIMES_POINTS);
	assert_int_equal(clock.point[0].ticks, shown(2));
	assert_true(clock.point[clock.count - 1].ticks >= shown(SLICES - 20));
	/* Uniformly, within a factor of some: 64 of them over a second are 16 ms apart. */
	assert_true(check(&clock, 2000) <= 4 * SLICE_NS + 600 * 64 * MS / 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(without_jumps_the_error_is_that_of_the_readings_and_of_600_ppm_between_them),
	        cmocka_unit_test(drift_that_changes_and_jumps_stay_in_the_bound),
	        cmocka_unit_test(a_jump_costs_at_most_the_time_between_two_readings),
	        cmocka_unit_test(before_the_first_reading_and_after_the_last_the_bound_grows_and_holds),
	        cmocka_unit_test(a_short_reading_serves_what_lies_beside_a_long_one),
	        cmocka_unit_test(readings_of_two_threads_may_overlap),
	        cmocka_unit_test(stamps_that_the_clock_cannot_have_shown_then_are_refused),
	        cmocka_unit_test(a_full_array_goes_on_covering_from_the_first_to_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
