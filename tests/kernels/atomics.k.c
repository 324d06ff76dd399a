/* SPDX-License-Identifier: MIT */
/* Good: every thread does one atomic operation of each kind and width on words that all share. */
#include <rvx1/kernel.h>

struct atomics {
	uint64_t out; /* address of a struct result, which starts as zeroes */
};

struct result {
	uint64_t add64;                  /* + 1 a thread */
	uint32_t add32, or32;            /* + 1; bit (thread's linear grid index mod 32) */
	uint16_t add16, sub16;           /* + 1, - 1, modulo 2^16 */
	uint8_t add8, xor8, nand8, and8; /* + 1; ^ 1; nand 255; & 0 */
	uint64_t most;                   /* the largest index + 1, by compare and exchange */
	uint32_t locked, lock;           /* + 1 under a lock of the group's threads */
	uint16_t most16;                 /* the largest index mod 2^16, by compare and exchange */
	uint8_t swapped;                 /* 1 once a thread exchanged */
	uint8_t taken;                   /* test and set */
	uint32_t first;                  /* threads that found `taken` clear: 1 */
};

static void raise(uint64_t *word, uint64_t value)
{
	uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (seen < value &&
	        !__atomic_compare_exchange_n(word, &seen, value, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

static void raise16(uint16_t *word, uint16_t value)
{
	uint16_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (seen < value &&
	        !__atomic_compare_exchange_n(word, &seen, value, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

/* The holder is never descheduled for ever: all threads of a group make progress. */
static void add_locked(struct result *r)
{
	while (__atomic_exchange_n(&r->lock, 1, __ATOMIC_ACQUIRE))
		;
	r->locked++;
	__atomic_store_n(&r->lock, 0, __ATOMIC_RELEASE);
}

void atomics(const struct atomics *p)
{
	struct result *r = (struct result *)p->out;
	uint64_t i = rvx1_global_id(0);

	__atomic_fetch_add(&r->add64, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&r->add32, 1, __ATOMIC_RELAXED);
	__atomic_fetch_or(&r->or32, 1u << i % 32, __ATOMIC_RELAXED);
	__atomic_fetch_add(&r->add16, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&r->sub16, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&r->add8, 1, __ATOMIC_RELAXED);
	__atomic_fetch_xor(&r->xor8, 1, __ATOMIC_RELAXED);
	__atomic_fetch_nand(&r->nand8, 255, __ATOMIC_RELAXED);
	__atomic_fetch_and(&r->and8, 0, __ATOMIC_RELAXED);
	raise(&r->most, i + 1);
	raise16(&r->most16, (uint16_t)i);
	__atomic_exchange_n(&r->swapped, 1, __ATOMIC_RELAXED);
	if (!__atomic_test_and_set(&r->taken, __ATOMIC_ACQ_REL))
		__atomic_fetch_add(&r->first, 1, __ATOMIC_RELAXED);
	add_locked(r);
}

RVX1_KERNEL(atomics, struct atomics, 0, 0);
