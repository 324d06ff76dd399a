/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rmt_frames.h"

/* A flag is 0 or 1. */
static bool get_flag(struct rig_rmt_in *in)
{
	uint8_t v = rig_rmt_get8(in);

	in->bad |= v > 1;
	return v == 1;
}

int rig_rmt_join_parse(const uint8_t *bytes, size_t n, struct rig_rmt_join *join)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	const uint8_t *token;

	memset(join, 0, sizeof(*join));
	join->role = rig_rmt_get32(&in);
	token = rig_rmt_get_bytes(&in, RIG_RMT_TOKEN);
	if (token)
		memcpy(join->token, token, RIG_RMT_TOKEN);
	join->silence_ms = rig_rmt_get32(&in);
	rig_rmt_get_text(&in, join->machine, sizeof(join->machine));
	join->to = rig_rmt_get32(&in);
	return rig_rmt_in_end(&in);
}

void rig_rmt_join_put(struct rig_rmt_out *out, const struct rig_rmt_join *join)
{
	rig_rmt_put32(out, join->role);
	rig_rmt_put_bytes(out, join->token, RIG_RMT_TOKEN);
	rig_rmt_put32(out, join->silence_ms);
	rig_rmt_put_text(out, join->machine);
	rig_rmt_put32(out, join->to);
}

int rig_rmt_answer_parse(struct rig_rmt_in *in, struct rig_rmt_answer *answer)
{
	answer->request = rig_rmt_get32(in);
	answer->status = (int32_t)rig_rmt_get32(in);
	rig_rmt_get_text(in, answer->text, sizeof(answer->text));
	return in->bad ? -EPROTO : 0;
}

void rig_rmt_answer_put(struct rig_rmt_out *out, const struct rig_rmt_answer *answer)
{
	rig_rmt_put32(out, answer->request);
	rig_rmt_put32(out, (uint32_t)answer->status);
	rig_rmt_put_text(out, answer->text);
}

static uint32_t get_count(struct rig_rmt_in *in, uint32_t most)
{
	uint32_t n = rig_rmt_get32(in);

	if (n <= most)
		return n;
	in->bad = true;
	return 0;
}

int rig_rmt_facts_parse(struct rig_rmt_in *in, struct rig_rmt_facts *f)
{
	uint32_t i;

	memset(f, 0, sizeof(*f));
	f->device = rig_rmt_get32(in);
	f->host = get_flag(in);
	rig_rmt_get_text(in, f->name, sizeof(f->name));
	rig_rmt_get_text(in, f->arch, sizeof(f->arch));
	rig_rmt_get_text(in, f->bus, sizeof(f->bus));
	f->budget = rig_rmt_get64(in);
	f->nqueues = get_count(in, RIG_RMT_QUEUES);
	for (i = 0; i < f->nqueues; i++) {
		rig_rmt_get_text(in, f->queues[i].name, sizeof(f->queues[i].name));
		f->queues[i].runs = rig_rmt_get32(in);
	}
	f->has_copy_engine = get_flag(in);
	f->copy_engine = rig_rmt_get32(in);
	f->has_hang_ms = get_flag(in);
	f->hang_ms = (int64_t)rig_rmt_get64(in);
	f->alignment = (int64_t)rig_rmt_get64(in);
	f->has_cache_bytes = get_flag(in);
	f->cache_bytes = (int64_t)rig_rmt_get64(in);
	f->staged = rig_rmt_get64(in);
	f->ncounters = get_count(in, RIG_RMT_COUNTERS);
	for (i = 0; i < f->ncounters; i++) {
		rig_rmt_get_text(in, f->counters[i].name, sizeof(f->counters[i].name));
		f->counters[i].values = rig_rmt_get32(in);
	}
	return rig_rmt_in_end(in);
}

void rig_rmt_facts_put(struct rig_rmt_out *out, const struct rig_rmt_facts *f)
{
	uint32_t i;

	rig_rmt_put32(out, f->device);
	rig_rmt_put8(out, f->host);
	rig_rmt_put_text(out, f->name);
	rig_rmt_put_text(out, f->arch);
	rig_rmt_put_text(out, f->bus);
	rig_rmt_put64(out, f->budget);
	rig_rmt_put32(out, f->nqueues);
	for (i = 0; i < f->nqueues; i++) {
		rig_rmt_put_text(out, f->queues[i].name);
		rig_rmt_put32(out, f->queues[i].runs);
	}
	rig_rmt_put8(out, f->has_copy_engine);
	rig_rmt_put32(out, f->copy_engine);
	rig_rmt_put8(out, f->has_hang_ms);
	rig_rmt_put64(out, (uint64_t)f->hang_ms);
	rig_rmt_put64(out, (uint64_t)f->alignment);
	rig_rmt_put8(out, f->has_cache_bytes);
	rig_rmt_put64(out, (uint64_t)f->cache_bytes);
	rig_rmt_put64(out, f->staged);
	rig_rmt_put32(out, f->ncounters);
	for (i = 0; i < f->ncounters; i++) {
		rig_rmt_put_text(out, f->counters[i].name);
		rig_rmt_put32(out, f->counters[i].values);
	}
}

int rig_rmt_region_parse(struct rig_rmt_in *in, struct rig_rmt_region *region)
{
	region->region = rig_rmt_get32(in);
	region->has_address = get_flag(in);
	region->address = rig_rmt_get64(in);
	return rig_rmt_in_end(in);
}

void rig_rmt_region_put(struct rig_rmt_out *out, const struct rig_rmt_region *region)
{
	rig_rmt_put32(out, region->region);
	rig_rmt_put8(out, region->has_address);
	rig_rmt_put64(out, region->address);
}

int rig_rmt_entry_parse(struct rig_rmt_in *in, struct rig_rmt_entry *e)
{
	e->kind = rig_rmt_get32(in);
	in->bad |= e->kind > RIG_NO_MEMORY;
	e->function = rig_rmt_get32(in);
	e->code = rig_rmt_get64(in);
	e->short_bytes = rig_rmt_get64(in);
	e->launches = get_flag(in);
	e->has_params = get_flag(in);
	e->has_threads = get_flag(in);
	e->params = rig_rmt_get32(in);
	e->threads = rig_rmt_get32(in);
	return rig_rmt_in_end(in);
}

void rig_rmt_entry_put(struct rig_rmt_out *out, const struct rig_rmt_entry *e)
{
	rig_rmt_put32(out, e->kind);
	rig_rmt_put32(out, e->function);
	rig_rmt_put64(out, e->code);
	rig_rmt_put64(out, e->short_bytes);
	rig_rmt_put8(out, e->launches);
	rig_rmt_put8(out, e->has_params);
	rig_rmt_put8(out, e->has_threads);
	rig_rmt_put32(out, e->params);
	rig_rmt_put32(out, e->threads);
}

int rig_rmt_reached_parse(const uint8_t *bytes, size_t n, struct rig_rmt_reached *r)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	uint32_t i;

	r->device = rig_rmt_get32(&in);
	r->value = rig_rmt_get64(&in);
	r->timed = get_flag(&in);
	r->start = r->end = 0;
	r->nmeasures = 0;
	if (r->timed) {
		r->start = rig_rmt_get64(&in);
		r->end = rig_rmt_get64(&in);
		r->nmeasures = get_count(&in, RIG_RMT_MEASURES);
	}
	for (i = 0; i < r->nmeasures; i++)
		r->measures[i] = rig_rmt_get64(&in);
	return rig_rmt_in_end(&in);
}

void rig_rmt_reached_put(struct rig_rmt_out *out, const struct rig_rmt_reached *r)
{
	uint32_t i;

	rig_rmt_put32(out, r->device);
	rig_rmt_put64(out, r->value);
	rig_rmt_put8(out, r->timed);
	if (!r->timed)
		return;
	rig_rmt_put64(out, r->start);
	rig_rmt_put64(out, r->end);
	rig_rmt_put32(out, r->nmeasures);
	for (i = 0; i < r->nmeasures; i++)
		rig_rmt_put64(out, r->measures[i]);
}

int rig_rmt_fetch_parse(const uint8_t *bytes, size_t n, struct rig_rmt_fetch *f)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	uint8_t parcel;
	uint64_t all;

	f->id = rig_rmt_get32(&in);
	f->machine = rig_rmt_get32(&in);
	f->device = rig_rmt_get32(&in);
	f->region = rig_rmt_get32(&in);
	f->offset = rig_rmt_get64(&in);
	f->pitch = rig_rmt_get64(&in);
	f->row_bytes = rig_rmt_get64(&in);
	f->rows = rig_rmt_get64(&in);
	parcel = rig_rmt_get8(&in);
	f->parcel = parcel;
	in.bad |= parcel > 1;
	if (!f->rows || !f->row_bytes || __builtin_mul_overflow(f->rows, f->row_bytes, &all) ||
	        all > RIG_RMT_LOCAL_BYTES)
		in.bad = true;
	return rig_rmt_in_end(&in);
}

void rig_rmt_fetch_put(struct rig_rmt_out *out, const struct rig_rmt_fetch *f)
{
	rig_rmt_put32(out, f->id);
	rig_rmt_put32(out, f->machine);
	rig_rmt_put32(out, f->device);
	rig_rmt_put32(out, f->region);
	rig_rmt_put64(out, f->offset);
	rig_rmt_put64(out, f->pitch);
	rig_rmt_put64(out, f->row_bytes);
	rig_rmt_put64(out, f->rows);
	rig_rmt_put8(out, f->parcel);
}

void rig_rmt_ticket_put(struct rig_rmt_out *out, const struct rig_rmt_ticket *ticket)
{
	rig_rmt_put32(out, ticket->number);
	rig_rmt_put64(out, ticket->address);
	rig_rmt_put64(out, ticket->key);
}

struct rig_rmt_ticket rig_rmt_ticket_get(struct rig_rmt_in *in)
{
	struct rig_rmt_ticket ticket;

	ticket.number = rig_rmt_get32(in);
	ticket.address = rig_rmt_get64(in);
	ticket.key = rig_rmt_get64(in);
	return ticket;
}

int rig_rmt_want_parse(const uint8_t *bytes, size_t n, struct rig_rmt_want *want)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);

	want->device = rig_rmt_get32(&in);
	want->value = rig_rmt_get64(&in);
	want->part = rig_rmt_get32(&in);
	want->ticket = rig_rmt_ticket_get(&in);
	return rig_rmt_in_end(&in);
}

void rig_rmt_want_put(struct rig_rmt_out *out, const struct rig_rmt_want *want)
{
	rig_rmt_put32(out, want->device);
	rig_rmt_put64(out, want->value);
	rig_rmt_put32(out, want->part);
	rig_rmt_ticket_put(out, &want->ticket);
}

int rig_rmt_claim_parse(const uint8_t *bytes, size_t n, struct rig_rmt_claim *claim)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);

	claim->fetch = rig_rmt_get32(&in);
	claim->bytes = rig_rmt_get64(&in);
	claim->ticket = rig_rmt_ticket_get(&in);
	return rig_rmt_in_end(&in);
}

void rig_rmt_claim_put(struct rig_rmt_out *out, const struct rig_rmt_claim *claim)
{
	rig_rmt_put32(out, claim->fetch);
	rig_rmt_put64(out, claim->bytes);
	rig_rmt_ticket_put(out, &claim->ticket);
}

int rig_rmt_number_parse(const uint8_t *bytes, size_t n, uint32_t *number)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);

	*number = rig_rmt_get32(&in);
	return rig_rmt_in_end(&in);
}

static void get_transfers(struct rig_rmt_in *in, struct rig_remote_transfer *to, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		to[i].src = (int64_t)rig_rmt_get64(in);
		to[i].dst = (int64_t)rig_rmt_get64(in);
		to[i].length = (int64_t)rig_rmt_get64(in);
	}
}

static void put_transfers(struct rig_rmt_out *out, const struct rig_remote_transfer *from, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		rig_rmt_put64(out, (uint64_t)from[i].src);
		rig_rmt_put64(out, (uint64_t)from[i].dst);
		rig_rmt_put64(out, (uint64_t)from[i].length);
	}
}

int rig_rmt_rail_parse(struct rig_rmt_in *in, struct rig_rmt_rail *r)
{
	const uint8_t *blob;
	int err;

	memset(r, 0, sizeof(*r));
	r->op = rig_rmt_get8(in);
	in->bad |= !r->op || r->op >= RIG_RMT_RAIL_OPS;
	r->peer = rig_rmt_get32(in);
	r->rail = rig_rmt_get64(in);
	rig_rmt_get_text(in, r->name, sizeof(r->name));
	rig_rmt_get_text(in, r->provider, sizeof(r->provider));
	r->nblob = get_count(in, RIG_RMT_BLOB);
	blob = rig_rmt_get_bytes(in, r->nblob);
	if (blob && r->nblob)
		memcpy(r->blob, blob, r->nblob);
	r->nsend = get_count(in, RIG_RMT_TRANSFERS);
	r->nreceive = get_count(in, RIG_RMT_TRANSFERS);
	if (in->bad)
		return -EPROTO;
	r->transfers = calloc((size_t)r->nsend + r->nreceive + 1, sizeof(*r->transfers));
	if (!r->transfers)
		return -ENOMEM;
	get_transfers(in, r->transfers, r->nsend + r->nreceive);
	err = rig_rmt_in_end(in);
	if (err) {
		free(r->transfers);
		r->transfers = NULL;
	}
	return err;
}

void rig_rmt_rail_put(struct rig_rmt_out *out, const struct rig_rmt_rail *r,
        const struct rig_remote_transfer *send, const struct rig_remote_transfer *receive)
{
	rig_rmt_put8(out, (uint8_t)r->op);
	rig_rmt_put32(out, r->peer);
	rig_rmt_put64(out, r->rail);
	rig_rmt_put_text(out, r->name);
	rig_rmt_put_text(out, r->provider);
	rig_rmt_put32(out, r->nblob);
	rig_rmt_put_bytes(out, r->blob, r->nblob);
	rig_rmt_put32(out, r->nsend);
	rig_rmt_put32(out, r->nreceive);
	put_transfers(out, send, r->nsend);
	put_transfers(out, receive, r->nreceive);
}
