/* SPDX-License-Identifier: MIT */
/* Bad: writes outside every buffer, at 32 TiB + 0x10. PAGE fault, access WRITE. */
#include <rvx1/kernel.h>

#define OUTSIDE ((32ull << 40) + 0x10)

void write_outside(const void *p)
{
	(void)p;
	*(volatile uint64_t *)OUTSIDE = 1;
}

RVX1_KERNEL(write_outside, void, 0, 0);
