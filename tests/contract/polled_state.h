/* SPDX-License-Identifier: MIT */
/* What the files of the polled driver share; tests include polled.h. */
#ifndef POLLED_STATE_H
#define POLLED_STATE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "polled.h"

#define MOST_PARTS   16u
#define MOST_SLOTS   16u
#define MOST_WAITS   64u
#define ARGS_BYTES   16384u
#define CAPACITY     64u
#define COMMIT_EVERY 48u /* a batching driver commits unasked after so many */
#define PAGE         4096u
#define WORDS_KEPT   256u
#define TEXT_BYTES   256u
#define PLACE_BYTES  100u
#define PLACE_BYTE   0xc3
#define STAMPS       1024u
#define MOST_WORDS   (1u << 20)
#define MOST_GROUP   (1u << 20)
#define BUS_BASE     (UINT64_C(1) << 40)
#define ROW_WORDS    4u /* status, start, end, groups */

#define lies(p, name) ((p)->o.lie == POLLED_LIE_##name)

enum function_kind { RETURNS, ENDLESS, FAULTS };

struct function {
	const char *name;
	bool has_params, has_threads;
	uint32_t params, threads;
	void (*run)(struct polled *p, const struct rig_block *block, const void *params);
	enum function_kind kind;
};

struct region {
	struct region *next;
	enum rig_memory kind; /* 0: a mapping */
	bool own_word;
	uint8_t *bytes, *block; /* block: what is freed with it */
	uint64_t size;
	bool visible;
	struct bus *bus;
};

/* Bus addresses given out, kept until the end. */
struct bus {
	struct bus *next;
	struct rig_bus_range range;
};

/* What is kept of a timed value. */
struct stamp {
	uint64_t value, start, end, rows[MOST_PARTS][ROW_WORDS];
	struct rig_times *pair;
	uint32_t nrows;
	bool written;
};

#define FUNCTIONS 7u

struct image {
	struct image *next;
	struct device *device;
	struct function functions[FUNCTIONS]; /* what its launches name */
};

struct value {
	uint32_t nparts, nwaits, nslots;
	uint64_t args_bytes;
	struct rig_part parts[MOST_PARTS];
	struct rig_slot slots[MOST_SLOTS];
	struct rig_wait waits[MOST_WAITS];
	_Alignas(16) uint8_t args[ARGS_BYTES];
	const struct rig_part *live; /* lie keeps_pointers */
	struct rig_times *times;
};

/* An open handle. Its first member is what facts.edge points to. */
struct device {
	const struct rig_driver *hot;
	struct device *self;
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
	pthread_t thread, maker;
	uint64_t done;           /* the last value whose work ran */
	uint64_t beside;         /* an endless value whose copies were made beside it */
	_Atomic uint64_t raised; /* the most the word can show */
	uint64_t deferred;       /* lie defers */
	bool full;
	struct rig_part room_part; /* lie room_decides */
	struct region other_region;
	int fds[POLLED_DESCRIPTORS];
	bool faulted;
	char fault[TEXT_BYTES];
	struct stamp *stamps;
	uint64_t last_end;
};

struct polled {
	struct polled_options o;
	struct rig_opener opener;
	struct rig_driver table;
	struct rig_driver_module module; /* lie no_grow */
	struct bus *buses;
	unsigned nbuses;
	_Atomic unsigned nallocs, nmaps, nloads, nunloads, nlocates, nentries, nopens;
	void (*edit)(struct rig_facts *facts);
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct device *device; /* the last one made, if not released */
	unsigned handles, nregions, nimages;
	struct region *regions;
	struct image *images, *unloaded; /* work that runs late may name those still */
	uint64_t held, pinned, gate;
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

/* Handles that are open, of all drivers; for the lie one_device. */
extern _Atomic unsigned polled_open;

/* The first breach is kept. */
__attribute__((format(printf, 2, 3))) void polled_break(struct polled *p, const char *format, ...);

static inline void lock(struct polled *p)
{
	(void)pthread_mutex_lock(&p->lock);
}

static inline void unlock(struct polled *p)
{
	(void)pthread_mutex_unlock(&p->lock);
}

/* Counts the call and runs the hook; whether the call shall fail. */
static inline bool begin(struct polled *p, enum polled_call call, bool can_fail)
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
static inline bool enter(struct device *d, enum polled_call call, bool can_fail)
{
	atomic_fetch_add(&d->cold_calls, 1);
	if (d->stopped)
		polled_break(d->p, "call %d after stop", (int)call);
	return begin(d->p, call, can_fail);
}

static inline int leave(struct device *d, int answer)
{
	atomic_fetch_sub(&d->cold_calls, 1);
	return answer;
}

static inline int fault(struct device *d, const char **text)
{
	*text = "injected fault";
	return leave(d, RIG_FAULT);
}

static inline bool faults(const struct polled *p)
{
	return p->failure == POLLED_FAULTS;
}

/* E-012: after stop only once the word shows the last submitted value. */
static inline void check_late(struct device *d, const char *what)
{
	if (d->stopped && rig_word_load(d->shown) < d->last)
		polled_break(d->p, "E-012: %s while the word is short", what);
	if (d->released)
		polled_break(d->p, "%s after release", what);
}

/* polled_memory.c, polled_code.c */
int polled_d_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **text);
int polled_d_free(void *device, void *region, const char **text);
void polled_d_locate(void *device, void *region, struct rig_location *location);
bool polled_d_peer(void *device, void *other);
int polled_d_map_peer(void *device, void *other, void *region, void **mapped, const char **text);
int polled_d_map_host(void *device, void *host, uint64_t bytes, void **region, const char **text);
int polled_d_dma(void *device, void *region, struct rig_dma_answer *answer, const char **text);
int polled_d_load(void *device, const void *binary, size_t bytes, struct rig_code *code, const char **text);
int polled_d_entry(void *device, void *image, const char *name, struct rig_entry *entry, uint64_t *missing,
        const char **text);
int polled_d_unload(void *device, void *image, const char **text);

/* polled_work.c: one value, if it may run, and a nap until something moves, with the lock; the thread. */
bool polled_run_one(struct device *d);
void polled_nap(struct polled *p, uint64_t ms);
void *polled_work(void *arg);

/* polled_times.c */
void polled_stamp(struct device *d, uint64_t value, const struct value *v, uint64_t start, uint64_t end);
void polled_keep_stamp(struct device *d, uint64_t value, struct rig_times *times);
int polled_d_settle(void *self, uint64_t value, const char **failure);
int polled_d_measures(void *self, uint64_t value, uint64_t *out, const char **failure);

/* The parts' work, once; polled_work.c. */
void polled_run_parts(struct device *d, const struct value *v);

/* polled_hot.c, polled_cold.c */
extern const struct rig_driver polled_hot;
extern const struct rig_driver_module polled_module;
int polled_make(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes);

#endif
