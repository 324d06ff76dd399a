/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rail_blob.h"
#include "pages.h"
#include "rail_private.h"

enum { COUNTS_BYTES = 4096, SLOTS_FIRST = 16 };

void rig_rail_raise(uint64_t *count, uint64_t c)
{
	uint64_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (now < c &&
	        !__atomic_compare_exchange_n(count, &now, c, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* rig_remote_end.ready and ready_fn. */
static void ready(void *counts, uint64_t c)
{
	struct rig_rail_half *half;
	int kept = errno;

	if (!c || c >= RIG_RAIL_FAILED)
		return;
	rig_rail_raise((uint64_t *)((char *)counts + RIG_REMOTE_READY), c);
	half = rig_registry_get(counts);
	if (half) {
		rig_rail_kick(half);
		rig_rail_half_put(half);
	}
	errno = kept;
}

/* ---- Areas --------------------------------------------------------------------------------------------- */

static int make_area(struct rig_remote_area *area, size_t bytes)
{
	void *at;

	*area = (struct rig_remote_area){0};
	if (!bytes)
		return 0;
	at = rig_pages_map(bytes);
	if (!at)
		return rig_error_set(
		        -ENOMEM, "no memory for %zu bytes of a rail: %s", bytes, strerror(errno));
	/* A fork makes no copies of pages that a device or a peer writes. */
	(void)madvise(at, bytes, MADV_DONTFORK);
	*area = (struct rig_remote_area){at, bytes};
	return 0;
}

static void free_area(struct rig_remote_area *area)
{
	rig_pages_unmap(area->at, area->bytes);
}

/* Where the other side writes by itself, what it may still write to is not unmapped: rig_rail_room. */
static int make_inbound(struct rig_rail_half *half, size_t bytes)
{
	int code;

	if (!bytes || !rig_fabric_one_sided(half->rails->fabric))
		return make_area(&half->inbound, bytes);
	code = rig_room_take(half->link, bytes, &half->room);
	if (code)
		return code;
	if (half->room->used)
		memset(half->room->at, 0, bytes);
	half->inbound = (struct rig_remote_area){half->room->at, bytes};
	half->sink_target = half->room->target;
	return 0;
}

static int make_areas(struct rig_rail_half *half)
{
	int code = make_area(&half->outbound, 2 * half->out.from_bytes);

	if (!code)
		code = make_inbound(half, 2 * half->in.to_bytes);
	if (!code)
		code = make_area(&half->counts, COUNTS_BYTES);
	return code;
}

static int register_areas(struct rig_rail_half *half)
{
	struct rig_fabric *fabric = half->rails->fabric;
	int code = 0;

	if (half->outbound.bytes)
		code = rig_fabric_register(
		        fabric, half->outbound.at, half->outbound.bytes, &half->source, NULL);
	if (!code && half->inbound.bytes && !half->room)
		code = rig_fabric_register(
		        fabric, half->inbound.at, half->inbound.bytes, &half->sink, &half->sink_target);
	return code;
}

/* ---- Halves -------------------------------------------------------------------------------------------- */

static void free_half(struct rig_rail_half *half)
{
	struct rig_rails *rails = half->rails;

	rig_fabric_unregister(&half->source);
	rig_fabric_unregister(&half->sink);
	free_area(&half->outbound);
	if (half->room)
		rig_room_give(half->link, half->room);
	else
		free_area(&half->inbound);
	free_area(&half->counts);
	rig_flow_fini(&half->out);
	rig_flow_fini(&half->in);
	free(half);
	rig_rails_put(rails);
}

void rig_rail_half_get(struct rig_rail_half *half)
{
	(void)__atomic_fetch_add(&half->references, 1, __ATOMIC_RELAXED);
}

void rig_rail_half_put(struct rig_rail_half *half)
{
	if (__atomic_fetch_sub(&half->references, 1, __ATOMIC_ACQ_REL) == 1)
		free_half(half);
}

static int fill_half(struct rig_rail_half *half, const struct rig_remote_transfer *send, size_t nsend,
        const struct rig_remote_transfer *receive, size_t nreceive)
{
	size_t piece = half->rails->options.piece;
	int code = rig_flow_init(&half->out, send, nsend, piece);

	if (!code)
		code = rig_flow_init(&half->in, receive, nreceive, piece);
	if (!code)
		code = make_areas(half);
	return code ? code : register_areas(half);
}

/* ---- Its places: a slot of the link, the engine's list, the registry ------------------------------------
   */

static int grow_slots(struct rig_rail_link *link)
{
	uint32_t more = link->nslots ? 2 * link->nslots : SLOTS_FIRST;
	struct rig_rail_half **slots;

	if (more > RIG_RAIL_SLOTS)
		more = RIG_RAIL_SLOTS;
	if (more == link->nslots)
		return rig_error_set(-EMFILE, "the link has %u rails, as many as it can", link->nslots);
	slots = realloc(link->slots, more * sizeof(*slots));
	if (!slots)
		return rig_error_set(-ENOMEM, "no memory for another rail of a link");
	memset(slots + link->nslots, 0, (more - link->nslots) * sizeof(*slots));
	link->slots = slots;
	link->slot_hint = link->nslots;
	link->nslots = more;
	return 0;
}

/* With the link's lock. */
static int take_slot(struct rig_rail_half *half)
{
	struct rig_rail_link *link = half->link;

	if (link->dead)
		return rig_error_set(-ECONNABORTED, "the link to %s is gone", link->name);
	for (uint32_t i = 0; i < link->nslots; i++) {
		uint32_t slot = (link->slot_hint + i) % link->nslots;

		if (link->slots[slot])
			continue;
		half->slot = slot;
		link->slot_hint = slot + 1;
		link->slots[slot] = half;
		rig_rail_half_get(half);
		return 0;
	}
	return grow_slots(link) ? -EMFILE : take_slot(half);
}

static void list_end(struct rig_rail_half *half)
{
	struct rig_rails *rails = half->rails;

	half->ends_next = rails->ends;
	half->ends_at = &rails->ends;
	if (rails->ends)
		rails->ends->ends_at = &half->ends_next;
	rails->ends = half;
	rails->stats.ends++;
}

static void unlist_end(struct rig_rail_half *half)
{
	(void)pthread_mutex_lock(&half->rails->lock);
	*half->ends_at = half->ends_next;
	if (half->ends_next)
		half->ends_next->ends_at = half->ends_at;
	half->rails->stats.ends--;
	(void)pthread_mutex_unlock(&half->rails->lock);
}

/* All or nothing: an engine that failed before has raised the counts of what is in its list. */
static int place_half(struct rig_rail_half *half)
{
	struct rig_rails *rails = half->rails;
	int code;

	(void)pthread_mutex_lock(&rails->lock);
	code = rig_rails_check(rails);
	if (!code) {
		rig_rail_link_lock(half->link);
		code = take_slot(half);
		rig_rail_link_unlock(half->link);
	}
	if (!code) {
		list_end(half);
		rig_registry_add(half);
	}
	(void)pthread_mutex_unlock(&rails->lock);
	return code;
}

/* The last put of the record. */
static void released(void *owner)
{
	struct rig_rail_half *half = owner;
	struct rig_rail_link *link = half->link;
	struct rig_rails *rails = half->rails;

	/* In a child of fork the locks may be held for ever and the connection is the parent's. */
	if (!rig_rails_here(rails))
		return;
	if (half->unplaced) {
		rig_rail_half_put(half);
		return;
	}
	rig_rails_get(rails);
	rig_registry_remove(half);
	unlist_end(half);
	rig_rail_link_lock(link);
	if (!link->dead && !half->retired)
		rig_rail_end_sending(half);
	rig_rail_half_put(half);
	rig_rail_link_serve(link);
	rig_rails_put(rails);
}

/* ---- Making and joining -------------------------------------------------------------------------------- */

static void write_ticket(const struct rig_rail_half *half, struct rig_rail_blob *blob)
{
	struct rig_rail_ticket ticket = {
	        .id = half->id,
	        .slot = half->slot,
	        .send = {half->out.n, rig_flow_hash(&half->out)},
	        .receive = {half->in.n, rig_flow_hash(&half->in)},
	        .inbound = half->sink_target,
	};

	rig_rail_blob_ticket(blob, &ticket);
}

static int make_record(struct rig_rail_half *half, const struct rig_remote_end **end)
{
	struct rig_remote_end fields = {
	        .outbound = half->outbound,
	        .inbound = half->inbound,
	        .counts = half->counts,
	        .ready = ready,
	        .ready_arg = half->counts.at,
	        .ready_fn = ready,
	};

	return rig_remote_end_make(&fields, released, half, end);
}

static struct rig_rail_half *new_half(struct rig_rail_link *link, uint64_t id)
{
	struct rig_rail_half *half = calloc(1, sizeof(*half));

	if (!half)
		return NULL;
	half->references = 1;
	half->rails = link->rails;
	half->link = link;
	half->id = id;
	half->next = 1;
	rig_rails_get(link->rails);
	return half;
}

int rig_rail_make(struct rig_rail_link *link, uint64_t id, const struct rig_remote_transfer *send,
        size_t nsend, const struct rig_remote_transfer *receive, size_t nreceive, struct rig_rail_blob *blob,
        const struct rig_remote_end **end)
{
	struct rig_rail_half *half;
	int code = rig_remote_check_transfers(send, nsend, receive, nreceive);

	if (!code)
		code = rig_rails_check(link->rails);
	if (code)
		return code;
	half = new_half(link, id);
	if (!half)
		return rig_error_set(-ENOMEM, "no memory for a rail");
	code = fill_half(half, send, nsend, receive, nreceive);
	if (!code)
		code = make_record(half, end);
	if (code) {
		rig_rail_half_put(half);
		return code;
	}
	code = place_half(half);
	if (code) {
		/* Its record is the caller's only once it has its places. */
		half->unplaced = true;
		rig_remote_end_put(*end);
		*end = NULL;
		return code;
	}
	write_ticket(half, blob);
	return 0;
}

static bool same_shape(const struct rig_flow *flow, const struct rig_rail_shape *shape)
{
	return flow->n == shape->n && rig_flow_hash(flow) == shape->hash;
}

static int check_ticket(const struct rig_rail_half *half, const struct rig_rail_ticket *ticket)
{
	if (ticket->id != half->id)
		return rig_error_set(-EPROTO, "an end of rail %llu is joined with one of rail %llu",
		        (unsigned long long)half->id, (unsigned long long)ticket->id);
	if (!same_shape(&half->out, &ticket->receive) || !same_shape(&half->in, &ticket->send))
		return rig_error_set(-EPROTO, "the two ends of rail %llu do not have the same transfers",
		        (unsigned long long)half->id);
	return 0;
}

/* With the link's lock. */
static int join_half(struct rig_rail_half *half, const struct rig_rail_ticket *ticket)
{
	if (half->joined)
		return rig_error_set(-EALREADY, "rail %llu is joined", (unsigned long long)half->id);
	if (half->link->dead || half->retired)
		return rig_error_set(-ECONNABORTED, "rail %llu has ended", (unsigned long long)half->id);
	half->peer_slot = ticket->slot;
	half->target = ticket->inbound;
	half->joined = true;
	rig_rail_queue(half);
	return 0;
}

int rig_rail_join(const struct rig_remote_end *end, const struct rig_rail_blob *blob)
{
	struct rig_rail_half *half = rig_registry_get(end->counts.at);
	struct rig_rail_ticket ticket;
	int code;

	if (!half)
		return rig_error_set(-ECONNABORTED, "the rail has ended");
	code = rig_rail_parse_ticket(blob, &ticket);
	if (!code)
		code = check_ticket(half, &ticket);
	if (!code) {
		rig_rail_link_lock(half->link);
		code = join_half(half, &ticket);
		rig_rail_link_serve(half->link);
	}
	rig_rail_half_put(half);
	return code;
}

bool rig_rail_over(const struct rig_remote_end *end)
{
	struct rig_rail_half *half = rig_registry_get(end->counts.at);

	if (half)
		rig_rail_half_put(half);
	return !half;
}

void rig_rail_renumber(const struct rig_remote_end *end, uint64_t count)
{
	struct rig_rail_half *half = rig_registry_get(end->counts.at);

	rig_rail_link_lock(half->link);
	half->next = count + 1;
	half->out.done = half->in.done = count;
	rig_rail_raise(rig_rail_count(half, RIG_REMOTE_READY), count);
	rig_rail_raise(rig_rail_count(half, RIG_REMOTE_SENT), count);
	rig_rail_raise(rig_rail_count(half, RIG_REMOTE_ARRIVED), count);
	rig_rail_link_unlock(half->link);
	rig_rail_half_put(half);
}
