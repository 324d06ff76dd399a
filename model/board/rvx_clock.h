/* SPDX-License-Identifier: MIT */
/*
 * The board's clock (manual, section 3): ticks since reset at a nominal frequency that no host has, off it by
 * a settable drift, and with jumps ahead where asked for.
 */
#ifndef RVX_CLOCK_H
#define RVX_CLOCK_H

#include <stdint.h>

#define RVX_CLOCK_NOMINAL_HZ 62500000ull
#define RVX_CLOCK_MIN_HZ     1000000ull
#define RVX_CLOCK_MAX_HZ     4000000000ull
#define RVX_CLOCK_MAX_PPM    100 /* RVX1_CLOCK_PPM, as a number with a sign */
#define RVX_CLOCK_MAX_STEP   1000000u

struct rvx_clock {
	uint64_t started_ns; /* host time of the reset */
	uint64_t hz;         /* nominal: RVX_CLOCK_MIN_HZ to RVX_CLOCK_MAX_HZ */
	int drift_ppm;       /* [-RVX_CLOCK_MAX_PPM, RVX_CLOCK_MAX_PPM] */
	/* It jumps ahead by step_us microseconds each step_ms milliseconds, both at most RVX_CLOCK_MAX_STEP;
	   0: never. */
	uint32_t step_us, step_ms;
};

/* Host time, monotonic nanoseconds. */
uint64_t rvx_now_ns(void);

/* Ticks of that clock `ns` nanoseconds after its reset. Never decreases with ns. */
uint64_t rvx_clock_ticks(const struct rvx_clock *clock, uint64_t ns);

/* The clock starts again at 0. */
void rvx_clock_reset(struct rvx_clock *clock);
uint64_t rvx_clock_read(const struct rvx_clock *clock);

#endif
