/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <stddef.h>
#include <time.h>

#include "bits.h"

uint64_t rig_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * RIG_NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t read_real(void *arg)
{
	(void)arg;
	return rig_clock_ns();
}

static void sleep_real(void *arg, uint64_t ns)
{
	struct timespec span = {
	        .tv_sec = (time_t)(ns / RIG_NS_PER_S),
	        .tv_nsec = (long)(ns % RIG_NS_PER_S),
	};

	(void)arg;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
}

const struct rig_clock rig_clock_real = {.now_ns = read_real, .sleep_ns = sleep_real};

static const struct rig_clock *choose(const struct rig_clock *clock)
{
	return clock ? clock : &rig_clock_real;
}

uint64_t rig_clock_now(const struct rig_clock *clock)
{
	clock = choose(clock);
	return clock->now_ns(clock->arg);
}

void rig_clock_sleep(const struct rig_clock *clock, uint64_t ns)
{
	clock = choose(clock);
	clock->sleep_ns(clock->arg, ns);
}

struct rig_deadline rig_deadline_in(const struct rig_clock *clock, uint64_t ns)
{
	struct rig_deadline deadline = {.clock = choose(clock), .at = RIG_CLOCK_NEVER};

	rig_add_u64(rig_clock_now(clock), ns, &deadline.at);
	return deadline;
}

bool rig_deadline_passed(const struct rig_deadline *deadline)
{
	return rig_deadline_left(deadline) == 0;
}

uint64_t rig_deadline_left(const struct rig_deadline *deadline)
{
	uint64_t now;

	if (deadline->at == RIG_CLOCK_NEVER)
		return RIG_CLOCK_NEVER;
	now = rig_clock_now(deadline->clock);
	return now >= deadline->at ? 0 : deadline->at - now;
}

void rig_deadline_sleep(const struct rig_deadline *deadline, uint64_t ns)
{
	uint64_t span = rig_min_u64(ns, rig_deadline_left(deadline));

	if (span)
		rig_clock_sleep(deadline->clock, span);
}
