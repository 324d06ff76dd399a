/* SPDX-License-Identifier: MIT */
/* A device: its life, visits, loss, turns and waits. rt.h has the order of its locks. */
#ifndef RT_DEVICE_H
#define RT_DEVICE_H

#include "rt_point.h"

/* The most producers a submit names to the device's queue; it waits on the host for more. */
#define RT_WAITS 64u

/* How long a wait sleeps in the driver before it looks again. */
#define RT_STILL_MS 200u

#define RT_NS_PER_MS UINT64_C(1000000)

struct rig_rt_mem;

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
	uint64_t bytes; /* that it gives back of what the device's budget counts, at most */
	bool hosts;     /* whether it may give back memory of the host's */
	void (*run)(struct rig_rt_deferred *deferred);
};

/* A value of the device that its queue starts only once a point of another device is reached. */
struct rig_rt_need {
	uint64_t value, bits;
};

/* The most of them under way; a submit that would need more waits on the host. */
#define RT_NEEDS 1024u

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
	uint32_t nlooking; /* threads that took what waits off the lists to look through it */
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
	bool turn;                   /* a hot call is in flight without the lock */
	bool reaping;
	uint32_t inflight; /* counted calls */
	uint64_t base;
	const char *stop_reason;
	struct rig_rt_dead *dead; /* its own, allocated at open; the slot's once published */
	bool dead_published;
	struct rig_device *spread_next;
	struct rig_rt_hang hang;
	/* In the order of values, from need_first to need_end, which count on and are masked. Under the lock;
	   without it has_needs tells whether there may be any. */
	struct rig_rt_need needs[RT_NEEDS];
	uint32_t need_first, need_end;
	atomic_bool has_needs;

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
/*
 * Around the driver's calls that end something on the way of others: the thread's rig_error stays what it
 * was, say the reason of a loss. A driver whose device is gone has much to say in them.
 */
void rig_rt_error_keep(char kept[RT_REASON_BYTES]);
void rig_rt_error_back(const char *kept);
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

/* ---- Failure of the process (loss.c) ---- */

bool rig_rt_failed(void);
void rig_rt_failure_note(const char *name, const char *reason);
void rig_rt_failure_reborn(void);

/* ---- What work stands on (needs.c) ---- */

/*
 * Notes, with the lock held, that the next value waits in the queue for these points: a producer's loss,
 * which takes this lock to look at the needs, either finds them or is found here. 0, RIG_LOST, or -EAGAIN:
 * wait on the host instead.
 */
int rig_rt_needs_add(struct rig_device *d, const uint64_t *bits, uint32_t n);
/* Whether its queue waits for a value that the lost `producer` did not reach. Under the lock. */
bool rig_rt_needs_lost(struct rig_device *d, const struct rig_device *producer);
/* Whether the next value waits for another device. Under the lock. */
bool rig_rt_is_held(struct rig_device *d);
/*
 * The device whose word must move first for the next value of `d`: a producer's, or that of a producer of it,
 * and so on. Visited, with the word it showed in *seen; NULL: `d` itself. Where several hold it up, `turn`
 * picks one: who counts it up comes by each. Every device on the way is asked whether it is still there. A
 * point that a value waits for was handed over before the value, so the way ends; but what is reached on the
 * way can make it come by `d` again, which is then visited too.
 */
struct rig_device *rig_rt_holder(struct rig_device *d, uint64_t turn, uint64_t *seen);

/* ---- Waiting (wait.c, hang.c) ---- */

/* Tells the processor that this is a spin (lock.c). */
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
/* Runs the hang clock, which may lose the device: the milliseconds a sleep may take now (at least 1). */
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

#endif
