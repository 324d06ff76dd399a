/* SPDX-License-Identifier: MIT */
#include "rvx_clock.h"

#include <time.h>

#define NS_PER_S 1000000000ull
#define MILLION  1000000

uint64_t rvx_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t rvx_clock_ticks(uint64_t ns, int drift_ppm)
{
	unsigned __int128 scaled =
	        (unsigned __int128)ns * RVX_CLOCK_NOMINAL_HZ * (unsigned)(MILLION + drift_ppm);

	return (uint64_t)(scaled / (NS_PER_S * MILLION));
}

void rvx_clock_reset(struct rvx_clock *clock)
{
	clock->started_ns = rvx_now_ns();
}

uint64_t rvx_clock_read(const struct rvx_clock *clock)
{
	return rvx_clock_ticks(rvx_now_ns() - clock->started_ns, clock->drift_ppm);
}
