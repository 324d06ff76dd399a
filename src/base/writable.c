/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "writable.h"

enum { LINE = 512 };

/* How far into [from, to) the process may; the list is in the order of addresses. */
static uint64_t reach(FILE *maps, uint64_t from, uint64_t to)
{
	char rights[8], line[LINE];
	uint64_t start, end;

	while (from < to && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, rights) == 3 && start <= from &&
		        end > from) {
			if (rights[0] != 'r' || rights[1] != 'w')
				break;
			from = end;
		}
	return from;
}

bool rig_is_writable(const void *at, uint64_t bytes)
{
	uint64_t from = (uintptr_t)at;
	bool writable;
	FILE *maps;

	if (bytes > UINT64_MAX - from)
		return false;
	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return true;
	writable = reach(maps, from, from + bytes) >= from + bytes;
	(void)fclose(maps);
	return writable;
}
