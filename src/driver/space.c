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

	if (dev->memory_host)
		rig_mmu_store64(dev->memory_host + pa, run);
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
	int err = rig_mmu_open(&dev->space, dev->facts.format, &memory);

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

static int map_gap(struct rig_dev *dev, uint64_t iova, uint64_t bytes)
{
	int err = check_bits(dev, iova, bytes);

	if (err)
		return err;
	return rig_mmu_map(dev->space, dev->facts.system_va + iova, iova, bytes, WORK_FLAGS | RIG_MMU_SYSTEM);
}

int rig_dev_unmap_system(struct rig_dev *dev, uint64_t iova, uint64_t bytes)
{
	uint64_t stamp, va = dev->facts.system_va + iova;
	int err = rig_ranges_sub(&dev->system, iova, iova + bytes - 1);

	if (!err)
		err = rig_mmu_unmap(dev->space, va, bytes);
	if (err)
		return err;
	stamp = rig_mmu_stamp(dev->space);
	err = dev->board->invalidate(&dev->port, va, bytes);
	if (!err)
		rig_mmu_reap(dev->space, stamp);
	return err;
}

/* The first gap of [first, last] that is not in the tables; false when there is none. */
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

static int map_gaps(struct rig_dev *dev, uint64_t iova, uint64_t bytes)
{
	uint64_t first, end;
	struct rig_range gap;
	int err;

	if (!rig_align_up(bytes, RIG_PAGE, &end))
		return -ENOMEM;
	first = iova;
	end += iova - 1;
	while (next_gap(&dev->system, first, end, &gap)) {
		err = rig_ranges_add(&dev->system, gap.first, gap.last);
		if (err)
			return err;
		err = map_gap(dev, gap.first, gap.last - gap.first + 1);
		if (err) {
			rig_ranges_sub(&dev->system, gap.first, gap.last);
			return err;
		}
		first = gap.last + 1;
	}
	return 0;
}

int rig_dev_map_system(struct rig_dev *dev, uint64_t iova, uint64_t bytes)
{
	int err = map_gaps(dev, iova, bytes);

	return err ? rig_vfio_fail(
	                     err, NULL, "page tables for bus address 0x%" PRIx64 " + 0x%" PRIx64, iova, bytes)
	           : 0;
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
