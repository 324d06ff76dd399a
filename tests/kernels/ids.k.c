/* SPDX-License-Identifier: MIT */
/* Good: every thread writes what it is told about itself, 16 words at its place in the grid (linear group
 * index times threads a group plus linear thread index). */
#include <rvx1/kernel.h>

#define WORDS 16

struct ids {
	uint64_t out;      /* address of capacity * 16 words of 32 bits */
	uint32_t capacity; /* threads that out has room for */
};

static uint64_t linear(uint32_t (*index)(unsigned d), uint32_t (*size)(unsigned d))
{
	return index(0) + (uint64_t)size(0) * (index(1) + (uint64_t)size(1) * index(2));
}

void ids(const struct ids *p)
{
	uint32_t threads = rvx1_group_size(0) * rvx1_group_size(1) * rvx1_group_size(2);
	uint64_t i =
	        linear(rvx1_group_id, rvx1_grid_size) * threads + linear(rvx1_thread_id, rvx1_group_size);
	uint32_t *out = (uint32_t *)p->out + WORDS * i;

	if (i >= p->capacity)
		return;
	for (unsigned d = 0; d < 3; d++) {
		out[d] = rvx1_thread_id(d);
		out[3 + d] = rvx1_group_id(d);
		out[6 + d] = rvx1_group_size(d);
		out[9 + d] = rvx1_grid_size(d);
	}
	out[12] = rvx1_shared_bytes();
	out[13] = (uint32_t)i;
	out[14] = rvx1_thread_id(3);
	out[15] = 0x1D5;
}

RVX1_KERNEL(ids, struct ids, 0, 0);

/* Of the same parameters, without a record: nothing is known of it. */
void ids_unstated(const struct ids *p)
{
	ids(p);
}
