/* SPDX-License-Identifier: MIT */
/* A device of host memory: a driver like any other, but in this library, whose queue is the submitting
   thread. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cond.h"
#include "plain.h"
#include "rt.h"
#include "writable.h"

#define PAGE_BYTES UINT64_C(4096)
/* From here on memory is worth pages of 2 MiB where the system gives them. */
#define HUGE_FROM UINT64_C(8388608)

static const struct rig_key host_key = {"host memory"};
static const struct rig_queue host_queues[] = {{"COPY:0", RIG_RUNS(RIG_COPY)}};

/* The C state, and the handle. */
struct host {
	const struct rig_driver *hot; /* first: facts.edge */
	rig_atomic_u64 *word;
	uint64_t memory; /* of the machine */
	_Atomic uint64_t held;
	pthread_mutex_t lock; /* of the sleepers */
	pthread_cond_t moved;
};

struct region {
	uint8_t *bytes;
	uint64_t mapped; /* bytes of its own mapping; 0: the memory is someone else's */
};

/* ---- Work: done when submit returns ---- */

static bool is_runnable(const struct rig_part *part)
{
	return part->kind == RIG_COPY && part->queue == 0 && part->u.copy.rows && part->u.copy.row_bytes;
}

static int hot_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	uint32_t i;

	(void)self;
	(void)run;
	(void)scratch;
	if (nwaits)
		return rig_error_set(RIG_NEVER, "host memory waits for no other device in its queue");
	for (i = 0; i < nparts; i++)
		if (!is_runnable(&parts[i]))
			return rig_error_set(RIG_NEVER, "part %" PRIu32 ": host memory runs copies alone", i);
	return RIG_FITS;
}

static uint8_t *side_of(const struct rig_run *run, const struct rig_copy_side *side)
{
	bool fixed = side->slot == RIG_FIXED;
	const struct region *region =
	        (const struct region *)(fixed ? side->handle : run->slots[side->slot].handle);

	return region->bytes + side->offset + (fixed ? 0 : run->slots[side->slot].offset);
}

static void run_copy(const struct rig_run *run, const struct rig_copy_part *copy)
{
	uint8_t *dst = side_of(run, &copy->dst);
	const uint8_t *src = copy->fill ? NULL : side_of(run, &copy->src);
	uint64_t row;

	for (row = 0; row < copy->rows; row++)
		if (copy->fill)
			memset(dst + row * copy->dst.pitch, copy->byte, copy->row_bytes);
		else
			memmove(dst + row * copy->dst.pitch, src + row * copy->src.pitch, copy->row_bytes);
}

static void show(struct host *host, uint64_t value)
{
	rig_word_raise(host->word, value);
	(void)pthread_mutex_lock(&host->lock);
	(void)pthread_cond_broadcast(&host->moved);
	(void)pthread_mutex_unlock(&host->lock);
}

static int hot_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	struct host *host = self;
	uint32_t i;

	(void)waits;
	(void)nwaits;
	(void)scratch;
	(void)failure;
	if (times)
		times->start = rig_now_ns();
	for (i = 0; i < nparts; i++)
		run_copy(run, &parts[i].u.copy);
	if (times)
		times->end = rig_now_ns();
	show(host, value);
	return RIG_COMMITTED;
}

static const struct rig_driver host_hot = {
        RIG_EDGE_VERSION, hot_room, hot_submit, rig_plain_commit, NULL, NULL};

/* ---- Memory ---- */

static int cold_facts(void *device, struct rig_facts *facts, const char **fault)
{
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);

	(void)fault;
	if (facts->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL, "facts of version %" PRIu32 ", this driver %u", facts->version,
		        RIG_EDGE_VERSION);
	facts->arch = "host";
	facts->budget = ((struct host *)device)->memory;
	facts->queues = host_queues;
	facts->nqueues = sizeof(host_queues) / sizeof(host_queues[0]);
	facts->has_copy_engine = true;
	facts->copy_engine = 0;
	facts->completion = RIG_HOST;
	facts->may_block = true; /* submit copies */
	facts->maps_host = true;
	facts->host_addresses = true;
	facts->alignment = (int64_t)PAGE_BYTES;
	facts->has_cache_bytes = cache > 0;
	facts->cache_bytes = cache;
	facts->word = device;
	facts->edge = device;
	return 0;
}

/* The word's region is the device itself. */
static void cold_locate(void *device, void *region, struct rig_location *location)
{
	struct host *host = device;

	memset(location, 0, sizeof(*location));
	location->has_host = true;
	location->host = region == device ? (void *)(uintptr_t)host->word : ((struct region *)region)->bytes;
	location->has_address = true;
	location->address = (uintptr_t)location->host;
	location->handle = (uintptr_t)region;
}

static struct region *make_region(void *bytes, uint64_t mapped)
{
	struct region *region = malloc(sizeof(*region));

	if (region) {
		region->bytes = bytes;
		region->mapped = mapped;
	}
	return region;
}

/* The system promises more than it has, so the machine's memory is counted here. */
static bool hold(struct host *host, uint64_t bytes)
{
	if (bytes <= host->memory && atomic_fetch_add(&host->held, bytes) <= host->memory - bytes)
		return true;
	if (bytes <= host->memory)
		atomic_fetch_sub(&host->held, bytes);
	return false;
}

static int cold_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **fault)
{
	struct host *host = device;
	void *at;

	(void)kind;
	(void)fault;
	if (!hold(host, bytes))
		return -ENOMEM;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*region = at == MAP_FAILED ? NULL : make_region(at, bytes);
	if (*region && bytes >= HUGE_FROM)
		(void)madvise(at, bytes, MADV_HUGEPAGE);
	if (*region)
		return 0;
	if (at != MAP_FAILED)
		(void)munmap(at, bytes);
	atomic_fetch_sub(&host->held, bytes);
	return -ENOMEM;
}

static int cold_free(void *device, void *region, const char **fault)
{
	struct host *host = device;
	struct region *r = region;

	(void)fault;
	if (r->mapped)
		(void)munmap(r->bytes, r->mapped);
	atomic_fetch_sub(&host->held, r->mapped);
	free(r);
	return 0;
}

static bool cold_peer(void *device, void *other)
{
	(void)device;
	(void)other;
	return true;
}

static int map_over(void *bytes, void **region)
{
	*region = make_region(bytes, 0);
	return *region ? RIG_MAPS : rig_error_set(RIG_NO_ROOM, "no host memory for the mapping's record");
}

static int cold_map_peer(void *device, void *other, void *region, void **mapped, const char **fault)
{
	(void)device;
	(void)other;
	(void)fault;
	return map_over(((struct region *)region)->bytes, mapped);
}

static int cold_map_host(void *device, void *host, uint64_t bytes, void **region, const char **fault)
{
	(void)device;
	(void)fault;
	if (!rig_is_writable(host, bytes))
		return rig_error_set(RIG_NEVER_MAPS,
		        "%" PRIu64 " bytes from %p are not all memory that the process may write", bytes,
		        host);
	return map_over(host, region);
}

static int cold_dma(void *device, void *region, struct rig_dma_answer *answer, const char **fault)
{
	(void)device;
	(void)region;
	(void)fault;
	answer->kind = RIG_NO_DMA;
	answer->reason =
	        "memory of the process has no bus addresses; borrow it on the device that is to reach it";
	return RIG_NO_DMA;
}

static int cold_load(
        void *device, const void *binary, size_t bytes, struct rig_code *code, const char **fault)
{
	(void)device;
	(void)binary;
	(void)bytes;
	(void)code;
	(void)fault;
	return rig_error_set(-ENOEXEC, "host memory runs no code");
}

static int cold_entry(void *device, void *image, const char *name, struct rig_entry *entry,
        uint64_t *short_bytes, const char **fault)
{
	(void)device;
	(void)image;
	(void)name;
	(void)entry;
	(void)short_bytes;
	(void)fault;
	return RIG_ABSENT;
}

static int cold_unload(void *device, void *image, const char **fault)
{
	(void)device;
	(void)image;
	(void)fault;
	return 0;
}

/* ---- Its life ---- */

static int cold_signaled(void *device, uint64_t *value, const char **fault)
{
	struct host *host = device;

	(void)fault;
	*value = rig_word_load(host->word);
	return 0;
}

static int cold_sleep(void *device, uint64_t seen, uint64_t still_ms, const char **fault)
{
	struct host *host = device;

	(void)fault;
	(void)pthread_mutex_lock(&host->lock);
	if (still_ms && rig_word_load(host->word) == seen)
		(void)rig_cond_wait_ms(&host->moved, &host->lock, still_ms);
	(void)pthread_mutex_unlock(&host->lock);
	return 0;
}

/* Work is over when its submit returned, and no submit is in flight. */
static void cold_stop(void *device, const char *reason)
{
	(void)device;
	(void)reason;
}

static void cold_release(void *device)
{
	struct host *host = device;

	(void)pthread_cond_destroy(&host->moved);
	(void)pthread_mutex_destroy(&host->lock);
	free(host);
}

static const struct rig_driver_module host_module = {
        .version = RIG_EDGE_VERSION,
        .key = &host_key,
        .facts = cold_facts,
        .alloc = cold_alloc,
        .free = cold_free,
        .locate = cold_locate,
        .peer = cold_peer,
        .map_peer = cold_map_peer,
        .map_host = cold_map_host,
        .dma = cold_dma,
        .load = cold_load,
        .entry = cold_entry,
        .unload = cold_unload,
        .grow = rig_plain_grow,
        .signaled = cold_signaled,
        .sleep = cold_sleep,
        .stop = cold_stop,
        .release = cold_release,
};

static int make(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	struct host *host = calloc(1, sizeof(*host));
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	(void)arg;
	if (!host) {
		(void)snprintf(why, why_bytes, "no host memory for a device");
		return -ENOMEM;
	}
	host->hot = &host_hot;
	host->word = word;
	host->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX / 2;
	(void)pthread_mutex_init(&host->lock, NULL);
	rig_cond_init(&host->moved);
	*device = host;
	return 0;
}

void rig_host_opener(const char *name, struct rig_opener *opener)
{
	memset(opener, 0, sizeof(*opener));
	opener->version = RIG_EDGE_VERSION;
	opener->name = name;
	opener->module = &host_module;
	opener->make = make;
}
