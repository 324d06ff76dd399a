/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "rt.h"

static void set_life(struct rig_device *d, enum rig_rt_life life)
{
	atomic_store_explicit(&d->life, life, memory_order_release);
	rig_rt_notify(&d->changed);
}

void rig_rt_error_keep(char kept[RT_REASON_BYTES])
{
	(void)snprintf(kept, RT_REASON_BYTES, "%s", rig_error());
}

void rig_rt_error_back(const char *kept)
{
	(void)rig_error_set(0, "%s", kept);
}

int rig_rt_lost_error(struct rig_device *d)
{
	const char *reason = "";

	(void)rig_lost(d, &reason);
	return rig_error_set(RIG_LOST, "%s lost: %s%s", d->name, reason, d->dead->remedy);
}

/* With the lock held and RT_OWED. The lock is dropped. */
static void run_stop(struct rig_device *d)
{
	char kept[RT_REASON_BYTES];

	set_life(d, RT_STOPPING);
	rig_rt_unlock(&d->lock);
	rig_rt_hook(RT_HOOK_STOP, d);
	rig_rt_error_keep(kept);
	d->module->stop(d->handle, d->stop_reason);
	rig_rt_error_back(kept);
	rig_rt_lock(&d->lock);
	atomic_store_explicit(&d->dead->last, rig_rt_submitted(d), memory_order_release);
	set_life(d, RT_ENDED);
	rig_rt_unlock(&d->lock);
	rig_rt_hook(RT_HOOK_ENDED, d);
	rig_rt_reap(d);
}

int rig_rt_enter(struct rig_device *d)
{
	if (rig_rt_forked())
		return rig_rt_lost_error(d);
	rig_rt_lock(&d->lock);
	if (rig_rt_life_of(d) != RT_LIVE) {
		rig_rt_unlock(&d->lock);
		return rig_rt_lost_error(d);
	}
	d->inflight++;
	rig_rt_unlock(&d->lock);
	rig_rt_hook(RT_HOOK_ENTERED, d);
	return 0;
}

void rig_rt_leave_locked(struct rig_device *d)
{
	d->inflight--;
	if (d->inflight == 0 && rig_rt_life_of(d) == RT_OWED)
		run_stop(d);
	else
		rig_rt_unlock(&d->lock);
}

void rig_rt_leave(struct rig_device *d, const char *fault)
{
	/* The call that faulted is in flight until the loss is told, so stop comes after it. */
	if (fault)
		rig_rt_lose(d, fault, true);
	rig_rt_lock(&d->lock);
	rig_rt_leave_locked(d);
}

int rig_rt_leave_with(struct rig_device *d, int answer, const char *const *fault)
{
	if (answer != RIG_FAULT) {
		rig_rt_leave(d, NULL);
		return answer;
	}
	rig_rt_leave(d, *fault ? *fault : "the driver faulted without a text");
	return rig_rt_lost_error(d);
}

/* Its open values are judged against the word as it stands now, whatever the word shows later. */
static void publish_dead(struct rig_device *d, const char *reason)
{
	struct rig_rt_slot *slot = rig_rt_slot(d);
	struct rig_rt_dead *dead = d->dead;
	uint64_t word = rig_rt_word(d->slot), submitted = rig_rt_submitted(d);

	dead->reached = word < submitted ? word : submitted;
	(void)snprintf(dead->reason, sizeof(dead->reason), "%s", reason);
	/* A turn in flight may still hand over a value. */
	atomic_store_explicit(&dead->last, d->turn ? UINT64_MAX : submitted, memory_order_relaxed);
	if (d->turn || dead->reached < submitted) {
		d->dead_published = true;
		rig_rt_dead_publish(d->slot, dead);
	}
	atomic_fetch_and_explicit(&slot->flags, ~(uint32_t)RT_SLOT_LIVE, memory_order_release);
}

bool rig_rt_lose_locked(struct rig_device *d, const char *reason, bool stops)
{
	if (rig_rt_life_of(d) != RT_LIVE)
		return false;
	publish_dead(d, reason);
	d->stop_reason = stops ? d->dead->reason : NULL;
	set_life(d, RT_LOSING);
	return true;
}

/* Loses each live device whose queue waits for an unreached value of `dead`; answers them, visited. */
static struct rig_device *lose_waiters(const struct rig_device *dead, const char *reason, const char *remedy)
{
	struct rig_device *d, *victims = NULL;

	rig_rt_lock(&rig_rt_registry);
	for (d = rig_rt_devices; d; d = d->next) {
		if (d == dead)
			continue;
		rig_rt_lock(&d->lock);
		if (rig_rt_life_of(d) == RT_LIVE && rig_rt_needs_lost(d, dead)) {
			d->dead->remedy = remedy;
			(void)rig_rt_lose_locked(d, reason, false);
			/* Live until now, so open's own reference is there. */
			d->spread_next = victims;
			rig_rt_visit(d);
			victims = d;
		}
		rig_rt_unlock(&d->lock);
	}
	rig_rt_unlock(&rig_rt_registry);
	return victims;
}

static void owe_stop(struct rig_device *d)
{
	rig_rt_lock(&d->lock);
	set_life(d, RT_OWED);
	if (d->inflight == 0)
		run_stop(d);
	else
		rig_rt_unlock(&d->lock);
}

/* Every waiter is told before stop may raise a word that would release them, and told who failed first. */
void rig_rt_lose_finish(struct rig_device *d)
{
	struct rig_device *pending = d, *told = NULL;
	char reason[RT_REASON_BYTES];

	(void)snprintf(reason, sizeof(reason), "%s lost: %.*s", d->name, (int)(RT_REASON_BYTES / 2),
	        d->dead->reason);
	rig_rt_hook(RT_HOOK_LOST, d);
	rig_rt_visit(d);
	d->spread_next = NULL;
	while (pending) {
		struct rig_device *dead = pending, *victims;

		pending = dead->spread_next;
		dead->spread_next = told;
		told = dead;
		victims = lose_waiters(dead, reason, d->dead->remedy);
		while (victims) {
			struct rig_device *victim = victims;

			victims = victim->spread_next;
			victim->spread_next = pending;
			pending = victim;
		}
	}
	while (told) {
		struct rig_device *dead = told;

		told = dead->spread_next;
		owe_stop(dead);
		rig_rt_visit_end(dead);
	}
}

void rig_rt_lose(struct rig_device *d, const char *reason, bool stops)
{
	bool mine;

	if (rig_rt_forked())
		return;
	rig_rt_lock(&d->lock);
	mine = rig_rt_lose_locked(d, reason, stops);
	rig_rt_unlock(&d->lock);
	if (!mine)
		return;
	rig_rt_failure_note(d->name, reason);
	rig_rt_lose_finish(d);
}

/* Whether no work of the stopped device can run any more. */
static bool is_over(struct rig_device *d)
{
	const char *fault = NULL;
	uint64_t value = 0;

	if (d->own_word && d->module->signaled(d->handle, &value, &fault) == 0)
		rig_word_raise(&rig_rt_words[d->slot], value);
	return rig_rt_word(d->slot) >= rig_rt_submitted(d);
}

/* One thread at a time gives back; who finds another at it leaves the rest to that one. */
static bool reap_begin(struct rig_device *d)
{
	bool mine;

	rig_rt_lock(&d->lock);
	mine = rig_rt_life_of(d) == RT_ENDED && !d->reaping;
	if (mine)
		d->reaping = true;
	rig_rt_unlock(&d->lock);
	return mine;
}

static void reap_end(struct rig_device *d, bool over)
{
	rig_rt_lock(&d->lock);
	d->reaping = false;
	if (over)
		set_life(d, RT_STOPPED);
	rig_rt_unlock(&d->lock);
}

static void give_back(struct rig_device *d)
{
	rig_rt_staging_drop(d);
	rig_rt_drain(d);
	rig_rt_trim(d, 0);
	if (d->own_word)
		(void)rig_rt_region_free(d, d->facts.word);
	rig_rt_slot_give(d->slot);
	/* The reference that open took for the device's life. */
	rig_device_put(d);
}

void rig_rt_reap(struct rig_device *d)
{
	bool over = false;

	if (rig_rt_life_of(d) != RT_ENDED)
		return;
	/* Before it begins: who finds it begun can wait for its end. */
	rig_rt_visit(d);
	if (reap_begin(d)) {
		over = is_over(d);
		reap_end(d, over);
	}
	if (over)
		give_back(d);
	rig_rt_visit_end(d);
}

void rig_rt_await_end(struct rig_device *d)
{
	enum rig_rt_life life;

	rig_rt_lock(&d->lock);
	while ((life = rig_rt_life_of(d)) != RT_ENDED && life != RT_STOPPED && life != RT_ORPHANED)
		rig_rt_await(&d->changed, &d->lock, 0);
	rig_rt_unlock(&d->lock);
}

/* ---- Failure of the process ---- */

static struct rig_rt_lock failure;
static char first[RT_REASON_BYTES];
static char given[RT_REASON_BYTES];
static _Atomic bool failed;

bool rig_rt_failed(void)
{
	return atomic_load_explicit(&failed, memory_order_acquire);
}

void rig_rt_failure_note(const char *name, const char *reason)
{
	rig_rt_lock(&failure);
	if (!first[0])
		(void)snprintf(first, sizeof(first), "%s: %s", name, reason);
	rig_rt_unlock(&failure);
}

void rig_rt_failure_reborn(void)
{
	atomic_store(&failure.word, RT_FREE);
}

const char *rig_failure(void)
{
	const char *reason = NULL;

	rig_rt_lock(&failure);
	if (given[0])
		reason = given;
	else if (first[0])
		reason = first;
	rig_rt_unlock(&failure);
	return reason;
}

void rig_fail(const char *reason)
{
	struct rig_device *d = NULL;

	rig_rt_lock(&failure);
	if (!given[0])
		(void)snprintf(
		        given, sizeof(given), "%s", reason && reason[0] ? reason : "the program failed");
	rig_rt_unlock(&failure);
	atomic_store_explicit(&failed, true, memory_order_release);
	while ((d = rig_rt_next(d)))
		rig_rt_lose(d, given, false);
}
