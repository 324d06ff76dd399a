/* SPDX-License-Identifier: MIT */
/*
 * The address space that the engines share: board memory, system memory and the root of the tables between
 * them.
 */
#ifndef RVX_SPACE_H
#define RVX_SPACE_H

#include "rvx_dma.h"
#include "rvx_memory.h"

#include <stdint.h>

struct rvx_space {
	struct rvx_memory *memory;
	const struct rvx_dma *dma;
	uint64_t root; /* PT_ROOT */
};

#endif
