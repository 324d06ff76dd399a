/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "mmu_table.h"

/* Present page entries from i on, as far as the span wants them whole. */
static uint64_t leaf_run(
        const struct rig_mmu_level *level, const struct table *t, uint64_t i, const struct span *span)
{
	uint64_t most = rig_min_u64(span->bytes >> level->shift, entries_of(level) - i);

	return rig_mmu_bits_run(t->leaf ? t->leaf : t->present, i, most);
}

/* Entries [first, end) begin or end inside a contiguous block. */
static bool cuts_block(const struct rig_mmu_space *space, const struct table *t, uint64_t first, uint64_t end)
{
	return !rig_is_aligned(first, RIG_BIT64(rig_mmu_table_fragment(space, t, first))) ||
	       !rig_is_aligned(end, RIG_BIT64(rig_mmu_table_fragment(space, t, end - 1)));
}

static int check(const struct rig_mmu_space *space, const struct table *t, struct span span)
{
	const struct rig_mmu_level *level = level_of(space, t->level);

	while (span.bytes) {
		uint64_t i = index_of(level, span.offset);
		struct span part = span;
		int rc;

		if (!is_present(t, i))
			return -ENOENT;
		part.bytes = under_entry(level, &span);
		if (is_leaf(t, i)) {
			uint64_t run = leaf_run(level, t, i, &span);

			if (part.bytes < RIG_BIT64(level->shift) || cuts_block(space, t, i, i + run))
				return -EINVAL;
			advance(&span, run << level->shift);
			continue;
		}
		rc = check(space, t->slots[i].child, part);
		if (rc)
			return rc;
		advance(&span, part.bytes);
	}
	return 0;
}

static void forget(struct table *t, uint64_t i, uint64_t count)
{
	rig_mmu_bits_clear(t->present, i, count);
	if (t->leaf)
		rig_mmu_bits_clear(t->leaf, i, count);
	t->used -= (unsigned)count;
}

static void clear_leaves(struct rig_mmu_space *space, struct table *t, uint64_t i, uint64_t count)
{
	/* A table that becomes empty is cut off as a whole; only the root stays. */
	if (count < t->used || t == space->root)
		rig_mmu_table_store_none(space, t, i, count);
	forget(t, i, count);
	space->stats.pages[t->level] -= count;
	space->stats.bytes -= count << level_of(space, t->level)->shift;
}

static void cut_off(struct rig_mmu_space *space, struct table *t, uint64_t i)
{
	struct table *child = t->slots[i].child;

	rig_mmu_table_store_none(space, t, i, 1);
	forget(t, i, 1);
	child->stamp = space->stamp;
	child->next = NULL;
	*space->waiting_end = child;
	space->waiting_end = &child->next;
	space->stats.tables--;
	space->stats.waiting++;
}

static void clear(struct rig_mmu_space *space, struct table *t, struct span span)
{
	const struct rig_mmu_level *level = level_of(space, t->level);

	while (span.bytes) {
		uint64_t i = index_of(level, span.offset);
		struct span part = span;

		if (is_leaf(t, i)) {
			uint64_t run = leaf_run(level, t, i, &span);

			clear_leaves(space, t, i, run);
			advance(&span, run << level->shift);
			continue;
		}
		part.bytes = under_entry(level, &span);
		clear(space, t->slots[i].child, part);
		if (!t->slots[i].child->used)
			cut_off(space, t, i);
		advance(&span, part.bytes);
	}
}

int rig_mmu_unmap(struct rig_mmu_space *space, uint64_t va, uint64_t bytes)
{
	struct span span = {.bytes = bytes};
	int rc;

	rc = rig_mmu_offset(space->format, va, bytes, &span.offset);
	if (rc)
		return rc;
	if (!rig_is_aligned(va | bytes, rig_mmu_page_bytes(space->format)))
		return -EINVAL;
	rc = check(space, space->root, span);
	if (rc)
		return rc;
	space->stamp++;
	clear(space, space->root, span);
	return 0;
}

uint64_t rig_mmu_stamp(const struct rig_mmu_space *space)
{
	return space->stamp;
}

void rig_mmu_reap(struct rig_mmu_space *space, uint64_t stamp)
{
	while (space->waiting && space->waiting->stamp <= stamp) {
		struct table *t = space->waiting;

		space->waiting = t->next;
		space->stats.waiting--;
		rig_mmu_table_free(space, t);
	}
	if (!space->waiting)
		space->waiting_end = &space->waiting;
}
