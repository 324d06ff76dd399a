/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "bits.h"
#include "mmu_format.h"

static int finish(const struct rig_mmu_format *f, const struct rig_mmu_entry *entry, uint64_t offset,
        struct rig_mmu_walked *walked)
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

int rig_mmu_walk(const struct rig_mmu_format *f, uint64_t root, uint64_t va, rig_mmu_load *load, void *arg,
        struct rig_mmu_walked *walked)
{
	struct rig_mmu_entry entry = {.pa = root};
	uint64_t offset;
	int rc;

	*walked = (struct rig_mmu_walked){0};
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
			return finish(f, &entry, offset, walked);
		if (entry.kind != RIG_MMU_TABLE)
			return entry.kind == RIG_MMU_NONE ? -ENOENT : -EILSEQ;
	}
	return -EILSEQ; /* a table below the last level */
}
