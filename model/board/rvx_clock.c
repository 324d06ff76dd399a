/* SPDX-License-Identifier: MIT */
#include "rvx_clock.h"

#include <time.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull
#define NS_PER_US 1000ull
#define MILLION   1000000

uint64_t rvx_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t steps_ns(const struct rvx_clock *clock, uint64_t ns)
{
	return clock->step_ms ? ns / (clock->step_ms * NS_PER_MS) * clock->step_us * NS_PER_US : 0;
}

uint64_t rvx_clock_ticks(const struct rvx_clock *clock, uint64_t ns)
{
	unsigned __int128 scaled =
	        (unsigned __int128)ns * clock->hz * (unsigned)(MILLION + clock->drift_ppm) / MILLION;

	return (uint64_t)((scaled + (unsigned __int128)steps_ns(clock, ns) * clock->hz) / NS_PER_S);
}

void rvx_clock_reset(struct rvx_clock *clock)
{
	clock->started_ns = rvx_now_ns();
}

uint64_t rvx_clock_read(const struct rvx_clock *clock)
{
	return rvx_clock_ticks(clock, rvx_now_ns() - clock->started_ns);
}
