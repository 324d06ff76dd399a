/* SPDX-License-Identifier: MIT */
#ifndef TEST_COUNTERS_H
#define TEST_COUNTERS_H

/*
 * Counting what a process holds, to show that a scenario leaks nothing.
 *
 *	struct test_counts before;
 *
 *	test_counts_take(&before);
 *	... the scenario, up to and including its last close ...
 *	test_counts_same(&before);
 *
 * The counts are of the whole process: no other thread may open or map meanwhile. What libraries open once
 *and keep must have been opened before the first take: run the scenario once beforehand.
 */

struct test_counts {
	unsigned fds;      /* open descriptors */
	unsigned mappings; /* mappings of memfds, device files and anonymous inodes, and MAP_SHARED ones */
	unsigned blocks;   /* live heap blocks allocated by the program's own calls, see allocs.h */
	unsigned children; /* child processes, zombies included */
};

/* Stores what the process holds now. Fails the running cmocka test if /proc cannot be read. */
void test_counts_take(struct test_counts *counts);

/* Fails the running cmocka test, naming the count, if the process holds more or less than *before. */
void test_counts_same(const struct test_counts *before);

#endif
