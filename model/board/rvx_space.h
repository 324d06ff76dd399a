/* SPDX-License-Identifier: MIT */
/*
 * The address space that the engines share: board memory, system memory and the root of the tables between
 * them. System memory as the function reaches it: by address where the client shared a descriptor, by
 * transfer otherwise.
 */
#ifndef RVX_SPACE_H
#define RVX_SPACE_H

#include "rvx_memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Calls, so that engines can be tested without a client. All mandatory. Bus addresses; len > 0. Never called
 * from inside a client's request. */
struct rvx_dma {
	void *ctx;

	/* Host address of [bus, bus + len), valid until the mapping goes; NULL: it takes transfers, or
	 * nothing answers. */
	void *(*at)(void *ctx, uint64_t bus, uint64_t len, bool readable, bool writable);

	/* 0, or a negative errno: nothing answered, and `to` is unspecified. */
	int (*read)(void *ctx, uint64_t bus, void *to, uint64_t len);
	int (*write)(void *ctx, uint64_t bus, const void *from, uint64_t len);
};

struct rvx_space {
	struct rvx_memory *memory;
	const struct rvx_dma *dma;
	uint64_t root; /* PT_ROOT */
};

#endif
