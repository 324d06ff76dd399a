/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rt.h"

static bool is_counted(const struct rig_device *d, enum rig_memory kind)
{
	return kind != RIG_PINNED || d->facts.host_addresses;
}

struct rig_rt_mem *rig_rt_mem_make(struct rig_device *d)
{
	struct rig_rt_mem *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return NULL;
	atomic_init(&mem->refs, 1);
	mem->owner = rig_device_get(d);
	return mem;
}

static void unmake(struct rig_rt_mem *mem)
{
	struct rig_device *owner = mem->owner;

	rig_rt_uses_fini(mem);
	if (mem->pages)
		(void)munmap(mem->pages, mem->bytes);
	free(mem);
	rig_device_put(owner);
}

/* Takes bytes out of the budget: 0 or -ENOMEM. */
static int count(struct rig_device *d, uint64_t bytes)
{
	int code = 0;

	rig_rt_lock(&d->memory);
	if (d->store.held > d->store.budget || bytes > d->store.budget - d->store.held)
		code = -ENOMEM;
	else
		d->store.held += bytes;
	rig_rt_unlock(&d->memory);
	rig_rt_note_memory(d);
	return code;
}

static void uncount(struct rig_device *d, uint64_t bytes)
{
	rig_rt_lock(&d->memory);
	d->store.held -= bytes;
	rig_rt_unlock(&d->memory);
	rig_rt_note_memory(d);
}

/* A region that breaks the facts is the driver's fault: freed, and the device is lost. In a counted call. */
static const char *breach(struct rig_device *d, const struct rig_location *at)
{
	uint64_t mask = (uint64_t)d->facts.alignment - 1;

	if (d->facts.host_addresses && !at->has_host)
		return "alloc made a region without a host address, against facts.host_addresses";
	if ((at->has_address && at->address & mask) || (at->has_host && (uintptr_t)at->host & mask))
		return "alloc made a region off facts.alignment";
	return NULL;
}

/* 0, -ENOMEM (the device has none now) or RIG_LOST. */
static int ask_driver(struct rig_device *d, enum rig_memory kind, uint64_t bytes, struct rig_rt_mem *mem)
{
	const char *fault = NULL, *broken, *ignored = NULL;
	int code = rig_rt_enter(d);

	if (code)
		return code;
	(void)rig_error_set(0, "%s", "");
	code = d->module->alloc(d->handle, kind, bytes, &mem->region, &fault);
	if (code)
		return rig_rt_leave_with(d, code, &fault);
	d->module->locate(d->handle, mem->region, &mem->at);
	broken = breach(d, &mem->at);
	if (!broken) {
		rig_rt_leave(d, NULL);
		return 0;
	}
	(void)d->module->free(d->handle, mem->region, &ignored);
	rig_rt_leave(d, broken);
	return rig_rt_lost_error(d);
}

static void set_whole(struct rig_rt_mem *mem)
{
	struct rig_buffer *whole = &mem->whole;

	whole->device = mem->owner;
	whole->mem = mem;
	whole->region = mem->region;
	whole->at = mem->at;
	whole->host = mem->at.has_host ? mem->at.host : NULL;
}

/* One try: budget, then driver. */
static int try_alloc(struct rig_device *d, enum rig_memory kind, uint64_t bytes, struct rig_rt_mem **made)
{
	struct rig_rt_mem *mem;
	bool counted = is_counted(d, kind);
	int code = counted ? count(d, bytes) : 0;

	if (code)
		return code;
	mem = rig_rt_mem_make(d);
	code = mem ? ask_driver(d, kind, bytes, mem)
	           : rig_error_set(-ENOMEM, "no host memory for its record");
	if (!code) {
		mem->kind = kind;
		mem->bytes = bytes;
		mem->counted = counted;
		set_whole(mem);
		*made = mem;
		return 0;
	}
	if (mem)
		unmake(mem);
	if (counted)
		uncount(d, bytes);
	return code;
}

static const char *kind_name(enum rig_memory kind)
{
	return kind == RIG_PINNED ? "pinned" : kind == RIG_MAPPED ? "mapped" : "device";
}

/* Only what would help is advised: a budget above what the device has makes no memory. */
static int refuse(struct rig_device *d, enum rig_memory kind, uint64_t bytes)
{
	uint64_t held = rig_held_bytes(d, NULL), budget = rig_budget(d), all = d->facts.budget;
	const char *name = kind_name(kind);

	if (!is_counted(d, kind))
		return rig_error_set(-ENOMEM, "%s: no %s memory for %" PRIu64 " bytes", d->name, name, bytes);
	if (bytes > all)
		return rig_error_set(-ENOMEM,
		        "%s: no %s memory for %" PRIu64 " bytes: the device has %" PRIu64 " bytes in all",
		        d->name, name, bytes, all);
	if (bytes > budget)
		return rig_error_set(-ENOMEM,
		        "%s: no %s memory for %" PRIu64 " bytes: the budget is %" PRIu64
		        " bytes; raise it, the device has %" PRIu64,
		        d->name, name, bytes, budget, all);
	return rig_error_set(-ENOMEM,
	        "%s: no %s memory for %" PRIu64 " bytes (%" PRIu64 " held of a budget of %" PRIu64
	        "); free buffers%s",
	        d->name, name, bytes, held, budget,
	        bytes > budget - (held < budget ? held : budget) && budget < all ? " or raise the budget"
	                                                                         : "");
}

/* Memory that no budget counts is the host's: the driver said what it lacks. */
static int relay(struct rig_device *d, enum rig_memory kind, uint64_t bytes)
{
	return rig_error_set(-ENOMEM, "%s: no %s memory for %" PRIu64 " bytes: %s", d->name, kind_name(kind),
	        bytes, *rig_error() ? rig_error() : "the driver has none");
}

/* More than the machine has comes from nobody. */
static bool is_beyond_host(uint64_t bytes)
{
	long pages = sysconf(_SC_PHYS_PAGES);

	return pages > 0 && bytes / (uint64_t)sysconf(_SC_PAGESIZE) > (uint64_t)pages;
}

/* After a try that found no memory: 0 to try again, -ENOMEM: no completion can bring it, or RIG_LOST. */
static int make_room(struct rig_device *d, enum rig_memory kind, uint64_t bytes, unsigned round)
{
	bool counted = is_counted(d, kind);

	if (counted ? !rig_rt_may_fit(d, bytes) : is_beyond_host(bytes))
		return -ENOMEM;
	return rig_rt_reclaim(d, round, counted ? RT_SHORT_DEVICE : RT_SHORT_HOST);
}

int rig_rt_mem_alloc(struct rig_device *d, enum rig_memory kind, uint64_t bytes, struct rig_rt_mem **mem)
{
	uint64_t rounded = rig_rt_class_of(bytes);
	unsigned round;
	int code;

	if (d->facts.host_addresses || rig_rt_is_io(d))
		kind = RIG_DEVICE;
	if (!rig_rt_is_live(d))
		return rig_rt_lost_error(d);
	/* More than the budget in one request: at once, the cache kept. */
	if (!rounded || (is_counted(d, kind) && bytes > rig_budget(d)))
		return refuse(d, kind, bytes);
	if (is_counted(d, kind) && rounded > rig_budget(d))
		rounded = bytes;
	*mem = rig_rt_cache_take(d, kind, rounded);
	if (*mem)
		return 0;
	/* What other work held back may be free by now. */
	rig_rt_drain(d);
	*mem = rig_rt_cache_take(d, kind, rounded);
	if (*mem)
		return 0;
	for (round = 0;; round++) {
		code = try_alloc(d, kind, rounded, mem);
		if (code != -ENOMEM)
			return code;
		code = make_room(d, kind, rounded, round);
		if (code == -ENOMEM)
			return is_counted(d, kind) ? refuse(d, kind, bytes) : relay(d, kind, bytes);
		if (code)
			return code;
		*mem = rig_rt_cache_take(d, kind, rounded);
		if (*mem)
			return 0;
	}
}

void rig_rt_mem_get(struct rig_rt_mem *mem)
{
	if (mem)
		atomic_fetch_add_explicit(&mem->refs, 1, memory_order_relaxed);
}

void rig_rt_mem_put(struct rig_rt_mem *mem)
{
	/* Who holds the last reference is alone with it. */
	if (mem && (atomic_load_explicit(&mem->refs, memory_order_acquire) == 1 ||
	                   atomic_fetch_sub_explicit(&mem->refs, 1, memory_order_acq_rel) == 1))
		rig_rt_cache_give(mem);
}

static bool free_region(struct rig_device *d, void *region)
{
	const char *fault = NULL;

	/* An inherited device's regions are the parent's. */
	if (rig_rt_forked() || rig_rt_life_of(d) == RT_ORPHANED)
		return true;
	if (rig_rt_life_of(d) == RT_STOPPED) {
		(void)d->module->free(d->handle, region, &fault);
		return true;
	}
	if (rig_rt_enter(d))
		return false;
	(void)rig_rt_leave_with(d, d->module->free(d->handle, region, &fault), &fault);
	return true;
}

bool rig_rt_region_free(struct rig_device *d, void *region)
{
	char kept[RT_REASON_BYTES];
	bool freed;

	rig_rt_error_keep(kept);
	freed = free_region(d, region);
	rig_rt_error_back(kept);
	return freed;
}

bool rig_rt_mem_destroy(struct rig_rt_mem *mem)
{
	if (!rig_rt_maps_destroy(mem))
		return false;
	if (mem->region && !rig_rt_region_free(mem->owner, mem->region))
		return false;
	if (mem->counted)
		uncount(mem->owner, mem->bytes);
	unmake(mem);
	return true;
}
