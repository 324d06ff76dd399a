/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <errno.h>

#include "bits.h"
#include "segment.h"

static int set_memory(struct rig_ring *ring, void *base, uint64_t units, unsigned unit_shift)
{
	if (!base || !rig_is_pow2(units) || units > (SIZE_MAX >> 1) >> unit_shift)
		return -EINVAL;
	ring->base = base;
	ring->units = units;
	ring->mask = units - 1;
	ring->unit_shift = unit_shift;
	return 0;
}

static void set_position(struct rig_ring *ring, uint64_t position)
{
	ring->head = position;
	ring->published = position;
	ring->filled = position;
}

int rig_ring_init(struct rig_ring *ring, const struct rig_ring_setup *setup)
{
	struct rig_ring made = {.filler = setup->filler, .filler_arg = setup->filler_arg};
	int rc;

	if (!setup->marks || !rig_is_pow2(setup->nmarks) || !rig_is_pow2(setup->unit_bytes))
		return -EINVAL;
	rc = set_memory(&made, setup->base, setup->units, rig_ilog2(setup->unit_bytes));
	if (rc)
		return rc;
	made.marks = (struct rig_marks){.at = setup->marks, .mask = setup->nmarks - 1};
	set_position(&made, setup->start);
	*ring = made;
	return 0;
}

int rig_segment_init(struct rig_segment *segment, uint64_t bytes, struct rig_mark *marks, uint32_t nmarks)
{
	if (!rig_is_pow2(bytes) || bytes > UINT64_MAX >> 1 || !marks || !rig_is_pow2(nmarks))
		return -EINVAL;
	*segment = (struct rig_segment){
	        .bytes = bytes,
	        .mask = bytes - 1,
	        .marks = {.at = marks, .mask = nmarks - 1},
	};
	return 0;
}
