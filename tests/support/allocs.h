/* SPDX-License-Identifier: MIT */
#ifndef TEST_ALLOCS_H
#define TEST_ALLOCS_H

/*
 * The allocation hook. A program that links test_support has its own calls of malloc, calloc, realloc,
 *reallocarray, aligned_alloc, posix_memalign, strdup, strndup, asprintf and vasprintf counted (by the
 *linker's --wrap; calls inside shared libraries are not seen). Any thread may call; counts are of the
 *process.
 *
 * For "nothing allocates here":
 *	uint64_t n = test_allocs();
 *	... ; assert_int_equal(test_allocs() - n, 0);
 * For "the k-th allocation fails, for every k":
 *	for (uint64_t k = 1;; k++) {
 *		test_allocs_fail_at(k);
 *		int r = scenario();
 *		if (!test_allocs_failed())	(the run had fewer than k allocations: r must be success)
 *			break;
 *	}
 *	test_allocs_fail_at(0);
 */

#include <stdbool.h>
#include <stdint.h>

/* Allocations so far, failed ones included. */
uint64_t test_allocs(void);

/* The k-th allocation from now (k >= 1) answers no memory, once; 0: none does. Clears test_allocs_failed().
 */
void test_allocs_fail_at(uint64_t k);

/* Whether the allocation asked for by the last test_allocs_fail_at has failed. */
bool test_allocs_failed(void);

/* Blocks allocated by the program's own calls and not freed by them. */
unsigned test_allocs_live(void);

#endif
