/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "mmu_table.h"

/* The span begins with a whole page of this level. */
static bool leaf_fits(const struct rig_mmu_level *level, const struct span *span)
{
	uint64_t size = RIG_BIT64(level->shift);

	return level->leaf && level->shift <= span->limit && span->bytes >= size &&
	       rig_is_aligned(span->offset | span->pa, size);
}

/* How many such pages it begins with, within one table. */
static uint64_t leaf_count(const struct rig_mmu_level *level, const struct span *span)
{
	return rig_min_u64(span->bytes >> level->shift, entries_of(level) - index_of(level, span->offset));
}

/* Count the tables that mapping `span` under `t` (NULL: a table yet to be made) needs. -EEXIST. */
static int plan(struct rig_mmu_space *space, const struct table *t, unsigned n, struct span span,
        uint64_t need[RIG_MMU_MAX_LEVELS])
{
	const struct rig_mmu_level *level = level_of(space, n);

	while (span.bytes) {
		uint64_t i = index_of(level, span.offset);
		const struct table *child = NULL;
		struct span part = span;
		int rc;

		if (leaf_fits(level, &span)) {
			uint64_t count = leaf_count(level, &span);

			if (t && rig_mmu_bits_any(t->present, i, count))
				return -EEXIST;
			advance(&span, count << level->shift);
			continue;
		}
		if (t && is_present(t, i)) {
			if (is_leaf(t, i))
				return -EEXIST;
			child = t->slots[i].child;
		} else {
			need[n + 1]++;
		}
		part.bytes = under_entry(level, &span);
		/* Nothing overlaps in a new table, and one of the last level needs no others. */
		if (child || n + 2 < space->format->levels) {
			rc = plan(space, child, n + 1, part, need);
			if (rc)
				return rc;
		}
		advance(&span, part.bytes);
	}
	return 0;
}

/* The largest block that entry i, whose page is `span`'s first, can begin, and how many entries are alike. */
static unsigned choose_fragment(
        const struct rig_mmu_level *level, uint64_t i, uint64_t *count, const struct span *span)
{
	uint64_t aligned = i | span->pa >> level->shift;
	unsigned fragment = level->fragments;

	if (!fragment)
		return 0;
	fragment = (unsigned)rig_min_u64(fragment, rig_ilog2(*count));
	if (aligned)
		fragment = (unsigned)rig_min_u64(fragment, rig_lowest_bit(aligned));
	if (fragment == level->fragments)
		*count = rig_align_down(*count, RIG_BIT64(fragment));
	else
		*count = RIG_BIT64(fragment);
	return fragment;
}

static void store_alike(struct rig_mmu_space *space, struct table *t, struct rig_mmu_run *run,
        const struct span *span, unsigned fragment)
{
	const struct rig_mmu_format *f = space->format;
	uint64_t page = RIG_BIT64(level_of(space, t->level)->shift);

	run->value = f->leaf(span->pa, span->flags, t->level, fragment);
	if (run->count > 1)
		run->stride = f->leaf(span->pa + page, span->flags, t->level, fragment) - run->value;
	space->memory.store(space->memory.arg, t->pa, run);
	if (t->slots)
		for (uint64_t k = 0; k < run->count; k++)
			t->slots[run->first + k].entry = run->value + k * run->stride;
}

/* Store pages of the span into entries first .. first + count - 1 in the largest contiguous blocks; counts
 * nothing. */
static void store_leaves(
        struct rig_mmu_space *space, struct table *t, uint64_t first, uint64_t count, const struct span *span)
{
	const struct rig_mmu_level *level = level_of(space, t->level);
	struct span left = *span;

	while (count) {
		struct rig_mmu_run run = {.first = first, .count = count};
		unsigned fragment = choose_fragment(level, first, &run.count, &left);

		store_alike(space, t, &run, &left, fragment);
		first += run.count;
		count -= run.count;
		advance(&left, run.count << level->shift);
	}
}

/* Store the entry that leads to a child. */
static void link_child(struct rig_mmu_space *space, const struct table *t, uint64_t i)
{
	struct table *child = t->slots[i].child;
	struct rig_mmu_run run = {
	        .first = i,
	        .count = 1,
	        .value = space->format->table(child->pa, t->level),
	};

	space->memory.store(space->memory.arg, t->pa, &run);
	child->linked = true;
}

/* Lead to the tables made under entries first .. end - 1, whose contents are stored. */
static void link_new(struct rig_mmu_space *space, const struct table *t, uint64_t first, uint64_t end)
{
	if (t->linked && space->memory.barrier)
		space->memory.barrier(space->memory.arg);
	for (uint64_t i = first; i < end; i++)
		if (is_present(t, i) && !is_leaf(t, i) && !t->slots[i].child->linked)
			link_child(space, t, i);
}

static void add_leaves(
        struct rig_mmu_space *space, struct table *t, uint64_t i, uint64_t count, const struct span *span)
{
	store_leaves(space, t, i, count, span);
	rig_mmu_bits_set(t->present, i, count);
	if (t->leaf)
		rig_mmu_bits_set(t->leaf, i, count);
	t->used += (unsigned)count;
	space->stats.pages[t->level] += count;
	space->stats.bytes += count << level_of(space, t->level)->shift;
}

static void add_child(struct rig_mmu_space *space, struct table *t, uint64_t i)
{
	t->slots[i].child = rig_mmu_stock_take(space, t->level + 1);
	rig_mmu_bits_set(t->present, i, 1);
	t->used++;
	space->stats.tables++;
}

/* Do it, with a stock that plan() counted. */
static void fill(struct rig_mmu_space *space, struct table *t, struct span span)
{
	const struct rig_mmu_level *level = level_of(space, t->level);
	uint64_t first = index_of(level, span.offset), end = first;
	bool made = false;

	while (span.bytes) {
		struct span part = span;
		uint64_t count;

		if (leaf_fits(level, &span)) {
			count = leaf_count(level, &span);
			add_leaves(space, t, end, count, &span);
			advance(&span, count << level->shift);
			end += count;
			continue;
		}
		if (!is_present(t, end)) {
			add_child(space, t, end);
			made = true;
		}
		part.bytes = under_entry(level, &span);
		fill(space, t->slots[end].child, part);
		advance(&span, part.bytes);
		end++;
	}
	/* A new table's contents are undefined outside what was just mapped. */
	if (!t->linked) {
		rig_mmu_table_store_none(space, t, 0, first);
		rig_mmu_table_store_none(space, t, end, entries_of(level) - end);
	}
	if (made)
		link_new(space, t, first, end);
}

static int check_map(const struct rig_mmu_space *space, struct span *span, uint64_t va)
{
	const struct rig_mmu_format *f = space->format;
	int rc = rig_mmu_offset(f, va, span->bytes, &span->offset);

	if (rc)
		return rc;
	if (!rig_is_aligned(va | span->pa | span->bytes, rig_mmu_page_bytes(f)))
		return -EINVAL;
	if (span->pa > rig_mask64(f->pa_bits) || span->bytes - 1 > rig_mask64(f->pa_bits) - span->pa)
		return -EINVAL;
	if (span->flags & ~f->flags || (f->accepts && !f->accepts(span->flags)))
		return -EINVAL;
	return 0;
}

int rig_mmu_map(struct rig_mmu_space *space, uint64_t va, uint64_t pa, uint64_t bytes, uint64_t flags)
{
	struct span span = {.pa = pa, .bytes = bytes, .flags = flags, .limit = space->limit};
	uint64_t need[RIG_MMU_MAX_LEVELS] = {0};
	int rc;

	rc = check_map(space, &span, va);
	if (rc)
		return rc;
	rc = plan(space, space->root, 0, span, need);
	if (rc)
		return rc;
	rc = rig_mmu_stock_fill(space, need);
	if (rc)
		return rc;
	fill(space, space->root, span);
	return 0;
}
