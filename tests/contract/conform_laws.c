/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "conform_groups.h"

const struct conform_group *const conform_groups[] = {&conform_opening, &conform_facts, &conform_memory,
        &conform_room, &conform_work, &conform_code, &conform_times, &conform_ending, &conform_threads,
        &conform_runtime, NULL};

const struct conform_law *conform_find(const char *name)
{
	const struct conform_group *const *group;
	size_t i;

	for (group = conform_groups; *group; group++)
		for (i = 0; i < (*group)->n; i++)
			if (!strcmp((*group)->laws[i].name, name))
				return &(*group)->laws[i];
	return NULL;
}
