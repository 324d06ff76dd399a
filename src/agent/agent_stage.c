/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "agent_device.h"
#include "agent_memory.h"
#include "agent_parcel.h"
#include "clock.h"
#include "cond.h"

enum {
	AWAIT_MS = 10000, /* for what is taken: two machines may wait for each other's */
	LOOK_MS = 20,
};

/* Kept for reuse. */
#define KEEP_BYTES (UINT64_C(128) << 20)

static struct staging *find(struct device *d, uint64_t bytes)
{
	struct staging **at, *s = NULL;

	(void)pthread_mutex_lock(&d->lock);
	for (at = &d->free; *at && (*at)->bytes != bytes; at = &(*at)->next)
		;
	if (*at) {
		s = *at;
		*at = s->next;
		d->free_bytes -= s->bytes;
		d->nstaged++;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return s;
}

static struct staging *make(struct device *d, uint64_t bytes)
{
	struct staging *s = calloc(1, sizeof(*s));
	const char *fault = NULL;
	struct rig_location at;

	if (!s)
		return NULL;
	s->bytes = bytes;
	if (d->m->alloc(d->handle, d->facts.host_addresses ? RIG_DEVICE : RIG_PINNED, bytes, &s->region,
	            &fault)) {
		free(s);
		return NULL;
	}
	d->m->locate(d->handle, s->region, &at);
	s->host = at.has_host ? at.host : NULL;
	s->handle = at.handle;
	if (s->host) {
		(void)pthread_mutex_lock(&d->lock);
		d->nstaged++;
		(void)pthread_mutex_unlock(&d->lock);
		return s;
	}
	(void)d->m->free(d->handle, s->region, &fault);
	free(s);
	return NULL;
}

static void unmake(struct device *d, struct staging *s)
{
	const char *fault = NULL;

	(void)d->m->free(d->handle, s->region, &fault);
	free(s);
}

static void drop_list(struct device *d, struct staging *s)
{
	while (s) {
		struct staging *next = s->next;

		unmake(d, s);
		s = next;
	}
}

/* Of a device that is ending nothing is idle for sure. */
static struct staging *take_idle(struct device *d)
{
	struct staging *s = NULL;

	(void)pthread_mutex_lock(&d->lock);
	if (!device_is_ending(d)) {
		s = d->free;
		d->free = NULL;
		d->free_bytes = 0;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return s;
}

struct staging *staging_take(struct device *d, uint64_t bytes)
{
	struct staging *s = find(d, rig_rmt_staging_bytes(bytes));

	if (!s)
		s = make(d, rig_rmt_staging_bytes(bytes));
	if (s)
		return s;
	/* What lies about in other sizes may be what is missing. */
	drop_list(d, take_idle(d));
	return make(d, rig_rmt_staging_bytes(bytes));
}

struct staging *staging_await(struct device *d, uint64_t bytes, uint32_t held)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, AWAIT_MS * RIG_NS_PER_MS);
	struct staging *s = staging_take(d, bytes);
	bool waits = true;

	while (!s && waits && !rig_deadline_passed(&deadline)) {
		(void)pthread_mutex_lock(&d->lock);
		waits = d->nstaged > held && !device_is_ending(d);
		if (waits)
			(void)rig_cond_wait_ms(&d->changed, &d->lock, LOOK_MS);
		(void)pthread_mutex_unlock(&d->lock);
		s = staging_take(d, bytes);
	}
	return s;
}

void staging_give(struct device *d, struct staging *s)
{
	bool keep;

	if (!s)
		return;
	(void)pthread_mutex_lock(&d->lock);
	/* Work that is under way when the device ends may use it still. */
	keep = device_is_ending(d) || d->free_bytes + s->bytes <= KEEP_BYTES;
	if (keep) {
		s->next = d->free;
		d->free = s;
		d->free_bytes += s->bytes;
	}
	d->nstaged--;
	(void)pthread_mutex_unlock(&d->lock);
	if (!keep)
		unmake(d, s);
}

void pending_void(struct device *d, struct pending *p)
{
	uint32_t i;

	for (i = 0; i < p->noutgoing; i++) {
		if (p->outgoing[i].parcel && !p->outgoing[i].begun)
			parcel_give_up(d->session, p->outgoing[i].ticket.number);
		p->outgoing[i].begun = true;
	}
}

void pending_free(struct device *d, struct pending *p)
{
	if (!p)
		return;
	pending_void(d, p);
	staging_give(d, p->in);
	staging_give(d, p->out);
	uses_let(d, &p->uses);
	free(p->waits);
	free(p->outgoing);
	free(p);
}

void staging_drop(struct device *d)
{
	drop_list(d, d->free);
	d->free = NULL;
	d->free_bytes = 0;
}
