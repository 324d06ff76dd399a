/* SPDX-License-Identifier: MIT */
#include "rvx_mmu.h"

#define LEVELS          4u
#define ENTRY_BYTES     8u
#define TABLE_BYTES     4096u
#define PAGE_SHIFT      12u
#define LEVEL_BITS      9u
#define INDEX_MASK      ((1u << LEVEL_BITS) - 1)
#define VA_BITS         48u
#define LARGEST_LEVEL   2u /* 1 GiB */
#define RESERVED        ((0x3Full << 54) | (7ull << 61))
#define SYSTEM          RVX1_PTE_SYSTEM
#define PERMISSIONS     (RVX1_PTE_R | RVX1_PTE_W | RVX1_PTE_X)
#define ADDRESS_OF(pte) (((pte)&RVX1_PTE_PPN_MASK) >> RVX1_PTE_PPN_SHIFT << PAGE_SHIFT)

static uint64_t needed(enum rvx1_access access)
{
	switch (access) {
	case RVX1_ACCESS_READ:
		return RVX1_PTE_R;
	case RVX1_ACCESS_WRITE:
		return RVX1_PTE_W;
	case RVX1_ACCESS_FETCH:
		return RVX1_PTE_X;
	case RVX1_ACCESS_NONE:
	default:
		return RVX1_PTE_V;
	}
}

static bool is_canonical(uint64_t va)
{
	int64_t sign = (int64_t)(va << (64 - VA_BITS)) >> (64 - VA_BITS);

	return (uint64_t)sign == va;
}

/* Section 6.1: what makes a leaf fault whatever the access. */
static bool leaf_is_sound(uint64_t pte, unsigned level)
{
	uint64_t size = 1ull << (PAGE_SHIFT + LEVEL_BITS * level);

	if (level > LARGEST_LEVEL || (pte & RESERVED) || !(pte & RVX1_PTE_U))
		return false;
	if ((pte & RVX1_PTE_W) && !(pte & RVX1_PTE_R))
		return false;
	return (ADDRESS_OF(pte) & (size - 1)) == 0;
}

/* Fills `out` from a sound leaf. False: va lies beyond board memory. */
static bool take_leaf(
        const struct rvx_memory *memory, uint64_t pte, unsigned level, uint64_t va, struct rvx_extent *out)
{
	uint64_t size = 1ull << (PAGE_SHIFT + LEVEL_BITS * level);

	out->first = va & ~(size - 1);
	out->bytes = size;
	out->address = ADDRESS_OF(pte);
	out->system = (pte & SYSTEM) != 0;
	out->leaf = (uint32_t)(pte & PERMISSIONS);
	if (out->system)
		return true;
	if (out->address >= memory->bytes)
		return false;
	if (out->bytes > memory->bytes - out->address)
		out->bytes = memory->bytes - out->address;
	return va - out->first < out->bytes;
}

bool rvx_mmu_walk(const struct rvx_memory *memory, uint64_t root, uint64_t va, enum rvx1_access access,
        struct rvx_extent *out)
{
	uint64_t table = root;

	if (!root || !is_canonical(va))
		return false;
	for (unsigned level = LEVELS; level-- > 0;) {
		const uint8_t *host = table % TABLE_BYTES ? NULL : rvx_memory_at(memory, table, TABLE_BYTES);
		if (!host)
			return false;
		uint64_t index = va >> (PAGE_SHIFT + LEVEL_BITS * level) & INDEX_MASK;
		uint64_t pte = rvx_load64(host + index * ENTRY_BYTES);
		if (!(pte & RVX1_PTE_V))
			return false;
		if (pte & PERMISSIONS)
			return leaf_is_sound(pte, level) && (pte & needed(access)) &&
			       take_leaf(memory, pte, level, va, out);
		if (pte & (RESERVED | SYSTEM))
			return false;
		table = ADDRESS_OF(pte);
	}
	return false;
}

bool rvx_extent_serves(const struct rvx_extent *extent, uint64_t va, enum rvx1_access access)
{
	return va - extent->first < extent->bytes && ((extent->leaf | RVX1_PTE_V) & needed(access));
}
