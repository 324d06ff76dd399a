/* SPDX-License-Identifier: MIT */
/* RISC-V Sv48 tables with RVX-1's SYSTEM bit (section 6.1). */
#include "mmu_format.h"
#include "rvx1.h"

#define KIND_BITS (RVX1_PTE_R | RVX1_PTE_W | RVX1_PTE_X)
#define RESERVED  (((1ull << 6) - 1) << 54 | 7ull << 61)
#define USABLE    (RIG_MMU_READ | RIG_MMU_WRITE | RIG_MMU_EXEC | RIG_MMU_USER | RIG_MMU_SYSTEM)
#define PA_SHIFT  2u /* from a PTE's PPN field to an address: 12 - 10 */

static uint64_t leaf(uint64_t pa, uint64_t flags, unsigned level, unsigned fragment)
{
	uint64_t entry = RVX1_PTE_V | pa >> PA_SHIFT;

	(void)level;
	(void)fragment;
	entry |= flags & RIG_MMU_READ ? RVX1_PTE_R : 0;
	entry |= flags & RIG_MMU_WRITE ? RVX1_PTE_W : 0;
	entry |= flags & RIG_MMU_EXEC ? RVX1_PTE_X : 0;
	entry |= flags & RIG_MMU_USER ? RVX1_PTE_U : 0;
	entry |= flags & RIG_MMU_SYSTEM ? RVX1_PTE_SYSTEM : 0;
	return entry;
}

static uint64_t table(uint64_t pa, unsigned level)
{
	(void)level;
	return RVX1_PTE_V | pa >> PA_SHIFT;
}

static uint64_t flags_of(uint64_t entry)
{
	uint64_t flags = 0;

	flags |= entry & RVX1_PTE_R ? RIG_MMU_READ : 0;
	flags |= entry & RVX1_PTE_W ? RIG_MMU_WRITE : 0;
	flags |= entry & RVX1_PTE_X ? RIG_MMU_EXEC : 0;
	flags |= entry & RVX1_PTE_U ? RIG_MMU_USER : 0;
	flags |= entry & RVX1_PTE_SYSTEM ? RIG_MMU_SYSTEM : 0;
	return flags;
}

static struct rig_mmu_entry decode(uint64_t entry, unsigned level)
{
	struct rig_mmu_entry e = {.kind = RIG_MMU_NONE};

	if (!(entry & RVX1_PTE_V))
		return e;
	e.pa = (entry & RVX1_PTE_PPN_MASK) << PA_SHIFT;
	if (entry & RESERVED) {
		e.kind = RIG_MMU_BAD;
	} else if (!(entry & KIND_BITS)) {
		e.kind = entry & RVX1_PTE_SYSTEM ? RIG_MMU_BAD : RIG_MMU_TABLE;
	} else {
		/* A page of the root's level, or one to be written but not read, is a fault. */
		e.kind = level == 0 || (entry & (RVX1_PTE_R | RVX1_PTE_W)) == RVX1_PTE_W ? RIG_MMU_BAD
		                                                                         : RIG_MMU_LEAF;
		e.flags = flags_of(entry);
	}
	return e;
}

static bool accepts(uint64_t flags)
{
	bool some = flags & (RIG_MMU_READ | RIG_MMU_EXEC);

	return some && (!(flags & RIG_MMU_WRITE) || (flags & RIG_MMU_READ));
}

const struct rig_mmu_format rvx1_format = {
        .name = "rvx1-sv48",
        .levels = 4,
        .level =
                {
                        {.shift = 39, .bits = 9, .leaf = false},
                        {.shift = 30, .bits = 9, .leaf = true},
                        {.shift = 21, .bits = 9, .leaf = true},
                        {.shift = 12, .bits = 9, .leaf = true},
                },
        .entry_bytes = 8,
        .va_bits = 48,
        .sign_extended = true,
        .pa_bits = 56,
        .flags = USABLE,
        .none = 0,
        .leaf = leaf,
        .table = table,
        .decode = decode,
        .accepts = accepts,
};
