/* SPDX-License-Identifier: MIT */
#include "rt.h"

static struct rig_rt_need *need_at(struct rig_device *d, uint32_t i)
{
	return &d->needs[i % RT_NEEDS];
}

/* Drops those of values that are complete; how many are left. */
static uint32_t drop_past(struct rig_device *d)
{
	uint64_t word = rig_rt_word(d->slot);

	while (d->need_first != d->need_end && need_at(d, d->need_first)->value <= word)
		d->need_first++;
	return d->need_end - d->need_first;
}

int rig_rt_needs_add(struct rig_device *d, const uint64_t *bits, uint32_t n)
{
	uint64_t value = rig_rt_submitted(d) + 1;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (rig_rt_point_state(bits[i]) == RT_LOST)
			return rig_rt_point_lost(bits[i]);
	if (RT_NEEDS - drop_past(d) < n)
		return -EAGAIN;
	for (i = 0; i < n; i++)
		*need_at(d, d->need_end++) = (struct rig_rt_need){value, bits[i]};
	atomic_store_explicit(&d->has_needs, true, memory_order_relaxed);
	return 0;
}

bool rig_rt_needs_lost(struct rig_device *d, const struct rig_device *producer)
{
	uint32_t i;

	for (i = d->need_first; i != d->need_end; i++)
		if (rig_rt_slot_of(need_at(d, i)->bits) == producer->slot &&
		        rig_rt_value_of(need_at(d, i)->bits) > producer->dead->reached)
			return true;
	return false;
}

/* The points that the next value waits for and that are not reached; how many. Under the lock. */
static uint32_t missing(struct rig_device *d, uint64_t bits[RT_WAITS])
{
	uint64_t next = rig_rt_word(d->slot) + 1;
	uint32_t i, n = 0;

	for (i = d->need_first; i != d->need_end && need_at(d, i)->value <= next && n < RT_WAITS; i++)
		if (!rig_rt_point_over(need_at(d, i)->bits))
			bits[n++] = need_at(d, i)->bits;
	return n;
}

bool rig_rt_is_held(struct rig_device *d)
{
	uint64_t bits[RT_WAITS];

	return missing(d, bits) > 0;
}

/* One of the points missing, or 0. */
static uint64_t pick(struct rig_device *d, uint64_t *turn)
{
	uint64_t bits[RT_WAITS], picked;
	uint32_t n;

	if (!atomic_load_explicit(&d->has_needs, memory_order_relaxed))
		return 0;
	rig_rt_lock(&d->lock);
	n = missing(d, bits);
	if (!drop_past(d))
		atomic_store_explicit(&d->has_needs, false, memory_order_relaxed);
	rig_rt_unlock(&d->lock);
	if (!n)
		return 0;
	picked = bits[*turn % n];
	*turn /= n;
	return picked;
}

struct rig_device *rig_rt_holder(struct rig_device *d, uint64_t turn, uint64_t *seen)
{
	struct rig_device *holder = NULL, *next;
	uint64_t bits, word;

	while ((bits = pick(holder ? holder : d, &turn)) && (next = rig_rt_point_device(bits))) {
		/* Its word first: what moves it later ends a sleep. */
		word = rig_rt_word(next->slot);
		if (word >= rig_rt_value_of(bits)) {
			rig_rt_visit_end(next);
			continue;
		}
		*seen = word;
		(void)rig_rt_ask(holder ? holder : d);
		rig_rt_visit_end(holder);
		holder = next;
	}
	return holder;
}
