/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "bdf.h"

/* What is read, and how Linux writes the same. */
static const struct {
	const char *text, *name;
	struct rig_bdf bdf;
} good[] = {
        {"0000:65:00.0", "0000:65:00.0", {0, 0x65, 0, 0}},
        {"abcd:ef:1f.7", "abcd:ef:1f.7", {0xabcd, 0xef, 31, 7}},
        {"ABCD:EF:1F.7", "abcd:ef:1f.7", {0xabcd, 0xef, 31, 7}},
        {"10000:e1:00.0", "10000:e1:00.0", {0x10000, 0xe1, 0, 0}},
        {"00010000:e1:00.0", "10000:e1:00.0", {0x10000, 0xe1, 0, 0}},
        {"00000:65:00.0", "0000:65:00.0", {0, 0x65, 0, 0}},
        {"ffffffff:ff:1f.7", "ffffffff:ff:1f.7", {UINT32_MAX, 0xff, 31, 7}},
};

static void an_address_of_four_to_eight_digits_is_read_and_printed_as_linux_does(void **state)
{
	char name[RIG_BDF_TEXT];
	struct rig_bdf bdf;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(rig_bdf_parse(good[i].text, &bdf));
		assert_int_equal(rig_bdf_compare(&bdf, &good[i].bdf), 0);
		assert_string_equal(rig_bdf_print(&bdf, name), good[i].name);
		memset(name, 'x', sizeof(name));
		assert_true(rig_bdf_name(good[i].text, name));
		assert_string_equal(name, good[i].name);
		assert_int_equal(rig_bdf_is_name(good[i].text), strcmp(good[i].text, good[i].name) == 0);
	}
}

static void what_is_no_address_is_refused_and_leaves_the_result_alone(void **state)
{
	static const char *const bad[] = {"", "65:00.0", "000:65:00.0", "000000000:65:00.0", "0000:065:00.0",
	        "0000:65:00", "0000:65:00.", "0000:65:00.8", "0000:65:20.0", "0000:65:00.0 ", " 0000:65:00.0",
	        "0000:65:00.00", "0000:65:0.0", "0000-65:00.0", "0000:65:00:0", "000g:65:00.0",
	        "0x00:65:00.0", "+000:65:00.0", "../../../etc", "0000:65:00.0/driver"};
	const struct rig_bdf before = {1, 2, 3, 4};
	char name[RIG_BDF_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rig_bdf bdf = before;

		assert_false(rig_bdf_parse(bad[i], &bdf));
		assert_int_equal(rig_bdf_compare(&bdf, &before), 0);
		assert_false(rig_bdf_name(bad[i], name));
		assert_string_equal(name, "");
		assert_false(rig_bdf_is_name(bad[i]));
	}
}

static void addresses_are_in_the_order_of_domain_bus_slot_and_function(void **state)
{
	static const struct rig_bdf order[] = {{0, 0, 0, 0}, {0, 0, 0, 7}, {0, 0, 1, 0}, {0, 0xff, 31, 7},
	        {1, 0, 0, 0}, {0x10000, 0, 0, 0}, {UINT32_MAX, 0, 0, 0}};
	const size_t count = sizeof(order) / sizeof(order[0]);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			assert_int_equal(rig_bdf_compare(&order[i], &order[j]), (i > j) - (i < j));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_address_of_four_to_eight_digits_is_read_and_printed_as_linux_does),
	        cmocka_unit_test(what_is_no_address_is_refused_and_leaves_the_result_alone),
	        cmocka_unit_test(addresses_are_in_the_order_of_domain_bus_slot_and_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
