/* SPDX-License-Identifier: MIT */
/*
 * A segment of memory that submissions take pieces of in order: launch parameters, descriptors, stamps.
 *
 * Pieces are contiguous: one never straddles the end of the segment. They come back in the order they went,
 * by the same marks as a ring's (ring.h): once a value is complete, so is the use of what was taken up to
 * its mark. A submission takes one piece for all it needs and cuts it up itself; then FITS before it means
 * the take succeeds, and any piece up to the whole segment fits sooner or later, because in an empty segment
 * the gap before the end costs nothing.
 *
 * The segment hands out offsets; which memory they lie in is the caller's. Nothing allocates or blocks. Not
 * thread-safe.
 */
#ifndef RIG_SEGMENT_H
#define RIG_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "bits.h"
#include "ring.h"

struct rig_segment {
	uint64_t bytes; /* a power of two */
	uint64_t mask;
	uint64_t head; /* free-running: everything before is free */
	uint64_t tail; /* free-running: the next piece comes here or later */
	struct rig_marks marks;
};

/* An empty segment of `bytes` bytes (a power of two) with `nmarks` marks (a power of two, borrowed).
 * Alignment is relative to the segment's beginning. -EINVAL. */
int rig_segment_init(struct rig_segment *segment, uint64_t bytes, struct rig_mark *marks, uint32_t nmarks);

/* Where a piece would begin, as a free-running position; bytes is at most the segment's. */
static inline uint64_t rig_segment_next(const struct rig_segment *segment, uint64_t bytes, uint64_t align)
{
	uint64_t at = segment->tail + (-segment->tail & (align - 1));
	uint64_t offset = at & segment->mask;

	/* The end of the segment is where the next round begins. */
	if (bytes > segment->bytes - offset)
		at += -at & segment->mask;
	return at;
}

/* Whether `bytes` (> 0) at a multiple of `align` (a power of two) fit: in the terms of a ring's room. */
static inline enum rig_ring_room rig_segment_room(
        const struct rig_segment *segment, uint64_t bytes, uint64_t align)
{
	if (bytes > segment->bytes || align > segment->bytes)
		return RIG_RING_NEVER;
	if (segment->head == segment->tail)
		return RIG_RING_FITS;
	return rig_segment_next(segment, bytes, align) + bytes - segment->head <= segment->bytes
	               ? RIG_RING_FITS
	               : RIG_RING_LATER;
}

/* Take a piece: `*offset` from the segment's beginning. False when it does not fit now; nothing has changed
 * then. */
static inline bool rig_segment_take(
        struct rig_segment *segment, uint64_t bytes, uint64_t align, uint64_t *offset)
{
	uint64_t at;

	if (rig_segment_room(segment, bytes, align) != RIG_RING_FITS)
		return false;
	at = rig_segment_next(segment, bytes, align);
	if (segment->head == segment->tail)
		segment->head = at;
	segment->tail = at + bytes;
	*offset = at & segment->mask;
	return true;
}

/* What was taken up to here is used by `value`: not below the value marked before. */
static inline void rig_segment_mark(struct rig_segment *segment, uint64_t value)
{
	rig_marks_set(&segment->marks, value, segment->tail);
}

/* Take back what values up to `completed` used. True when that was anything. */
static inline bool rig_segment_reclaim(struct rig_segment *segment, uint64_t completed)
{
	uint64_t end = segment->head;
	bool any = rig_marks_reach(&segment->marks, completed, &end);

	/* Never back: an empty segment that skipped a gap left the marks of values that used nothing
	 * behind. */
	if (end - segment->head <= segment->tail - segment->head)
		segment->head = end;
	return any;
}

#endif
