/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "agent.h"

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

static int expect(struct landing *l, struct rig_rail_link *link, uint8_t *to, uint64_t bytes,
        struct rig_rmt_ticket *ticket)
{
	struct rig_parcel_ticket t;
	int err;

	if (!link)
		return rig_error_set(-EPROTO, "bytes are to come over a link that there is not");
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

static void claim(struct session *s, uint32_t machine, uint32_t fetch, uint64_t bytes,
        const struct rig_rmt_ticket *ticket)
{
	const struct rig_rmt_claim c = {fetch, bytes, *ticket};
	struct rig_rmt_out out = {0};

	rig_rmt_claim_put(&out, &c);
	peer_send(s, machine, RIG_RMT_CLAIM, &out);
	rig_rmt_out_free(&out);
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
	struct rig_rmt_ticket ticket;
	struct fetch *refused = NULL;
	bool unclaimed = false;
	int err = expect(&l, link, to, bytes, &ticket);

	if (err)
		return err;
	claim(s, src->machine, src->region, bytes, &ticket);
	(void)pthread_mutex_lock(&s->lock);
	while (!l.resolved) {
		bool asks = device_is_ending(d) && !unclaimed;

		if (!refused)
			refused = fetch_refused(s, src->region);
		if (!refused && !asks) {
			(void)pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&s->lock);
		if (refused)
			(void)rig_rail_unexpect(link, ticket.number);
		else
			unclaim(s, src->machine, src->region);
		unclaimed |= asks;
		(void)pthread_mutex_lock(&s->lock);
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (!refused)
		return l.err ? -ECONNABORTED : 0;
	err = rig_error_set(
	        -EREMOTEIO, "%s", refused->data ? (const char *)refused->data : "its source is lost");
	fetch_free(refused);
	return err;
}

int parcel_void(struct session *s, const uint8_t *bytes, size_t n)
{
	struct rig_rail_link *link = rails_link_to(s, RIG_RMT_HERE_PEER);
	uint32_t number;

	if (rig_rmt_number_parse(bytes, n, &number) || !link)
		return -EPROTO;
	/* The link may have ended, and every ticket with it. */
	(void)rig_rail_unexpect(link, number);
	return 0;
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
static void send_out(
        struct flight *f, struct rig_rail_link *link, const struct pending *p, struct outgoing *o)
{
	const struct rig_parcel_ticket ticket = {
	        o->ticket.number, o->bytes, o->ticket.address, o->ticket.key};

	o->begun = link && !rig_rail_send(link, p->out->host + o->at, &ticket, out_sent, f);
	f->n += o->begun;
}

void parcels_send(struct device *d, struct pending *p)
{
	struct session *s = d->session;
	struct rig_rail_link *link = rails_link_to(s, RIG_RMT_HERE_PEER);
	struct flight f = {.s = s};
	uint32_t i;

	(void)pthread_mutex_lock(&s->lock);
	for (i = 0; i < p->noutgoing; i++)
		if (p->outgoing[i].parcel)
			send_out(&f, link, p, &p->outgoing[i]);
	while (f.n)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
}

void parcel_give_up(struct session *s, uint32_t number)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, number);
	(void)session_send(s, RIG_RMT_VOID, &out, NULL, 0);
	rig_rmt_out_free(&out);
}

void parcels_give_up(struct session *s, const uint8_t *submit, size_t n)
{
	struct rig_rmt_work work;
	uint32_t i;

	if (rig_rmt_work_parse(submit, n, &work))
		return;
	for (i = 0; i < work.nparts; i++)
		if (work.parts[i].kind == RIG_COPY && work.parts[i].dst.where == RIG_RMT_LOCAL_PARCEL)
			parcel_give_up(s, work.parts[i].dst.ticket.number);
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

/* With the lock. NULL: no memory, or too many. */
static struct claim *find_or_make(struct session *s, uint32_t machine, uint32_t fetch)
{
	struct claim *c = *find(s, fetch);

	if (c || s->nclaims == MOST_CLAIMS)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->fetch = fetch;
	c->machine = machine;
	c->next = s->claims;
	s->claims = c;
	s->nclaims++;
	return c;
}

/* With the lock. Its staging memory is the caller's to give back. */
static void take_off(struct session *s, struct claim *claim)
{
	struct claim **at = find(s, claim->fetch);

	*at = claim->next;
	s->nclaims--;
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

/* With the lock, for a claim that is both. Where it cannot be sent, the link has ended. False: they are of
   different bytes. */
static bool launch(struct rig_rail_link *link, struct claim *c)
{
	if (c->ticket.bytes != c->bytes)
		return false;
	c->flying = link && !rig_rail_send(link, c->staging->host, &c->ticket, fetched, c);
	c->d->nflying += c->flying;
	return true;
}

void parcel_ready(struct device *d, struct pending *p)
{
	struct session *s = d->session;
	struct rig_rail_link *link = rails_link_to(s, p->machine);
	struct staging *unused = NULL;
	struct claim *c;
	bool none, same = true;

	(void)pthread_mutex_lock(&s->lock);
	c = find_or_make(s, p->machine, p->fetch);
	none = !c;
	if (c && c->given_up) {
		unused = p->out;
		take_off(s, c);
		free(c);
	} else if (c) {
		c->ready = true;
		c->d = d;
		c->staging = p->out;
		c->bytes = p->out_bytes;
		same = !c->claimed || launch(link, c);
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (!same)
		session_fail(s, "malformed: two agents were asked to copy different bytes");
	if (none)
		fetch_refuse(s, p->machine, p->fetch, "the agent has no memory to send bytes");
	else
		p->out = NULL;
	staging_give(d, unused);
}

int parcel_claim(struct session *s, uint32_t machine, const uint8_t *bytes, size_t n)
{
	struct rig_rail_link *link = rails_link_to(s, machine);
	struct rig_rmt_claim claimed;
	struct claim *c;
	bool wrong;

	if (rig_rmt_claim_parse(bytes, n, &claimed))
		return -EPROTO;
	(void)pthread_mutex_lock(&s->lock);
	c = find_or_make(s, machine, claimed.fetch);
	wrong = !c || c->claimed || c->machine != machine;
	if (!wrong) {
		c->claimed = true;
		c->ticket = (struct rig_parcel_ticket){
		        claimed.ticket.number, claimed.bytes, claimed.ticket.address, claimed.ticket.key};
		wrong = c->ready && !launch(link, c);
	}
	(void)pthread_mutex_unlock(&s->lock);
	return wrong ? -EPROTO : 0;
}

int parcel_unclaim(struct session *s, uint32_t machine, const uint8_t *bytes, size_t n)
{
	struct staging *unused = NULL;
	struct device *d = NULL;
	uint32_t fetch;
	struct claim *c;
	bool flying;

	if (rig_rmt_number_parse(bytes, n, &fetch))
		return -EPROTO;
	(void)pthread_mutex_lock(&s->lock);
	c = find_or_make(s, machine, fetch);
	flying = c && c->flying;
	if (c && c->ready && !flying) {
		unused = c->staging;
		d = c->d;
		/* Which keeps the device. */
		d->nflying++;
		take_off(s, c);
		free(c);
	} else if (c && !flying) {
		c->given_up = true;
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (d)
		give_back(d, unused);
	if (!flying)
		fetch_refuse(s, machine, fetch, "the copy was given up");
	return 0;
}

void parcel_forget(struct session *s, uint32_t fetch)
{
	struct claim *c;

	(void)pthread_mutex_lock(&s->lock);
	c = *find(s, fetch);
	if (c && !c->ready && !c->given_up) {
		take_off(s, c);
		free(c);
	}
	(void)pthread_mutex_unlock(&s->lock);
}

/* With the lock: one of the device's that waits to be claimed, or whose link has ended. */
static struct claim *next_grounded(struct device *d)
{
	struct claim *c;

	for (c = d->session->claims; c && (c->d != d || c->flying); c = c->next)
		;
	if (c)
		take_off(d->session, c);
	return c;
}

void parcels_halt(struct device *d)
{
	struct session *s = d->session;
	struct claim *c;

	(void)pthread_mutex_lock(&s->lock);
	while ((c = next_grounded(d))) {
		(void)pthread_mutex_unlock(&s->lock);
		fetch_refuse(s, c->machine, c->fetch, "the device that it copies from has ended");
		staging_give(d, c->staging);
		free(c);
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
