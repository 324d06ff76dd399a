/* SPDX-License-Identifier: MIT */
/*
 * Times and measures of timed values (rig_edge.h: submit's times, settle, measures).
 *
 * The work of a timed value stamps the board's clock: on each of its queues before its first part, once all
 * it waits for is there, and on the queue that releases the value before that. After each launch it stores
 * the launch's counters. They lie in a piece of `stamps`, which the value holds until it was converted.
 * Values are converted in order: by settle, and by a later submit once a reading of the clock is newer than
 * the value's end, or the room is needed. Then *times is written, and the rows of launches are kept until
 * measures gives them up.
 *
 * Readings of the clock (times_clock.h) are taken when the device is made, by settle where it needs one, and
 * by the poller: TICK_NS apart while timed values complete, rarer while one goes on. submit takes none.
 *
 * Hot calls own everything here, but what `lock` guards and the atomics.
 */
#ifndef RIG_DRIVER_TIMES_H
#define RIG_DRIVER_TIMES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rig_board.h"
#include "segment.h"
#include "times_clock.h"

struct rig_dev;
struct rig_plan;
struct rig_timed;
struct rig_kept;

struct rig_dev_times {
	pthread_mutex_t lock; /* of clock */
	struct rig_times_clock clock;
	_Atomic uint64_t timed;   /* the last timed value */
	_Atomic uint64_t covered; /* up to here a reading is newer than the value's end */
	_Atomic uint64_t worst;   /* the largest error so far, in ns */
	uint64_t last_ns, wait_ns,
	        ticked; /* the poller's: its last reading, until the next, and the word then */

	struct rig_segment segment; /* of the stamps' memory; pieces come back by positions, not by marks */
	bool on;                    /* the last value was timed: room thinks of stamps */

	/* Each a ring of which [first, last) is in use; positions are free-running. */
	struct rig_timed *open; /* values that are not converted; NULL: the board has no clock */
	uint64_t first, last;
	uint64_t end, end_ticks; /* of the value converted last */
	struct rig_kept *kept;   /* values whose launches are measured, also those that are not converted */
	uint64_t kept_first, kept_last;
	uint64_t *rows;
	uint64_t *copy; /* of the stamps of the value that is converted */
	uint64_t row_first, row_last;
	uint32_t counters; /* words of a launch's counters */
};

/* What timing adds to a submission. */
struct rig_timing {
	uint64_t units[RIG_BOARD_QUEUES]; /* of steps on each queue */
	uint32_t starts;                  /* stamps before the first part, one a queue */
	uint32_t launches;                /* whose counters are stored */
	uint64_t bytes;                   /* of its piece of the stamps */
	uint64_t address;                 /* step address of that */
	uint32_t start, launch;           /* how many were placed */
};

int rig_dev_times_open(struct rig_dev *dev);
void rig_dev_times_close(struct rig_dev *dev);

/* What timing a submission of this plan would add: its launches are measured unless that is more than the
   rings and the stamps' memory ever hold. */
void rig_dev_times_plan(const struct rig_dev *dev, const struct rig_plan *plan, struct rig_timing *timing);
/* Whether its stamps have room once what is complete was converted: RIG_FITS or RIG_LATER. Converts
   nothing. */
int rig_dev_times_room(const struct rig_dev *dev, const struct rig_timing *timing);
/* Converts what is complete, and takes the room for the value, which FITS. Before its first packet. False: it
   is not timed, because a value before it cannot be, which is the device's fault. */
bool rig_dev_times_begin(
        struct rig_dev *dev, struct rig_timing *timing, uint64_t value, struct rig_times *times);
/* The step addresses of its stamps and counters, in the order they are placed. */
uint64_t rig_dev_times_start(struct rig_timing *timing);
uint64_t rig_dev_times_launch(const struct rig_dev *dev, struct rig_timing *timing);
static inline uint64_t rig_dev_times_end(const struct rig_timing *timing)
{
	return timing->address;
}

int rig_dev_settle(void *self, uint64_t value, const char **failure);
int rig_dev_measures(void *self, uint64_t value, uint64_t *out, const char **failure);

/* From the poller, as often as it wakes: reads the clock if it is time. */
void rig_dev_times_tick(struct rig_dev *dev);
static inline bool rig_dev_times_wanted(const struct rig_dev_times *times)
{
	return atomic_load_explicit(&times->timed, memory_order_relaxed) >
	       atomic_load_explicit(&times->covered, memory_order_relaxed);
}

#endif
