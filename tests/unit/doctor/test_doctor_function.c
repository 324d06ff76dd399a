/* SPDX-License-Identifier: MIT */
/* A function: its driver, its state, who has it. */
#include "machine_tree.h"

#include <string.h>

static void a_function_that_is_not_there_is_looked_for_again(void **state)
{
	struct tree *t = *state;

	tree_assert(t, "0000:66:00.0", "absent");
	tree_finding(t, "absent", "no 0000:66:00.0", "echo 1 > /sys/bus/pci/rescan");
}

static void a_function_with_another_driver_is_bound(void **state)
{
	struct tree *t = *state;

	tree_bind(t, TREE_BDF, "nouveau");
	tree_assert(t, TREE_BDF, "driver");
	tree_finding(t, "driver", "nouveau", "rigctl bind " TREE_BDF);
	tree_bind(t, TREE_BDF, "");
	tree_assert(t, TREE_BDF, "driver");
	tree_finding(t, "driver", "none", "rigctl bind " TREE_BDF);
	tree_bind(t, TREE_BDF, "mlx5_vfio_pci");
	tree_assert(t, TREE_BDF, "");
}

/* spdk#447, #2021: uio with the IOMMU on. */
static void a_function_with_uio_is_told_what_that_is(void **state)
{
	struct tree *t = *state;

	tree_bind(t, TREE_BDF, "uio_pci_generic");
	tree_assert(t, TREE_BDF, "driver");
	tree_finding(t, "driver", "without the IOMMU's protection", "rigctl bind");
}

/* rshim#99. */
static void a_function_taken_by_its_ids_is_told(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "driver_override", "(null)\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "new-id", "(null)", "");
}

/* sriov-fec-operator#32. */
static void a_virtual_function_of_one_given_out_needs_a_token(void **state)
{
	const struct rig_doctor_ask known = {.bdf = "0000:65:02.0", .token = true};
	struct tree *t = *state;

	tree_function(t, "pci0000:64/" TREE_BRIDGE, "0000:65:02.0", "vfio-pci", 13);
	tree_attribute(t, "0000:65:02.0", "driver_override", "vfio-pci\n");
	tree_file(t, "/dev/vfio/13", "");
	tree_link(t, "/sys/devices/pci0000:64/" TREE_BRIDGE "/0000:65:02.0/physfn", "../" TREE_BDF);
	tree_assert(t, "0000:65:02.0", "token");
	tree_finding(t, "token", TREE_BDF, "rigctl unbind " TREE_BDF);
	tree_finding(t, "token", "", "0000:65:02.0,vf-token=UUID");
	tree_assert_ask(t, &known, "");
	tree_bind(t, TREE_BDF, "ice");
	tree_assert(t, "0000:65:02.0", "");
	/* libvfn#59: a plain device is not asked for one. */
	tree_assert_silent(t, "token");
}

static void virtual_functions_are_counted(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "sriov_numvfs", "0\n");
	tree_assert(t, TREE_BDF, "");
	tree_assert_silent(t, "virtual-functions");
	tree_attribute(t, TREE_BDF, "sriov_numvfs", "4\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "virtual-functions", "4", "");
}

/* vm-curator#63. */
static void a_function_that_is_powered_off_is_switched_on(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "power_state", "D3cold\n");
	tree_assert(t, TREE_BDF, "power");
	tree_finding(t, "power", "D3cold", "echo on > " TREE_DEVICES TREE_BDF "/power/control");
	/* Opening wakes it from there. */
	tree_attribute(t, TREE_BDF, "power_state", "D3hot\n");
	tree_assert(t, TREE_BDF, "");
}

static void a_function_that_reads_all_ones_is_off_the_bus(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "current_link_width", "0\n");
	tree_assert(t, TREE_BDF, "");
	tree_bytes(t, TREE_DEVICES TREE_BDF "/config", "\xff\xff\xff\xff", 4);
	tree_assert(t, TREE_BDF, "link");
	tree_finding(t, "link", "vendor id ffff; 0 of 16 lanes", "rescan");
}

/* tinygrad#17693. */
static void a_link_that_may_sleep_is_told(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "link/l1_aspm", "1\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "aspm", "1", "echo 0 > " TREE_DEVICES TREE_BDF "/link/l1_aspm");
}

/* cloud-hypervisor#8533. */
static void a_reset_that_hits_others_names_them(void **state)
{
	struct tree *t = *state;

	tree_mate(t, "vfio-pci");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "reset", "flr bus", "");
	tree_attribute(t, TREE_BDF, "reset_method", "bus\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "reset", "bus; it resets also " TREE_MATE " (vfio-pci)", "");
	tree_attribute(t, TREE_BDF, "reset_method", NULL);
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "reset", "none", "");
}

static void who_holds_the_lock_is_named_while_the_process_lives(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/run/rig-vfio/" TREE_BDF, "4711 (rigctl)\n");
	tree_assert(t, TREE_BDF, "");
	tree_file(t, "/proc/4711/comm", "bash\n");
	tree_assert(t, TREE_BDF, "");
	tree_file(t, "/proc/4711/comm", "rigctl\n");
	tree_assert(t, TREE_BDF, "holder");
	tree_finding(t, "holder", "4711 (rigctl)", "kill 4711");
	tree_file(t, "/run/rig-vfio/" TREE_BDF, "");
	tree_assert(t, TREE_BDF, "");
	tree_file(t, "/run/user/1000/rig-vfio/" TREE_BDF, "4711 (rigctl)\n");
	tree_assert(t, TREE_BDF, "holder");
}

static void who_has_a_node_open_is_named(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/proc/812/comm", "qemu-system-x86\n");
	tree_node(t, "/proc/812/fd/3", "anon_inode:[eventfd]");
	tree_node(t, "/proc/812/fd/7", "/dev/vfio/13");
	tree_assert(t, TREE_BDF, "");
	tree_node(t, "/proc/812/fd/7", "/dev/vfio/12");
	tree_assert(t, TREE_BDF, "holder");
	tree_finding(t, "holder", "812 (qemu-system-x86)", "kill 812");
	tree_node(t, "/proc/812/fd/7", "/dev/vfio/devices/vfio0");
	tree_assert(t, TREE_BDF, "holder");
}

static const char *port(unsigned vendor, unsigned device, unsigned *mask)
{
	*mask = 0;
	return vendor == 0x1234 && device == 0x5258 ? "rvx1" : NULL;
}

static void a_kind_that_no_port_drives_is_told(void **state)
{
	const struct rig_doctor_ask ask = {.bdf = TREE_BDF, .port = port};
	struct tree *t = *state;

	tree_assert_ask(t, &ask, "");
	tree_assert_silent(t, "port");
	tree_attribute(t, TREE_BDF, "device", "0x0001\n");
	tree_assert_ask(t, &ask, "");
	tree_finding(t, "port", "1234:0001", "");
}

static void files_with_garbage_end_in_no_finding_that_is_not_true(void **state)
{
	static const char *const files[] = {"power_state", "numa_node", "resource", "reset_method",
	        "sriov_numvfs", "link/l1_aspm", "resource2_resize", "config", "driver_override"};
	struct tree *t = *state;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		tree_attribute(
		        t, TREE_BDF, files[i], "\x01\x80 no \x7f sense %s %n -1 99999999999999999999\n\n");
	tree_file(t, TREE_GROUP "/reserved_regions", "\xff\xfe\n0x 0x direct-ish\n1 0 msi\n");
	tree_file(t, "/proc/interrupts", "");
	tree_assert(t, TREE_BDF, "");
	for (unsigned i = 0; i < t->found.count; i++)
		for (const char *at = t->found.finding[i].content; *at; at++)
			assert_true(*at >= ' ' && *at <= '~');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TREE_TEST(a_function_that_is_not_there_is_looked_for_again),
	        TREE_TEST(a_function_with_another_driver_is_bound),
	        TREE_TEST(a_function_with_uio_is_told_what_that_is),
	        TREE_TEST(a_function_taken_by_its_ids_is_told),
	        TREE_TEST(a_virtual_function_of_one_given_out_needs_a_token),
	        TREE_TEST(virtual_functions_are_counted),
	        TREE_TEST(a_function_that_is_powered_off_is_switched_on),
	        TREE_TEST(a_function_that_reads_all_ones_is_off_the_bus),
	        TREE_TEST(a_link_that_may_sleep_is_told),
	        TREE_TEST(a_reset_that_hits_others_names_them),
	        TREE_TEST(who_holds_the_lock_is_named_while_the_process_lives),
	        TREE_TEST(who_has_a_node_open_is_named),
	        TREE_TEST(a_kind_that_no_port_drives_is_told),
	        TREE_TEST(files_with_garbage_end_in_no_finding_that_is_not_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
