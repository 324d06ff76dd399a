/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "agent.h"

#define LEAST_BYTES UINT64_C(65536)
/* Kept for reuse. */
#define KEEP_BYTES (UINT64_C(128) << 20)

static uint64_t size_of(uint64_t bytes)
{
	uint64_t size = LEAST_BYTES;

	while (size < bytes)
		size *= 2;
	return size;
}

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
	if (s->host)
		return s;
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

struct staging *staging_take(struct device *d, uint64_t bytes)
{
	struct staging *s = find(d, size_of(bytes));

	return s ? s : make(d, size_of(bytes));
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
	while (d->free) {
		struct staging *s = d->free;

		d->free = s->next;
		unmake(d, s);
	}
	d->free_bytes = 0;
}
