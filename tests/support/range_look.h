/* SPDX-License-Identifier: MIT */
#ifndef TEST_RANGE_LOOK_H
#define TEST_RANGE_LOOK_H

/* What tests ask of a set of ranges. */
#include <stdbool.h>

#include "range.h"

/* Every, or any, address of first..last is in the set. */
static inline bool ranges_contain(const struct rig_ranges *set, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->at[i].first <= first && last <= set->at[i].last)
			return true;
	return false;
}

static inline bool ranges_overlap(const struct rig_ranges *set, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->at[i].first <= last && first <= set->at[i].last)
			return true;
	return false;
}

#endif
