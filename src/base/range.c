/* SPDX-License-Identifier: MIT */
#include "range.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"

enum { FIRST_ROOM = 8 };

int rig_range_of(uint64_t start, uint64_t bytes, struct rig_range *range)
{
	if (bytes == 0 || bytes - 1 > UINT64_MAX - start)
		return -EINVAL;
	*range = (struct rig_range){.first = start, .last = start + (bytes - 1)};
	return 0;
}

uint64_t rig_range_bytes(const struct rig_range *range)
{
	uint64_t less_one = range->last - range->first;

	return less_one == UINT64_MAX ? UINT64_MAX : less_one + 1;
}

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

int rig_ranges_copy(struct rig_ranges *set, const struct rig_ranges *from)
{
	int rc = reserve(set, from->count);

	if (rc)
		return rc;
	if (from->count)
		memmove(set->at, from->at, from->count * sizeof(*set->at));
	set->count = from->count;
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

int rig_ranges_clip(struct rig_ranges *set, uint64_t first, uint64_t last)
{
	size_t from, to;

	if (last < first)
		return -EINVAL;
	from = seek(set, first);
	for (to = from; to < set->count && set->at[to].first <= last; to++)
		;
	replace(set, to, set->count, NULL, 0);
	replace(set, 0, from, NULL, 0);
	if (set->count) {
		set->at[0].first = rig_max_u64(set->at[0].first, first);
		set->at[set->count - 1].last = rig_min_u64(set->at[set->count - 1].last, last);
	}
	return 0;
}

int rig_ranges_intersect(struct rig_ranges *set, const struct rig_ranges *with)
{
	struct rig_ranges both = {0};
	size_t i = 0, j = 0;
	int rc;

	/* Each step leaves one range behind, so there are fewer common parts than ranges. */
	rc = reserve(&both, set->count + with->count + 1);
	if (rc)
		return rc;
	if (!both.at) /* more ranges than a size can count */
		return -ENOMEM;
	while (i < set->count && j < with->count) {
		const struct rig_range *a = &set->at[i], *b = &with->at[j];
		uint64_t first = rig_max_u64(a->first, b->first);
		uint64_t last = rig_min_u64(a->last, b->last);

		if (first <= last)
			both.at[both.count++] = (struct rig_range){.first = first, .last = last};
		if (a->last <= b->last)
			i++;
		else
			j++;
	}
	rig_ranges_fini(set);
	*set = both;
	return 0;
}

bool rig_ranges_contains(const struct rig_ranges *set, uint64_t first, uint64_t last)
{
	size_t i = seek(set, first);

	return last >= first && i < set->count && set->at[i].first <= first && last <= set->at[i].last;
}

bool rig_ranges_overlaps(const struct rig_ranges *set, uint64_t first, uint64_t last)
{
	size_t i = seek(set, first);

	return last >= first && i < set->count && set->at[i].first <= last;
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

uint64_t rig_ranges_bytes(const struct rig_ranges *set)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < set->count; i++)
		if (!rig_add_u64(sum, rig_range_bytes(&set->at[i]), &sum))
			return UINT64_MAX;
	return sum;
}
