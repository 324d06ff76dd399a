/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "cond.h"
#include "clock.h"
#include "rig_remote.h"

enum {
	ALIGN = 16,
	LOOK_MS = 20, /* between two looks at words that nothing here announces */
	MOST_GROWTHS = 16,
};

/* What the hot functions take, made of a message. */
struct built {
	struct rig_part *parts;
	uint8_t *args, *scratch;
	struct rig_run run;
	struct rig_wait waits[RIG_RMT_WAITS];
	uint32_t nwaits, nlaunches;
	struct uses uses; /* the pending's, once handed over */
	uint64_t shown;   /* the device's value, once handed over */
};

static void unbuild(struct device *d, struct built *b)
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

/* Whether the rows lie within a region: drivers rely on it. */
static bool fits(uint64_t offset, uint64_t pitch, uint64_t row_bytes, uint64_t rows, uint64_t bytes)
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
	if (!region || !fits(from->offset, from->pitch, part->row_bytes, part->rows, bytes))
		return rig_error_set(
		        -EPROTO, "a copy names what is not in a region (number %" PRIu32 ")", from->region);
	d->m->locate(d->handle, region, &location);
	to->handle = location.handle;
	to->offset = from->offset;
	to->pitch = from->pitch;
	return 0;
}

static int build(struct device *d, const struct rig_rmt_work *work, const struct staging *in,
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

/* ---- Waits for other devices ---- */

static void nap(struct device *d, unsigned ms)
{
	(void)rig_cond_wait_ms(&d->changed, &d->lock, ms);
}

/* The device's value that stands for the controller's, once that was handed over; 0: it is reached.
   -ECANCELED: either device ends. */
static int translate(struct device *d, struct device *other, uint64_t value, uint64_t *shown)
{
	const struct pending *p;
	int err = 0;

	(void)pthread_mutex_lock(&other->lock);
	while (other->handed < value && !device_is_ending(other) && !device_is_ending(d))
		nap(other, LOOK_MS);
	if (other->handed < value)
		err = -ECANCELED;
	*shown = 0;
	for (p = other->head; p && !*shown; p = p->next)
		if (!p->own && p->value >= value)
			*shown = p->shown;
	(void)pthread_mutex_unlock(&other->lock);
	return err;
}

static int await_reached(struct device *d, struct device *other, uint64_t shown)
{
	int err = 0;

	if (!device_hold(other))
		return -ECANCELED;
	(void)pthread_mutex_lock(&other->lock);
	while (device_shown(other) < shown && !err) {
		if (device_is_ending(other) || device_is_ending(d))
			err = -ECANCELED;
		else
			nap(other, LOOK_MS);
	}
	(void)pthread_mutex_unlock(&other->lock);
	device_let(other);
	return err;
}

static bool waits_in_queue(const struct device *d, const struct device *other)
{
	if (other->own_word)
		return false;
	return other->facts.completion == RIG_STORE ? d->facts.waits.stores : d->facts.waits.hosts;
}

static int follow(struct device *d, const struct rig_rmt_work *work, struct built *b)
{
	uint32_t i;

	for (i = 0; i < work->nwaits; i++) {
		struct device *other = session_device(d->session, work->waits[i].device);
		uint64_t shown;
		int err;

		if (!other || other == d)
			return rig_error_set(-EPROTO, "work waits for device %" PRIu32 ", which is none",
			        work->waits[i].device);
		err = translate(d, other, work->waits[i].value, &shown);
		if (!err && shown && !waits_in_queue(d, other))
			err = await_reached(d, other, shown);
		else if (!err && shown)
			b->waits[b->nwaits++] = (struct rig_wait){.word = other->word, .value = shown};
		if (err)
			return rig_error_set(err, "%s, which work waits for, ended", other->name);
	}
	return 0;
}

/* ---- Handing over ---- */

static void append(struct device *d, struct pending *p)
{
	(void)pthread_mutex_lock(&d->lock);
	*d->tail = p;
	d->tail = &p->next;
	if (!p->own)
		d->handed = p->value;
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
}

/* With the turn, and room that fits. The pending is the done thread's afterwards. */
static int submit(struct device *d, struct built *b, uint32_t nparts, struct pending *p)
{
	const char *failure = NULL;
	uint64_t value = ++d->last;
	struct rig_times *times = p->timed ? &p->times : NULL;
	int answer;

	p->shown = b->shown = value;
	p->uses = b->uses;
	b->uses = (struct uses){0};
	append(d, p);
	answer = d->hot->submit(d->facts.edge, value, b->parts, nparts, b->waits, b->nwaits, &b->run,
	        b->scratch, times, &failure);
	if (answer == RIG_OK)
		answer = d->hot->commit(d->facts.edge, value, &failure);
	if (answer == RIG_OK || answer == RIG_COMMITTED)
		return 0;
	device_lose(d, "%s", failure ? failure : "the driver failed a submit without a reason");
	return -EIO;
}

static int grow(struct device *d, const struct built *b, uint32_t nparts)
{
	uint64_t missing = 0;
	const char *fault = NULL;
	int answer = d->m->grow(d->handle, b->parts, nparts, b->nwaits, &missing, &fault);

	if (answer == RIG_GROWN)
		return 0;
	if (answer == RIG_FAULT)
		device_lose(d, "%s", fault ? fault : "the driver faulted");
	else
		device_lose(d, "its queues need %" PRIu64 " bytes more to take the work", missing);
	return -EIO;
}

/* Waits until the device shows another value than `seen`. */
static int await_move(struct device *d, uint64_t seen)
{
	int err = 0;

	(void)pthread_mutex_lock(&d->lock);
	while (device_shown(d) == seen && !err) {
		if (device_is_ending(d))
			err = -ECANCELED;
		else
			nap(d, LOOK_MS);
	}
	(void)pthread_mutex_unlock(&d->lock);
	return err;
}

/* Takes the pending in any case. */
static int hand_over(struct device *d, struct built *b, uint32_t nparts, struct pending *p)
{
	unsigned growths = 0;
	int err = 0;

	while (!device_is_ending(d) && !err) {
		uint64_t seen = device_shown(d);
		int room;

		(void)pthread_mutex_lock(&d->turn);
		room = d->hot->room(d->facts.edge, b->parts, nparts, b->nwaits, &b->run, b->scratch);
		if (room == RIG_FITS) {
			err = submit(d, b, nparts, p);
			(void)pthread_mutex_unlock(&d->turn);
			return err;
		}
		(void)pthread_mutex_unlock(&d->turn);
		if (room == RIG_LATER)
			err = await_move(d, seen);
		else if (room == RIG_GROW && growths++ < MOST_GROWTHS)
			err = grow(d, b, nparts);
		else
			err = -EINVAL;
		if (err == -EINVAL)
			device_lose(d, "it never runs this: %s", rig_error());
	}
	pending_free(d, p);
	return err ? err : -ECANCELED;
}

static struct pending *make_pending(bool own)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (p)
		p->own = own;
	return p;
}

static int copy_part(struct built *b, const struct rig_copy_part *copy, const struct device *d)
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

int hot_copy(struct device *d, uintptr_t dst, uint64_t dst_at, uintptr_t src, uint64_t src_at, uint64_t bytes)
{
	const struct rig_copy_part copy = {
	        .dst = {.slot = RIG_FIXED, .handle = dst, .offset = dst_at, .pitch = bytes},
	        .src = {.slot = RIG_FIXED, .handle = src, .offset = src_at, .pitch = bytes},
	        .row_bytes = bytes,
	        .rows = 1};
	struct pending *p = make_pending(true);
	struct built b = {0};
	int err = p ? copy_part(&b, &copy, d) : -ENOMEM;

	if (err) {
		unbuild(d, &b);
		free(p);
		return err;
	}
	err = hand_over(d, &b, 1, p);
	if (!err)
		err = await_reached(d, d, b.shown);
	unbuild(d, &b);
	return err;
}

static int check_staged(
        struct device *d, const struct rig_rmt_work *work, const struct staging *any, struct built *b)
{
	int err = build(d, work, any, any, b), room;

	if (err)
		return err;
	b->nwaits = work->nwaits;
	(void)pthread_mutex_lock(&d->turn);
	(void)rig_error_set(0, "%s", "");
	room = d->hot->room(d->facts.edge, b->parts, work->nparts, b->nwaits, &b->run, b->scratch);
	(void)pthread_mutex_unlock(&d->turn);
	return room == RIG_NEVER ? -EINVAL : 0;
}

/* ---- Bytes that come with a value ---- */

/* Bytes [at + *done, ...) of a value's, at most up to at + bytes. */
static int lay_item(struct device *d, const struct rig_rmt_work *work, const struct item *item, uint8_t *to,
        uint64_t at, uint64_t bytes, uint64_t *done)
{
	struct rig_rmt_in in = rig_rmt_in_of(item->payload, item->bytes);
	uint32_t device = rig_rmt_get32(&in);
	uint64_t value = rig_rmt_get64(&in), from = rig_rmt_get64(&in);

	if (in.bad || item->kind != RIG_RMT_DATA || device != d->id || value != work->value ||
	        from != at + *done || !in.left || in.left > bytes - *done) {
		session_fail(d->session, "malformed: bytes that no value waits for");
		return -EPROTO;
	}
	memcpy(to + from, in.at, in.left);
	*done += in.left;
	return 0;
}

static int lay_messages(
        struct device *d, const struct rig_rmt_work *work, uint8_t *to, uint64_t at, uint64_t bytes)
{
	uint64_t done = 0;
	int err = 0;

	while (done < bytes && !err) {
		struct item *item = queue_pop(&d->hot_queue, LOOK_MS);

		if (device_is_ending(d) || queue_is_closed(&d->hot_queue))
			err = -ECANCELED;
		if (item && !err)
			err = lay_item(d, work, item, to, at, bytes, &done);
		free(item);
	}
	return err;
}

/* Lays down what comes for a part: the controller's bytes, or what other agents send. */
static int lay_part(
        struct device *d, const struct rig_rmt_work *work, uint32_t index, uint8_t *to, uint64_t at)
{
	const struct rig_rmt_part *part = &work->parts[index];
	uint64_t bytes = part->row_bytes * part->rows;

	switch (part->src.where) {
	case RIG_RMT_FOREIGN:
		return fetch_take(d, part->src.region, to + at, bytes);
	case RIG_RMT_FOREIGN_PARCEL:
		return parcel_fetch(d, &part->src, to + at, bytes);
	case RIG_RMT_LOCAL_PARCEL:
		return parcel_take(d, work->value, index, to + at, bytes);
	default:
		return lay_messages(d, work, to, at, bytes);
	}
}

static int lay_down(struct device *d, const struct rig_rmt_work *work, uint8_t *to)
{
	uint64_t at = 0;
	uint32_t i;
	int err = 0;

	for (i = 0; i < work->nparts && !err; i++) {
		const struct rig_rmt_part *part = &work->parts[i];

		if (part->kind != RIG_COPY || part->fill || part->src.where == RIG_RMT_HERE)
			continue;
		err = lay_part(d, work, i, to, at);
		at += part->row_bytes * part->rows;
	}
	if (err)
		sources_give_up(d->session, work, i);
	return err;
}

static int stage(struct device *d, const struct rig_rmt_work *work, struct pending *p)
{
	if (work->local_in)
		p->in = staging_take(d, work->local_in);
	if (work->local_out)
		p->out = staging_take(d, work->local_out);
	p->out_bytes = work->local_out;
	if ((work->local_in && !p->in) || (work->local_out && !p->out)) {
		device_lose(d, "the agent's machine has no pinned memory for a copy of %" PRIu64 " bytes",
		        work->local_in + work->local_out);
		sources_give_up(d->session, work, 0);
		return -ENOMEM;
	}
	return work->local_in ? lay_down(d, work, p->in->host) : 0;
}

/* Work of the machine's own queue: steps of rails, and nothing beside them. */
static bool has_steps(const struct device *d, const struct rig_rmt_work *work)
{
	return d->host && work->nparts && work->parts[0].kind == RIG_WORDS;
}

static int check_steps(const struct rig_rmt_work *work)
{
	uint32_t i, w;

	for (i = 0; i < work->nparts; i++) {
		const struct rig_rmt_part *part = &work->parts[i];

		if (part->kind != RIG_WORDS || part->nwords % RIG_REMOTE_STEP_WORDS)
			return rig_error_set(-EINVAL,
			        "part %" PRIu32
			        ": work with steps has no other, and steps have %u words each",
			        i, RIG_REMOTE_STEP_WORDS);
		for (w = 0; w < part->nwords; w += RIG_REMOTE_STEP_WORDS)
			if (!part->words[w] || part->words[w] > RIG_REMOTE_ADVANCE)
				return rig_error_set(
				        -EINVAL, "part %" PRIu32 ": no step is %" PRIu32, i, part->words[w]);
	}
	return 0;
}

static int run_steps(struct device *d, const struct rig_rmt_work *work)
{
	uint32_t i, w;
	int err = check_steps(work);

	for (i = 0; i < work->nparts && !err; i++)
		for (w = 0; w < work->parts[i].nwords && !err; w += RIG_REMOTE_STEP_WORDS)
			err = rails_step(d, work->parts[i].words + w);
	return err;
}

/* The machine's memory does its work in submit, so its earlier values are complete: the steps are taken here,
   and the value that is handed over is empty. */
static int do_steps(struct device *d, struct rig_rmt_work *work, struct built *b)
{
	int err = follow(d, work, b);
	uint32_t i;

	if (!err)
		err = run_steps(d, work);
	for (i = 0; i < work->nparts; i++) {
		free((void *)(uintptr_t)work->parts[i].after);
		free((void *)(uintptr_t)work->parts[i].words);
		free((void *)(uintptr_t)work->parts[i].params);
	}
	work->nparts = 0;
	return err;
}

int hot_check(struct device *d, const struct rig_rmt_work *work)
{
	struct staging *any;
	struct built b;
	int err;

	if (has_steps(d, work))
		return check_steps(work);
	/* Any memory that is staging will do: no byte of it is touched. */
	any = staging_take(d, 1);
	err = any ? check_staged(d, work, any, &b)
	          : rig_error_set(-ENOMEM, "the agent's machine has no pinned memory");

	if (any)
		unbuild(d, &b);
	staging_give(d, any);
	return err;
}

/* What the value brings the controller, as build lays it into staging memory. */
static int note_outgoing(const struct rig_rmt_work *work, struct pending *p)
{
	uint64_t at = 0;
	uint32_t i;

	p->outgoing = calloc(work->nparts + 1, sizeof(*p->outgoing));
	for (i = 0; p->outgoing && i < work->nparts; i++) {
		const struct rig_rmt_part *part = &work->parts[i];
		uint64_t bytes = part->row_bytes * part->rows;

		if (part->kind != RIG_COPY || part->dst.where == RIG_RMT_HERE)
			continue;
		p->outgoing[p->noutgoing++] = (struct outgoing){.at = at,
		        .bytes = bytes,
		        .parcel = part->dst.where == RIG_RMT_LOCAL_PARCEL,
		        .ticket = part->dst.ticket};
		at += bytes;
	}
	return p->outgoing ? 0 : -ENOMEM;
}

static int note_waits(const struct rig_rmt_work *work, struct pending *p)
{
	if (!work->nwaits)
		return 0;
	p->waits = malloc(work->nwaits * sizeof(*p->waits));
	if (!p->waits)
		return -ENOMEM;
	memcpy(p->waits, work->waits, work->nwaits * sizeof(*p->waits));
	p->nwaits = work->nwaits;
	return 0;
}

static struct pending *make_value(const struct rig_rmt_work *work)
{
	struct pending *p = make_pending(false);

	if (p && (note_outgoing(work, p) || note_waits(work, p))) {
		free(p->outgoing);
		free(p);
		p = NULL;
	}
	return p;
}

/* What came before did not come: the stop that follows is waited for, so that nothing overtakes it. */
static void await_end(struct device *d)
{
	(void)pthread_mutex_lock(&d->lock);
	while (!device_is_ending(d))
		nap(d, LOOK_MS);
	(void)pthread_mutex_unlock(&d->lock);
}

static void do_work(struct device *d, struct rig_rmt_work *work)
{
	struct pending *p = make_value(work);
	struct built b = {0};
	bool steps = has_steps(d, work);
	int err = p ? 0 : rig_error_set(-ENOMEM, "the agent has no memory for work");

	/* Tickets that nobody answers would be waited for until the job ends. */
	if (err)
		session_fail(d->session, "%s", rig_error());

	if (!err)
		err = steps ? do_steps(d, work, &b) : stage(d, work, p);
	if (!err)
		err = build(d, work, p->in, p->out, &b);
	if (!err && !steps)
		err = follow(d, work, &b);
	if (!err) {
		p->value = work->value;
		p->timed = work->timed;
		p->nlaunches = b.nlaunches;
		(void)hand_over(d, &b, work->nparts, p);
		p = NULL;
	} else if (err == -EPROTO) {
		session_fail(d->session, "malformed: %s", rig_error());
	} else if (err == -ECONNABORTED) {
		await_end(d);
	} else if (err != -ECANCELED || !device_is_ending(d)) {
		device_lose(d, "%s", rig_error());
	}
	pending_free(d, p);
	unbuild(d, &b);
}

/* What a fetch copies from, in *p, *uses and *copy; an error has its text in rig_error(). */
static int prepare_fetch(struct device *d, const struct rig_rmt_fetch *f, struct rig_copy_part *copy,
        struct pending *p, struct uses *uses)
{
	uint64_t bytes = f->row_bytes * f->rows, size = 0;
	struct rig_location at;
	void *region;

	if (uses_make(uses, 1))
		return rig_error_set(-ENOMEM, "the agent has no memory");
	region = region_hold(d, f->region, &size);
	/* A region that is gone was another, lost device's to copy. */
	if (!region)
		return rig_error_set(-ENOENT, "%s has no such region any more", d->name);
	uses_add(uses, false, f->region);
	if (!fits(f->offset, f->pitch, f->row_bytes, f->rows, size)) {
		session_fail(d->session, "malformed: a copy from what is not in a region");
		return -EPROTO;
	}
	p->out = staging_take(d, bytes);
	if (!p->out)
		return rig_error_set(
		        -ENOMEM, "%s: no pinned memory for a copy of %" PRIu64 " bytes", d->name, bytes);
	d->m->locate(d->handle, region, &at);
	copy->src = (struct rig_copy_side){RIG_FIXED, at.handle, f->offset, f->pitch};
	copy->dst = (struct rig_copy_side){RIG_FIXED, p->out->handle, 0, f->row_bytes};
	copy->row_bytes = f->row_bytes;
	copy->rows = f->rows;
	p->out_bytes = bytes;
	p->fetched = true;
	p->parcel = f->parcel;
	p->fetch = f->id;
	p->machine = f->machine;
	return 0;
}

/* A region's bytes, on their way to another device. */
static void do_fetch(struct device *d, const struct rig_rmt_fetch *f)
{
	struct rig_copy_part copy = {0};
	struct pending *p = make_pending(true);
	struct built b = {0};
	int err = p ? prepare_fetch(d, f, &copy, p, &b.uses)
	            : rig_error_set(-ENOMEM, "the agent has no memory");

	if (!err)
		err = copy_part(&b, &copy, d);
	if (!err) {
		/* The pending, where it was handed over, says the rest. */
		err = hand_over(d, &b, 1, p);
		p = NULL;
		if (err)
			(void)rig_error_set(err, "%s lost: %s", d->name, d->reason);
	}
	/* One that the driver failed to take is among the pending, which the device's end refuses. */
	if (err && err != -EPROTO && !b.shown)
		(f->parcel ? parcel_refuse : fetch_refuse)(d->session, f->machine, f->id, rig_error());
	pending_free(d, p);
	unbuild(d, &b);
}

static void take(struct device *d, const struct item *item)
{
	struct rig_rmt_work work;
	struct rig_rmt_fetch fetch;
	int err;

	switch (item->kind) {
	case RIG_RMT_SUBMIT:
		err = rig_rmt_work_parse(item->payload, item->bytes, &work);
		if (!err) {
			do_work(d, &work);
			rig_rmt_work_free(&work);
		}
		break;
	case RIG_RMT_FETCH:
		err = rig_rmt_fetch_parse(item->payload, item->bytes, &fetch);
		if (!err)
			do_fetch(d, &fetch);
		break;
	default:
		err = -EPROTO;
	}
	if (err)
		session_fail(d->session, "malformed: a message of work");
}

void *hot_run(void *device)
{
	struct device *d = device;

	while (!device_is_ending(d) && !queue_is_closed(&d->hot_queue)) {
		struct item *item = queue_pop(&d->hot_queue, 1000);

		if (item)
			take(d, item);
		free(item);
	}
	return NULL;
}
