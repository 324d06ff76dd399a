/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mmu_fake.h"
#include "mmu_va.h"

#define K4    (UINT64_C(1) << 12)
#define M2    (UINT64_C(1) << 21)
#define G1    (UINT64_C(1) << 30)
#define FIRST (UINT64_C(1) << 42)

static void addresses_agree_with_the_physical_ones_as_far_as_a_page_inside_reaches(void **state)
{
	static const struct {
		uint64_t pa, bytes, colour;
	} cases[] = {
	        {5 * K4, M2 - K4, K4},
	        {5 * K4, M2, M2},
	        {5 * K4, G1 - K4, M2},
	        {5 * K4, 2 * G1, G1},
	        {7 * M2, M2, M2},
	};
	struct rig_mmu_va *va = NULL;
	uint64_t at[5];

	(void)state;
	assert_int_equal(rig_mmu_va_open(&va, &fake_sv48, FIRST, UINT64_C(1) << 40), 0);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(rig_mmu_va_alloc(va, cases[i].pa, cases[i].bytes, &at[i]), 0);
		assert_int_equal((at[i] ^ cases[i].pa) % cases[i].colour, 0);
		assert_true(at[i] >= FIRST);
		for (unsigned j = 0; j < i; j++)
			assert_true(at[i] + cases[i].bytes <= at[j] || at[j] + cases[j].bytes <= at[i]);
	}
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(rig_mmu_va_free(va, at[i], cases[i].bytes), 0);
		assert_int_equal(rig_mmu_va_free(va, at[i], cases[i].bytes), -ENOENT);
	}
	assert_int_equal(rig_mmu_va_alloc(va, 0, UINT64_C(1) << 40, &at[0]), 0);
	rig_mmu_va_close(va);
	rig_mmu_va_close(NULL);
}

static void bad_sizes_are_refused(void **state)
{
	struct rig_mmu_va *va = NULL;
	uint64_t at;

	(void)state;
	assert_int_equal(rig_mmu_va_open(&va, &fake_sv48, FIRST + 1, G1), -EINVAL);
	assert_int_equal(rig_mmu_va_open(&va, &fake_sv48, FIRST, G1 + 1), -EINVAL);
	assert_int_equal(rig_mmu_va_open(&va, &fake_sv48, FIRST, G1), 0);
	assert_int_equal(rig_mmu_va_alloc(va, 0, 0, &at), -EINVAL);
	assert_int_equal(rig_mmu_va_alloc(va, 1, K4, &at), -EINVAL);
	assert_int_equal(rig_mmu_va_alloc(va, 0, K4 + 1, &at), -EINVAL);
	assert_int_equal(rig_mmu_va_alloc(va, G1 - K4, -K4, &at), -ENOMEM);
	assert_int_equal(rig_mmu_va_alloc(va, 0, G1 + K4, &at), -ENOMEM);
	assert_int_equal(rig_mmu_va_alloc(va, 0, G1, &at), 0);
	assert_int_equal(at, FIRST);
	rig_mmu_va_close(va);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(addresses_agree_with_the_physical_ones_as_far_as_a_page_inside_reaches),
	        cmocka_unit_test(bad_sizes_are_refused),
	};

	return cmocka_run_group_tests_name("mmu va", tests, NULL, NULL);
}
