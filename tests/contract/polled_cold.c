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
	if (!lies(d->p, grows_nothing))
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
	*value = lies(d->p, other_word) ? 0 : rig_word_load(d->shown);
	return leave(d, 0);
}

/* Lies about sleeping; whether it shall fault. */
static bool sleep_badly(struct device *d, uint64_t seen, uint64_t still_ms)
{
	static _Atomic int racing;
	struct timespec nap = {
	        .tv_sec = (time_t)(still_ms / 1000), .tv_nsec = (long)(still_ms % 1000) * 1000000};
	static const struct timespec moment = {.tv_nsec = 1000000};
	int others;

	if (lies(d->p, misses))
		(void)nanosleep(&nap, NULL);
	while (lies(d->p, sleeps_on) && rig_word_load(d->shown) == seen)
		(void)nanosleep(&nap, NULL);
	while (lies(d->p, looks_on) && !still_ms && rig_word_load(d->shown) == seen)
		(void)nanosleep(&moment, NULL);
	if (!lies(d->p, sleep_races))
		return false;
	others = atomic_fetch_add(&racing, 1);
	(void)nanosleep(&nap, NULL);
	atomic_fetch_sub(&racing, 1);
	return others;
}

static int polled_d_sleep(void *device, uint64_t seen, uint64_t still_ms, const char **text)
{
	struct device *d = device;
	bool faulted;

	if (enter(d, POLLED_SLEEP, faults(d->p)))
		return fault(d, text);
	if (sleep_badly(d, seen, still_ms))
		return fault(d, text);
	lock(d->p);
	if (d->p->o.thread) {
		if (rig_word_load(d->shown) == seen && !d->faulted && still_ms)
			polled_nap(d->p, still_ms);
	} else if (d->p->o.sleep == POLLED_SLEEP_RUNS && still_ms) {
		(void)polled_run_one(d);
	}
	faulted = d->faulted;
	unlock(d->p);
	if (faulted)
		*text = d->fault;
	return leave(d, faulted ? RIG_FAULT : 0);
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

static void lie_at_stop(struct device *d, const char *reason)
{
	struct polled *p = d->p;
	const struct region *r;

	if (lies(p, loss_leak) && reason)
		(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (lies(p, short_text))
		(void)snprintf(d->fault, sizeof(d->fault), "gone");
	lock(p);
	while (lies(p, stop_waits) && d->done < d->last)
		polled_nap(p, 1);
	for (r = p->regions; r && lies(p, scribbles); r = r->next)
		if (r->kind)
			memset(r->bytes, 0xFF, r->size);
	unlock(p);
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
	lie_at_stop(d, reason);
	if (!lies(p, runs_on))
		end_thread(d);
	lock(p);
	d->stopped = true;
	d->hot = NULL; /* E-248: nobody looks again */
	p->has_stop_reason = reason != NULL;
	(void)snprintf(p->stop_reason, sizeof(p->stop_reason), "%s", reason ? reason : "");
	if (!p->o.stop_short)
		rig_word_raise(d->shown, d->last);
	(void)pthread_cond_broadcast(&p->moved);
	unlock(p);
}

void *polled_copy_of_state(const void *device)
{
	struct device *copy = malloc(sizeof(*copy));

	if (copy)
		memcpy(copy, device, sizeof(*copy));
	return copy;
}

static void free_device(struct device *d)
{
	unsigned i;

	for (i = 0; i < POLLED_DESCRIPTORS; i++)
		if (d->fds[i] >= 0)
			(void)close(d->fds[i]);
	free(d->stamps);
	free(d->ring);
	free(d);
}

static void d_release(void *device)
{
	struct device *d = device;
	struct polled *p = d->p;

	(void)begin(p, POLLED_RELEASE, false);
	if (lies(p, runs_on))
		end_thread(d);
	if (lies(p, release_leak))
		d->fds[0] = -1;
	atomic_fetch_sub(&polled_open, 1);
	if (!d->stopped)
		polled_break(p, "release before stop");
	if (d->word_region.own_word)
		polled_break(p, "E-023: release with the own word not freed");
	lock(p);
	if (p->device == d)
		p->device = NULL;
	p->handles--;
	unlock(p);
	free_device(d);
}

static const struct rig_queue same_queues[] = {
        {"QUEUE", RIG_RUNS(RIG_LAUNCH)}, {"QUEUE", RIG_RUNS(RIG_COPY)}};
static const struct rig_queue odd_queues[] = {{"QUEUE", RIG_RUNS(7)}, {"COPY:0", RIG_RUNS(RIG_COPY)}};
static const struct rig_counter groups_counter = {"groups", 1};

static void lie_in_facts(struct device *d, struct rig_facts *facts)
{
	const struct polled *p = d->p;

	if (lies(p, no_arch))
		facts->arch = "";
	if (lies(p, same_queues))
		facts->queues = same_queues;
	if (lies(p, odd_runs))
		facts->queues = odd_queues;
	if (lies(p, odd_engine))
		facts->copy_engine = 0;
	if (lies(p, odd_alignment))
		facts->alignment = 3;
	if (lies(p, counters_alone)) {
		facts->counters = &groups_counter;
		facts->ncounters = 1;
	}
	if (lies(p, half_capability))
		facts->capability.record = NULL;
	if (lies(p, odd_bus))
		facts->bus = "bus 3";
	if (lies(p, other_word)) {
		d->other_region.bytes = (uint8_t *)(void *)&d->own;
		d->other_region.visible = true;
		facts->word = &d->other_region;
	}
}

static int d_facts(void *device, struct rig_facts *facts, const char **text)
{
	struct device *d = device;
	const struct polled_options *o = &d->p->o;

	if (enter(d, POLLED_FACTS, true))
		return fault(d, text);
	if (facts->version != RIG_EDGE_VERSION && !lies(d->p, any_version)) {
		polled_break(d->p, "facts of version %u", facts->version);
		return leave(d, rig_error_set(-EINVAL, "facts of version %u", facts->version));
	}
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
	if (o->settle) {
		facts->counters = &groups_counter;
		facts->ncounters = 1;
	}
	lie_in_facts(d, facts);
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

/* As many as the options say; a failure closes what was opened. */
static int open_descriptors(struct device *d)
{
	unsigned i;

	for (i = 0; i < d->p->o.descriptors && i < POLLED_DESCRIPTORS; i++) {
		d->fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (d->fds[i] < 0) {
			if (lies(d->p, make_leak))
				d->fds[0] = -1;
			return -errno;
		}
	}
	return 0;
}

static struct device *make_device(struct polled *p, rig_atomic_u64 *word)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	memset(d->fds, -1, sizeof(d->fds));
	d->self = d;
	d->p = p;
	d->ring = calloc(p->o.capacity, sizeof(*d->ring));
	d->stamps = p->o.settle ? calloc(STAMPS, sizeof(*d->stamps)) : NULL;
	if (!d->ring || (p->o.settle && !d->stamps) || open_descriptors(d)) {
		free_device(d);
		return NULL;
	}
	d->hot = &p->table;
	d->maker = pthread_self();
	d->word = word;
	d->base = d->last = d->committed = d->done = rig_word_load(word);
	atomic_store(&d->raised, d->base);
	if (p->o.own_word)
		rig_word_raise(&d->own, d->base);
	d->shown = p->o.own_word ? &d->own : word;
	d->word_region.bytes = (uint8_t *)(void *)d->shown;
	d->word_region.visible = true;
	return d;
}

/* Lies of make: NULL, or why it refuses. */
static const char *lie_in_make(struct polled *p, rig_atomic_u64 *word)
{
	rig_atomic_u64 *words = rig_words();

	if (lies(p, array_only) && (word < words || word >= words + RIG_WORD_COUNT))
		return "a word outside the array";
	if (lies(p, fresh_word_only) && rig_word_load(word))
		return "the word was used before";
	if (lies(p, opens_once) && p->nopens++)
		return "it was open before";
	if (lies(p, locked_leak) && rig_locks_held()) {
		(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
		return "locks are held";
	}
	if (lies(p, lowers_word))
		__atomic_store_n((uint64_t *)(void *)word, 0, __ATOMIC_RELEASE);
	return NULL;
}

_Atomic unsigned polled_open;

int polled_make(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	struct polled *p = arg;
	rig_atomic_u64 *words = rig_words();
	const char *lie = lie_in_make(p, word);
	struct device *d;
	bool open;

	if (lie) {
		(void)snprintf(why, why_bytes, "%s", lie);
		return -EINVAL;
	}
	if (begin(p, POLLED_MAKE, true)) {
		(void)snprintf(why, why_bytes, "injected refusal of make");
		return -ENXIO;
	}
	if (word < words || word >= words + RIG_WORD_COUNT)
		polled_break(p, "E-036: make got no word of the array");
	lock(p);
	open = p->device && !p->device->stopped;
	unlock(p);
	if (open)
		polled_break(p, "E-035: make while a handle is open");
	rig_word_raise(word, p->o.base);
	d = make_device(p, word);
	if (!d || (p->o.thread && pthread_create(&d->thread, NULL, polled_work, d))) {
		if (d)
			free_device(d);
		(void)snprintf(why, why_bytes, "no memory or descriptor");
		return -ENOMEM;
	}
	lock(p);
	p->device = d;
	p->handles++;
	atomic_fetch_add(&polled_open, 1);
	unlock(p);
	*device = d;
	return 0;
}
