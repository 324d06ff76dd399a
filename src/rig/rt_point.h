/* SPDX-License-Identifier: MIT */
/* Points: values of slots, whether they are reached, and what forks and bad arguments make of calls. */
#ifndef RT_POINT_H
#define RT_POINT_H

#include <stdatomic.h>

#include "lock.h"
#include "rig.h"

#define RT_REASON_BYTES 1024u
#define RT_NAME_BYTES   128u

struct rig_device;

/* ---- Arguments ---- */

/* -EINVAL, in words, unless the argument was given. */
static inline int rig_rt_given(const void *argument, const char *name)
{
	return __builtin_expect(argument != NULL, 1) ? 0 : rig_error_set(-EINVAL, "%s is NULL", name);
}

static inline int rig_rt_given2(const void *a, const char *a_name, const void *b, const char *b_name)
{
	int code = rig_rt_given(a, a_name);

	return code ? code : rig_rt_given(b, b_name);
}

/* ---- Forks (fork.c) ---- */

/* Points to a word that is 0 in a child in which no fork handler ran (a bare clone): the system wipes its
   page. There every device is the parent's. Asking costs two loads. */
extern const uint32_t *rig_rt_alive;

static inline bool rig_rt_forked(void)
{
	return __atomic_load_n(__atomic_load_n(&rig_rt_alive, __ATOMIC_RELAXED), __ATOMIC_RELAXED) == 0;
}

/* ---- Slots and points (slot.c) ---- */

/* The values of one dead device of a slot that were open when it was lost: (reached, last]. For ever. */
struct rig_rt_dead {
	struct rig_rt_dead *next;
	uint64_t reached;
	_Atomic uint64_t last;
	char name[RT_NAME_BYTES];
	char reason[RT_REASON_BYTES];
	const char *remedy; /* a constant that follows the reason in rig_error; "" for none */
};

enum {
	RT_SLOT_LIVE = 1,  /* a live device has it */
	RT_SLOT_STORE = 2, /* its word advances by RIG_STORE */
	RT_SLOT_OWN = 4,   /* the driver has a word of its own; the array's word follows it */
};

/* What everyone may read of a device without holding it; a cache line each, so that devices share none. */
struct rig_rt_slot {
	_Alignas(64) _Atomic uint64_t submitted;
	_Atomic uint64_t committed;
	_Atomic uint32_t flags;
	struct rig_device *device; /* under the registry's lock */
	uint64_t base;             /* under the registry's lock: the device's values start after it */
};

enum rig_rt_state {
	RT_PENDING,
	RT_REACHED,
	RT_LOST,
	RT_NO_POINT,
};

extern struct rig_rt_slot rig_rt_slots[RIG_WORD_COUNT];
extern struct rig_rt_lock rig_rt_registry;

static inline uint64_t rig_rt_bits(uint32_t slot, uint64_t value)
{
	return (uint64_t)slot << RIG_VALUE_BITS | value;
}

static inline uint32_t rig_rt_slot_of(uint64_t bits)
{
	return (uint32_t)(bits >> RIG_VALUE_BITS);
}

static inline uint64_t rig_rt_value_of(uint64_t bits)
{
	return bits & ((UINT64_C(1) << RIG_VALUE_BITS) - 1);
}

/* Of each slot. */
extern _Atomic(struct rig_rt_dead *) rig_rt_deads[RIG_WORD_COUNT];

/* The array; before the first open one of zeroes. */
extern rig_atomic_u64 *rig_rt_words;

static inline rig_atomic_u64 *rig_rt_words_now(void)
{
	return __atomic_load_n(&rig_rt_words, __ATOMIC_RELAXED);
}

static inline uint64_t rig_rt_word(uint32_t slot)
{
	return rig_word_load(&rig_rt_words_now()[slot]);
}

/*
 * Whether the point is reached beyond doubt: the word is there and no device of the slot was lost with open
 * values. False: ask rig_rt_point_state. The highest bit, which no point has, counts as part of the value:
 * no word is there.
 */
static inline bool rig_rt_is_reached(rig_atomic_u64 *words, uint64_t bits)
{
	uint16_t slot = (uint16_t)(bits >> RIG_VALUE_BITS);
	uint64_t value = bits & ~((uint64_t)UINT16_MAX << RIG_VALUE_BITS);

	return rig_word_load(&words[slot]) >= value &&
	       !atomic_load_explicit(&rig_rt_deads[slot], memory_order_acquire);
}

/* 0 with a slot, -ENOSPC. */
int rig_rt_slot_take(uint32_t *slot);
/* Gives back a slot whose word can no longer move. */
void rig_rt_slot_give(uint32_t slot);
/* In a forked child: no slot of the parent's is handed out again. */
void rig_rt_slots_reborn(void);

/* Adds it to the slot's, for ever; at most one thread at a time for each slot. */
void rig_rt_dead_publish(uint32_t slot, struct rig_rt_dead *dead);
enum rig_rt_state rig_rt_point_state(uint64_t bits);
/* Whether the work of the point can no longer run, done or dropped: what memory waits for. */
static inline bool rig_rt_point_over(uint64_t bits)
{
	return rig_rt_word(rig_rt_slot_of(bits)) >= rig_rt_value_of(bits);
}

/* The live or dying device of a point, visited, or NULL. */
struct rig_device *rig_rt_point_device(uint64_t bits);
/* Sets rig_error for a lost point and answers RIG_LOST. */
int rig_rt_point_lost(uint64_t bits);

#endif
