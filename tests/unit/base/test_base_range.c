/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "range_look.h"

#define LAST UINT64_MAX

static void ranges_that_touch_become_one(void **state)
{
	struct rig_ranges set = {0};

	(void)state;
	assert_int_equal(rig_ranges_add(&set, 0, 9), 0);
	assert_int_equal(rig_ranges_add(&set, 20, 29), 0);
	assert_int_equal(set.count, 2);
	assert_int_equal(rig_ranges_add(&set, 11, 18), 0); /* one short of both */
	assert_int_equal(set.count, 3);
	assert_int_equal(rig_ranges_add(&set, 10, 10), 0);
	assert_int_equal(set.count, 2);
	assert_int_equal(rig_ranges_add(&set, 19, 19), 0);
	assert_int_equal(set.count, 1);
	assert_true(ranges_contain(&set, 0, 29));
	assert_false(ranges_contain(&set, 0, 30));
	rig_ranges_fini(&set);
	rig_ranges_fini(NULL);
}

static void the_whole_space_is_a_range(void **state)
{
	struct rig_ranges set = {0};

	(void)state;
	assert_int_equal(rig_ranges_add(&set, 0, LAST), 0);
	assert_int_equal(rig_ranges_sub(&set, 0, 0), 0);
	assert_int_equal(rig_ranges_sub(&set, LAST, LAST), 0);
	assert_true(ranges_contain(&set, 1, LAST - 1));
	assert_false(ranges_overlap(&set, 0, 0));
	assert_false(ranges_overlap(&set, LAST, LAST));
	assert_int_equal(rig_ranges_add(&set, LAST, LAST), 0);
	assert_int_equal(rig_ranges_add(&set, 0, 0), 0);
	assert_int_equal(set.count, 1);
	rig_ranges_fini(&set);
}

static void a_backward_range_is_refused(void **state)
{
	struct rig_ranges set = {0};

	(void)state;
	assert_int_equal(rig_ranges_add(&set, 2, 1), -EINVAL);
	assert_int_equal(rig_ranges_sub(&set, 2, 1), -EINVAL);
}

static void a_fit_is_the_lowest_one_that_meets_alignment_bound_and_mask(void **state)
{
	struct rig_ranges set = {0};
	uint64_t at = 0;

	(void)state;
	rig_ranges_add(&set, 0x1001, 0x3fff);
	rig_ranges_add(&set, 0x10000, 0x1ffff);
#define FIT(...) rig_ranges_fit(&set, &(struct rig_ranges_want){__VA_ARGS__}, &at)
	assert_int_equal(FIT(.bytes = 0x2000, .align = 0x1000), 0);
	assert_int_equal(at, 0x2000);
	assert_int_equal(FIT(.bytes = 0x2001, .align = 0x1000), 0);
	assert_int_equal(at, 0x10000);
	assert_int_equal(FIT(.bytes = 1), 0);
	assert_int_equal(at, 0x1001);
	assert_int_equal(FIT(.bytes = 0x1000, .align = 0x1000, .lower = 0x3000), 0);
	assert_int_equal(at, 0x3000);
	assert_int_equal(FIT(.bytes = 0x1000, .align = 0x1000, .lower = 0x3001), 0);
	assert_int_equal(at, 0x10000);
	assert_int_equal(FIT(.bytes = 0x1000, .lower = 0x4000, .mask = 0x10fff), 0);
	assert_int_equal(FIT(.bytes = 0x1000, .lower = 0x4000, .mask = 0x10ffe), -ENOSPC);
	assert_int_equal(FIT(.bytes = 0x10000), 0);
	assert_int_equal(FIT(.bytes = 0x10001), -ENOSPC);
	assert_int_equal(FIT(.bytes = 0), -EINVAL);
	assert_int_equal(FIT(.bytes = 1, .align = 3), -EINVAL);
	rig_ranges_fini(&set);
	rig_ranges_add(&set, LAST - 0xfff, LAST);
	assert_int_equal(FIT(.bytes = 0x1000, .align = 0x1000), 0);
	assert_int_equal(at, LAST - 0xfff);
	assert_int_equal(FIT(.bytes = 0x1000, .align = 0x2000), -ENOSPC);
	assert_int_equal(FIT(.bytes = 0x1001), -ENOSPC);
	rig_ranges_fini(&set);
}

/* A universe of single addresses around one end of the space. */
enum { UNIVERSE = 96 };

static uint64_t address(bool top, unsigned i)
{
	return top ? LAST - (UNIVERSE - 1) + i : i;
}

static void assert_same(const struct rig_ranges *set, const bool *model, bool top)
{
	for (unsigned i = 0; i < UNIVERSE; i++) {
		uint64_t at = address(top, i);

		assert_int_equal(ranges_contain(set, at, at), model[i]);
	}
	for (size_t i = 1; i < set->count; i++)
		assert_true(set->at[i].first - 1 > set->at[i - 1].last);
}

static void change(struct rig_ranges *set, bool *model, bool top)
{
	unsigned a = (unsigned)rand() % UNIVERSE, b = (unsigned)rand() % UNIVERSE;
	unsigned low = a < b ? a : b, high = a < b ? b : a;
	bool add = rand() % 2;

	for (unsigned i = 0; i < UNIVERSE; i++) {
		bool in = i >= low && i <= high;

		model[i] = add ? model[i] || in : model[i] && !in;
	}
	if (add)
		assert_int_equal(rig_ranges_add(set, address(top, low), address(top, high)), 0);
	else
		assert_int_equal(rig_ranges_sub(set, address(top, low), address(top, high)), 0);
}

static void random_changes_agree_with_a_set_of_addresses_at_both_ends(void **state)
{
	(void)state;
	srand(1);
	for (int top = 0; top < 2; top++) {
		struct rig_ranges set = {0};
		bool model[UNIVERSE] = {false};

		for (unsigned n = 0; n < 3000; n++) {
			change(&set, model, top);
			assert_same(&set, model, top);
		}
		rig_ranges_fini(&set);
	}
}

static int build(struct rig_ranges *set)
{
	int rc = 0;

	for (uint64_t i = 0; i < 40 && !rc; i++)
		rc = rig_ranges_add(set, i * 10, i * 10 + 5);
	return rc;
}

static void a_change_without_memory_leaves_the_set(void **state)
{
	(void)state;
	for (uint64_t k = 1;; k++) {
		struct rig_ranges set = {0};
		size_t count;
		int rc;

		test_allocs_fail_at(k);
		rc = build(&set);
		if (!test_allocs_failed())
			break;
		assert_int_equal(rc, -ENOMEM);
		count = set.count;
		for (size_t i = 0; i < count; i++)
			assert_true(ranges_contain(&set, i * 10, i * 10 + 5));
		rig_ranges_fini(&set);
	}
	test_allocs_fail_at(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ranges_that_touch_become_one),
	        cmocka_unit_test(the_whole_space_is_a_range),
	        cmocka_unit_test(a_backward_range_is_refused),
	        cmocka_unit_test(a_fit_is_the_lowest_one_that_meets_alignment_bound_and_mask),
	        cmocka_unit_test(random_changes_agree_with_a_set_of_addresses_at_both_ends),
	        cmocka_unit_test(a_change_without_memory_leaves_the_set),
	};

	return cmocka_run_group_tests_name("base range", tests, NULL, NULL);
}
