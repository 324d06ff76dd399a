/* SPDX-License-Identifier: MIT */
/*
 * What the files of librig share.
 *
 * Locks, outermost first: a name (open.c) > the registry (slot.c) > a device's `lock`. A device's `memory`
 * lock and a memory's `maps` lock are innermost. No lock but a name is held while the library waits, calls a
 * cold function of a driver or a program's callback. A device's `lock` is held across its hot calls unless
 * the driver may block in them; then `turn` keeps the calls one at a time.
 */
#ifndef RT_H
#define RT_H

#include <pthread.h>
#include <stdatomic.h>

#include "hook.h"
#include "lock.h"
#include "rig.h"

#define RT_REASON_BYTES 1024u
#define RT_NAME_BYTES   128u

/* The most producers a submit names to the device's queue; it waits on the host for more. */
#define RT_WAITS 64u

/* How long a wait sleeps in the driver before it looks again. */
#define RT_STILL_MS 200u

/* Tries of an allocation, the first included, before it is refused (rig-behaviour: rounds). */
#define RT_ROUNDS 4u

#define RT_NS_PER_MS UINT64_C(1000000)

struct rig_rt_mem;

/* ---- Forks (fork.c) ---- */

/* Points to a word that is 0 in a child in which no fork handler ran (a bare clone): the system wipes its
   page. There every device is the parent's. Asking costs two loads. */
extern const uint32_t *rig_rt_alive;

static inline bool rig_rt_forked(void)
{
	return __atomic_load_n(__atomic_load_n(&rig_rt_alive, __ATOMIC_RELAXED), __ATOMIC_RELAXED) == 0;
}

/* ---- Slots and points (slot.c) ---- */

/* The values of one dead device of a slot that were open when it was lost: (reached, last]. For ever. */
struct rig_rt_dead {
	struct rig_rt_dead *next;
	uint64_t reached;
	_Atomic uint64_t last;
	char name[RT_NAME_BYTES];
	char reason[RT_REASON_BYTES];
	const char *remedy; /* a constant that follows the reason in rig_error; "" for none */
};

enum {
	RT_SLOT_LIVE = 1,  /* a live device has it */
	RT_SLOT_STORE = 2, /* its word advances by RIG_STORE */
	RT_SLOT_OWN = 4,   /* the driver has a word of its own; the array's word follows it */
};

/* -EINVAL, in words, unless the argument was given. */
static inline int rig_rt_given(const void *argument, const char *name)
{
	return __builtin_expect(argument != NULL, 1) ? 0 : rig_error_set(-EINVAL, "%s is NULL", name);
}

static inline int rig_rt_given2(const void *a, const char *a_name, const void *b, const char *b_name)
{
	int code = rig_rt_given(a, a_name);

	return code ? code : rig_rt_given(b, b_name);
}

/* What everyone may read of a device without holding it; a cache line each, so that devices share none. */
struct rig_rt_slot {
	_Alignas(64) _Atomic uint64_t submitted;
	_Atomic uint64_t committed;
	_Atomic uint32_t flags;
	struct rig_device *device; /* under the registry's lock */
	uint64_t base;             /* under the registry's lock: the device's values start after it */
};

enum rig_rt_state {
	RT_PENDING,
	RT_REACHED,
	RT_LOST,
	RT_NO_POINT,
};

extern struct rig_rt_slot rig_rt_slots[RIG_WORD_COUNT];
extern struct rig_rt_lock rig_rt_registry;

static inline uint64_t rig_rt_bits(uint32_t slot, uint64_t value)
{
	return (uint64_t)slot << RIG_VALUE_BITS | value;
}

static inline uint32_t rig_rt_slot_of(uint64_t bits)
{
	return (uint32_t)(bits >> RIG_VALUE_BITS);
}

static inline uint64_t rig_rt_value_of(uint64_t bits)
{
	return bits & ((UINT64_C(1) << RIG_VALUE_BITS) - 1);
}

/* Of each slot. */
extern _Atomic(struct rig_rt_dead *) rig_rt_deads[RIG_WORD_COUNT];

/* The array; before the first open one of zeroes. */
extern rig_atomic_u64 *rig_rt_words;

static inline rig_atomic_u64 *rig_rt_words_now(void)
{
	return __atomic_load_n(&rig_rt_words, __ATOMIC_RELAXED);
}

static inline uint64_t rig_rt_word(uint32_t slot)
{
	return rig_word_load(&rig_rt_words_now()[slot]);
}

/*
 * Whether the point is reached beyond doubt: the word is there and no device of the slot was lost with open
 * values. False: ask rig_rt_point_state. The highest bit, which no point has, counts as part of the value:
 * no word is there.
 */
static inline bool rig_rt_is_reached(rig_atomic_u64 *words, uint64_t bits)
{
	uint16_t slot = (uint16_t)(bits >> RIG_VALUE_BITS);
	uint64_t value = bits & ~((uint64_t)UINT16_MAX << RIG_VALUE_BITS);

	return rig_word_load(&words[slot]) >= value &&
	       !atomic_load_explicit(&rig_rt_deads[slot], memory_order_acquire);
}

/* 0 with a slot, -ENOSPC. */
int rig_rt_slot_take(uint32_t *slot);
/* Gives back a slot whose word can no longer move. */
void rig_rt_slot_give(uint32_t slot);
/* In a forked child: no slot of the parent's is handed out again. */
void rig_rt_slots_reborn(void);

/* Adds it to the slot's, for ever; at most one thread at a time for each slot. */
void rig_rt_dead_publish(uint32_t slot, struct rig_rt_dead *dead);
enum rig_rt_state rig_rt_point_state(uint64_t bits);
/* Whether the work of the point can no longer run, done or dropped: what memory waits for. */
static inline bool rig_rt_point_over(uint64_t bits)
{
	return rig_rt_word(rig_rt_slot_of(bits)) >= rig_rt_value_of(bits);
}

/* The live or dying device of a point, visited, or NULL. */
struct rig_device *rig_rt_point_device(uint64_t bits);
/* Sets rig_error for a lost point and answers RIG_LOST. */
int rig_rt_point_lost(uint64_t bits);

/* ---- Devices ---- */

enum rig_rt_life {
	RT_LIVE,
	RT_LOSING,   /* being lost: who waits on it in a queue is being told */
	RT_OWED,     /* stop is due, once no counted call is in flight */
	RT_STOPPING, /* in stop */
	RT_ENDED,    /* stop returned */
	RT_STOPPED,  /* the word shows the last value: everything was given back */
	RT_ORPHANED, /* inherited by a forked child */
};

/* Something to do once no work up to `value` can run. Embedded in who asks, so that asking cannot fail. */
struct rig_rt_deferred {
	struct rig_rt_deferred *next;
	uint64_t value;
	void (*run)(struct rig_rt_deferred *deferred);
};

struct rig_rt_hang {
	bool running;
	uint64_t seen;  /* the word when the clock last started */
	uint64_t since; /* by the device's clock */
};

#define RT_BUCKETS 64u

/* What a device holds of memory. Under the device's `memory` lock. */
struct rig_rt_store {
	uint64_t budget, held, cached;
	uint64_t uncounted; /* of `cached`: memory that is not in `held` */
	struct rig_rt_mem *cache[RT_BUCKETS];
	struct rig_rt_mem *waiting; /* dropped, but other work uses it */
	struct rig_rt_deferred *deferred;
	/* Both lists' length, roughly, and from which on what is added looks through them. */
	uint32_t nwaiting, look_at;
};

#define RT_STAGES 2u
#define RT_HALVES 2u

/* A slot of pinned memory through which copies go that the host cannot make (staging.c). */
struct rig_rt_stage {
	bool busy;
	struct rig_buffer *half[RT_HALVES];
	struct rig_point point[RT_HALVES]; /* the last copy that used it */
	uint64_t bytes;                    /* of a half */
};

struct rig_rt_attached; /* profile.h */
struct rig_rt_record;

struct rig_device {
	/* Constant after open. */
	const struct rig_driver_module *module;
	void *handle;
	const struct rig_driver *hot;
	void *edge;
	uint32_t slot;
	bool own_word;
	bool watchdog;
	uint64_t (*now)(void *arg);
	void *now_arg;
	int64_t hang_ms; /* 0: none */
	struct rig_facts facts;
	char name[RT_NAME_BYTES];
	struct rig_device *next, *prev; /* of all devices, by opening; under the registry's lock */

	_Atomic uint64_t refs; /* RT_VISIT for each visit, 1 for each other reference */
	_Atomic uint32_t life; /* enum rig_rt_life; written under `lock` */

	struct rig_rt_lock lock;
	struct rig_rt_event changed; /* life, turn */
	bool plain; /* live, never blocks, no profile: a hot call needs the lock and nothing more */
	bool turn;  /* a hot call is in flight without the lock */
	bool reaping;
	uint32_t inflight; /* counted calls */
	uint64_t base;
	const char *stop_reason;
	struct rig_rt_dead *dead; /* its own, allocated at open; the slot's once published */
	bool dead_published;
	struct rig_device *spread_next;
	struct rig_rt_hang hang;
	/* The latest value of each producer that its queues wait for. */
	uint32_t nproducers;
	uint64_t producers[RT_WAITS];

	/* Profiles (profile.c): who takes one, and timed values that are not collected. Under the turn. */
	struct rig_rt_attached *attached;
	struct rig_rt_record *records, *last_record;
	uint32_t nrecords;
	atomic_bool profiled; /* whether `attached` is not empty */

	/* How often memory of it came to be mapped on another device: as long as that does not change, runs
	   need not look whether others used their memory. */
	_Atomic uint64_t shares;

	struct rig_rt_lock memory;
	struct rig_rt_store store;

	struct rig_rt_lock staging_lock; /* which stages are busy */
	struct rig_rt_event staging_freed;
	struct rig_rt_stage stage[RT_STAGES];
};

static inline enum rig_rt_life rig_rt_life_of(const struct rig_device *d)
{
	return (enum rig_rt_life)atomic_load_explicit(&d->life, memory_order_acquire);
}

static inline bool rig_rt_is_live(const struct rig_device *d)
{
	return rig_rt_life_of(d) == RT_LIVE && !rig_rt_forked();
}

static inline struct rig_rt_slot *rig_rt_slot(const struct rig_device *d)
{
	return &rig_rt_slots[d->slot];
}

/* Once stop returned the slot may be another device's, so the device keeps its last value. */
static inline uint64_t rig_rt_submitted(const struct rig_device *d)
{
	if (rig_rt_life_of(d) >= RT_ENDED) {
		uint64_t last = atomic_load_explicit(&d->dead->last, memory_order_acquire);

		if (last != UINT64_MAX)
			return last;
	}
	return atomic_load_explicit(&rig_rt_slot(d)->submitted, memory_order_acquire);
}

/* Links and unlinks a device from the registry and its slot (device.c). */
void rig_rt_enlist(struct rig_device *d);
/* A reference, or false for a device whose last one is gone; under the registry's lock. */
bool rig_rt_try_get(struct rig_device *d);

/*
 * A visit is a reference that the library itself holds for a moment. Whoever ends the last reference of a
 * stopped device releases it, so rig_close, and an open of the same name, wait for visits: to the program
 * only its own references count. A thread that visits waits for none.
 */
#define RT_VISIT (UINT64_C(1) << 32 | 1)

extern _Thread_local uint32_t rig_rt_visiting; /* visits of this thread */

/* A visit of a device that the caller has a reference of. */
void rig_rt_visit(struct rig_device *d);
/* The same of one found in the registry, under its lock: false where the last reference is gone. */
bool rig_rt_visit_try(struct rig_device *d);
/* NULL is allowed. */
void rig_rt_visit_end(struct rig_device *d);
/* Blocks until no other thread visits it. */
void rig_rt_await_visits(struct rig_device *d);
/* Blocks until each stopped device of that name is only in references of the program's, or released. */
void rig_rt_await_released(const char *name);
/* A visit of the first or next device that is live or has something to give back; ends `after`'s. NULL: no
   more. */
struct rig_device *rig_rt_next(struct rig_device *after);
extern struct rig_device *rig_rt_devices; /* under the registry's lock */

/* -EINVAL, naming both, unless it is this library's version (open.c). */
int rig_rt_version_check(const char *what, uint32_t version);
/* Checks facts' bounds: 0 or -EINVAL (facts.c). */
int rig_rt_facts_check(const char *name, const struct rig_facts *facts);

/* Makes the words and registers the fork handlers once; 0 or a negative errno (fork.c). */
int rig_rt_init(void);
/* In a forked child, of open.c. */
void rig_rt_names_reborn(void);

/* ---- Loss (loss.c) ---- */

/* Enters a counted call: 0 or RIG_LOST. */
int rig_rt_enter(struct rig_device *d);
/* Leaves it; `fault` (or NULL) loses the device. */
void rig_rt_leave(struct rig_device *d, const char *fault);
/* Leaves it after an answer: RIG_FAULT loses the device and becomes RIG_LOST, others are handed on. */
int rig_rt_leave_with(struct rig_device *d, int answer, const char *const *fault);
/* Answers RIG_LOST with the device's reason in rig_error. */
int rig_rt_lost_error(struct rig_device *d);
/* Loses the device. `stops` is whether stop is told the reason (faults and hangs). */
void rig_rt_lose(struct rig_device *d, const char *reason, bool stops);
/* The same with the lock held; true if this call lost it: then rig_rt_lose_finish without the lock. */
bool rig_rt_lose_locked(struct rig_device *d, const char *reason, bool stops);
void rig_rt_lose_finish(struct rig_device *d);
/* Leaves a counted call with the lock held, which it drops. */
void rig_rt_leave_locked(struct rig_device *d);
/* Gives back what a stopped device had, once its word shows the last value. Never waits. */
void rig_rt_reap(struct rig_device *d);
/* Blocks until stop returned. */
void rig_rt_await_end(struct rig_device *d);

/* ---- Failure of the process (fail.c) ---- */

bool rig_rt_failed(void);
void rig_rt_failure_note(const char *name, const char *reason);
void rig_rt_failure_reborn(void);

/* ---- Waiting (wait.c, hang.c) ---- */

/* Tells the processor that this is a spin (code_sync.c). */
void rig_rt_pause(void);

/* The device's progress; reads a word of the driver's own through `signaled` and raises the array's. */
uint64_t rig_rt_progress(struct rig_device *d);
int rig_rt_wait_slow(uint64_t bits);

static inline int rig_rt_wait_bits(uint64_t bits)
{
	return __builtin_expect(rig_rt_is_reached(rig_rt_words_now(), bits), 1) ? 0 : rig_rt_wait_slow(bits);
}

int rig_rt_wait_value(struct rig_device *d, uint64_t value);
/* Whether the device is still there, asked now. 0 or RIG_LOST. */
int rig_rt_ask(struct rig_device *d);
int rig_rt_commit(struct rig_device *d, uint64_t value);
/* Runs the hang clock: the milliseconds a sleep may take now (at least 1), or 0: the device was lost. */
uint64_t rig_rt_hang_check(struct rig_device *d);
/* Starts the watchdog's thread: 0 or a negative errno. */
int rig_rt_watchdog_start(struct rig_device *d);

bool rig_rt_turn_take_slow(struct rig_device *d);
void rig_rt_turn_give_slow(struct rig_device *d);

/* Takes the turn of hot calls, with the lock held. False: the device is no longer live. */
static inline bool rig_rt_turn_take(struct rig_device *d)
{
	if (!d->facts.may_block && rig_rt_life_of(d) == RT_LIVE)
		return true;
	return rig_rt_turn_take_slow(d);
}

/* Gives the turn and the lock. */
static inline void rig_rt_turn_give(struct rig_device *d)
{
	if (!d->facts.may_block)
		rig_rt_unlock(&d->lock);
	else
		rig_rt_turn_give_slow(d);
}

/* Around a hot call, with the lock and the turn held: drops the lock where the driver may block. */
static inline void rig_rt_hot_begin(struct rig_device *d)
{
	if (d->facts.may_block)
		rig_rt_unlock(&d->lock);
}

static inline void rig_rt_hot_end(struct rig_device *d)
{
	if (d->facts.may_block)
		rig_rt_lock(&d->lock);
}

/* ---- Memory (stamp.c, memory.c, mapping.c, reclaim.c) ---- */

typedef _Atomic uint64_t rig_rt_stamp;

#define RT_USES 4u

/* The point of each device's last use. A word belongs to one slot for the memory's life. */
struct rig_rt_uses {
	rig_rt_stamp word[RT_USES];
	_Atomic(struct rig_rt_uses *) next;
};

/* A region on another device over the memory. */
struct rig_rt_map {
	struct rig_rt_map *next;
	struct rig_device *device; /* a reference */
	void *region;              /* NULL: the device never maps it */
	struct rig_location at;
};

struct rig_buffer {
	_Atomic uint32_t refs;
	struct rig_device *device; /* a reference; the owner or the one mapped on */
	struct rig_rt_mem *mem;    /* NULL: no bytes */
	void *region;              /* on `device` */
	struct rig_location at;    /* of the region on `device` */
	void *host;                /* the buffer's first byte, or NULL */
	uint64_t offset, bytes;
};

struct rig_rt_mem {
	_Atomic uint32_t refs;
	enum rig_memory kind;
	bool host_owned;          /* the program's or an Io library's making: neither cached nor counted */
	bool counted;             /* in the device's budget */
	atomic_bool exported;     /* its bus addresses or a dma-buf were given out, so it is not cached */
	struct rig_device *owner; /* a reference */
	void *region;
	struct rig_location at;
	uint64_t bytes;
	void *pages;             /* host memory that goes with it, or NULL */
	struct rig_rt_mem *next; /* in a cache or waiting list */
	struct rig_rt_lock maps_lock;
	struct rig_rt_map *maps;
	rig_rt_stamp write;
	struct rig_rt_uses uses;
	atomic_bool shared; /* another device maps it, or did */
	/* Of all of it, on the owner: what rig_buffer_create hands out, so that cached memory costs no
	   allocation. Its device is the memory's reference, and it is free once its count is 0. */
	struct rig_buffer whole;
};

/* The stamp word of a slot, claimed if it has none; NULL without memory. */
rig_rt_stamp *rig_rt_stamp_claim(struct rig_rt_mem *mem, uint32_t slot);
/* Whether no use by other devices than `slot`'s can still run (slot 0: by any device). */
bool rig_rt_uses_over(struct rig_rt_mem *mem, uint32_t slot);
/* A use that is not reached, or 0. */
uint64_t rig_rt_uses_pending(struct rig_rt_mem *mem);
/* Blocks until the host may access it. 0 or RIG_LOST. */
int rig_rt_mem_wait(struct rig_rt_mem *mem, enum rig_access access);
/* Whether rig_rt_uses_over, and then forgets every use but those of `slot`; the memory is no buffer's. */
bool rig_rt_uses_settle(struct rig_rt_mem *mem, uint32_t slot);
void rig_rt_uses_fini(struct rig_rt_mem *mem);

int rig_rt_mem_alloc(struct rig_device *d, enum rig_memory kind, uint64_t bytes, struct rig_rt_mem **mem);
/* A memory of the program's: `region` from map_host. */
struct rig_rt_mem *rig_rt_mem_make(struct rig_device *d);
void rig_rt_mem_get(struct rig_rt_mem *mem);
void rig_rt_mem_put(struct rig_rt_mem *mem);
/* Gives the regions back and frees it; no work may use it. False: a device is being stopped, ask again. */
bool rig_rt_mem_destroy(struct rig_rt_mem *mem);
/* Frees a driver's region by the rules of the device's life. False: not while it is being stopped. */
bool rig_rt_region_free(struct rig_device *d, void *region);
/* The mapping on `d`, made at the first call. 0, -ENOTSUP, -ENOMEM, RIG_LOST. */
int rig_rt_map_on(struct rig_rt_mem *mem, struct rig_device *d, const struct rig_rt_map **map);
/* map_host with one retry after memory was given back. 0, -ENOTSUP, -ENOMEM, RIG_LOST. */
int rig_rt_map_host(struct rig_device *d, void *host, uint64_t bytes, void **region);
bool rig_rt_maps_destroy(struct rig_rt_mem *mem);

/* Takes due memory and deferred work back; never waits for work. */
void rig_rt_drain(struct rig_device *d);
void rig_rt_drain_all(void);
/* Runs it when due, at once if it is. */
void rig_rt_defer(struct rig_device *d, struct rig_rt_deferred *deferred);
/* Gives memory back for the try after `round` (0, 1, ...): later rounds wait for work. `hosts`: memory of the
   host, or room to map it, is short, so what other devices cached of that goes too. 0 or RIG_LOST. */
int rig_rt_reclaim(struct rig_device *d, unsigned round, bool hosts);
/* Gives cached memory without uses to the driver until at most `keep` bytes are cached. */
void rig_rt_trim(struct rig_device *d, uint64_t keep);
#define RT_PAGE UINT64_C(4096)
/* Up to here sizes are rounded to pages; above, to an eighth of the power of two below. */
#define RT_SMALL      UINT64_C(65536)
#define RT_SIZE_PARTS 8u

/* Sizes close to each other share a class, so that the cache finds memory for them. 0: overflow. */
static inline uint64_t rig_rt_class_of(uint64_t bytes)
{
	uint64_t unit = RT_PAGE;

	if (bytes > RT_SMALL)
		unit = (UINT64_C(1) << (63 - __builtin_clzll(bytes))) / RT_SIZE_PARTS;
	if (bytes > UINT64_MAX - unit)
		return 0;
	return (bytes + unit - 1) & ~(unit - 1);
}

/* Memory for so many bytes if it is there at once: a live device, and the last that its cache was given of
   that size. NULL: rig_rt_mem_alloc, which also says what is wrong. */
struct rig_rt_mem *rig_rt_mem_cached(struct rig_device *d, enum rig_memory kind, uint64_t bytes);
/* Takes a memory of that size and kind out of the cache, or NULL. */
struct rig_rt_mem *rig_rt_cache_take(struct rig_device *d, enum rig_memory kind, uint64_t bytes);
void rig_rt_cache_give(struct rig_rt_mem *mem);

/* A buffer of all of it, which takes over the reference, on failure too. */
int rig_rt_buffer_over(struct rig_rt_mem *mem, void *region, struct rig_buffer **buffer);
/* -EINVAL unless offset + bytes lies in the buffer. */
int rig_rt_buffer_bounds(const struct rig_buffer *buffer, const char *name, uint64_t offset, uint64_t bytes);
/* RIG_LOST if the buffer's device or its memory's owner is lost. */
int rig_rt_buffer_usable(const struct rig_buffer *buffer);

/* ---- Submitting (submit.c) ---- */

struct rig_rt_use {
	struct rig_rt_mem *mem; /* NULL: nothing */
	rig_rt_stamp *stamp;    /* of the submitting device */
	rig_rt_stamp *last;     /* the memory's last write where it is written; else `stamp` again */
	rig_rt_stamp none;      /* what both are without memory */
	bool write;
};

/* Makes a use of the memory, which may be NULL, by `d`: 0 or -ENOMEM. */
int rig_rt_use_set(struct rig_rt_use *use, struct rig_rt_mem *mem, struct rig_device *d, bool write);

struct rig_rt_launch;

struct rig_rt_job {
	struct rig_device *device;
	const struct rig_part *parts;
	const struct rig_rt_launch *launches; /* one a part, for profiles; NULL: no part is a launch */
	uint32_t nparts;
	void *scratch;
	const struct rig_run *run;
	const struct rig_rt_use *fixed, *uses; /* the submission's memory and the run's */
	uint32_t nfixed, nuses;
	/* All of this memory is the device's own and no other device's, as of `shares` one below; or NULL. */
	_Atomic uint64_t *private_at;
	_Atomic uint64_t *last; /* raised to the value; or NULL */
};

int rig_rt_submit(const struct rig_rt_job *job, const struct rig_point *waits, uint32_t nwaits,
        struct rig_point *point);

/* A copy of one row on the device's copy engine between regions it addresses (copy.c). */
int rig_rt_copy_submit(struct rig_device *d, const struct rig_buffer *dst, uint64_t dst_offset,
        const struct rig_buffer *src, uint64_t src_offset, uint64_t bytes, struct rig_point *point);
/* What the host moves bytes from or to: memory, or a buffer of an Io device from `offset`. */
struct rig_rt_host_side {
	char *memory;
	struct rig_buffer *io;
	uint64_t offset;
};

/* Copies through the device's staging memory (staging.c). */
int rig_rt_stage_write(
        struct rig_buffer *buffer, uint64_t offset, const struct rig_rt_host_side *src, uint64_t bytes);
int rig_rt_stage_read(
        struct rig_buffer *buffer, uint64_t offset, const struct rig_rt_host_side *dst, uint64_t bytes);
int rig_rt_stage_copy(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes);
/* Puts the staging memory; what a copy in flight uses goes when that ends. */
void rig_rt_staging_drop(struct rig_device *d);

/* ---- Io devices (io.c) ---- */

/* The driver that librig puts before an Io library, so that its devices are devices. */
extern const struct rig_driver_module rig_rt_io_module;

static inline bool rig_rt_is_io(const struct rig_device *d)
{
	return d->module == &rig_rt_io_module;
}

/* Bytes of a buffer of an Io device, in the calling thread; the buffer's bounds were checked. They do not
   wait for the work of others (rig_rt_mem_wait). 0, the library's errno or RIG_LOST. */
int rig_rt_io_read(struct rig_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes);
int rig_rt_io_write(struct rig_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes);
void rig_rt_io_prefetch(struct rig_buffer *buffer, uint64_t offset, uint64_t bytes);
/* The memory's bytes as host memory: 0 with *pages, which may be NULL for ever, an errno or RIG_LOST. */
int rig_rt_io_pages(struct rig_rt_mem *mem, void **pages);

/* ---- Profiles of what the host does (profile_event.c), cheap where none is taken ---- */

void rig_rt_note_slow(struct rig_device *d, enum rig_event_kind kind, uint64_t start, uint64_t bytes);

static inline bool rig_rt_profiled(const struct rig_device *d)
{
	return atomic_load_explicit(&d->profiled, memory_order_relaxed);
}

/* When something starts that rig_rt_note will tell. */
static inline uint64_t rig_rt_note_start(const struct rig_device *d)
{
	return rig_rt_profiled(d) ? rig_now_ns() : 0;
}

/* Tells what the host did with the device since `start`, if it started under a profile. */
static inline void rig_rt_note(struct rig_device *d, enum rig_event_kind kind, uint64_t start, uint64_t bytes)
{
	if (start)
		rig_rt_note_slow(d, kind, start, bytes);
}

/* Tells that what it holds changed; without its `memory` lock. */
static inline void rig_rt_note_memory(struct rig_device *d)
{
	if (__builtin_expect(rig_rt_profiled(d), 0))
		rig_rt_note_slow(d, RIG_EVENT_MEMORY, 0, 0);
}

/* ---- Images and submissions ---- */

struct rig_image {
	_Atomic uint32_t refs;
	struct rig_device *device;
	void *image;
	struct rig_rt_mem *code; /* NULL: the driver placed it */
	struct rig_rt_deferred deferred;
};

struct rig_rt_kept {
	struct rig_rt_kept *next;
	void *object;
	void (*put)(void *object);
};

/* What a run and a profile must know of a launch. */
struct rig_rt_launch {
	const char *function;
	bool has_threads;
	uint32_t threads;
};

struct rig_rt_slot_rule {
	uint64_t least;     /* bytes that the copies of the submission reach */
	bool needs_address; /* a ref names it */
};

struct rig_submission {
	_Atomic uint32_t refs;
	struct rig_device *device;
	uint32_t nparts, nslots, reads, nfixed, nimages;
	struct rig_part *parts;
	void *scratch;
	void *block; /* what parts point to: words, refs, after */
	struct rig_rt_launch *launches;
	struct rig_rt_slot_rule *rules;
	struct rig_buffer **fixed;
	struct rig_rt_use *fixed_uses;
	struct rig_image **images;
	uint64_t args_bytes;
	struct rig_rt_lock keep_lock;
	struct rig_rt_kept *kept;
	_Atomic uint64_t last, private_at;
	struct rig_rt_job job; /* without a run */
	struct rig_rt_deferred deferred;
};

/* What every submit of it says, but for the run (run.c). */
void rig_rt_job_init(struct rig_rt_job *job, struct rig_submission *s);
/* Builds the parts (describe.c): 0 or a negative errno; the caller frees what was made. */
int rig_rt_describe(struct rig_submission *s, const struct rig_description *description);

struct rig_run_args {
	struct rig_submission *submission; /* a reference */
	_Atomic bool busy;
	uint32_t unset;
	_Atomic uint64_t private_at;
	struct rig_rt_job job;
	void *args;
	struct rig_run run;
	struct rig_slot *slots;
	struct rig_rt_use *uses;
	struct rig_buffer **buffers;
};

#endif
