/* SPDX-License-Identifier: MIT */
#include "polled_state.h"

static int polled_d_grow(void *device, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        uint64_t *missing, const char **text)
{
	struct device *d = device;

	(void)parts;
	(void)nwaits;
	if (enter(d, POLLED_GROW, true)) {
		*missing = PAGE;
		return faults(d->p) ? fault(d, text) : leave(d, RIG_SHORT);
	}
	if (!d->grow_due)
		polled_break(d->p, "E-229: grow without RIG_GROW");
	if (d->p->short_grows) {
		d->p->short_grows--;
		*missing = PAGE;
		return leave(d, RIG_SHORT);
	}
	d->p->parts_now = nparts;
	return leave(d, RIG_GROWN);
}

static int polled_d_signaled(void *device, uint64_t *value, const char **text)
{
	struct device *d = device;

	atomic_fetch_add(&d->cold_calls, 1);
	if (begin(d->p, POLLED_SIGNALED, !d->stopped && faults(d->p)))
		return fault(d, text);
	if (!d->p->o.own_word)
		polled_break(d->p, "signaled asked of a device with the given word");
	*value = rig_word_load(d->shown);
	return leave(d, 0);
}

static int polled_d_sleep(void *device, uint64_t seen, uint64_t still_ms, const char **text)
{
	struct device *d = device;

	if (enter(d, POLLED_SLEEP, faults(d->p)))
		return fault(d, text);
	if (!still_ms)
		polled_break(d->p, "a sleep of 0 ms");
	lock(d->p);
	if (d->p->o.thread) {
		if (rig_word_load(d->shown) == seen)
			polled_nap(d->p, still_ms);
	} else if (d->p->o.sleep == POLLED_SLEEP_RUNS) {
		(void)polled_run_one(d);
	}
	unlock(d->p);
	return leave(d, 0);
}

static void end_thread(struct device *d)
{
	if (!d->p->o.thread)
		return;
	lock(d->p);
	d->stop_thread = true;
	(void)pthread_cond_broadcast(&d->p->moved);
	unlock(d->p);
	(void)pthread_join(d->thread, NULL);
}

static void d_stop(void *device, const char *reason)
{
	struct device *d = device;
	struct polled *p = d->p;

	(void)begin(p, POLLED_STOP, false);
	if (d->stopped)
		polled_break(p, "E-240: a second stop");
	if (atomic_load(&d->hot_calls) || atomic_load(&d->cold_calls))
		polled_break(p, "E-239: stop with a call in flight");
	end_thread(d);
	lock(p);
	d->stopped = true;
	p->has_stop_reason = reason != NULL;
	(void)snprintf(p->stop_reason, sizeof(p->stop_reason), "%s", reason ? reason : "");
	if (!p->o.stop_short)
		rig_word_raise(d->shown, d->last);
	(void)pthread_cond_broadcast(&p->moved);
	unlock(p);
}

static void d_release(void *device)
{
	struct device *d = device;
	struct polled *p = d->p;

	(void)begin(p, POLLED_RELEASE, false);
	if (!d->stopped)
		polled_break(p, "release before stop");
	if (d->word_region.own_word)
		polled_break(p, "E-023: release with the own word not freed");
	lock(p);
	if (p->device == d)
		p->device = NULL;
	p->handles--;
	unlock(p);
	free(d->ring);
	free(d);
}

static int d_facts(void *device, struct rig_facts *facts, const char **text)
{
	struct device *d = device;
	const struct polled_options *o = &d->p->o;

	if (enter(d, POLLED_FACTS, true))
		return fault(d, text);
	if (facts->version != RIG_EDGE_VERSION)
		polled_break(d->p, "facts of version %u", facts->version);
	facts->arch = "polled";
	facts->budget = o->budget;
	facts->queues = o->queues;
	facts->nqueues = o->nqueues;
	facts->has_copy_engine = !o->no_engine;
	facts->copy_engine = o->copy_engine;
	facts->completion = o->completion;
	facts->waits = o->waits;
	facts->may_block = o->may_block;
	facts->has_hang_ms = o->hang_ms > 0;
	facts->hang_ms = o->hang_ms;
	facts->maps_host = o->maps_host;
	facts->host_addresses = o->host_addresses;
	facts->alignment = PAGE;
	facts->capability.key = &polled_key;
	facts->capability.record = d->p;
	facts->word = &d->word_region;
	facts->edge = d;
	d->word_region.own_word = o->own_word;
	if (d->p->edit)
		d->p->edit(facts);
	return leave(d, 0);
}

const struct rig_driver_module polled_module = {
        .version = RIG_EDGE_VERSION,
        .key = &polled_key,
        .facts = d_facts,
        .alloc = polled_d_alloc,
        .free = polled_d_free,
        .locate = polled_d_locate,
        .peer = polled_d_peer,
        .map_peer = polled_d_map_peer,
        .map_host = polled_d_map_host,
        .dma = polled_d_dma,
        .load = polled_d_load,
        .entry = polled_d_entry,
        .unload = polled_d_unload,
        .grow = polled_d_grow,
        .signaled = polled_d_signaled,
        .sleep = polled_d_sleep,
        .stop = d_stop,
        .release = d_release,
};

static struct device *make_device(struct polled *p, rig_atomic_u64 *word)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->ring = calloc(p->o.capacity, sizeof(*d->ring));
	if (!d->ring) {
		free(d);
		return NULL;
	}
	d->hot = &polled_hot;
	d->p = p;
	d->word = word;
	d->base = d->last = d->committed = rig_word_load(word);
	if (p->o.own_word)
		rig_word_raise(&d->own, d->base);
	d->shown = p->o.own_word ? &d->own : word;
	d->word_region.bytes = (uint8_t *)(void *)d->shown;
	d->word_region.visible = true;
	return d;
}

int polled_make(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	struct polled *p = arg;
	rig_atomic_u64 *words = rig_words();
	struct device *d;

	if (begin(p, POLLED_MAKE, true)) {
		(void)snprintf(why, why_bytes, "injected refusal of make");
		return -ENXIO;
	}
	if (word < words || word >= words + RIG_WORD_COUNT)
		polled_break(p, "E-036: make got no word of the array");
	if (p->device && !p->device->stopped)
		polled_break(p, "E-035: make while a handle is open");
	rig_word_raise(word, p->o.base);
	d = make_device(p, word);
	if (!d || (p->o.thread && pthread_create(&d->thread, NULL, polled_work, d))) {
		if (d)
			free(d->ring);
		free(d);
		(void)snprintf(why, why_bytes, "no memory");
		return -ENOMEM;
	}
	lock(p);
	p->device = d;
	p->handles++;
	unlock(p);
	*device = d;
	return 0;
}
