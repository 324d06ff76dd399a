/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "agent_device.h"
#include "agent_memory.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "agent_rails.h"
#include "agent_session.h"

enum { MOST_CLAIMS = 65536 }; /* of a session: no controller of ours has so many fetches under way */

/* ---- Bytes that come ---- */

struct landing {
	struct session *s;
	bool resolved;
	int err;
};

static void landed(void *arg, int err)
{
	struct landing *l = arg;
	struct session *s = l->s;

	(void)pthread_mutex_lock(&s->lock);
	l->resolved = true;
	l->err = err;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

static struct rig_parcel_ticket ticket_for(const struct rig_rmt_ticket *ticket, uint64_t bytes)
{
	return (struct rig_parcel_ticket){ticket->number, bytes, ticket->address, ticket->key};
}

static int no_link(struct session *s)
{
	return atomic_load(&s->ended)
	               ? -ECONNABORTED
	               : rig_error_set(-EPROTO, "bytes are to go over a link that there is not");
}

static int expect(struct landing *l, struct rig_rail_link *link, uint8_t *to, uint64_t bytes,
        struct rig_rmt_ticket *ticket)
{
	struct rig_parcel_ticket t;
	int err;

	if (!link)
		return no_link(l->s);
	err = rig_rail_expect(link, to, bytes, landed, l, &t);
	if (!err)
		*ticket = (struct rig_rmt_ticket){t.number, t.address, t.key};
	return err;
}

int parcel_take(struct device *d, uint64_t value, uint32_t part, uint8_t *to, uint64_t bytes)
{
	struct session *s = d->session;
	struct landing l = {.s = s};
	struct rig_rmt_want want = {.device = d->id, .value = value, .part = part};
	struct rig_rmt_out out = {0};
	int err = expect(&l, rails_link_to(s, RIG_RMT_HERE_PEER), to, bytes, &want.ticket);

	if (err)
		return err;
	rig_rmt_want_put(&out, &want);
	if (out.bad)
		session_fail(s, "the agent has no memory to ask for bytes");
	(void)session_send(s, RIG_RMT_TICKET, &out, NULL, 0);
	rig_rmt_out_free(&out);
	(void)pthread_mutex_lock(&s->lock);
	while (!l.resolved)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
	return l.err ? -ECONNABORTED : 0;
}

static void claim(struct session *s, uint32_t machine, const struct rig_rmt_claim *c)
{
	struct rig_rmt_out out = {0};

	rig_rmt_claim_put(&out, c);
	peer_send(s, machine, RIG_RMT_CLAIM, &out);
	rig_rmt_out_free(&out);
}

/* The refusal that answers it, or that is on its way, finds nobody. */
static void claim_nothing(struct session *s, uint32_t machine, uint32_t fetch)
{
	const struct rig_rmt_claim nothing = {.fetch = fetch};

	fetch_forget(s, fetch);
	claim(s, machine, &nothing);
}

static void unclaim(struct session *s, uint32_t machine, uint32_t fetch)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, fetch);
	peer_send(s, machine, RIG_RMT_UNCLAIM, &out);
	rig_rmt_out_free(&out);
}

int parcel_fetch(struct device *d, const struct rig_rmt_side *src, uint8_t *to, uint64_t bytes)
{
	struct session *s = d->session;
	struct rig_rail_link *link = rails_link_to(s, src->machine);
	struct landing l = {.s = s};
	struct rig_rmt_claim c = {.fetch = src->region, .bytes = bytes};
	struct fetch *refused = NULL;
	bool unclaimed = false;
	int err = expect(&l, link, to, bytes, &c.ticket);

	if (err) {
		claim_nothing(s, src->machine, src->region);
		return err;
	}
	claim(s, src->machine, &c);
	(void)pthread_mutex_lock(&s->lock);
	while (!l.resolved) {
		bool asks = device_is_ending(d) && !unclaimed;

		if (!refused)
			refused = fetch_ended(s, src->region);
		if (!refused && !asks) {
			(void)pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&s->lock);
		if (refused)
			(void)rig_rail_unexpect(link, c.ticket.number);
		else
			unclaim(s, src->machine, src->region);
		unclaimed |= asks;
		(void)pthread_mutex_lock(&s->lock);
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (!refused)
		return l.err ? -ECONNABORTED : 0;
	if (!refused->failed)
		err = rig_error_set(-EPROTO, "a message with bytes that were to come over a link");
	else if (device_is_ending(d))
		/* Which is its own end, and no loss, even where the refusal was not asked for by this. */
		err = -ECANCELED;
	else
		err = rig_error_set(
		        -EREMOTEIO, "%s", refused->data ? (const char *)refused->data : "its source is lost");
	fetch_free(refused);
	return err;
}

void sources_give_up(struct session *s, const struct rig_rmt_work *work, uint32_t first)
{
	uint32_t i;

	for (i = first; i < work->nparts; i++) {
		const struct rig_rmt_part *part = &work->parts[i];

		if (part->kind != RIG_COPY || part->fill)
			continue;
		if (part->src.where == RIG_RMT_FOREIGN)
			fetch_forget(s, part->src.region);
		else if (part->src.where == RIG_RMT_FOREIGN_PARCEL)
			claim_nothing(s, part->src.machine, part->src.region);
	}
}

/* ---- Bytes that a value brings ---- */

struct flight {
	struct session *s;
	uint32_t n;
};

static void out_sent(void *arg, int err)
{
	struct flight *f = arg;
	struct session *s = f->s;

	(void)err;
	(void)pthread_mutex_lock(&s->lock);
	f->n--;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

/* With the session's lock, so that the count is there before it is counted down. */
static int send_out(struct flight *f, struct rig_rail_link *link, const struct pending *p, struct outgoing *o)
{
	const struct rig_parcel_ticket ticket = ticket_for(&o->ticket, o->bytes);
	int err = link ? rig_rail_send(link, p->out->host + o->at, &ticket, out_sent, f) : no_link(f->s);

	o->begun = !err;
	f->n += o->begun;
	return err;
}

void parcels_send(struct device *d, struct pending *p)
{
	struct session *s = d->session;
	struct rig_rail_link *link = rails_link_to(s, RIG_RMT_HERE_PEER);
	struct flight f = {.s = s};
	uint32_t i;
	int err = 0;

	(void)pthread_mutex_lock(&s->lock);
	for (i = 0; i < p->noutgoing && !err; i++)
		if (p->outgoing[i].parcel)
			err = send_out(&f, link, p, &p->outgoing[i]);
	while (f.n)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
	/* The link's end has its own reason; anything else would leave the value without its bytes. */
	if (err && err != -ECONNABORTED)
		session_fail(s, "bytes for the controller did not go: %s", rig_error());
}

void parcel_give_up(struct session *s, uint32_t number)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, number);
	(void)session_send(s, RIG_RMT_VOID, &out, NULL, 0);
	rig_rmt_out_free(&out);
}

void submit_give_up(struct session *s, const uint8_t *submit, size_t n)
{
	struct rig_rmt_work work;
	uint32_t i;

	if (rig_rmt_work_parse(submit, n, &work))
		return;
	for (i = 0; i < work.nparts; i++)
		if (work.parts[i].kind == RIG_COPY && work.parts[i].dst.where == RIG_RMT_LOCAL_PARCEL)
			parcel_give_up(s, work.parts[i].dst.ticket.number);
	sources_give_up(s, &work, 0);
	rig_rmt_work_free(&work);
}

/* ---- Bytes that other agents fetch ---- */

/* With the lock. */
static struct claim **find(struct session *s, uint32_t fetch)
{
	struct claim **at;

	for (at = &s->claims; *at && (*at)->fetch != fetch; at = &(*at)->next)
		;
	return at;
}

/* With the lock, of a fetch that has none. NULL: no memory, or too many. */
static struct claim *make(struct session *s, uint32_t machine, uint32_t fetch)
{
	struct claim *c = s->nclaims < MOST_CLAIMS ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->fetch = fetch;
	c->machine = machine;
	c->next = s->claims;
	s->claims = c;
	s->nclaims++;
	return c;
}

/* With the lock. NULL: as make. */
static struct claim *find_or_make(struct session *s, uint32_t machine, uint32_t fetch)
{
	struct claim *c = *find(s, fetch);

	return c ? c : make(s, machine, fetch);
}

/* With the lock. */
static void take_off(struct session *s, struct claim *claim)
{
	struct claim **at = find(s, claim->fetch);

	*at = claim->next;
	s->nclaims--;
}

/* With the lock. Its staging memory is the caller's to give back. */
static void drop(struct session *s, struct claim *claim)
{
	take_off(s, claim);
	free(claim);
}

/* Of one in flight; the device may be gone afterwards. */
static void give_back(struct device *d, struct staging *staging)
{
	struct session *s = d->session;

	staging_give(d, staging);
	(void)pthread_mutex_lock(&s->lock);
	d->nflying--;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

static void fetched(void *arg, int err)
{
	struct claim *c = arg;
	struct session *s = c->d->session;

	(void)err;
	(void)pthread_mutex_lock(&s->lock);
	take_off(s, c);
	(void)pthread_mutex_unlock(&s->lock);
	give_back(c->d, c->staging);
	free(c);
}

/* With the lock, for a claim that is both. Where the link has ended it stays, not flying, until the device
   ends. */
static int launch(struct rig_rail_link *link, struct claim *c)
{
	int err;

	if (c->ticket.bytes != c->bytes)
		return rig_error_set(-EPROTO, "two agents were asked to copy different bytes");
	err = link ? rig_rail_send(link, c->staging->host, &c->ticket, fetched, c) : -ECONNABORTED;
	c->flying = !err;
	c->d->nflying += c->flying;
	return err == -ECONNABORTED ? 0 : err;
}

/* With the lock. This machine's part of it is done: its bytes are ready or on their way, or refused. */
static bool is_settled(const struct claim *c)
{
	return c->ready || c->refused;
}

static int two_of_one_number(void)
{
	return rig_error_set(-EPROTO, "malformed: two fetches of one number");
}

/* With the lock. Whether it is ready now, with another agent's claim or without; else given up. */
static bool make_ready(struct session *s, struct device *d, struct pending *p, struct claim *c)
{
	if (c->given_up) {
		drop(s, c);
		return false;
	}
	c->ready = true;
	c->d = d;
	c->staging = p->out;
	c->bytes = p->out_bytes;
	p->out = NULL;
	return true;
}

void parcel_ready(struct device *d, struct pending *p)
{
	struct session *s = d->session;
	struct rig_rail_link *link = rails_link_to(s, p->machine);
	struct claim *c;
	int err = 0;

	(void)pthread_mutex_lock(&s->lock);
	c = find_or_make(s, p->machine, p->fetch);
	if (!c)
		err = rig_error_set(-ENOMEM, "the agent has no memory");
	else if (c->machine != p->machine || is_settled(c))
		err = two_of_one_number();
	else if (make_ready(s, d, p, c) && c->claimed)
		err = launch(link, c);
	(void)pthread_mutex_unlock(&s->lock);
	if (err)
		session_fail(s, "bytes for another machine did not go: %s", rig_error());
}

void parcel_refuse(struct session *s, uint32_t machine, uint32_t fetch, const char *why)
{
	struct claim *c;
	bool tells = true;
	int err = 0;

	(void)pthread_mutex_lock(&s->lock);
	c = *find(s, fetch);
	if (c && (c->machine != machine || is_settled(c))) {
		err = two_of_one_number();
		tells = false;
	} else if (c) {
		tells = !c->given_up;
		drop(s, c);
	} else if ((c = make(s, machine, fetch))) {
		c->refused = true;
	} else {
		err = rig_error_set(-ENOMEM, "the agent has no memory for what it does not send");
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (tells)
		fetch_refuse(s, machine, fetch, why);
	if (err)
		session_fail(s, "%s", rig_error());
}

/* What to do once the lock is given back. */
struct given_up {
	struct device *d;
	struct staging *staging;
	bool tells;
};

/* With the lock, for a claim that does not fly. */
static void give_up(struct session *s, struct claim *c, struct given_up *g)
{
	g->tells = true;
	if (!c->ready) {
		c->given_up = true;
		return;
	}
	g->d = c->d;
	g->staging = c->staging;
	/* Which keeps the device. */
	g->d->nflying++;
	drop(s, c);
}

static void end_give_up(struct session *s, uint32_t machine, uint32_t fetch, const struct given_up *g)
{
	if (g->d)
		give_back(g->d, g->staging);
	if (g->tells)
		fetch_refuse(s, machine, fetch, "the copy was given up");
}

/* With the lock. The claim is the fetch's first. */
static int take_claim(struct session *s, struct rig_rail_link *link, struct claim *c,
        const struct rig_rmt_claim *claimed, struct given_up *g)
{
	c->claimed = true;
	c->ticket = ticket_for(&claimed->ticket, claimed->bytes);
	if (c->refused)
		drop(s, c);
	else if (!claimed->bytes)
		give_up(s, c, g);
	else if (c->ready)
		return launch(link, c);
	return 0;
}

int parcel_claim(struct session *s, uint32_t machine, const uint8_t *bytes, size_t n)
{
	struct rig_rail_link *link = rails_link_to(s, machine);
	struct rig_rmt_claim claimed;
	struct given_up g = {0};
	struct claim *c;
	int err = -EPROTO;

	if (rig_rmt_claim_parse(bytes, n, &claimed))
		return -EPROTO;
	(void)pthread_mutex_lock(&s->lock);
	c = find_or_make(s, machine, claimed.fetch);
	if (c && !c->claimed && c->machine == machine)
		err = take_claim(s, link, c, &claimed, &g);
	(void)pthread_mutex_unlock(&s->lock);
	end_give_up(s, machine, claimed.fetch, &g);
	return err;
}

int parcel_unclaim(struct session *s, uint32_t machine, const uint8_t *bytes, size_t n)
{
	struct given_up g = {0};
	uint32_t fetch;
	struct claim *c;
	int err = 0;

	if (rig_rmt_number_parse(bytes, n, &fetch))
		return -EPROTO;
	(void)pthread_mutex_lock(&s->lock);
	c = *find(s, fetch);
	/* Of none the bytes, or the refusal, are on their way. */
	if (c && (!c->claimed || c->given_up || c->machine != machine))
		err = -EPROTO;
	else if (c && !c->flying)
		give_up(s, c, &g);
	(void)pthread_mutex_unlock(&s->lock);
	end_give_up(s, machine, fetch, &g);
	return err;
}

/* With the lock: one of the device's that waits to be claimed, or whose link has ended, is refused. What it
   was, in *was. False: there is none. */
static bool ground(struct device *d, struct claim *was)
{
	struct claim *c;

	for (c = d->session->claims; c && (c->d != d || c->flying); c = c->next)
		;
	if (!c)
		return false;
	*was = *c;
	c->ready = false;
	c->refused = true;
	c->d = NULL;
	if (c->claimed)
		drop(d->session, c);
	return true;
}

void parcels_halt(struct device *d)
{
	struct session *s = d->session;
	struct claim was;

	(void)pthread_mutex_lock(&s->lock);
	while (ground(d, &was)) {
		(void)pthread_mutex_unlock(&s->lock);
		fetch_refuse(s, was.machine, was.fetch, "the device that it copies from has ended");
		staging_give(d, was.staging);
		(void)pthread_mutex_lock(&s->lock);
	}
	while (d->nflying)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
}

void parcels_free(struct session *s)
{
	while (s->claims) {
		struct claim *c = s->claims;

		s->claims = c->next;
		free(c);
	}
}
