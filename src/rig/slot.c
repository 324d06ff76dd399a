/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdio.h>

#include "rt.h"

/* A slot whose word is past this is retired, long before its values could end (2^47). */
#define RETIRE_AT ((UINT64_C(1) << RIG_VALUE_BITS) - (UINT64_C(1) << 40))

#define POINT_BITS 63u

struct rig_rt_slot rig_rt_slots[RIG_WORD_COUNT];
struct rig_rt_lock rig_rt_registry;
_Atomic(struct rig_rt_dead *) rig_rt_deads[RIG_WORD_COUNT];

static rig_atomic_u64 no_words[RIG_WORD_COUNT];
rig_atomic_u64 *rig_rt_words = no_words;

/* Slot 0 is the host's. Under the registry's lock. */
static uint32_t fresh = 1;
static uint32_t free_slots[RIG_WORD_COUNT];
static uint32_t nfree;

int rig_rt_slot_take(uint32_t *slot)
{
	int code = 0;

	rig_rt_lock(&rig_rt_registry);
	if (nfree)
		*slot = free_slots[--nfree];
	else if (fresh < RIG_WORD_COUNT)
		*slot = fresh++;
	else
		code = -ENOSPC;
	rig_rt_unlock(&rig_rt_registry);
	return code;
}

void rig_rt_slot_give(uint32_t slot)
{
	rig_rt_lock(&rig_rt_registry);
	if (rig_rt_word(slot) < RETIRE_AT)
		free_slots[nfree++] = slot;
	rig_rt_unlock(&rig_rt_registry);
}

void rig_rt_slots_reborn(void)
{
	nfree = 0;
}

void rig_rt_dead_publish(uint32_t slot, struct rig_rt_dead *dead)
{
	dead->next = atomic_load_explicit(&rig_rt_deads[slot], memory_order_relaxed);
	atomic_store_explicit(&rig_rt_deads[slot], dead, memory_order_release);
}

static const struct rig_rt_dead *dead_of(uint32_t slot, uint64_t value)
{
	const struct rig_rt_dead *dead = atomic_load_explicit(&rig_rt_deads[slot], memory_order_acquire);

	for (; dead; dead = dead->next)
		if (value > dead->reached && value <= atomic_load_explicit(&dead->last, memory_order_acquire))
			return dead;
	return NULL;
}

enum rig_rt_state rig_rt_point_state(uint64_t bits)
{
	uint32_t index = rig_rt_slot_of(bits);
	uint64_t value = rig_rt_value_of(bits);
	const struct rig_rt_slot *slot;
	bool live;

	if (bits >> POINT_BITS || (index == 0 && value))
		return RT_NO_POINT;
	if (!value)
		return RT_REACHED;
	slot = &rig_rt_slots[index];
	if (rig_rt_word(index) >= value)
		return dead_of(index, value) ? RT_LOST : RT_REACHED;
	if (value > atomic_load_explicit(&slot->submitted, memory_order_acquire))
		return RT_NO_POINT;
	live = atomic_load_explicit(&slot->flags, memory_order_acquire) & RT_SLOT_LIVE;
	if (live)
		return RT_PENDING;
	/* Not dead and not live: it was reached between the two looks. */
	return dead_of(index, value) ? RT_LOST : RT_REACHED;
}

struct rig_device *rig_rt_point_device(uint64_t bits)
{
	const struct rig_rt_slot *slot = &rig_rt_slots[rig_rt_slot_of(bits)];
	struct rig_device *d;

	rig_rt_lock(&rig_rt_registry);
	d = slot->device;
	if (d && (rig_rt_value_of(bits) <= slot->base || !rig_rt_visit_try(d)))
		d = NULL;
	rig_rt_unlock(&rig_rt_registry);
	return d;
}

/* Whether the driver's text of a fault has the value itself. */
static bool names(const char *reason, unsigned long long value)
{
	char text[32];
	const char *at;

	(void)snprintf(text, sizeof(text), "value %llu", value);
	at = strstr(reason, text);
	return at && !isdigit((unsigned char)at[strlen(text)]);
}

int rig_rt_point_lost(uint64_t bits)
{
	unsigned long long value = rig_rt_value_of(bits);
	const struct rig_rt_dead *dead = dead_of(rig_rt_slot_of(bits), value);
	char unreached[64] = "";

	if (!dead || !names(dead->reason, value))
		(void)snprintf(unreached, sizeof(unreached), " (value %llu was not reached)", value);
	return rig_error_set(RIG_LOST, "%s lost: %s%s%s", dead ? dead->name : "device",
	        dead ? dead->reason : "", unreached, dead ? dead->remedy : "");
}
