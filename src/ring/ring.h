/* SPDX-License-Identifier: MIT */
/*
 * A ring of packets between one producer and one device: index arithmetic and ordering, nothing else.
 *
 * The ring lies in memory of the caller's that the device reads. It is counted in units of a fixed size (a
 * word of 4 bytes, a packet of 64); positions are free-running 64-bit counts of units, masked when they meet
 * memory, so full and empty differ and nothing happens at 2^32.
 *
 *	head <= published <= filled <= head + units
 *
 *	free ... | in the device's hands | filled, not yet visible | free ...
 *	       head                  published                  filled
 *
 * A submission is, in this order and under the caller's lock:
 *
 *	rig_ring_room()		does it fit now, later, or never?
 *	rig_ring_reserve()	once a packet: a pointer to fill
 *	rig_ring_publish()	all of it becomes the device's; its stores come before whatever follows
 *				(the doorbell, through the caller's window)
 *	rig_ring_mark()		this value used the ring up to here
 *
 * and rig_ring_reclaim() with a completed value gives the space back. A packet got from rig_ring_reserve() is
 * never split: one that does not fit before the end of the memory starts at its beginning, and the gap is
 * covered by the caller's filler (no-op packets).
 *
 * No function allocates, blocks, calls the system or logs. Not thread-safe: one thread at a time; the device
 * (or a thread that plays it) touches only the memory and the published position.
 */
#ifndef RIG_RING_H
#define RIG_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rig_barrier.h"

/*
 * Which part of a ring each timeline value used.
 *
 * A mark says: once `value` is complete, everything before position `end` may be used again. Marks are set in
 * the order of submission, so values and ends never decrease, and they live in an array of the caller's.
 * Setting a mark never fails: when the array is full, the newest mark takes the new value and end, so some
 * space comes back later than it could and none comes back early.
 *
 * Not thread-safe: the caller's submission lock covers marks too.
 */
struct rig_mark {
	uint64_t value;
	uint64_t end;
};

struct rig_marks {
	struct rig_mark *at; /* the caller's array, borrowed */
	uint32_t mask;       /* its length less one; the length is a power of two */
	uint32_t first;      /* free-running index of the oldest mark */
	uint32_t count;
};

static inline void rig_marks_set(struct rig_marks *marks, uint64_t value, uint64_t end)
{
	struct rig_mark *last = &marks->at[(marks->first + marks->count - 1) & marks->mask];

	if (marks->count && last->end == end)
		return; /* nothing was used since */
	if (marks->count && (last->value == value || marks->count > marks->mask)) {
		last->value = value;
		last->end = end;
		return;
	}
	marks->at[(marks->first + marks->count) & marks->mask] =
	        (struct rig_mark){.value = value, .end = end};
	marks->count++;
}

/* Drop every mark of a value up to `completed`. True when some were: `*end` is then the position before which
 * all is free. */
static inline bool rig_marks_reach(struct rig_marks *marks, uint64_t completed, uint64_t *end)
{
	bool any = false;

	while (marks->count && marks->at[marks->first & marks->mask].value <= completed) {
		*end = marks->at[marks->first & marks->mask].end;
		marks->first++;
		marks->count--;
		any = true;
	}
	return any;
}

enum rig_ring_room {
	RIG_RING_FITS,  /* now */
	RIG_RING_LATER, /* once enough is reclaimed, at the latest when the ring is empty */
	RIG_RING_NEVER, /* not even in the empty ring */
};

/* Cover `units` units at `at` with packets that do nothing; any number from 1 to the largest packet less one.
 * Called from rig_ring_reserve(). */
typedef void rig_ring_filler(void *arg, void *at, uint64_t units);

struct rig_ring_setup {
	void *base;              /* units * unit_bytes bytes, borrowed until the ring is forgotten */
	uint64_t units;          /* a power of two */
	uint32_t unit_bytes;     /* a power of two */
	uint32_t nmarks;         /* length of `marks`: a power of two, about the submissions in flight */
	struct rig_mark *marks;  /* borrowed */
	uint64_t start;          /* position the device begins at */
	rig_ring_filler *filler; /* NULL where every packet is one unit or packets may be split */
	void *filler_arg;
};

struct rig_ring {
	unsigned char *base;
	uint64_t units;
	uint64_t mask;
	uint64_t head;
	uint64_t published;
	uint64_t filled;
	unsigned unit_shift;
	struct rig_marks marks;
	rig_ring_filler *filler;
	void *filler_arg;
};

/* An empty ring. -EINVAL: NULL base or marks, or a size that is no power of two or overflows. */
int rig_ring_init(struct rig_ring *ring, const struct rig_ring_setup *setup);

/* Units that can be filled now. */
static inline uint64_t rig_ring_free(const struct rig_ring *ring)
{
	return ring->units - (ring->filled - ring->head);
}

static inline bool rig_ring_empty(const struct rig_ring *ring)
{
	return ring->filled == ring->head;
}

/* Whether packets of `units` units in all, the largest of them `largest`, fit. `largest` is 1 where packets
 * may be split. After FITS, reserving exactly these packets in any order succeeds. */
static inline enum rig_ring_room rig_ring_room(const struct rig_ring *ring, uint64_t units, uint64_t largest)
{
	uint64_t gap = largest ? largest - 1 : 0;
	uint64_t offset = ring->filled & ring->mask;

	/* Wherever the packets meet the end, what is left there is smaller than the packet that skips it. */
	if (units > ring->units || gap > ring->units - units)
		return RIG_RING_NEVER;
	if (units <= ring->units - offset)
		gap = 0;
	return units + gap <= rig_ring_free(ring) ? RIG_RING_FITS : RIG_RING_LATER;
}

/* Memory of a position. */
static inline void *rig_ring_at(const struct rig_ring *ring, uint64_t position)
{
	return ring->base + ((position & ring->mask) << ring->unit_shift);
}

/* `units` contiguous units to fill, now part of what the next publish makes visible. NULL when they do not
 * fit (room was not asked, or said otherwise); nothing has changed then. */
static inline void *rig_ring_reserve(struct rig_ring *ring, uint64_t units)
{
	uint64_t left = ring->units - (ring->filled & ring->mask);
	uint64_t gap = units > left ? left : 0;
	uint64_t room = rig_ring_free(ring);
	void *at;

	if (__builtin_expect(units > room || gap > room - units, 0))
		return NULL;
	if (__builtin_expect(gap != 0, 0)) {
		if (!ring->filler)
			return NULL;
		ring->filler(ring->filler_arg, rig_ring_at(ring, ring->filled), gap);
		ring->filled += gap;
	}
	at = rig_ring_at(ring, ring->filled);
	ring->filled += units;
	return at;
}

/* Forget what was filled since the last publish. Where a device looks at packet headers rather than at a
 * position, the caller makes them invalid again. */
static inline void rig_ring_drop(struct rig_ring *ring)
{
	ring->filled = ring->published;
}

/* Make everything filled the device's and answer the position after it. The stores of the packets come before
 * every store the caller makes next (to memory: a doorbell in a register space takes its window's
 * barrier). */
static inline uint64_t rig_ring_publish(struct rig_ring *ring)
{
	/* The packets before the doorbell or position word, which the device answers by reading them. */
	rig_to_device();
	ring->published = ring->filled;
	return ring->published;
}

/* What is published up to here was used by `value`: not below the value marked before. */
static inline void rig_ring_mark(struct rig_ring *ring, uint64_t value)
{
	rig_marks_set(&ring->marks, value, ring->published);
}

/* Free what values up to `completed` used. True when that was anything. */
static inline bool rig_ring_reclaim(struct rig_ring *ring, uint64_t completed)
{
	uint64_t end = ring->head;
	bool any = rig_marks_reach(&ring->marks, completed, &end);

	/* Never back: positions may have been reclaimed beyond a mark in another way. */
	if (end - ring->head <= ring->published - ring->head)
		ring->head = end;
	return any;
}

#endif
