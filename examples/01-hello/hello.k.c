/* SPDX-License-Identifier: MIT */
/* Doubles every number of a buffer, one thread a number. */
#include <rvx1/kernel.h>

struct hello {
	uint64_t numbers; /* address of count 32-bit numbers */
	uint32_t count;
};

void hello(const struct hello *p)
{
	uint32_t *numbers = (uint32_t *)p->numbers;
	uint64_t i = rvx1_global_id(0);

	if (i < p->count)
		numbers[i] *= 2;
}

RVX1_KERNEL(hello, struct hello, 0, 0);
