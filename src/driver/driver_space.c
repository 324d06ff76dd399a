/* SPDX-License-Identifier: MIT */
/* The device's address space: board memory in one linear map made at boot, stacks, and system memory. */
#include <errno.h>
#include <inttypes.h>

#include "device.h"
#include "error.h"

#define WORK_FLAGS (RIG_MMU_READ | RIG_MMU_WRITE | RIG_MMU_USER)
#define POKE_BATCH 128u

static int table_alloc(void *arg, uint64_t bytes, uint64_t *pa)
{
	return rig_dev_take(arg, RIG_POOL_BOOT, bytes, bytes, pa);
}

static void table_free(void *arg, uint64_t pa, uint64_t bytes)
{
	(void)bytes;
	rig_dev_give(arg, pa);
}

/* Tables whose memory the host cannot map are written through the board, in batches. */
static void poke_run(struct rig_dev *dev, uint64_t pa, const struct rig_mmu_run *run)
{
	le64 batch[POKE_BATCH];
	struct rig_mmu_run part = *run;

	while (part.count) {
		uint64_t n = part.count < POKE_BATCH ? part.count : POKE_BATCH;
		struct rig_mmu_run now = {.first = 0, .count = n, .value = part.value, .stride = part.stride};

		rig_mmu_store64(batch, &now);
		dev->board->poke(&dev->port, pa + part.first * sizeof(le64), batch, n * sizeof(le64));
		part.first += n;
		part.count -= n;
		part.value += n * part.stride;
	}
}

static void table_store(void *arg, uint64_t pa, const struct rig_mmu_run *run)
{
	struct rig_dev *dev = arg;

	if (dev->facts.memory_host)
		rig_mmu_store64(dev->facts.memory_host + pa, run);
	else
		poke_run(dev, pa, run);
}

/* A table's entries before the entry that leads to it, because the device walks on its own. */
static void table_barrier(void *arg)
{
	(void)arg;
	rig_wc_flush();
}

static int map_pools(struct rig_dev *dev)
{
	uint32_t i;
	int err;

	for (i = 0; i < dev->facts.npools; i++) {
		const struct rig_board_pool *pool = &dev->facts.pools[i];

		if (pool->boot || !pool->bytes)
			continue;
		err = rig_mmu_map(dev->space, dev->facts.board_va + pool->pa, pool->pa, pool->bytes,
		        WORK_FLAGS | RIG_MMU_EXEC);
		if (err)
			return rig_error_set(err,
			        "the linear map of board memory 0x%" PRIx64 " + 0x%" PRIx64 " (error %d)",
			        pool->pa, pool->bytes, err);
	}
	return 0;
}

int rig_dev_space_open(struct rig_dev *dev)
{
	const struct rig_mmu_memory memory = {
	        .alloc = table_alloc,
	        .free = table_free,
	        .store = table_store,
	        .barrier = table_barrier,
	        .arg = dev,
	};
	int err;

	if (!dev->facts.format)
		return 0;
	err = rig_mmu_open(&dev->space, dev->facts.format, &memory);
	if (err)
		return rig_error_set(err, "the root page table (error %d)", err);
	err = map_pools(dev);
	return err ? err : dev->board->root(&dev->port, rig_mmu_root(dev->space));
}

void rig_dev_space_close(struct rig_dev *dev)
{
	rig_mmu_close(dev->space);
	dev->space = NULL;
	rig_ranges_fini(&dev->system);
}

static int check_bits(struct rig_dev *dev, uint64_t iova, uint64_t bytes)
{
	if (!rig_span_fits(iova, bytes, RIG_BIT64(dev->facts.system_bits)))
		return rig_error_set(-EINVAL,
		        "bus address 0x%" PRIx64 " + 0x%" PRIx64 ": the board's work reaches %u bits", iova,
		        bytes, dev->facts.system_bits);
	return 0;
}

static int map_range(struct rig_dev *dev, const struct rig_range *range)
{
	uint64_t iova = range->first, bytes = range->last - range->first + 1;
	int err = check_bits(dev, iova, bytes);

	if (err)
		return err;
	return rig_mmu_map(dev->space, dev->facts.system_va + iova, iova, bytes, WORK_FLAGS | RIG_MMU_SYSTEM);
}

static int unmap_range(struct rig_dev *dev, const struct rig_range *range)
{
	return rig_mmu_unmap(dev->space, dev->facts.system_va + range->first, range->last - range->first + 1);
}

/* The first gap of [first, last] that no arena has put into the tables; false when there is none. */
static bool next_gap(const struct rig_ranges *set, uint64_t first, uint64_t last, struct rig_range *gap)
{
	size_t i;

	for (i = 0; i < set->count && first <= last; i++) {
		if (set->at[i].last < first)
			continue;
		if (set->at[i].first > first) {
			*gap = (struct rig_range){first, rig_min_u64(last, set->at[i].first - 1)};
			return true;
		}
		first = set->at[i].last + 1;
	}
	*gap = (struct rig_range){first, last};
	return first <= last;
}

/* All gaps of [first, last], as map_system made them. */
static int unmap_gaps(struct rig_dev *dev, uint64_t first, uint64_t last)
{
	struct rig_range gap;
	int err = 0;

	while (!err && next_gap(&dev->system, first, last, &gap)) {
		err = unmap_range(dev, &gap);
		first = gap.last + 1;
	}
	return err;
}

static int map_gaps(struct rig_dev *dev, uint64_t first, uint64_t last)
{
	uint64_t start = first;
	struct rig_range gap;
	int err = 0;

	while (!err && next_gap(&dev->system, first, last, &gap)) {
		err = map_range(dev, &gap);
		if (!err)
			first = gap.last + 1;
	}
	if (err && first > start)
		unmap_gaps(dev, start, first - 1);
	return err;
}

static int tell(int err, uint64_t iova, uint64_t bytes)
{
	return rig_vfio_fail(
	        err, NULL, "page tables for bus address 0x%" PRIx64 " + 0x%" PRIx64, iova, bytes);
}

int rig_dev_map_system(struct rig_dev *dev, uint64_t iova, uint64_t bytes)
{
	int err = dev->space ? map_gaps(dev, iova, iova + bytes - 1) : 0;

	return err ? tell(err, iova, bytes) : 0;
}

int rig_dev_unmap_system(struct rig_dev *dev, uint64_t iova, uint64_t bytes)
{
	uint64_t stamp;
	int err;

	if (!dev->space)
		return 0;
	err = unmap_gaps(dev, iova, iova + bytes - 1);
	if (err)
		return tell(err, iova, bytes);
	stamp = rig_mmu_stamp(dev->space);
	err = dev->board->invalidate(&dev->port, dev->facts.system_va + iova, bytes);
	if (err)
		return tell(err, iova, bytes);
	rig_mmu_reap(dev->space, stamp);
	return 0;
}

static int map_arena(struct rig_dev *dev, uint64_t first, uint64_t last)
{
	struct rig_range gap;
	int err;

	while (next_gap(&dev->system, first, last, &gap)) {
		err = rig_ranges_add(&dev->system, gap.first, gap.last);
		if (err)
			return err;
		err = map_range(dev, &gap);
		if (err) {
			rig_ranges_sub(&dev->system, gap.first, gap.last);
			return err;
		}
		first = gap.last + 1;
	}
	return 0;
}

int rig_dev_map_arena(struct rig_dev *dev, uint64_t iova, uint64_t bytes)
{
	uint64_t whole;
	int err;

	if (!dev->space)
		return 0;
	err = rig_align_up(bytes, RIG_PAGE, &whole) ? map_arena(dev, iova, iova + whole - 1) : -ENOMEM;

	return err ? tell(err, iova, bytes) : 0;
}

int rig_dev_stacks(struct rig_dev *dev, uint32_t slots, uint64_t *short_bytes)
{
	const struct rig_board_facts *facts = &dev->facts;
	uint64_t guard = facts->stack_pitch - facts->stack_bytes;

	for (; dev->stacks < slots; dev->stacks++) {
		uint64_t pa, va = facts->stack_va + dev->stacks * facts->stack_pitch + guard;
		int err = rig_dev_take(dev, RIG_POOL_ANY, facts->stack_bytes, RIG_PAGE, &pa);

		*short_bytes = (slots - dev->stacks) * facts->stack_bytes;
		if (err)
			return err;
		err = rig_mmu_map(dev->space, va, pa, facts->stack_bytes, WORK_FLAGS);
		if (err) {
			rig_dev_give(dev, pa);
			return err;
		}
	}
	return 0;
}
