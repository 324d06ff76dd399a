/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent_device.h"
#include "agent_hot.h"
#include "agent_memory.h"

enum { ALIGN = 16 };

void work_unbuild(struct device *d, struct built *b)
{
	uses_let(d, &b->uses);
	free(b->parts);
	free(b->args);
	free(b->scratch);
}

static size_t round_up(size_t n)
{
	return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static size_t args_bytes(const struct rig_rmt_work *work)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < work->nparts; i++)
		if (work->parts[i].kind == RIG_LAUNCH)
			n += sizeof(struct rig_block) + round_up(work->parts[i].nparams);
	return n;
}

static int build_launch(
        struct device *d, struct built *b, struct rig_part *to, const struct rig_rmt_part *from)
{
	struct rig_launch_part *launch = &to->u.launch;
	uint64_t at = b->run.args_bytes;
	bool known;

	(void)pthread_mutex_lock(&d->lock);
	known = from->function && from->function <= d->nfunctions && d->functions[from->function - 1].image;
	if (known) {
		launch->code = d->functions[from->function - 1].entry.code;
		launch->launch = d->functions[from->function - 1].entry.launch;
		uses_add(&b->uses, true, d->functions[from->function - 1].image);
		d->images[d->functions[from->function - 1].image - 1].holds++;
	}
	(void)pthread_mutex_unlock(&d->lock);
	if (!known)
		return rig_error_set(
		        -EINVAL, "a launch names function %" PRIu32 ", which is none", from->function);
	launch->block = (uint32_t)at;
	launch->params = from->nparams;
	memcpy(b->args + at, &from->block, sizeof(from->block));
	if (from->nparams)
		memcpy(b->args + at + sizeof(struct rig_block), from->params, from->nparams);
	b->run.args_bytes += sizeof(struct rig_block) + round_up(from->nparams);
	b->nlaunches++;
	return 0;
}

bool rows_fit(uint64_t offset, uint64_t pitch, uint64_t row_bytes, uint64_t rows, uint64_t bytes)
{
	uint64_t reach;

	return !__builtin_mul_overflow(rows - 1, pitch, &reach) &&
	       !__builtin_add_overflow(reach, row_bytes, &reach) &&
	       !__builtin_add_overflow(reach, offset, &reach) && reach <= bytes;
}

/* Bytes of sides that are not the device's lie in staging memory, row after row. */
static int build_side(struct device *d, struct uses *uses, struct rig_copy_side *to,
        const struct rig_rmt_side *from, const struct rig_rmt_part *part, const struct staging *staging,
        uint64_t *at)
{
	struct rig_location location;
	uint64_t bytes = 0;
	void *region;

	to->slot = RIG_FIXED;
	if (from->where != RIG_RMT_HERE) {
		to->handle = staging ? staging->handle : 0;
		to->offset = *at;
		to->pitch = part->row_bytes;
		*at += part->row_bytes * part->rows;
		return 0;
	}
	region = region_hold(d, from->region, &bytes);
	if (region)
		uses_add(uses, false, from->region);
	if (!region || !rows_fit(from->offset, from->pitch, part->row_bytes, part->rows, bytes))
		return rig_error_set(
		        -EPROTO, "a copy names what is not in a region (number %" PRIu32 ")", from->region);
	d->m->locate(d->handle, region, &location);
	to->handle = location.handle;
	to->offset = from->offset;
	to->pitch = from->pitch;
	return 0;
}

int work_build(struct device *d, const struct rig_rmt_work *work, const struct staging *in,
        const struct staging *out, struct built *b)
{
	uint64_t in_at = 0, out_at = 0;
	uint32_t i;
	int err = 0;

	memset(b, 0, sizeof(*b));
	b->parts = calloc(work->nparts + 1, sizeof(*b->parts));
	b->args = aligned_alloc(ALIGN, args_bytes(work) + ALIGN);
	b->scratch = aligned_alloc(ALIGN, ((size_t)work->nparts + 1) * RIG_SCRATCH);
	/* The sides of copies, the images of launches. */
	if (uses_make(&b->uses, 2 * work->nparts) || !b->parts || !b->args || !b->scratch)
		return rig_error_set(-ENOMEM, "the agent has no memory for the work");
	memset(b->scratch, 0, ((size_t)work->nparts + 1) * RIG_SCRATCH);
	b->run.args = b->args;
	for (i = 0; i < work->nparts && !err; i++) {
		const struct rig_rmt_part *from = &work->parts[i];
		struct rig_part *to = &b->parts[i];

		to->queue = from->queue;
		to->kind = from->kind;
		to->after = from->after;
		to->nafter = from->nafter;
		if (from->queue >= d->facts.nqueues)
			return rig_error_set(
			        -EINVAL, "a part names queue %" PRIu32 ", which is none", from->queue);
		if (from->kind == RIG_WORDS) {
			to->u.words.words = from->words;
			to->u.words.count = from->nwords;
		} else if (from->kind == RIG_LAUNCH) {
			err = build_launch(d, b, to, from);
		} else {
			struct rig_copy_part *copy = &to->u.copy;

			copy->row_bytes = from->row_bytes;
			copy->rows = from->rows;
			copy->fill = from->fill;
			copy->byte = from->byte;
			err = build_side(d, &b->uses, &copy->dst, &from->dst, from, out, &out_at);
			if (!err && !from->fill)
				err = build_side(d, &b->uses, &copy->src, &from->src, from, in, &in_at);
		}
	}
	return err;
}

int copy_build(struct built *b, const struct rig_copy_part *copy, const struct device *d)
{
	b->parts = calloc(1, sizeof(*b->parts));
	b->scratch = aligned_alloc(ALIGN, RIG_SCRATCH);
	if (!b->parts || !b->scratch)
		return rig_error_set(-ENOMEM, "the agent has no memory for a copy");
	memset(b->scratch, 0, RIG_SCRATCH);
	b->parts[0].kind = RIG_COPY;
	b->parts[0].queue = (uint32_t)d->facts.copy_engine;
	b->parts[0].u.copy = *copy;
	return 0;
}
