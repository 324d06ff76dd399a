/* SPDX-License-Identifier: MIT */
/* Good: the sum of a group's numbers by halves in shared memory, whose bytes must start as zero. */
#include <rvx1/kernel.h>

#define MOST_THREADS 1024

struct shared {
	uint64_t in;    /* address of one 32-bit number a thread of the grid */
	uint64_t out;   /* address of one sum a group, 32 bits */
	uint64_t dirty; /* address of a 32-bit count of shared words that were not zero at the start */
};

void shared(const struct shared *p)
{
	uint32_t *cells = rvx1_shared(), n = rvx1_group_size(0), me = rvx1_thread_id(0);

	if (cells[me])
		__atomic_fetch_add((uint32_t *)p->dirty, 1, __ATOMIC_RELAXED);
	cells[me] = ((const uint32_t *)p->in)[rvx1_global_id(0)];
	rvx1_barrier();
	for (; n > 1; n = (n + 1) / 2) {
		uint32_t half = (n + 1) / 2;

		if (me < n / 2)
			cells[me] += cells[me + half];
		rvx1_barrier();
	}
	if (me == 0)
		((uint32_t *)p->out)[rvx1_group_id(0)] = cells[0];
}

RVX1_KERNEL(shared, struct shared, MOST_THREADS, MOST_THREADS * 4);
