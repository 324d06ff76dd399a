/* SPDX-License-Identifier: MIT */
/* The rings and the argument segment: made at boot, grown on request. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "device.h"

/* No-ops fill a gap before a packet that would straddle the ring's end: all of it, because the board would
   run again what an earlier lap left there. */
static void fill_gap(void *arg, void *at, uint64_t units)
{
	struct rig_dev *dev = arg;
	struct rig_step nop = {.kind = RIG_STEP_NOP};
	uint64_t done;

	for (done = 0; done < units; done += nop.value) {
		nop.value = rig_min_u64(dev->board->step_units, units - done);
		dev->board->step(&dev->port, (uint8_t *)at + done * dev->facts.unit_bytes, &nop);
	}
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
	atomic_store_explicit(&queue->units, units, memory_order_relaxed);
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

static void retire(struct rig_dev *dev, struct rig_growth *g)
{
	g->retired = atomic_load_explicit(&dev->retired, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&dev->retired, &g->retired, g))
		;
}

/* Frees the ring of a growth that no submit took. */
static void drop_growth(struct rig_dev *dev, struct rig_growth *g)
{
	if (!g)
		return;
	rig_dev_shared_free(dev, &g->memory);
	retire(dev, g);
}

void rig_dev_queues_close(struct rig_dev *dev)
{
	struct rig_growth *g;
	uint32_t q;

	for (q = 0; q < RIG_BOARD_QUEUES; q++) {
		rig_dev_shared_free(dev, &dev->queues[q].memory);
		drop_growth(dev, atomic_exchange(&dev->queues[q].next, NULL));
		free(dev->queues[q].marks);
	}
	g = atomic_load(&dev->retired);
	while (g) {
		struct rig_growth *next = g->retired;

		rig_dev_shared_free(dev, &g->memory);
		free(g);
		g = next;
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

void rig_dev_switch(struct rig_dev *dev, uint32_t q, uint64_t value)
{
	struct rig_dev_queue *queue = &dev->queues[q];
	struct rig_growth *g = atomic_exchange_explicit(&queue->next, NULL, memory_order_acq_rel);
	struct rig_step step = {.kind = RIG_STEP_RING};
	struct rig_shared replaced;
	uint64_t start;

	if (!g)
		return;
	step.address = g->memory.step_address;
	step.value = g->units;
	dev->board->step(&dev->port, rig_ring_reserve(&queue->ring, dev->board->step_units), &step);
	start = rig_ring_publish(&queue->ring);
	replaced = queue->memory;
	queue->memory = g->memory;
	init_ring(dev, &queue->ring, &queue->memory, g->units, queue->marks, start);
	atomic_store_explicit(&queue->units, g->units, memory_order_relaxed);
	g->memory = replaced;
	g->until = value;
	/* Last, because from here on grow may free the replaced ring beside us. */
	retire(dev, g);
}

uint64_t rig_dev_grown_units(const struct rig_dev *dev, uint64_t units, uint64_t largest)
{
	uint64_t size = dev->facts.ring_units;

	while (!rig_dev_ring_holds(size, units, largest)) {
		if (size >= dev->facts.ring_units_max)
			return 0;
		size *= 2;
	}
	return size;
}

/* The rings that the device has left. Any number may be on their way out: submit may move a queue to a ring
   that was made before the one before it was left. */
static void free_left(struct rig_dev *dev)
{
	struct rig_growth *g = atomic_load_explicit(&dev->retired, memory_order_acquire);
	uint64_t completed = rig_word_load(dev->word);

	for (; g; g = g->retired)
		if (g->memory.bytes && g->until <= completed)
			rig_dev_shared_free(dev, &g->memory);
}

/* Units of the ring that waits for the queue; 0: none does. Growths are kept until close, so that this may
   look. */
static uint64_t next_units(struct rig_dev_queue *queue)
{
	struct rig_growth *g = atomic_load_explicit(&queue->next, memory_order_acquire);

	return g ? g->units : 0;
}

static int grow_queue(struct rig_dev *dev, struct rig_dev_queue *queue, uint64_t *short_bytes)
{
	uint64_t asked = atomic_load_explicit(&queue->asked, memory_order_relaxed);
	uint64_t size = asked & ~RIG_FOR_STAMPS;
	struct rig_growth *g;

	if (size <= next_units(queue) || size <= atomic_load_explicit(&queue->units, memory_order_relaxed))
		return RIG_GROWN;
	*short_bytes = size * dev->facts.unit_bytes;
	g = calloc(1, sizeof(*g));
	if (!g || rig_dev_shared_alloc(dev, *short_bytes, false, &g->memory)) {
		free(g);
		if (!(asked & RIG_FOR_STAMPS))
			return RIG_SHORT;
		/* The work runs without. */
		atomic_store_explicit(&queue->refused, size, memory_order_relaxed);
		return RIG_GROWN;
	}
	g->units = size;
	drop_growth(dev, atomic_exchange_explicit(&queue->next, g, memory_order_acq_rel));
	return RIG_GROWN;
}

/* For what the last room asked, which knew the run: how many units a part takes may depend on it. Where
   another submission's room came between, the caller's next one asks again. */
int rig_dev_grow(void *device, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        uint64_t *short_bytes, const char **fault)
{
	struct rig_dev *dev = device;
	int answer = RIG_GROWN;
	uint32_t q;

	(void)parts;
	(void)nparts;
	(void)nwaits;
	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	pthread_mutex_lock(&dev->lock);
	free_left(dev);
	for (q = 0; answer == RIG_GROWN && q < dev->facts.nqueues; q++)
		answer = grow_queue(dev, &dev->queues[q], short_bytes);
	pthread_mutex_unlock(&dev->lock);
	return answer;
}
