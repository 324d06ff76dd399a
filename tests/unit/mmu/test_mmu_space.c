/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "allocs.h"
#include "counters.h"
#include "mmu_fake.h"

#define K4  (UINT64_C(1) << 12)
#define M2  (UINT64_C(1) << 21)
#define G1  (UINT64_C(1) << 30)
#define VA  (UINT64_C(1) << 40)
#define RW  (RIG_MMU_READ | RIG_MMU_WRITE)
#define RWU (RW | RIG_MMU_USER)

static struct fake_memory memory;

static struct rig_mmu_space *begin(const struct rig_mmu_format *format)
{
	struct rig_mmu_space *space = NULL;
	struct rig_mmu_memory ops = fake_ops(&memory);

	memset(&memory, 0, sizeof(memory));
	assert_int_equal(rig_mmu_open(&space, format, &ops), 0);
	return space;
}

static void finish(struct rig_mmu_space *space)
{
	rig_mmu_close(space);
	assert_int_equal(memory.in_use, 0);
	assert_false(memory.broken);
}

/* log2 of the page at va; 0 if none. The translation must be to `pa` with `flags`. */
static unsigned page_at(const struct rig_mmu_space *space, uint64_t va, uint64_t pa, uint64_t flags)
{
	struct mmu_walked w;
	int rc = mmu_walk(&fake_sv48, rig_mmu_root(space), va, fake_load, &memory, &w);

	if (rc == -ENOENT)
		return 0;
	assert_int_equal(rc, 0);
	assert_int_equal(w.pa, pa);
	assert_int_equal(w.flags, flags);
	return w.page_shift;
}

static struct rig_mmu_stats stats_of(const struct rig_mmu_space *space)
{
	struct rig_mmu_stats stats;

	rig_mmu_stats(space, &stats);
	return stats;
}

static void a_new_space_maps_nothing(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);

	(void)state;
	for (uint64_t va = 0; va < UINT64_C(1) << 47; va += UINT64_C(1) << 39)
		assert_int_equal(page_at(space, va, 0, 0), 0);
	assert_int_equal(stats_of(space).tables, 1);
	assert_int_equal(stats_of(space).table_bytes, 4096);
	finish(space);
	rig_mmu_close(NULL);
}

static void a_large_page_is_used_exactly_from_its_size_on(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);

	(void)state;
	assert_int_equal(rig_mmu_map(space, VA, M2, M2 - K4, RWU), 0);
	assert_int_equal(page_at(space, VA, M2, RWU), 12);
	assert_int_equal(page_at(space, VA + M2 - K4, 0, 0), 0);
	assert_int_equal(rig_mmu_map(space, VA + M2, M2, M2, RWU), 0);
	assert_int_equal(page_at(space, VA + M2 + 5, M2 + 5, RWU), 21);
	assert_int_equal(rig_mmu_map(space, VA + 2 * M2, M2, M2 + K4, RWU), 0);
	assert_int_equal(page_at(space, VA + 3 * M2 - 1, 2 * M2 - 1, RWU), 21);
	assert_int_equal(page_at(space, VA + 3 * M2, 2 * M2, RWU), 12);
	assert_int_equal(page_at(space, VA + 3 * M2 + K4, 0, 0), 0);
	finish(space);
}

static void a_mapping_rises_to_the_largest_page_and_falls_again(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);
	uint64_t before = M2 + K4, bytes = before + 2 * G1 + M2 + K4;
	struct rig_mmu_stats stats;

	(void)state;
	assert_int_equal(rig_mmu_map(space, VA - before, 4 * G1 - before, bytes, RW), 0);
	assert_int_equal(page_at(space, VA - before, 4 * G1 - before, RW), 12);
	assert_int_equal(page_at(space, VA - M2, 4 * G1 - M2, RW), 21);
	assert_int_equal(page_at(space, VA, 4 * G1, RW), 30);
	assert_int_equal(page_at(space, VA + G1, 5 * G1, RW), 30);
	assert_int_equal(page_at(space, VA + 2 * G1, 6 * G1, RW), 21);
	assert_int_equal(page_at(space, VA + 2 * G1 + M2, 6 * G1 + M2, RW), 12);
	stats = stats_of(space);
	assert_int_equal(stats.pages[1], 2);
	assert_int_equal(stats.pages[2], 2);
	assert_int_equal(stats.pages[3], 2);
	assert_int_equal(stats.bytes, bytes);
	assert_int_equal(rig_mmu_unmap(space, VA - before, bytes), 0);
	assert_int_equal(stats_of(space).bytes, 0);
	assert_int_equal(stats_of(space).tables, 1);
	finish(space);
}

static void pages_whose_physical_address_is_not_congruent_are_small(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);

	(void)state;
	assert_int_equal(rig_mmu_map(space, VA, M2 + K4, 2 * M2, RW), 0);
	assert_int_equal(stats_of(space).pages[3], 1024);
	assert_int_equal(page_at(space, VA + M2, 2 * M2 + K4, RW), 12);
	finish(space);
}

static void a_limit_keeps_pages_small_until_it_is_lifted(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);

	(void)state;
	rig_mmu_limit_pages(space, 21);
	assert_int_equal(rig_mmu_map(space, VA, 0, G1, RW), 0);
	assert_int_equal(page_at(space, VA, 0, RW), 21);
	rig_mmu_limit_pages(space, 20);
	assert_int_equal(rig_mmu_map(space, VA + G1, 0, M2, RW), 0);
	assert_int_equal(page_at(space, VA + G1, 0, RW), 12);
	rig_mmu_limit_pages(space, 3);
	assert_int_equal(rig_mmu_map(space, VA + G1 + M2, 0, M2, RW), 0);
	assert_int_equal(page_at(space, VA + G1 + M2, 0, RW), 12);
	rig_mmu_limit_pages(space, 0);
	assert_int_equal(rig_mmu_map(space, VA + 2 * G1, 0, G1, RW), 0);
	assert_int_equal(page_at(space, VA + 2 * G1, 0, RW), 30);
	finish(space);
}

static void what_the_format_cannot_say_is_refused(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);
	const uint64_t half = UINT64_C(1) << 47, top_pa = (UINT64_C(1) << 56) - K4;

	(void)state;
	assert_int_equal(rig_mmu_map(space, VA, 0, 0, RW), -EINVAL);
	assert_int_equal(rig_mmu_map(space, VA + 1, 0, K4, RW), -EINVAL);
	assert_int_equal(rig_mmu_map(space, VA, 1, K4, RW), -EINVAL);
	assert_int_equal(rig_mmu_map(space, VA, 0, K4 + 1, RW), -EINVAL);
	assert_int_equal(rig_mmu_map(space, VA, 0, K4, RIG_MMU_WRITE), -EINVAL);
	assert_int_equal(rig_mmu_map(space, VA, 0, K4, RW | FAKE_FORMAT_BIT), -EINVAL);
	assert_int_equal(rig_mmu_map(space, half - K4, 0, 2 * K4, RW), -EINVAL);
	assert_int_equal(rig_mmu_map(space, half, 0, K4, RW), -EINVAL);
	assert_int_equal(rig_mmu_map(space, VA, top_pa, 2 * K4, RW), -EINVAL);
	assert_int_equal(rig_mmu_map(space, VA, top_pa + K4, K4, RW), -EINVAL);
	assert_int_equal(rig_mmu_map(space, VA, 0, -K4, RW), -EINVAL);
	assert_int_equal(memory.in_use, 1);
	assert_int_equal(rig_mmu_map(space, VA, top_pa, K4, RW), 0);
	assert_int_equal(rig_mmu_map(space, -K4, 0, K4, RW), 0);
	assert_int_equal(page_at(space, UINT64_MAX, K4 - 1, RW), 12);
	assert_int_equal(rig_mmu_unmap(space, -K4, K4), 0);
	assert_int_equal(rig_mmu_unmap(space, VA, 0), -EINVAL);
	assert_int_equal(rig_mmu_unmap(space, VA + 1, K4), -EINVAL);
	assert_int_equal(rig_mmu_unmap(space, VA, K4 - 1), -EINVAL);
	finish(space);
}

static void an_overlap_by_one_page_is_refused_and_changes_nothing(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);
	uint64_t stores;
	unsigned tables;

	(void)state;
	assert_int_equal(rig_mmu_map(space, VA + M2, 0, M2, RW), 0);
	assert_int_equal(rig_mmu_map(space, VA + 4 * M2, 0, 2 * K4, RW), 0);
	stores = memory.stores;
	tables = memory.in_use;
	assert_int_equal(rig_mmu_map(space, VA, G1, M2 + K4, RW), -EEXIST);
	assert_int_equal(rig_mmu_map(space, VA + 2 * M2 - K4, G1, 2 * K4, RW), -EEXIST);
	assert_int_equal(rig_mmu_map(space, VA + M2 + K4, G1, K4, RW), -EEXIST);
	assert_int_equal(rig_mmu_map(space, VA + 4 * M2, 0, M2, RW), -EEXIST);
	assert_int_equal(rig_mmu_map(space, VA + 4 * M2 + K4, 0, K4, RW), -EEXIST);
	assert_int_equal(rig_mmu_map(space, VA, 0, G1, RW), -EEXIST);
	assert_int_equal(memory.stores, stores);
	assert_int_equal(memory.in_use, tables);
	assert_int_equal(rig_mmu_map(space, VA, G1, M2, RW), 0);
	assert_int_equal(rig_mmu_map(space, VA + 2 * M2, G1, 2 * M2, RW), 0);
	assert_int_equal(rig_mmu_map(space, VA + 4 * M2 + 2 * K4, 0, K4, RW), 0);
	finish(space);
}

static void unmapping_what_is_not_mapped_answers_ENOENT_and_changes_nothing(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);
	uint64_t stores;

	(void)state;
	assert_int_equal(rig_mmu_unmap(space, VA, K4), -ENOENT);
	assert_int_equal(rig_mmu_map(space, VA, 0, 4 * K4, RW), 0);
	stores = memory.stores;
	assert_int_equal(rig_mmu_unmap(space, VA, 5 * K4), -ENOENT);
	assert_int_equal(rig_mmu_unmap(space, VA - K4, 2 * K4), -ENOENT);
	assert_int_equal(rig_mmu_unmap(space, VA, G1), -ENOENT);
	assert_int_equal(memory.stores, stores);
	assert_int_equal(rig_mmu_unmap(space, VA, 4 * K4), 0);
	assert_int_equal(rig_mmu_unmap(space, VA, 4 * K4), -ENOENT);
	finish(space);
}

static void a_part_of_a_large_page_is_not_unmapped(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);

	(void)state;
	assert_int_equal(rig_mmu_map(space, VA, 4 * G1, G1, RWU), 0);
	assert_int_equal(rig_mmu_unmap(space, VA, K4), -EINVAL);
	assert_int_equal(rig_mmu_unmap(space, VA + G1 - K4, K4), -EINVAL);
	assert_int_equal(page_at(space, VA, 4 * G1, RWU), 30);
	assert_int_equal(stats_of(space).bytes, G1);
	assert_int_equal(rig_mmu_unmap(space, VA, G1), 0);
	finish(space);
}

static void emptied_tables_stay_until_their_unmap_is_confirmed(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);
	uint64_t first, second;

	(void)state;
	assert_int_equal(rig_mmu_map(space, VA, 0, K4, RW), 0);
	assert_int_equal(rig_mmu_map(space, VA + G1, 0, K4, RW), 0);
	assert_int_equal(memory.in_use, 1 + 1 + 2 * 2);
	assert_int_equal(rig_mmu_unmap(space, VA, K4), 0);
	first = rig_mmu_stamp(space);
	assert_int_equal(rig_mmu_unmap(space, VA + G1, K4), 0);
	second = rig_mmu_stamp(space);
	assert_int_equal(memory.in_use, 6);
	assert_int_equal(stats_of(space).waiting, 5);
	assert_int_equal(rig_mmu_map(space, VA, 0, K4, RW), 0); /* by new tables */
	assert_int_equal(memory.in_use, 9);
	rig_mmu_reap(space, first);
	assert_int_equal(memory.in_use, 7);
	rig_mmu_reap(space, first);
	assert_int_equal(memory.in_use, 7);
	rig_mmu_reap(space, second);
	assert_int_equal(memory.in_use, 4);
	assert_int_equal(stats_of(space).table_bytes, 4 * 4096);
	assert_int_equal(page_at(space, VA, 0, RW), 12);
	assert_int_equal(rig_mmu_unmap(space, VA, K4), 0); /* and leave them to close */
	finish(space);
}

/* A scenario with every kind of change; answers at the first failure, with the space as it must then be. */
struct expected {
	uint64_t va, pa, bytes;
};

static int run(struct rig_mmu_space *space, unsigned *done)
{
	const struct expected steps[] = {
	        {VA, 0, K4}, {VA + G1 - K4, G1 - K4, G1 + 2 * K4}, {VA + 8 * G1, M2 + K4, 3 * M2}};
	int rc;

	for (*done = 0; *done < 3; ++*done) {
		rc = rig_mmu_map(space, steps[*done].va, steps[*done].pa, steps[*done].bytes, RW);
		if (rc)
			return rc;
	}
	return 0;
}

static void check_steps(struct rig_mmu_space *space, unsigned done)
{
	assert_int_equal(page_at(space, VA, 0, RW), done > 0 ? 12 : 0);
	assert_int_equal(page_at(space, VA + G1 - K4, G1 - K4, RW), done > 1 ? 12 : 0);
	assert_int_equal(page_at(space, VA + 2 * G1, 2 * G1, RW), done > 1 ? 12 : 0);
	assert_int_equal(page_at(space, VA + 8 * G1, M2 + K4, RW), done > 2 ? 12 : 0);
	assert_int_equal(stats_of(space).bytes,
	        (done > 0 ? K4 : 0) + (done > 1 ? G1 + 2 * K4 : 0) + (done > 2 ? 3 * M2 : 0));
	assert_int_equal(stats_of(space).tables, memory.in_use);
	assert_int_equal(stats_of(space).waiting, 0);
}

static void when_the_kth_table_cannot_be_allocated_everything_is_as_before(void **state)
{
	uint64_t k;

	(void)state;
	for (k = 1;; k++) {
		struct rig_mmu_space *space = begin(&fake_sv48);
		unsigned done;
		int rc;

		memory.fail_at = k;
		rc = run(space, &done);
		memory.fail_at = 0;
		if (memory.failed)
			assert_int_equal(rc, -ENOBUFS);
		check_steps(space, done);
		finish(space);
		if (!memory.failed)
			break;
	}
	assert_true(k > 10); /* the ten tables of the scenario failed once each */
}

static void when_the_kth_heap_block_cannot_be_allocated_everything_is_as_before(void **state)
{
	struct rig_mmu_memory ops = fake_ops(&memory);
	struct test_counts before;

	(void)state;
	test_counts_take(&before);
	for (uint64_t k = 1;; k++) {
		struct rig_mmu_space *space = NULL;
		unsigned done = 0;
		int rc;

		memset(&memory, 0, sizeof(memory));
		test_allocs_fail_at(k);
		rc = rig_mmu_open(&space, &fake_sv48, &ops);
		if (!rc)
			rc = run(space, &done);
		if (test_allocs_failed())
			assert_int_equal(rc, -ENOMEM);
		if (space)
			check_steps(space, done);
		finish(space);
		if (!test_allocs_failed())
			break;
	}
	test_allocs_fail_at(0);
	test_counts_same(&before);
}

static void an_alloc_that_fails_at_open_is_passed_on(void **state)
{
	struct rig_mmu_space *space = NULL;
	struct rig_mmu_memory ops = fake_ops(&memory);
	struct rig_mmu_format bad = fake_sv48;

	(void)state;
	memset(&memory, 0, sizeof(memory));
	memory.fail_at = 1;
	assert_int_equal(rig_mmu_open(&space, &fake_sv48, &ops), -ENOBUFS);
	bad.levels = 0;
	assert_int_equal(rig_mmu_open(&space, &bad, &ops), -EINVAL);
	assert_null(space);
	assert_int_equal(memory.in_use, 0);
}

static void a_gibibyte_of_small_pages_takes_one_store_a_table_beside_the_links(void **state)
{
	struct rig_mmu_space *space = begin(&fake_sv48);
	uint64_t stores = memory.stores;

	(void)state;
	rig_mmu_limit_pages(space, 12);
	assert_int_equal(rig_mmu_map(space, VA, 0, G1, RW), 0);
	/* 512 tables filled and linked; two levels above, each cleared around one entry. */
	assert_true(memory.stores - stores <= 2 * 512 + 8);
	stores = memory.stores;
	assert_int_equal(rig_mmu_unmap(space, VA, G1), 0);
	assert_true(memory.stores - stores <= 512 + 8);
	finish(space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_new_space_maps_nothing),
	        cmocka_unit_test(a_large_page_is_used_exactly_from_its_size_on),
	        cmocka_unit_test(a_mapping_rises_to_the_largest_page_and_falls_again),
	        cmocka_unit_test(pages_whose_physical_address_is_not_congruent_are_small),
	        cmocka_unit_test(a_limit_keeps_pages_small_until_it_is_lifted),
	        cmocka_unit_test(what_the_format_cannot_say_is_refused),
	        cmocka_unit_test(an_overlap_by_one_page_is_refused_and_changes_nothing),
	        cmocka_unit_test(unmapping_what_is_not_mapped_answers_ENOENT_and_changes_nothing),
	        cmocka_unit_test(a_part_of_a_large_page_is_not_unmapped),
	        cmocka_unit_test(emptied_tables_stay_until_their_unmap_is_confirmed),
	        cmocka_unit_test(when_the_kth_table_cannot_be_allocated_everything_is_as_before),
	        cmocka_unit_test(when_the_kth_heap_block_cannot_be_allocated_everything_is_as_before),
	        cmocka_unit_test(an_alloc_that_fails_at_open_is_passed_on),
	        cmocka_unit_test(a_gibibyte_of_small_pages_takes_one_store_a_table_beside_the_links),
	};

	return cmocka_run_group_tests_name("mmu space", tests, NULL, NULL);
}
