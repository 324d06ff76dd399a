/* SPDX-License-Identifier: MIT */
/* Bad: ebreak. TRAP fault. */
#include <rvx1/kernel.h>

void trap(const void *p)
{
	(void)p;
	__asm__ volatile("ebreak");
}

RVX1_KERNEL(trap, void, 0, 0);
