/* SPDX-License-Identifier: MIT */
/* BARs and the bridge windows above them. */
#include "machine_tree.h"

/* tinygrad/open-gpu-kernel-modules#13. */
static void a_bar_that_could_be_larger_names_the_sizes_and_the_command(void **state)
{
	struct tree *t = *state;

	/* 256 MiB and 512 MiB, which the bridge's window has. */
	tree_attribute(t, TREE_BDF, "resource2_resize", "0000000000000300\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "bar-small", "BAR2 has 256 MiB and could have 512 MiB",
	        "echo " TREE_BDF " > " TREE_DEVICES TREE_BDF "/driver/unbind\n"
	        "echo 9 > " TREE_DEVICES TREE_BDF "/resource2_resize\n"
	        "rigctl bind " TREE_BDF);
	tree_bind(t, TREE_BDF, "");
	tree_assert(t, TREE_BDF, "driver");
	tree_finding(t, "bar-small", "",
	        "echo 9 > " TREE_DEVICES TREE_BDF "/resource2_resize\n"
	        "rigctl bind " TREE_BDF);
}

/* raspberrypi/linux#6621. */
static void the_bridge_whose_window_stops_a_resize_is_named(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "resource2_resize", "0000000000003f00\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "bar-small", "could have 8 GiB, but the window of bridge " TREE_BRIDGE " has 512 MiB",
	        "pci=realloc");
}

static void a_bar_of_its_largest_size_is_no_finding(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "resource2_resize", "0000000000000100\n");
	tree_assert(t, TREE_BDF, "");
	tree_assert_silent(t, "bar-small");
}

/* cloud-hypervisor#7939. */
static void a_bar_smaller_than_a_page_is_told(void **state)
{
	struct tree *t = *state;

	tree_assert(t, TREE_BDF, "");
	tree_assert_silent(t, "bar-page");
	tree_attribute(t, TREE_BDF, "resource", "0x00000000fe000800 0x00000000fe000fff 0x0000000000040200\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "bar-page", "BAR0 has 2 KiB at 0xfe000800", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TREE_TEST(a_bar_that_could_be_larger_names_the_sizes_and_the_command),
	        TREE_TEST(the_bridge_whose_window_stops_a_resize_is_named),
	        TREE_TEST(a_bar_of_its_largest_size_is_no_finding),
	        TREE_TEST(a_bar_smaller_than_a_page_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
