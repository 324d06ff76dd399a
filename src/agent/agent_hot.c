/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent_device.h"
#include "agent_hot.h"
#include "agent_memory.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "agent_queue.h"
#include "agent_session.h"
#include "cond.h"

static struct pending *make_pending(bool own)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (p)
		p->own = own;
	return p;
}

/* ---- Code into the device's memory ---- */

struct upload {
	struct pending *p;
	struct built b;
};

static int build_upload(
        struct device *d, struct upload *u, struct staging *from, uintptr_t to, uint64_t bytes)
{
	const struct rig_copy_part copy = {.dst = {.slot = RIG_FIXED, .handle = to, .pitch = bytes},
	        .src = {.slot = RIG_FIXED, .handle = from->handle, .pitch = bytes},
	        .row_bytes = bytes,
	        .rows = 1};

	u->p = make_pending(true);
	if (!u->p || uses_make(&u->b.uses, 1))
		return rig_error_set(-ENOMEM, "the agent has no memory for a copy of code");
	return copy_build(&u->b, &copy, d);
}

static void unbuild_upload(struct device *d, struct upload *u)
{
	pending_free(d, u->p);
	work_unbuild(d, &u->b);
}

int hot_upload(struct device *d, struct staging *from, uint32_t image, uintptr_t to, uint64_t bytes)
{
	struct upload u = {0};
	int err = build_upload(d, &u, from, to, bytes);

	if (!u.p)
		staging_give(d, from);
	else
		u.p->in = from;
	if (!err) {
		image_hold(d, image);
		uses_add(&u.b.uses, true, image);
		if (queue_push(&d->hot_queue, ITEM_UPLOAD, &u, sizeof(u)))
			return 0;
		err = rig_error_set(-ENOMEM, "the agent has no memory for a copy of code");
	}
	unbuild_upload(d, &u);
	return err;
}

static struct upload upload_of(const struct item *item)
{
	struct upload u;

	memcpy(&u, item->payload, sizeof(u));
	return u;
}

void upload_give_up(struct device *d, const struct item *item)
{
	struct upload u = upload_of(item);

	unbuild_upload(d, &u);
}

static void do_upload(struct device *d, const struct item *item)
{
	struct upload u = upload_of(item);

	(void)work_hand_over(d, &u.b, 1, u.p);
	work_unbuild(d, &u.b);
}

/* ---- Questions about work ---- */

static int check_staged(struct device *d, const struct rig_rmt_work *work, const struct staging *in,
        const struct staging *out, struct built *b)
{
	int err = work_build(d, work, in, out, b), room;

	if (err)
		return err;
	b->nwaits = work->nwaits;
	(void)pthread_mutex_lock(&d->turn);
	(void)rig_error_set(0, "%s", "");
	room = d->hot->room(d->facts.edge, b->parts, work->nparts, b->nwaits, &b->run, b->scratch);
	(void)pthread_mutex_unlock(&d->turn);
	return room == RIG_NEVER ? -EINVAL : room < 0 ? room : 0;
}

int hot_check(struct device *d, const struct rig_rmt_work *work)
{
	struct staging *in, *out;
	struct built b = {0};
	int err;

	if (work_has_steps(d, work))
		return steps_check(work);
	in = work->local_in ? staging_take(d, work->local_in) : NULL;
	out = work->local_out ? staging_take(d, work->local_out) : NULL;
	if ((work->local_in && !in) || (work->local_out && !out))
		err = rig_error_set(-ENOMEM,
		        "the agent's machine has no pinned memory for a copy of %" PRIu64 " bytes",
		        work->local_in + work->local_out);
	else
		err = check_staged(d, work, in, out, &b);
	work_unbuild(d, &b);
	staging_give(d, in);
	staging_give(d, out);
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
	struct pending *p = make_pending(work->partial);

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
		(void)rig_cond_wait_ms(&d->changed, &d->lock, HOT_LOOK_MS);
	(void)pthread_mutex_unlock(&d->lock);
}

static void do_work(struct device *d, struct rig_rmt_work *work)
{
	struct pending *p = make_value(work);
	struct built b = {0};
	bool steps = work_has_steps(d, work);
	int err = p ? 0 : rig_error_set(-ENOMEM, "the agent has no memory for work");

	/* Tickets that nobody answers would be waited for until the job ends. */
	if (err)
		session_fail(d->session, "%s", rig_error());

	if (!err)
		err = steps ? steps_do(d, work, &b) : work_stage(d, work, p);
	if (!err)
		err = work_build(d, work, p->in, p->out, &b);
	if (!err && !steps)
		err = work_follow(d, work, &b);
	if (!err) {
		p->value = work->value;
		/* What is not told has no times: the driver would write them after p is freed. */
		p->timed = work->timed && !work->partial;
		p->nlaunches = b.nlaunches;
		(void)work_hand_over(d, &b, work->nparts, p);
		p = NULL;
	} else if (err == -EPROTO) {
		session_fail(d->session, "malformed: %s", rig_error());
	} else if (err == -ECONNABORTED) {
		await_end(d);
	} else if (!device_is_ending(d)) {
		/* What fails because it ends is no cause of that. */
		device_lose(d, "%s", rig_error());
	}
	pending_free(d, p);
	work_unbuild(d, &b);
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
	if (!rows_fit(f->offset, f->pitch, f->row_bytes, f->rows, size)) {
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
		err = copy_build(&b, &copy, d);
	if (!err) {
		/* The pending, where it was handed over, says the rest. */
		err = work_hand_over(d, &b, 1, p);
		p = NULL;
		if (err)
			(void)rig_error_set(err, "%s lost: %s", d->name, d->reason);
	}
	/* One that the driver failed to take is among the pending, which the device's end refuses. */
	if (err && err != -EPROTO && !b.shown)
		(f->parcel ? parcel_refuse : fetch_refuse)(d->session, f->machine, f->id, rig_error());
	pending_free(d, p);
	work_unbuild(d, &b);
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
	case ITEM_UPLOAD:
		do_upload(d, item);
		err = 0;
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
