/* SPDX-License-Identifier: MIT */
#include "rvx_clock.h"

/* cmocka wants the lines above */
#include "test.h"

#define SECOND 1000000000ull
#define YEAR   (365ull * 24 * 3600 * SECOND)

static struct rvx_clock clock_of(int drift_ppm)
{
	return (struct rvx_clock){.hz = RVX_CLOCK_NOMINAL_HZ, .drift_ppm = drift_ppm};
}

static void an_exact_clock_ticks_at_its_nominal_frequency(void **state)
{
	struct rvx_clock clock = clock_of(0);

	(void)state;
	assert_true(rvx_clock_ticks(&clock, 0) == 0);
	assert_true(rvx_clock_ticks(&clock, SECOND) == RVX_CLOCK_NOMINAL_HZ);
	assert_true(rvx_clock_ticks(&clock, 100 * YEAR) == 100 * YEAR / 16);
	clock.hz = RVX_CLOCK_MAX_HZ;
	assert_true(rvx_clock_ticks(&clock, YEAR) == YEAR * 4);
}

static void drift_is_parts_per_million_of_the_frequency(void **state)
{
	(void)state;
	for (int ppm = -RVX_CLOCK_MAX_PPM; ppm <= RVX_CLOCK_MAX_PPM; ppm += 25) {
		struct rvx_clock clock = clock_of(ppm);
		int64_t off =
		        (int64_t)(rvx_clock_ticks(&clock, 1000000 * SECOND) - 1000000 * RVX_CLOCK_NOMINAL_HZ);
		assert_true(off == ppm * (int64_t)RVX_CLOCK_NOMINAL_HZ);
	}
}

static void it_jumps_ahead_once_a_period(void **state)
{
	struct rvx_clock clock = clock_of(0), plain = clock_of(0);
	const uint64_t period = SECOND / 100, us50 = RVX_CLOCK_NOMINAL_HZ / 20000;

	(void)state;
	clock.step_us = 50;
	clock.step_ms = 10;
	assert_true(rvx_clock_ticks(&clock, period - 16) == rvx_clock_ticks(&plain, period - 16));
	assert_true(rvx_clock_ticks(&clock, period) == rvx_clock_ticks(&plain, period) + us50);
	assert_true(rvx_clock_ticks(&clock, 7 * period) == rvx_clock_ticks(&plain, 7 * period) + 7 * us50);
}

static void it_never_goes_back(void **state)
{
	struct rvx_clock clock = clock_of(-37);
	uint64_t last = 0;

	(void)state;
	clock.step_us = 1;
	clock.step_ms = 1;
	for (uint64_t ns = 0; ns < 2000000; ns += 100) {
		uint64_t now = rvx_clock_ticks(&clock, YEAR + ns);
		assert_true(now >= last);
		last = now;
	}
}

static void a_reset_starts_it_again(void **state)
{
	struct rvx_clock clock = clock_of(0);

	(void)state;
	clock.started_ns = rvx_now_ns() - 3600 * SECOND;
	assert_true(rvx_clock_read(&clock) >= 3600 * RVX_CLOCK_NOMINAL_HZ);
	rvx_clock_reset(&clock);
	assert_true(rvx_clock_read(&clock) < 3600 * RVX_CLOCK_NOMINAL_HZ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_exact_clock_ticks_at_its_nominal_frequency),
	        cmocka_unit_test(drift_is_parts_per_million_of_the_frequency),
	        cmocka_unit_test(it_jumps_ahead_once_a_period),
	        cmocka_unit_test(it_never_goes_back),
	        cmocka_unit_test(a_reset_starts_it_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
