/* SPDX-License-Identifier: MIT */
/* Seeded random numbers, and operands where arithmetic goes wrong: limits, halves, cancellations, NaNs. */
#ifndef RVVALUE_H
#define RVVALUE_H

#include <stdbool.h>
#include <stdint.h>

struct rvrandom {
	uint64_t state;
};

uint64_t rvrandom_next(struct rvrandom *random);
/* In [0, limit), limit > 0. */
uint32_t rvrandom_below(struct rvrandom *random, uint32_t limit);
/* True `percent` times in a hundred. */
bool rvrandom_chance(struct rvrandom *random, unsigned percent);

uint64_t rvvalue_int(struct rvrandom *random);

/* Two integers; often a pair that division treats specially. */
void rvvalue_ints(struct rvrandom *random, uint64_t out[2]);

/* Three floating-point operands related to each other, as f registers hold them. Now and then a single that
 * is not boxed. */
void rvvalue_singles(struct rvrandom *random, uint64_t out[3]);
void rvvalue_doubles(struct rvrandom *random, uint64_t out[3]);

#endif
