/* SPDX-License-Identifier: MIT */
#include "range.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"

enum { FIRST_ROOM = 8 };

void rig_ranges_fini(struct rig_ranges *set)
{
	if (!set)
		return;
	free(set->at);
	*set = (struct rig_ranges){0};
}

static int reserve(struct rig_ranges *set, size_t count)
{
	size_t room = set->room ? set->room : FIRST_ROOM;
	struct rig_range *at;

	if (count <= set->room)
		return 0;
	while (room < count)
		room *= 2;
	at = reallocarray(set->at, room, sizeof(*at));
	if (!at)
		return -ENOMEM;
	set->at = at;
	set->room = room;
	return 0;
}

/* Index of the first range whose last address is not below `at`; count if there is none. */
static size_t seek(const struct rig_ranges *set, uint64_t at)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (set->at[mid].last < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Replace ranges [from, to) by the `count` ranges of `with`; room was reserved. */
static void replace(
        struct rig_ranges *set, size_t from, size_t to, const struct rig_range *with, size_t count)
{
	if (to < set->count)
		memmove(&set->at[from + count], &set->at[to], (set->count - to) * sizeof(*set->at));
	if (count)
		memcpy(&set->at[from], with, count * sizeof(*with));
	set->count = set->count - (to - from) + count;
}

int rig_ranges_add(struct rig_ranges *set, uint64_t first, uint64_t last)
{
	struct rig_range whole = {.first = first, .last = last};
	size_t from, to;
	int rc;

	if (last < first)
		return -EINVAL;
	rc = reserve(set, set->count + 1);
	if (rc)
		return rc;
	/* Neighbours that only touch are merged too, hence one address more on either side. */
	from = seek(set, first ? first - 1 : 0);
	for (to = from; to < set->count && (last == UINT64_MAX || set->at[to].first <= last + 1); to++) {
		whole.first = rig_min_u64(whole.first, set->at[to].first);
		whole.last = rig_max_u64(whole.last, set->at[to].last);
	}
	replace(set, from, to, &whole, 1);
	return 0;
}

int rig_ranges_sub(struct rig_ranges *set, uint64_t first, uint64_t last)
{
	struct rig_range kept[2];
	size_t count = 0;
	size_t from, to;
	int rc;

	if (last < first)
		return -EINVAL;
	rc = reserve(set, set->count + 1);
	if (rc)
		return rc;
	from = seek(set, first);
	for (to = from; to < set->count && set->at[to].first <= last; to++)
		;
	if (from == to)
		return 0;
	if (set->at[from].first < first)
		kept[count++] = (struct rig_range){.first = set->at[from].first, .last = first - 1};
	if (set->at[to - 1].last > last)
		kept[count++] = (struct rig_range){.first = last + 1, .last = set->at[to - 1].last};
	replace(set, from, to, kept, count);
	return 0;
}

int rig_ranges_fit(const struct rig_ranges *set, const struct rig_ranges_want *want, uint64_t *start)
{
	uint64_t align = want->align ? want->align : 1;
	uint64_t top = want->mask ? want->mask : UINT64_MAX;

	if (want->bytes == 0 || !rig_is_pow2(align))
		return -EINVAL;
	for (size_t i = seek(set, want->lower); i < set->count; i++) {
		uint64_t last = rig_min_u64(set->at[i].last, top);
		uint64_t at;

		if (!rig_align_up(rig_max_u64(set->at[i].first, want->lower), align, &at) || at > last)
			continue;
		if (want->bytes - 1 <= last - at) {
			*start = at;
			return 0;
		}
	}
	return -ENOSPC;
}
