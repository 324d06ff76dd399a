/* SPDX-License-Identifier: MIT */
/* Two steps of a computation on blocks of numbers, a thread a number: one machine makes the first, the other
   the second. */
#include <rvx1/kernel.h>

struct step {
	uint64_t from, to; /* addresses of count numbers */
	uint32_t count, key;
};

void first(const struct step *p)
{
	uint64_t i = rvx1_global_id(0);

	if (i < p->count)
		((uint32_t *)p->to)[i] = ((const uint32_t *)p->from)[i] * 2654435761u + p->key;
}

void second(const struct step *p)
{
	uint64_t i = rvx1_global_id(0);
	uint32_t x;

	if (i >= p->count)
		return;
	x = ((const uint32_t *)p->from)[i];
	((uint32_t *)p->to)[i] = (x ^ x >> 15) * (p->key | 1);
}

RVX1_KERNEL(first, struct step, 0, 0);
RVX1_KERNEL(second, struct step, 0, 0);
