/* SPDX-License-Identifier: MIT */
/* What a machine's reader brings its proxies. */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"

#include "rmt_proxy.h"

/* Places bytes [at, at + n) of what the local destinations of a value get, one after the other. */
static int place(const struct value *v, uint64_t at, const uint8_t *bytes, uint64_t n)
{
	uint32_t i;

	for (i = 0; i < v->nlocals && n; i++) {
		const struct local *l = &v->locals[i];
		uint64_t all = l->row_bytes * l->rows;

		if (l->in)
			continue;
		if (at >= all) {
			at -= all;
			continue;
		}
		while (n && at < all) {
			uint64_t row = at / l->row_bytes, column = at % l->row_bytes;
			uint64_t take = l->row_bytes - column < n ? l->row_bytes - column : n;

			memcpy(l->at + row * l->pitch + column, bytes, take);
			bytes += take;
			n -= take;
			at += take;
		}
		at -= all;
	}
	return n ? -EPROTO : 0;
}

static int take_bytes(struct proxy *p, uint64_t number, uint64_t at, const uint8_t *bytes, size_t n)
{
	struct value *v;
	int err = 0;

	(void)pthread_mutex_lock(&p->lock);
	v = p->stopped ? NULL : rig_rmt_proxy_find(p, number);
	if (!p->stopped && (!v || at < v->got))
		err = -EPROTO;
	if (!err && v)
		err = place(v, at, bytes, n);
	if (!err && v)
		v->got = at + n;
	(void)pthread_mutex_unlock(&p->lock);
	return err;
}

static int take_data(struct proxy *p, const uint8_t *payload, size_t bytes)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload, bytes);
	uint64_t number, at;

	(void)rig_rmt_get32(&in); /* the device */
	number = rig_rmt_get64(&in);
	at = rig_rmt_get64(&in);
	return in.bad ? -EPROTO : take_bytes(p, number, at, in.at, in.left);
}

/* ---- Times ---- */

static uint64_t here(const struct rig_rmt_clock *clock, uint64_t theirs, uint64_t from, uint64_t to)
{
	uint64_t t = theirs - (uint64_t)clock->ahead;

	return t < from ? from : t > to ? to : t;
}

static void keep_measures(struct proxy *p, const struct value *v, const struct rig_rmt_reached *r,
        const struct rig_rmt_clock *clock, uint64_t now)
{
	struct measured *m = malloc(sizeof(*m) + r->nmeasures * sizeof(m->words[0]));
	uint32_t i;

	if (!m)
		return;
	m->value = r->value;
	m->n = r->nmeasures;
	memcpy(m->words, r->measures, r->nmeasures * sizeof(m->words[0]));
	for (i = 0; i + p->row_words <= m->n; i += p->row_words)
		if (m->words[i]) {
			m->words[i + 1] = here(clock, m->words[i + 1], v->handed, now);
			m->words[i + 2] = here(clock, m->words[i + 2], m->words[i + 1], now);
		}
	m->next = p->measured;
	p->measured = m;
}

/* With the lock. */
static void give_times(
        struct proxy *p, struct value *v, const struct rig_rmt_reached *r, const struct rig_rmt_clock *clock)
{
	uint64_t now = rig_now_ns();

	if (!v->times || !r->timed)
		return;
	if (r->start || r->end) {
		v->times->start = here(clock, r->start, v->handed, now);
		v->times->end = here(clock, r->end, v->times->start, now);
	}
	if (r->nmeasures)
		keep_measures(p, v, r, clock, now);
}

/* With the lock: the first that is not. */
static struct value *first_unreached(const struct proxy *p)
{
	struct value *v;

	for (v = p->flight; v && v->reached; v = v->next)
		;
	return v;
}

static int take_reached(struct proxy *p, const struct rig_rmt_reached *r, const struct rig_rmt_clock *clock)
{
	struct value *v;
	int err = 0;

	(void)pthread_mutex_lock(&p->lock);
	v = p->stopped ? NULL : first_unreached(p);
	if (!p->stopped && (!v || v->work.value != r->value ||
	                           (r->nmeasures && r->nmeasures != v->nlaunches * p->row_words)))
		err = -EPROTO;
	if (!err && v) {
		give_times(p, v, r, clock);
		v->reached = true;
		rig_rmt_proxy_advance(p);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return err;
}

static int take_any_reached(struct proxy *p, const uint8_t *payload, size_t bytes)
{
	struct rig_rmt_reached *r = malloc(sizeof(*r));
	struct rig_rmt_clock clock = rig_rmt_clock_now_locked(p->m);
	int err;

	if (!r)
		return -ENOMEM;
	err = rig_rmt_reached_parse(payload, bytes, r);
	if (!err)
		err = take_reached(p, r, &clock);
	free(r);
	return err;
}

int rig_rmt_proxy_take(struct rig_rmt_device *d, uint8_t kind, const uint8_t *payload, size_t bytes)
{
	struct proxy *p = rig_rmt_proxy_of(d);

	switch (kind) {
	case RIG_RMT_DATA:
		return take_data(p, payload, bytes);
	case RIG_RMT_TICKET:
		return rig_rmt_proxy_ticket(p, payload, bytes);
	default:
		return take_any_reached(p, payload, bytes);
	}
}

int rig_rmt_measures(void *self, uint64_t value, uint64_t *out, const char **failure)
{
	struct proxy *p = self;
	struct measured **at, *m;

	(void)failure;
	(void)pthread_mutex_lock(&p->lock);
	for (at = &p->measured; *at && (*at)->value != value; at = &(*at)->next)
		;
	m = *at;
	if (m && out)
		memcpy(out, m->words, m->n * sizeof(m->words[0]));
	else if (m)
		*at = m->next;
	(void)pthread_mutex_unlock(&p->lock);
	if (!out)
		free(m);
	return RIG_OK;
}

void rig_rmt_measured_drop(struct proxy *p)
{
	while (p->measured) {
		struct measured *m = p->measured;

		p->measured = m->next;
		free(m);
	}
}
