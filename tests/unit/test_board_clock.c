/* SPDX-License-Identifier: MIT */
#include "rvx_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka wants the lines above */
#include <cmocka.h>

#define SECOND 1000000000ull
#define YEAR   (365ull * 24 * 3600 * SECOND)

static void an_exact_clock_ticks_at_its_nominal_frequency(void **state)
{
	(void)state;
	assert_true(rvx_clock_ticks(0, 0) == 0);
	assert_true(rvx_clock_ticks(SECOND, 0) == RVX_CLOCK_NOMINAL_HZ);
	assert_true(rvx_clock_ticks(100 * YEAR, 0) == 100 * YEAR / 16);
}

static void drift_is_parts_per_million_of_the_frequency(void **state)
{
	(void)state;
	for (int ppm = -RVX_CLOCK_MAX_PPM; ppm <= RVX_CLOCK_MAX_PPM; ppm += 25) {
		int64_t off =
		        (int64_t)(rvx_clock_ticks(1000000 * SECOND, ppm) - 1000000 * RVX_CLOCK_NOMINAL_HZ);
		assert_true(off == ppm * (int64_t)RVX_CLOCK_NOMINAL_HZ);
	}
}

static void it_never_goes_back(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (uint64_t ns = 0; ns < 10000; ns++) {
		uint64_t now = rvx_clock_ticks(YEAR + ns, -37);
		assert_true(now >= last);
		last = now;
	}
}

static void a_reset_starts_it_again(void **state)
{
	struct rvx_clock clock = {.started_ns = rvx_now_ns() - 3600 * SECOND};

	(void)state;
	assert_true(rvx_clock_read(&clock) >= 3600 * RVX_CLOCK_NOMINAL_HZ);
	rvx_clock_reset(&clock);
	assert_true(rvx_clock_read(&clock) < 3600 * RVX_CLOCK_NOMINAL_HZ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_exact_clock_ticks_at_its_nominal_frequency),
	        cmocka_unit_test(drift_is_parts_per_million_of_the_frequency),
	        cmocka_unit_test(it_never_goes_back),
	        cmocka_unit_test(a_reset_starts_it_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
