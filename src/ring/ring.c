/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <errno.h>

#include "bits.h"

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

int rig_ring_rebase(struct rig_ring *ring, void *base, uint64_t units, uint64_t start)
{
	int rc;

	if (!rig_ring_empty(ring))
		return -EBUSY;
	rc = set_memory(ring, base, units, ring->unit_shift);
	if (rc)
		return rc;
	/* Marks that are left belong to values that used nothing of this ring. */
	ring->marks.count = 0;
	set_position(ring, start);
	return 0;
}

int rig_ring_reclaim_position(struct rig_ring *ring, uint64_t raw, unsigned bits)
{
	uint64_t used = (raw - ring->head) & rig_mask64(bits);

	if (used > ring->published - ring->head)
		return -EPROTO;
	ring->head += used;
	return 0;
}
