/* SPDX-License-Identifier: MIT */
/* Bad: thread 0 ends, the others wait for it at a barrier. BARRIER fault with two threads a group or more. */
#include <rvx1/kernel.h>

void barrier_short(const void *p)
{
	(void)p;
	if (rvx1_thread_id(0))
		rvx1_barrier();
}

RVX1_KERNEL(barrier_short, void, 0, 0);
