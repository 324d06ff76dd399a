/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "bits.h"
#include "times_clock.h"

#define NS_PER_S 1000000000ull
#define MILLION  1000000u

static uint64_t ns_of(const struct rig_times_clock *clock, uint64_t ticks, uint32_t rate)
{
	unsigned __int128 ns = (unsigned __int128)ticks * NS_PER_S * MILLION / clock->hz / rate;

	return ns > UINT64_MAX / 2 ? UINT64_MAX / 2 : (uint64_t)ns;
}

/* Nanoseconds that `ticks` take at most and, without jumps, at least. A reading is cut to whole ticks. */
static uint64_t longest(const struct rig_times_clock *clock, uint64_t ticks)
{
	return ns_of(clock, ticks + 1, MILLION - clock->ppm - RIG_TIMES_HOST_PPM) + 1;
}

static uint64_t shortest(const struct rig_times_clock *clock, uint64_t ticks)
{
	return ticks ? ns_of(clock, ticks - 1, MILLION + clock->ppm + RIG_TIMES_HOST_PPM) : 0;
}

/* The point, but the first and the last, whose neighbours are nearest to each other. */
static uint32_t least_missed(const struct rig_times_clock *clock)
{
	uint64_t shortest = UINT64_MAX;
	uint32_t i, at = 1;

	for (i = 1; i + 1 < clock->count; i++) {
		uint64_t span = clock->point[i + 1].ticks - clock->point[i - 1].ticks;

		if (span < shortest) {
			shortest = span;
			at = i;
		}
	}
	return at;
}

void rig_times_clock_add(struct rig_times_clock *clock, const struct rig_times_point *point)
{
	const struct rig_times_point *last = clock->count ? &clock->point[clock->count - 1] : NULL;
	uint32_t at;

	if (last && point->ticks <= last->ticks)
		return;
	if (clock->count == RIG_TIMES_POINTS) {
		at = least_missed(clock);
		memmove(&clock->point[at], &clock->point[at + 1],
		        (clock->count - at - 1) * sizeof(clock->point[0]));
		clock->count--;
	}
	clock->point[clock->count++] = *point;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void narrow(const struct rig_times_clock *clock, const struct rig_times_point *p, uint64_t ticks,
        struct rig_times_range *range)
{
	uint64_t least = p->before, most = p->after;

	if (p->ticks <= ticks)
		most += longest(clock, ticks - p->ticks);
	else
		least = minus(least, longest(clock, p->ticks - ticks));
	range->least = rig_max_u64(range->least, least);
	range->most = rig_min_u64(range->most, most);
}

/* As if the clock had not jumped between the point and the ticks. */
static void narrow_steady(const struct rig_times_clock *clock, const struct rig_times_point *p,
        uint64_t ticks, struct rig_times_range *range)
{
	if (p->ticks <= ticks)
		range->least = rig_max_u64(range->least, p->before + shortest(clock, ticks - p->ticks));
	else
		range->most = rig_min_u64(range->most, minus(p->after, shortest(clock, p->ticks - ticks)));
}

static uint64_t middle(const struct rig_times_range *range)
{
	return range->least + (range->most - range->least) / 2;
}

bool rig_times_clock_at(
        const struct rig_times_clock *clock, uint64_t ticks, struct rig_times_range *range, uint64_t *best)
{
	struct rig_times_range sound = *range, steady;
	uint32_t i, after = 0;

	for (i = 0; i < clock->count; i++) {
		narrow(clock, &clock->point[i], ticks, &sound);
		after += clock->point[i].ticks <= ticks;
	}
	if (sound.least > sound.most)
		return false;
	steady = sound;
	if (after > 0)
		narrow_steady(clock, &clock->point[after - 1], ticks, &steady);
	if (after < clock->count)
		narrow_steady(clock, &clock->point[after], ticks, &steady);
	*range = sound;
	*best = middle(steady.least <= steady.most ? &steady : &sound);
	return true;
}

uint64_t rig_times_error(const struct rig_times_range *range, uint64_t ns)
{
	return rig_max_u64(minus(ns, range->least), minus(range->most, ns));
}
