/* SPDX-License-Identifier: MIT */
/*
 * The MMU of the engines: Sv48 tables in board memory (manual, section 6). A pure walk; who caches its
 * answers forgets them when an invalidation says so.
 */
#ifndef RVX_MMU_H
#define RVX_MMU_H

#include "rvx_memory.h"
#include "rvx1/regs.h"

#include <stdbool.h>
#include <stdint.h>

/* What one leaf maps: [first, first + bytes) from `address` on. `first` is sign-extended; bytes 0:
 * nothing. */
struct rvx_extent {
	uint64_t first;
	uint64_t bytes; /* less than the leaf's size where board memory ends inside it */
	uint64_t address;
	bool system;   /* `address` is a bus address, else a board address */
	uint32_t leaf; /* RVX1_PTE_R, _W, _X of the leaf */
};

/*
 * The leaf that maps `va` for that access. False: a PAGE fault. Tables are read as they are now; whatever
 * they hold, at most four entries are.
 */
bool rvx_mmu_walk(const struct rvx_memory *memory, uint64_t root, uint64_t va, enum rvx1_access access,
        struct rvx_extent *out);

/* Whether `extent` (bytes 0 allowed) maps va for that access. */
bool rvx_extent_serves(const struct rvx_extent *extent, uint64_t va, enum rvx1_access access);

#endif
