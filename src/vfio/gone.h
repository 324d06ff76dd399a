/* SPDX-License-Identifier: MIT */
#ifndef RIG_GONE_H
#define RIG_GONE_H

/*
 * The sticky "this function is gone", with its first reason and a descriptor that wakes whoever polls; and
 * the guard that sets it where a mapped window vanishes under an access. Private to src/vfio. init and fini
 * come from one thread, everything else from any.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RIG_GONE_BYTES = 256 };

struct rig_gone {
	_Atomic(const char *) why; /* NULL while it is there; set once, with release */
	int fd;                    /* eventfd, readable once gone */
	pthread_mutex_t lock;      /* of text's writing */
	char text[RIG_GONE_BYTES];
};

int rig_gone_init(struct rig_gone *g);
void rig_gone_fini(struct rig_gone *g);

/* true: this call was the first, and its reason stays. */
bool rig_gone_say(struct rig_gone *g, const char *why);

/* In a child of fork: gone there, and the parent is not woken. */
void rig_gone_orphan(struct rig_gone *g);

/* The reason, NULL while the function is there. Lives as long as g. */
static inline const char *rig_gone_why(const struct rig_gone *g)
{
	return atomic_load_explicit(&g->why, memory_order_acquire);
}

static inline bool rig_gone_is(const struct rig_gone *g)
{
	return rig_gone_why(g) != NULL;
}

/* err, with the reason as the thread's error text in place of the call's own if the function is gone: what
 * went wrong is then why it is gone. For `return rig_gone_settle(&f->gone, err)` after a call of the
 * transport; 0 stays 0. */
int rig_gone_settle(const struct rig_gone *g, int err);

/* -ENODEV with the reason as the thread's error text. Only once it is set. */
int rig_gone_fail(const struct rig_gone *g);

/* -- The guard -- */

/*
 * Keeps the process alive when a mapped window vanishes under an access: a device that was pulled, a device
 * process that cut its file short.
 *
 * One process-wide SIGBUS handler, installed by the first guard and put back if something replaced it since;
 * it is never taken away. A fault inside a guarded range gets a page of all ones in its place and marks the
 * function gone; a fault anywhere else goes to the handler that was there before, or is fatal as it would
 * have been, also where that handler passes it on to this one.
 */

/* The most ranges guarded at once in a process. The handler searches them without a lock. */
enum { RIG_GUARD_RANGES = 1024 };

/* Guards whole pages [at, at + bytes) until rig_guard_remove; gone outlives that. -ENOSPC: all ranges are
 * taken. */
int rig_guard_add(void *at, uint64_t bytes, struct rig_gone *gone);

/* Before the range is unmapped. A range that is not guarded is allowed. */
void rig_guard_remove(void *at);

/* In a child of fork, which has none of what is guarded: at those addresses anything may come to lie. */
void rig_guard_forked(void);

#endif
