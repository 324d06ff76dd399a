/* SPDX-License-Identifier: MIT */
#include "lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rt.h"

/* Looks at a taken lock before sleeping: its sections are shorter than a sleep. */
#define SPINS 100

static void sleep_on(_Atomic uint32_t *word, uint32_t seen, const struct timespec *limit)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, limit, NULL, 0);
}

static void wake(_Atomic uint32_t *word, int n)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* ---- The processor's own instructions ---- */

void rig_rt_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * The library loads no host code by itself, so what a thread must see is code that the program's own loader
 * wrote: on arm64 an instruction barrier makes the thread fetch it anew; x86 does so by itself.
 */
RIG_API void rig_code_sync(void)
{
#if defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* ---- Locks ---- */

void rig_rt_lock_slow(struct rig_rt_lock *lock)
{
	uint32_t seen;
	int i;

	for (i = 0; i < SPINS; i++) {
		seen = RT_FREE;
		if (atomic_load_explicit(&lock->word, memory_order_relaxed) == RT_FREE &&
		        atomic_compare_exchange_strong_explicit(
		                &lock->word, &seen, RT_TAKEN, memory_order_acquire, memory_order_relaxed))
			return;
		rig_rt_pause();
	}
	/* Awaited also if no other thread sleeps: one needless wake, and none missed. */
	while (atomic_exchange_explicit(&lock->word, RT_AWAITED, memory_order_acquire) != RT_FREE)
		sleep_on(&lock->word, RT_AWAITED, NULL);
}

void rig_rt_unlock_slow(struct rig_rt_lock *lock)
{
	wake(&lock->word, 1);
}

void rig_rt_await(struct rig_rt_event *event, struct rig_rt_lock *lock, uint64_t ms)
{
	uint32_t seen = atomic_load_explicit(&event->count, memory_order_relaxed);
	struct timespec limit = {(time_t)(ms / 1000), (long)(ms % 1000) * (long)RT_NS_PER_MS};

	event->waiters++;
	rig_rt_unlock(lock);
	sleep_on(&event->count, seen, ms ? &limit : NULL);
	rig_rt_lock(lock);
	event->waiters--;
}

void rig_rt_notify_slow(struct rig_rt_event *event)
{
	atomic_fetch_add_explicit(&event->count, 1, memory_order_relaxed);
	wake(&event->count, INT_MAX);
}
