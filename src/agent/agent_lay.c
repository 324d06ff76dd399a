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

/* What another proxy fetches from this device, or code on its way, may come in between: its turn is after
   this. */
static bool is_no_byte(uint8_t kind)
{
	return kind == RIG_RMT_FETCH || kind == ITEM_UPLOAD;
}

static int lay_messages(
        struct device *d, const struct rig_rmt_work *work, uint8_t *to, uint64_t at, uint64_t bytes)
{
	uint64_t done = 0;
	int err = 0;

	while (done < bytes && !err) {
		struct item *item = queue_pop_past(&d->hot_queue, is_no_byte, HOT_LOOK_MS);

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
		return parcel_take(d, work->value, work->first + index, to + at, bytes);
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

int work_stage(struct device *d, const struct rig_rmt_work *work, struct pending *p)
{
	if (work->local_in)
		p->in = staging_await(d, work->local_in, 0);
	if (work->local_out)
		p->out = staging_await(d, work->local_out, p->in != NULL);
	p->out_bytes = work->local_out;
	/* Of what the controller was told that it fits, and other machines' copies have taken since. */
	if ((work->local_in && !p->in) || (work->local_out && !p->out)) {
		device_lose(d, "the agent's machine has no pinned memory for a copy of %" PRIu64 " bytes",
		        work->local_in + work->local_out);
		sources_give_up(d->session, work, 0);
		return -ENOMEM;
	}
	return work->local_in ? lay_down(d, work, p->in->host) : 0;
}
