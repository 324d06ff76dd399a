/* SPDX-License-Identifier: MIT */
/* The table walk of the board (docs/rvx1.md, section 6), on tables written by hand. */
#include "rvx_mmu.h"

#include <stdlib.h>
#include <string.h>
/* cmocka wants the lines above */
#include "test.h"

#define BYTES  (64ull << 20)
#define ROOT   0x1000ull
#define L2     0x2000ull
#define L1     0x3000ull
#define L0     0x4000ull
#define VA     0x123456789000ull /* canonical, lower half */
#define RWX    (RVX1_PTE_R | RVX1_PTE_W | RVX1_PTE_X)
#define USER   (RVX1_PTE_V | RVX1_PTE_U)
#define TARGET 0x2C00000ull
#define GIB    (1ull << 30)
#define MIB2   (2ull << 20)
#define ALL_OK (USER | RWX)

static struct rvx_memory memory;

static uint64_t entry(uint64_t address, uint64_t bits)
{
	return address >> 12 << RVX1_PTE_PPN_SHIFT | bits;
}

static void put(uint64_t table, unsigned level, uint64_t va, uint64_t pte)
{
	uint64_t index = va >> (12 + 9 * level) & 511;

	memcpy(memory.host + table + index * 8, &pte, sizeof(pte));
}

/* Tables down to `level`, where `pte` stands. */
static void build(uint64_t va, unsigned level, uint64_t pte)
{
	static const uint64_t tables[] = {L0, L1, L2, ROOT};

	memset(memory.host + ROOT, 0, 4 * 4096);
	for (unsigned at = 3; at > level; at--)
		put(tables[at], at, va, entry(tables[at - 1], RVX1_PTE_V));
	put(tables[level], level, va, pte);
}

static bool walk(uint64_t va, enum rvx1_access access, struct rvx_extent *out)
{
	return rvx_mmu_walk(&memory, ROOT, va, access, out);
}

static bool serves(uint64_t va, enum rvx1_access access)
{
	struct rvx_extent extent;

	return walk(va, access, &extent);
}

static int open_memory(void **state)
{
	(void)state;
	return rvx_memory_open(&memory, "test", BYTES);
}

static int close_memory(void **state)
{
	(void)state;
	rvx_memory_close(&memory);
	return 0;
}

static void a_leaf_of_each_size_maps_its_whole_range(void **state)
{
	static const uint64_t sizes[] = {4096, MIB2, GIB};
	struct rvx_extent extent;

	(void)state;
	for (unsigned level = 0; level < 3; level++) {
		uint64_t first = VA & ~(sizes[level] - 1);
		uint64_t address = TARGET & ~(sizes[level] - 1);
		uint64_t end = first + (address + sizes[level] > BYTES ? BYTES - address : sizes[level]);
		build(VA, level, entry(address, ALL_OK));
		assert_true(walk(first, RVX1_ACCESS_READ, &extent));
		assert_true(extent.first == first && extent.address == address && !extent.system);
		assert_true(extent.bytes == end - first);
		assert_true(serves(end - 1, RVX1_ACCESS_WRITE));
		assert_false(serves(end, RVX1_ACCESS_READ));
		assert_false(serves(first - 1, RVX1_ACCESS_READ));
	}
}

static void a_leaf_allows_what_its_bits_say_and_needs_u(void **state)
{
	static const enum rvx1_access accesses[] = {RVX1_ACCESS_READ, RVX1_ACCESS_WRITE, RVX1_ACCESS_FETCH};

	(void)state;
	for (uint64_t bits = 1; bits < 8; bits++) {
		bool sound = !(bits & 2) || (bits & 1);
		for (unsigned a = 0; a < 3; a++) {
			build(VA, 0, entry(TARGET, USER | bits << 1));
			assert_true(serves(VA, accesses[a]) == (sound && (bits >> a & 1)));
			build(VA, 0, entry(TARGET, RVX1_PTE_V | bits << 1));
			assert_false(serves(VA, accesses[a]));
			build(VA, 0, entry(TARGET, RVX1_PTE_U | bits << 1));
			assert_false(serves(VA, accesses[a]));
		}
	}
}

static void reserved_bits_fault_and_ignored_ones_do_not(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		bool in_flags = bit < 5, in_address = bit >= 10 && bit < 54;
		if (in_flags || in_address)
			continue;
		bool allowed = bit < 10 || bit == 60;
		build(VA, 0, entry(TARGET, ALL_OK) | 1ull << bit);
		assert_true(serves(VA, RVX1_ACCESS_READ) == allowed);
		build(VA, 0, entry(TARGET, ALL_OK));
		put(L1, 1, VA, entry(L0, RVX1_PTE_V) | 1ull << bit);
		assert_true(
		        serves(VA, RVX1_ACCESS_READ) == (bit < 10)); /* SYSTEM in a pointer: no table there */
	}
}

static void address_bits_below_the_size_fault(void **state)
{
	(void)state;
	build(VA, 1, entry(MIB2 + 4096, ALL_OK));
	assert_false(serves(VA, RVX1_ACCESS_READ));
	build(VA, 2, entry(MIB2, ALL_OK));
	assert_false(serves(VA, RVX1_ACCESS_READ));
	build(VA, 2, entry(MIB2, ALL_OK | RVX1_PTE_SYSTEM));
	assert_false(serves(VA, RVX1_ACCESS_READ));
}

static void a_leaf_at_level_3_and_a_pointer_at_level_0_fault(void **state)
{
	(void)state;
	build(VA, 3, entry(0, ALL_OK));
	assert_false(serves(VA, RVX1_ACCESS_READ));
	build(VA, 0, entry(L0, RVX1_PTE_V));
	assert_false(serves(VA, RVX1_ACCESS_READ));
}

static void tables_that_point_at_themselves_end_in_a_fault(void **state)
{
	(void)state;
	memset(memory.host + ROOT, 0, 4096);
	for (unsigned i = 0; i < 512; i++)
		put(ROOT, 0, (uint64_t)i << 12, entry(ROOT, RVX1_PTE_V));
	assert_false(serves(VA, RVX1_ACCESS_READ));
}

static void what_lies_outside_the_memory_faults(void **state)
{
	struct rvx_extent extent;

	(void)state;
	build(VA, 0, entry(BYTES, ALL_OK));
	assert_false(serves(VA, RVX1_ACCESS_READ));
	build(VA, 0, entry(BYTES - 4096, ALL_OK));
	assert_true(serves(VA, RVX1_ACCESS_READ));
	build(VA, 0, entry((1ull << 56) - 4096, ALL_OK));
	assert_false(serves(VA, RVX1_ACCESS_READ));
	put(L1, 1, VA, entry(BYTES, RVX1_PTE_V));
	assert_false(serves(VA, RVX1_ACCESS_READ));
	assert_false(rvx_mmu_walk(&memory, BYTES, VA, RVX1_ACCESS_READ, &extent));
	assert_false(rvx_mmu_walk(&memory, UINT64_MAX, VA, RVX1_ACCESS_READ, &extent));
	assert_false(rvx_mmu_walk(&memory, ROOT + 8, VA, RVX1_ACCESS_READ, &extent));
	assert_false(rvx_mmu_walk(&memory, 0, VA, RVX1_ACCESS_READ, &extent));
}

static void a_system_leaf_may_name_any_bus_address(void **state)
{
	struct rvx_extent extent;

	(void)state;
	build(VA, 0, entry((1ull << 56) - 4096, ALL_OK | RVX1_PTE_SYSTEM));
	assert_true(walk(VA + 5, RVX1_ACCESS_READ, &extent));
	assert_true(extent.system && extent.address == (1ull << 56) - 4096 && extent.bytes == 4096);
}

static void addresses_are_sign_extended_from_bit_47(void **state)
{
	uint64_t high = 0xFFFF800000000000ull;

	(void)state;
	build(high, 0, entry(TARGET, ALL_OK));
	assert_true(serves(high, RVX1_ACCESS_READ));
	assert_false(serves(0x0000800000000000ull, RVX1_ACCESS_READ));
	build(VA, 0, entry(TARGET, ALL_OK));
	assert_false(serves(VA | 1ull << 48, RVX1_ACCESS_READ));
	assert_false(serves(VA | 1ull << 63, RVX1_ACCESS_READ));
	build(UINT64_MAX - 4095, 0, entry(TARGET, ALL_OK));
	assert_true(serves(UINT64_MAX, RVX1_ACCESS_READ));
}

static void an_extent_serves_its_range_for_its_permissions(void **state)
{
	struct rvx_extent none = {0}, extent = {0};

	(void)state;
	build(VA, 0, entry(TARGET, USER | RVX1_PTE_R));
	assert_true(walk(VA, RVX1_ACCESS_READ, &extent));
	assert_true(rvx_extent_serves(&extent, VA + 4095, RVX1_ACCESS_READ));
	assert_false(rvx_extent_serves(&extent, VA, RVX1_ACCESS_WRITE));
	assert_false(rvx_extent_serves(&extent, VA + 4096, RVX1_ACCESS_READ));
	assert_false(rvx_extent_serves(&extent, VA - 1, RVX1_ACCESS_READ));
	assert_false(rvx_extent_serves(&none, 0, RVX1_ACCESS_READ));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_leaf_of_each_size_maps_its_whole_range),
	        cmocka_unit_test(a_leaf_allows_what_its_bits_say_and_needs_u),
	        cmocka_unit_test(reserved_bits_fault_and_ignored_ones_do_not),
	        cmocka_unit_test(address_bits_below_the_size_fault),
	        cmocka_unit_test(a_leaf_at_level_3_and_a_pointer_at_level_0_fault),
	        cmocka_unit_test(tables_that_point_at_themselves_end_in_a_fault),
	        cmocka_unit_test(what_lies_outside_the_memory_faults),
	        cmocka_unit_test(a_system_leaf_may_name_any_bus_address),
	        cmocka_unit_test(addresses_are_sign_extended_from_bit_47),
	        cmocka_unit_test(an_extent_serves_its_range_for_its_permissions),
	};

	return cmocka_run_group_tests(tests, open_memory, close_memory);
}
