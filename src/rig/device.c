/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "profile.h"

struct rig_device *rig_rt_devices;

static struct rig_device *last;

/* Somebody who was there is gone, or a device; under the registry's lock. */
static struct rig_rt_event left;

_Thread_local uint32_t rig_rt_visiting;

static bool try_add(struct rig_device *d, uint64_t add)
{
	uint64_t seen = atomic_load_explicit(&d->refs, memory_order_relaxed);

	while (seen)
		if (atomic_compare_exchange_weak_explicit(
		            &d->refs, &seen, seen + add, memory_order_relaxed, memory_order_relaxed))
			return true;
	return false;
}

bool rig_rt_try_get(struct rig_device *d)
{
	return try_add(d, 1);
}

void rig_rt_enlist(struct rig_device *d)
{
	struct rig_rt_slot *slot = rig_rt_slot(d);
	uint32_t flags = RT_SLOT_LIVE;

	if (d->facts.completion == RIG_STORE)
		flags |= RT_SLOT_STORE;
	if (d->own_word)
		flags |= RT_SLOT_OWN;
	rig_rt_lock(&rig_rt_registry);
	d->prev = last;
	if (last)
		last->next = d;
	else
		rig_rt_devices = d;
	last = d;
	slot->device = d;
	slot->base = d->base;
	atomic_store_explicit(&slot->committed, d->base, memory_order_relaxed);
	atomic_store_explicit(&slot->submitted, d->base, memory_order_relaxed);
	atomic_store_explicit(&slot->flags, flags, memory_order_release);
	rig_rt_unlock(&rig_rt_registry);
}

static void delist(struct rig_device *d)
{
	rig_rt_lock(&rig_rt_registry);
	if (d->prev)
		d->prev->next = d->next;
	else
		rig_rt_devices = d->next;
	if (d->next)
		d->next->prev = d->prev;
	else
		last = d->prev;
	if (rig_rt_slot(d)->device == d)
		rig_rt_slot(d)->device = NULL;
	rig_rt_notify(&left);
	rig_rt_unlock(&rig_rt_registry);
}

/* Released before it leaves the list: until then its name is not free. */
static void finish(struct rig_device *d)
{
	char kept[RT_REASON_BYTES];

	rig_rt_error_keep(kept);
	if (rig_rt_life_of(d) == RT_STOPPED && !rig_rt_forked())
		d->module->release(d->handle);
	rig_rt_error_back(kept);
	delist(d);
	rig_rt_records_drop(d);
	if (!d->dead_published)
		free(d->dead);
	free(d);
}

/* ---- Visits ---- */

/* Who left without being seen to, because the device was live when it looked, is found so much later. */
#define UNSEEN_MS 1

static bool is_visited(const struct rig_device *d)
{
	return atomic_load_explicit(&d->refs, memory_order_acquire) >= RT_VISIT;
}

void rig_rt_visit(struct rig_device *d)
{
	atomic_fetch_add_explicit(&d->refs, RT_VISIT, memory_order_relaxed);
	rig_rt_visiting++;
}

bool rig_rt_visit_try(struct rig_device *d)
{
	if (!try_add(d, RT_VISIT))
		return false;
	rig_rt_visiting++;
	return true;
}

void rig_rt_visit_end(struct rig_device *d)
{
	bool over;

	if (!d)
		return;
	over = rig_rt_life_of(d) >= RT_ENDED;
	if (atomic_fetch_sub_explicit(&d->refs, RT_VISIT, memory_order_acq_rel) == RT_VISIT) {
		finish(d);
	} else if (over) {
		rig_rt_lock(&rig_rt_registry);
		rig_rt_notify(&left);
		rig_rt_unlock(&rig_rt_registry);
	}
	rig_rt_visiting--;
}

void rig_rt_await_visits(struct rig_device *d)
{
	if (rig_rt_visiting || rig_rt_forked())
		return;
	rig_rt_lock(&rig_rt_registry);
	while (is_visited(d) && rig_rt_life_of(d) != RT_ORPHANED)
		rig_rt_await(&left, &rig_rt_registry, UNSEEN_MS);
	rig_rt_unlock(&rig_rt_registry);
}

/* Under the registry's lock. */
static bool is_leaving(const char *name)
{
	const struct rig_device *d;

	for (d = rig_rt_devices; d; d = d->next) {
		enum rig_rt_life life = rig_rt_life_of(d);

		if ((life == RT_ENDED || life == RT_STOPPED) && !strcmp(d->name, name) &&
		        (is_visited(d) || !atomic_load_explicit(&d->refs, memory_order_acquire)))
			return true;
	}
	return false;
}

void rig_rt_await_released(const char *name)
{
	if (rig_rt_visiting || rig_rt_forked())
		return;
	rig_rt_lock(&rig_rt_registry);
	while (is_leaving(name))
		rig_rt_await(&left, &rig_rt_registry, UNSEEN_MS);
	rig_rt_unlock(&rig_rt_registry);
}

/* A stopped device that holds nothing, which only the program's references keep: no visit holds it up. */
static bool is_idle(struct rig_device *d)
{
	bool idle;

	if (rig_rt_life_of(d) < RT_STOPPED)
		return false;
	rig_rt_lock(&d->memory);
	idle = !d->store.waiting && !d->store.deferred && !d->store.cached;
	rig_rt_unlock(&d->memory);
	return idle;
}

struct rig_device *rig_rt_next(struct rig_device *after)
{
	struct rig_device *d;

	rig_rt_lock(&rig_rt_registry);
	d = after ? after->next : rig_rt_devices;
	while (d && (is_idle(d) || !rig_rt_visit_try(d)))
		d = d->next;
	rig_rt_unlock(&rig_rt_registry);
	rig_rt_visit_end(after);
	return d;
}

struct rig_device *rig_device_get(struct rig_device *device)
{
	if (device)
		atomic_fetch_add_explicit(&device->refs, 1, memory_order_relaxed);
	return device;
}

/* The last reference goes after RT_STOPPED, or in a forked child, where nothing of the driver is called. */
void rig_device_put(struct rig_device *device)
{
	if (device && atomic_fetch_sub_explicit(&device->refs, 1, memory_order_acq_rel) == 1)
		finish(device);
}

size_t rig_devices(struct rig_device **devices, size_t n)
{
	struct rig_device *d;
	size_t count = 0;

	rig_rt_lock(&rig_rt_registry);
	for (d = rig_rt_devices; d; d = d->next) {
		if (!rig_rt_is_live(d))
			continue;
		if (!devices || count >= n) {
			count++;
			continue;
		}
		if (rig_rt_try_get(d))
			devices[count++] = d;
	}
	rig_rt_unlock(&rig_rt_registry);
	return count;
}

const char *rig_name(const struct rig_device *device)
{
	return device->name;
}

const char *rig_arch(const struct rig_device *device)
{
	return device->facts.arch;
}

const char *rig_bus(const struct rig_device *device)
{
	return device->facts.bus;
}

const struct rig_queue *rig_queues(const struct rig_device *device, uint32_t *n)
{
	*n = device->facts.nqueues;
	return device->facts.queues;
}

int64_t rig_cache_bytes(const struct rig_device *device)
{
	return device->facts.has_cache_bytes ? device->facts.cache_bytes : 0;
}

const struct rig_facts *rig_device_facts(const struct rig_device *device)
{
	return &device->facts;
}

const void *rig_capability(const struct rig_device *device, const struct rig_key *key)
{
	return key && device->facts.capability.key == key ? device->facts.capability.record : NULL;
}

uint64_t rig_submitted(struct rig_device *device)
{
	return rig_rt_submitted(device);
}

bool rig_lost(struct rig_device *device, const char **reason)
{
	/* A device that nobody waits for has no other way to tell. */
	if (rig_rt_is_live(device) && !rig_locks_held())
		(void)rig_rt_ask(device);
	if (rig_rt_is_live(device))
		return false;
	if (reason)
		*reason = rig_rt_life_of(device) == RT_LIVE ? "inherited by a forked child"
		                                            : device->dead->reason;
	return true;
}
