/* SPDX-License-Identifier: MIT */
/* Good: global variables, tables of pointers (relative relocations), calls through them, recursion, memcpy,
 * memset, and a stack used to 8 KiB. One thread. */
#include <rvx1/kernel.h>

#include <string.h>

/* out: 8 words of 64 bits: launches so far, 40 more than that, 42, 610, 'e' + 3, 14, 40, 'z' */
struct globals {
	uint64_t out;
};

static uint64_t launches;     /* zeroed memory, kept between launches */
static uint64_t started = 41; /* initialised memory */
static uint8_t scratch[300];  /* zeroed */

static uint64_t twice(uint64_t x)
{
	return 2 * x;
}

static uint64_t fibonacci(uint64_t n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static uint64_t deep(uint64_t n)
{
	uint64_t frame[16];

	for (unsigned i = 0; i < 16; i++)
		frame[i] = n + i;
	__asm__ volatile("" : : "r"(frame) : "memory");
	return n ? deep(n - 1) + frame[n % 16] - n - n % 16 + 1 : 0;
}

uint64_t (*const calls[])(uint64_t) = {twice, fibonacci};
const char *const names[] = {"zero", "one", "two", "three"};

void globals(const struct globals *p)
{
	uint64_t *out = (uint64_t *)p->out;
	char text[8];

	memset(scratch, 7, sizeof(scratch));
	memcpy(text, names[3], 6);
	out[0] = ++launches;
	out[1] = started++;
	out[2] = calls[0](21);
	out[3] = calls[1](15);
	out[4] = (uint64_t)text[4] + strlen(names[2]);
	out[5] = scratch[0] + scratch[299];
	out[6] = deep(40);
	out[7] = (uint64_t)names[0][0];
}

RVX1_KERNEL(globals, struct globals, 1, 0);
