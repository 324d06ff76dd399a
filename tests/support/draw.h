/* SPDX-License-Identifier: MIT */
#ifndef TEST_DRAW_H
#define TEST_DRAW_H

/* Numbers for tests that try many things: the same ones in every run from the same seed, any number. */
#include <stddef.h>
#include <stdint.h>

/* The next number of `state`, below `below` (> 0). A linear congruence; the upper 31 of its 64 bits serve. */
static inline uint32_t test_draw(uint64_t *state, uint32_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((*state >> 33) % below);
}

static inline void test_draw_bytes(uint64_t *state, uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)test_draw(state, 256);
}

#endif
