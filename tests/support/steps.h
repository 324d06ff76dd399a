/* SPDX-License-Identifier: MIT */
#ifndef TEST_STEPS_H
#define TEST_STEPS_H

/*
 * Counting what one thread executes between two marks, exactly: the program is run by steps of one
 * instruction (ptrace), and each is looked at before it is executed. Threads that it starts run freely.
 *
 *	in the program: test_steps_mark(); ... what is counted ...; test_steps_mark();
 *	in the test:    test_steps_run((char *[]){"/proc/self/exe", "a", NULL}, &steps)
 *
 * The marks are system calls: a few instructions of theirs count, none of them locked or a fence.
 */

#include <stdbool.h>

enum { TEST_STEPS_WIDTHS = 6, TEST_STEPS_WATCHED = 512 };

struct test_steps {
	unsigned long instructions;
	unsigned locked;                    /* read-modify-writes of memory: a lock prefix, or xchg */
	unsigned fences;                    /* mfence, and what serializes: cpuid, serialize */
	unsigned calls;                     /* system calls */
	unsigned stores[TEST_STEPS_WIDTHS]; /* to what is watched, by width: of 1, 2, 4, 8, 16, 32 bytes */
};

/* The next runs watch this memory, which the test shares with the program (mapped of a descriptor that the
   program inherits): each change of it is a store, as wide as what changed. A store of what was there is not
   seen. */
void test_steps_watch(const void *memory, unsigned bytes);

/* Whether this machine's instructions are known here. */
bool test_steps_can(void);

/* Once before what is counted, once after, in the first thread. */
void test_steps_mark(void);

/* Runs the program to its end and counts. Its exit status; negative errno if it could not be run or traced
   (-EPERM where ptrace is forbidden), -EPROTO if it did not come by two marks or ended by a signal. */
int test_steps_run(char *const argv[], struct test_steps *out);

/* Adds one instruction, of which `bytes` holds the first `count`. Pure. */
void test_steps_add(struct test_steps *steps, const unsigned char *bytes, unsigned count);

#endif
