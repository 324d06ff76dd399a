/* SPDX-License-Identifier: MIT */
/* Bytes of values that go by parcels. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cond.h"
#include "rmt_proxy.h"

/* What a parcel tells. */
struct parcel {
	struct proxy *p;
	struct value *v;
};

static bool is_complete(const struct value *v)
{
	return v && v->reached && !v->parcels && !v->aborted;
}

/* What the device waited for there is shown here by other proxies, some of it once its bytes are here. */
static bool follows_what_shows(const struct value *v)
{
	uint32_t i;

	for (i = 0; i < v->nwaits; i++)
		if (rig_word_load(v->waits[i].word) < v->waits[i].value)
			return false;
	return true;
}

struct value *rig_rmt_proxy_find(const struct proxy *p, uint64_t number)
{
	struct value *v;

	for (v = p->flight; v && v->work.value != number; v = v->next)
		;
	return v;
}

bool rig_rmt_proxy_is_held(const struct proxy *p)
{
	return is_complete(p->flight);
}

void rig_rmt_proxy_advance(struct proxy *p)
{
	struct value *v;
	bool moved = false;

	for (; is_complete(v = p->flight) && follows_what_shows(v); moved = true) {
		p->flight = v->next;
		if (!p->flight)
			p->flight_tail = &p->flight;
		p->nvalues--;
		p->bytes -= v->local_bytes;
		v->done = true;
		rig_word_raise(p->word, v->work.value);
		/* Who still sends it looks whether it is done. */
		if (!v->busy)
			rig_rmt_value_end(p, v);
	}
	/* The worker looks again at what is held. */
	if (moved || rig_rmt_proxy_is_held(p))
		(void)pthread_cond_broadcast(&p->moved);
}

static void told(void *arg, int err)
{
	struct parcel parcel = *(struct parcel *)arg;
	struct proxy *p = parcel.p;

	free(arg);
	(void)pthread_mutex_lock(&p->lock);
	parcel.v->parcels--;
	p->nparcels--;
	parcel.v->aborted |= err != 0;
	rig_rmt_proxy_advance(p);
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
}

/* Counted before it can be told. With the lock. NULL: no memory. */
static struct parcel *make_parcel(struct proxy *p, struct value *v)
{
	struct parcel *parcel = malloc(sizeof(*parcel));

	if (!parcel)
		return NULL;
	*parcel = (struct parcel){p, v};
	v->parcels++;
	p->nparcels++;
	return parcel;
}

/* Of one that no engine took. */
static void drop_parcel(struct parcel *parcel)
{
	struct proxy *p = parcel->p;

	(void)pthread_mutex_lock(&p->lock);
	parcel->v->parcels--;
	p->nparcels--;
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
	free(parcel);
}

/* ---- Before a value is sent ---- */

static bool is_large(uint64_t row_bytes, uint64_t rows)
{
	return row_bytes * rows >= RIG_RMT_PARCEL_FROM;
}

bool rig_rmt_local_is_whole(const struct local *l)
{
	return is_large(l->row_bytes, l->rows) && (l->rows == 1 || l->pitch == l->row_bytes);
}

bool rig_rmt_locals_overlap(const struct local *a, const struct local *b)
{
	const uint8_t *a_end = a->at + (a->rows - 1) * a->pitch + a->row_bytes;
	const uint8_t *b_end = b->at + (b->rows - 1) * b->pitch + b->row_bytes;

	return a->at < b_end && b->at < a_end;
}

/* Whether another part of the value brings bytes to the same place: they come in the order of the parts. */
static bool is_shared(const struct value *v, const struct local *l)
{
	uint32_t i;

	for (i = 0; i < v->nlocals && !l->in; i++)
		if (&v->locals[i] != l && !v->locals[i].in && rig_rmt_locals_overlap(&v->locals[i], l))
			return true;
	return false;
}

/* Whether the agent can be told where the bytes go. */
static bool expect(struct proxy *p, struct value *v, struct local *l)
{
	struct parcel *parcel;

	(void)pthread_mutex_lock(&p->lock);
	parcel = make_parcel(p, v);
	(void)pthread_mutex_unlock(&p->lock);
	if (!parcel)
		return false;
	if (!rig_rmt_parcel_expect(
	            p->m, l->at, l->row_bytes * l->rows, told, parcel, &v->work.parts[l->part].dst.ticket))
		return true;
	drop_parcel(parcel);
	return false;
}

static void wrap_local(struct proxy *p, struct value *v, struct local *l)
{
	struct rig_rmt_part *part = &v->work.parts[l->part];
	bool goes = l->in || expect(p, v, l);

	if (goes)
		(l->in ? &part->src : &part->dst)->where = RIG_RMT_LOCAL_PARCEL;
	(void)pthread_mutex_lock(&p->lock);
	l->parcel = goes;
	(void)pthread_mutex_unlock(&p->lock);
}

static void wrap_foreign(struct proxy *p, struct value *v, struct foreign *f)
{
	struct rig_rmt_side *side = &v->work.parts[f->part].src;

	if (!is_large(f->fetch.row_bytes, f->fetch.rows) || !rig_rmt_parcels_between(p->m, f->machine))
		return;
	f->fetch.parcel = true;
	side->where = RIG_RMT_FOREIGN_PARCEL;
	side->machine = f->machine->index;
}

void rig_rmt_value_wrap(struct proxy *p, struct value *v)
{
	uint32_t i;

	for (i = 0; i < v->nlocals; i++)
		if (rig_rmt_local_is_whole(&v->locals[i]) && !is_shared(v, &v->locals[i]) &&
		        rig_rmt_parcels_here(p->m))
			wrap_local(p, v, &v->locals[i]);
	for (i = 0; i < v->nforeigns; i++)
		wrap_foreign(p, v, &v->foreigns[i]);
}

/* Messages would have places among the bytes of all parts. */
static bool is_apart(const struct rig_rmt_side *side)
{
	return side->where != RIG_RMT_LOCAL && side->where != RIG_RMT_FOREIGN;
}

bool rig_rmt_value_is_in_pieces(const struct value *v)
{
	bool apart = v->pieces && !v->work.timed;
	uint32_t i;

	for (i = 0; i < v->work.nparts && apart; i++)
		apart = is_apart(&v->work.parts[i].dst) && is_apart(&v->work.parts[i].src);
	return apart;
}

/* ---- What a machine's reader brings ---- */

/* With the lock. */
static struct local *find_local(struct value *v, uint32_t part)
{
	uint32_t i;

	for (i = 0; v && i < v->nlocals; i++)
		if (v->locals[i].in && v->locals[i].part == part && v->locals[i].parcel &&
		        !v->locals[i].asked)
			return &v->locals[i];
	return NULL;
}

/* With the table's lock, which keeps the proxy, and which no parcel's callback takes. */
static int send_parcel(struct proxy *p, const struct rig_rmt_want *want)
{
	struct parcel *parcel = NULL;
	struct local *l = NULL;
	struct value *v;
	bool stopped;
	int err;

	(void)pthread_mutex_lock(&p->lock);
	stopped = p->stopped;
	v = rig_rmt_proxy_find(p, want->value);
	l = stopped ? NULL : find_local(v, want->part);
	if (l) {
		l->asked = true;
		parcel = make_parcel(p, v);
	}
	(void)pthread_mutex_unlock(&p->lock);
	/* A stopped one's agent has gone its own way: the job is over. */
	if (!l)
		return stopped ? 0 : -EPROTO;
	if (!parcel)
		return -ENOMEM;
	err = rig_rmt_parcel_send(p->m, l->at, l->row_bytes * l->rows, &want->ticket, told, parcel);
	if (err)
		drop_parcel(parcel);
	/* The link's end has its own reason, and is the ticket's. */
	return err == -ECONNABORTED ? 0 : err;
}

int rig_rmt_proxy_ticket(struct proxy *p, const uint8_t *payload, size_t bytes)
{
	struct rig_rmt_want want;

	return rig_rmt_want_parse(payload, bytes, &want) ? -EPROTO : send_parcel(p, &want);
}

/* ---- The end ---- */

void rig_rmt_proxy_await_parcels(struct proxy *p)
{
	unsigned ms = p->m->job->options.answer_ms;
	struct timespec end = rig_cond_end_ms(ms);
	int err = 0;

	while (p->nparcels && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&p->moved, &p->lock, &end);
	if (!p->nparcels)
		return;
	(void)pthread_mutex_unlock(&p->lock);
	rig_rmt_job_fail(p->m->job,
	        "machine %s did not say within %u ms what became of a device's large copies", p->m->name, ms);
	(void)pthread_mutex_lock(&p->lock);
	/* The end of the links resolves them, and is this process's own. */
	while (p->nparcels)
		(void)pthread_cond_wait(&p->moved, &p->lock);
}
