/* SPDX-License-Identifier: MIT */
/*
 * Which part of a ring each timeline value used.
 *
 * A mark says: once `value` is complete, everything before position `end` may be used again. Marks are set in
 * the order of submission, so values and ends never decrease, and they live in an array of the caller's.
 * Setting a mark never fails: when the array is full, the newest mark takes the new value and end, so some
 * space comes back later than it could and none comes back early.
 *
 * Not thread-safe: the caller's submission lock covers marks too.
 */
#ifndef RIG_MARKS_H
#define RIG_MARKS_H

#include <stdbool.h>
#include <stdint.h>

struct rig_mark {
	uint64_t value;
	uint64_t end;
};

struct rig_marks {
	struct rig_mark *at; /* the caller's array, borrowed */
	uint32_t mask;       /* its length less one; the length is a power of two */
	uint32_t first;      /* free-running index of the oldest mark */
	uint32_t count;
};

static inline void rig_marks_set(struct rig_marks *marks, uint64_t value, uint64_t end)
{
	struct rig_mark *last = &marks->at[(marks->first + marks->count - 1) & marks->mask];

	if (marks->count && last->end == end)
		return; /* nothing was used since */
	if (marks->count && (last->value == value || marks->count > marks->mask)) {
		last->value = value;
		last->end = end;
		return;
	}
	marks->at[(marks->first + marks->count) & marks->mask] =
	        (struct rig_mark){.value = value, .end = end};
	marks->count++;
}

/* Drop every mark of a value up to `completed`. True when some were: `*end` is then the position before which
 * all is free. */
static inline bool rig_marks_reach(struct rig_marks *marks, uint64_t completed, uint64_t *end)
{
	bool any = false;

	while (marks->count && marks->at[marks->first & marks->mask].value <= completed) {
		*end = marks->at[marks->first & marks->mask].end;
		marks->first++;
		marks->count--;
		any = true;
	}
	return any;
}

#endif
