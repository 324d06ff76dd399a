/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent_device.h"
#include "agent_memory.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "agent_queue.h"
#include "agent_session.h"
#include "cond.h"
#include "clock.h"
#include "thread.h"

enum { STOP_MS = 10000, STOP_LOOK_MS = 10 };

struct device *device_make(struct session *session, uint32_t id, const char *name)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->session = session;
	d->id = id;
	(void)snprintf(d->name, sizeof(d->name), "%s", name);
	d->tail = &d->head;
	queue_init(&d->hot_queue, QUEUE_OF_DEVICE);
	queue_init(&d->cold_queue, QUEUE_OF_DEVICE);
	(void)pthread_mutex_init(&d->turn, NULL);
	(void)pthread_mutex_init(&d->lock, NULL);
	rig_cond_init(&d->changed);
	d->close_item = queue_item(RIG_RMT_CLOSE);
	d->lost_item = queue_item(RIG_RMT_LOST);
	d->drop_item = queue_item(ITEM_DROP);
	if (d->close_item && d->lost_item && d->drop_item &&
	        !rig_thread_start(&d->cold_thread, RIG_THREAD_ANY, cold_run, d))
		return d;
	device_free(d);
	return NULL;
}

/* What is asked already is answered before, or finds no device. */
void device_close(struct device *d)
{
	queue_put(&d->cold_queue, d->close_item);
	d->close_item = NULL;
}

void device_join(struct device *d)
{
	(void)pthread_join(d->cold_thread, NULL);
}

void device_free(struct device *d)
{
	queue_fini(&d->hot_queue);
	queue_fini(&d->cold_queue);
	free(d->close_item);
	free(d->lost_item);
	free(d->drop_item);
	(void)pthread_cond_destroy(&d->changed);
	(void)pthread_mutex_destroy(&d->lock);
	(void)pthread_mutex_destroy(&d->turn);
	free(d);
}

bool device_is_ending(const struct device *d)
{
	return atomic_load_explicit(&d->ending, memory_order_acquire);
}

uint64_t device_shown(struct device *d)
{
	const char *fault = NULL;
	uint64_t value = 0;

	if (!d->own_word)
		return rig_word_load(d->word);
	if (!d->m->signaled(d->handle, &value, &fault))
		/* Other devices of this machine wait for the array's word. */
		rig_word_raise(d->word, value);
	return rig_word_load(d->word);
}

static void end_threads(struct device *d)
{
	(void)pthread_mutex_lock(&d->lock);
	atomic_store_explicit(&d->ending, true, memory_order_release);
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
	queue_close(&d->hot_queue);
	/* Who waits for bytes of another agent's looks at `ending` too. */
	(void)pthread_mutex_lock(&d->session->lock);
	(void)pthread_cond_broadcast(&d->session->changed);
	(void)pthread_mutex_unlock(&d->session->lock);
}

void device_lose(struct device *d, const char *format, ...)
{
	struct rig_rmt_out out = {0};
	va_list args;
	bool first;

	(void)pthread_mutex_lock(&d->lock);
	first = d->open && !d->lost;
	if (first) {
		d->lost = true;
		va_start(args, format);
		(void)vsnprintf(d->reason, sizeof(d->reason), format, args);
		va_end(args);
	}
	(void)pthread_mutex_unlock(&d->lock);
	end_threads(d);
	if (!first)
		return;
	agent_log(d->session->agent, "%s lost: %s", d->name, d->reason);
	rig_rmt_put32(&out, d->id);
	rig_rmt_put_text(&out, d->reason);
	(void)session_send(d->session, RIG_RMT_LOST, &out, NULL, 0);
	rig_rmt_out_free(&out);
	queue_put(&d->cold_queue, d->lost_item);
	d->lost_item = NULL;
}

/* ---- Holds ---- */

bool device_hold(struct device *d)
{
	bool held;

	(void)pthread_mutex_lock(&d->lock);
	held = d->open && !device_is_ending(d);
	if (held)
		d->holds++;
	(void)pthread_mutex_unlock(&d->lock);
	return held;
}

void device_let(struct device *d)
{
	(void)pthread_mutex_lock(&d->lock);
	d->holds--;
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
}

/* Of a device that is ending, so that there are no more. */
static void await_holds(struct device *d)
{
	(void)pthread_mutex_lock(&d->lock);
	while (d->holds)
		(void)pthread_cond_wait(&d->changed, &d->lock);
	(void)pthread_mutex_unlock(&d->lock);
}

/* ---- Opening ---- */

static void fill_facts(const struct device *d, struct rig_rmt_facts *f)
{
	const struct rig_facts *from = &d->facts;
	uint32_t i;

	memset(f, 0, sizeof(*f));
	f->device = d->id;
	(void)snprintf(f->name, sizeof(f->name), "%s", d->name);
	(void)snprintf(f->arch, sizeof(f->arch), "%s", from->arch);
	(void)snprintf(f->bus, sizeof(f->bus), "%s", from->bus ? from->bus : "");
	f->budget = from->budget;
	f->nqueues = from->nqueues < RIG_RMT_QUEUES ? from->nqueues : RIG_RMT_QUEUES;
	for (i = 0; i < f->nqueues; i++) {
		(void)snprintf(f->queues[i].name, sizeof(f->queues[i].name), "%s", from->queues[i].name);
		f->queues[i].runs = from->queues[i].runs & ~RIG_RUNS(RIG_FILL);
		if (d->host)
			f->queues[i].runs |= RIG_RUNS(RIG_WORDS);
	}
	f->has_copy_engine = from->has_copy_engine;
	f->copy_engine = (uint32_t)from->copy_engine;
	f->has_hang_ms = from->has_hang_ms;
	f->hang_ms = from->hang_ms;
	f->alignment = from->alignment;
	f->has_cache_bytes = from->has_cache_bytes;
	f->cache_bytes = from->cache_bytes;
	f->ncounters = from->ncounters < RIG_RMT_COUNTERS ? from->ncounters : RIG_RMT_COUNTERS;
	for (i = 0; i < f->ncounters; i++) {
		(void)snprintf(
		        f->counters[i].name, sizeof(f->counters[i].name), "%s", from->counters[i].name);
		f->counters[i].values = from->counters[i].values;
	}
}

static int read_facts(struct device *d)
{
	const char *fault = NULL;
	struct rig_location at;

	d->facts.version = RIG_EDGE_VERSION;
	if (d->m->facts(d->handle, &d->facts, &fault))
		return rig_error_set(-EIO, "%s", fault ? fault : "the driver faulted without a reason");
	d->hot = rig_driver_of(d->facts.edge);
	d->m->locate(d->handle, d->facts.word, &at);
	d->own_word = !at.has_host || at.host != (void *)d->word;
	return 0;
}

static int start_threads(struct device *d)
{
	int err = rig_thread_start(&d->hot_thread, RIG_THREAD_ANY, hot_run, d);

	if (err)
		return rig_error_set(err, "the agent could start no thread");
	err = rig_thread_start(&d->done_thread, RIG_THREAD_ANY, done_run, d);
	if (!err) {
		d->running = true;
		return 0;
	}
	end_threads(d);
	(void)pthread_join(d->hot_thread, NULL);
	return rig_error_set(err, "the agent could start no thread");
}

static int make(struct device *d)
{
	char why[RIG_RMT_REASON] = "";
	int err;

	d->slot = agent_take_word(d->session->agent);
	if (!d->slot)
		return rig_error_set(-ENOSPC, "the agent has no word left");
	d->word = &rig_words()[d->slot];
	d->m = d->opener->module;
	err = d->opener->make(d->opener->arg, d->word, &d->handle, why, sizeof(why));
	if (!err)
		return 0;
	agent_give_word(d->session->agent, d->slot);
	return rig_error_set(err, "%s", why);
}

/* ---- Ending ---- */

/* Whether no work of the stopped device can run any more. */
static bool is_over(struct device *d)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, STOP_MS * RIG_NS_PER_MS);

	while (device_shown(d) < d->last) {
		if (rig_deadline_passed(&deadline))
			return false;
		rig_deadline_sleep(&deadline, STOP_LOOK_MS * RIG_NS_PER_MS);
	}
	return true;
}

/* ---- Opening, and what of it failed ---- */

/* What an open that failed made. Its text stays. */
static void unmake(struct device *d)
{
	char why[RIG_RMT_REASON];

	(void)snprintf(why, sizeof(why), "%s", rig_error());
	d->m->stop(d->handle, NULL);
	if (is_over(d)) {
		device_wipe_end(d);
		d->m->release(d->handle);
		agent_give_word(d->session->agent, d->slot);
		agent_give(d->session, d->name);
	} else {
		agent_keep(d->session, d->name);
	}
	(void)rig_error_set(0, "%s", why);
}

/* So that small copies need not be asked about: memory for one each way. */
static uint64_t stage_first(struct device *d)
{
	struct staging *in = staging_take(d, 1), *out = in ? staging_take(d, 1) : NULL;
	uint64_t bytes = out ? in->bytes + out->bytes : 0;

	staging_give(d, in);
	staging_give(d, out);
	return bytes;
}

int device_open(struct device *d, struct rig_rmt_facts *facts)
{
	struct served *served;
	int err = agent_take(d->session, d->name, &served);

	if (err)
		return err;
	d->opener = served->opener;
	d->host = served->host;
	err = make(d);
	if (err) {
		agent_give(d->session, d->name);
		return err;
	}
	d->last = rig_word_load(d->word);
	err = read_facts(d);
	if (!err && agent_is_anothers(d->session, served))
		err = device_wipe(d);
	if (!err)
		err = start_threads(d);
	if (err) {
		unmake(d);
		return err;
	}
	agent_mark(d->session, served);
	(void)pthread_mutex_lock(&d->lock);
	d->open = true;
	(void)pthread_mutex_unlock(&d->lock);
	fill_facts(d, facts);
	facts->host = served->host;
	facts->staged = stage_first(d);
	return 0;
}

/* ---- Ending: what is on its way ---- */

static void refuse(struct device *d, uint32_t machine, uint32_t fetch, bool parcel)
{
	char why[2 * RIG_RMT_REASON];

	(void)snprintf(why, sizeof(why), "%s lost: %s", d->name, d->lost ? d->reason : "it was stopped");
	(parcel ? parcel_refuse : fetch_refuse)(d->session, machine, fetch, why);
}

/* Whoever waits for bytes of this device is told, before the stop, which takes a while. */
static void refuse_queued(struct device *d)
{
	struct item *item;

	for (item = d->hot_queue.head; item; item = item->next) {
		struct rig_rmt_fetch f;

		if (item->kind == RIG_RMT_SUBMIT)
			submit_give_up(d->session, item->payload, item->bytes);
		if (item->kind == ITEM_UPLOAD)
			upload_give_up(d, item);
		if (item->kind == RIG_RMT_FETCH && !rig_rmt_fetch_parse(item->payload, item->bytes, &f))
			refuse(d, f.machine, f.id, f.parcel);
	}
}

/* Other devices' threads look through the list. */
static struct pending *detach_pending(struct device *d)
{
	struct pending *p;

	(void)pthread_mutex_lock(&d->lock);
	p = d->head;
	d->head = NULL;
	d->tail = &d->head;
	(void)pthread_mutex_unlock(&d->lock);
	return p;
}

static void drop_pending(struct device *d)
{
	struct pending *p = detach_pending(d);

	while (p) {
		struct pending *next = p->next;

		if (p->fetched)
			refuse(d, p->machine, p->fetch, p->parcel);
		pending_free(d, p);
		p = next;
	}
}

/* Whose work may still run: nobody waits for its bytes, and their memory stays. */
static void strand_pending(struct device *d)
{
	struct pending *p;

	for (p = d->head; p; p = p->next) {
		if (p->fetched)
			refuse(d, p->machine, p->fetch, p->parcel);
		pending_void(d, p);
	}
}

/* Of a device whose work is over. Two devices may have lent to each other, so this does not wait for what is
   lent. */
static void return_borrowed(struct device *d)
{
	const char *fault = NULL;
	uint32_t i;

	for (i = 0; i < d->nregions; i++) {
		struct kept_region kept = d->regions[i];

		if (!kept.region || !kept.lender)
			continue;
		(void)pthread_mutex_lock(&d->lock);
		memset(&d->regions[i], 0, sizeof(kept));
		(void)pthread_mutex_unlock(&d->lock);
		(void)d->m->free(d->handle, kept.region, &fault);
		region_return(kept.lender, kept.lent);
	}
}

static void drop_all(struct device *d)
{
	const char *fault = NULL;
	uint32_t i;

	staging_drop(d);
	for (i = 0; i < d->nimages; i++) {
		if (d->images[i].image)
			(void)d->m->unload(d->handle, d->images[i].image, &fault);
		if (d->images[i].region)
			(void)d->m->free(d->handle, d->images[i].region, &fault);
	}
	for (i = 0; i < d->nregions; i++)
		if (d->regions[i].region) {
			(void)d->m->free(d->handle, d->regions[i].region, &fault);
			rig_remote_end_put(d->regions[i].end);
		}
	if (d->own_word)
		(void)d->m->free(d->handle, d->facts.word, &fault);
}

void device_halt(struct device *d, const char *reason)
{
	bool running;

	(void)pthread_mutex_lock(&d->lock);
	running = d->open && !d->halted;
	(void)pthread_mutex_unlock(&d->lock);
	if (!running)
		return;
	end_threads(d);
	if (d->running) {
		(void)pthread_join(d->hot_thread, NULL);
		(void)pthread_join(d->done_thread, NULL);
	}
	refuse_queued(d);
	await_holds(d);
	parcels_halt(d);
	d->m->stop(d->handle, reason);
	d->over = is_over(d);
	if (d->over) {
		drop_pending(d);
		return_borrowed(d);
	} else {
		strand_pending(d);
	}
	(void)pthread_mutex_lock(&d->lock);
	d->halted = true;
	(void)pthread_mutex_unlock(&d->lock);
}

/* Other devices' threads may return what they borrowed. */
static void free_tables(struct device *d)
{
	(void)pthread_mutex_lock(&d->lock);
	d->open = d->halted = false;
	free(d->regions);
	free(d->images);
	free(d->functions);
	d->regions = NULL;
	d->images = NULL;
	d->functions = NULL;
	d->nregions = d->nimages = d->nfunctions = d->nleaving = 0;
	(void)pthread_mutex_unlock(&d->lock);
	rig_rmt_out_free(&d->code);
}

void device_drop(struct device *d)
{
	if (!d->halted)
		return;
	/* At the session's end only what could not be stopped has not returned what it borrowed. */
	if (d->over && !d->loans) {
		drop_all(d);
		d->m->release(d->handle);
		agent_give_word(d->session->agent, d->slot);
		agent_give(d->session, d->name);
	} else {
		agent_keep(d->session, d->name);
		agent_log(d->session->agent,
		        "%s: work may still run on its memory, which stays taken with its name", d->name);
	}
	free_tables(d);
}

void device_stop(struct device *d, const char *reason)
{
	bool lent;

	device_halt(d, reason);
	(void)pthread_mutex_lock(&d->lock);
	lent = d->loans;
	(void)pthread_mutex_unlock(&d->lock);
	if (!lent)
		device_drop(d);
}
