/* SPDX-License-Identifier: MIT */
/*
 * What a submission takes of each queue, and room. A value's packets are, on each queue it uses:
 *
 *	ORDER v - 1   WAIT ...   { SEMAPHORE ...  part  SIGNAL }...   and at the end SIGNAL, or on the
 *	queue that releases the value SEMAPHORE (one for each other queue) and RELEASE v.
 *
 * The plan counts the most it can be; submit leaves out what turns out not to be needed.
 */
#include <errno.h>
#include <string.h>

#include "device.h"

static void add_units(struct rig_plan *plan, uint32_t q, uint64_t units, uint64_t largest)
{
	plan->units[q] += units;
	if (largest > plan->largest[q])
		plan->largest[q] = largest;
}

/* One SEMAPHORE for each part it follows; one SIGNAL for each part that is followed. */
static int plan_after(struct rig_dev *dev, const struct rig_part *parts, uint32_t index,
        struct rig_part_plan *scratch, struct rig_plan *plan)
{
	const struct rig_part *part = &parts[index];
	uint32_t i, step = dev->board->step_units;

	for (i = 0; i < part->nafter; i++) {
		uint32_t before = part->after[i];

		if (before >= index)
			return rig_error_set(RIG_NEVER,
			        "part %u starts after part %u, which does not come before it", index, before);
		if (!scratch[before].signals)
			add_units(plan, parts[before].queue, step, step);
		scratch[before].signals = true;
	}
	add_units(plan, part->queue, (uint64_t)part->nafter * step, step);
	return RIG_FITS;
}

static int plan_part(struct rig_dev *dev, const struct rig_part *parts, uint32_t index,
        const struct rig_run *run, struct rig_part_plan *scratch, struct rig_plan *plan)
{
	const struct rig_part *part = &parts[index];
	struct rig_part_plan *own = &scratch[index];

	memset(own, 0, sizeof(*own));
	if (part->queue >= dev->facts.nqueues)
		return rig_error_set(
		        RIG_NEVER, "part %u names queue %u of %u", index, part->queue, dev->facts.nqueues);
	if (!part->kind || part->kind > RIG_LAUNCH ||
	        !(dev->facts.queues[part->queue].runs & RIG_RUNS(part->kind)))
		return rig_error_set(RIG_NEVER, "part %u has kind %u, which queue %s does not run", index,
		        part->kind, dev->facts.queues[part->queue].name);
	if (dev->board->check(&dev->port, part, run, &own->need) != RIG_FITS)
		return RIG_NEVER;
	own->segment = (uint32_t)plan->segment;
	plan->segment += (own->need.segment_bytes + RIG_PART_ALIGN - 1) & ~(uint64_t)(RIG_PART_ALIGN - 1);
	if (plan->segment > dev->segment.bytes)
		return rig_error_set(RIG_NEVER,
		        "the parts' parameters exceed the argument segment of %llu bytes",
		        (unsigned long long)dev->segment.bytes);
	plan->launches[part->queue] += part->kind == RIG_LAUNCH;
	plan->used |= 1u << part->queue;
	plan->release = part->queue;
	add_units(plan, part->queue, own->need.units, own->need.units);
	return plan_after(dev, parts, index, scratch, plan);
}

int rig_dev_plan(struct rig_dev *dev, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, struct rig_part_plan *scratch, struct rig_plan *plan)
{
	uint32_t i, q, step = dev->board->step_units;

	memset(plan, 0, sizeof(*plan));
	for (i = 0; i < nparts; i++)
		if (plan_part(dev, parts, i, run, scratch, plan) != RIG_FITS)
			return RIG_NEVER;
	if (!plan->used)
		plan->used = 1;
	for (q = 0; q < dev->facts.nqueues; q++) {
		if (!(plan->used & 1u << q))
			continue;
		/* ORDER, the waits, and the end: SIGNAL elsewhere, SEMAPHOREs and RELEASE on the releasing
		   queue. */
		add_units(plan, q, (2 + (uint64_t)nwaits) * step, step);
		if (q != plan->release)
			add_units(plan, plan->release, step, step);
	}
	return RIG_FITS;
}

static int never_fits(struct rig_dev *dev, uint32_t q, uint64_t units, uint64_t largest)
{
	return rig_error_set(RIG_NEVER,
	        "%llu packets on queue %s, %llu of them in one piece, which may need a gap of as many before "
	        "it: its ring "
	        "grows to %llu",
	        (unsigned long long)units, dev->facts.queues[q].name, (unsigned long long)largest,
	        (unsigned long long)dev->facts.ring_units_max);
}

/* In the ring as it is, or in the larger one that grow made, to which submit goes by a packet in the one as
   it is. */
static int queue_room(struct rig_dev *dev, uint32_t q, uint64_t units, uint64_t largest)
{
	struct rig_dev_queue *queue = &dev->queues[q];
	struct rig_growth *next = atomic_load_explicit(&queue->next, memory_order_acquire);
	enum rig_ring_room room;

	if (next && rig_ring_free(&queue->ring) < dev->board->step_units)
		room = RIG_RING_LATER;
	else if (next)
		room = rig_dev_ring_holds(next->units, units, largest) ? RIG_RING_FITS : RIG_RING_NEVER;
	else
		room = rig_ring_room(&queue->ring, units, largest);
	if (room == RIG_RING_NEVER)
		return rig_dev_ring_holds(dev->facts.ring_units_max, units, largest)
		               ? RIG_GROW
		               : never_fits(dev, q, units, largest);
	return room == RIG_RING_FITS ? RIG_FITS : RIG_LATER;
}

/* The worst of the queues' answers and the segment's. timing NULL: of the submission alone. */
static int plan_room(struct rig_dev *dev, const struct rig_plan *plan, const struct rig_timing *timing)
{
	int room = RIG_FITS;
	uint32_t q;

	if (plan->segment && rig_segment_room(&dev->segment, plan->segment, RIG_PART_ALIGN) != RIG_RING_FITS)
		room = RIG_LATER;
	for (q = 0; q < dev->facts.nqueues; q++) {
		int own = RIG_FITS;

		if (plan->used & 1u << q)
			own = queue_room(
			        dev, q, plan->units[q] + (timing ? timing->units[q] : 0), plan->largest[q]);
		if (own > room)
			room = own;
	}
	return room;
}

_Static_assert(RIG_FITS < RIG_LATER && RIG_LATER < RIG_GROW && RIG_GROW < RIG_NEVER,
        "the worst answer is the largest");

bool rig_dev_fits_timed(struct rig_dev *dev, const struct rig_plan *plan, const struct rig_timing *timing)
{
	return plan_room(dev, plan, timing) == RIG_FITS && rig_dev_times_room(dev, timing) == RIG_FITS;
}

/* The most that stamps and counters add to queue `q`. */
static uint64_t most_stamps(const struct rig_dev *dev, const struct rig_plan *plan, uint32_t q)
{
	return (2 + (uint64_t)plan->launches[q]) * dev->board->step_units;
}

/* Whether the rings are as large as the submission needs if it is timed. */
static bool holds_stamps(struct rig_dev *dev, const struct rig_plan *plan)
{
	uint32_t q;

	for (q = 0; q < dev->facts.nqueues; q++)
		if (plan->used & 1u << q &&
		        !rig_dev_ring_holds(dev->queues[q].ring.units,
		                plan->units[q] + most_stamps(dev, plan, q), plan->largest[q]))
			return false;
	return true;
}

/* What grow is to make, of each queue. False: for stamps there was no memory. */
static bool ask_growth(struct rig_dev *dev, const struct rig_plan *plan, const struct rig_timing *timing)
{
	uint64_t units[RIG_BOARD_QUEUES] = {0};
	uint32_t q;

	for (q = 0; q < dev->facts.nqueues; q++) {
		uint64_t refused = atomic_load_explicit(&dev->queues[q].refused, memory_order_relaxed);

		if (!(plan->used & 1u << q))
			continue;
		units[q] = rig_dev_grown_units(
		        dev, plan->units[q] + (timing ? timing->units[q] : 0), plan->largest[q]);
		if (timing && refused && units[q] >= refused)
			return false;
	}
	for (q = 0; q < dev->facts.nqueues; q++)
		atomic_store_explicit(&dev->queues[q].asked, units[q] | (timing ? RIG_FOR_STAMPS : 0),
		        memory_order_relaxed);
	return true;
}

/* Of a submission for which `room` was found without stamps: rings are grown for them whether or not values
   are timed now, because room is not told. While values are timed there is room for their stamps too, unless
   these alone are what exceeds the queues. */
static int timed_room(struct rig_dev *dev, int room)
{
	struct rig_timing timing;
	int timed;

	rig_dev_times_plan(dev, &dev->plan, &timing);
	timed = plan_room(dev, &dev->plan, &timing);
	if (timed == RIG_GROW && ask_growth(dev, &dev->plan, &timing))
		return RIG_GROW;
	if (!dev->times.on || timed > RIG_LATER)
		return room;
	return timed == RIG_FITS ? rig_dev_times_room(dev, &timing) : timed;
}

static int room_now(struct rig_dev *dev)
{
	int room = plan_room(dev, &dev->plan, NULL);

	if (room == RIG_GROW)
		ask_growth(dev, &dev->plan, NULL);
	if (room < RIG_GROW && dev->times.open && (dev->times.on || !holds_stamps(dev, &dev->plan)))
		return timed_room(dev, room);
	return room;
}

int rig_dev_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	struct rig_dev *dev = self;
	int room;

	if (rig_dev_plan(dev, parts, nparts, nwaits, run, scratch, &dev->plan) != RIG_FITS)
		return RIG_NEVER;
	room = room_now(dev);
	if (room != RIG_LATER)
		return room;
	rig_dev_reclaim(dev);
	return room_now(dev);
}
