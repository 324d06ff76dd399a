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

int rig_rt_use_set(struct rig_rt_use *use, struct rig_rt_mem *mem, struct rig_device *d, bool write)
{
	rig_rt_stamp *stamp = mem ? rig_rt_stamp_claim(mem, d->slot) : &use->none;

	if (!stamp)
		return rig_error_set(-ENOMEM, "no host memory for a stamp");
	use->mem = mem;
	use->stamp = stamp;
	use->last = mem && write ? &mem->write : stamp;
	use->write = write;
	return 0;
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

uint64_t rig_rt_uses_pending(struct rig_rt_mem *mem)
{
	struct rig_rt_uses *uses = &mem->uses;
	unsigned i;

	for (; uses; uses = atomic_load_explicit(&uses->next, memory_order_acquire))
		for (i = 0; i < RT_USES; i++) {
			uint64_t bits = atomic_load_explicit(&uses->word[i], memory_order_acquire);

			if (rig_rt_point_state(bits) == RT_PENDING)
				return bits;
		}
	return 0;
}

/* rig_rt_is_reached of a stamp, which is a point. */
static inline bool is_reached(rig_atomic_u64 *words, _Atomic(struct rig_rt_dead *) *deads, uint64_t bits)
{
	uint32_t slot = rig_rt_slot_of(bits);

	return __builtin_expect(rig_word_load(&words[slot]) >= rig_rt_value_of(bits), 1) &&
	       __builtin_expect(!atomic_load_explicit(&deads[slot], memory_order_acquire), 1);
}

int rig_rt_mem_wait(struct rig_rt_mem *mem, enum rig_access access)
{
	_Atomic(struct rig_rt_dead *) *deads = rig_rt_deads;
	struct rig_rt_uses *uses = &mem->uses;
	rig_atomic_u64 *words = rig_rt_words_now();
	uint64_t bits = atomic_load_explicit(&mem->write, memory_order_acquire);
	unsigned i;
	int code;

	code = is_reached(words, deads, bits) ? 0 : rig_rt_wait_slow(bits);
	if (access == RIG_READ || code)
		return code;
	for (; uses; uses = atomic_load_explicit(&uses->next, memory_order_acquire))
		for (i = 0; i < RT_USES; i++) {
			bits = atomic_load_explicit(&uses->word[i], memory_order_acquire);
			if (is_reached(words, deads, bits))
				continue;
			code = rig_rt_wait_slow(bits);
			if (code)
				return code;
		}
	return 0;
}

/* Words are claimed in their order, so that the first that is none ends them. */
bool rig_rt_uses_settle(struct rig_rt_mem *mem, uint32_t slot)
{
	struct rig_rt_uses *uses = &mem->uses;
	unsigned i;

	for (; uses; uses = atomic_load_explicit(&uses->next, memory_order_acquire))
		for (i = 0; i < RT_USES; i++) {
			uint64_t bits = atomic_load_explicit(&uses->word[i], memory_order_acquire);

			if (!bits)
				goto settled;
			if (rig_rt_slot_of(bits) == slot)
				continue;
			if (!rig_rt_point_over(bits))
				return false;
			atomic_store_explicit(
			        &uses->word[i], rig_rt_bits(rig_rt_slot_of(bits), 0), memory_order_relaxed);
		}
settled:
	if (rig_rt_slot_of(atomic_load_explicit(&mem->write, memory_order_relaxed)) != slot)
		atomic_store_explicit(&mem->write, 0, memory_order_relaxed);
	return true;
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
