/* SPDX-License-Identifier: MIT */
/* The kernel of rigctl bench, which does nothing. */
#include <rvx1/kernel.h>

struct nothing {
	uint64_t unused;
};

void nothing(const struct nothing *p)
{
	(void)p;
}

RVX1_KERNEL(nothing, struct nothing, 1, 0);
