/* SPDX-License-Identifier: MIT */
/* Bad: writes over its own code. PAGE fault, access WRITE, where a loader maps segments by their flags (as
 * the tests' own does; the driver's linear map lets it pass). */
#include <rvx1/kernel.h>

void write_code(const void *p)
{
	(void)p;
	*(volatile uint32_t *)write_code = 0;
}

RVX1_KERNEL(write_code, void, 0, 0);
