/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>

#include "rt.h"

#define ALIVE_BYTES 4096u

static const uint32_t always_alive = 1;
const uint32_t *rig_rt_alive = &always_alive;

static atomic_bool ready; /* all of this was made */
static uint32_t *alive;   /* what rig_rt_alive points to from the first open on */

static void prepare(void)
{
	rig_rt_lock_raw(&rig_rt_registry);
}

static void parent(void)
{
	rig_rt_unlock_raw(&rig_rt_registry);
}

/* Threads that held these locks do not exist here. */
static void remake(struct rig_rt_lock *lock)
{
	atomic_store(&lock->word, RT_FREE);
}

/* The device's values end where the child's copy of the word stands; its stop is the parent's. */
static void orphan(struct rig_device *d)
{
	struct rig_rt_slot *slot = rig_rt_slot(d);
	struct rig_rt_dead *dead = d->dead;

	remake(&d->lock);
	remake(&d->memory);
	remake(&d->staging_lock);
	d->changed.waiters = d->staging_freed.waiters = 0;
	if (rig_rt_life_of(d) == RT_LIVE && slot->device == d) {
		(void)strcpy(dead->reason, "inherited by a forked child");
		dead->reached = rig_rt_word(d->slot);
		atomic_store(&dead->last, UINT64_MAX);
		rig_rt_dead_publish(d->slot, dead);
		d->dead_published = true;
		atomic_store(&slot->flags, 0);
	}
	atomic_store(&d->life, RT_ORPHANED);
}

static void child(void)
{
	struct rig_device *d;

	for (d = rig_rt_devices; d; d = d->next)
		orphan(d);
	rig_rt_slots_reborn();
	rig_rt_names_reborn();
	rig_rt_failure_reborn();
	rig_rt_unlock_raw(&rig_rt_registry);
	/* New devices may be opened: every inherited one says by itself that it is lost. */
	*alive = 1;
}

static int make_alive(void)
{
	void *at = mmap(NULL, ALIVE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int code;

	if (at == MAP_FAILED)
		return -errno;
	if (madvise(at, ALIVE_BYTES, MADV_WIPEONFORK)) {
		code = -errno;
		(void)munmap(at, ALIVE_BYTES);
		return code;
	}
	alive = at;
	*alive = 1;
	__atomic_store_n(&rig_rt_alive, alive, __ATOMIC_RELEASE);
	return 0;
}

static int init(void)
{
	rig_atomic_u64 *words = rig_words();
	int code;

	/* Before the handlers below, so that in a child the copy of the words is made first. */
	if (!words)
		return -ENOMEM;
	code = alive ? 0 : make_alive();
	if (!code)
		code = -pthread_atfork(prepare, parent, child);
	if (code)
		return rig_error_set(code, "cannot register the fork handlers: %s", strerror(-code));
	__atomic_store_n(&rig_rt_words, words, __ATOMIC_RELEASE);
	atomic_store_explicit(&ready, true, memory_order_release);
	return 0;
}

int rig_rt_init(void)
{
	static struct rig_rt_lock lock;
	int code = 0;

	if (atomic_load_explicit(&ready, memory_order_acquire))
		return 0;
	rig_rt_lock(&lock);
	if (!atomic_load_explicit(&ready, memory_order_relaxed))
		code = init();
	rig_rt_unlock(&lock);
	return code;
}
