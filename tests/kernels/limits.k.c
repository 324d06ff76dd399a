/* SPDX-License-Identifier: MIT */
/* Good: a kernel that states all its limits, and does nothing. */
#include <rvx1/kernel.h>

struct limits {
	uint64_t a;
	uint32_t b, c;
	uint64_t d;
};

void limits(const struct limits *p)
{
	(void)p;
}

RVX1_KERNEL(limits, struct limits, 64, 1024);
