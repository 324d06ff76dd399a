/* SPDX-License-Identifier: MIT */
#ifndef TEST_MMU_WALK_H
#define TEST_MMU_WALK_H

/* A walker that reads page tables as a device does: the model that tests hold the tables against. */
#include <errno.h>

#include "bits.h"
#include "mmu_format.h"

/* Reads one table entry (format->entry_bytes, host-endian result) at `pa`. 0 or a negative errno. */
typedef int mmu_load(void *arg, uint64_t pa, uint64_t *entry);

/* What a walk saw, also when it failed. */
struct mmu_walked {
	unsigned level;                     /* of the last entry read */
	unsigned reads;                     /* entries read: raw[0 .. reads) are valid */
	uint64_t raw[RIG_MMU_MAX_LEVELS];   /* as loaded */
	uint64_t table[RIG_MMU_MAX_LEVELS]; /* pa of each table */
	unsigned page_shift;                /* success: log2 of the page's bytes */
	unsigned fragment;                  /* success */
	uint64_t pa;                        /* success: of `va` itself */
	uint64_t flags;                     /* success */
};

static inline int walk_finish(const struct rig_mmu_format *f, const struct rig_mmu_entry *entry,
        uint64_t offset, struct mmu_walked *walked)
{
	const struct rig_mmu_level *level = &f->level[walked->level];
	uint64_t page = RIG_BIT64(level->shift);

	if (!level->leaf || !rig_is_aligned(entry->pa, page))
		return -EILSEQ;
	walked->page_shift = level->shift;
	walked->fragment = entry->fragment;
	walked->pa = entry->pa | (offset & (page - 1));
	walked->flags = entry->flags;
	return 0;
}

/*
 * Translate `va` by reading the tables from `root` down. The tables may be wrong: at most one load a level,
 * and nothing is believed beyond what the format decodes. -EINVAL (va outside the format), -ENOENT (nothing
 * mapped; `level` says where it ended), -EILSEQ (an entry the device would reject: bad bits, a page where
 * none may be, a page or table that is not aligned), or the error of `load`.
 */
static inline int mmu_walk(const struct rig_mmu_format *f, uint64_t root, uint64_t va, mmu_load *load,
        void *arg, struct mmu_walked *walked)
{
	struct rig_mmu_entry entry = {.pa = root};
	uint64_t offset;
	int rc;

	*walked = (struct mmu_walked){0};
	rc = rig_mmu_offset(f, va, 1, &offset);
	if (rc)
		return rc;
	for (unsigned n = 0; n < f->levels; n++) {
		uint64_t index = (offset >> f->level[n].shift) & rig_mask64(f->level[n].bits);

		if (!rig_is_aligned(entry.pa, rig_mmu_table_bytes(f, n)))
			return -EILSEQ;
		walked->level = n;
		walked->table[n] = entry.pa;
		rc = load(arg, entry.pa + index * f->entry_bytes, &walked->raw[n]);
		if (rc)
			return rc;
		walked->reads++;
		entry = f->decode(walked->raw[n], n);
		if (entry.kind == RIG_MMU_LEAF)
			return walk_finish(f, &entry, offset, walked);
		if (entry.kind != RIG_MMU_TABLE)
			return entry.kind == RIG_MMU_NONE ? -ENOENT : -EILSEQ;
	}
	return -EILSEQ; /* a table below the last level */
}

#endif
