/* SPDX-License-Identifier: MIT */
/*
 * Time in nanoseconds, and deadlines.
 *
 * A clock is a table so that a test can bring its own and no wait of the library needs real time to be
 * tested. `now_ns` never goes backwards; `sleep_ns` returns after about that time or earlier (a signal), so a
 * caller looks at the clock again. Both are called from any thread.
 */
#ifndef RIG_CLOCK_H
#define RIG_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define RIG_NS_PER_US UINT64_C(1000)
#define RIG_NS_PER_MS UINT64_C(1000000)
#define RIG_NS_PER_S  UINT64_C(1000000000)

/* A deadline at this time never passes. */
#define RIG_CLOCK_NEVER UINT64_MAX

struct rig_clock {
	uint64_t (*now_ns)(void *arg);
	void (*sleep_ns)(void *arg, uint64_t ns);
	void *arg;
};

/* CLOCK_MONOTONIC and clock_nanosleep. */
extern const struct rig_clock rig_clock_real;

/* CLOCK_MONOTONIC now. */
uint64_t rig_clock_ns(void);

/* `clock` NULL means rig_clock_real in every function below. */
uint64_t rig_clock_now(const struct rig_clock *clock);
void rig_clock_sleep(const struct rig_clock *clock, uint64_t ns);

struct rig_deadline {
	const struct rig_clock *clock; /* borrowed; outlives the deadline */
	uint64_t at;                   /* in the clock's nanoseconds, or RIG_CLOCK_NEVER */
};

/* A deadline `ns` from now; saturates to RIG_CLOCK_NEVER. */
struct rig_deadline rig_deadline_in(const struct rig_clock *clock, uint64_t ns);

/* The time has come. Reads the clock. */
bool rig_deadline_passed(const struct rig_deadline *deadline);

/* Nanoseconds left: 0 once passed, RIG_CLOCK_NEVER if it never passes. */
uint64_t rig_deadline_left(const struct rig_deadline *deadline);

/* Sleep `ns`, but not past the deadline. */
void rig_deadline_sleep(const struct rig_deadline *deadline, uint64_t ns);

#endif
