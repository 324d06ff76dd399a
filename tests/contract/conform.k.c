/* SPDX-License-Identifier: MIT */
/* The functions of rig_conform.h for RVX-1. */
#include <rvx1/kernel.h>

struct add {
	uint64_t dst;
	uint32_t add, reserved;
};

struct move {
	uint64_t dst, src;
};

static uint64_t linear(uint32_t (*index)(unsigned d), uint32_t (*size)(unsigned d))
{
	return index(0) + (uint64_t)size(0) * (index(1) + (uint64_t)size(1) * index(2));
}

void conform_add(const struct add *p)
{
	uint32_t threads = rvx1_group_size(0) * rvx1_group_size(1) * rvx1_group_size(2);
	uint64_t i =
	        linear(rvx1_group_id, rvx1_grid_size) * threads + linear(rvx1_thread_id, rvx1_group_size);

	((uint32_t *)p->dst)[i] += p->add;
}

RVX1_KERNEL(conform_add, struct add, 64, 0);

void conform_move(const struct move *p)
{
	*(uint32_t *)p->dst = *(const uint32_t *)p->src;
}

RVX1_KERNEL(conform_move, struct move, 1, 0);

void conform_forever(const void *p)
{
	(void)p;
	for (;;)
		__asm__ volatile("");
}

RVX1_KERNEL(conform_forever, void, 0, 0);

void conform_fault(const void *p)
{
	uint64_t address = 0;

	(void)p;
	__asm__ volatile("" : "+r"(address)); /* the compiler must not know the address */
	*(volatile uint32_t *)address;
}

RVX1_KERNEL(conform_fault, void, 0, 0);
