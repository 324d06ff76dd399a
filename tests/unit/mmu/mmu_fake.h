/* SPDX-License-Identifier: MIT */
#ifndef TEST_MMU_FAKE_H
#define TEST_MMU_FAKE_H

/*
 * Page-table formats and memory for tables, for the tests of src/mmu and their fuzz targets.
 *
 * tiny: 128 pages in three levels that may all be pages, small enough to look at every page after every
 * store. blocks: the same with contiguous blocks, a "none" that is not 0, and sign-extended addresses. sv48:
 * the 48-bit paging of the RISC-V privileged specification, without its attribute bits.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mmu.h"
#include "mmu_walk.h"

/* One encoding for tiny and blocks. */
#define FAKE_VALID       UINT64_C(1)
#define FAKE_PAGE        UINT64_C(2)
#define FAKE_FLAGS_SHIFT 2
#define FAKE_FLAGS       UINT64_C(0x1f)
#define FAKE_BLOCK_SHIFT 7
#define FAKE_BLOCK       UINT64_C(0xf)
#define FAKE_EXTRA       (UINT64_C(1) << 11)
#define FAKE_PA          UINT64_C(0x0000fffffffff000)
#define FAKE_NONE        (UINT64_C(1) << 63)

#define FAKE_FORMAT_BIT (UINT64_C(1) << RIG_MMU_FORMAT_BITS)

static inline uint64_t fake_leaf(uint64_t pa, uint64_t flags, unsigned level, unsigned fragment)
{
	(void)level;
	return FAKE_VALID | FAKE_PAGE | (flags & FAKE_FLAGS) << FAKE_FLAGS_SHIFT |
	       (uint64_t)fragment << FAKE_BLOCK_SHIFT | (flags & FAKE_FORMAT_BIT ? FAKE_EXTRA : 0) | pa;
}

static inline uint64_t fake_table(uint64_t pa, unsigned level)
{
	(void)level;
	return FAKE_VALID | pa;
}

static inline struct rig_mmu_entry fake_decode(uint64_t entry, unsigned level)
{
	struct rig_mmu_entry out = {.kind = RIG_MMU_NONE};

	(void)level;
	if (!(entry & FAKE_VALID))
		return out;
	out.pa = entry & FAKE_PA;
	if (entry >> 48)
		out.kind = RIG_MMU_BAD;
	else if (!(entry & FAKE_PAGE))
		out.kind = RIG_MMU_TABLE;
	else {
		out.kind = RIG_MMU_LEAF;
		out.fragment = entry >> FAKE_BLOCK_SHIFT & FAKE_BLOCK;
		out.flags =
		        (entry >> FAKE_FLAGS_SHIFT & FAKE_FLAGS) | (entry & FAKE_EXTRA ? FAKE_FORMAT_BIT : 0);
	}
	return out;
}

enum { FAKE_PAGES = 128, FAKE_PAGE_SHIFT = 12 };

#define FAKE_LEVELS(block1, block2)                                                                          \
	{                                                                                                    \
		{.shift = 17, .bits = 2, .leaf = true},                                                      \
		        {.shift = 15, .bits = 2, .leaf = true, .fragments = block1},                         \
		{                                                                                            \
			.shift = 12, .bits = 3, .leaf = true, .fragments = block2                            \
		}                                                                                            \
	}

static const struct rig_mmu_format fake_tiny = {
        .name = "tiny",
        .levels = 3,
        .level = FAKE_LEVELS(0, 0),
        .entry_bytes = 8,
        .va_bits = 19,
        .pa_bits = 48,
        .flags = FAKE_FLAGS | FAKE_FORMAT_BIT,
        .leaf = fake_leaf,
        .table = fake_table,
        .decode = fake_decode,
};

static const struct rig_mmu_format fake_blocks = {
        .name = "blocks",
        .levels = 3,
        .level = FAKE_LEVELS(1, 2),
        .entry_bytes = 8,
        .va_bits = 19,
        .sign_extended = true,
        .pa_bits = 48,
        .flags = FAKE_FLAGS | FAKE_FORMAT_BIT,
        .none = FAKE_NONE,
        .leaf = fake_leaf,
        .table = fake_table,
        .decode = fake_decode,
};

/* RISC-V privileged specification, Sv48: V R W X U in bits 0..4, A and D in 6 and 7, PPN in 10..53. Bit 8
 * (for software) says "system" here. */
enum { SV48_V = 1, SV48_R = 2, SV48_W = 4, SV48_X = 8, SV48_U = 16, SV48_AD = 0xc0, SV48_SYSTEM = 0x100 };
#define SV48_PPN_SHIFT 10
#define SV48_PPN       ((UINT64_C(1) << 44) - 1)

static inline uint64_t sv48_leaf(uint64_t pa, uint64_t flags, unsigned level, unsigned fragment)
{
	uint64_t entry = SV48_V | SV48_AD | pa >> 12 << SV48_PPN_SHIFT;

	(void)level;
	(void)fragment;
	entry |= flags & RIG_MMU_READ ? SV48_R : 0;
	entry |= flags & RIG_MMU_WRITE ? SV48_W : 0;
	entry |= flags & RIG_MMU_EXEC ? SV48_X : 0;
	entry |= flags & RIG_MMU_USER ? SV48_U : 0;
	return entry | (flags & RIG_MMU_SYSTEM ? SV48_SYSTEM : 0);
}

static inline uint64_t sv48_table(uint64_t pa, unsigned level)
{
	(void)level;
	return SV48_V | pa >> 12 << SV48_PPN_SHIFT;
}

static inline struct rig_mmu_entry sv48_decode(uint64_t entry, unsigned level)
{
	struct rig_mmu_entry out = {.pa = (entry >> SV48_PPN_SHIFT & SV48_PPN) << 12};

	(void)level;
	if (!(entry & SV48_V))
		return (struct rig_mmu_entry){.kind = RIG_MMU_NONE};
	if (entry >> 54 || (entry & (SV48_R | SV48_W)) == SV48_W)
		out.kind = RIG_MMU_BAD;
	else if (!(entry & (SV48_R | SV48_W | SV48_X)))
		out.kind = RIG_MMU_TABLE;
	else
		out.kind = RIG_MMU_LEAF;
	out.flags |= entry & SV48_R ? RIG_MMU_READ : 0;
	out.flags |= entry & SV48_W ? RIG_MMU_WRITE : 0;
	out.flags |= entry & SV48_X ? RIG_MMU_EXEC : 0;
	out.flags |= entry & SV48_U ? RIG_MMU_USER : 0;
	out.flags |= entry & SV48_SYSTEM ? RIG_MMU_SYSTEM : 0;
	return out;
}

static inline bool sv48_accepts(uint64_t flags)
{
	return flags & (RIG_MMU_READ | RIG_MMU_EXEC) &&
	       !((flags & (RIG_MMU_READ | RIG_MMU_WRITE)) == RIG_MMU_WRITE);
}

static const struct rig_mmu_format fake_sv48 = {
        .name = "sv48",
        .levels = 4,
        .level =
                {
                        {.shift = 39, .bits = 9},
                        {.shift = 30, .bits = 9, .leaf = true},
                        {.shift = 21, .bits = 9, .leaf = true},
                        {.shift = 12, .bits = 9, .leaf = true},
                },
        .entry_bytes = 8,
        .va_bits = 48,
        .sign_extended = true,
        .pa_bits = 56,
        .flags = FAKE_FLAGS,
        .leaf = sv48_leaf,
        .table = sv48_table,
        .decode = sv48_decode,
        .accepts = sv48_accepts,
};

/* Memory for tables: FAKE_TABLES frames of 4 KiB from FAKE_BASE on. Anything wrong sets `broken`. */
enum { FAKE_TABLES = 1100, FAKE_TABLE_BYTES = 4096, FAKE_PENDING = 1024 };
#define FAKE_BASE UINT64_C(0x80000000)

struct fake_memory {
	le64 frames[FAKE_TABLES][FAKE_TABLE_BYTES / 8];
	bool used[FAKE_TABLES];
	unsigned in_use;
	unsigned hint;
	uint64_t fail_at; /* the k-th alloc from now fails; 0: none does */
	bool failed;
	bool broken;
	uint64_t stores;
	uint64_t barriers;
	void (*after_store)(void *arg); /* optional */
	void *after_arg;
	/* Lazy: a store is seen by after_store without the stores since the last barrier, which is the worst
	 * order a device may see them in. */
	bool lazy;
	unsigned pending;
	struct fake_pending {
		uint64_t pa;
		struct rig_mmu_run run;
	} queue[FAKE_PENDING];
};

static inline int fake_alloc(void *arg, uint64_t bytes, uint64_t *pa)
{
	struct fake_memory *m = arg;

	if (bytes > FAKE_TABLE_BYTES)
		m->broken = true;
	if (m->fail_at && --m->fail_at == 0) {
		m->failed = true;
		return -ENOBUFS;
	}
	for (unsigned n = 0; n < FAKE_TABLES; n++) {
		unsigned i = (m->hint + n) % FAKE_TABLES;

		if (m->used[i])
			continue;
		m->used[i] = true;
		m->in_use++;
		m->hint = i + 1;
		memset(m->frames[i], 0xa5,
		        FAKE_TABLE_BYTES); /* looks valid in every format: nobody may rely on it */
		*pa = FAKE_BASE + (uint64_t)i * FAKE_TABLE_BYTES;
		return 0;
	}
	return -ENOBUFS;
}

static inline bool fake_holds(const struct fake_memory *m, uint64_t pa)
{
	uint64_t i = (pa - FAKE_BASE) / FAKE_TABLE_BYTES;

	return pa >= FAKE_BASE && i < FAKE_TABLES && m->used[i];
}

static inline void fake_free(void *arg, uint64_t pa, uint64_t bytes)
{
	struct fake_memory *m = arg;

	(void)bytes;
	if (!fake_holds(m, pa) || pa % FAKE_TABLE_BYTES) {
		m->broken = true;
		return;
	}
	memset(m->frames[(pa - FAKE_BASE) / FAKE_TABLE_BYTES], 0x5b, FAKE_TABLE_BYTES);
	m->used[(pa - FAKE_BASE) / FAKE_TABLE_BYTES] = false;
	m->in_use--;
}

static inline le64 *fake_frame(struct fake_memory *m, uint64_t pa)
{
	return m->frames[(pa - FAKE_BASE) / FAKE_TABLE_BYTES];
}

static inline void fake_flush(struct fake_memory *m)
{
	for (unsigned i = 0; i < m->pending; i++)
		rig_mmu_store64(fake_frame(m, m->queue[i].pa), &m->queue[i].run);
	m->pending = 0;
}

static inline void fake_store_lazily(struct fake_memory *m, uint64_t pa, const struct rig_mmu_run *run)
{
	le64 saved[FAKE_TABLE_BYTES / 8];

	if (m->pending == FAKE_PENDING) {
		m->broken = true;
		return;
	}
	m->queue[m->pending++] = (struct fake_pending){.pa = pa, .run = *run};
	memcpy(saved, fake_frame(m, pa), sizeof(saved));
	rig_mmu_store64(fake_frame(m, pa), run);
	m->after_store(m->after_arg);
	memcpy(fake_frame(m, pa), saved, sizeof(saved));
}

static inline void fake_store(void *arg, uint64_t pa, const struct rig_mmu_run *run)
{
	struct fake_memory *m = arg;

	if (!fake_holds(m, pa) || pa % FAKE_TABLE_BYTES || run->count == 0 ||
	        !rig_span_fits(run->first, run->count, FAKE_TABLE_BYTES / 8)) {
		m->broken = true;
		return;
	}
	m->stores++;
	if (m->lazy) {
		fake_store_lazily(m, pa, run);
		return;
	}
	rig_mmu_store64(fake_frame(m, pa), run);
	if (m->after_store)
		m->after_store(m->after_arg);
}

static inline void fake_barrier(void *arg)
{
	struct fake_memory *m = arg;

	m->barriers++;
	fake_flush(m);
}

static inline int fake_load(void *arg, uint64_t pa, uint64_t *entry)
{
	const struct fake_memory *m = arg;

	if (!fake_holds(m, pa) || pa % 8)
		return -EFAULT;
	*entry = rig_from_le64(m->frames[(pa - FAKE_BASE) / FAKE_TABLE_BYTES][pa % FAKE_TABLE_BYTES / 8]);
	return 0;
}

static inline struct rig_mmu_memory fake_ops(struct fake_memory *m)
{
	return (struct rig_mmu_memory){
	        .alloc = fake_alloc,
	        .free = fake_free,
	        .store = fake_store,
	        .barrier = fake_barrier,
	        .arg = m,
	};
}

#endif
