/* SPDX-License-Identifier: MIT */
/* Good: takes its time, then makes a number of the last one so that only one order of launches gives the
 * right one. One thread. */
#include <rvx1/kernel.h>

struct spin {
	uint64_t number; /* address of 64 bits, which become 3 times what they were and `add` */
	uint64_t loops, add;
};

void spin(const struct spin *p)
{
	uint64_t *number = (uint64_t *)p->number, seen = *number;

	for (uint64_t i = 0; i < p->loops; i++)
		__asm__ volatile("");
	*number = 3 * seen + p->add;
}

RVX1_KERNEL(spin, struct spin, 1, 0);
