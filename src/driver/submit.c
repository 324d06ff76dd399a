/* SPDX-License-Identifier: MIT */
/* Places a submission's packets; plan.c says which and in what order. */
#include <errno.h>
#include <string.h>

#include "device.h"

struct submission {
	struct rig_dev *dev;
	const struct rig_part *parts;
	struct rig_part_plan *scratch;
	const struct rig_wait *waits;
	uint32_t nwaits;
	const struct rig_run *run;
	const struct rig_plan *plan;
	uint64_t value;
	uint64_t segment;          /* offset of the submission's piece */
	struct rig_timing *timing; /* NULL: the value is not timed */
};

static void put(struct rig_dev *dev, uint32_t q, const struct rig_step *step)
{
	dev->board->step(&dev->port, rig_ring_reserve(&dev->queues[q].ring, dev->board->step_units), step);
}

static void store_times(struct rig_dev *dev, uint32_t q, enum rig_step_kind kind, uint64_t address)
{
	const struct rig_step step = {.kind = kind, .address = address};

	put(dev, q, &step);
}

static void signal_queue(struct rig_dev *dev, uint32_t q)
{
	const struct rig_step step = {.kind = RIG_STEP_SIGNAL, .index = q, .value = ++dev->queues[q].signals};

	put(dev, q, &step);
}

static void await_signal(struct rig_dev *dev, uint32_t q, uint32_t other, uint64_t signal)
{
	const struct rig_step step = {.kind = RIG_STEP_SEMAPHORE, .index = other, .value = signal};

	put(dev, q, &step);
}

/* Device order, then the producers' values. A queue that released the previous value is in order by
   itself. */
static void begin_queue(const struct submission *s, uint32_t q)
{
	struct rig_dev *dev = s->dev;
	struct rig_step step = {.kind = RIG_STEP_ORDER, .value = s->value - 1};
	uint32_t i;

	rig_dev_switch(dev, q, s->value);
	if (q != dev->last_queue && rig_word_load(dev->word) < s->value - 1)
		put(dev, q, &step);
	step.kind = RIG_STEP_WAIT;
	for (i = 0; i < s->nwaits; i++) {
		step.address = rig_dev_word_address(dev, s->waits[i].word);
		step.value = s->waits[i].value;
		put(dev, q, &step);
	}
	if (s->timing)
		store_times(dev, q, RIG_STEP_STAMP, rig_dev_times_start(s->timing));
}

static int place_part(const struct submission *s, uint32_t index)
{
	struct rig_dev *dev = s->dev;
	const struct rig_part *part = &s->parts[index];
	struct rig_part_plan *own = &s->scratch[index];
	struct rig_place place = {.value = s->value};
	uint64_t offset = s->segment + own->segment;
	uint32_t i;

	for (i = 0; i < part->nafter; i++) {
		uint32_t before = part->after[i];

		await_signal(dev, part->queue, s->parts[before].queue, s->scratch[before].signal);
	}
	place.units = rig_ring_reserve(&dev->queues[part->queue].ring, own->need.units);
	place.segment = dev->segment_memory.host + offset;
	place.segment_address = dev->segment_memory.va + offset;
	if (dev->board->part(&dev->port, part, s->run, &own->need, &place))
		return -EIO;
	if (s->timing && s->timing->launches && part->kind == RIG_LAUNCH)
		store_times(dev, part->queue, RIG_STEP_COUNTERS, rig_dev_times_launch(dev, s->timing));
	if (own->signals) {
		signal_queue(dev, part->queue);
		own->signal = dev->queues[part->queue].signals;
	}
	return 0;
}

static void end_value(const struct submission *s)
{
	struct rig_dev *dev = s->dev;
	struct rig_step release = {
	        .kind = RIG_STEP_RELEASE, .address = dev->release_address, .value = s->value};
	uint32_t q;

	for (q = 0; q < dev->facts.nqueues; q++) {
		if (q == s->plan->release || !(s->plan->used & 1u << q))
			continue;
		signal_queue(dev, q);
		await_signal(dev, s->plan->release, q, dev->queues[q].signals);
	}
	if (s->timing)
		store_times(dev, s->plan->release, RIG_STEP_STAMP, rig_dev_times_end(s->timing));
	put(dev, s->plan->release, &release);
	dev->last_queue = s->plan->release;
}

static void publish(const struct submission *s)
{
	struct rig_dev *dev = s->dev;
	uint64_t position[RIG_BOARD_QUEUES];
	uint32_t q;

	for (q = 0; q < dev->facts.nqueues; q++) {
		struct rig_dev_queue *queue = &dev->queues[q];

		if (!(s->plan->used & 1u << q))
			continue;
		position[q] = rig_ring_publish(&queue->ring);
		rig_ring_mark(&queue->ring, s->value);
	}
	if (s->plan->segment)
		rig_segment_mark(&dev->segment, s->value);
	/* The value before the doorbell, because progress refuses values that were never submitted. */
	atomic_store_explicit(&dev->submitted, s->value, memory_order_release);
	for (q = 0; q < dev->facts.nqueues; q++)
		if (s->plan->used & 1u << q)
			dev->board->ring(&dev->port, q, position[q]);
}

static int encode(struct submission *s, uint32_t nparts)
{
	uint32_t q, i;

	if (s->plan->segment &&
	        !rig_segment_take(&s->dev->segment, s->plan->segment, RIG_PART_ALIGN, &s->segment))
		return -ENOSPC;
	for (q = 0; q < s->dev->facts.nqueues; q++)
		if (s->plan->used & 1u << q)
			begin_queue(s, q);
	for (i = 0; i < nparts; i++)
		if (place_part(s, i))
			return -EIO;
	end_value(s);
	return 0;
}

/* A value whose stamps find no room is not timed: room thought of them only if the value before was timed
   too. */
static void start_timing(struct submission *s, struct rig_timing *timing, struct rig_times *times)
{
	struct rig_dev *dev = s->dev;

	*times = (struct rig_times){0, 0};
	if (!dev->times.open)
		return;
	dev->times.on = true;
	rig_dev_times_plan(dev, s->plan, timing);
	if (rig_dev_fits_timed(dev, s->plan, timing) && rig_dev_times_begin(dev, timing, s->value, times))
		s->timing = timing;
}

/* The value counts as submitted all the same, so that stop raises the word to it. */
static int fail(struct rig_dev *dev, uint64_t value, const char **failure)
{
	atomic_store_explicit(&dev->submitted, value, memory_order_release);
	*failure = dev->progress.fault;
	return RIG_FAILED;
}

int rig_dev_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	struct rig_dev *dev = self;
	struct submission s = {.dev = dev,
	        .parts = parts,
	        .scratch = scratch,
	        .waits = waits,
	        .nwaits = nwaits,
	        .run = run,
	        .plan = &dev->plan,
	        .value = value};
	struct rig_timing timing;
	uint32_t q;

	dev->times.on = false;
	if (times)
		start_timing(&s, &timing, times);
	if (rig_dev_faulted(dev))
		return fail(dev, value, failure);
	if (!encode(&s, nparts)) {
		publish(&s);
		return RIG_COMMITTED;
	}
	for (q = 0; q < dev->facts.nqueues; q++)
		rig_ring_drop(&dev->queues[q].ring);
	rig_dev_set_fault(dev, "submission of value %llu failed: %s", (unsigned long long)value, rig_error());
	return fail(dev, value, failure);
}

int rig_dev_commit(void *self, uint64_t value, const char **failure)
{
	/* submit always commits. */
	(void)self;
	(void)value;
	(void)failure;
	return RIG_OK;
}
