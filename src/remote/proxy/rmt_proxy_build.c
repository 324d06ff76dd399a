/* SPDX-License-Identifier: MIT */
/* What submit is given lives during the call alone: this is the copy, with slots resolved. */
#include <stdlib.h>

#include "rmt_proxy.h"

struct count {
	size_t numbers, params, locals, foreigns;
};

static void count_side(struct count *c, const struct rig_run *run, const struct rig_copy_side *side)
{
	const struct region *region = rig_rmt_side_region(run, side);

	c->locals += region->kind == REGION_LOCAL;
	c->foreigns += region->kind == REGION_FOREIGN;
}

static struct count count_parts(const struct rig_part *parts, uint32_t nparts, const struct rig_run *run)
{
	struct count c = {0};
	uint32_t i;

	for (i = 0; i < nparts; i++) {
		c.numbers += parts[i].nafter;
		if (parts[i].kind == RIG_WORDS)
			c.numbers += parts[i].u.words.count;
		if (parts[i].kind == RIG_LAUNCH)
			c.params += parts[i].u.launch.params;
		if (parts[i].kind != RIG_COPY)
			continue;
		count_side(&c, run, &parts[i].u.copy.dst);
		if (!parts[i].u.copy.fill)
			count_side(&c, run, &parts[i].u.copy.src);
	}
	return c;
}

static uint32_t *put_numbers(uint32_t *at, const uint32_t *from, uint32_t n, const uint32_t **to)
{
	*to = at;
	if (n)
		memcpy(at, from, n * sizeof(*from));
	return at + n;
}

static void build_side(struct proxy *p, struct value *v, struct rig_rmt_side *to, const struct rig_run *run,
        const struct rig_copy_part *copy, bool in, uint32_t part)
{
	const struct rig_copy_side *side = in ? &copy->src : &copy->dst;
	const struct region *region = rig_rmt_side_region(run, side);
	uint64_t offset = side->offset + (side->slot == RIG_FIXED ? 0 : run->slots[side->slot].offset);

	to->region = region->id;
	to->offset = offset;
	to->pitch = side->pitch;
	if (region->kind == REGION_LOCAL) {
		to->where = RIG_RMT_LOCAL;
		v->locals[v->nlocals++] = (struct local){.at = region->host + offset,
		        .pitch = side->pitch,
		        .row_bytes = copy->row_bytes,
		        .rows = copy->rows,
		        .in = in,
		        .part = part};
		v->local_bytes += copy->row_bytes * copy->rows;
	} else if (region->kind == REGION_FOREIGN) {
		struct foreign *f = &v->foreigns[v->nforeigns++];

		f->machine = region->machine;
		f->part = part;
		f->fetch = (struct rig_rmt_fetch){.id = rig_rmt_next_fetch(p->m->job),
		        .machine = p->m->index,
		        .device = region->device,
		        .region = region->id,
		        .offset = offset,
		        .pitch = side->pitch,
		        .row_bytes = copy->row_bytes,
		        .rows = copy->rows};
		to->where = RIG_RMT_FOREIGN;
		to->region = f->fetch.id;
	}
}

static void build_launch(struct value *v, struct rig_rmt_part *to, const struct rig_run *run,
        const struct rig_launch_part *launch, uint8_t **params)
{
	to->function = (uint32_t)launch->launch;
	to->block = *rig_launch_block(run, launch);
	to->nparams = launch->params;
	to->params = *params;
	rig_launch_params(*params, run, launch);
	*params += launch->params;
	v->nlaunches++;
}

static void build_copy(struct proxy *p, struct value *v, const struct rig_run *run,
        const struct rig_copy_part *copy, uint32_t index)
{
	struct rig_rmt_part *to = &v->work.parts[index];

	to->row_bytes = copy->row_bytes;
	to->rows = copy->rows;
	to->fill = copy->fill;
	to->byte = copy->byte;
	build_side(p, v, &to->dst, run, copy, false, index);
	if (!to->fill)
		build_side(p, v, &to->src, run, copy, true, index);
}

static void build(struct proxy *p, struct value *v, const struct rig_part *parts, const struct rig_run *run)
{
	uint32_t *numbers = v->numbers, i;
	uint8_t *params = v->params;

	for (i = 0; i < v->work.nparts; i++) {
		const struct rig_part *from = &parts[i];
		struct rig_rmt_part *to = &v->work.parts[i];

		to->queue = from->queue;
		to->kind = from->kind;
		to->nafter = from->nafter;
		numbers = put_numbers(numbers, from->after, from->nafter, &to->after);
		if (from->kind == RIG_WORDS) {
			to->nwords = from->u.words.count;
			numbers = put_numbers(numbers, from->u.words.words, to->nwords, &to->words);
		} else if (from->kind == RIG_LAUNCH) {
			build_launch(v, to, run, &from->u.launch, &params);
		} else {
			build_copy(p, v, run, &from->u.copy, i);
		}
	}
}

/* ---- A large copy in pieces, so that the device copies one while another comes ---- */

static bool is_here(const struct rig_run *run, const struct rig_copy_side *side)
{
	return rig_rmt_side_region(run, side)->kind == REGION_REMOTE;
}

uint32_t rig_rmt_pieces_of(const struct rig_part *parts, uint32_t nparts, const struct rig_run *run)
{
	const struct rig_copy_part *copy = &parts[0].u.copy;

	if (nparts != 1 || parts[0].kind != RIG_COPY || copy->fill || copy->rows != 1 ||
	        copy->row_bytes > RIG_RMT_LOCAL_BYTES ||
	        (is_here(run, &copy->dst) && is_here(run, &copy->src)))
		return 1;
	/* The last has the rest too. */
	return copy->row_bytes < RIG_RMT_PIECE ? 1 : (uint32_t)(copy->row_bytes / RIG_RMT_PIECE);
}

static void build_pieces(
        struct proxy *p, struct value *v, const struct rig_part *part, const struct rig_run *run)
{
	struct rig_copy_part piece = part->u.copy;
	uint64_t left = piece.row_bytes;
	uint32_t i;

	for (i = 0; i < v->work.nparts; i++) {
		piece.row_bytes = i + 1 < v->work.nparts ? RIG_RMT_PIECE : left;
		v->work.parts[i].queue = part->queue;
		v->work.parts[i].kind = RIG_COPY;
		build_copy(p, v, run, &piece, i);
		piece.dst.offset += piece.row_bytes;
		piece.src.offset += piece.row_bytes;
		left -= piece.row_bytes;
	}
	v->pieces = true;
}

struct value *rig_rmt_value_make(struct proxy *p, uint64_t number, const struct rig_part *parts,
        uint32_t nparts, const struct rig_run *run)
{
	struct count c = count_parts(parts, nparts, run);
	uint32_t pieces = rig_rmt_pieces_of(parts, nparts, run);
	uint32_t n = pieces > 1 ? pieces : nparts;
	struct value *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->work.device = p->id;
	v->work.value = number;
	v->work.parts = calloc(n + 1, sizeof(*v->work.parts));
	v->numbers = malloc((c.numbers + 1) * sizeof(*v->numbers));
	/* rig_launch_params writes eight bytes at a time where refs are. */
	v->params = malloc(c.params + sizeof(uint64_t));
	v->locals = calloc(c.locals * pieces + 1, sizeof(*v->locals));
	v->foreigns = calloc(c.foreigns * pieces + 1, sizeof(*v->foreigns));
	if (!v->work.parts || !v->numbers || !v->params || !v->locals || !v->foreigns) {
		rig_rmt_value_free(v);
		return NULL;
	}
	v->work.nparts = n;
	if (pieces > 1)
		build_pieces(p, v, parts, run);
	else
		build(p, v, parts, run);
	return v;
}

static uint32_t count_steps(const struct value *v)
{
	uint32_t i, n = 0;

	for (i = 0; i < v->work.nparts; i++)
		if (v->work.parts[i].kind == RIG_WORDS)
			n += v->work.parts[i].nwords / RIG_REMOTE_STEP_WORDS;
	return n;
}

static void keep_part(struct proxy *p, struct value *v, const struct rig_rmt_part *part)
{
	uint32_t w;

	for (w = 0; w + RIG_REMOTE_STEP_WORDS <= part->nwords; w += RIG_REMOTE_STEP_WORDS) {
		struct made *made = rig_rmt_rails_keep(
		        p->m->job, part->words[w + 1] | (uint64_t)part->words[w + 2] << 32);

		/* Of none the agent says so. */
		if (made)
			v->rails[v->nrails++] = made;
	}
}

int rig_rmt_value_keep(struct proxy *p, struct value *v)
{
	uint32_t n = p->facts.host ? count_steps(v) : 0, i;

	if (!n)
		return 0;
	v->rails = calloc(n, sizeof(struct made *));
	if (!v->rails)
		return -ENOMEM;
	for (i = 0; i < v->work.nparts; i++)
		if (v->work.parts[i].kind == RIG_WORDS)
			keep_part(p, v, &v->work.parts[i]);
	return 0;
}

void rig_rmt_value_free(struct value *v)
{
	uint32_t i;

	if (!v)
		return;
	for (i = 0; i < v->nrails; i++)
		rig_rmt_rails_let(v->rails[i]);
	free(v->rails);
	free(v->work.parts);
	free(v->numbers);
	free(v->params);
	free(v->locals);
	free(v->foreigns);
	free(v);
}

void rig_rmt_values_free(struct value *first)
{
	while (first) {
		struct value *next = first->next;

		rig_rmt_value_free(first);
		first = next;
	}
}

void rig_rmt_value_end(struct proxy *p, struct value *v)
{
	if (!v->nrails) {
		rig_rmt_value_free(v);
		return;
	}
	v->next = p->spent;
	p->spent = v;
	(void)pthread_cond_broadcast(&p->moved);
}
