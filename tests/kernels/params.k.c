/* SPDX-License-Identifier: MIT */
/* Good: stores all of its parameters, which are as many as a launch can have. One thread. */
#include <rvx1/kernel.h>

struct params {
	uint64_t out; /* address of 511 words of 64 bits: those that follow */
	uint64_t rest[511];
};

void params(const struct params *p)
{
	uint64_t *out = (uint64_t *)p->out;

	for (unsigned i = 0; i < 511; i++)
		out[i] = p->rest[i];
}

RVX1_KERNEL(params, struct params, 1, 0);
