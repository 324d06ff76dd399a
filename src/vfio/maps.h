/* SPDX-License-Identifier: MIT */
#ifndef RIG_MAPS_H
#define RIG_MAPS_H

/*
 * The list of a function's DMA mappings and the IOVAs that are free. Private to src/vfio. It sends nothing:
 * dma.c does, and keeps the list in step.
 *
 * Threads: any; every call takes the list's own lock for a short time and never blocks on the far side.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "range.h"

struct rig_map {
	uint64_t iova, bytes;
	unsigned prot; /* RIG_DMA_* */
	unsigned char *host;
	bool pinned; /* the caller's own memory */
	bool ours;   /* host was mapped by rig_dma_map_fd */
};

struct rig_maps {
	pthread_mutex_t lock;
	struct rig_map *at; /* sorted by iova */
	size_t count, room;
	struct rig_ranges free;
	uint64_t page;  /* granule */
	uint64_t limit; /* mappings */
	uint64_t base;  /* where IOVAs are looked for first */
	uint64_t mask;  /* the last address that may be used */
	uint64_t mapped_bytes, pinned_bytes, served, refused;
	bool denied; /* no access any more */
};

/* ranges: what may be mapped; moved into maps, also on failure. The first granule is never used: an address
 * of 0 in a device's descriptor stays an error. */
int rig_maps_init(
        struct rig_maps *maps, struct rig_ranges *ranges, uint64_t page, uint64_t limit, uint64_t base);
void rig_maps_fini(struct rig_maps *maps);

/* -EINVAL: bits not 12..64. -EBUSY: a mapping lies outside. */
int rig_maps_set_mask(struct rig_maps *maps, unsigned bits);

/* Takes an IOVA at a multiple of align for m->bytes and lists the mapping; m->iova is set. -ENOSPC. */
int rig_maps_add(struct rig_maps *maps, struct rig_map *m, uint64_t align);

/* Lists the mapping at the address it has, m->iova. -EEXIST: overlaps another. -EINVAL: beyond the mask.
 * -ENOSPC. */
int rig_maps_add_at(struct rig_maps *maps, const struct rig_map *m);

/* New ranges that may be mapped, moved into maps: what is mapped now is taken out of them. -ENOMEM leaves the
 * old. */
int rig_maps_renew(struct rig_maps *maps, struct rig_ranges *ranges);

/* Delists exactly this mapping and frees its addresses. -ENOENT. */
int rig_maps_remove(struct rig_maps *maps, uint64_t iova, uint64_t bytes, struct rig_map *was);

/* What is listed there is mapped no more: every access is refused, and the addresses stay taken until the
 * mapping is delisted. */
void rig_maps_revoke(struct rig_maps *maps, uint64_t iova, uint64_t bytes);

/* Any mapping, for tear-down. false: none is left. */
bool rig_maps_last(struct rig_maps *maps, struct rig_map *out);

/* Copies out of and into mapped memory for a device that has no other way to it. The range may span mappings
 * that touch. All of it or nothing: -EFAULT (not mapped), -EACCES (prot forbids it). An aligned write of 8
 * bytes is one store with release order, an aligned read of 8 bytes one load with acquire order: words that
 * threads watch. */
int rig_maps_read(struct rig_maps *maps, uint64_t iova, void *buf, uint64_t len);
int rig_maps_write(struct rig_maps *maps, uint64_t iova, const void *buf, uint64_t len);

/* Accesses under way are over when it returns, and later ones are refused: -EACCES. */
void rig_maps_deny(struct rig_maps *maps);

#endif
