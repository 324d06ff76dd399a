/* SPDX-License-Identifier: MIT */
/* Bad: reads address 0. PAGE fault, access READ. */
#include <rvx1/kernel.h>

void read_null(const void *p)
{
	uint64_t address = 0;

	(void)p;
	__asm__ volatile("" : "+r"(address)); /* the compiler must not know the address */
	*(volatile uint32_t *)address;
}

RVX1_KERNEL(read_null, void, 0, 0);
