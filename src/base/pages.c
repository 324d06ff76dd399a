/* SPDX-License-Identifier: MIT */
#include "pages.h"

#include <stdint.h>
#include <sys/mman.h>

#define PAGE_BYTES ((size_t)4096)
#define HUGE_BYTES ((size_t)2 << 20)

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void *map_huge(size_t bytes)
{
	char *at = map(bytes + HUGE_BYTES);
	size_t before;

	if (!at)
		return NULL;
	before = (HUGE_BYTES - (uintptr_t)at % HUGE_BYTES) % HUGE_BYTES;
	if (before)
		(void)munmap(at, before);
	bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (before < HUGE_BYTES)
		(void)munmap(at + before + bytes, HUGE_BYTES - before);
	(void)madvise(at + before, bytes, MADV_HUGEPAGE);
	return at + before;
}

void *rig_pages_map(size_t bytes)
{
	return bytes < HUGE_BYTES || bytes > SIZE_MAX / 2 ? map(bytes) : map_huge(bytes);
}

void rig_pages_unmap(void *at, size_t bytes)
{
	if (at)
		(void)munmap(at, bytes);
}
