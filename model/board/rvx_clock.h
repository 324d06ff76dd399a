/* SPDX-License-Identifier: MIT */
/*
 * The board's clock: ticks since reset at a nominal frequency that no host has, off it by a settable drift
 * (manual, section 3).
 */
#ifndef RVX_CLOCK_H
#define RVX_CLOCK_H

#include <stdint.h>

#define RVX_CLOCK_NOMINAL_HZ 62500000ull
#define RVX_CLOCK_MAX_PPM    100 /* section 3: at most that far off */

struct rvx_clock {
	uint64_t started_ns; /* host time of the reset */
	int drift_ppm;       /* [-RVX_CLOCK_MAX_PPM, RVX_CLOCK_MAX_PPM] */
};

/* Host time, monotonic nanoseconds. */
uint64_t rvx_now_ns(void);

/* Ticks of a clock with that drift after `ns` nanoseconds. Never decreases with ns. */
uint64_t rvx_clock_ticks(uint64_t ns, int drift_ppm);

/* The clock starts again at 0. */
void rvx_clock_reset(struct rvx_clock *clock);
uint64_t rvx_clock_read(const struct rvx_clock *clock);

#endif
