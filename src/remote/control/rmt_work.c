/* SPDX-License-Identifier: MIT */
/* The message of work. Everything in it is as large as the numbers before it say, and no larger than the
   message. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rmt_frames.h"

#define LEAST_STAGING UINT64_C(65536)

enum { TIMED = 1, PARTIAL = 2 };

static void get_side(struct rig_rmt_in *in, struct rig_rmt_side *side, bool in_side)
{
	memset(side, 0, sizeof(*side));
	side->where = rig_rmt_get8(in);
	switch (side->where) {
	case RIG_RMT_LOCAL:
		break;
	case RIG_RMT_LOCAL_PARCEL:
		if (!in_side)
			side->ticket = rig_rmt_ticket_get(in);
		break;
	case RIG_RMT_FOREIGN_PARCEL:
		side->machine = rig_rmt_get32(in);
		side->region = rig_rmt_get32(in);
		break;
	case RIG_RMT_FOREIGN:
		side->region = rig_rmt_get32(in);
		break;
	case RIG_RMT_HERE:
		side->region = rig_rmt_get32(in);
		side->offset = rig_rmt_get64(in);
		side->pitch = rig_rmt_get64(in);
		break;
	default:
		in->bad = true;
	}
}

static void put_side(struct rig_rmt_out *out, const struct rig_rmt_side *side, bool in_side)
{
	rig_rmt_put8(out, (uint8_t)side->where);
	switch (side->where) {
	case RIG_RMT_LOCAL:
		break;
	case RIG_RMT_LOCAL_PARCEL:
		if (!in_side)
			rig_rmt_ticket_put(out, &side->ticket);
		break;
	case RIG_RMT_FOREIGN_PARCEL:
		rig_rmt_put32(out, side->machine);
		rig_rmt_put32(out, side->region);
		break;
	case RIG_RMT_FOREIGN:
		rig_rmt_put32(out, side->region);
		break;
	default:
		rig_rmt_put32(out, side->region);
		rig_rmt_put64(out, side->offset);
		rig_rmt_put64(out, side->pitch);
	}
}

/* n numbers of 32 bits in memory of their own, which a part keeps. */
static const uint32_t *get_numbers(struct rig_rmt_in *in, uint32_t n)
{
	const uint8_t *at = n <= in->left / 4 ? rig_rmt_get_bytes(in, (size_t)n * 4) : NULL;
	struct rig_rmt_in numbers = rig_rmt_in_of(at, (size_t)n * 4);
	uint32_t *made, i;

	if (!n)
		return NULL;
	made = at ? malloc((size_t)n * sizeof(*made)) : NULL;
	if (!made) {
		in->bad = true;
		return NULL;
	}
	for (i = 0; i < n; i++)
		made[i] = rig_rmt_get32(&numbers);
	return made;
}

/* The sum of both, or UINT64_MAX. */
static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void count_local(struct rig_rmt_in *in, struct rig_rmt_work *work, const struct rig_rmt_part *part)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(part->rows, part->row_bytes, &bytes))
		bytes = UINT64_MAX;
	if (part->dst.where != RIG_RMT_HERE)
		work->local_out = plus(work->local_out, bytes);
	/* What comes from other devices is laid down as what comes from the controller. */
	if (!part->fill && part->src.where != RIG_RMT_HERE)
		work->local_in = plus(work->local_in, bytes);
	if (work->local_in > RIG_RMT_LOCAL_BYTES || work->local_out > RIG_RMT_LOCAL_BYTES)
		in->bad = true;
}

static void get_copy(struct rig_rmt_in *in, struct rig_rmt_work *work, struct rig_rmt_part *part)
{
	uint8_t fill = rig_rmt_get8(in);

	part->fill = fill;
	part->byte = rig_rmt_get8(in);
	part->row_bytes = rig_rmt_get64(in);
	part->rows = rig_rmt_get64(in);
	get_side(in, &part->dst, false);
	if (!fill)
		get_side(in, &part->src, true);
	if (fill > 1 || !part->rows || !part->row_bytes || part->dst.where == RIG_RMT_FOREIGN ||
	        part->dst.where == RIG_RMT_FOREIGN_PARCEL)
		in->bad = true;
	count_local(in, work, part);
}

static void get_launch(struct rig_rmt_in *in, struct rig_rmt_part *part)
{
	const uint8_t *at;
	uint8_t *made;
	int i;

	part->function = rig_rmt_get32(in);
	for (i = 0; i < 3; i++)
		part->block.groups[i] = rig_rmt_get32(in);
	for (i = 0; i < 3; i++)
		part->block.threads[i] = rig_rmt_get32(in);
	part->block.shared = rig_rmt_get32(in);
	part->nparams = rig_rmt_get32(in);
	at = part->nparams <= RIG_PARAMS ? rig_rmt_get_bytes(in, part->nparams) : NULL;
	if (!at)
		in->bad = true;
	if (!at || !part->nparams)
		return;
	made = malloc(part->nparams);
	if (made)
		memcpy(made, at, part->nparams);
	in->bad |= !made;
	part->params = made;
}

static void get_part(struct rig_rmt_in *in, struct rig_rmt_work *work, uint32_t index)
{
	struct rig_rmt_part *part = &work->parts[index];
	uint32_t i;

	part->queue = rig_rmt_get32(in);
	part->kind = rig_rmt_get32(in);
	part->nafter = rig_rmt_get32(in);
	part->after = get_numbers(in, part->nafter);
	for (i = 0; i < part->nafter && part->after; i++)
		in->bad |= part->after[i] >= index;
	switch (part->kind) {
	case RIG_WORDS:
		part->nwords = rig_rmt_get32(in);
		part->words = get_numbers(in, part->nwords);
		break;
	case RIG_COPY:
		get_copy(in, work, part);
		break;
	case RIG_LAUNCH:
		get_launch(in, part);
		break;
	default:
		in->bad = true;
	}
}

int rig_rmt_work_parse(const uint8_t *bytes, size_t n, struct rig_rmt_work *work)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	uint8_t flags;
	uint32_t i;
	int err;

	memset(work, 0, sizeof(*work));
	work->request = rig_rmt_get32(&in);
	work->device = rig_rmt_get32(&in);
	work->value = rig_rmt_get64(&in);
	flags = rig_rmt_get8(&in);
	in.bad |= flags > (TIMED | PARTIAL);
	work->timed = flags & TIMED;
	work->partial = flags & PARTIAL;
	work->first = rig_rmt_get32(&in);
	work->nwaits = rig_rmt_get32(&in);
	if (work->nwaits > RIG_RMT_WAITS)
		return -EPROTO;
	for (i = 0; i < work->nwaits; i++) {
		work->waits[i].device = rig_rmt_get32(&in);
		work->waits[i].value = rig_rmt_get64(&in);
	}
	i = rig_rmt_get32(&in);
	if (in.bad || i > RIG_RMT_PARTS)
		return -EPROTO;
	work->parts = calloc(i ? i : 1, sizeof(*work->parts));
	if (!work->parts)
		return -ENOMEM;
	work->nparts = i;
	for (i = 0; i < work->nparts && !in.bad; i++)
		get_part(&in, work, i);
	err = rig_rmt_in_end(&in);
	if (err)
		rig_rmt_work_free(work);
	return err;
}

void rig_rmt_work_free(struct rig_rmt_work *work)
{
	uint32_t i;

	for (i = 0; work->parts && i < work->nparts; i++) {
		free((void *)(uintptr_t)work->parts[i].after);
		free((void *)(uintptr_t)work->parts[i].words);
		free((void *)(uintptr_t)work->parts[i].params);
	}
	free(work->parts);
	work->parts = NULL;
	work->nparts = 0;
}

static void put_numbers(struct rig_rmt_out *out, const uint32_t *numbers, uint32_t n)
{
	uint32_t i;

	rig_rmt_put32(out, n);
	for (i = 0; i < n; i++)
		rig_rmt_put32(out, numbers[i]);
}

static void put_copy(struct rig_rmt_out *out, const struct rig_rmt_part *part)
{
	rig_rmt_put8(out, part->fill);
	rig_rmt_put8(out, part->byte);
	rig_rmt_put64(out, part->row_bytes);
	rig_rmt_put64(out, part->rows);
	put_side(out, &part->dst, false);
	if (!part->fill)
		put_side(out, &part->src, true);
}

static void put_launch(struct rig_rmt_out *out, const struct rig_rmt_part *part)
{
	int i;

	rig_rmt_put32(out, part->function);
	for (i = 0; i < 3; i++)
		rig_rmt_put32(out, part->block.groups[i]);
	for (i = 0; i < 3; i++)
		rig_rmt_put32(out, part->block.threads[i]);
	rig_rmt_put32(out, part->block.shared);
	rig_rmt_put32(out, part->nparams);
	rig_rmt_put_bytes(out, part->params, part->nparams);
}

void rig_rmt_work_put(struct rig_rmt_out *out, const struct rig_rmt_work *work)
{
	uint32_t i;

	rig_rmt_put32(out, work->request);
	rig_rmt_put32(out, work->device);
	rig_rmt_put64(out, work->value);
	rig_rmt_put8(out, (uint8_t)((work->timed ? TIMED : 0) | (work->partial ? PARTIAL : 0)));
	rig_rmt_put32(out, work->first);
	rig_rmt_put32(out, work->nwaits);
	for (i = 0; i < work->nwaits; i++) {
		rig_rmt_put32(out, work->waits[i].device);
		rig_rmt_put64(out, work->waits[i].value);
	}
	rig_rmt_put32(out, work->nparts);
	for (i = 0; i < work->nparts; i++) {
		const struct rig_rmt_part *part = &work->parts[i];

		rig_rmt_put32(out, part->queue);
		rig_rmt_put32(out, part->kind);
		put_numbers(out, part->after, part->nafter);
		if (part->kind == RIG_WORDS)
			put_numbers(out, part->words, part->nwords);
		if (part->kind == RIG_COPY)
			put_copy(out, part);
		if (part->kind == RIG_LAUNCH)
			put_launch(out, part);
	}
}

uint64_t rig_rmt_staging_bytes(uint64_t bytes)
{
	uint64_t size = LEAST_STAGING;

	while (size < bytes)
		size *= 2;
	return size;
}
