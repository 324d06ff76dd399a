/* SPDX-License-Identifier: MIT */
/* Bad: executes bytes that are no instructions. ILLEGAL fault at `bytes`. */
#include <rvx1/kernel.h>

__attribute__((section(".text.bytes"))) const uint32_t bytes[] = {0xFFFFFFFF, 0xFFFFFFFF};

void garbage(const void *p)
{
	uint64_t to = (uint64_t)bytes;

	(void)p;
	__asm__ volatile("" : "+r"(to));
	((void (*)(void))to)();
}

RVX1_KERNEL(garbage, void, 0, 0);
