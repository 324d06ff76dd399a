/* SPDX-License-Identifier: MIT */
/* Bad: never ends. */
#include <rvx1/kernel.h>

void loop_forever(const void *p)
{
	(void)p;
	for (;;)
		__asm__ volatile("");
}

RVX1_KERNEL(loop_forever, void, 0, 0);
