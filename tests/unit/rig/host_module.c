/* SPDX-License-Identifier: MIT */
/* The device of host memory as a module for rig-conform; compiled together with its driver alone. */
#include <stdio.h>

#include "rig.h"
#include "rig_conform.h"

#define MOST 8u

RIG_API const struct rig_opener *rig_conform_opener(const char *text, unsigned index);

const struct rig_opener *rig_conform_opener(const char *text, unsigned index)
{
	static struct rig_opener openers[MOST];
	static char names[MOST][16];

	(void)text;
	if (index >= MOST) {
		(void)rig_error_set(-EINVAL, "there are %u devices of host memory", MOST);
		return NULL;
	}
	(void)snprintf(names[index], sizeof(names[index]), "HOST%u", index);
	rig_host_opener(names[index], &openers[index]);
	return &openers[index];
}
