/* SPDX-License-Identifier: MIT */
#include "test.h"

#define MODEL_CHECK(condition) assert_true(condition)
#include "mmu_model.h"

enum { ROUNDS = 40, STEPS = 400 };

static struct fake_memory memory;

static void run(const struct rig_mmu_format *format, bool lazy)
{
	uint8_t op[MODEL_OP_BYTES];
	struct model m;

	srand(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		model_open(&m, format, &memory, lazy);
		for (unsigned n = 0; n < STEPS; n++) {
			for (unsigned i = 0; i < MODEL_OP_BYTES; i++)
				op[i] = (uint8_t)(rand() >> 8);
			model_step(&m, op);
		}
		model_close(&m);
	}
}

static void random_changes_agree_with_a_flat_map_after_every_store(void **state)
{
	(void)state;
	run(&fake_tiny, false);
}

static void random_changes_agree_with_a_flat_map_with_contiguous_blocks(void **state)
{
	(void)state;
	run(&fake_blocks, false);
}

static void stores_between_barriers_may_be_seen_in_any_order(void **state)
{
	(void)state;
	run(&fake_tiny, true);
	run(&fake_blocks, true);
}

static void the_last_page_of_the_root_is_cleared_there(void **state)
{
	struct model m;

	(void)state;
	model_open(&m, &fake_tiny, &memory, false);
	model_map(&m, 32, 32, 0, RIG_MMU_READ);
	model_check(&m);
	model_unmap(&m, 32, 32);
	model_check(&m);
	model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(random_changes_agree_with_a_flat_map_after_every_store),
	        cmocka_unit_test(random_changes_agree_with_a_flat_map_with_contiguous_blocks),
	        cmocka_unit_test(the_last_page_of_the_root_is_cleared_there),
	        cmocka_unit_test(stores_between_barriers_may_be_seen_in_any_order),
	};

	return cmocka_run_group_tests_name("mmu model", tests, NULL, NULL);
}
