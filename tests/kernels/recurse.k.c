/* SPDX-License-Identifier: MIT */
/* Bad: recurses through the end of its stack. PAGE fault, access WRITE, in the guard below the stack. */
#include <rvx1/kernel.h>

static uint64_t deeper(uint64_t n)
{
	uint64_t frame[8] = {n};

	__asm__ volatile("" : : "r"(frame) : "memory");
	return n == UINT64_MAX ? 0 : deeper(n + 1) + frame[n % 8];
}

void recurse(const void *p)
{
	__asm__ volatile("" : : "r"(deeper((uint64_t)p)));
}

RVX1_KERNEL(recurse, void, 0, 0);
