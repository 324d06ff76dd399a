/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "mmu_table.h"

int rig_mmu_open(
        struct rig_mmu_space **out, const struct rig_mmu_format *format, const struct rig_mmu_memory *memory)
{
	struct rig_mmu_space *space;
	int rc;

	rc = rig_mmu_format_check(format);
	if (rc)
		return rc;
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	space->format = format;
	space->memory = *memory;
	space->waiting_end = &space->waiting;
	rig_mmu_limit_pages(space, 0);
	rc = rig_mmu_table_new(space, 0, &space->root);
	if (rc) {
		free(space);
		return rc;
	}
	space->root->linked = true;
	space->stats.tables = 1;
	rig_mmu_table_store_none(space, space->root, 0, entries_of(level_of(space, 0)));
	*out = space;
	return 0;
}

void rig_mmu_close(struct rig_mmu_space *space)
{
	if (!space)
		return;
	rig_mmu_reap(space, space->stamp);
	rig_mmu_table_free_tree(space, space->root);
	free(space);
}

uint64_t rig_mmu_root(const struct rig_mmu_space *space)
{
	return space->root->pa;
}

void rig_mmu_limit_pages(struct rig_mmu_space *space, unsigned shift)
{
	unsigned least = level_of(space, space->format->levels - 1)->shift;

	space->limit = shift ? (unsigned)rig_max_u64(shift, least) : RIG_BITS_U64;
}

void rig_mmu_stats(const struct rig_mmu_space *space, struct rig_mmu_stats *stats)
{
	*stats = space->stats;
}
