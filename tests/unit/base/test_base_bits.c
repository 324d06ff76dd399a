/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "bits.h"
#include "le.h"

static void sums_that_overflow_answer_false_and_leave_the_output(void **state)
{
	uint64_t out = 7;

	(void)state;
	assert_true(rig_add_u64(UINT64_MAX - 1, 1, &out));
	assert_int_equal(out, UINT64_MAX);
	assert_false(rig_add_u64(UINT64_MAX, 1, &out));
	assert_int_equal(out, UINT64_MAX);
}

static void aligning_up_past_the_end_answers_false(void **state)
{
	uint64_t out = 7;

	(void)state;
	assert_true(rig_align_up(4095, 4096, &out));
	assert_int_equal(out, 4096);
	assert_true(rig_align_up(4096, 4096, &out));
	assert_int_equal(out, 4096);
	assert_true(rig_align_up(4097, 4096, &out));
	assert_int_equal(out, 8192);
	assert_true(rig_align_up(UINT64_MAX - 4095, 4096, &out));
	assert_int_equal(out, UINT64_MAX - 4095);
	assert_false(rig_align_up(UINT64_MAX - 4094, 4096, &out));
	assert_true(rig_align_up(UINT64_MAX, 1, &out));
}

static void logarithms_and_masks_hold_at_both_ends(void **state)
{
	(void)state;
	assert_int_equal(rig_ilog2(1), 0);
	assert_int_equal(rig_ilog2(UINT64_MAX), 63);
	assert_int_equal(rig_ilog2(4095), 11);
	assert_int_equal(rig_ilog2(4096), 12);
	assert_int_equal(rig_lowest_bit(UINT64_C(1) << 63), 63);
	assert_int_equal(rig_mask64(0), 0);
	assert_int_equal(rig_mask64(63), UINT64_MAX >> 1);
	assert_int_equal(rig_mask64(64), UINT64_MAX);
	assert_false(rig_is_pow2(0));
	assert_true(rig_is_pow2(UINT64_C(1) << 63));
	assert_false(rig_is_pow2(3));
	assert_int_equal(rig_div_up(UINT64_MAX, 2), UINT64_C(1) << 63);
}

static void a_span_is_checked_without_overflow(void **state)
{
	(void)state;
	assert_true(rig_span_fits(0, 16, 16));
	assert_true(rig_span_fits(16, 0, 16));
	assert_false(rig_span_fits(17, 0, 16));
	assert_false(rig_span_fits(1, 16, 16));
	assert_false(rig_span_fits(8, UINT64_MAX, 16));
	assert_false(rig_span_fits(UINT64_MAX, 8, 16));
}

static void little_endian_bytes_read_back_at_any_address(void **state)
{
	unsigned char bytes[16] = {0};

	(void)state;
	rig_put_le16(bytes + 1, 0x1234);
	assert_int_equal(bytes[1], 0x34);
	assert_int_equal(bytes[2], 0x12);
	assert_int_equal(rig_get_le16(bytes + 1), 0x1234);
	rig_put_le32(bytes + 3, 0x12345678);
	assert_int_equal(bytes[3], 0x78);
	assert_int_equal(rig_get_le32(bytes + 3), 0x12345678);
	rig_put_le64(bytes + 7, UINT64_C(0x0123456789abcdef));
	assert_int_equal(bytes[7], 0xef);
	assert_int_equal(bytes[14], 0x01);
	assert_int_equal(rig_get_le64(bytes + 7), UINT64_C(0x0123456789abcdef));
	assert_int_equal(bytes[15], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(sums_that_overflow_answer_false_and_leave_the_output),
	        cmocka_unit_test(aligning_up_past_the_end_answers_false),
	        cmocka_unit_test(logarithms_and_masks_hold_at_both_ends),
	        cmocka_unit_test(a_span_is_checked_without_overflow),
	        cmocka_unit_test(little_endian_bytes_read_back_at_any_address),
	};

	return cmocka_run_group_tests_name("base bits", tests, NULL, NULL);
}
