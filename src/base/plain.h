/* SPDX-License-Identifier: MIT */
#ifndef RIG_PLAIN_H
#define RIG_PLAIN_H

/* Functions of a driver (rig_edge.h) that has nothing to do there. */

#include "rig_edge.h"

/* Of one whose submit commits. */
static inline int rig_plain_commit(void *self, uint64_t value, const char **failure)
{
	(void)self;
	(void)value;
	(void)failure;
	return RIG_OK;
}

/* Of one whose room never asks to grow. */
static inline int rig_plain_grow(void *device, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        uint64_t *short_bytes, const char **fault)
{
	(void)device;
	(void)parts;
	(void)nparts;
	(void)nwaits;
	(void)fault;
	*short_bytes = 0;
	return RIG_GROWN;
}

#endif
