/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent_cold.h"
#include "agent_memory.h"
#include "agent_queue.h"
#include "agent_rails.h"
#include "agent_session.h"

enum {
	IDLE_MS = 1000, /* between two looks at nothing */
	LEAVE_MS = 20,  /* and at what is on its way back */
};

int device_faulted(struct device *d, const char *fault)
{
	device_lose(d, "%s", fault ? fault : "the driver faulted without a reason");
	return rig_error_set(RIG_FAULT, "%s", d->reason);
}

/* Takes the region, with its reference to an end. */
static int answer_region(struct device *d, const struct kept_region *kept, struct rig_rmt_out *out)
{
	struct rig_rmt_region r = {0};
	struct rig_location at;
	const char *fault = NULL;

	if (region_add(d, kept, &r.region)) {
		(void)d->m->free(d->handle, kept->region, &fault);
		rig_remote_end_put(kept->end);
		return rig_error_set(-ENOMEM, "the agent has no memory for a region's record");
	}
	d->m->locate(d->handle, kept->region, &at);
	r.has_address = at.has_address;
	r.address = at.address;
	rig_rmt_region_put(out, &r);
	return 0;
}

static int do_alloc(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	uint32_t kind = rig_rmt_get32(in);
	uint64_t bytes = rig_rmt_get64(in);
	struct kept_region kept = {.bytes = bytes};
	const char *fault = NULL;
	int err;

	if (rig_rmt_in_end(in) || !bytes || kind != RIG_DEVICE)
		return MALFORMED;
	(void)rig_error_set(0, "%s", "");
	err = d->m->alloc(d->handle, RIG_DEVICE, bytes, &kept.region, &fault);
	if (err == RIG_FAULT)
		return device_faulted(d, fault);
	return err ? err : answer_region(d, &kept, out);
}

static void free_region(struct device *d, const struct kept_region *kept)
{
	const char *fault = NULL;

	if (d->m->free(d->handle, kept->region, &fault) == RIG_FAULT)
		(void)device_faulted(d, fault);
	rig_remote_end_put(kept->end);
	if (kept->lender)
		region_return(kept->lender, kept->lent);
}

/* Work may still use it: it goes once that is complete (see sweep). */
static int do_free(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	uint32_t id = rig_rmt_get32(in);

	(void)out;
	return rig_rmt_in_end(in) || region_leave(d, id) ? MALFORMED : 0;
}

static int answer_mapping(struct device *d, int answer, const struct kept_region *mapped, const char *fault,
        struct rig_rmt_out *out)
{
	switch (answer) {
	case RIG_MAPS:
		return answer_region(d, mapped, out);
	case RIG_FAULT:
		return device_faulted(d, fault);
	case RIG_NO_ROOM:
		return rig_error_set(-ENOMEM, "%s", *rig_error() ? rig_error() : "no room for the mapping");
	default:
		return rig_error_set(
		        -ENOTSUP, "%s", *rig_error() ? rig_error() : "it does not map this memory");
	}
}

/* By the driver, or as host memory. */
static int map_theirs(struct device *d, struct device *other, uint32_t theirs, void *region, uint64_t bytes,
        struct rig_rmt_out *out)
{
	struct kept_region mapped = {.bytes = bytes, .lender = other, .lent = theirs};
	const char *fault = NULL;
	struct rig_location at;
	int answer;

	(void)rig_error_set(0, "%s", "");
	if (other->m->key == d->m->key && d->m->map_peer && d->m->peer(d->handle, other->handle)) {
		answer = d->m->map_peer(d->handle, other->handle, region, &mapped.region, &fault);
		return answer_mapping(d, answer, &mapped, fault, out);
	}
	other->m->locate(other->handle, region, &at);
	if (!at.has_host || !d->facts.maps_host)
		return rig_error_set(-ENOTSUP, "%s reaches no memory of %s", d->name, other->name);
	answer = d->m->map_host(d->handle, at.host, bytes, &mapped.region, &fault);
	return answer_mapping(d, answer, &mapped, fault, out);
}

/* Another device's region. */
static int do_map_peer(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	uint32_t id = rig_rmt_get32(in), theirs = rig_rmt_get32(in);
	struct device *other = rig_rmt_in_end(in) ? NULL : session_device(d->session, id);
	uint64_t bytes;
	void *region;
	int err = MALFORMED;

	if (!other || other == d)
		return MALFORMED;
	/* Its controller may not know yet. */
	if (!device_hold(other))
		return device_is_ending(other) ? rig_error_set(-ENOTSUP, "%s is lost", other->name)
		                               : MALFORMED;
	region = region_lend(other, theirs, &bytes);
	if (region) {
		err = map_theirs(d, other, theirs, region, bytes, out);
		if (err)
			region_return(other, theirs);
	}
	device_let(other);
	return err;
}

/* An area of a rail's end, which the region keeps. */
static int do_map_rail(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	uint64_t rail = rig_rmt_get64(in);
	uint8_t kind = rig_rmt_get8(in);
	const struct rig_remote_end *end;
	struct kept_region mapped = {0};
	const struct rig_remote_area *area;
	const char *fault = NULL;
	int answer;

	if (rig_rmt_in_end(in) || kind >= RIG_RMT_AREAS)
		return MALFORMED;
	mapped.end = end = rails_end_of(d->session, rail);
	if (!end)
		return rig_error_set(-ENOTSUP, "the machine has no end of rail %" PRIu64, rail);
	area = kind == RIG_RMT_COUNTS    ? &end->counts
	       : kind == RIG_RMT_INBOUND ? &end->inbound
	                                 : &end->outbound;
	mapped.bytes = area->bytes;
	(void)rig_error_set(0, "%s", "");
	answer = area->bytes && d->facts.maps_host
	                 ? d->m->map_host(d->handle, area->at, area->bytes, &mapped.region, &fault)
	                 : RIG_NEVER_MAPS;
	if (answer != RIG_MAPS)
		rig_remote_end_put(end);
	return answer_mapping(d, answer, &mapped, fault, out);
}

/* What was told to go, and that nothing uses any more. */
static void sweep(struct device *d)
{
	struct kept_region region;
	struct image image;

	while (d->nleaving && !device_is_ending(d) && region_left(d, &region))
		free_region(d, &region);
	while (d->nleaving && !device_is_ending(d) && image_left(d, &image))
		code_drop(d, &image);
}

/* ---- Dispatch ---- */

typedef int (*handler)(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out);

/* Requests have a number, then the device's; messages the device's alone. */
static const struct {
	handler run;
	bool request;
} handlers[RIG_RMT_KINDS] = {
        [RIG_RMT_ALLOC] = {do_alloc, true},
        [RIG_RMT_FREE] = {do_free, false},
        [RIG_RMT_MAP_PEER] = {do_map_peer, true},
        [RIG_RMT_MAP_RAIL] = {do_map_rail, true},
        [RIG_RMT_CODE] = {code_take, false},
        [RIG_RMT_LOAD] = {code_load, true},
        [RIG_RMT_ENTRY] = {code_entry, true},
        [RIG_RMT_UNLOAD] = {code_unload, false},
};

static void answer(struct device *d, uint32_t request, int err, const struct rig_rmt_out *out)
{
	if (out->bad)
		err = rig_error_set(-ENOMEM, "the agent has no memory for an answer");
	(void)session_answer(d->session, request, err, err ? rig_error() : "", out->at, err ? 0 : out->used);
}

static void do_handler(struct device *d, const struct item *item)
{
	struct rig_rmt_in in = rig_rmt_in_of(item->payload, item->bytes);
	struct rig_rmt_out out = {0};
	bool request = handlers[item->kind].request;
	uint32_t number = request ? rig_rmt_get32(&in) : 0;
	int err;

	(void)rig_rmt_get32(&in);
	if (!d->open || device_is_ending(d))
		err = rig_error_set(RIG_FAULT, "%s", d->lost ? d->reason : "it is not open");
	else
		err = handlers[item->kind].run(d, &in, &out);
	if (err == MALFORMED)
		session_fail(d->session, "malformed: a request about memory or code (kind %u)", item->kind);
	else if (request)
		answer(d, number, err, &out);
	rig_rmt_out_free(&out);
}

static void do_open(struct device *d, const struct item *item)
{
	struct rig_rmt_in in = rig_rmt_in_of(item->payload, item->bytes);
	struct rig_rmt_facts *facts = malloc(sizeof(*facts));
	uint32_t request = rig_rmt_get32(&in);
	struct rig_rmt_out out = {0};
	int err = facts ? device_open(d, facts) : rig_error_set(-ENOMEM, "the agent has no memory");

	if (!err)
		rig_rmt_facts_put(&out, facts);
	answer(d, request, err, &out);
	rig_rmt_out_free(&out);
	free(facts);
}

static void do_check(struct device *d, const struct item *item)
{
	struct rig_rmt_work work;
	const struct rig_rmt_out none = {0};
	int err = rig_rmt_work_parse(item->payload, item->bytes, &work);

	if (err) {
		session_fail(d->session, "malformed: a question about work");
		return;
	}
	if (!d->open || device_is_ending(d))
		err = rig_error_set(RIG_FAULT, "%s", d->lost ? d->reason : "it is not open");
	else
		err = hot_check(d, &work);
	answer(d, work.request, err, &none);
	rig_rmt_work_free(&work);
}

static void do_stop(struct device *d, const struct item *item)
{
	struct rig_rmt_in in = rig_rmt_in_of(item->payload, item->bytes);
	const struct rig_rmt_out none = {0};
	uint32_t request = rig_rmt_get32(&in);
	char reason[RIG_RMT_REASON];
	uint8_t has;

	(void)rig_rmt_get32(&in);
	has = rig_rmt_get8(&in);
	rig_rmt_get_text(&in, reason, sizeof(reason));
	if (rig_rmt_in_end(&in) || has > 1) {
		session_fail(d->session, "malformed: a stop");
		return;
	}
	device_stop(d, has ? reason : NULL);
	answer(d, request, 0, &none);
}

static bool take(struct device *d, const struct item *item)
{
	switch (item->kind) {
	case RIG_RMT_CLOSE:
		/* A controller that vanished leaves work: for it, that is a reason. */
		device_halt(d, session_reason(d->session));
		session_await_halts(d->session);
		device_drop(d);
		return false;
	case ITEM_DROP:
		device_drop(d);
		break;
	case RIG_RMT_LOST:
		device_stop(d, d->reason);
		break;
	case RIG_RMT_OPEN:
		do_open(d, item);
		break;
	case RIG_RMT_STOP:
		do_stop(d, item);
		break;
	case RIG_RMT_CHECK:
		do_check(d, item);
		break;
	default:
		do_handler(d, item);
	}
	return true;
}

void *cold_run(void *device)
{
	struct device *d = device;
	bool more = true;

	while (more) {
		struct item *item = queue_pop(&d->cold_queue, d->nleaving ? LEAVE_MS : IDLE_MS);

		sweep(d);
		if (item)
			more = take(d, item);
		free(item);
	}
	return NULL;
}
