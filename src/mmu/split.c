/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "mmu_table.h"

/* Store the pages of entries [first, end) again, as blocks of their own; `like` is the page of `first`. */
static void store_again(struct rig_mmu_space *space, struct table *t, uint64_t first, uint64_t end)
{
	struct rig_mmu_entry like;
	struct span span;

	if (first == end)
		return;
	like = space->format->decode(t->slots[first].entry, t->level);
	span = (struct span){
	        .pa = like.pa,
	        .bytes = (end - first) << level_of(space, t->level)->shift,
	        .flags = like.flags,
	};
	rig_mmu_map_store_leaves(space, t, first, end - first, &span);
}

/* Make `boundary` the beginning of a contiguous block, where entry i's block crosses it. */
static void break_block(struct rig_mmu_space *space, struct table *t, uint64_t i, uint64_t boundary)
{
	uint64_t size = RIG_BIT64(rig_mmu_table_fragment(space, t, i));
	uint64_t first = rig_align_down(i, size), end = first + size;

	if (boundary <= first || boundary >= end)
		return;
	store_again(space, t, first, boundary);
	store_again(space, t, boundary, end);
}

/* Replace the page of entry i by a table of smaller ones. */
static int break_page(struct rig_mmu_space *space, struct table *t, uint64_t i, uint64_t offset)
{
	const struct rig_mmu_level *level = level_of(space, t->level);
	struct rig_mmu_entry page = space->format->decode(t->slots[i].entry, t->level);
	uint64_t need[RIG_MMU_MAX_LEVELS] = {[0] = 0};
	struct span span = {
	        .offset = rig_align_down(offset, RIG_BIT64(level->shift)),
	        .pa = page.pa,
	        .bytes = RIG_BIT64(level->shift),
	        .flags = page.flags,
	        .limit = level->shift - 1u,
	};
	int rc;

	need[t->level + 1] = 1;
	rc = rig_mmu_map_plan(space, NULL, t->level + 1, span, need);
	if (rc)
		return rc;
	rc = rig_mmu_stock_fill(space, need);
	if (rc)
		return rc;
	break_block(space, t, i, i);
	break_block(space, t, i, i + 1);
	rig_mmu_bits_clear(t->leaf, i, 1);
	space->stats.pages[t->level]--;
	space->stats.bytes -= span.bytes;
	t->slots[i].child = rig_mmu_stock_take(space, t->level + 1);
	space->stats.tables++;
	rig_mmu_map_fill(space, t->slots[i].child, span);
	if (space->memory.barrier)
		space->memory.barrier(space->memory.arg);
	rig_mmu_map_link(space, t, i);
	return 0;
}

int rig_mmu_split(struct rig_mmu_space *space, uint64_t va)
{
	uint64_t page = rig_mmu_page_bytes(space->format);
	struct table *t = space->root;
	uint64_t offset;
	int rc;

	rc = rig_mmu_offset(space->format, va, page, &offset);
	if (rc)
		return rc;
	if (!rig_is_aligned(va, page))
		return -EINVAL;
	for (;;) {
		const struct rig_mmu_level *level = level_of(space, t->level);
		uint64_t i = index_of(level, offset);

		if (!is_present(t, i))
			return 0;
		if (is_leaf(t, i) && rig_is_aligned(offset, RIG_BIT64(level->shift))) {
			break_block(space, t, i, i);
			return 0;
		}
		if (is_leaf(t, i)) {
			rc = break_page(space, t, i, offset);
			if (rc)
				return rc;
		}
		t = t->slots[i].child;
	}
}
