/* SPDX-License-Identifier: MIT */
/*
 * Sets of 64-bit addresses, as sorted, disjoint ranges that never touch.
 *
 * A range is the half-open [first, last + 1), stored by its first and last address so that one may reach
 * 2^64 - 1 and the whole space is a range too. An empty range does not exist.
 *
 * Memory: the set owns its array. Changing a set may allocate; a change that fails with -ENOMEM leaves the
 * set as it was. One thread at a time (readers may share a set nobody changes).
 */
#ifndef RIG_RANGE_H
#define RIG_RANGE_H

#include <stddef.h>
#include <stdint.h>

struct rig_range {
	uint64_t first;
	uint64_t last; /* inclusive; >= first */
};

/* A zeroed set is an empty set. */
struct rig_ranges {
	struct rig_range *at;
	size_t count;
	size_t room;
};

/* Release the array; the set is empty again. NULL is allowed. */
void rig_ranges_fini(struct rig_ranges *set);

/* Union with and difference from first..last. -EINVAL (last < first), -ENOMEM. */
int rig_ranges_add(struct rig_ranges *set, uint64_t first, uint64_t last);
int rig_ranges_sub(struct rig_ranges *set, uint64_t first, uint64_t last);

/* What to look for. */
struct rig_ranges_want {
	uint64_t bytes; /* > 0 */
	uint64_t align; /* of the start: a power of two, or 0 for 1 */
	uint64_t lower; /* the start is not below this */
	uint64_t mask;  /* the last byte is not above this (a DMA mask); 0 means no limit */
};

/* Lowest start that fits. Changes nothing: the caller subtracts what it takes. -EINVAL (bytes 0, align no
 * power of two), -ENOSPC (no such place). */
int rig_ranges_fit(const struct rig_ranges *set, const struct rig_ranges_want *want, uint64_t *start);

#endif
