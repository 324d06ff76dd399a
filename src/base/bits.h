/* SPDX-License-Identifier: MIT */
/*
 * Bits and sums of 64-bit numbers that say when they overflow.
 *
 * Pure functions: any thread, no state. A function that can overflow answers false then and leaves its
 * output untouched; the output pointer may alias an input.
 */
#ifndef RIG_BITS_H
#define RIG_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define RIG_BIT64(n) (UINT64_C(1) << (n))

#define RIG_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* The power of two one past 2^64 has no u64; every width a mask can have is 0..64. */
enum { RIG_BITS_U64 = 64 };

/* Exactly one bit of `v` is set (0 is no power of two). */
static inline bool rig_is_pow2(uint64_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

/* Index of the highest set bit: floor(log2 v). `v` is not 0. */
static inline unsigned rig_ilog2(uint64_t v)
{
	return (unsigned)(RIG_BITS_U64 - 1 - __builtin_clzll(v));
}

/* Index of the lowest set bit. `v` is not 0. */
static inline unsigned rig_lowest_bit(uint64_t v)
{
	return (unsigned)__builtin_ctzll(v);
}

/* The low `n` bits set; n is 0..64. */
static inline uint64_t rig_mask64(unsigned n)
{
	return n >= RIG_BITS_U64 ? UINT64_MAX : RIG_BIT64(n) - 1;
}

static inline bool rig_add_u64(uint64_t a, uint64_t b, uint64_t *sum)
{
	uint64_t r;

	if (__builtin_add_overflow(a, b, &r))
		return false;
	*sum = r;
	return true;
}

/* `align` is a power of two in this function and the two below. */
static inline bool rig_is_aligned(uint64_t v, uint64_t align)
{
	return (v & (align - 1)) == 0;
}

static inline uint64_t rig_align_down(uint64_t v, uint64_t align)
{
	return v & ~(align - 1);
}

static inline bool rig_align_up(uint64_t v, uint64_t align, uint64_t *up)
{
	uint64_t r;

	if (!rig_add_u64(v, align - 1, &r))
		return false;
	*up = rig_align_down(r, align);
	return true;
}

/* Ceiling of v / by, without overflow. `by` is not 0. */
static inline uint64_t rig_div_up(uint64_t v, uint64_t by)
{
	return v / by + (v % by != 0);
}

/* [at, at + bytes) lies in [0, limit): the check of a request against a size, at any input. */
static inline bool rig_span_fits(uint64_t at, uint64_t bytes, uint64_t limit)
{
	return at <= limit && bytes <= limit - at;
}

static inline uint64_t rig_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t rig_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
