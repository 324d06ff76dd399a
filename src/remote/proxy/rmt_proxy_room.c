/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>

#include "rmt_proxy.h"

/* What a proxy has under way at most, unless one submission alone is more. */
#define MOST_BYTES  (UINT64_C(64) << 20)
#define MOST_VALUES 2048u

/* A message's bytes for a part, beside its lists, words and parameters, and for the rest; generously. */
enum { PART_BYTES = 96, HEAD_BYTES = 4096 };

const struct region *rig_rmt_side_region(const struct rig_run *run, const struct rig_copy_side *side)
{
	return (const struct region *)(side->slot == RIG_FIXED ? side->handle
	                                                       : run->slots[side->slot].handle);
}

/* Of one submission, while it is looked at. */
struct look {
	struct proxy *p;
	const struct rig_part *parts;
	const struct rig_run *run;
	uint64_t message, in, out;
	bool simple; /* nothing that the agent's driver might not take */
	uint64_t hash;
};

/* What the agent stages for it. */
struct need {
	uint64_t in, out;
	uint32_t pieces; /* that it goes in, each of which needs so much */
};

static void add(struct look *l, uint64_t number)
{
	unsigned i;

	/* FNV-1a */
	for (i = 0; i < 64; i += 8) {
		l->hash ^= (number >> i) & UINT8_MAX;
		l->hash *= UINT64_C(0x100000001b3);
	}
}

static int never(uint32_t part, const char *why)
{
	return rig_error_set(RIG_NEVER, "part %" PRIu32 ": %s", part, why);
}

static uint64_t start_of(const struct look *l, const struct rig_copy_side *side)
{
	const struct region *region = rig_rmt_side_region(l->run, side);

	return (uintptr_t)region->host + side->offset +
	       (side->slot == RIG_FIXED ? 0 : l->run->slots[side->slot].offset);
}

/* The bytes from the first row's first to the last row's last. */
static uint64_t reach_of(const struct rig_copy_part *copy, const struct rig_copy_side *side)
{
	return (copy->rows - 1) * side->pitch + copy->row_bytes;
}

/* Whether a local source takes what an earlier part of the submission brings: its bytes leave before that. */
static bool follows_itself(const struct look *l, uint32_t part)
{
	const struct rig_copy_part *copy = &l->parts[part].u.copy;
	uint64_t from = start_of(l, &copy->src), bytes = reach_of(copy, &copy->src);
	uint32_t i;

	for (i = 0; i < part; i++) {
		const struct rig_copy_part *before = &l->parts[i].u.copy;
		uint64_t at;

		if (l->parts[i].kind != RIG_COPY ||
		        rig_rmt_side_region(l->run, &before->dst)->kind != REGION_LOCAL)
			continue;
		at = start_of(l, &before->dst);
		if (at < from + bytes && from < at + reach_of(before, &before->dst))
			return true;
	}
	return false;
}

static int look_copy(struct look *l, uint32_t part)
{
	const struct rig_copy_part *copy = &l->parts[part].u.copy;
	enum region_kind dst, src;
	uint64_t bytes;

	if (!copy->rows || !copy->row_bytes)
		return never(part, "a copy of nothing");
	if (__builtin_mul_overflow(copy->rows, copy->row_bytes, &bytes))
		return never(part, "a copy of more bytes than there are");
	dst = rig_rmt_side_region(l->run, &copy->dst)->kind;
	src = copy->fill ? REGION_REMOTE : rig_rmt_side_region(l->run, &copy->src)->kind;
	if (dst == REGION_FOREIGN)
		return never(part, "copies to another machine are the receiving side's to make");
	if (dst == REGION_LOCAL)
		l->out += bytes;
	if (src != REGION_REMOTE)
		l->in += bytes;
	if (l->in > RIG_RMT_LOCAL_BYTES || l->out > RIG_RMT_LOCAL_BYTES)
		return never(part, "copies between machines of more than 256 MiB in one submission");
	if (src == REGION_LOCAL && follows_itself(l, part))
		return never(part, "it takes bytes from here that an earlier part of the submission brings");
	l->simple &= copy->rows == 1 && !l->parts[part].nafter;
	add(l, copy->row_bytes);
	add(l, copy->rows);
	add(l, (uint64_t)dst << 16 | (uint64_t)src << 8 | copy->fill);
	return RIG_FITS;
}

static void look_launch(struct look *l, const struct rig_launch_part *launch)
{
	const struct rig_block *block = rig_launch_block(l->run, launch);
	int i;

	l->message += launch->params;
	add(l, launch->launch);
	for (i = 0; i < 3; i++)
		add(l, (uint64_t)block->groups[i] << 32 | block->threads[i]);
	add(l, (uint64_t)block->shared << 32 | launch->params);
}

static int look_part(struct look *l, uint32_t i)
{
	const struct rig_part *part = &l->parts[i];

	if (part->kind == RIG_FILL)
		return never(i, "a function of this process, which the device's machine does not have");
	if (part->kind != RIG_WORDS && part->kind != RIG_COPY && part->kind != RIG_LAUNCH)
		return never(i, "no kind of work");
	if (part->queue >= l->p->facts.nqueues ||
	        !(l->p->facts.queues[part->queue].runs & RIG_RUNS(part->kind)))
		return never(i, "its queue does not run this kind");
	l->message += PART_BYTES + sizeof(uint32_t) * (uint64_t)part->nafter;
	add(l, (uint64_t)part->kind << 32 | part->queue);
	add(l, part->nafter);
	if (part->kind == RIG_COPY)
		return look_copy(l, i);
	l->simple = false;
	if (part->kind == RIG_WORDS) {
		l->message += sizeof(uint32_t) * (uint64_t)part->u.words.count;
		add(l, part->u.words.count);
	} else {
		look_launch(l, &part->u.launch);
	}
	return RIG_FITS;
}

/* Asks the agent whether its driver ever runs such work, and whether it has memory for its bytes. */
static int ask(struct look *l, const struct need *need, uint32_t nparts, uint32_t nwaits)
{
	struct proxy *p = l->p;
	struct rig_rmt_out out = {0}, body;
	struct value *v;
	const char *fault;
	int err;

	if (rig_rmt_proxy_faulted(p))
		return RIG_FITS; /* submit has the reason */
	v = rig_rmt_value_make(p, 0, l->parts, nparts, l->run);
	if (!v)
		return rig_error_set(-ENOMEM, "no host memory for work on its way");
	v->work.nwaits = nwaits;
	if (need->pieces > 1) {
		/* The last is the largest. */
		v->work.parts += need->pieces - 1;
		v->work.nparts = 1;
	}
	rig_rmt_work_put(&out, &v->work);
	v->work.parts -= need->pieces - 1;
	rig_rmt_value_free(v);
	/* The number of the request takes the place of the message's own. */
	body = out;
	body.at += body.at ? sizeof(uint32_t) : 0;
	body.used -= body.at ? sizeof(uint32_t) : 0;
	err = rig_rmt_proxy_judge(p, rig_rmt_request(p->m, RIG_RMT_CHECK, &body, 0, NULL), &fault);
	rig_rmt_out_free(&out);
	if (err == RIG_FAULT)
		return RIG_FITS;
	if (err)
		return err == -EINVAL ? RIG_NEVER : err;
	p->approved[l->hash % APPROVED] = l->hash;
	p->staged = need->in + need->out > p->staged ? need->in + need->out : p->staged;
	return RIG_FITS;
}

static bool is_granted(const struct proxy *p, const struct need *need)
{
	return need->in + need->out <= p->staged;
}

static uint64_t staged_for(uint64_t bytes)
{
	return bytes ? rig_rmt_staging_bytes(bytes) : 0;
}

/* A copy that goes in pieces needs memory for one, the others wait for it. */
static struct need need_of(const struct look *l, uint32_t nparts)
{
	struct need need = {staged_for(l->in), staged_for(l->out), 1};
	uint32_t pieces;

	if (is_granted(l->p, &need))
		return need;
	pieces = rig_rmt_pieces_of(l->parts, nparts, l->run);
	if (pieces > 1 && rig_rmt_parcels_here(l->p->m)) {
		uint64_t last = l->parts[0].u.copy.row_bytes - (pieces - 1) * (uint64_t)RIG_RMT_PIECE;

		need.pieces = pieces;
		need.in = l->in ? staged_for(last) : 0;
		need.out = l->out ? staged_for(last) : 0;
	}
	return need;
}

int rig_rmt_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	struct proxy *p = self;
	struct look l = {.p = p,
	        .parts = parts,
	        .run = run,
	        .message = HEAD_BYTES,
	        .simple = true,
	        .hash = UINT64_C(0xcbf29ce484222325)};
	struct need need;
	bool full;
	uint32_t i;
	int answer = RIG_FITS;

	(void)scratch;
	if (nparts > RIG_RMT_PARTS || nwaits > RIG_RMT_WAITS)
		return rig_error_set(
		        RIG_NEVER, "a proxy takes %d parts and %d waits", RIG_RMT_PARTS, RIG_RMT_WAITS);
	for (i = 0; i < nparts && answer == RIG_FITS; i++)
		answer = look_part(&l, i);
	if (answer == RIG_FITS && l.message > RIG_RMT_PAYLOAD)
		answer = rig_error_set(
		        RIG_NEVER, "a proxy takes %d bytes of parts, words and parameters", RIG_RMT_PAYLOAD);
	if (answer != RIG_FITS)
		return answer;
	(void)pthread_mutex_lock(&p->lock);
	full = p->nvalues >= MOST_VALUES || (p->nvalues && p->bytes + l.in + l.out > MOST_BYTES);
	full = full && !p->faulted;
	(void)pthread_mutex_unlock(&p->lock);
	need = need_of(&l, nparts);
	/* 0 is no hash of anything here. */
	if (!is_granted(p, &need) || (!l.simple && p->approved[l.hash % APPROVED] != l.hash))
		answer = ask(&l, &need, nparts, nwaits);
	return answer == RIG_FITS && full ? RIG_LATER : answer;
}
