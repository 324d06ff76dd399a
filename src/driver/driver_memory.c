/* SPDX-License-Identifier: MIT */
/* Regions: board memory from the pools, pinned memory from the arenas, callers' own memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "device.h"

int rig_dev_pools_open(struct rig_dev *dev)
{
	uint32_t i;
	int err;

	for (i = 0; i < dev->facts.npools; i++) {
		const struct rig_board_pool *pool = &dev->facts.pools[i];

		if (!pool->bytes)
			continue;
		err = rig_tlsf_open(&dev->pools[i], pool->pa, pool->bytes, RIG_PAGE);
		if (err)
			return rig_error_set(err, "a pool of board memory at 0x%" PRIx64 " + 0x%" PRIx64,
			        pool->pa, pool->bytes);
	}
	return rig_dev_bus_exclude(dev);
}

void rig_dev_pools_close(struct rig_dev *dev)
{
	uint32_t i;

	rig_dev_drop_kept(dev);
	for (i = 0; i < RIG_BOARD_POOLS; i++) {
		rig_tlsf_close(dev->pools[i]);
		dev->pools[i] = NULL;
	}
}

static bool pool_serves(const struct rig_board_pool *pool, enum rig_pool_kind kind, bool visible)
{
	if (kind == RIG_POOL_BOOT)
		return pool->boot;
	return !pool->boot && pool->visible == visible;
}

static int take_from(struct rig_dev *dev, enum rig_pool_kind kind, bool visible, uint64_t bytes,
        uint64_t align, uint64_t *pa)
{
	uint32_t i;

	for (i = 0; i < dev->facts.npools; i++)
		if (dev->pools[i] && pool_serves(&dev->facts.pools[i], kind, visible) &&
		        !rig_tlsf_alloc(dev->pools[i], bytes, align, pa))
			return 0;
	return -ENOMEM;
}

int rig_dev_take(struct rig_dev *dev, enum rig_pool_kind kind, uint64_t bytes, uint64_t align, uint64_t *pa)
{
	/* What the host cannot see goes first, so that what it can see stays for those who ask for it. */
	if (kind == RIG_POOL_ANY && !take_from(dev, kind, false, bytes, align, pa))
		return 0;
	return take_from(dev, kind, true, bytes, align, pa);
}

void rig_dev_give(struct rig_dev *dev, uint64_t pa)
{
	uint32_t i;

	for (i = 0; i < dev->facts.npools; i++) {
		const struct rig_board_pool *pool = &dev->facts.pools[i];

		if (pa >= pool->pa && pa - pool->pa < pool->bytes)
			rig_tlsf_free(dev->pools[i], pa);
	}
}

uint64_t rig_dev_memory_free(struct rig_dev *dev)
{
	uint64_t sum = 0;
	uint32_t i;

	pthread_mutex_lock(&dev->lock);
	for (i = 0; i < dev->facts.npools; i++)
		if (dev->pools[i] && !dev->facts.pools[i].boot)
			sum += rig_tlsf_free_bytes(dev->pools[i]);
	pthread_mutex_unlock(&dev->lock);
	return sum;
}

static int shared_on_board(struct rig_dev *dev, uint64_t bytes, bool user, struct rig_shared *shared)
{
	int err = rig_dev_take(dev, user ? RIG_POOL_VISIBLE : RIG_POOL_BOOT, bytes, RIG_PAGE, &shared->pa);

	if (err)
		return err;
	shared->host = dev->facts.memory_host + shared->pa;
	shared->step_address = dev->facts.board_address + shared->pa;
	shared->va = user ? dev->facts.board_va + shared->pa : 0;
	return 0;
}

/* A piece of an arena, all of which is in the tables. */
static int take_arena(struct rig_dev *dev, uint64_t bytes, struct rig_dma *dma)
{
	int err = rig_dma_alloc(dev->pci, bytes, RIG_PAGE, dma);

	if (err)
		return err;
	err = rig_dev_map_arena(dev, dma->arena_iova, dma->arena_bytes);
	if (err)
		rig_dma_refuse(dev->pci, dma);
	return err;
}

/* Where board memory is not mapped, host memory serves, which no table maps for work unless it must reach
   it. */
static int shared_on_host(struct rig_dev *dev, uint64_t bytes, bool user, struct rig_shared *shared)
{
	int err = user ? take_arena(dev, bytes, &shared->dma)
	               : rig_dma_alloc_alone(dev->pci, bytes, &shared->dma);

	if (err)
		return err;
	shared->host = shared->dma.host;
	shared->step_address = dev->facts.system_address + shared->dma.iova;
	shared->va = user ? dev->facts.system_va + shared->dma.iova : 0;
	return 0;
}

static int shared_on_heap(uint64_t bytes, struct rig_shared *shared)
{
	shared->host = aligned_alloc(RIG_PAGE, bytes);
	shared->step_address = (uintptr_t)shared->host;
	shared->heap = true;
	return shared->host ? 0 : -ENOMEM;
}

int rig_dev_shared_alloc(struct rig_dev *dev, uint64_t bytes, bool user, struct rig_shared *shared)
{
	int err;

	memset(shared, 0, sizeof(*shared));
	if (rig_dev_is_serial(dev))
		err = shared_on_heap(bytes, shared);
	else
		err = dev->facts.memory_host ? shared_on_board(dev, bytes, user, shared)
		                             : shared_on_host(dev, bytes, user, shared);
	if (err)
		return err;
	shared->bytes = bytes;
	rig_wide_zero(shared->host, bytes); /* which may be board memory */
	return 0;
}

void rig_dev_shared_free(struct rig_dev *dev, struct rig_shared *shared)
{
	if (shared->dma.handle)
		rig_dma_free(dev->pci, &shared->dma);
	else if (shared->heap)
		free(shared->host);
	else if (shared->bytes)
		rig_dev_give(dev, shared->pa);
	memset(shared, 0, sizeof(*shared));
}

static int alloc_board(struct rig_dev *dev, struct rig_region *region)
{
	enum rig_pool_kind pool = region->kind == RIG_MAPPED ? RIG_POOL_VISIBLE : RIG_POOL_ANY;
	int err;

	if (region->kind == RIG_MAPPED && !dev->facts.memory_host)
		return -ENOMEM;
	err = rig_dev_take(dev, pool, region->bytes, RIG_PAGE, &region->pa);
	if (err && rig_dev_reap(dev))
		err = rig_dev_take(dev, pool, region->bytes, RIG_PAGE, &region->pa);
	if (err)
		return err;
	region->address = dev->facts.board_va + region->pa;
	if (region->kind == RIG_MAPPED)
		region->host = dev->facts.memory_host + region->pa;
	return 0;
}

static int alloc_pinned(struct rig_dev *dev, struct rig_region *region)
{
	int err = take_arena(dev, region->bytes, &region->dma);

	if (err)
		return err;
	region->address = dev->facts.system_va + region->dma.iova;
	region->host = region->dma.host;
	return 0;
}

/* Errors that say "none now" to the runtime; the others are the device's end. */
static bool means_no_room(int err)
{
	return err == -ENOMEM || err == -ENOSPC;
}

int rig_dev_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **out, const char **fault)
{
	struct rig_dev *dev = device;
	struct rig_region *region;
	uint64_t rounded;
	int err;

	if (!bytes || kind < RIG_DEVICE || kind > RIG_MAPPED)
		return rig_error_set(-EINVAL,
		        "alloc of %" PRIu64 " bytes of kind %d: at least 1 byte, kinds 1 to 3", bytes, kind);
	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	if (!rig_align_up(bytes, RIG_PAGE, &rounded))
		return rig_error_set(-ENOMEM, "alloc of %" PRIu64 " bytes", bytes);
	region = calloc(1, sizeof(*region));
	if (!region)
		return rig_error_set(-ENOMEM, "out of host memory");
	region->kind = kind;
	region->bytes = rounded;
	pthread_mutex_lock(&dev->lock);
	err = kind == RIG_PINNED ? alloc_pinned(dev, region) : alloc_board(dev, region);
	pthread_mutex_unlock(&dev->lock);
	if (!err) {
		*out = region;
		return 0;
	}
	free(region);
	if (means_no_room(err) && kind == RIG_PINNED)
		return rig_error_set(
		        -ENOMEM, "no room for %" PRIu64 " bytes of pinned memory: %s", rounded, rig_error());
	if (means_no_room(err))
		return rig_error_set(-ENOMEM, "no room for %" PRIu64 " bytes of %s memory", rounded,
		        kind == RIG_MAPPED ? "mapped" : "device");
	rig_dev_set_fault(dev, "allocation of %" PRIu64 " bytes failed: %s", rounded, rig_error());
	return rig_dev_fault(dev, fault);
}

/* Undoes map_host or map_peer: the tables first, then the mapping, because the device may use the one while
   it has the other. */
static int unmap_other(struct rig_dev *dev, struct rig_region *region)
{
	int err = rig_dev_unmap_system(dev, region->dma.iova, region->bytes);
	int unmapped = rig_dma_unmap(dev->pci, &region->dma);

	return err ? err : unmapped;
}

int rig_dev_free(void *device, void *at, const char **fault)
{
	struct rig_dev *dev = device;
	struct rig_region *region = at;
	bool kept;
	int err = 0;

	if (!region || region == &dev->word_region)
		return 0;
	pthread_mutex_lock(&dev->lock);
	kept = rig_dev_keep(dev, region);
	if (!kept && (region->pinned || region->peer))
		err = unmap_other(dev, region);
	else if (!kept && region->kind == RIG_PINNED)
		rig_dma_free(dev->pci, &region->dma);
	else if (!kept)
		rig_dev_give(dev, region->pa);
	pthread_mutex_unlock(&dev->lock);
	if (!kept)
		free(region);
	if (!err)
		return 0;
	rig_dev_set_fault(dev, "unmapping memory failed: %s", rig_error());
	return rig_dev_fault(dev, fault);
}

void rig_dev_locate(void *device, void *at, struct rig_location *location)
{
	const struct rig_region *region = at;

	(void)device;
	*location = (struct rig_location){
	        .has_address = region->kind != 0,
	        .address = region->address,
	        .has_host = region->host != NULL,
	        .host = region->host,
	        .handle = (uintptr_t)region,
	};
}

int rig_side_address(
        const struct rig_copy_side *side, const struct rig_run *run, uint64_t bytes, uint64_t *address)
{
	const struct rig_region *region;

	if (side->slot != RIG_FIXED) {
		*address = run->slots[side->slot].address + side->offset;
		return 0;
	}
	region = (const struct rig_region *)side->handle;
	if (!rig_span_fits(side->offset, bytes, region->bytes))
		return rig_error_set(-EINVAL,
		        "a copy of %" PRIu64 " bytes from offset %" PRIu64 " leaves a region of %" PRIu64,
		        bytes, side->offset, region->bytes);
	*address = region->address + side->offset;
	return 0;
}

static int map_host(struct rig_dev *dev, struct rig_region *region, void *host)
{
	int err = rig_dma_map_host(dev->pci, host, region->bytes, RIG_DMA_READ | RIG_DMA_WRITE, &region->dma);

	if (err)
		return err;
	err = rig_dev_map_system(dev, region->dma.iova, region->bytes);
	if (err)
		rig_dma_unmap(dev->pci, &region->dma);
	return err;
}

int rig_dev_map_host(void *device, void *host, uint64_t bytes, void **out, const char **fault)
{
	struct rig_dev *dev = device;
	struct rig_region *region;
	uint64_t rounded;
	int err;

	if (!bytes || (uintptr_t)host % RIG_PAGE || !rig_align_up(bytes, RIG_PAGE, &rounded))
		return rig_error_set(-EINVAL,
		        "map_host of %p, %" PRIu64 " bytes: from a page start, at least 1 byte", host, bytes);
	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	region = calloc(1, sizeof(*region));
	if (!region)
		return rig_error_set(RIG_NO_ROOM, "out of host memory");
	region->kind = RIG_PINNED;
	region->pinned = true;
	region->bytes = rounded;
	pthread_mutex_lock(&dev->lock);
	err = map_host(dev, region, host);
	pthread_mutex_unlock(&dev->lock);
	if (!err) {
		region->address = dev->facts.system_va + region->dma.iova;
		region->host = host;
		*out = region;
		return RIG_MAPS;
	}
	free(region);
	/* Pages that are not there or not whole for this device, or past the end of the addresses. */
	if (err == -EFAULT || err == -EINVAL)
		return RIG_NEVER_MAPS;
	if (means_no_room(err) || err == -EEXIST)
		return RIG_NO_ROOM;
	rig_dev_set_fault(dev, "mapping host memory failed: %s", rig_error());
	return rig_dev_fault(dev, fault);
}
