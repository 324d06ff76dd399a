/* SPDX-License-Identifier: MIT */
/* y = a x + y for one chunk of two vectors of floats, a thread an element. */
#include <rvx1/kernel.h>

struct axpy {
	uint64_t x, y; /* addresses of count floats */
	uint32_t count;
	float a;
};

void axpy(const struct axpy *p)
{
	uint64_t i = rvx1_global_id(0);

	if (i < p->count)
		((float *)p->y)[i] += p->a * ((const float *)p->x)[i];
}

RVX1_KERNEL(axpy, struct axpy, 0, 0);
