/* SPDX-License-Identifier: MIT */
/* The proxy driver's cold side: what a device of another machine answers here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "cond.h"
#include "plain.h"
#include "rmt_proxy.h"
#include "thread.h"

#define PAGE_BYTES 4096
#define BUDGET     (UINT64_MAX / 2) /* at most: a runtime adds to it */

static const struct rig_key proxy_key = {"devices of other machines"};

/* With counters and without. */
static const struct rig_driver hot_plain = {
        RIG_EDGE_VERSION, rig_rmt_room, rig_rmt_submit, rig_plain_commit, NULL, NULL};
static const struct rig_driver hot_counting = {
        RIG_EDGE_VERSION, rig_rmt_room, rig_rmt_submit, rig_plain_commit, NULL, rig_rmt_measures};

/* ---- Facts ---- */

/* The agent's, as far as they hold here. */
static void give_theirs(const struct proxy *p, struct rig_facts *facts)
{
	const struct rig_rmt_facts *f = &p->facts;

	facts->arch = f->arch;
	facts->budget = f->budget < BUDGET ? f->budget : BUDGET;
	facts->queues = p->queues;
	facts->nqueues = f->nqueues;
	facts->has_copy_engine = f->has_copy_engine;
	facts->copy_engine = (int32_t)f->copy_engine;
	facts->has_hang_ms = f->has_hang_ms;
	facts->hang_ms = f->hang_ms;
	facts->alignment = f->alignment < PAGE_BYTES ? f->alignment : PAGE_BYTES;
	facts->has_cache_bytes = f->has_cache_bytes;
	facts->cache_bytes = f->cache_bytes;
	facts->counters = f->ncounters ? p->counters : NULL;
	facts->ncounters = f->ncounters;
	facts->bus = *f->bus ? f->bus : NULL;
}

static int cold_facts(void *device, struct rig_facts *facts, const char **fault)
{
	struct proxy *p = device;

	if (facts->version != RIG_EDGE_VERSION) {
		rig_rmt_proxy_lose(p, "facts of another version of the contract");
		return rig_rmt_proxy_fault(p, fault);
	}
	give_theirs(p, facts);
	facts->completion = RIG_HOST;
	facts->waits = (struct rig_waits){.stores = true, .hosts = true};
	facts->may_block = true;
	facts->maps_host = true;
	facts->capability = rig_remote_declare(&p->record);
	facts->word = &p->word_region;
	facts->edge = p;
	return 0;
}

/* ---- Progress and end ---- */

static int cold_signaled(void *device, uint64_t *value, const char **fault)
{
	const struct proxy *p = device;

	(void)fault;
	*value = rig_word_load(p->word);
	return 0;
}

static int cold_sleep(void *device, uint64_t seen, uint64_t still_ms, const char **fault)
{
	struct proxy *p = device;
	bool faulted;

	(void)pthread_mutex_lock(&p->lock);
	if (still_ms && !p->faulted && rig_word_load(p->word) == seen)
		(void)rig_cond_wait_ms(&p->moved, &p->lock, still_ms);
	faulted = p->faulted;
	(void)pthread_mutex_unlock(&p->lock);
	return faulted ? rig_rmt_proxy_fault(p, fault) : 0;
}

static void stop_there(struct proxy *p, const char *reason)
{
	struct rig_rmt_out out = {0};

	if (rig_rmt_job_over(p->m->job))
		return;
	rig_rmt_put32(&out, p->id);
	rig_rmt_put8(&out, reason != NULL);
	rig_rmt_put_text(&out, reason ? reason : "");
	(void)rig_rmt_request(p->m, RIG_RMT_STOP, &out, 0, NULL);
	rig_rmt_out_free(&out);
}

/* The word is raised once the agent has stopped the device, or, where the job is over, once nothing more can
   come: then the agent stops it as soon as it notices. */
static void cold_stop(void *device, const char *reason)
{
	struct proxy *p = device;
	struct value *queue, *flight, *spent;

	(void)pthread_mutex_lock(&p->lock);
	p->quit = true;
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
	(void)pthread_join(p->worker, NULL);
	stop_there(p, reason);
	(void)pthread_mutex_lock(&p->lock);
	/* With nothing between, as an agent that was not asked may still want a parcel. */
	rig_rmt_proxy_await_parcels(p);
	p->stopped = true;
	queue = p->queue;
	flight = p->flight;
	spent = p->spent;
	p->queue = p->flight = p->spent = NULL;
	p->queue_tail = &p->queue;
	p->flight_tail = &p->flight;
	rig_word_raise(p->word, p->submitted);
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
	rig_rmt_values_free(queue);
	rig_rmt_values_free(flight);
	rig_rmt_values_free(spent);
}

static void cold_release(void *device)
{
	struct proxy *p = device;
	struct rig_remote_job *job = p->m->job;

	rig_rmt_devices_remove(p->m, p->id, &p->device);
	rig_rmt_measured_drop(p);
	(void)pthread_cond_destroy(&p->moved);
	(void)pthread_mutex_destroy(&p->load_lock);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
	rig_rmt_job_put(job);
}

const struct rig_driver_module rig_rmt_module = {
        .version = RIG_EDGE_VERSION,
        .key = &proxy_key,
        .facts = cold_facts,
        .alloc = rig_rmt_alloc,
        .free = rig_rmt_free,
        .locate = rig_rmt_locate,
        .peer = rig_rmt_peer,
        .map_peer = rig_rmt_map_peer,
        .map_host = rig_rmt_map_host,
        .dma = rig_rmt_dma,
        .load = rig_rmt_load,
        .entry = rig_rmt_entry,
        .unload = rig_rmt_unload,
        .grow = rig_plain_grow,
        .signaled = cold_signaled,
        .sleep = cold_sleep,
        .stop = cold_stop,
        .release = cold_release,
};

/* ---- Making ---- */

static void set_facts(struct proxy *p)
{
	uint32_t i;

	p->id = p->facts.device;
	p->staged = p->facts.staged;
	p->row_words = 3;
	for (i = 0; i < p->facts.nqueues; i++)
		p->queues[i] = (struct rig_queue){p->facts.queues[i].name, p->facts.queues[i].runs};
	for (i = 0; i < p->facts.ncounters; i++) {
		p->counters[i] = (struct rig_counter){p->facts.counters[i].name, p->facts.counters[i].values};
		p->row_words += p->facts.counters[i].values;
	}
	p->hot = p->facts.ncounters ? &hot_counting : &hot_plain;
	p->record.version = RIG_REMOTE_ABI_VERSION;
	p->record.kind = p->facts.host ? RIG_REMOTE_HOST : RIG_REMOTE_DEVICE;
	if (p->facts.host)
		rig_rmt_rails_host(p->m, &p->record.u.host);
	else
		p->record.u.device.id = p->id;
}

/* What the runtime relies on. */
static bool are_sane(const struct rig_rmt_facts *f)
{
	uint32_t i, words = 3;

	for (i = 0; i < f->ncounters; i++) {
		if (!f->counters[i].values || f->counters[i].values > RIG_RMT_MEASURES - words)
			return false;
		words += f->counters[i].values;
	}
	return f->device < RIG_RMT_DEVICES && f->alignment > 0 && !(f->alignment & (f->alignment - 1)) &&
	       (!f->has_copy_engine || f->copy_engine < f->nqueues);
}

static int open_there(struct proxy *p, const char *name)
{
	struct rig_rmt_out out = {0}, payload;
	struct rig_rmt_in in;
	int err;

	rig_rmt_put_text(&out, name);
	err = rig_rmt_request(p->m, RIG_RMT_OPEN, &out, 0, &payload);
	rig_rmt_out_free(&out);
	if (err)
		return err;
	in = rig_rmt_in_of(payload.at, payload.used);
	err = rig_rmt_facts_parse(&in, &p->facts);
	rig_rmt_out_free(&payload);
	if (!err && are_sane(&p->facts))
		return 0;
	rig_rmt_job_fail(p->m->job, "machine %s: malformed: facts of %s", p->m->name, name);
	return rig_error_set(-EPROTO, "%s", p->m->job->reason);
}

static void lose(struct rig_rmt_device *d, const char *reason)
{
	rig_rmt_proxy_lose(rig_rmt_proxy_of(d), reason);
}

static struct proxy *make_proxy(struct rig_rmt_machine *m, rig_atomic_u64 *word)
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->device = (struct rig_rmt_device){rig_rmt_proxy_take, lose};
	p->m = m;
	p->word = word;
	p->word_region.kind = REGION_WORD;
	p->word_region.host = (uint8_t *)(uintptr_t)word;
	p->queue_tail = &p->queue;
	p->flight_tail = &p->flight;
	p->submitted = rig_word_load(word);
	atomic_init(&p->sent, p->submitted);
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_mutex_init(&p->load_lock, NULL);
	rig_cond_init(&p->moved);
	rig_rmt_job_get(m->job);
	return p;
}

static int start(struct proxy *p, const char *name)
{
	int err = open_there(p, name);

	if (err)
		return err;
	set_facts(p);
	err = rig_thread_start(&p->worker, RIG_THREAD_ANY, rig_rmt_worker_run, p);
	if (err) {
		stop_there(p, NULL);
		return rig_error_set(err, "no thread could be started");
	}
	rig_rmt_devices_add(p->m, p->id, &p->device);
	return 0;
}

int rig_rmt_make(void *opener, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	const struct rig_rmt_opener *o = opener;
	struct proxy *p = NULL;
	int err;

	if (rig_locks_held())
		err = rig_error_set(-EINVAL, "this thread holds a lock of the runtime and may not open");
	else if (!(p = make_proxy(o->machine, word)))
		err = rig_error_set(-ENOMEM, "no host memory for a device");
	else
		err = start(p, o->name);
	if (!err) {
		*device = p;
		return 0;
	}
	(void)snprintf(why, why_bytes, "%s", rig_error());
	if (p) {
		p->id = 0;
		cold_release(p);
	}
	return err;
}
