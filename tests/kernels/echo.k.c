/* SPDX-License-Identifier: MIT */
/* Good: stores its parameters of every type, each in 64 bits, and adds one to the bytes of a buffer. One
 * thread. */
#include <rvx1/kernel.h>

struct echo {
	uint32_t a;
	uint64_t out; /* address of 6 words of 64 bits */
	int32_t b;
	float c;
	uint64_t d;
	double e;
	uint64_t bytes; /* address of `count` bytes */
	uint32_t count;
};

void echo(const struct echo *p)
{
	uint64_t *out = (uint64_t *)p->out;
	uint8_t *bytes = (uint8_t *)p->bytes;

	out[0] = p->a;
	out[1] = (uint64_t)(int64_t)p->b;
	out[2] = (uint64_t)(int64_t)(p->c * 4);
	out[3] = p->d;
	out[4] = (uint64_t)(int64_t)(p->e * 8);
	out[5] = p->count;
	for (uint32_t i = 0; i < p->count; i++)
		bytes[i]++;
}

RVX1_KERNEL(echo, struct echo, 1, 0);
