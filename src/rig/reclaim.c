/* SPDX-License-Identifier: MIT */
#include "rt.h"

/* A cache is asked for memory often and may hold much: no more candidates of a bucket are looked at. */
#define LOOKS 16u
/* So few that wait are looked through at every put. */
#define FEW 32u

static unsigned bucket_of(enum rig_memory kind, uint64_t bytes)
{
	uint64_t pages = bytes >> 12;

	return (unsigned)((pages * 7 + (pages >> 6) * 3 + (uint64_t)kind) % RT_BUCKETS);
}

/* What the cache holds; under the `memory` lock. */
static inline void count_in(struct rig_device *d, const struct rig_rt_mem *mem)
{
	d->store.cached += mem->bytes;
	if (!mem->counted)
		d->store.uncounted += mem->bytes;
}

static inline void count_out(struct rig_device *d, const struct rig_rt_mem *mem)
{
	d->store.cached -= mem->bytes;
	if (!mem->counted)
		d->store.uncounted -= mem->bytes;
}

static void wait_list_push(struct rig_device *d, struct rig_rt_mem *mem)
{
	rig_rt_lock(&d->memory);
	mem->next = d->store.waiting;
	d->store.waiting = mem;
	d->store.nwaiting++;
	rig_rt_unlock(&d->memory);
}

/*
 * False: the device is no longer live, and the memory is still the caller's. Whether it is is asked under
 * the lock that emptying the cache takes after a loss: what is pushed before is found then. Once pushed,
 * the memory may hold the last reference of the device no more, so nothing of it is touched then.
 */
static inline bool cache_push(struct rig_device *d, struct rig_rt_mem *mem)
{
	unsigned bucket = bucket_of(mem->kind, mem->bytes);
	bool noted = __builtin_expect(rig_rt_profiled(d), 0), live;

	if (noted)
		(void)rig_device_get(d);
	rig_rt_lock_raw(&d->memory);
	live = __builtin_expect(rig_rt_is_live(d), 1);
	rig_rt_hook(RT_HOOK_CACHING, d);
	if (live) {
		mem->next = d->store.cache[bucket];
		d->store.cache[bucket] = mem;
		count_in(d, mem);
	}
	rig_rt_unlock_raw(&d->memory);
	if (noted) {
		rig_rt_note_memory(d);
		rig_device_put(d);
	}
	return live;
}

/* Not counted in rig_locks_held where it is taken for every buffer: nothing that asks runs under it. */

/* What the host addresses is handed out only once the device's own work on it is done too: the program may
   store to it at once. Other memory is ordered by the device. */
static inline bool is_ready(struct rig_rt_mem *mem)
{
	uint64_t first;

	if (!mem->at.has_host)
		return true;
	first = atomic_load_explicit(&mem->uses.word[0], memory_order_acquire);
	if (!atomic_load_explicit(&mem->uses.word[1], memory_order_acquire))
		return rig_rt_point_over(first);
	return rig_rt_uses_over(mem, 0);
}

struct rig_rt_mem *rig_rt_cache_take(struct rig_device *d, enum rig_memory kind, uint64_t bytes)
{
	struct rig_rt_mem **at, *mem;
	unsigned looks = 0;

	rig_rt_hook(RT_HOOK_REUSE, d);
	rig_rt_lock_raw(&d->memory);
	at = &d->store.cache[bucket_of(kind, bytes)];
	for (; (mem = *at) && looks < LOOKS; at = &mem->next, looks++)
		if (mem->bytes == bytes && mem->kind == kind && is_ready(mem))
			break;
	if (looks == LOOKS)
		mem = NULL;
	if (mem) {
		*at = mem->next;
		count_out(d, mem);
		atomic_store_explicit(&mem->refs, 1, memory_order_relaxed);
	}
	rig_rt_unlock_raw(&d->memory);
	if (mem)
		rig_rt_note_memory(d);
	return mem;
}

struct rig_rt_mem *rig_rt_mem_cached(struct rig_device *d, enum rig_memory kind, uint64_t bytes)
{
	uint64_t rounded = rig_rt_class_of(bytes);
	struct rig_rt_mem **at, *mem;

	rig_rt_hook(RT_HOOK_REUSE, d);
	if (d->facts.host_addresses)
		kind = RIG_DEVICE;
	if (!rig_rt_is_live(d) || bytes > __atomic_load_n(&d->store.budget, __ATOMIC_RELAXED))
		return NULL;
	at = &d->store.cache[bucket_of(kind, rounded)];
	rig_rt_lock_raw(&d->memory);
	mem = *at;
	if (!mem || mem->bytes != rounded || mem->kind != kind || !is_ready(mem)) {
		rig_rt_unlock_raw(&d->memory);
		return NULL;
	}
	*at = mem->next;
	count_out(d, mem);
	rig_rt_unlock_raw(&d->memory);
	atomic_store_explicit(&mem->refs, 1, memory_order_relaxed);
	rig_rt_note_memory(d);
	return mem;
}

static bool is_cached(const struct rig_rt_mem *mem)
{
	return !mem->host_owned && !atomic_load_explicit(&mem->exported, memory_order_relaxed);
}

/* Where dropped memory goes now: back to the driver, to the cache, or on waiting. */
static void settle(struct rig_device *d, struct rig_rt_mem *mem)
{
	bool live = rig_rt_is_live(d);

	if (live && is_cached(mem)) {
		/* Mappings end with the buffers: a cache must not hold other devices. */
		if (rig_rt_uses_settle(mem, d->slot) && rig_rt_maps_destroy(mem)) {
			atomic_store_explicit(&mem->shared, false, memory_order_relaxed);
			if (cache_push(d, mem))
				return;
		}
		wait_list_push(d, mem);
		return;
	}
	if (rig_rt_life_of(d) == RT_ORPHANED || rig_rt_uses_over(mem, 0))
		if (rig_rt_mem_destroy(mem))
			return;
	wait_list_push(d, mem);
}

/* Whether no other device ever used it: at most the first word is taken. */
static inline bool is_only_of(struct rig_rt_mem *mem, uint32_t slot)
{
	uint64_t first = atomic_load_explicit(&mem->uses.word[0], memory_order_acquire);

	return !first || (rig_rt_slot_of(first) == slot &&
	                         !atomic_load_explicit(&mem->uses.word[1], memory_order_acquire));
}

/* Takes back what is due if little waits, or twice as much as the last look left: so that a put costs what is
   added, not what waits. Allocations look in any case. */
static void look_through(struct rig_device *d)
{
	bool due;

	rig_rt_lock(&d->memory);
	due = d->store.nwaiting && (d->store.nwaiting <= FEW || d->store.nwaiting >= d->store.look_at);
	rig_rt_unlock(&d->memory);
	if (due)
		rig_rt_drain(d);
}

__attribute__((noinline)) static void give_slowly(struct rig_device *d, struct rig_rt_mem *mem)
{
	/* The memory's may be the last reference. */
	rig_rt_visit(d);
	if (rig_rt_is_live(d))
		settle(d, mem);
	else
		wait_list_push(d, mem);
	/* Lost meanwhile, too: what gave its memory back may have looked before. */
	if (rig_rt_is_live(d))
		look_through(d);
	else
		rig_rt_drain(d);
	rig_rt_visit_end(d);
}

void rig_rt_cache_give(struct rig_rt_mem *mem)
{
	struct rig_device *d = mem->owner;

	rig_rt_hook(RT_HOOK_PUT, d);
	if (!is_cached(mem) || mem->maps || !(is_only_of(mem, d->slot) || rig_rt_uses_settle(mem, d->slot)) ||
	        !cache_push(d, mem))
		give_slowly(d, mem);
}

static struct rig_rt_mem *take_waiting(struct rig_device *d)
{
	struct rig_rt_mem *list;

	rig_rt_lock(&d->memory);
	list = d->store.waiting;
	d->store.waiting = NULL;
	rig_rt_unlock(&d->memory);
	return list;
}

/* Also starts the count anew: what is put back counts again. */
static struct rig_rt_deferred *take_deferred(struct rig_device *d)
{
	struct rig_rt_deferred *list;

	rig_rt_lock(&d->memory);
	list = d->store.deferred;
	d->store.deferred = NULL;
	d->store.nwaiting = 0;
	d->store.nlooking++;
	d->store.look_at = UINT32_MAX;
	rig_rt_unlock(&d->memory);
	return list;
}

static void end_look(struct rig_device *d)
{
	rig_rt_lock(&d->memory);
	d->store.look_at = 2 * d->store.nwaiting + FEW;
	d->store.nlooking--;
	rig_rt_unlock(&d->memory);
}

static void deferred_push(struct rig_device *d, struct rig_rt_deferred *deferred)
{
	rig_rt_lock(&d->memory);
	deferred->next = d->store.deferred;
	d->store.deferred = deferred;
	d->store.nwaiting++;
	rig_rt_unlock(&d->memory);
}

static bool is_due(const struct rig_device *d, uint64_t value)
{
	enum rig_rt_life life = rig_rt_life_of(d);

	if (life == RT_LIVE)
		return rig_rt_point_over(rig_rt_bits(d->slot, value));
	return life == RT_STOPPED;
}

static void run_deferred(struct rig_device *d)
{
	struct rig_rt_deferred *list = take_deferred(d);

	while (list) {
		struct rig_rt_deferred *deferred = list;

		list = deferred->next;
		if (is_due(d, deferred->value))
			deferred->run(deferred);
		else
			deferred_push(d, deferred);
	}
}

static void drain_once(struct rig_device *d)
{
	struct rig_rt_mem *list;

	run_deferred(d);
	list = take_waiting(d);
	while (list) {
		struct rig_rt_mem *mem = list;

		list = mem->next;
		settle(d, mem);
	}
	end_look(d);
	if (rig_rt_life_of(d) >= RT_STOPPED)
		rig_rt_trim(d, 0);
}

void rig_rt_drain(struct rig_device *d)
{
	enum rig_rt_life life;

	if (rig_rt_forked())
		return;
	/* What is given back may hold the last references. */
	rig_rt_visit(d);
	/* What was found too early, while a stop ended meanwhile, is missed by who looked after it. */
	do {
		life = rig_rt_life_of(d);
		drain_once(d);
	} while (rig_rt_life_of(d) != life);
	rig_rt_visit_end(d);
}

void rig_rt_drain_all(void)
{
	struct rig_device *d = NULL;

	/* All are reaped before any is drained: memory of one may be mapped on another, which must have
	   stopped. */
	while ((d = rig_rt_next(d)))
		rig_rt_reap(d);
	while ((d = rig_rt_next(d)))
		rig_rt_drain(d);
}

void rig_rt_defer(struct rig_device *d, struct rig_rt_deferred *deferred)
{
	/* What it gives back may be the last that holds the device. */
	rig_rt_visit(d);
	if (!rig_rt_forked() && is_due(d, deferred->value)) {
		deferred->run(deferred);
	} else {
		deferred_push(d, deferred);
	}
	if (rig_rt_is_live(d))
		look_through(d);
	else
		rig_rt_drain(d);
	rig_rt_visit_end(d);
}

/* Unlinks cached memory that nothing uses, down to `keep` bytes; `hosts`: only what no budget counts. */
static struct rig_rt_mem *take_idle(struct rig_device *d, uint64_t keep, bool hosts)
{
	struct rig_rt_mem *list = NULL, **at, *mem;
	bool stopped = rig_rt_life_of(d) >= RT_STOPPED;
	unsigned i;

	rig_rt_lock(&d->memory);
	for (i = 0; i < RT_BUCKETS; i++) {
		at = &d->store.cache[i];
		while ((mem = *at) && d->store.cached > keep) {
			if ((hosts && mem->counted) || (!stopped && !rig_rt_uses_over(mem, 0))) {
				at = &mem->next;
				continue;
			}
			*at = mem->next;
			count_out(d, mem);
			mem->next = list;
			list = mem;
		}
	}
	rig_rt_unlock(&d->memory);
	return list;
}

static void give_all(struct rig_device *d, struct rig_rt_mem *list)
{
	while (list) {
		struct rig_rt_mem *mem = list;

		list = mem->next;
		if (!rig_rt_mem_destroy(mem))
			wait_list_push(d, mem);
	}
}

void rig_rt_trim(struct rig_device *d, uint64_t keep)
{
	give_all(d, take_idle(d, keep, false));
}

/* Pinned memory of any device is the host's: idle staging slots first, whose halves then are cached. */
static void give_hosts(void)
{
	struct rig_device *d = NULL;

	while ((d = rig_rt_next(d))) {
		rig_rt_staging_drop(d);
		give_all(d, take_idle(d, 0, true));
	}
}

/* ---- What work holds back ---- */

/* The one of two points that comes first, where one is none the other; the device's own come first. */
static uint64_t earlier(const struct rig_device *d, uint64_t a, uint64_t b)
{
	bool own = rig_rt_slot_of(a) == d->slot;

	if (!a || !b)
		return a | b;
	if (own != (rig_rt_slot_of(b) == d->slot))
		return own ? a : b;
	return a < b ? a : b;
}

/* Of the list's memory; `hosts`: only of that which no budget counts. */
static uint64_t holds_list(const struct rig_device *d, struct rig_rt_mem *list, bool hosts)
{
	uint64_t bits = 0;

	for (; list; list = list->next)
		if (!hosts || !list->counted)
			bits = earlier(d, bits, rig_rt_uses_pending(list));
	return bits;
}

/* An unreached point that holds memory back that was dropped, or that is cached, or what keeps some; or 0. */
static uint64_t holding_point(struct rig_device *d, bool hosts)
{
	const struct rig_rt_deferred *deferred;
	uint64_t bits;
	unsigned i;

	rig_rt_lock(&d->memory);
	bits = holds_list(d, d->store.waiting, hosts);
	for (i = 0; i < RT_BUCKETS; i++)
		bits = earlier(d, bits, holds_list(d, d->store.cache[i], hosts));
	for (deferred = d->store.deferred; deferred; deferred = deferred->next)
		if ((!hosts || deferred->hosts) &&
		        rig_rt_point_state(rig_rt_bits(d->slot, deferred->value)) == RT_PENDING)
			bits = earlier(d, bits, rig_rt_bits(d->slot, deferred->value));
	rig_rt_unlock(&d->memory);
	return bits;
}

static bool await_holder(struct rig_device *d, bool hosts)
{
	uint64_t bits = holding_point(d, hosts);

	/* A loss of the holder keeps its memory; the next try answers. */
	if (bits)
		(void)rig_rt_wait_bits(bits);
	return bits != 0;
}

/* Memory of the host's is under one limit, whichever device's work holds it back. */
static bool await_hosts(void)
{
	struct rig_device *d = NULL;
	bool waited = false;

	while ((d = rig_rt_next(d)))
		waited |= await_holder(d, true);
	return waited;
}

bool rig_rt_may_fit(struct rig_device *d, uint64_t bytes)
{
	const struct rig_rt_deferred *deferred;
	const struct rig_rt_mem *mem;
	uint64_t back, live;
	bool fits;

	rig_rt_lock(&d->memory);
	back = d->store.cached - d->store.uncounted;
	for (mem = d->store.waiting; mem; mem = mem->next)
		back += mem->counted ? mem->bytes : 0;
	for (deferred = d->store.deferred; deferred; deferred = deferred->next)
		back = deferred->bytes < UINT64_MAX - back ? back + deferred->bytes : UINT64_MAX;
	live = back < d->store.held ? d->store.held - back : 0;
	/* What another thread looks through just now is on no list. */
	fits = d->store.nlooking || (live <= d->store.budget && bytes <= d->store.budget - live);
	rig_rt_unlock(&d->memory);
	return fits && bytes <= d->facts.budget;
}

int rig_rt_reclaim(struct rig_device *d, unsigned round, enum rig_rt_shortage what)
{
	bool waited = false;
	int code;

	if (round && what == RT_SHORT_QUEUES) {
		code = rig_rt_wait_value(d, rig_rt_submitted(d));
		if (code)
			return code;
	} else if (round) {
		waited = what == RT_SHORT_HOST ? await_hosts() : await_holder(d, false);
	}
	if (round >= RT_ROUNDS - 1 && !waited)
		return -ENOMEM;
	rig_rt_drain_all();
	rig_rt_trim(d, 0);
	if (what == RT_SHORT_HOST)
		give_hosts();
	return rig_rt_is_live(d) ? 0 : rig_rt_lost_error(d);
}

void rig_cache_trim(struct rig_device *device, uint64_t keep)
{
	rig_rt_drain(device);
	rig_rt_trim(device, keep);
}

uint64_t rig_budget(const struct rig_device *device)
{
	return __atomic_load_n(&device->store.budget, __ATOMIC_RELAXED);
}

void rig_set_budget(struct rig_device *device, uint64_t bytes)
{
	uint64_t live;

	rig_rt_lock(&device->memory);
	__atomic_store_n(&device->store.budget, bytes, __ATOMIC_RELAXED);
	live = device->store.held - (device->store.cached - device->store.uncounted);
	rig_rt_unlock(&device->memory);
	rig_cache_trim(device, bytes > live ? bytes - live : 0);
}

uint64_t rig_held_bytes(struct rig_device *device, uint64_t *cached)
{
	uint64_t held;

	rig_rt_lock(&device->memory);
	held = device->store.held;
	if (cached)
		*cached = device->store.cached - device->store.uncounted;
	rig_rt_unlock(&device->memory);
	return held;
}
