/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "rt.h"

static rig_rt_stamp *claim_in(struct rig_rt_uses *uses, uint32_t slot)
{
	unsigned i;

	for (i = 0; i < RT_USES; i++) {
		uint64_t seen = atomic_load_explicit(&uses->word[i], memory_order_acquire);

		if (!seen && atomic_compare_exchange_strong(&uses->word[i], &seen, rig_rt_bits(slot, 0)))
			return &uses->word[i];
		if (rig_rt_slot_of(seen) == slot)
			return &uses->word[i];
	}
	return NULL;
}

/* The next four words; two threads that make them keep one. */
static struct rig_rt_uses *next_of(struct rig_rt_uses *uses)
{
	struct rig_rt_uses *next = atomic_load_explicit(&uses->next, memory_order_acquire), *made;

	if (next)
		return next;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	if (atomic_compare_exchange_strong(&uses->next, &next, made))
		return made;
	free(made);
	return next;
}

rig_rt_stamp *rig_rt_stamp_claim(struct rig_rt_mem *mem, uint32_t slot)
{
	struct rig_rt_uses *uses = &mem->uses;

	while (uses) {
		rig_rt_stamp *stamp = claim_in(uses, slot);

		if (stamp)
			return stamp;
		uses = next_of(uses);
	}
	return NULL;
}

bool rig_rt_uses_over(struct rig_rt_mem *mem, uint32_t slot)
{
	struct rig_rt_uses *uses = &mem->uses;
	unsigned i;

	for (; uses; uses = atomic_load_explicit(&uses->next, memory_order_acquire))
		for (i = 0; i < RT_USES; i++) {
			uint64_t bits = atomic_load_explicit(&uses->word[i], memory_order_acquire);

			if (rig_rt_slot_of(bits) != slot && !rig_rt_point_over(bits))
				return false;
		}
	return true;
}

int rig_rt_mem_wait(struct rig_rt_mem *mem, enum rig_access access)
{
	struct rig_rt_uses *uses = &mem->uses;
	unsigned i;
	int code;

	code = rig_rt_wait_bits(atomic_load_explicit(&mem->write, memory_order_acquire));
	if (access == RIG_READ || code)
		return code;
	for (; uses; uses = atomic_load_explicit(&uses->next, memory_order_acquire))
		for (i = 0; i < RT_USES; i++) {
			code = rig_rt_wait_bits(atomic_load_explicit(&uses->word[i], memory_order_acquire));
			if (code)
				return code;
		}
	return 0;
}

void rig_rt_uses_forget(struct rig_rt_mem *mem, uint32_t slot)
{
	struct rig_rt_uses *uses = &mem->uses;
	unsigned i;

	for (; uses; uses = atomic_load_explicit(&uses->next, memory_order_acquire))
		for (i = 0; i < RT_USES; i++) {
			uint64_t bits = atomic_load_explicit(&uses->word[i], memory_order_relaxed);

			if (rig_rt_slot_of(bits) != slot)
				atomic_store_explicit(&uses->word[i], rig_rt_bits(rig_rt_slot_of(bits), 0),
				        memory_order_relaxed);
		}
	if (rig_rt_slot_of(atomic_load_explicit(&mem->write, memory_order_relaxed)) != slot)
		atomic_store_explicit(&mem->write, 0, memory_order_relaxed);
}

void rig_rt_uses_fini(struct rig_rt_mem *mem)
{
	struct rig_rt_uses *uses = atomic_load_explicit(&mem->uses.next, memory_order_acquire);

	while (uses) {
		struct rig_rt_uses *next = atomic_load_explicit(&uses->next, memory_order_relaxed);

		free(uses);
		uses = next;
	}
}
