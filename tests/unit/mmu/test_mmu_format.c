/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "mmu_fake.h"

static void the_formats_of_the_tests_are_accepted(void **state)
{
	(void)state;
	assert_int_equal(rig_mmu_format_check(&fake_tiny), 0);
	assert_int_equal(rig_mmu_format_check(&fake_blocks), 0);
	assert_int_equal(rig_mmu_format_check(&fake_sv48), 0);
}

#define REFUSED(change)                                                                                      \
	do {                                                                                                 \
		struct rig_mmu_format f = fake_sv48;                                                         \
		change;                                                                                      \
		assert_int_equal(rig_mmu_format_check(&f), -EINVAL);                                         \
	} while (0)

static void a_format_that_breaks_a_rule_is_refused(void **state)
{
	(void)state;
	REFUSED(f.levels = 0);
	REFUSED(f.levels = RIG_MMU_MAX_LEVELS + 1);
	REFUSED(f.level[2].shift = 22);
	REFUSED(f.level[1].bits = 0);
	REFUSED(f.level[0].bits = RIG_MMU_MAX_BITS + 1);
	REFUSED(f.level[3].leaf = false);
	REFUSED(f.level[3].fragments = 10);
	REFUSED(f.va_bits = 49);
	REFUSED(f.va_bits = 39);
	REFUSED(f.pa_bits = 65);
	REFUSED(f.entry_bytes = 16);
	REFUSED(f.leaf = NULL);
	REFUSED(f.table = NULL);
	REFUSED(f.decode = NULL);
}

static void addresses_that_are_not_canonical_are_refused(void **state)
{
	const uint64_t half = UINT64_C(1) << 47;
	uint64_t at = 0;

	(void)state;
	assert_int_equal(rig_mmu_offset(&fake_sv48, 0, half, &at), 0);
	assert_int_equal(rig_mmu_offset(&fake_sv48, 0, half + 1, &at), -EINVAL);
	assert_int_equal(rig_mmu_offset(&fake_sv48, half - 1, 1, &at), 0);
	assert_int_equal(rig_mmu_offset(&fake_sv48, half - 1, 2, &at), -EINVAL);
	assert_int_equal(rig_mmu_offset(&fake_sv48, half, 1, &at), -EINVAL);
	assert_int_equal(rig_mmu_offset(&fake_sv48, -half - 1, 1, &at), -EINVAL);
	assert_int_equal(rig_mmu_offset(&fake_sv48, -half, half, &at), 0);
	assert_int_equal(at, half);
	assert_int_equal(rig_mmu_offset(&fake_sv48, UINT64_MAX, 1, &at), 0);
	assert_int_equal(rig_mmu_offset(&fake_sv48, UINT64_MAX, 2, &at), -EINVAL);
	assert_int_equal(rig_mmu_offset(&fake_sv48, 0, 0, &at), -EINVAL);
	assert_int_equal(rig_mmu_offset(&fake_sv48, 0, UINT64_MAX, &at), -EINVAL);
	assert_int_equal(rig_mmu_offset(&fake_tiny, (1 << 19) - 1, 1, &at), 0);
	assert_int_equal(rig_mmu_offset(&fake_tiny, 1 << 19, 1, &at), -EINVAL);
	assert_int_equal(rig_mmu_offset(&fake_tiny, UINT64_MAX, 1, &at), -EINVAL);
}

/* Tables by hand, one frame a level, so that the walker is not judged by the writer. */
static struct fake_memory memory;

static uint64_t by_hand(unsigned level, uint64_t index, uint64_t entry)
{
	memory.used[level] = true;
	memory.frames[level][index] = rig_le64(entry);
	return FAKE_BASE + (uint64_t)level * FAKE_TABLE_BYTES;
}

static uint64_t begin_by_hand(uint64_t va)
{
	memset(&memory, 0, sizeof(memory));
	for (unsigned n = 0; n < 3; n++)
		by_hand(n, va >> (39 - 9 * n) & 511,
		        sv48_table(FAKE_BASE + (uint64_t)(n + 1) * FAKE_TABLE_BYTES, n));
	memory.used[3] = true;
	return FAKE_BASE;
}

static void a_walk_finds_pages_of_every_size(void **state)
{
	const uint64_t va = UINT64_C(0x123456789abc);
	const uint64_t pa = UINT64_C(0x7bcdefc0000000);
	struct mmu_walked w;
	uint64_t root;

	(void)state;
	for (unsigned level = 1; level < 4; level++) {
		unsigned shift = fake_sv48.level[level].shift;

		root = begin_by_hand(va);
		by_hand(level, va >> shift & 511, sv48_leaf(pa, RIG_MMU_READ | RIG_MMU_SYSTEM, level, 0));
		assert_int_equal(mmu_walk(&fake_sv48, root, va, fake_load, &memory, &w), 0);
		assert_int_equal(w.level, level);
		assert_int_equal(w.reads, level + 1);
		assert_int_equal(w.page_shift, shift);
		assert_int_equal(w.pa, pa | (va & ((UINT64_C(1) << shift) - 1)));
		assert_int_equal(w.flags, RIG_MMU_READ | RIG_MMU_SYSTEM);
		assert_int_equal(w.table[level], FAKE_BASE + level * FAKE_TABLE_BYTES);
		assert_int_equal(
		        mmu_walk(&fake_sv48, root, va ^ UINT64_C(1) << shift, fake_load, &memory, &w),
		        -ENOENT);
	}
}

static void a_walk_says_how_a_bad_table_is_bad(void **state)
{
	const uint64_t va = UINT64_C(0x123456789abc);
	struct mmu_walked w;
	uint64_t root = begin_by_hand(va);

	(void)state;
	assert_int_equal(mmu_walk(&fake_sv48, root, va, fake_load, &memory, &w), -ENOENT);
	assert_int_equal(w.level, 3);
	/* A table below the last level. */
	by_hand(3, va >> 12 & 511, sv48_table(FAKE_BASE, 3));
	assert_int_equal(mmu_walk(&fake_sv48, root, va, fake_load, &memory, &w), -EILSEQ);
	/* Write without read, and reserved bits. */
	by_hand(3, va >> 12 & 511, SV48_V | SV48_W);
	assert_int_equal(mmu_walk(&fake_sv48, root, va, fake_load, &memory, &w), -EILSEQ);
	by_hand(3, va >> 12 & 511, sv48_leaf(0x1000, RIG_MMU_READ, 3, 0) | UINT64_C(1) << 60);
	assert_int_equal(mmu_walk(&fake_sv48, root, va, fake_load, &memory, &w), -EILSEQ);
	/* A large page that is not aligned. */
	by_hand(2, va >> 21 & 511, sv48_leaf(0x1000, RIG_MMU_READ, 2, 0));
	assert_int_equal(mmu_walk(&fake_sv48, root, va, fake_load, &memory, &w), -EILSEQ);
	/* A page where none may be. */
	by_hand(0, va >> 39 & 511, sv48_leaf(0, RIG_MMU_READ, 0, 0));
	assert_int_equal(mmu_walk(&fake_sv48, root, va, fake_load, &memory, &w), -EILSEQ);
	/* A table outside memory. */
	by_hand(0, va >> 39 & 511, sv48_table(0x1000, 0));
	assert_int_equal(mmu_walk(&fake_sv48, root, va, fake_load, &memory, &w), -EFAULT);
	assert_int_equal(w.level, 1);
	/* The root itself. */
	assert_int_equal(mmu_walk(&fake_sv48, root + 8, va, fake_load, &memory, &w), -EILSEQ);
	assert_int_equal(mmu_walk(&fake_sv48, root, UINT64_C(1) << 47, fake_load, &memory, &w), -EINVAL);
	assert_int_equal(w.reads, 0);
}

static void a_table_that_leads_to_itself_ends(void **state)
{
	struct mmu_walked w;
	uint64_t root = begin_by_hand(0);

	(void)state;
	by_hand(0, 0, sv48_table(FAKE_BASE, 0));
	assert_int_equal(mmu_walk(&fake_sv48, root, 0, fake_load, &memory, &w), -EILSEQ);
	assert_int_equal(w.reads, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_formats_of_the_tests_are_accepted),
	        cmocka_unit_test(a_format_that_breaks_a_rule_is_refused),
	        cmocka_unit_test(addresses_that_are_not_canonical_are_refused),
	        cmocka_unit_test(a_walk_finds_pages_of_every_size),
	        cmocka_unit_test(a_walk_says_how_a_bad_table_is_bad),
	        cmocka_unit_test(a_table_that_leads_to_itself_ends),
	};

	return cmocka_run_group_tests_name("mmu format", tests, NULL, NULL);
}
