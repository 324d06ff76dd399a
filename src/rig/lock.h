/* SPDX-License-Identifier: MIT */
/*
 * The runtime's locks: one word each, so that taking and giving a free one is one locked operation each,
 * inline, and no system call. Zeroed memory is an unlocked lock; nothing is to be released.
 */
#ifndef LOCK_H
#define LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rig_edge.h"

enum {
	RT_FREE,
	RT_TAKEN,
	RT_AWAITED, /* taken, and a thread sleeps for it */
};

struct rig_rt_lock {
	_Atomic uint32_t word;
};

/* Something to wait for under a lock. Changed under that lock. */
struct rig_rt_event {
	_Atomic uint32_t count;
	uint32_t waiters; /* under the lock */
};

/* For the inline functions. */
void rig_rt_lock_slow(struct rig_rt_lock *lock);
void rig_rt_unlock_slow(struct rig_rt_lock *lock);
void rig_rt_notify_slow(struct rig_rt_event *event);

/* The same without the count of rig_locks_held: fork handlers. */
static inline void rig_rt_lock_raw(struct rig_rt_lock *lock)
{
	uint32_t seen = RT_FREE;

	if (__builtin_expect(!atomic_compare_exchange_strong_explicit(&lock->word, &seen, RT_TAKEN,
	                             memory_order_acquire, memory_order_relaxed),
	            0))
		rig_rt_lock_slow(lock);
}

static inline void rig_rt_unlock_raw(struct rig_rt_lock *lock)
{
	if (__builtin_expect(
	            atomic_exchange_explicit(&lock->word, RT_FREE, memory_order_release) == RT_AWAITED, 0))
		rig_rt_unlock_slow(lock);
}

static inline void rig_rt_lock(struct rig_rt_lock *lock)
{
	rig_rt_lock_raw(lock);
	rig_locks_add(1);
}

static inline void rig_rt_unlock(struct rig_rt_lock *lock)
{
	rig_locks_add(-1);
	rig_rt_unlock_raw(lock);
}

/* Gives the lock, waits for a notification and takes the lock again; may return early. `ms` 0: no limit. */
void rig_rt_await(struct rig_rt_event *event, struct rig_rt_lock *lock, uint64_t ms);

/* Wakes every waiter, with the lock held. */
static inline void rig_rt_notify(struct rig_rt_event *event)
{
	if (event->waiters)
		rig_rt_notify_slow(event);
}

#endif
