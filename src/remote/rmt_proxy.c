/* SPDX-License-Identifier: MIT */
/* The proxy driver's cold side: what a device of another machine answers here. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "clock.h"
#include "rmt_proxy.h"
#include "thread.h"

#define PAGE_BYTES 4096
#define BUDGET     (UINT64_MAX / 2) /* at most: a runtime adds to it */

static const struct rig_key proxy_key = {"devices of other machines"};

static int commit(void *self, uint64_t value, const char **failure)
{
	(void)self;
	(void)value;
	(void)failure;
	return RIG_OK;
}

/* With counters and without. */
static const struct rig_driver hot_plain = {
        RIG_EDGE_VERSION, rig_rmt_room, rig_rmt_submit, commit, NULL, NULL};
static const struct rig_driver hot_counting = {
        RIG_EDGE_VERSION, rig_rmt_room, rig_rmt_submit, commit, NULL, rig_rmt_measures};

/* ---- Loss ---- */

void rig_rmt_proxy_lose(struct proxy *p, const char *reason)
{
	(void)pthread_mutex_lock(&p->lock);
	if (!p->faulted) {
		(void)snprintf(p->reason, sizeof(p->reason), "%s", reason);
		p->faulted = true;
	}
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
}

bool rig_rmt_proxy_faulted(struct proxy *p)
{
	bool faulted;

	(void)pthread_mutex_lock(&p->lock);
	faulted = p->faulted;
	(void)pthread_mutex_unlock(&p->lock);
	return faulted;
}

int rig_rmt_proxy_fault(struct proxy *p, const char **fault)
{
	*fault = p->reason;
	return RIG_FAULT;
}

/* A request's failure: of the device or the job a fault, else the answer itself. */
static int judge(struct proxy *p, int err, const char **fault)
{
	if (err == -ENODEV)
		rig_rmt_proxy_lose(p, rig_error());
	if (err == -ECONNABORTED)
		rig_rmt_proxy_lose(p, p->m->job->reason);
	if (err == -EIO)
		rig_rmt_proxy_lose(p, rig_error());
	return err == -ENODEV || err == -ECONNABORTED || err == -EIO ? rig_rmt_proxy_fault(p, fault) : err;
}

/* The request of a device: its number comes first. *payload is malloc's. */
static int ask(struct proxy *p, uint8_t kind, const struct rig_rmt_out *body, struct rig_rmt_out *payload,
        const char **fault)
{
	struct rig_rmt_out out = {.bad = body->bad};
	int err;

	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	rig_rmt_put32(&out, p->id);
	rig_rmt_put_bytes(&out, body->at, body->used);
	err = rig_rmt_request(p->m, kind, &out, 0, payload);
	rig_rmt_out_free(&out);
	return judge(p, err, fault);
}

static int malformed(struct proxy *p, const char **fault)
{
	rig_rmt_job_fail(p->m->job, "machine %s: malformed: an answer", p->m->name);
	rig_rmt_proxy_lose(p, p->m->job->reason);
	return rig_rmt_proxy_fault(p, fault);
}

/* A message without an answer. */
static void tell(struct proxy *p, uint8_t kind, uint32_t number)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, p->id);
	rig_rmt_put32(&out, number);
	(void)rig_rmt_send(p->m, kind, &out, NULL, 0);
	rig_rmt_out_free(&out);
}

/* ---- Facts ---- */

static int cold_facts(void *device, struct rig_facts *facts, const char **fault)
{
	struct proxy *p = device;
	const struct rig_rmt_facts *f = &p->facts;

	if (facts->version != RIG_EDGE_VERSION) {
		rig_rmt_proxy_lose(p, "facts of another version of the contract");
		return rig_rmt_proxy_fault(p, fault);
	}
	facts->arch = f->arch;
	facts->budget = f->budget < BUDGET ? f->budget : BUDGET;
	facts->queues = p->queues;
	facts->nqueues = f->nqueues;
	facts->has_copy_engine = f->has_copy_engine;
	facts->copy_engine = (int32_t)f->copy_engine;
	facts->completion = RIG_HOST;
	facts->waits = (struct rig_waits){.stores = true, .hosts = true};
	facts->may_block = true;
	facts->has_hang_ms = f->has_hang_ms;
	facts->hang_ms = f->hang_ms;
	facts->maps_host = true;
	facts->alignment = f->alignment < PAGE_BYTES ? f->alignment : PAGE_BYTES;
	facts->has_cache_bytes = f->has_cache_bytes;
	facts->cache_bytes = f->cache_bytes;
	facts->counters = f->ncounters ? p->counters : NULL;
	facts->ncounters = f->ncounters;
	facts->capability = rig_remote_declare(&p->record);
	facts->word = &p->word_region;
	facts->bus = *f->bus ? f->bus : NULL;
	facts->edge = p;
	return 0;
}

/* ---- Memory ---- */

static struct region *make_region(enum region_kind kind)
{
	struct region *region = calloc(1, sizeof(*region));

	if (region)
		region->kind = kind;
	else
		(void)rig_error_set(-ENOMEM, "no host memory for a region's record");
	return region;
}

static int alloc_local(uint64_t bytes, void **region)
{
	struct region *r = make_region(REGION_LOCAL);

	if (!r || bytes > SIZE_MAX / 2) {
		free(r);
		return -ENOMEM;
	}
	r->host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->host == MAP_FAILED) {
		free(r);
		return -ENOMEM;
	}
	r->mapped = bytes;
	*region = r;
	return 0;
}

/* The region of an answer; takes the payload. */
static int read_region(struct proxy *p, struct rig_rmt_out *payload, void **region, const char **fault)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload->at, payload->used);
	struct rig_rmt_region r;
	struct region *made;
	int err = rig_rmt_region_parse(&in, &r);

	rig_rmt_out_free(payload);
	if (err)
		return malformed(p, fault);
	made = make_region(REGION_REMOTE);
	if (!made) {
		tell(p, RIG_RMT_FREE, r.region);
		return -ENOMEM;
	}
	made->id = r.region;
	made->has_address = r.has_address;
	made->address = r.address;
	*region = made;
	return 0;
}

static int cold_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **fault)
{
	struct proxy *p = device;
	struct rig_rmt_out body = {0}, payload;
	int err;

	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	if (kind == RIG_MAPPED)
		return rig_error_set(-ENOMEM, "no memory of another machine is mapped here");
	if (kind == RIG_PINNED)
		return alloc_local(bytes, region);
	rig_rmt_put32(&body, RIG_DEVICE);
	rig_rmt_put64(&body, bytes);
	err = ask(p, RIG_RMT_ALLOC, &body, &payload, fault);
	rig_rmt_out_free(&body);
	return err ? err : read_region(p, &payload, region, fault);
}

static int cold_free(void *device, void *region, const char **fault)
{
	struct proxy *p = device;
	struct region *r = region;
	bool gone;

	(void)fault;
	(void)pthread_mutex_lock(&p->lock);
	gone = p->stopped || p->faulted;
	(void)pthread_mutex_unlock(&p->lock);
	if (r->kind == REGION_REMOTE && !gone)
		tell(p, RIG_RMT_FREE, r->id);
	if (r->mapped)
		(void)munmap(r->host, r->mapped);
	free(r);
	return 0;
}

static void cold_locate(void *device, void *region, struct rig_location *location)
{
	const struct region *r = region;

	(void)device;
	memset(location, 0, sizeof(*location));
	location->has_address = r->has_address;
	location->address = r->address;
	location->has_host = r->host != NULL;
	location->host = r->host;
	location->handle = (uintptr_t)region;
}

static bool cold_peer(void *device, void *other)
{
	const struct proxy *p = device, *o = other;

	if (p->m->job == o->m->job)
		return true;
	(void)rig_error_set(-EXDEV, "devices of two jobs reach no memory of each other");
	return false;
}

/* A region of another machine, or of a device here that this one does not reach: copies fetch from it. */
static int map_foreign(const struct proxy *owner, const struct region *region, void **mapped)
{
	struct region *r = make_region(REGION_FOREIGN);

	if (!r)
		return RIG_NO_ROOM;
	r->id = region->id;
	r->machine = owner->m;
	r->device = owner->id;
	*mapped = r;
	return RIG_MAPS;
}

static int cold_map_peer(void *device, void *other, void *region, void **mapped, const char **fault)
{
	struct proxy *p = device, *o = other;
	const struct region *r = region;
	struct rig_rmt_out body = {0}, payload;
	int err;

	if (r->kind != REGION_REMOTE)
		return rig_error_set(RIG_NEVER_MAPS, "only a device's own memory is reached by another");
	if (p->m != o->m)
		return map_foreign(o, r, mapped);
	rig_rmt_put32(&body, o->id);
	rig_rmt_put32(&body, r->id);
	err = ask(p, RIG_RMT_MAP_PEER, &body, &payload, fault);
	rig_rmt_out_free(&body);
	if (err == RIG_FAULT)
		return err;
	if (err)
		return map_foreign(o, r, mapped);
	err = read_region(p, &payload, mapped, fault);
	return err == RIG_FAULT ? err : err ? RIG_NO_ROOM : RIG_MAPS;
}

/* Whether the process may read and write all bytes of [from, to): the system's list of its mappings is in the
   order of addresses. */
static bool may_write(uint64_t from, uint64_t to)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end;
	char rights[8], line[512];

	if (!maps)
		return true;
	while (from < to && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, rights) == 3 && start <= from &&
		        end > from) {
			if (rights[0] != 'r' || rights[1] != 'w')
				break;
			from = end;
		}
	(void)fclose(maps);
	return from >= to;
}

/* An area of a rail's end on the proxy's machine. */
static int map_rail(struct proxy *p, uint64_t rail, bool inbound, void **region, const char **fault)
{
	struct rig_rmt_out body = {0}, payload;
	int err;

	rig_rmt_put64(&body, rail);
	rig_rmt_put8(&body, inbound);
	err = ask(p, RIG_RMT_MAP_RAIL, &body, &payload, fault);
	rig_rmt_out_free(&body);
	if (!err)
		err = read_region(p, &payload, region, fault);
	return err == RIG_FAULT ? err : err == -ENOTSUP ? RIG_NEVER_MAPS : err ? RIG_NO_ROOM : RIG_MAPS;
}

static int cold_map_host(void *device, void *host, uint64_t bytes, void **region, const char **fault)
{
	struct proxy *p = device;
	struct region *r;
	uint64_t rail;
	bool inbound;

	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	if (rig_rmt_rails_window(p->m, host, bytes, &rail, &inbound))
		return map_rail(p, rail, inbound, region, fault);
	if (bytes > UINT64_MAX - (uintptr_t)host || !may_write((uintptr_t)host, (uintptr_t)host + bytes))
		return rig_error_set(RIG_NEVER_MAPS,
		        "%" PRIu64 " bytes from %p are not all memory that the process may write", bytes,
		        host);
	r = make_region(REGION_LOCAL);
	if (!r)
		return RIG_NO_ROOM;
	r->host = host;
	*region = r;
	return RIG_MAPS;
}

static int cold_dma(void *device, void *region, struct rig_dma_answer *answer, const char **fault)
{
	struct proxy *p = device;

	(void)region;
	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	answer->kind = RIG_NO_DMA;
	answer->reason = "memory of another machine has no bus addresses here";
	return RIG_NO_DMA;
}

/* ---- Code ---- */

static int send_code(struct proxy *p, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_out head = {0};
	int err = 0;

	rig_rmt_put32(&head, p->id);
	while (n && !err) {
		size_t chunk = n < RIG_RMT_DATA_BYTES ? n : RIG_RMT_DATA_BYTES;

		err = rig_rmt_send(p->m, RIG_RMT_CODE, &head, bytes, chunk);
		bytes += chunk;
		n -= chunk;
	}
	rig_rmt_out_free(&head);
	return err;
}

static int request_load(
        struct proxy *p, const void *binary, size_t bytes, struct rig_rmt_out *payload, const char **fault)
{
	struct rig_rmt_out body = {0};
	int err;

	/* The bytes and the request are one: another thread's would come between. */
	(void)pthread_mutex_lock(&p->load_lock);
	err = judge(p, send_code(p, binary, bytes), fault);
	rig_rmt_put64(&body, bytes);
	if (!err)
		err = ask(p, RIG_RMT_LOAD, &body, payload, fault);
	(void)pthread_mutex_unlock(&p->load_lock);
	rig_rmt_out_free(&body);
	return err;
}

static int cold_load(
        void *device, const void *binary, size_t bytes, struct rig_code *code, const char **fault)
{
	struct proxy *p = device;
	struct rig_rmt_out payload;
	struct rig_rmt_in in;
	uint32_t id;
	int err;

	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	if (bytes > RIG_RMT_BINARY_BYTES)
		return rig_error_set(-EFBIG, "a binary of %zu bytes is no image", bytes);
	err = request_load(p, binary, bytes, &payload, fault);
	if (err)
		return err;
	in = rig_rmt_in_of(payload.at, payload.used);
	id = rig_rmt_get32(&in);
	rig_rmt_out_free(&payload);
	if (in.bad || in.left || !id)
		return malformed(p, fault);
	code->kind = RIG_LOADED;
	code->image = (void *)(uintptr_t)id;
	return 0;
}

static int cold_entry(void *device, void *image, const char *name, struct rig_entry *entry,
        uint64_t *short_bytes, const char **fault)
{
	struct proxy *p = device;
	struct rig_rmt_out body = {0}, payload;
	struct rig_rmt_entry e;
	struct rig_rmt_in in;
	int err;

	/* Longer than any name that a message carries: no image has it. */
	if (strlen(name) >= RIG_RMT_REASON - 1)
		return RIG_ABSENT;
	rig_rmt_put32(&body, (uint32_t)(uintptr_t)image);
	rig_rmt_put_text(&body, name);
	err = ask(p, RIG_RMT_ENTRY, &body, &payload, fault);
	rig_rmt_out_free(&body);
	if (err) {
		*short_bytes = 0;
		return err == RIG_FAULT ? err : RIG_NO_MEMORY;
	}
	in = rig_rmt_in_of(payload.at, payload.used);
	err = rig_rmt_entry_parse(&in, &e);
	rig_rmt_out_free(&payload);
	if (err)
		return malformed(p, fault);
	*short_bytes = e.short_bytes;
	entry->code = e.code;
	entry->launch = e.launches ? e.function : 0;
	entry->has_params = e.has_params;
	entry->params = e.params;
	entry->has_threads = e.has_threads;
	entry->threads = e.threads;
	return (int)e.kind;
}

static int cold_unload(void *device, void *image, const char **fault)
{
	struct proxy *p = device;
	bool gone;

	(void)fault;
	(void)pthread_mutex_lock(&p->lock);
	gone = p->stopped || p->faulted;
	(void)pthread_mutex_unlock(&p->lock);
	if (!gone)
		tell(p, RIG_RMT_UNLOAD, (uint32_t)(uintptr_t)image);
	return 0;
}

/* room never asks for it. */
static int cold_grow(void *device, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        uint64_t *short_bytes, const char **fault)
{
	(void)device;
	(void)parts;
	(void)nparts;
	(void)nwaits;
	(void)fault;
	*short_bytes = 0;
	return RIG_GROWN;
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
	struct timespec end;
	bool faulted;

	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)(still_ms / 1000);
	end.tv_nsec += (long)(still_ms % 1000) * 1000000L;
	end.tv_sec += end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	(void)pthread_mutex_lock(&p->lock);
	if (still_ms && !p->faulted && rig_word_load(p->word) == seen)
		(void)pthread_cond_timedwait(&p->moved, &p->lock, &end);
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

static void drop(struct value *v)
{
	while (v) {
		struct value *next = v->next;

		rig_rmt_value_free(v);
		v = next;
	}
}

/* The word is raised once the agent has stopped the device, or, where the job is over, once nothing more can
   come: then the agent stops it as soon as it notices. */
static void cold_stop(void *device, const char *reason)
{
	struct proxy *p = device;

	(void)pthread_mutex_lock(&p->lock);
	p->quit = true;
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
	(void)pthread_join(p->worker, NULL);
	stop_there(p, reason);
	(void)pthread_mutex_lock(&p->lock);
	p->stopped = true;
	drop(p->queue);
	drop(p->flight);
	p->queue = p->flight = NULL;
	p->queue_tail = &p->queue;
	p->flight_tail = &p->flight;
	rig_word_raise(p->word, p->submitted);
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
}

static void unlist(struct proxy *p)
{
	(void)pthread_mutex_lock(&p->m->lock);
	if (p->m->proxies[p->id] == p)
		p->m->proxies[p->id] = NULL;
	(void)pthread_mutex_unlock(&p->m->lock);
}

static void cold_release(void *device)
{
	struct proxy *p = device;
	struct rig_remote_job *job = p->m->job;

	unlist(p);
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
        .grow = cold_grow,
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

static struct proxy *make_proxy(struct rig_rmt_machine *m, rig_atomic_u64 *word)
{
	struct proxy *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;

	if (!p)
		return NULL;
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
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&p->moved, &attr);
	(void)pthread_condattr_destroy(&attr);
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
	(void)pthread_mutex_lock(&p->m->lock);
	p->m->proxies[p->id] = p;
	(void)pthread_mutex_unlock(&p->m->lock);
	/* Who failed the job meanwhile did not find it. */
	if (rig_rmt_job_over(p->m->job))
		rig_rmt_proxy_lose(p, p->m->job->reason);
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
