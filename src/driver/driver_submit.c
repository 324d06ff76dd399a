/* SPDX-License-Identifier: MIT */
/*
 * From parts to a doorbell: what a submission takes of each queue, whether that fits, and its packets. A
 * value's packets are, on each queue it uses:
 *
 *	ORDER v - 1   WAIT ...   { SEMAPHORE ...  part  SIGNAL }...   and at the end SIGNAL, or on the
 *	queue that releases the value SEMAPHORE (one for each other queue) and RELEASE v.
 *
 * The plan counts the most it can be; submit leaves out what turns out not to be needed.
 */
#include <errno.h>
#include <string.h>

#include "bits.h"
#include "device.h"

/* Takes the lowest queue out of the bits. */
static inline uint32_t next_queue(uint32_t *bits)
{
	uint32_t q = (uint32_t)__builtin_ctz(*bits);

	*bits &= *bits - 1;
	return q;
}

/* ---- What it takes ---- */

static int refuse(const struct rig_dev *dev, const struct rig_part *part, uint32_t index)
{
	if (part->queue >= dev->facts.nqueues)
		return rig_error_set(
		        RIG_NEVER, "part %u names queue %u of %u", index, part->queue, dev->facts.nqueues);
	return rig_error_set(RIG_NEVER, "part %u has kind %u, which queue %s does not run", index, part->kind,
	        dev->facts.queues[part->queue].name);
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
			plan->units[parts[before].queue] += step;
		scratch[before].signals = true;
	}
	plan->units[part->queue] += (uint64_t)part->nafter * step;
	return RIG_FITS;
}

static int plan_part(struct rig_dev *dev, const struct rig_part *parts, uint32_t index,
        const struct rig_run *run, struct rig_part_plan *scratch, struct rig_plan *plan)
{
	const struct rig_part *part = &parts[index];
	struct rig_part_plan *own = &scratch[index];
	const uint32_t q = part->queue;

	memset(own, 0, sizeof(*own));
	if (q >= dev->facts.nqueues || !part->kind || part->kind > RIG_LAUNCH ||
	        !(dev->facts.queues[q].runs & RIG_RUNS(part->kind)))
		return refuse(dev, part, index);
	if (dev->board->check(&dev->port, part, run, &own->need) != RIG_FITS)
		return RIG_NEVER;
	own->segment = (uint32_t)plan->segment;
	plan->segment += (own->need.segment_bytes + RIG_PART_ALIGN - 1) & ~(uint64_t)(RIG_PART_ALIGN - 1);
	if (plan->segment > dev->segment.bytes)
		return rig_error_set(RIG_NEVER,
		        "the parts' parameters exceed the argument segment of %llu bytes",
		        (unsigned long long)dev->segment.bytes);
	plan->used |= 1u << q;
	plan->release = q;
	plan->launches[q] += part->kind == RIG_LAUNCH;
	plan->units[q] += own->need.units;
	plan->largest[q] = rig_max_u64(plan->largest[q], own->need.units);
	return part->nafter ? plan_after(dev, parts, index, scratch, plan) : RIG_FITS;
}

/* ---- Room ---- */

_Static_assert((int)RIG_RING_FITS == RIG_FITS && (int)RIG_RING_LATER == RIG_LATER &&
                       (int)RIG_RING_NEVER == RIG_GROW && RIG_GROW < RIG_NEVER,
        "what never fits a ring asks for a larger one, and the worst answer is the largest");

/* In the larger ring that grow made, to which submit goes by a packet in the one as it is. */
static int next_room(struct rig_dev *dev, uint32_t q, uint64_t units)
{
	struct rig_dev_queue *queue = &dev->queues[q];
	const struct rig_growth *next = atomic_load_explicit(&queue->next, memory_order_acquire);

	if (rig_ring_free(&queue->ring) < dev->board->step_units)
		return RIG_LATER;
	return next && rig_dev_ring_holds(next->units, units, dev->plan.largest[q]) ? RIG_FITS : RIG_GROW;
}

static int never_fits(struct rig_dev *dev, uint32_t q, uint64_t units)
{
	return rig_error_set(RIG_NEVER,
	        "%llu packets on queue %s, %llu of them in one piece, which may need a gap of as many before "
	        "it: its ring grows to %llu",
	        (unsigned long long)units, dev->facts.queues[q].name,
	        (unsigned long long)dev->plan.largest[q], (unsigned long long)dev->facts.ring_units_max);
}

/* The worst of the queues' answers and the segment's. timing NULL: of the submission alone. */
static int plan_room(struct rig_dev *dev, const struct rig_timing *timing)
{
	const struct rig_plan *plan = &dev->plan;
	uint32_t left = plan->used;
	int own, room = RIG_FITS;

	if (plan->segment && rig_segment_room(&dev->segment, plan->segment, RIG_PART_ALIGN) != RIG_RING_FITS)
		room = RIG_LATER;
	while (left) {
		const uint32_t q = next_queue(&left);
		const uint64_t units = plan->units[q] + (timing ? timing->units[q] : 0);

		if (atomic_load_explicit(&dev->queues[q].next, memory_order_relaxed))
			own = next_room(dev, q, units);
		else
			own = (int)rig_ring_room(&dev->queues[q].ring, units, plan->largest[q]);
		if (own == RIG_GROW &&
		        !rig_dev_ring_holds(dev->facts.ring_units_max, units, plan->largest[q]))
			own = never_fits(dev, q, units);
		if (own > room)
			room = own;
	}
	return room;
}

/* What grow is to make, of each queue. False: for stamps there was no memory. */
static bool ask_growth(struct rig_dev *dev, const struct rig_timing *timing)
{
	const struct rig_plan *plan = &dev->plan;
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
	timed = plan_room(dev, &timing);
	if (timed == RIG_GROW && ask_growth(dev, &timing))
		return RIG_GROW;
	if (!dev->times.on || timed > RIG_LATER)
		return room;
	return timed == RIG_FITS ? rig_dev_times_room(dev, &timing) : timed;
}

/* Everything but the parts: ORDER, the waits, and the end, which is SIGNAL or, on the releasing queue, a
   SEMAPHORE for each other and RELEASE. Answers whether the rings as they are could not hold stamps too. */
static bool plan_steps(struct rig_dev *dev, uint32_t nwaits)
{
	struct rig_plan *plan = &dev->plan;
	const uint64_t step = dev->board->step_units;
	bool tight = false;
	uint32_t left;

	if (!plan->used)
		plan->used = 1;
	for (left = plan->used & ~(1u << plan->release); left; left &= left - 1)
		plan->units[plan->release] += step;
	for (left = plan->used; left;) {
		const uint32_t q = next_queue(&left);

		plan->units[q] += (2 + (uint64_t)nwaits) * step;
		plan->largest[q] = rig_max_u64(plan->largest[q], step);
		tight |= !rig_dev_ring_holds(dev->queues[q].ring.units,
		        plan->units[q] + (2 + (uint64_t)plan->launches[q]) * step, plan->largest[q]);
	}
	return tight;
}

int rig_dev_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	struct rig_dev *dev = self;
	bool tight, reclaimed = false;
	uint32_t i;
	int room;

	memset(&dev->plan, 0, sizeof(dev->plan));
	for (i = 0; i < nparts; i++)
		if (plan_part(dev, parts, i, run, scratch, &dev->plan) != RIG_FITS)
			return RIG_NEVER;
	tight = plan_steps(dev, nwaits);
	for (;;) {
		room = plan_room(dev, NULL);
		if (room == RIG_GROW)
			ask_growth(dev, NULL);
		if (room < RIG_GROW && dev->times.open && (dev->times.on || tight))
			room = timed_room(dev, room);
		if (room != RIG_LATER || reclaimed)
			return room;
		rig_dev_reclaim(dev);
		reclaimed = true;
	}
}

/* ---- Packets ---- */

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

	/* What this submit's room saw is seen here too; another's growth may wait for the next. */
	if (atomic_load_explicit(&dev->queues[q].next, memory_order_relaxed))
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
	if (dev->segment_memory.host) /* a board without packets has none */
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
	uint32_t left = s->plan->used & ~(1u << s->plan->release);

	while (left) {
		const uint32_t q = next_queue(&left);

		signal_queue(dev, q);
		await_signal(dev, s->plan->release, q, dev->queues[q].signals);
	}
	if (s->timing)
		store_times(dev, s->plan->release, RIG_STEP_STAMP, rig_dev_times_end(s->timing));
	put(dev, s->plan->release, &release);
	dev->last_queue = s->plan->release;
}

static int publish(const struct submission *s)
{
	struct rig_dev *dev = s->dev;
	uint64_t position[RIG_BOARD_QUEUES];
	uint32_t left, q;

	for (left = s->plan->used; left;) {
		q = next_queue(&left);
		position[q] = rig_ring_publish(&dev->queues[q].ring);
		rig_ring_mark(&dev->queues[q].ring, s->value);
	}
	if (s->plan->segment)
		rig_segment_mark(&dev->segment, s->value);
	/* The value before the doorbell, because progress refuses values that were never submitted. */
	atomic_store_explicit(&dev->submitted, s->value, memory_order_release);
	for (left = s->plan->used; left;) {
		q = next_queue(&left);
		dev->board->ring(&dev->port, q, position[q]);
	}
	return RIG_COMMITTED;
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
	if (plan_room(dev, timing) == RIG_FITS && rig_dev_times_room(dev, timing) == RIG_FITS &&
	        rig_dev_times_begin(dev, timing, s->value, times))
		s->timing = timing;
}

/* The device is lost: what was written of the value is never published. The value counts as submitted all the
   same, so that stop raises the word to it. */
static int fail(struct rig_dev *dev, uint64_t value, const char **failure)
{
	if (!rig_dev_faulted(dev))
		rig_dev_set_fault(
		        dev, "submission of value %llu failed: %s", (unsigned long long)value, rig_error());
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
	uint32_t left = dev->plan.used, i;

	dev->times.on = false;
	if (times)
		start_timing(&s, &timing, times);
	if (rig_dev_faulted(dev) || (s.plan->segment && !rig_segment_take(&dev->segment, s.plan->segment,
	                                                        RIG_PART_ALIGN, &s.segment)))
		return fail(dev, value, failure);
	while (left)
		begin_queue(&s, next_queue(&left));
	for (i = 0; i < nparts; i++)
		if (place_part(&s, i))
			return fail(dev, value, failure);
	end_value(&s);
	return publish(&s);
}

int rig_dev_commit(void *self, uint64_t value, const char **failure)
{
	/* submit always commits. */
	(void)self;
	(void)value;
	(void)failure;
	return RIG_OK;
}
