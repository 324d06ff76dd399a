/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "polled.h"

#define MOST_PARTS  16u
#define MOST_SLOTS  16u
#define MOST_WAITS  64u
#define ARGS_BYTES  16384u
#define CAPACITY    64u
#define PAGE        4096u
#define WORDS_KEPT  256u
#define TEXT_BYTES  256u
#define PLACE_BYTES 100u
#define PLACE_BYTE  0xc3

const struct rig_key polled_key = {"polled"};

static const struct rig_queue default_queues[] = {
        {"COMPUTE:0", RIG_RUNS(RIG_LAUNCH) | RIG_RUNS(RIG_WORDS) | RIG_RUNS(RIG_FILL)},
        {"COPY:0", RIG_RUNS(RIG_COPY)},
};

struct function {
	const char *name;
	bool has_params, has_threads;
	uint32_t params, threads;
	void (*run)(const struct rig_block *block, const void *params);
};

static void run_add(const struct rig_block *block, const void *params)
{
	const struct polled_add *p = params;
	uint32_t *dst = (uint32_t *)(uintptr_t)p->dst;
	uint32_t i, n = block->groups[0] * block->threads[0];

	for (i = 0; i < n; i++)
		dst[i] += p->add;
}

static void run_nothing(const struct rig_block *block, const void *params)
{
	(void)block;
	(void)params;
}

static const struct function functions[] = {
        {"add", true, true, sizeof(struct polled_add), 64, run_add},
        {"limited", true, true, 8, 16, run_nothing},
        {"free", false, false, 0, 0, run_nothing},
};

struct region {
	struct region *next;
	enum rig_memory kind; /* 0: a mapping */
	bool own_word;
	uint8_t *bytes;
	uint64_t size;
	bool visible;
};

struct image {
	struct image *next;
	struct device *device;
};

struct value {
	uint32_t nparts, nwaits, nslots;
	uint64_t args_bytes;
	struct rig_part parts[MOST_PARTS];
	struct rig_slot slots[MOST_SLOTS];
	struct rig_wait waits[MOST_WAITS];
	_Alignas(16) uint8_t args[ARGS_BYTES];
};

/* An open handle. Its first member is what facts.edge points to. */
struct device {
	const struct rig_driver *hot;
	struct polled *p;
	rig_atomic_u64 *word;  /* make's */
	rig_atomic_u64 *shown; /* the word it writes: make's or its own */
	rig_atomic_u64 own;
	struct region word_region;
	bool stopped, released, stop_thread;
	uint64_t base, last, committed;
	_Atomic int hot_calls, cold_calls;
	/* What the last room was asked, for the submit that follows. */
	const struct rig_part *room_parts;
	uint32_t room_nparts, room_nwaits;
	bool room_fits, grow_due;
	uint64_t stamp; /* written to the scratch by room */
	struct value *ring;
	pthread_t thread;
};

struct polled {
	struct polled_options o;
	struct rig_opener opener;
	void (*edit)(struct rig_facts *facts);
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct device *device; /* the last one made, if not released */
	unsigned handles, nregions, nimages;
	struct region *regions;
	struct image *images;
	uint64_t held, gate;
	uint32_t parts_now, short_entries, short_grows, no_room;
	_Atomic unsigned counts[POLLED_CALLS];
	_Atomic enum polled_call fail_call;
	_Atomic enum polled_failure failure;
	_Atomic uint64_t fail_in;
	_Atomic bool failed;
	void (*hook)(void *arg, enum polled_call call);
	void *hook_arg;
	char stop_reason[TEXT_BYTES];
	bool has_stop_reason;
	struct value *kept;
	uint32_t last_nwaits, last_nparts;
	struct rig_part last_parts[MOST_PARTS];
	uint32_t words[WORDS_KEPT], nwords;
	_Atomic bool broken;
	char breach[TEXT_BYTES];
};

/* ---- Checks ---- */

__attribute__((format(printf, 2, 3))) static void breach(struct polled *p, const char *format, ...)
{
	va_list args;

	if (atomic_exchange(&p->broken, true))
		return;
	va_start(args, format);
	(void)vsnprintf(p->breach, sizeof(p->breach), format, args);
	va_end(args);
}

static void lock(struct polled *p)
{
	(void)pthread_mutex_lock(&p->lock);
}

static void unlock(struct polled *p)
{
	(void)pthread_mutex_unlock(&p->lock);
}

/* Counts the call and runs the hook; whether the call shall fail. */
static bool begin(struct polled *p, enum polled_call call, bool can_fail)
{
	bool fails = false;

	atomic_fetch_add(&p->counts[call], 1);
	if (p->hook)
		p->hook(p->hook_arg, call);
	if (can_fail && (p->fail_call == call || p->fail_call == POLLED_CALLS) && atomic_load(&p->fail_in))
		fails = atomic_fetch_sub(&p->fail_in, 1) == 1;
	if (fails)
		atomic_store(&p->failed, true);
	return fails;
}

/* E-239: no counted call while stopped. */
static bool enter(struct device *d, enum polled_call call, bool can_fail)
{
	atomic_fetch_add(&d->cold_calls, 1);
	if (d->stopped)
		breach(d->p, "call %d after stop", (int)call);
	return begin(d->p, call, can_fail);
}

static int leave(struct device *d, int answer)
{
	atomic_fetch_sub(&d->cold_calls, 1);
	return answer;
}

static int fault(struct device *d, const char **text)
{
	*text = "injected fault";
	return leave(d, RIG_FAULT);
}

static bool faults(const struct polled *p)
{
	return p->failure == POLLED_FAULTS;
}

/* ---- Memory ---- */

static struct region *add_region(struct polled *p, enum rig_memory kind, uint8_t *bytes, uint64_t size)
{
	struct region *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->kind = kind;
	r->bytes = bytes;
	r->size = size;
	lock(p);
	r->next = p->regions;
	p->regions = r;
	p->nregions++;
	if (kind == RIG_DEVICE || kind == RIG_MAPPED)
		p->held += size;
	unlock(p);
	return r;
}

static int d_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **text)
{
	struct device *d = device;
	struct polled *p = d->p;
	struct region *r;
	uint8_t *at;

	if (enter(d, POLLED_ALLOC, true))
		return faults(p) ? fault(d, text) : leave(d, -ENOMEM);
	if (!bytes)
		breach(p, "alloc of 0 bytes");
	if (kind == RIG_PINNED && p->o.host_addresses)
		breach(p, "E-182: RIG_PINNED asked although host_addresses");
	if (kind == RIG_PINNED && p->o.pinned_none)
		return leave(d, -ENOMEM);
	if (kind == RIG_MAPPED && p->o.mapped_none)
		return leave(d, -ENOMEM);
	if (p->o.memory && kind != RIG_PINNED && (bytes > p->o.memory || p->held > p->o.memory - bytes))
		return leave(d, -ENOMEM);
	if (bytes > UINT64_C(1) << 30)
		return leave(d, -ENOMEM);
	at = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
	r = at ? add_region(p, kind, at, bytes) : NULL;
	if (!r) {
		free(at);
		return leave(d, -ENOMEM);
	}
	r->visible = kind != RIG_DEVICE || p->o.host_addresses;
	*region = r;
	return leave(d, 0);
}

/* Unlinks it; NULL if it is none of this device's. */
static struct region *remove_region(struct polled *p, void *region)
{
	struct region **at, *r;

	lock(p);
	for (at = &p->regions; *at && *at != region; at = &(*at)->next)
		;
	r = *at;
	if (r) {
		*at = r->next;
		p->nregions--;
		if (r->kind == RIG_DEVICE || r->kind == RIG_MAPPED)
			p->held -= r->size;
	}
	unlock(p);
	return r;
}

/* E-012: after stop only once the word shows the last submitted value. */
static void check_late(struct device *d, const char *what)
{
	if (d->stopped && rig_word_load(d->shown) < d->last)
		breach(d->p, "E-012: %s while the word is short", what);
	if (d->released)
		breach(d->p, "%s after release", what);
}

static int d_free(void *device, void *region, const char **text)
{
	struct device *d = device;
	struct region *r;
	bool fails;

	atomic_fetch_add(&d->cold_calls, 1);
	fails = begin(d->p, POLLED_FREE, !d->stopped && faults(d->p));
	check_late(d, "free");
	if (region == &d->word_region) {
		if (!d->stopped || !d->p->o.own_word)
			breach(d->p, "E-023, E-025: the word was freed");
		d->word_region.own_word = false;
		return leave(d, 0);
	}
	r = remove_region(d->p, region);
	if (!r) {
		breach(d->p, "a region freed twice or never made");
		return leave(d, 0);
	}
	if (r->kind)
		free(r->bytes);
	free(r);
	return fails ? fault(d, text) : leave(d, 0);
}

static void d_locate(void *device, void *region, struct rig_location *location)
{
	struct device *d = device;
	struct region *r = region;

	memset(location, 0, sizeof(*location));
	if (d->released)
		breach(d->p, "locate after release");
	location->has_host = r->visible;
	location->host = r->visible ? r->bytes : NULL;
	location->has_address = true;
	location->address = (uint64_t)(uintptr_t)r->bytes;
	location->handle = (uintptr_t)r;
}

static bool d_peer(void *device, void *other)
{
	struct device *a = device, *b = other;

	if (a == b)
		breach(a->p, "peer of a device with itself");
	return a->p->o.peers && b->p->o.peers;
}

static int map(struct device *d, uint8_t *bytes, uint64_t size, bool visible, void **region)
{
	struct region *r;

	if (d->p->no_room) {
		d->p->no_room--;
		return leave(d, rig_error_set(RIG_NO_ROOM, "no room, as told"));
	}
	r = add_region(d->p, (enum rig_memory)0, bytes, size);
	if (!r)
		return leave(d, RIG_NO_ROOM);
	r->visible = visible;
	*region = r;
	return leave(d, RIG_MAPS);
}

static int d_map_peer(void *device, void *other, void *region, void **mapped, const char **text)
{
	struct device *d = device, *o = other;
	struct region *r = region;

	if (enter(d, POLLED_MAP_PEER, true))
		return faults(d->p) ? fault(d, text) : leave(d, RIG_NO_ROOM);
	if (!d_peer(d, o))
		breach(d->p, "map_peer of no peer");
	return map(d, r->bytes, r->size, false, mapped);
}

static int d_map_host(void *device, void *host, uint64_t bytes, void **region, const char **text)
{
	struct device *d = device;

	if (enter(d, POLLED_MAP_HOST, true))
		return faults(d->p) ? fault(d, text) : leave(d, RIG_NO_ROOM);
	if (!d->p->o.maps_host)
		breach(d->p, "E-193: map_host asked");
	if ((uintptr_t)host % PAGE || !bytes)
		breach(d->p, "E-194: map_host off a page");
	if (d->p->o.never_maps)
		return leave(d, rig_error_set(RIG_NEVER_MAPS, "read-only pages"));
	return map(d, host, bytes, true, region);
}

static int d_dma(void *device, void *region, struct rig_dma_answer *answer, const char **text)
{
	struct device *d = device;

	(void)region;
	if (enter(d, POLLED_DMA, true) && faults(d->p))
		return fault(d, text);
	answer->kind = RIG_NO_DMA;
	answer->reason = "host memory of a test";
	return leave(d, RIG_NO_DMA);
}

/* ---- Code ---- */

static int make_image(struct device *d, void **image)
{
	struct image *i = calloc(1, sizeof(*i));

	if (!i)
		return -ENOMEM;
	i->device = d;
	lock(d->p);
	i->next = d->p->images;
	d->p->images = i;
	d->p->nimages++;
	unlock(d->p);
	*image = i;
	return 0;
}

static int place(void *device, const void *binary, size_t bytes, void *region, uint8_t *buffer, void **image)
{
	struct device *d = device;
	const struct region *r = region;
	int code;

	(void)binary;
	(void)bytes;
	(void)enter(d, POLLED_PLACE, false);
	if (r->kind != RIG_DEVICE || r->size < PLACE_BYTES)
		breach(d->p, "E-211: place got %llu bytes of kind %d", (unsigned long long)r->size,
		        (int)r->kind);
	memset(buffer, PLACE_BYTE, PLACE_BYTES);
	code = make_image(d, image);
	return leave(d, code);
}

static int d_load(void *device, const void *binary, size_t bytes, struct rig_code *code, const char **text)
{
	struct device *d = device;

	if (enter(d, POLLED_LOAD, true))
		return faults(d->p) ? fault(d, text)
		                    : leave(d, rig_error_set(-ENOMEM, "injected refusal of load"));
	if (bytes != sizeof(POLLED_BINARY) || memcmp(binary, POLLED_BINARY, bytes) != 0)
		return leave(d, rig_error_set(-ENOEXEC, "not a polled image"));
	if (d->p->o.place) {
		code->kind = RIG_PLACE;
		code->bytes = PLACE_BYTES;
		code->place = place;
		return leave(d, 0);
	}
	code->kind = RIG_LOADED;
	return leave(d, make_image(d, &code->image));
}

static bool is_loaded(struct polled *p, const void *image)
{
	struct image *i;

	lock(p);
	for (i = p->images; i && i != image; i = i->next)
		;
	unlock(p);
	return i != NULL;
}

static int d_entry(void *device, void *image, const char *name, struct rig_entry *entry, uint64_t *missing,
        const char **text)
{
	struct device *d = device;
	size_t i;

	if (enter(d, POLLED_ENTRY, true)) {
		*missing = PAGE;
		return faults(d->p) ? fault(d, text) : leave(d, RIG_NO_MEMORY);
	}
	if (!is_loaded(d->p, image))
		breach(d->p, "E-219: entry of an image that is not loaded");
	if (d->p->short_entries) {
		d->p->short_entries--;
		*missing = PAGE;
		return leave(d, RIG_NO_MEMORY);
	}
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) != 0)
			continue;
		entry->code = i;
		entry->launch = (uintptr_t)&functions[i];
		entry->has_params = functions[i].has_params;
		entry->params = functions[i].params;
		entry->has_threads = functions[i].has_threads;
		entry->threads = functions[i].threads;
		return leave(d, RIG_ENTRY);
	}
	return leave(d, RIG_ABSENT);
}

static int d_unload(void *device, void *image, const char **text)
{
	struct device *d = device;
	struct image **at, *i;
	bool fails;

	atomic_fetch_add(&d->cold_calls, 1);
	fails = begin(d->p, POLLED_UNLOAD, !d->stopped && faults(d->p));
	check_late(d, "unload");
	if (!d->stopped && rig_word_load(d->shown) < d->last)
		breach(d->p, "unload while work is under way");
	lock(d->p);
	for (at = &d->p->images; *at && *at != image; at = &(*at)->next)
		;
	i = *at;
	if (i) {
		*at = i->next;
		d->p->nimages--;
	}
	unlock(d->p);
	if (!i)
		breach(d->p, "an image unloaded twice");
	free(i);
	return fails ? fault(d, text) : leave(d, 0);
}

/* ---- Work ---- */

static uint8_t *side_at(const struct value *v, const struct rig_copy_side *side)
{
	const struct region *r;
	uint64_t offset = side->offset;

	if (side->slot == RIG_FIXED) {
		r = (const struct region *)side->handle;
	} else {
		r = (const struct region *)v->slots[side->slot].handle;
		offset += v->slots[side->slot].offset;
	}
	return r->bytes + offset;
}

static void run_copy(const struct value *v, const struct rig_copy_part *copy)
{
	uint8_t *dst = side_at(v, &copy->dst);
	const uint8_t *src = copy->fill ? NULL : side_at(v, &copy->src);
	uint64_t row;

	for (row = 0; row < copy->rows; row++) {
		if (copy->fill)
			memset(dst + row * copy->dst.pitch, copy->byte, copy->row_bytes);
		else
			memmove(dst + row * copy->dst.pitch, src + row * copy->src.pitch, copy->row_bytes);
	}
}

static void run_launch(const struct value *v, const struct rig_launch_part *launch)
{
	const struct function *f = (const struct function *)launch->launch;
	struct rig_run run = {v->args, sizeof(v->args), v->slots, v->nslots};
	_Alignas(16) uint8_t params[RIG_PARAMS];

	rig_launch_params(params, &run, launch);
	f->run(rig_launch_block(&run, launch), params);
}

static void run_part(struct device *d, const struct value *v, const struct rig_part *part)
{
	uint32_t i;

	switch (part->kind) {
	case RIG_WORDS:
		for (i = 0; i < part->u.words.count; i++)
			d->p->words[d->p->nwords++ % WORDS_KEPT] = part->u.words.words[i];
		break;
	case RIG_COPY:
		run_copy(v, &part->u.copy);
		break;
	case RIG_LAUNCH:
		run_launch(v, &part->u.launch);
		break;
	default:
		break;
	}
}

static bool waits_over(const struct value *v)
{
	uint32_t i;

	for (i = 0; i < v->nwaits; i++)
		if (rig_word_load(v->waits[i].word) < v->waits[i].value)
			return false;
	return true;
}

/* With the lock. One value, if it may run. */
static bool run_one(struct device *d)
{
	uint64_t next = rig_word_load(d->shown) + 1;
	const struct value *v;
	uint32_t i;

	if (d->stopped || next > d->last || next > d->committed || next > d->p->gate)
		return false;
	v = &d->ring[next % d->p->o.capacity];
	if (!waits_over(v))
		return false;
	for (i = 0; i < v->nparts; i++)
		run_part(d, v, &v->parts[i]);
	rig_word_raise(d->shown, next);
	(void)pthread_cond_broadcast(&d->p->moved);
	return true;
}

unsigned polled_run(struct polled *p, unsigned n)
{
	unsigned ran = 0;

	lock(p);
	while (ran < n && p->device && run_one(p->device))
		ran++;
	unlock(p);
	return ran;
}

/* Foreign words move without telling it, so it looks again each millisecond. */
static void nap(struct polled *p, uint64_t ms)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += (long)(ms % 1000) * 1000000L;
	end.tv_sec += (time_t)(ms / 1000) + end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	(void)pthread_cond_clockwait(&p->moved, &p->lock, CLOCK_MONOTONIC, &end);
}

static void *work(void *arg)
{
	struct device *d = arg;

	lock(d->p);
	while (!d->stop_thread)
		if (!run_one(d))
			nap(d->p, 1);
	unlock(d->p);
	return NULL;
}

/* ---- Hot calls ---- */

static void hot_enter(struct device *d, enum polled_call call)
{
	if (atomic_fetch_add(&d->hot_calls, 1) != 0)
		breach(d->p, "E-103: two hot calls at a time");
	if (d->stopped)
		breach(d->p, "hot call %d after stop", (int)call);
}

static int hot_leave(struct device *d, int answer)
{
	atomic_fetch_sub(&d->hot_calls, 1);
	return answer;
}

static bool is_runnable(const struct device *d, const struct rig_part *part, uint32_t index)
{
	const struct rig_queue *queues = d->p->o.queues;
	uint32_t i;

	if (part->queue >= d->p->o.nqueues) {
		breach(d->p, "E-082: part %u on queue %u", index, part->queue);
		return false;
	}
	for (i = 0; i < part->nafter; i++)
		if (part->after[i] >= index)
			breach(d->p, "E-083: part %u after %u", index, part->after[i]);
	return part->kind >= RIG_WORDS && part->kind <= RIG_LAUNCH &&
	       queues[part->queue].runs & RIG_RUNS(part->kind);
}

static bool fits_ever(struct device *d, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run)
{
	uint32_t i;

	if (nparts > MOST_PARTS || nwaits > MOST_WAITS || run->nslots > MOST_SLOTS ||
	        run->args_bytes > ARGS_BYTES)
		return false;
	for (i = 0; i < nparts; i++) {
		const struct rig_part *part = &parts[i];

		if (!is_runnable(d, part, i))
			return false;
		if (part->kind == RIG_LAUNCH && rig_launch_block(run, &part->u.launch)->shared > PAGE)
			return false;
	}
	return true;
}

static int answer_room(struct device *d, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run)
{
	uint64_t shown = rig_word_load(d->shown);

	if (!fits_ever(d, parts, nparts, nwaits, run))
		return rig_error_set(RIG_NEVER, "more than %u parts, or work of no kind", MOST_PARTS);
	if (nparts > d->p->parts_now) {
		d->grow_due = true;
		return RIG_GROW;
	}
	if (d->p->o.always_later)
		return RIG_LATER;
	return d->last - shown >= d->p->o.capacity ? RIG_LATER : RIG_FITS;
}

static int d_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	struct device *d = self;
	int answer;

	hot_enter(d, POLLED_ROOM);
	if (begin(d->p, POLLED_ROOM, d->p->failure == POLLED_REFUSES))
		return hot_leave(d, rig_error_set(RIG_NEVER, "injected refusal of room"));
	d->room_parts = parts;
	d->room_nparts = nparts;
	d->room_nwaits = nwaits;
	answer = answer_room(d, parts, nparts, nwaits, run);
	d->room_fits = answer == RIG_FITS;
	d->stamp++;
	if (nparts && ((uintptr_t)scratch % 16))
		breach(d->p, "the scratch is not aligned");
	if (nparts)
		memset(scratch, (int)(d->stamp & 0xff), (size_t)nparts * RIG_SCRATCH);
	return hot_leave(d, answer);
}

static void check_submit(struct device *d, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const uint8_t *scratch)
{
	rig_atomic_u64 *words = rig_words();
	uint32_t i;

	if (value != d->last + 1)
		breach(d->p, "E-125: value %llu after %llu", (unsigned long long)value,
		        (unsigned long long)d->last);
	if (!d->room_fits || parts != d->room_parts || nparts != d->room_nparts || nwaits != d->room_nwaits)
		breach(d->p, "E-104, E-114: submit without a room that fits");
	d->room_fits = false;
	for (i = 0; i < nparts * RIG_SCRATCH; i++)
		if (scratch[i] != (uint8_t)(d->stamp & 0xff))
			breach(d->p, "E-111, E-112: the scratch changed");
	for (i = 0; i < nwaits; i++)
		if (waits[i].word < words || waits[i].word >= words + RIG_WORD_COUNT ||
		        waits[i].word == d->word)
			breach(d->p, "a wait for no word of another device");
}

static void keep(struct device *d, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run)
{
	struct value *v = &d->ring[value % d->p->o.capacity];

	v->nparts = nparts;
	v->nwaits = nwaits;
	v->nslots = run->nslots;
	v->args_bytes = run->args_bytes;
	if (nparts)
		memcpy(v->parts, parts, nparts * sizeof(*parts));
	if (nwaits)
		memcpy(v->waits, waits, nwaits * sizeof(*waits));
	if (run->nslots)
		memcpy(v->slots, run->slots, run->nslots * sizeof(*run->slots));
	if (run->args_bytes)
		memcpy(v->args, run->args, run->args_bytes);
	if (nparts)
		memcpy(d->p->last_parts, parts, nparts * sizeof(*parts));
	d->p->last_nparts = nparts;
	d->p->last_nwaits = nwaits;
}

/* Fills run at once: what they write is the test's own. */
static int run_fills(struct device *d, uint64_t value, const struct rig_part *parts, uint32_t nparts)
{
	uint32_t i;

	for (i = 0; i < nparts; i++)
		if (parts[i].kind == RIG_FILL && parts[i].u.fill.fill(d, parts[i].u.fill.arg, value))
			return -1;
	return 0;
}

static int d_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	struct device *d = self;
	bool fails;

	hot_enter(d, POLLED_SUBMIT);
	fails = begin(d->p, POLLED_SUBMIT, faults(d->p));
	check_submit(d, value, parts, nparts, waits, nwaits, scratch);
	if (times)
		breach(d->p, "E-133: times without a profile");
	lock(d->p);
	keep(d, value, parts, nparts, waits, nwaits, run);
	d->last = value;
	if (!fails && run_fills(d, value, parts, nparts))
		fails = true;
	if (!fails && !d->p->o.batch)
		d->committed = value;
	(void)pthread_cond_broadcast(&d->p->moved);
	unlock(d->p);
	if (fails) {
		*failure = "injected failure of submit";
		return hot_leave(d, RIG_FAILED);
	}
	return hot_leave(d, d->p->o.batch ? RIG_OK : RIG_COMMITTED);
}

static int d_commit(void *self, uint64_t value, const char **failure)
{
	struct device *d = self;

	hot_enter(d, POLLED_COMMIT);
	if (begin(d->p, POLLED_COMMIT, faults(d->p))) {
		*failure = "injected failure of commit";
		return hot_leave(d, RIG_FAILED);
	}
	if (!d->p->o.batch)
		breach(d->p, "E-145: commit asked of a driver that always commits");
	if (value > d->last)
		breach(d->p, "E-139: commit of %llu past %llu", (unsigned long long)value,
		        (unsigned long long)d->last);
	lock(d->p);
	if (d->committed < value)
		d->committed = value;
	(void)pthread_cond_broadcast(&d->p->moved);
	unlock(d->p);
	return hot_leave(d, RIG_OK);
}

static const struct rig_driver hot = {RIG_EDGE_VERSION, d_room, d_submit, d_commit, NULL, NULL};

/* ---- Cold calls ---- */

static int d_grow(void *device, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
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
		breach(d->p, "E-229: grow without RIG_GROW");
	if (d->p->short_grows) {
		d->p->short_grows--;
		*missing = PAGE;
		return leave(d, RIG_SHORT);
	}
	d->p->parts_now = nparts;
	return leave(d, RIG_GROWN);
}

static int d_signaled(void *device, uint64_t *value, const char **text)
{
	struct device *d = device;

	atomic_fetch_add(&d->cold_calls, 1);
	if (begin(d->p, POLLED_SIGNALED, !d->stopped && faults(d->p)))
		return fault(d, text);
	if (!d->p->o.own_word)
		breach(d->p, "signaled asked of a device with the given word");
	*value = rig_word_load(d->shown);
	return leave(d, 0);
}

static int d_sleep(void *device, uint64_t seen, uint64_t still_ms, const char **text)
{
	struct device *d = device;

	if (enter(d, POLLED_SLEEP, faults(d->p)))
		return fault(d, text);
	if (!still_ms)
		breach(d->p, "a sleep of 0 ms");
	lock(d->p);
	if (d->p->o.thread) {
		if (rig_word_load(d->shown) == seen)
			nap(d->p, still_ms);
	} else if (d->p->o.sleep == POLLED_SLEEP_RUNS) {
		(void)run_one(d);
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
		breach(p, "E-240: a second stop");
	if (atomic_load(&d->hot_calls) || atomic_load(&d->cold_calls))
		breach(p, "E-239: stop with a call in flight");
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
		breach(p, "release before stop");
	if (d->word_region.own_word)
		breach(p, "E-023: release with the own word not freed");
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
		breach(d->p, "facts of version %u", facts->version);
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

static const struct rig_driver_module module_table = {
        .version = RIG_EDGE_VERSION,
        .key = &polled_key,
        .facts = d_facts,
        .alloc = d_alloc,
        .free = d_free,
        .locate = d_locate,
        .peer = d_peer,
        .map_peer = d_map_peer,
        .map_host = d_map_host,
        .dma = d_dma,
        .load = d_load,
        .entry = d_entry,
        .unload = d_unload,
        .grow = d_grow,
        .signaled = d_signaled,
        .sleep = d_sleep,
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
	d->hot = &hot;
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

static int make(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	struct polled *p = arg;
	rig_atomic_u64 *words = rig_words();
	struct device *d;

	if (begin(p, POLLED_MAKE, true)) {
		(void)snprintf(why, why_bytes, "injected refusal of make");
		return -ENXIO;
	}
	if (word < words || word >= words + RIG_WORD_COUNT)
		breach(p, "E-036: make got no word of the array");
	if (p->device && !p->device->stopped)
		breach(p, "E-035: make while a handle is open");
	rig_word_raise(word, p->o.base);
	d = make_device(p, word);
	if (!d || (p->o.thread && pthread_create(&d->thread, NULL, work, d))) {
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

/* ---- The test's side ---- */

struct polled *polled_new(const struct polled_options *options)
{
	struct polled *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->o = *options;
	if (!p->o.capacity)
		p->o.capacity = CAPACITY;
	if (!p->o.budget)
		p->o.budget = UINT64_MAX / 2;
	if (!p->o.queues) {
		p->o.queues = default_queues;
		p->o.nqueues = 2;
		p->o.copy_engine = 1;
	}
	p->parts_now = p->o.parts ? p->o.parts : MOST_PARTS;
	p->short_entries = p->o.short_entries;
	p->short_grows = p->o.short_grows;
	p->no_room = p->o.no_room;
	p->gate = UINT64_MAX;
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->moved, NULL);
	p->opener.version = RIG_EDGE_VERSION;
	p->opener.name = p->o.name;
	p->opener.module = &module_table;
	p->opener.make = make;
	p->opener.arg = p;
	return p;
}

void polled_free(struct polled *p)
{
	if (!p)
		return;
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_cond_destroy(&p->moved);
	free(p->kept);
	free(p);
}

const struct rig_opener *polled_opener(struct polled *p)
{
	return &p->opener;
}

void polled_edit_facts(struct polled *p, void (*edit)(struct rig_facts *facts))
{
	p->edit = edit;
}

void polled_gate(struct polled *p, uint64_t value)
{
	lock(p);
	p->gate = value;
	(void)pthread_cond_broadcast(&p->moved);
	unlock(p);
}

void polled_drain(struct polled *p)
{
	lock(p);
	if (p->device)
		rig_word_raise(p->device->shown, p->device->last);
	unlock(p);
}

void polled_fail(struct polled *p, enum polled_call call, uint64_t n, enum polled_failure failure)
{
	p->fail_call = call;
	p->failure = failure;
	atomic_store(&p->failed, false);
	atomic_store(&p->fail_in, n);
}

bool polled_failed(struct polled *p)
{
	return atomic_load(&p->failed);
}

void polled_hook(struct polled *p, void (*hook)(void *arg, enum polled_call call), void *arg)
{
	p->hook_arg = arg;
	p->hook = hook;
}

unsigned polled_count(struct polled *p, enum polled_call call)
{
	return atomic_load(&p->counts[call]);
}

unsigned polled_left(struct polled *p)
{
	unsigned n;

	lock(p);
	n = p->nregions + p->nimages + p->handles;
	unlock(p);
	return n;
}

uint64_t polled_held(struct polled *p)
{
	uint64_t held;

	lock(p);
	held = p->held;
	unlock(p);
	return held;
}

uint64_t polled_word(struct polled *p)
{
	return rig_word_load(p->device->shown);
}

uint64_t polled_last(struct polled *p)
{
	return p->device->last;
}

const char *polled_stop_reason(struct polled *p)
{
	return p->has_stop_reason ? p->stop_reason : NULL;
}

uint32_t polled_nwaits(struct polled *p)
{
	return p->last_nwaits;
}

const struct rig_part *polled_parts(struct polled *p, uint32_t *n)
{
	*n = p->last_nparts;
	return p->last_parts;
}

void polled_last_run(struct polled *p, struct rig_run *run)
{
	const struct value *v = &p->device->ring[p->device->last % p->o.capacity];

	/* Kept for the test's life: the ring goes with the device. */
	if (!p->kept)
		p->kept = calloc(1, sizeof(*p->kept));
	memset(run, 0, sizeof(*run));
	if (!p->kept)
		return;
	*p->kept = *v;
	run->args = p->kept->args;
	run->args_bytes = p->kept->args_bytes;
	run->slots = p->kept->slots;
	run->nslots = p->kept->nslots;
}

uint32_t polled_words(struct polled *p, uint32_t *words, uint32_t n)
{
	uint32_t count = p->nwords < n ? p->nwords : n;

	memcpy(words, p->words, count * sizeof(*words));
	return count;
}

static bool is_placed(const struct region *r)
{
	uint32_t i;

	if (r->kind != RIG_DEVICE || r->size < PLACE_BYTES)
		return false;
	for (i = 0; i < PLACE_BYTES; i++)
		if (r->bytes[i] != PLACE_BYTE)
			return false;
	return true;
}

unsigned polled_check_placed(struct polled *p)
{
	const struct region *r;
	unsigned n = 0;

	lock(p);
	for (r = p->regions; r; r = r->next)
		n += is_placed(r);
	unlock(p);
	return n;
}

const char *polled_breach(struct polled *p)
{
	return atomic_load(&p->broken) ? p->breach : NULL;
}
