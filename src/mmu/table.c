/* SPDX-License-Identifier: MIT */
#include "mmu_table.h"

#include <errno.h>
#include <stdlib.h>

/* The bits of one word that a run [first, first + count) has from `first` on; *count is how many. */
static uint64_t word_mask(uint64_t first, uint64_t left, uint64_t *count)
{
	uint64_t at = first % RIG_BITS_U64;

	*count = rig_min_u64(left, RIG_BITS_U64 - at);
	return rig_mask64((unsigned)*count) << at;
}

void rig_mmu_bits_set(uint64_t *bits, uint64_t first, uint64_t count)
{
	for (uint64_t step; count; first += step, count -= step)
		bits[first / RIG_BITS_U64] |= word_mask(first, count, &step);
}

void rig_mmu_bits_clear(uint64_t *bits, uint64_t first, uint64_t count)
{
	for (uint64_t step; count; first += step, count -= step)
		bits[first / RIG_BITS_U64] &= ~word_mask(first, count, &step);
}

bool rig_mmu_bits_any(const uint64_t *bits, uint64_t first, uint64_t count)
{
	for (uint64_t step; count; first += step, count -= step)
		if (bits[first / RIG_BITS_U64] & word_mask(first, count, &step))
			return true;
	return false;
}

uint64_t rig_mmu_bits_run(const uint64_t *bits, uint64_t first, uint64_t most)
{
	uint64_t run = 0;

	for (uint64_t step; run < most; run += step) {
		uint64_t at = first + run;
		uint64_t clear = ~bits[at / RIG_BITS_U64] & word_mask(at, most - run, &step);

		if (clear)
			return run + rig_lowest_bit(clear) - at % RIG_BITS_U64;
	}
	return run;
}

static bool keeps_slots(const struct rig_mmu_space *space, unsigned level)
{
	return level + 1 < space->format->levels || level_of(space, level)->fragments;
}

/* One heap block: the table, its bitmaps, its slots. */
static struct table *make_record(const struct rig_mmu_space *space, unsigned level)
{
	uint64_t entries = entries_of(level_of(space, level));
	size_t words = (size_t)rig_div_up(entries, RIG_BITS_U64);
	bool last = level + 1 == space->format->levels;
	bool slots = keeps_slots(space, level);
	struct table *t = calloc(1, sizeof(*t) + (last ? 1 : 2) * words * sizeof(uint64_t) +
	                                    (slots ? (size_t)entries * sizeof(union slot) : 0));

	if (!t)
		return NULL;
	t->level = level;
	t->present = (uint64_t *)(t + 1);
	t->leaf = last ? NULL : t->present + words;
	t->slots = slots ? (union slot *)(t->present + (last ? 1 : 2) * words) : NULL;
	return t;
}

int rig_mmu_table_new(struct rig_mmu_space *space, unsigned level, struct table **out)
{
	struct table *t = make_record(space, level);
	uint64_t bytes = rig_mmu_table_bytes(space->format, level);
	int rc;

	if (!t)
		return -ENOMEM;
	rc = space->memory.alloc(space->memory.arg, bytes, &t->pa);
	if (rc) {
		free(t);
		return rc;
	}
	space->stats.table_bytes += bytes;
	*out = t;
	return 0;
}

void rig_mmu_table_free(struct rig_mmu_space *space, struct table *t)
{
	uint64_t bytes = rig_mmu_table_bytes(space->format, t->level);

	space->memory.free(space->memory.arg, t->pa, bytes);
	space->stats.table_bytes -= bytes;
	free(t);
}

void rig_mmu_table_free_tree(struct rig_mmu_space *space, struct table *t)
{
	uint64_t entries = entries_of(level_of(space, t->level));

	for (uint64_t i = 0; t->leaf && i < entries; i++)
		if (is_present(t, i) && !is_leaf(t, i))
			rig_mmu_table_free_tree(space, t->slots[i].child);
	rig_mmu_table_free(space, t);
}

void rig_mmu_table_store_none(
        struct rig_mmu_space *space, const struct table *t, uint64_t first, uint64_t count)
{
	struct rig_mmu_run run = {.first = first, .count = count, .value = space->format->none};

	if (count)
		space->memory.store(space->memory.arg, t->pa, &run);
}

static void stock_empty(struct rig_mmu_space *space)
{
	for (unsigned level = 0; level < RIG_MMU_MAX_LEVELS; level++)
		while (space->stock[level])
			rig_mmu_table_free(space, rig_mmu_stock_take(space, level));
}

int rig_mmu_stock_fill(struct rig_mmu_space *space, const uint64_t need[RIG_MMU_MAX_LEVELS])
{
	for (unsigned level = 0; level < space->format->levels; level++) {
		struct table **end = &space->stock[level];

		for (uint64_t n = 0; n < need[level]; n++) {
			struct table *t;
			int rc = rig_mmu_table_new(space, level, &t);

			if (rc) {
				stock_empty(space);
				return rc;
			}
			/* In the order of allocation, which is the order of addresses more often than not. */
			*end = t;
			end = &t->next;
		}
	}
	return 0;
}

struct table *rig_mmu_stock_take(struct rig_mmu_space *space, unsigned level)
{
	struct table *t = space->stock[level];

	space->stock[level] = t->next;
	t->next = NULL;
	return t;
}

unsigned rig_mmu_table_fragment(const struct rig_mmu_space *space, const struct table *t, uint64_t i)
{
	if (!level_of(space, t->level)->fragments)
		return 0;
	return space->format->decode(t->slots[i].entry, t->level).fragment;
}
