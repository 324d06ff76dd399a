/* SPDX-License-Identifier: MIT */
/*
 * The 8- and 16-bit atomics that the compiler calls and its library lacks, on the aligned 32-bit word around
 * them. Every one is sequentially consistent, whatever order was asked. Linked by rvx1-cc into kernels that
 * need them.
 */
#include <stdbool.h>
#include <stdint.h>

#define WORD_MASK 3u

/* The word that the object of `bytes` bytes at `p` lies in. An odd `p` of a 16-bit object stays odd, so that
 * the board refuses the atomic access, as it does for wider ones. */
static uint32_t *word_of(const void *p, unsigned bytes)
{
	return (uint32_t *)((uintptr_t)p & ~(uintptr_t)(WORD_MASK & ~(bytes - 1)));
}

/* How far the object is shifted in its word. */
static unsigned shift_of(const void *p)
{
	return (unsigned)((uintptr_t)p & WORD_MASK) * 8;
}

static bool swap(uint32_t *word, uint32_t *seen, uint32_t with)
{
	return __atomic_compare_exchange_n(word, seen, with, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* FETCH(bits, bytes, name, expression of `old` and `value`): __atomic_<name>_<bytes>(), which answers the old
 * value. */
#define FETCH(bits, bytes, name, expression)                                                                 \
	uint##bits##_t name##_##bytes(void *p, uint##bits##_t value, int order) __asm__(                     \
	        "__atomic_" #name "_" #bytes);                                                               \
	uint##bits##_t name##_##bytes(void *p, uint##bits##_t value, int order)                              \
	{                                                                                                    \
		uint32_t *word = word_of(p, bytes), seen = __atomic_load_n(word, __ATOMIC_RELAXED), next;    \
		unsigned shift = shift_of(p);                                                                \
		uint32_t mask = (uint32_t)UINT##bits##_MAX << shift;                                         \
		uint##bits##_t old;                                                                          \
                                                                                                             \
		(void)order;                                                                                 \
		do {                                                                                         \
			old = (uint##bits##_t)(seen >> shift);                                               \
			next = (uint32_t)(uint##bits##_t)(expression) << shift;                              \
		} while (!swap(word, &seen, (seen & ~mask) | next));                                         \
		return old;                                                                                  \
	}

/* COMPARE(bits, bytes): __atomic_compare_exchange_<bytes>(). */
#define COMPARE(bits, bytes)                                                                                 \
	bool compare_exchange_##bytes(void *p, void *expected, uint##bits##_t value, bool weak, int yes,     \
	        int no) __asm__("__atomic_compare_exchange_" #bytes);                                        \
	bool compare_exchange_##bytes(                                                                       \
	        void *p, void *expected, uint##bits##_t value, bool weak, int yes, int no)                   \
	{                                                                                                    \
		uint32_t *word = word_of(p, bytes), seen = __atomic_load_n(word, __ATOMIC_RELAXED);          \
		unsigned shift = shift_of(p);                                                                \
		uint32_t mask = (uint32_t)UINT##bits##_MAX << shift;                                         \
		uint##bits##_t *want = expected;                                                             \
                                                                                                             \
		(void)weak, (void)yes, (void)no;                                                             \
		while ((uint##bits##_t)(seen >> shift) == *want)                                             \
			if (swap(word, &seen, (seen & ~mask) | (uint32_t)value << shift))                    \
				return true;                                                                 \
		*want = (uint##bits##_t)(seen >> shift);                                                     \
		return false;                                                                                \
	}

#define ALL(bits, bytes)                                                                                     \
	FETCH(bits, bytes, exchange, value)                                                                  \
	FETCH(bits, bytes, fetch_add, old + value)                                                           \
	FETCH(bits, bytes, fetch_sub, old - value)                                                           \
	FETCH(bits, bytes, fetch_and, old &value)                                                            \
	FETCH(bits, bytes, fetch_or, old | value)                                                            \
	FETCH(bits, bytes, fetch_xor, old ^ value)                                                           \
	FETCH(bits, bytes, fetch_nand, ~(old & value))                                                       \
	COMPARE(bits, bytes)

ALL(8, 1)
ALL(16, 2)
