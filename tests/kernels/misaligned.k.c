/* SPDX-License-Identifier: MIT */
/* Bad: an atomic access at an odd address of its stack. MISALIGNED fault. */
#include <rvx1/kernel.h>

void misaligned(const void *p)
{
	uint64_t words[2] = {0};
	uint64_t odd = (uint64_t)words + 1;

	(void)p;
	__asm__ volatile("amoadd.w zero, zero, (%0)" : : "r"(odd) : "memory");
}

RVX1_KERNEL(misaligned, void, 0, 0);
