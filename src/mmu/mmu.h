/* SPDX-License-Identifier: MIT */
/*
 * A device's address space: page tables in memory that only the device need be able to read.
 *
 * A space writes tables in one format (mmu_format.h) through the few operations of rig_mmu_memory, and never
 * reads them back: what it knows it keeps in host memory. Every change is planned first, and everything that
 * can fail (overlap, alignment, memory for tables) happens before the first store, so a failed call has
 * changed nothing.
 *
 * A new table is filled before the entry that leads to it is stored, so a device that walks meanwhile sees
 * the old or the new translation. A space does not invalidate the device's translation caches: its user does,
 * after rig_mmu_unmap (and, on devices that cache absence, after rig_mmu_map).
 *
 * Not thread-safe: the caller locks. Nothing blocks but what the operations do.
 */
#ifndef RIG_MMU_H
#define RIG_MMU_H

#include <stdint.h>

#include "bits.h"
#include "le.h"
#include "mmu_format.h"

/* Entries first .. first + count - 1 of a table get value, value + stride, value + 2 * stride ... */
struct rig_mmu_run {
	uint64_t first;
	uint64_t count; /* > 0 */
	uint64_t value;
	uint64_t stride;
};

/* Memory for tables. Called from within the functions below, on their thread; `arg` goes to each. */
struct rig_mmu_memory {
	/* `bytes` (one table's size) aligned to itself, contents undefined; *pa is its address for entries.
	 * 0, or a negative errno, which the caller of rig_mmu_map gets. */
	int (*alloc)(void *arg, uint64_t bytes, uint64_t *pa);
	/* The device can no longer reach it. */
	void (*free)(void *arg, uint64_t pa, uint64_t bytes);
	/* Store entries into the table at `pa`. May not fail; each entry becomes visible whole. */
	void (*store)(void *arg, uint64_t pa, const struct rig_mmu_run *run);
	/* Optional: stores before it are visible to the device before those after it. */
	void (*barrier)(void *arg);
	void *arg;
};

/* The store operation for tables of 8-byte entries that the processor can write: `table` is where the table
 * is mapped. A block at a time, since compilers vectorise only loops whose length they know; no entry is
 * torn. */
static inline void rig_mmu_store64(void *table, const struct rig_mmu_run *run)
{
	enum { BLOCK = 8 };
	le64 *at = (le64 *)table + run->first;
	uint64_t value = run->value, stride = run->stride, left = run->count;

	for (; left >= BLOCK; left -= BLOCK, at += BLOCK, value += BLOCK * stride)
		for (unsigned i = 0; i < BLOCK; i++)
			at[i] = rig_le64(value + i * stride);
	for (; left; left--, at++, value += stride)
		*at = rig_le64(value);
}

struct rig_mmu_space;

/*
 * A space with nothing mapped; allocates and clears the root table. `format` is borrowed until close,
 * `memory` is copied. -EINVAL (the format), -ENOMEM, or the error of alloc.
 */
int rig_mmu_open(
        struct rig_mmu_space **out, const struct rig_mmu_format *format, const struct rig_mmu_memory *memory);

/* Free every table; stores nothing. The device no longer walks them. NULL is allowed. */
void rig_mmu_close(struct rig_mmu_space *space);

/* pa of the root table, constant. */
uint64_t rig_mmu_root(const struct rig_mmu_space *space);

/* Use no page larger than 2^shift bytes in later maps; 0 lifts the limit. A shift below the smallest page
 * means the smallest page. */
void rig_mmu_limit_pages(struct rig_mmu_space *space, unsigned shift);

/*
 * Map [va, va + bytes) to [pa, pa + bytes) with the largest pages that alignment allows.
 * -EINVAL: empty, not multiples of the smallest page, outside the format's addresses, or flags it has not.
 * -EEXIST: something in the range is mapped. -ENOMEM: host memory. Else the error of alloc. A failure has
 * changed nothing.
 */
int rig_mmu_map(struct rig_mmu_space *space, uint64_t va, uint64_t pa, uint64_t bytes, uint64_t flags);

/*
 * Unmap exactly [va, va + bytes), which may span several maps or be a part of one.
 * -EINVAL: as rig_mmu_map, or the range cuts a page (or a contiguous block) in two.
 * -ENOENT: something in the range is not mapped. A failure has changed nothing.
 *
 * The device may use the old translations, and walk tables that became empty, until its caches are
 * invalidated: only then may the caller reuse the memory, and call rig_mmu_reap. If invalidation is never
 * confirmed, the tables stay until rig_mmu_close.
 */
int rig_mmu_unmap(struct rig_mmu_space *space, uint64_t va, uint64_t bytes);

/* Which unmap was the last: to be read under the same lock as the unmap, before the device is invalidated. */
uint64_t rig_mmu_stamp(const struct rig_mmu_space *space);

/* The device was invalidated after the unmap of this stamp: free the tables it and earlier ones emptied. */
void rig_mmu_reap(struct rig_mmu_space *space, uint64_t stamp);

struct rig_mmu_stats {
	uint64_t pages[RIG_MMU_MAX_LEVELS]; /* mapped, by level */
	uint64_t bytes;                     /* mapped */
	uint64_t tables;                    /* in use, the root included */
	uint64_t waiting;                   /* tables emptied and not reaped */
	uint64_t table_bytes;               /* of both */
};

void rig_mmu_stats(const struct rig_mmu_space *space, struct rig_mmu_stats *stats);

#endif
