/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent_device.h"
#include "agent_memory.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "agent_session.h"
#include "cond.h"

enum {
	IDLE_MS = 250, /* between two looks at whether an idle device is well */
	LOOK_MS = 50,
};

/* The first pending, or NULL after a while or at the end. */
static struct pending *first(struct device *d)
{
	struct timespec end = rig_cond_end_ms(IDLE_MS);
	struct pending *p;

	(void)pthread_mutex_lock(&d->lock);
	while (!d->head && !device_is_ending(d))
		if (pthread_cond_timedwait(&d->changed, &d->lock, &end) == ETIMEDOUT)
			break;
	p = d->head;
	(void)pthread_mutex_unlock(&d->lock);
	return p;
}

static void look(struct device *d, uint64_t seen, unsigned ms)
{
	const char *fault = NULL;

	if (d->m->sleep && d->m->sleep(d->handle, seen, ms, &fault) == RIG_FAULT)
		device_lose(d, "%s", fault ? fault : "the driver faulted without a reason");
}

static bool await(struct device *d, uint64_t value)
{
	uint64_t shown;

	while ((shown = device_shown(d)) < value) {
		if (device_is_ending(d))
			return false;
		look(d, shown, LOOK_MS);
	}
	return true;
}

static void remove_first(struct device *d, const struct pending *p)
{
	(void)pthread_mutex_lock(&d->lock);
	if (!p->own)
		d->told = p->value;
	d->head = d->head->next;
	if (!d->head)
		d->tail = &d->head;
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
}

static int send_data(struct device *d, const struct pending *p, uint64_t at, uint64_t n)
{
	struct rig_rmt_out head = {0};
	int err;

	rig_rmt_put32(&head, d->id);
	rig_rmt_put64(&head, p->value);
	rig_rmt_put64(&head, at);
	err = session_send(d->session, RIG_RMT_DATA, &head, p->out->host + at, n);
	rig_rmt_out_free(&head);
	return err;
}

static int send_messages(struct device *d, const struct pending *p, const struct outgoing *o)
{
	uint64_t at = o->at, end = o->at + o->bytes, n;
	int err = 0;

	for (; at < end && !err; at += n) {
		n = end - at < RIG_RMT_DATA_BYTES ? end - at : RIG_RMT_DATA_BYTES;
		err = send_data(d, p, at, n);
	}
	return err;
}

static void send_bytes(struct device *d, struct pending *p)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < p->noutgoing && !err; i++)
		if (!p->outgoing[i].parcel)
			err = send_messages(d, p, &p->outgoing[i]);
	parcels_send(d, p);
}

static uint32_t row_words(const struct device *d)
{
	uint32_t i, n = 3;

	for (i = 0; i < d->facts.ncounters; i++)
		n += d->facts.counters[i].values;
	return n;
}

/* Times in the agent's clock. What does not fit a message is not measured. */
static int add_times(struct device *d, struct pending *p, struct rig_rmt_reached *r)
{
	uint32_t words = p->nlaunches * row_words(d);
	const char *failure = NULL;
	int answer = RIG_OK;
	bool fits = p->nlaunches <= RIG_RMT_MEASURES / row_words(d);

	if (d->hot->settle)
		answer = d->hot->settle(d->facts.edge, p->shown, &failure);
	if (answer == RIG_OK && d->hot->measures && p->nlaunches) {
		memset(r->measures, 0, fits ? words * sizeof(r->measures[0]) : 0);
		answer = d->hot->measures(d->facts.edge, p->shown, fits ? r->measures : NULL, &failure);
		r->nmeasures = fits ? words : 0;
	}
	r->timed = true;
	r->start = p->times.start;
	r->end = p->times.end;
	if (answer == RIG_OK)
		return 0;
	device_lose(d, "%s", failure ? failure : "the driver failed to give times");
	return -EIO;
}

static void say_reached(struct device *d, struct pending *p)
{
	struct rig_rmt_reached *r =
	        calloc(1, p->timed ? sizeof(*r) : offsetof(struct rig_rmt_reached, measures));
	struct rig_rmt_out out = {0};
	int err = 0;

	if (!r) {
		device_lose(d, "the agent has no memory to say what is reached");
		return;
	}
	r->device = d->id;
	r->value = p->value;
	if (p->timed) {
		(void)pthread_mutex_lock(&d->turn);
		err = add_times(d, p, r);
		(void)pthread_mutex_unlock(&d->turn);
	}
	if (!err) {
		rig_rmt_reached_put(&out, r);
		(void)session_send(d->session, RIG_RMT_REACHED, &out, NULL, 0);
	}
	rig_rmt_out_free(&out);
	free(r);
}

/* A controller that learns of a value takes for reached what its work waited for. That is complete, and about
   to be told by its device's own thread, which waits for earlier values alone. */
static void await_told(struct device *d, const struct pending *p)
{
	uint32_t i;

	for (i = 0; i < p->nwaits; i++) {
		struct device *other = session_device(d->session, p->waits[i].device);

		(void)pthread_mutex_lock(&other->lock);
		while (other->told < p->waits[i].value && !device_is_ending(other) && !device_is_ending(d))
			(void)rig_cond_wait_ms(&other->changed, &other->lock, LOOK_MS);
		(void)pthread_mutex_unlock(&other->lock);
	}
}

static void complete(struct device *d, struct pending *p)
{
	uses_let(d, &p->uses);
	if (p->fetched && p->parcel)
		parcel_ready(d, p);
	else if (p->fetched)
		(void)fetch_send(d->session, p->machine, p->fetch, p->out->host, p->out_bytes);
	if (p->noutgoing)
		send_bytes(d, p);
	if (!p->own) {
		await_told(d, p);
		say_reached(d, p);
	}
	remove_first(d, p);
	pending_free(d, p);
}

void *done_run(void *device)
{
	struct device *d = device;

	while (!device_is_ending(d)) {
		struct pending *p = first(d);

		if (!p)
			look(d, device_shown(d), 0);
		else if (await(d, p->shown))
			complete(d, p);
	}
	return NULL;
}
