/* SPDX-License-Identifier: MIT */
#ifndef RIG_ARENA_H
#define RIG_ARENA_H

/*
 * Arenas: large pieces of host memory mapped for the device once and handed out in small pieces by a TLSF
 * allocator. Private to src/vfio; the functions of dma.h stand on it. Every call with the function's dma_lock
 * held.
 *
 * Arenas grow: the first is a 64th of the step, each next one as large as all before it, up to the step. An
 * allocation asks each at most once, the oldest first, so that the newest become empty. An empty one goes
 * back to the system if another is empty already, or if it is larger than the step: a request above that gets
 * one of its size, as does what is to lie alone.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hugemem.h"

struct rig_dma;
struct rig_pci;
struct rig_tlsf;

struct rig_arena {
	struct rig_arena *next;
	struct rig_hugemem mem;
	uint64_t iova;
	bool alone;              /* of one piece, and no other */
	struct rig_tlsf *pieces; /* in IOVAs */
};

struct rig_arenas {
	struct rig_arena *first; /* the oldest */
	uint64_t step, limit;    /* limit 0: none */
	uint64_t bytes;
	char pages[RIG_HUGEMEM_TEXT_BYTES]; /* what the last one is made of */
};

int rig_arena_alloc(struct rig_pci *f, uint64_t bytes, uint64_t align, struct rig_dma *out);
int rig_arena_alloc_alone(struct rig_pci *f, uint64_t bytes, struct rig_dma *out);
/* spare: its arena may stay, empty, for what is asked next. */
void rig_arena_free(struct rig_pci *f, struct rig_dma *dma, bool spare);
void rig_arenas_fini(struct rig_pci *f);

#endif
