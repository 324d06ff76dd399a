/* SPDX-License-Identifier: MIT */
/* What the compiler may call although there is no C library. */
#include <stddef.h>

void *memset(void *to, int byte, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n);

void *memset(void *to, int byte, size_t n)
{
	unsigned char *t = to;

	while (n--)
		*t++ = (unsigned char)byte;
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	while (n--)
		*t++ = *f++;
	return to;
}
