/* SPDX-License-Identifier: MIT */
/* The rings and the argument segment: made at boot, grown on request. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

/* A no-op fills a gap before a packet that would straddle the ring's end. */
static void fill_gap(void *arg, void *at, uint64_t units)
{
	struct rig_dev *dev = arg;
	const struct rig_step nop = {.kind = RIG_STEP_NOP};
	uint64_t i, step_bytes = (uint64_t)dev->facts.unit_bytes * dev->board->step_units;

	for (i = 0; i < units / dev->board->step_units; i++)
		dev->board->step(&dev->port, (uint8_t *)at + i * step_bytes, &nop);
}

static int init_ring(struct rig_dev *dev, struct rig_ring *ring, const struct rig_shared *memory,
        uint64_t units, struct rig_mark *marks, uint64_t start)
{
	const struct rig_ring_setup setup = {
	        .base = memory->host,
	        .units = units,
	        .unit_bytes = dev->facts.unit_bytes,
	        .nmarks = RIG_RING_MARKS,
	        .marks = marks,
	        .start = start,
	        .filler = fill_gap,
	        .filler_arg = dev,
	};

	return rig_ring_init(ring, &setup);
}

static int open_queue(struct rig_dev *dev, uint32_t q)
{
	struct rig_dev_queue *queue = &dev->queues[q];
	uint64_t units = dev->facts.ring_units;
	int err;

	queue->marks = calloc(RIG_RING_MARKS, sizeof(*queue->marks));
	if (!queue->marks)
		return rig_error_set(-ENOMEM, "out of host memory for queue %s", dev->facts.queues[q].name);
	err = rig_dev_shared_alloc(dev, units * dev->facts.unit_bytes, false, &queue->memory);
	if (!err)
		err = init_ring(dev, &queue->ring, &queue->memory, units, queue->marks, 0);
	if (err)
		return rig_error_set(err, "a ring of %" PRIu64 " units for queue %s (error %d)", units,
		        dev->facts.queues[q].name, err);
	return dev->board->enable(&dev->port, q, queue->memory.step_address, units);
}

static int open_segment(struct rig_dev *dev)
{
	int err;

	dev->segment_marks = calloc(RIG_RING_MARKS, sizeof(*dev->segment_marks));
	if (!dev->segment_marks)
		return rig_error_set(-ENOMEM, "out of host memory for the argument segment");
	err = rig_dev_shared_alloc(dev, dev->facts.segment_bytes, true, &dev->segment_memory);
	if (!err)
		err = rig_segment_init(
		        &dev->segment, dev->facts.segment_bytes, dev->segment_marks, RIG_RING_MARKS);
	return err ? rig_error_set(err, "an argument segment of %" PRIu64 " bytes (error %d)",
	                     dev->facts.segment_bytes, err)
	           : 0;
}

int rig_dev_queues_open(struct rig_dev *dev)
{
	uint32_t q;
	int err = dev->facts.segment_bytes ? open_segment(dev) : 0;

	for (q = 0; !err && q < dev->facts.nqueues; q++)
		err = open_queue(dev, q);
	return err;
}

void rig_dev_queues_close(struct rig_dev *dev)
{
	uint32_t q;

	for (q = 0; q < RIG_BOARD_QUEUES; q++) {
		rig_dev_shared_free(dev, &dev->queues[q].memory);
		rig_dev_shared_free(dev, &dev->queues[q].next);
		rig_dev_shared_free(dev, &dev->queues[q].old);
		free(dev->queues[q].marks);
	}
	rig_dev_shared_free(dev, &dev->segment_memory);
	free(dev->segment_marks);
}

void rig_dev_reclaim(struct rig_dev *dev)
{
	uint64_t completed = rig_dev_progress(dev);
	uint32_t q;

	for (q = 0; q < dev->facts.nqueues; q++)
		rig_ring_reclaim(&dev->queues[q].ring, completed);
	rig_segment_reclaim(&dev->segment, completed);
}

bool rig_dev_switch(struct rig_dev *dev, uint32_t q)
{
	struct rig_dev_queue *queue = &dev->queues[q];
	uint64_t start, units = atomic_load_explicit(&queue->next_units, memory_order_acquire);
	struct rig_step step = {.kind = RIG_STEP_RING, .address = queue->next.step_address, .value = units};
	void *at;

	if (!units)
		return true;
	at = rig_ring_reserve(&queue->ring, dev->board->step_units);
	if (!at)
		return false;
	dev->board->step(&dev->port, at, &step);
	start = rig_ring_publish(&queue->ring);
	/* Not rung: the device reads it with the queue's next packets, whose value sets old_until. */
	queue->old = queue->memory;
	queue->memory = queue->next;
	init_ring(dev, &queue->ring, &queue->memory, units, queue->marks, start);
	memset(&queue->next, 0, sizeof(queue->next));
	atomic_store_explicit(&queue->old_until, 0, memory_order_relaxed);
	atomic_store_explicit(&queue->next_units, 0, memory_order_release);
	return true;
}

/* Units of a ring that holds the packets; 0: none may. */
static uint64_t grown_units(const struct rig_dev *dev, uint64_t units, uint64_t largest)
{
	uint64_t size = dev->facts.ring_units;

	while (!rig_dev_ring_holds(size, units, largest)) {
		if (size >= dev->facts.ring_units_max)
			return 0;
		size *= 2;
	}
	return size;
}

/* The ring before the present one, once the device has left it. */
static bool free_old(struct rig_dev *dev, struct rig_dev_queue *queue)
{
	uint64_t until = atomic_load_explicit(&queue->old_until, memory_order_relaxed);

	if (!queue->old.bytes)
		return true;
	if (!until || until > rig_word_load(dev->word))
		return false;
	rig_dev_shared_free(dev, &queue->old);
	return true;
}

/* Hot calls leave `next` and `old` alone while next_units is 0, and this does while it is not. */
static int grow_queue(
        struct rig_dev *dev, uint32_t q, uint64_t units, uint64_t largest, uint64_t *short_bytes)
{
	struct rig_dev_queue *queue = &dev->queues[q];
	uint64_t size = grown_units(dev, units, largest);

	if (atomic_load_explicit(&queue->next_units, memory_order_acquire))
		return 0;
	if (!size || size <= queue->ring.units)
		return 0;
	*short_bytes = size * dev->facts.unit_bytes;
	if (!free_old(dev, queue) || rig_dev_shared_alloc(dev, *short_bytes, false, &queue->next))
		return -ENOMEM;
	atomic_store_explicit(&queue->next_units, size, memory_order_release);
	return 0;
}

int rig_dev_grow(void *device, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        uint64_t *short_bytes, const char **fault)
{
	struct rig_dev *dev = device;
	struct rig_part_plan *scratch;
	struct rig_plan plan;
	int err = 0;
	uint32_t q;

	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	scratch = calloc(nparts ? nparts : 1, sizeof(*scratch));
	if (!scratch)
		return rig_error_set(-ENOMEM, "out of host memory");
	pthread_mutex_lock(&dev->lock);
	if (rig_dev_plan(dev, parts, nparts, nwaits, NULL, scratch, &plan) == RIG_NEVER)
		err = rig_error_set(-EINVAL, "grow for parts that room answers RIG_NEVER");
	for (q = 0; !err && q < dev->facts.nqueues; q++)
		if (plan.used & 1u << q)
			err = grow_queue(dev, q, plan.units[q], plan.largest[q], short_bytes);
	pthread_mutex_unlock(&dev->lock);
	free(scratch);
	if (err == -ENOMEM)
		return RIG_SHORT;
	return err ? err : RIG_GROWN;
}
