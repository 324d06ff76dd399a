/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "rt.h"

#define REF_ALIGN   8u
#define BLOCK_ALIGN 16u

/* What is being built: `block` is one allocation for all that parts point to. */
struct draft {
	struct rig_submission *s;
	const struct rig_description *d;
	uint8_t *at;
};

static int bad(uint32_t part, const char *what)
{
	return rig_error_set(-EINVAL, "part %" PRIu32 ": %s", part, what);
}

/* ---- Placement (E-084 to E-090) ---- */

static int first_queue(const struct rig_facts *facts, uint32_t runs)
{
	uint32_t i;

	for (i = 0; i < facts->nqueues; i++)
		if ((facts->queues[i].runs & runs) == runs)
			return (int)i;
	return -1;
}

static int copy_queue(const struct draft *f, const struct rig_work *work)
{
	const struct rig_facts *facts = &f->s->device->facts;
	uint32_t latest = 0, i, queue;

	for (i = 0; i < work->nafter; i++)
		if (work->after[i] > latest)
			latest = work->after[i];
	if (work->nafter) {
		queue = f->s->parts[latest].queue;
		if (facts->queues[queue].runs & RIG_RUNS(RIG_COPY))
			return (int)queue;
	}
	return facts->has_copy_engine ? facts->copy_engine : -1;
}

static int queue_of(const struct draft *f, const struct rig_work *work)
{
	const struct rig_facts *facts = &f->s->device->facts;
	int queue;

	if (work->kind == RIG_COPY)
		return copy_queue(f, work);
	if (work->kind != RIG_WORDS)
		return first_queue(facts, RIG_RUNS(work->kind));
	queue = first_queue(facts, RIG_RUNS(RIG_LAUNCH) | RIG_RUNS(RIG_WORDS));
	return queue >= 0 ? queue : first_queue(facts, RIG_RUNS(RIG_WORDS));
}

/* ---- Storage ---- */

static void *take(struct draft *f, size_t bytes)
{
	void *at = f->at;

	f->at += (bytes + BLOCK_ALIGN - 1) & ~(size_t)(BLOCK_ALIGN - 1);
	return at;
}

static size_t rounded(uint64_t n, size_t bytes)
{
	return ((size_t)n * bytes + BLOCK_ALIGN - 1) & ~(size_t)(BLOCK_ALIGN - 1);
}

/* A launch without a name is refused later. */
static size_t name_bytes(const struct rig_work *work)
{
	return rounded(work->u.launch.function ? strlen(work->u.launch.function) + 1 : 0, 1);
}

static size_t block_bytes(const struct rig_description *d)
{
	size_t bytes = 0;
	uint32_t i;

	for (i = 0; i < d->nparts; i++) {
		const struct rig_work *work = &d->parts[i];

		bytes += rounded(work->nafter, sizeof(uint32_t));
		if (work->kind == RIG_WORDS)
			bytes += rounded(work->u.words.count, sizeof(uint32_t));
		if (work->kind == RIG_LAUNCH)
			bytes += rounded(work->u.launch.nrefs, sizeof(struct rig_ref)) + name_bytes(work);
	}
	return bytes;
}

static uint32_t count_fixed(const struct rig_description *d)
{
	uint32_t n = d->nfixed, i;

	for (i = 0; i < d->nparts; i++) {
		if (d->parts[i].kind != RIG_COPY)
			continue;
		n += d->parts[i].u.copy.dst.slot == RIG_FIXED;
		n += !d->parts[i].u.copy.fill && d->parts[i].u.copy.src.slot == RIG_FIXED;
	}
	return n;
}

static int allocate(struct draft *f)
{
	struct rig_submission *s = f->s;
	const struct rig_description *d = f->d;
	uint32_t nfixed = count_fixed(d);

	s->parts = calloc(d->nparts + 1u, sizeof(*s->parts));
	s->launches = calloc(d->nparts + 1u, sizeof(*s->launches));
	s->images = calloc(d->nparts + 1u, sizeof(struct rig_image *));
	s->rules = calloc(s->nslots + 1u, sizeof(*s->rules));
	s->fixed = calloc(nfixed + 1u, sizeof(struct rig_buffer *));
	s->fixed_uses = calloc(nfixed + 1u, sizeof(*s->fixed_uses));
	s->block = calloc(1, block_bytes(d) + 1u);
	s->scratch = aligned_alloc(BLOCK_ALIGN, ((size_t)d->nparts + 1) * RIG_SCRATCH);
	if (!s->parts || !s->launches || !s->images || !s->rules || !s->fixed || !s->fixed_uses ||
	        !s->block || !s->scratch)
		return rig_error_set(
		        -ENOMEM, "no host memory for a submission of %" PRIu32 " parts", d->nparts);
	memset(s->scratch, 0, ((size_t)d->nparts + 1) * RIG_SCRATCH);
	f->at = s->block;
	return 0;
}

/* ---- Parts ---- */

static int add_fixed(struct draft *f, struct rig_buffer *buffer, bool write, const char *what)
{
	struct rig_submission *s = f->s;
	struct rig_rt_use *use = &s->fixed_uses[s->nfixed];
	int code;

	if (!buffer)
		return rig_error_set(-EINVAL, "%s: the buffer is NULL", what);
	if (buffer->device != s->device)
		return rig_error_set(-EINVAL, "%s: the buffer is %s's, not %s's; borrow it", what,
		        buffer->device->name, s->device->name);
	code = rig_rt_use_set(use, buffer->mem, s->device, write);
	if (code)
		return code;
	s->fixed[s->nfixed++] = rig_buffer_get(buffer);
	return 0;
}

static int set_after(struct draft *f, uint32_t index, const struct rig_work *work)
{
	struct rig_part *part = &f->s->parts[index];
	uint32_t *after = take(f, work->nafter * sizeof(*after)), i;

	part->after = after;
	for (i = 0; i < work->nafter; i++)
		/* Parts of one queue run in their order anyway. */
		if (f->s->parts[work->after[i]].queue != part->queue)
			after[part->nafter++] = work->after[i];
	return 0;
}

static int check_after(uint32_t index, const struct rig_work *work)
{
	uint32_t i, k;

	if (work->nafter && !work->after)
		return bad(index, "after is NULL");
	for (i = 0; i < work->nafter; i++) {
		if (work->after[i] >= index)
			return rig_error_set(-EINVAL,
			        "part %" PRIu32 ": after[%" PRIu32 "] is %" PRIu32 ", not an earlier part",
			        index, i, work->after[i]);
		for (k = 0; k < i; k++)
			if (work->after[k] == work->after[i])
				return bad(index, "after names a part twice");
	}
	return 0;
}

static int set_words(struct draft *f, uint32_t index, const struct rig_work *work)
{
	uint32_t *words;

	if (!work->u.words.count || !work->u.words.words)
		return bad(index, "words must be at least 1");
	words = take(f, work->u.words.count * sizeof(*words));
	memcpy(words, work->u.words.words, work->u.words.count * sizeof(*words));
	f->s->parts[index].u.words.words = words;
	f->s->parts[index].u.words.count = work->u.words.count;
	return 0;
}

/* The bytes from the buffer's start that a side reaches; false: it overflows. */
static bool side_extent(const struct rig_side *side, const struct rig_copy_work *copy, uint64_t *extent)
{
	uint64_t pitch = side->pitch ? side->pitch : copy->row_bytes, span;

	return !__builtin_mul_overflow(pitch, copy->rows - 1, &span) &&
	       !__builtin_add_overflow(span, copy->row_bytes, &span) &&
	       !__builtin_add_overflow(span, side->offset, extent);
}

static int set_side(
        struct draft *f, uint32_t index, const struct rig_side *side, struct rig_copy_side *out, bool write)
{
	const struct rig_copy_work *copy = &f->d->parts[index].u.copy;
	struct rig_submission *s = f->s;
	uint64_t extent;
	int code;

	if (!side_extent(side, copy, &extent))
		return bad(index, "the copy's rows exceed 2^64 bytes");
	if (side->pitch && side->pitch < copy->row_bytes)
		return bad(index, "a pitch below row_bytes");
	out->slot = side->slot;
	out->pitch = side->pitch ? side->pitch : copy->row_bytes;
	out->offset = side->offset;
	if (side->slot != RIG_FIXED) {
		if (side->slot >= s->nslots || (write && side->slot < s->reads))
			return rig_error_set(-EINVAL, "part %" PRIu32 ": slot %" PRIu32 " is %s", index,
			        side->slot,
			        side->slot >= s->nslots ? "not below reads + writes" : "read, not written");
		if (s->rules[side->slot].least < extent)
			s->rules[side->slot].least = extent;
		return 0;
	}
	code = add_fixed(f, side->buffer, write, "a side of a copy");
	if (code)
		return code;
	out->handle = side->buffer->at.handle;
	out->offset += side->buffer->offset;
	return rig_rt_buffer_bounds(side->buffer, "a side of a copy", 0, extent);
}

static int set_copy(struct draft *f, uint32_t index, const struct rig_work *work)
{
	struct rig_copy_part *copy = &f->s->parts[index].u.copy;
	int code;

	if (!work->u.copy.row_bytes || !work->u.copy.rows)
		return bad(index, "row_bytes and rows must be at least 1");
	copy->row_bytes = work->u.copy.row_bytes;
	copy->rows = work->u.copy.rows;
	copy->fill = work->u.copy.fill;
	copy->byte = work->u.copy.byte;
	code = set_side(f, index, &work->u.copy.dst, &copy->dst, true);
	if (!code && !copy->fill)
		code = set_side(f, index, &work->u.copy.src, &copy->src, false);
	return code;
}

static int check_refs(struct draft *f, uint32_t index, const struct rig_launch_work *launch, uint32_t most)
{
	uint32_t i, k;

	if (launch->nrefs && !launch->refs)
		return bad(index, "refs is NULL");
	for (i = 0; i < launch->nrefs; i++) {
		const struct rig_ref *ref = &launch->refs[i];

		if (ref->at % REF_ALIGN || ref->at > most || most - ref->at < REF_ALIGN)
			return rig_error_set(-EINVAL,
			        "part %" PRIu32 ": ref %" PRIu32 " at %" PRIu32
			        " is no multiple of 8 with 8 bytes before %" PRIu32,
			        index, i, ref->at, most);
		if (ref->slot >= f->s->nslots)
			return rig_error_set(-EINVAL,
			        "part %" PRIu32 ": ref %" PRIu32 " names slot %" PRIu32 " of %" PRIu32, index,
			        i, ref->slot, f->s->nslots);
		for (k = 0; k < i; k++)
			if (launch->refs[k].at == ref->at)
				return bad(index, "two refs at the same byte");
		f->s->rules[ref->slot].needs_address = true;
	}
	return 0;
}

static int check_params(uint32_t index, const struct rig_launch_work *launch, const struct rig_entry *entry)
{
	if (launch->params > RIG_PARAMS)
		return rig_error_set(-EINVAL, "part %" PRIu32 ": %" PRIu32 " parameter bytes exceed %u",
		        index, launch->params, RIG_PARAMS);
	if (entry->has_params && launch->params < entry->params)
		return rig_error_set(-EINVAL,
		        "part %" PRIu32 ": \"%s\" reads %" PRIu32
		        " parameter bytes, the launch gives %" PRIu32,
		        index, launch->function, entry->params, launch->params);
	return 0;
}

static int set_launch(struct draft *f, uint32_t index, const struct rig_work *work)
{
	const struct rig_launch_work *launch = &work->u.launch;
	struct rig_launch_part *part = &f->s->parts[index].u.launch;
	struct rig_submission *s = f->s;
	struct rig_entry entry;
	struct rig_ref *refs;
	char *name;
	int code;

	if (!launch->image || !launch->function || launch->image->device != s->device)
		return bad(index, "a launch names a function of an image of the submission's device");
	code = rig_image_entry(launch->image, launch->function, &entry);
	if (!code)
		code = check_params(index, launch, &entry);
	/* A ref past what the function reads would be lost. */
	if (!code)
		code = check_refs(f, index, launch, entry.has_params ? entry.params : launch->params);
	if (code)
		return code;
	s->images[s->nimages++] = rig_image_get(launch->image);
	refs = take(f, launch->nrefs * sizeof(*refs));
	if (launch->nrefs)
		memcpy(refs, launch->refs, launch->nrefs * sizeof(*refs));
	part->code = entry.code;
	part->launch = entry.launch;
	part->params = launch->params;
	part->refs = refs;
	part->nrefs = launch->nrefs;
	part->block = (uint32_t)s->args_bytes;
	s->args_bytes += rounded(1, sizeof(struct rig_block) + launch->params);
	name = take(f, name_bytes(work));
	(void)strcpy(name, launch->function);
	s->launches[index].function = name;
	s->launches[index].has_threads = entry.has_threads;
	s->launches[index].threads = entry.threads;
	return s->args_bytes <= UINT32_MAX ? 0 : bad(index, "the launches' parameters exceed 4 GiB");
}

static int set_fill(struct draft *f, uint32_t index, const struct rig_work *work)
{
	if (!work->u.fill.fill)
		return bad(index, "the fill function is NULL");
	f->s->parts[index].u.fill = work->u.fill;
	return 0;
}

static int set_kind(struct draft *f, uint32_t index, const struct rig_work *work)
{
	switch (work->kind) {
	case RIG_WORDS:
		return set_words(f, index, work);
	case RIG_FILL:
		return set_fill(f, index, work);
	case RIG_COPY:
		return set_copy(f, index, work);
	case RIG_LAUNCH:
		return set_launch(f, index, work);
	}
	return bad(index, "no kind of work");
}

static int set_part(struct draft *f, uint32_t index)
{
	const struct rig_work *work = &f->d->parts[index];
	int code = check_after(index, work), queue;

	if (code)
		return code;
	if (work->kind < RIG_WORDS || work->kind > RIG_LAUNCH)
		return bad(index, "no kind of work");
	queue = queue_of(f, work);
	if (queue < 0)
		return rig_error_set(-ENOTSUP, "part %" PRIu32 ": no queue of %s runs work of kind %d", index,
		        f->s->device->name, (int)work->kind);
	f->s->parts[index].kind = work->kind;
	f->s->parts[index].queue = (uint32_t)queue;
	f->s->nparts = index + 1;
	code = set_after(f, index, work);
	return code ? code : set_kind(f, index, work);
}

int rig_rt_describe(struct rig_submission *s, const struct rig_description *description)
{
	struct draft f = {.s = s, .d = description};
	uint32_t i;
	int code = description->nparts ? rig_rt_given(description->parts, "parts") : 0;

	if (!code && description->nfixed)
		code = rig_rt_given(description->fixed, "fixed");
	if (code)
		return code;
	if (__builtin_add_overflow(description->reads, description->writes, &s->nslots) ||
	        s->nslots == UINT32_MAX)
		return rig_error_set(-EINVAL, "reads + writes exceed the slots of a run");
	s->reads = description->reads;
	code = allocate(&f);
	for (i = 0; i < description->nfixed && !code; i++)
		code = add_fixed(
		        &f, description->fixed[i].buffer, description->fixed[i].access == RIG_WRITE, "fixed");
	for (i = 0; i < description->nparts && !code; i++)
		code = set_part(&f, i);
	return code;
}
