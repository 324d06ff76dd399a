/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "rail_private.h"
#include "rig_barrier.h"

void rig_rail_queue(struct rig_rail_half *half)
{
	struct rig_rail_link *link = half->link;

	/* A ready call that found its end before the link went down kicks it afterwards. */
	if (half->queued || link->dead)
		return;
	rig_rail_half_get(half);
	half->queued = true;
	half->queue_next = NULL;
	*link->queue_end = half;
	link->queue_end = &half->queue_next;
}

static struct rig_rail_half *unqueue(struct rig_rail_link *link)
{
	struct rig_rail_half *half = link->queue;

	link->queue = half->queue_next;
	if (!link->queue)
		link->queue_end = &link->queue;
	half->queued = false;
	return half;
}

/* The count of a failed job readies nothing. */
static bool may_send(const struct rig_rail_half *half)
{
	uint64_t ready = __atomic_load_n(rig_rail_count(half, RIG_REMOTE_READY), __ATOMIC_ACQUIRE);

	return half->joined && !half->ending && half->out.n && ready < RIG_RAIL_FAILED &&
	       half->next <= ready && rig_flow_may_begin(&half->out, half->next);
}

static void mark_sent(struct rig_rail_half *half, uint64_t count)
{
	uint64_t before = half->out.done;

	/* Only what was sent is marked, once. */
	(void)rig_flow_mark(&half->out, count);
	if (half->out.done == before)
		return;
	rig_rail_raise(rig_rail_count(half, RIG_REMOTE_SENT), half->out.done);
	half->link->moved = true;
}

int rig_rail_write(struct rig_rail_link *link, struct rig_rail_op owner, const void *from,
        const struct rig_fabric_memory *source, const struct rig_fabric_target *to, size_t offset,
        uint32_t note)
{
	struct rig_rail_op *op = link->free_ops;
	int code = rig_conn_write(link->conn, from, source, owner.bytes, to, offset, note, &op->op);

	if (code < 0 && code != -EAGAIN)
		rig_rail_link_break(link, "%s", rig_error());
	if (code < 0) {
		link->stalled = true;
		return code;
	}
	link->wrote = true;
	link->budget -= link->budget > 0;
	rig_rails_add(&link->rails->stats.writes, 1);
	rig_rails_add(&link->rails->stats.bytes, owner.bytes);
	if (code)
		return code;
	link->free_ops = op->next;
	owner.op = op->op;
	*op = owner;
	link->open++;
	link->open_bytes += owner.bytes;
	return 0;
}

static uint32_t note_of(const struct rig_rail_half *half, uint64_t count)
{
	return half->peer_slot << RIG_NOTE_SLOT | (uint32_t)(count & ((1u << RIG_NOTE_BITS) - 1));
}

/* One piece of the half's next count. Whether it went. */
static bool send_piece(struct rig_rail_link *link, struct rig_rail_half *half)
{
	struct rig_flow_piece piece = rig_flow_piece(&half->out, half->next, half->offset);
	uint64_t count = half->next;
	const struct rig_rail_op owner = {.half = half, .count = count, .bytes = piece.bytes};
	int code = rig_rail_write(link, owner, (const char *)half->outbound.at + piece.from, &half->source,
	        &half->target, piece.to, note_of(half, count));

	if (code < 0)
		return false;
	half->open += !code;
	half->offset += piece.bytes;
	if (piece.last) {
		half->offset = 0;
		half->next++;
	}
	if (code == 1)
		mark_sent(half, count);
	return true;
}

/* Tells the other side that the last has been sent. Whether nothing more is to be done about it now. */
static bool tell_end(struct rig_rail_link *link, struct rig_rail_half *half)
{
	int code;

	if (half->open || half->sent_end)
		return true;
	code = rig_rail_write(link, (struct rig_rail_op){.bytes = sizeof(link->letter)}, link->letter,
	        &link->letter_memory, &link->peer_mailbox, 0, note_of(half, half->next - 1) | RIG_NOTE_END);
	if (code < 0)
		return false;
	half->sent_end = true;
	rig_rail_retire(half);
	return true;
}

bool rig_rail_has_room(const struct rig_rail_link *link)
{
	return link->budget && link->free_ops && link->open_bytes < RIG_RAIL_INFLIGHT && !link->stalled &&
	       !link->broken[0];
}

/* What the half at the head of the queue has, and its place in it. */
static void send_next(struct rig_rail_link *link)
{
	struct rig_rail_half *half = unqueue(link);

	if (half->ending) {
		if (half->joined && !tell_end(link, half))
			rig_rail_queue(half);
	} else if (may_send(half)) {
		(void)send_piece(link, half);
		if (may_send(half))
			rig_rail_queue(half);
	}
	rig_rail_half_put(half);
}

static void take_kicked(struct rig_rail_link *link)
{
	struct rig_rail_half *half = __atomic_exchange_n(&link->kick, NULL, __ATOMIC_ACQ_REL);

	while (half) {
		struct rig_rail_half *next = half->kick_next;

		/* Before the count is read: a later call kicks again. */
		(void)__atomic_exchange_n(&half->kicked, false, __ATOMIC_ACQ_REL);
		if (may_send(half))
			rig_rail_queue(half);
		rig_rail_half_put(half);
		half = next;
	}
}

void rig_rail_run(struct rig_rail_link *link)
{
	take_kicked(link);
	if (link->dead || __atomic_load_n(&link->rails->failed, __ATOMIC_ACQUIRE))
		return;
	if (__atomic_load_n(&link->rails->stopped, __ATOMIC_ACQUIRE))
		return;
	while (link->queue && rig_rail_has_room(link))
		send_next(link);
}

void rig_rail_written(struct rig_rail_link *link, struct rig_rail_op *op)
{
	struct rig_rail_half *half = op->half;

	link->open--;
	link->open_bytes -= op->bytes;
	if (half) {
		half->open--;
		mark_sent(half, op->count);
		if (half->ending || may_send(half))
			rig_rail_queue(half);
	}
	if (op->parcel)
		rig_parcel_written(link, op->parcel);
	op->next = link->free_ops;
	link->free_ops = op;
}

void rig_rail_end_sending(struct rig_rail_half *half)
{
	half->ending = true;
	rig_rail_queue(half);
}

void rig_rail_kick(struct rig_rail_half *half)
{
	struct rig_rail_link *link = half->link;

	if (__atomic_exchange_n(&half->kicked, true, __ATOMIC_ACQ_REL))
		return;
	rig_rail_half_get(half);
	half->kick_next = __atomic_load_n(&link->kick, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
	        &link->kick, &half->kick_next, half, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	rig_rail_look(link);
}

void rig_rail_link_lock(struct rig_rail_link *link)
{
	(void)pthread_mutex_lock(&link->lock);
}

/* Tells who has to go on with what was done under the lock. */
static void tell_others(struct rig_rail_link *link)
{
	/* The link's own thread is told in vain if it is who does this: it looks once more. */
	if (link->broken[0] || link->stalled || !link->budget || rig_conn_unsent(link->conn) ||
	        (link->open && rig_conn_by_bell(link->conn)) || (link->moved && link->rails->options.moved))
		rig_conn_wake(link->conn);
	if (link->wrote)
		rig_conn_ring(link->conn);
	link->wrote = false;
}

void rig_rail_look(struct rig_rail_link *link)
{
	for (;;) {
		/* Giving back the lock, or the kick, before this look: see the top of rail_private.h. */
		rig_full();
		if (!__atomic_load_n(&link->kick, __ATOMIC_RELAXED) || pthread_mutex_trylock(&link->lock))
			return;
		rig_rails_add(&link->rails->stats.wakes, 1);
		link->budget = RIG_LOOK_CALL;
		rig_rail_run(link);
		if (!link->dead)
			tell_others(link);
		(void)pthread_mutex_unlock(&link->lock);
	}
}

void rig_rail_link_unlock(struct rig_rail_link *link)
{
	(void)pthread_mutex_unlock(&link->lock);
	rig_rail_look(link);
}

void rig_rail_link_serve(struct rig_rail_link *link)
{
	link->budget = RIG_LOOK_CALL;
	rig_rail_run(link);
	if (!link->dead)
		tell_others(link);
	rig_rail_link_unlock(link);
}
