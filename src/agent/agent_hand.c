/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent_device.h"
#include "agent_hot.h"
#include "agent_memory.h"
#include "agent_session.h"
#include "cond.h"

enum { MOST_GROWTHS = 16 };

/* ---- Waits for other devices ---- */

static void nap(struct device *d, unsigned ms)
{
	(void)rig_cond_wait_ms(&d->changed, &d->lock, ms);
}

/* The device's value that stands for the controller's, once that was handed over; 0: it is reached.
   -ECANCELED: either device ends. */
static int translate(struct device *d, struct device *other, uint64_t value, uint64_t *shown)
{
	const struct pending *p;
	int err = 0;

	(void)pthread_mutex_lock(&other->lock);
	while (other->handed < value && !device_is_ending(other) && !device_is_ending(d))
		nap(other, HOT_LOOK_MS);
	if (other->handed < value)
		err = -ECANCELED;
	*shown = 0;
	for (p = other->head; p && !*shown; p = p->next)
		if (!p->own && p->value >= value)
			*shown = p->shown;
	(void)pthread_mutex_unlock(&other->lock);
	return err;
}

int value_await(struct device *d, struct device *other, uint64_t shown)
{
	int err = 0;

	if (!device_hold(other))
		return -ECANCELED;
	(void)pthread_mutex_lock(&other->lock);
	while (device_shown(other) < shown && !err) {
		if (device_is_ending(other) || device_is_ending(d))
			err = -ECANCELED;
		else
			nap(other, HOT_LOOK_MS);
	}
	(void)pthread_mutex_unlock(&other->lock);
	device_let(other);
	return err;
}

static bool waits_in_queue(const struct device *d, const struct device *other)
{
	if (other->own_word)
		return false;
	return other->facts.completion == RIG_STORE ? d->facts.waits.stores : d->facts.waits.hosts;
}

int work_follow(struct device *d, const struct rig_rmt_work *work, struct built *b)
{
	uint32_t i;

	for (i = 0; i < work->nwaits; i++) {
		struct device *other = session_device(d->session, work->waits[i].device);
		uint64_t shown;
		int err;

		if (!other || other == d)
			return rig_error_set(-EPROTO, "work waits for device %" PRIu32 ", which is none",
			        work->waits[i].device);
		err = translate(d, other, work->waits[i].value, &shown);
		if (!err && shown && !waits_in_queue(d, other))
			err = value_await(d, other, shown);
		else if (!err && shown)
			b->waits[b->nwaits++] = (struct rig_wait){.word = other->word, .value = shown};
		if (err)
			return rig_error_set(err, "%s, which work waits for, ended", other->name);
	}
	return 0;
}

/* ---- Handing over ---- */

static void append(struct device *d, struct pending *p)
{
	(void)pthread_mutex_lock(&d->lock);
	*d->tail = p;
	d->tail = &p->next;
	if (!p->own)
		d->handed = p->value;
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
}

/* With the turn, and room that fits. The pending is the done thread's afterwards. */
static int submit(struct device *d, struct built *b, uint32_t nparts, struct pending *p)
{
	const char *failure = NULL;
	uint64_t value = ++d->last;
	struct rig_times *times = p->timed ? &p->times : NULL;
	int answer;

	p->shown = b->shown = value;
	p->uses = b->uses;
	b->uses = (struct uses){0};
	append(d, p);
	answer = d->hot->submit(d->facts.edge, value, b->parts, nparts, b->waits, b->nwaits, &b->run,
	        b->scratch, times, &failure);
	if (answer == RIG_OK)
		answer = d->hot->commit(d->facts.edge, value, &failure);
	if (answer == RIG_OK || answer == RIG_COMMITTED)
		return 0;
	device_lose(d, "%s", failure ? failure : "the driver failed a submit without a reason");
	return -EIO;
}

static int grow(struct device *d, const struct built *b, uint32_t nparts)
{
	uint64_t missing = 0;
	const char *fault = NULL;
	int answer = d->m->grow(d->handle, b->parts, nparts, b->nwaits, &missing, &fault);

	if (answer == RIG_GROWN)
		return 0;
	if (answer == RIG_FAULT)
		device_lose(d, "%s", fault ? fault : "the driver faulted");
	else
		device_lose(d, "its queues need %" PRIu64 " bytes more to take the work", missing);
	return -EIO;
}

/* Waits until the device shows another value than `seen`. */
static int await_move(struct device *d, uint64_t seen)
{
	int err = 0;

	(void)pthread_mutex_lock(&d->lock);
	while (device_shown(d) == seen && !err) {
		if (device_is_ending(d))
			err = -ECANCELED;
		else
			nap(d, HOT_LOOK_MS);
	}
	(void)pthread_mutex_unlock(&d->lock);
	return err;
}

int work_hand_over(struct device *d, struct built *b, uint32_t nparts, struct pending *p)
{
	unsigned growths = 0;
	int err = 0;

	while (!device_is_ending(d) && !err) {
		uint64_t seen = device_shown(d);
		int room;

		(void)pthread_mutex_lock(&d->turn);
		room = d->hot->room(d->facts.edge, b->parts, nparts, b->nwaits, &b->run, b->scratch);
		if (room == RIG_FITS) {
			err = submit(d, b, nparts, p);
			(void)pthread_mutex_unlock(&d->turn);
			return err;
		}
		(void)pthread_mutex_unlock(&d->turn);
		if (room == RIG_LATER)
			err = await_move(d, seen);
		else if (room == RIG_GROW && growths++ < MOST_GROWTHS)
			err = grow(d, b, nparts);
		else
			err = -EINVAL;
		if (err == -EINVAL)
			device_lose(d, "it never runs this: %s", rig_error());
	}
	pending_free(d, p);
	return err ? err : -ECANCELED;
}
