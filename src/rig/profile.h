/* SPDX-License-Identifier: MIT */
/*
 * Profiles inside librig: what is remembered of a timed value until its times are known, and who wants them.
 *
 * A device with a profile has `attached` entries. Each submit then makes a record, whose pair of times goes
 * to the driver and to no other value. Records are *collected* in value order once the word shows their
 * value: settle, measures, then an event for each profile in whose time the value was submitted. Collecting
 * is a hot call: with the device's lock and turn. Records of a lost device whose driver may still write
 * their times stay with the device until its work is over.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include "rt.h"

/* Submits collect once so many records wait, so that a driver keeps few. */
#define RT_COLLECT_AT 64u

struct rig_rt_record_part {
	uint32_t queue, kind;
	bool fill; /* of RIG_COPY */
	uint64_t bytes;
	const char *function; /* of RIG_LAUNCH */
};

struct rig_rt_record {
	struct rig_rt_record *next;
	struct rig_times times;
	uint64_t value, handed;
	uint32_t nparts, nlaunches;
	struct rig_rt_record_part parts[]; /* the functions' names follow them */
};

/* A profile that is taken of a device: of its values in (first, last]. */
struct rig_rt_attached {
	struct rig_rt_attached *next;
	struct rig_profile *profile;
	struct rig_device *device; /* a reference */
	uint64_t first, last;      /* last UINT64_MAX: until it is stopped */
};

struct rig_rt_word { /* a name, kept once */
	struct rig_rt_word *next;
	char text[];
};

struct rig_profile {
	uint32_t ndevices;
	struct rig_rt_attached *devices;
	atomic_bool stopping, stopped;
	struct rig_rt_lock lock; /* innermost: of what follows, until it is stopped */
	struct rig_event *events;
	size_t nevents, capacity;
	struct rig_rt_word *words;
	uint64_t timed; /* values with times */
	struct rig_profile_summary summary;
};

/* With the lock and the turn, before and after a submit. The record, or NULL: the value is not timed. */
struct rig_rt_record *rig_rt_record_make(const struct rig_rt_job *job, uint64_t value);
/* True: collecting lost the device. */
bool rig_rt_record_handed(struct rig_device *d, struct rig_rt_record *record);
/* Frees what is left when the device goes. */
void rig_rt_records_drop(struct rig_device *d);

/* What a value did, for each queue and measured launch; `rows` may be NULL (profile_event.c).
   What finds no memory is counted in the summary. */
void rig_rt_events_of(const struct rig_rt_attached *to, const struct rig_rt_record *record,
        const uint64_t *rows, uint32_t row_words);

#endif
