/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "rt.h"
#include "thread.h"

/* The watchdog looks so many times in a hang bound. */
#define LOOKS 4

#define REMEDY "; work that needs longer needs a larger bound: hang_ms of rig_open_with, or the opener's"

/* Whether the clock stands still: nothing committed is open, or the next value waits for another device.
   Under the lock. */
static bool is_idle(struct rig_device *d, uint64_t word)
{
	return word >= atomic_load_explicit(&rig_rt_slot(d)->committed, memory_order_acquire) ||
	       rig_rt_is_held(d);
}

/* The milliseconds left before the device counts as hung; 0: it does. Under the lock. */
static uint64_t look(struct rig_device *d)
{
	struct rig_rt_hang *hang = &d->hang;
	uint64_t bound = (uint64_t)d->hang_ms * RT_NS_PER_MS, word = rig_rt_word(d->slot), now;

	if (is_idle(d, word)) {
		hang->running = false;
		return RT_STILL_MS;
	}
	now = d->now(d->now_arg);
	if (!hang->running || hang->seen != word) {
		hang->running = true;
		hang->seen = word;
		hang->since = now;
	}
	if (now - hang->since >= bound)
		return 0;
	return (bound - (now - hang->since) + RT_NS_PER_MS - 1) / RT_NS_PER_MS;
}

static void lose_hung(struct rig_device *d)
{
	char reason[RT_REASON_BYTES];
	uint64_t word;
	bool lost;

	(void)snprintf(reason, sizeof(reason), "no progress for %lld ms", (long long)d->hang_ms);
	rig_rt_lock(&d->lock);
	word = rig_rt_word(d->slot);
	lost = d->hang.running && word == d->hang.seen && !is_idle(d, word) && rig_rt_is_live(d);
	if (lost) {
		d->dead->remedy = REMEDY;
		lost = rig_rt_lose_locked(d, reason, true);
	}
	rig_rt_unlock(&d->lock);
	if (!lost)
		return;
	rig_rt_failure_note(d->name, reason);
	rig_rt_lose_finish(d);
}

uint64_t rig_rt_hang_check(struct rig_device *d)
{
	uint64_t left;

	if (!d->hang_ms)
		return RT_STILL_MS;
	rig_rt_lock(&d->lock);
	left = look(d);
	rig_rt_unlock(&d->lock);
	if (left)
		return left < RT_STILL_MS ? left : RT_STILL_MS;
	/* A word that nobody refreshed, say in a process that was stopped, tells nothing. */
	(void)rig_rt_ask(d);
	(void)rig_rt_progress(d);
	lose_hung(d);
	return 1;
}

/* Until the device is no longer live, at most `ms`. */
static void nap(struct rig_device *d, uint64_t ms)
{
	rig_rt_lock(&d->lock);
	if (rig_rt_life_of(d) == RT_LIVE)
		rig_rt_await(&d->changed, &d->lock, ms);
	rig_rt_unlock(&d->lock);
}

static void *watch(void *arg)
{
	struct rig_device *d = arg, *holder;
	uint64_t ms = (uint64_t)d->hang_ms / LOOKS, turn = 0, seen;

	rig_rt_visiting++; /* its starter's visit */
	while (rig_rt_is_live(d)) {
		(void)rig_rt_commit(d, rig_rt_submitted(d));
		(void)rig_rt_progress(d);
		holder = rig_rt_holder(d, turn++, &seen);
		(void)rig_rt_hang_check(holder ? holder : d);
		rig_rt_visit_end(holder);
		nap(d, ms ? ms : 1);
	}
	rig_rt_visit_end(d);
	return NULL;
}

int rig_rt_watchdog_start(struct rig_device *d)
{
	pthread_t thread;
	int code;

	if (!d->hang_ms)
		return 0;
	rig_rt_visit(d);
	code = rig_thread_start(&thread, RIG_THREAD_ANY, watch, d);
	if (code) {
		rig_rt_visit_end(d);
		return rig_error_set(code, "%s: cannot start the watchdog's thread", d->name);
	}
	rig_rt_visiting--;
	(void)pthread_detach(thread);
	return 0;
}
