/* SPDX-License-Identifier: MIT */
/* Parcels: see rail.h. A parcel's pieces are counted at both sides; their order matters nowhere. */
#include <errno.h>
#include <stdlib.h>

#include "rail_private.h"

enum { FIRST_PARCELS = 64 };

void rig_parcels_init(struct rig_parcels *parcels)
{
	(void)pthread_mutex_init(&parcels->lock, NULL);
	parcels->tail = &parcels->queue;
	parcels->end = &parcels->resolved;
}

void rig_parcels_fini(struct rig_parcels *parcels)
{
	free(parcels->expected);
	(void)pthread_mutex_destroy(&parcels->lock);
}

bool rig_rails_parcels(const struct rig_rails *rails)
{
	return rig_fabric_connects(rails->fabric);
}

bool rig_rails_parcels_over(const char *provider)
{
	return !provider || rig_fabric_provider_connects(provider);
}

static struct rig_parcel *make_parcel(
        const struct rig_rail_link *link, size_t bytes, rig_rail_told *told, void *arg)
{
	struct rig_parcel *parcel = calloc(1, sizeof(*parcel));
	size_t piece = link->rails->options.piece;

	if (!parcel) {
		(void)rig_error_set(-ENOMEM, "no memory for a parcel");
		return NULL;
	}
	parcel->ticket.bytes = bytes;
	parcel->open = bytes / piece + (bytes % piece > 0);
	parcel->told = told;
	parcel->arg = arg;
	return parcel;
}

static void drop_parcel(struct rig_rail_link *link, struct rig_parcel *parcel)
{
	rig_fabric_unregister(&parcel->memory);
	rig_room_give(link, parcel->room);
	free(parcel);
}

static int check(struct rig_rail_link *link, size_t bytes)
{
	int code = rig_rails_check(link->rails);

	if (code)
		return code;
	if (!rig_rails_parcels(link->rails))
		return rig_error_set(-ENOTSUP, "rails over %s carry no parcels", link->rails->provider);
	return bytes ? 0 : rig_error_set(-EINVAL, "no bytes are no parcel");
}

static int closed(const struct rig_rail_link *link)
{
	return rig_error_set(-ECONNABORTED, "the rails to %s have ended", link->name);
}

/* ---- Receiving ---- */

/* With the lock. */
static int grow(struct rig_parcels *p)
{
	uint32_t size = p->size ? 2 * p->size : FIRST_PARCELS;
	struct rig_parcel **grown;

	if (size > RIG_RAIL_PARCELS)
		return rig_error_set(-EMFILE, "a link expects no more than %d parcels", RIG_RAIL_PARCELS);
	grown = realloc(p->expected, size * sizeof(struct rig_parcel *));
	if (!grown)
		return rig_error_set(-ENOMEM, "no memory for a parcel");
	memset(grown + p->size, 0, (size - p->size) * sizeof(struct rig_parcel *));
	p->expected = grown;
	p->size = size;
	return 0;
}

/* With the lock. */
static int number(struct rig_parcels *p, struct rig_parcel *parcel)
{
	uint32_t i = 0;
	int code = p->nexpected == p->size ? grow(p) : 0;

	if (code)
		return code;
	while (p->expected[i])
		i++;
	parcel->ticket.number = i;
	p->expected[i] = parcel;
	p->nexpected++;
	return 0;
}

/* Where the other side writes by itself it does so into a room, which it may after all was resolved. */
static int lend(struct rig_rail_link *link, struct rig_parcel *parcel, void *at)
{
	struct rig_fabric_target target;
	int code;

	parcel->to = at;
	if (rig_fabric_one_sided(link->rails->fabric)) {
		code = rig_room_take(link, parcel->ticket.bytes, &parcel->room);
		target = code ? (struct rig_fabric_target){0} : parcel->room->target;
	} else {
		code = rig_fabric_register(
		        link->rails->fabric, at, parcel->ticket.bytes, &parcel->memory, &target);
	}
	if (code)
		return code;
	parcel->ticket.address = target.address;
	parcel->ticket.key = target.key;
	return 0;
}

int rig_rail_expect(struct rig_rail_link *link, void *at, size_t bytes, rig_rail_told *landed, void *arg,
        struct rig_parcel_ticket *ticket)
{
	struct rig_parcels *p = &link->parcels;
	struct rig_parcel *parcel;
	int code = check(link, bytes);

	if (code)
		return code;
	parcel = make_parcel(link, bytes, landed, arg);
	if (!parcel)
		return -ENOMEM;
	code = lend(link, parcel, at);
	if (!code) {
		(void)pthread_mutex_lock(&p->lock);
		code = p->closed ? closed(link) : number(p, parcel);
		if (!code)
			*ticket = parcel->ticket;
		(void)pthread_mutex_unlock(&p->lock);
	}
	if (code)
		drop_parcel(link, parcel);
	return code;
}

/* With the lock. */
static void resolve(struct rig_parcels *p, struct rig_parcel *parcel, int err)
{
	parcel->err = err;
	parcel->next = NULL;
	*p->end = parcel;
	p->end = &parcel->next;
}

/* With the lock. */
static void forget(struct rig_parcels *p, uint32_t number, int err)
{
	struct rig_parcel *parcel = p->expected[number];

	p->expected[number] = NULL;
	p->nexpected--;
	resolve(p, parcel, err);
}

static int nobody_expects(const struct rig_rail_link *link, uint32_t number)
{
	return rig_error_set(-ENOENT, "parcel %u from %s is not expected", number, link->name);
}

int rig_rail_unexpect(struct rig_rail_link *link, uint32_t number)
{
	struct rig_parcels *p = &link->parcels;
	bool known;

	if (!rig_rails_here(link->rails))
		return nobody_expects(link, number);
	(void)pthread_mutex_lock(&p->lock);
	known = number < p->size && p->expected[number];
	if (known)
		forget(p, number, -ECANCELED);
	(void)pthread_mutex_unlock(&p->lock);
	rig_parcels_tell(link);
	return known ? 0 : nobody_expects(link, number);
}

void rig_parcel_landed(struct rig_rail_link *link, uint32_t number)
{
	struct rig_parcels *p = &link->parcels;
	bool known;

	(void)pthread_mutex_lock(&p->lock);
	known = number < p->size && p->expected[number];
	if (known && !--p->expected[number]->open)
		forget(p, number, 0);
	(void)pthread_mutex_unlock(&p->lock);
	if (!known)
		rig_rail_link_break(link, "something was sent for parcel %u, which nobody expects", number);
}

/* ---- Sending ---- */

int rig_rail_send(struct rig_rail_link *link, const void *from, const struct rig_parcel_ticket *ticket,
        rig_rail_told *sent, void *arg)
{
	struct rig_parcels *p = &link->parcels;
	struct rig_parcel *parcel;
	int code = check(link, ticket->bytes);

	if (code)
		return code;
	parcel = make_parcel(link, ticket->bytes, sent, arg);
	if (!parcel)
		return -ENOMEM;
	parcel->ticket = *ticket;
	parcel->from = from;
	code = rig_fabric_register(
	        link->rails->fabric, (void *)(uintptr_t)from, ticket->bytes, &parcel->memory, NULL);
	if (!code) {
		(void)pthread_mutex_lock(&p->lock);
		if (p->closed) {
			code = closed(link);
		} else {
			*p->tail = parcel;
			p->tail = &parcel->next;
			rig_conn_wake(link->conn);
		}
		(void)pthread_mutex_unlock(&p->lock);
	}
	if (code)
		drop_parcel(link, parcel);
	return code;
}

/* The first in the queue has nothing more to hand over. */
static void fly(struct rig_parcels *p)
{
	struct rig_parcel *parcel;

	(void)pthread_mutex_lock(&p->lock);
	parcel = p->queue;
	p->queue = parcel->next;
	if (!p->queue)
		p->tail = &p->queue;
	parcel->next = p->flying;
	p->flying = parcel;
	(void)pthread_mutex_unlock(&p->lock);
}

static struct rig_parcel *first(struct rig_parcels *p)
{
	struct rig_parcel *parcel;

	(void)pthread_mutex_lock(&p->lock);
	parcel = p->queue;
	(void)pthread_mutex_unlock(&p->lock);
	return parcel;
}

bool rig_parcel_send(struct rig_rail_link *link)
{
	struct rig_parcel *parcel = first(&link->parcels);
	struct rig_rail_op owner = {.parcel = parcel};
	struct rig_fabric_target to;
	int code;

	link->parcels.passed_over = parcel != NULL;
	if (!parcel || link->dead || rig_rails_over(link->rails) || !rig_rail_has_room(link))
		return false;
	to = (struct rig_fabric_target){parcel->ticket.address, parcel->ticket.key};
	owner.bytes = parcel->ticket.bytes - parcel->offset;
	if (owner.bytes > link->rails->options.piece)
		owner.bytes = link->rails->options.piece;
	code = rig_rail_write(link, owner, parcel->from + parcel->offset, &parcel->memory, &to,
	        parcel->offset, (uint32_t)RIG_PARCEL_SLOT << RIG_NOTE_SLOT | parcel->ticket.number);
	if (code < 0)
		return false;
	link->parcels.passed_over = false;
	parcel->offset += owner.bytes;
	if (parcel->offset == parcel->ticket.bytes)
		fly(&link->parcels);
	if (code == 1)
		rig_parcel_written(link, parcel);
	return true;
}

void rig_parcel_written(struct rig_rail_link *link, struct rig_parcel *parcel)
{
	struct rig_parcels *p = &link->parcels;
	struct rig_parcel **at = &p->flying;

	if (--parcel->open)
		return;
	(void)pthread_mutex_lock(&p->lock);
	while (*at != parcel)
		at = &(*at)->next;
	*at = parcel->next;
	resolve(p, parcel, 0);
	(void)pthread_mutex_unlock(&p->lock);
}

/* ---- The end ---- */

void rig_parcels_close(struct rig_rail_link *link)
{
	(void)pthread_mutex_lock(&link->parcels.lock);
	link->parcels.closed = true;
	(void)pthread_mutex_unlock(&link->parcels.lock);
}

bool rig_parcels_some(struct rig_rail_link *link)
{
	struct rig_parcels *p = &link->parcels;
	bool some;

	(void)pthread_mutex_lock(&p->lock);
	some = p->nexpected || p->queue || p->flying;
	(void)pthread_mutex_unlock(&p->lock);
	return some;
}

/* With the lock. */
static void abort_list(struct rig_parcels *p, struct rig_parcel **list)
{
	while (*list) {
		struct rig_parcel *parcel = *list;

		*list = parcel->next;
		resolve(p, parcel, -ECONNABORTED);
	}
}

void rig_parcels_abort(struct rig_rail_link *link)
{
	struct rig_parcels *p = &link->parcels;

	(void)pthread_mutex_lock(&p->lock);
	abort_list(p, &p->queue);
	p->tail = &p->queue;
	abort_list(p, &p->flying);
	for (uint32_t i = 0; i < p->size; i++)
		if (p->expected[i])
			forget(p, i, -ECONNABORTED);
	(void)pthread_mutex_unlock(&p->lock);
}

static struct rig_parcel *next_resolved(struct rig_parcels *p)
{
	struct rig_parcel *parcel;

	(void)pthread_mutex_lock(&p->lock);
	parcel = p->resolved;
	if (parcel)
		p->resolved = parcel->next;
	if (!p->resolved)
		p->end = &p->resolved;
	(void)pthread_mutex_unlock(&p->lock);
	return parcel;
}

void rig_parcels_tell(struct rig_rail_link *link)
{
	struct rig_parcel *parcel;

	while ((parcel = next_resolved(&link->parcels))) {
		rig_rail_told *told = parcel->told;
		void *arg = parcel->arg;
		int err = parcel->err;

		if (parcel->room && !err)
			memcpy(parcel->to, parcel->room->at, parcel->ticket.bytes);
		drop_parcel(link, parcel);
		told(arg, err);
	}
}
