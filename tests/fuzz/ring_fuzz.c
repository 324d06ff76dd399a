/* SPDX-License-Identifier: MIT */
/*
 * A ring and a segment driven by bytes, beside a map that says which value uses each unit. Nothing in use may
 * be handed out, and what room answers must come true.
 */
#include <stdlib.h>

#include "segment.h"

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { UNITS = 32, MARKS = 4, OP_BYTES = 3 };

struct fuzz {
	struct rig_ring ring;
	struct rig_segment segment;
	struct rig_mark ring_marks[MARKS], segment_marks[MARKS];
	unsigned char memory[UNITS];
	uint64_t ring_owner[UNITS], segment_owner[UNITS]; /* value that used a unit last */
	uint64_t value, done;
};

static void fill_gap(void *arg, void *at, uint64_t units)
{
	struct fuzz *f = arg;

	for (uint64_t i = 0; i < units; i++) {
		uint64_t unit = (uint64_t)((unsigned char *)at - f->memory) + i;

		CHECK(unit < UNITS && f->ring_owner[unit] <= f->done);
		f->ring_owner[unit] = f->value;
	}
}

static void submit(struct fuzz *f, const uint8_t *op)
{
	uint64_t each = op[1] % 40u, count = op[2] % 4u + 1;
	enum rig_ring_room room = rig_ring_room(&f->ring, each * count, each);

	f->value++;
	CHECK(room != RIG_RING_LATER || !rig_ring_empty(&f->ring));
	for (uint64_t i = 0; i < count && room == RIG_RING_FITS; i++) {
		unsigned char *at = rig_ring_reserve(&f->ring, each);

		CHECK(at && at + each <= f->memory + UNITS);
		fill_gap(f, at, each);
	}
	rig_ring_publish(&f->ring);
	rig_ring_mark(&f->ring, f->value);
}

static void take(struct fuzz *f, const uint8_t *op)
{
	uint64_t bytes = op[1] % 40u + 1, align = UINT64_C(1) << op[2] % 7;
	enum rig_ring_room room = rig_segment_room(&f->segment, bytes, align);
	uint64_t at;

	f->value++;
	CHECK(room != RIG_RING_NEVER || bytes > UNITS || align > UNITS);
	CHECK(rig_segment_take(&f->segment, bytes, align, &at) == (room == RIG_RING_FITS));
	if (room != RIG_RING_FITS)
		return;
	CHECK(at % align == 0 && at + bytes <= UNITS);
	for (uint64_t i = at; i < at + bytes; i++)
		CHECK(f->segment_owner[i] <= f->done);
	for (uint64_t i = at; i < at + bytes; i++)
		f->segment_owner[i] = f->value;
	rig_segment_mark(&f->segment, f->value);
}

static void reclaim(struct fuzz *f, const uint8_t *op)
{
	f->done += op[1] % (f->value - f->done + 1);
	rig_ring_reclaim(&f->ring, f->done);
	rig_segment_reclaim(&f->segment, f->done);
	CHECK(f->ring.published - f->ring.head <= UNITS);
	if (f->done < f->value)
		return;
	CHECK(rig_ring_empty(&f->ring));
	CHECK(rig_segment_room(&f->segment, UNITS, UNITS) == RIG_RING_FITS);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct fuzz f = {.value = 0};
	struct rig_ring_setup setup = {
	        .base = f.memory,
	        .units = UNITS,
	        .unit_bytes = 1,
	        .nmarks = MARKS,
	        .marks = f.ring_marks,
	        .start = UINT64_C(0xffffffff) - (length ? bytes[0] : 0),
	        .filler = fill_gap,
	        .filler_arg = &f,
	};

	CHECK(rig_ring_init(&f.ring, &setup) == 0);
	CHECK(rig_segment_init(&f.segment, UNITS, f.segment_marks, MARKS) == 0);
	for (size_t at = 1; at + OP_BYTES <= length; at += OP_BYTES) {
		static void (*const ops[])(struct fuzz *, const uint8_t *) = {submit, take, reclaim};

		ops[bytes[at] % 3](&f, bytes + at);
	}
	return 0;
}
