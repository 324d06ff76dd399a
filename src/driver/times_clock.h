/* SPDX-License-Identifier: MIT */
/*
 * When on the host's clock a board's clock showed a number: the correlation of the two. Pure.
 *
 * A *point* is one reading of the board's clock between two of the host's. What a number of ticks was on the
 * host's clock is then known to lie in a range, from what every point says:
 *   a point before   not earlier than it, and at most as much later as the ticks between take a clock as
 *                    slow as it may be: jumps ahead only make it less;
 *   a point after    not later than it, and at most as much earlier as the ticks between take.
 * The range holds whatever the clock did between the points: drifted within its bound, changed its drift,
 * jumped ahead. Between two points it is as long as half of what the two readings took, plus the parts per
 * million of the time between them, plus a jump if there was one, but at most the time between them. A
 * reading that took little time serves the stamps near others too. The answer is the best guess in the range:
 * what the two nearest points say if the clock did not jump between them, where that can be.
 *
 * The host's clock, CLOCK_MONOTONIC, may itself be slewed while it is adjusted: RIG_TIMES_HOST_PPM at most.
 */
#ifndef RIG_DRIVER_TIMES_CLOCK_H
#define RIG_DRIVER_TIMES_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define RIG_TIMES_POINTS   64u
#define RIG_TIMES_HOST_PPM 500u

struct rig_times_point {
	uint64_t ticks;
	uint64_t before, after; /* rig_now_ns, around the reading */
};

struct rig_times_clock {
	uint64_t hz;
	uint32_t ppm;                                   /* of the board's clock */
	struct rig_times_point point[RIG_TIMES_POINTS]; /* in rising order */
	uint32_t count;
};

/* A range of rig_now_ns. */
struct rig_times_range {
	uint64_t least, most;
};

/* Adds a point. One with no more ticks than the last is left out; what the two took may overlap, because two
   threads read. A full array loses the point that its neighbours miss least. */
void rig_times_clock_add(struct rig_times_clock *clock, const struct rig_times_point *point);

/* Narrows *range to when the clock showed `ticks`; *best is the best guess in it. False: the clock never can
   have shown that in the range, which is as it was. */
bool rig_times_clock_at(
        const struct rig_times_clock *clock, uint64_t ticks, struct rig_times_range *range, uint64_t *best);

/* How far `ns` may be from where in the range it really was. */
uint64_t rig_times_error(const struct rig_times_range *range, uint64_t ns);

#endif
