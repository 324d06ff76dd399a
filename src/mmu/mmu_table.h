/* SPDX-License-Identifier: MIT */
/*
 * What the host knows about each page table: inside src/mmu only.
 *
 * A table of the last level is a bitmap of its present entries and nothing else, so that mapping a page costs
 * one store, to the device. Other tables, and last levels with contiguous blocks, also keep a slot an entry:
 * the table below, or the page's entry as it was stored.
 */
#ifndef RIG_MMU_TABLE_H
#define RIG_MMU_TABLE_H

#include "mmu.h"

union slot {
	struct table *child;
	uint64_t entry;
};

struct table {
	struct table *next; /* in a stock or in the waiting list */
	uint64_t pa;
	uint64_t stamp; /* waiting: of the unmap that emptied it */
	unsigned level;
	unsigned used;     /* present entries */
	bool linked;       /* an entry leads here, so the device may walk it (the root: always) */
	uint64_t *present; /* a bit an entry */
	uint64_t *leaf;    /* present and a page; NULL on the last level, where every present entry is */
	union slot *slots; /* NULL where nothing but presence is kept */
};

struct rig_mmu_space {
	const struct rig_mmu_format *format;
	struct rig_mmu_memory memory;
	struct table *root;
	struct table *stock[RIG_MMU_MAX_LEVELS]; /* tables for the change under way; empty between calls */
	struct table *waiting, **waiting_end;    /* emptied, oldest first */
	uint64_t stamp;
	unsigned limit; /* log2 of the largest page to use */
	struct rig_mmu_stats stats;
};

/* A piece of a change: at most what one table reaches. */
struct span {
	uint64_t offset; /* rig_mmu_offset's */
	uint64_t pa;
	uint64_t bytes;
	uint64_t flags;
	unsigned limit; /* log2 of the largest page */
};

static inline void advance(struct span *span, uint64_t bytes)
{
	span->offset += bytes;
	span->pa += bytes;
	span->bytes -= bytes;
}

static inline const struct rig_mmu_level *level_of(const struct rig_mmu_space *space, unsigned level)
{
	return &space->format->level[level];
}

static inline uint64_t entries_of(const struct rig_mmu_level *level)
{
	return RIG_BIT64(level->bits);
}

static inline uint64_t index_of(const struct rig_mmu_level *level, uint64_t offset)
{
	return (offset >> level->shift) & (entries_of(level) - 1);
}

/* How much of the span lies under the one entry it begins in. */
static inline uint64_t under_entry(const struct rig_mmu_level *level, const struct span *span)
{
	uint64_t size = RIG_BIT64(level->shift);

	return rig_min_u64(span->bytes, size - (span->offset & (size - 1)));
}

static inline bool is_present(const struct table *t, uint64_t i)
{
	return t->present[i / RIG_BITS_U64] >> (i % RIG_BITS_U64) & 1;
}

/* Of a present entry. */
static inline bool is_leaf(const struct table *t, uint64_t i)
{
	return !t->leaf || (t->leaf[i / RIG_BITS_U64] >> (i % RIG_BITS_U64) & 1);
}

/* Bitmaps: set or clear a run; whether any bit of one is set; how many are set from `first` on, up to
 * `most`. */
void rig_mmu_bits_set(uint64_t *bits, uint64_t first, uint64_t count);
void rig_mmu_bits_clear(uint64_t *bits, uint64_t first, uint64_t count);
bool rig_mmu_bits_any(const uint64_t *bits, uint64_t first, uint64_t count);
uint64_t rig_mmu_bits_run(const uint64_t *bits, uint64_t first, uint64_t most);

/* A table with nothing in it and undefined device contents. -ENOMEM or the error of alloc. */
int rig_mmu_table_new(struct rig_mmu_space *space, unsigned level, struct table **out);
/* Free it alone. */
void rig_mmu_table_free(struct rig_mmu_space *space, struct table *t);
/* Free it and all below it. */
void rig_mmu_table_free_tree(struct rig_mmu_space *space, struct table *t);
/* Store a run of "none" entries; an empty run is allowed. */
void rig_mmu_table_store_none(
        struct rig_mmu_space *space, const struct table *t, uint64_t first, uint64_t count);

/* Stock need[level] tables a level, all or none. */
int rig_mmu_stock_fill(struct rig_mmu_space *space, const uint64_t need[RIG_MMU_MAX_LEVELS]);
struct table *rig_mmu_stock_take(struct rig_mmu_space *space, unsigned level);

/* log2 of the entries in the contiguous block of page entry i. */
unsigned rig_mmu_table_fragment(const struct rig_mmu_space *space, const struct table *t, uint64_t i);

#endif
