/* SPDX-License-Identifier: MIT */
#ifndef RIG_REGION_H
#define RIG_REGION_H

/*
 * A region of a taken function with those of its areas that are mapped here. Private to src/vfio.
 *
 * Mapped areas stay where they are from rig_region_map to rig_region_unmap; rig_region_blank replaces what is
 * behind them in place, so pointers handed out stay valid. Finding may run beside blanking; the rest is for
 * one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vfio_ops.h"

struct rig_log;

struct rig_region_area {
	uint64_t offset, bytes;
	unsigned char *at;
	bool writable;
};

struct rig_region {
	struct rig_vfio_region info;
	unsigned mapped;
	struct rig_region_area area[RIG_VFIO_AREAS]; /* sorted */
};

/* Maps what can be mapped of region->info. An area that cannot is left to the transport, and the log says so:
 * slower, not wrong. Not inherited by children of fork. */
void rig_region_map(struct rig_region *region, const struct rig_log *log);
void rig_region_unmap(struct rig_region *region);

/* Puts memory of all ones behind every mapped area: reads are all ones, writes reach nobody. Where even that
 * finds no memory, the old mapping stays. */
void rig_region_blank(struct rig_region *region);

/* The area that holds off, NULL if off is in none; *run gets how far from off on the answer holds, at most
 * len. */
const struct rig_region_area *rig_region_find(
        const struct rig_region *region, uint64_t off, uint64_t len, uint64_t *run);

#endif
