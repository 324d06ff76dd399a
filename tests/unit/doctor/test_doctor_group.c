/* SPDX-License-Identifier: MIT */
/* The IOMMU group: mates, isolation, addresses, the node. */
#include "machine_tree.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ndn-dpdk#63, dra-driver#1191: named one by one, each with its command and that for all. */
static void each_mate_with_a_kernel_driver_is_named_with_its_command(void **state)
{
	struct tree *t = *state;

	tree_mate(t, "snd_hda_intel");
	tree_function(t, "pci0000:64/" TREE_BRIDGE, "0000:65:00.2", "xhci_hcd", 12);
	tree_function(t, "pci0000:64/" TREE_BRIDGE, "0000:65:00.3", "", 12);
	tree_assert(t, TREE_BDF, "group-mate group-mate");
	tree_finding(
	        t, "group-mate", "group 12: " TREE_MATE " is with snd_hda_intel", "rigctl bind " TREE_MATE);
	tree_finding(t, "group-mate", "", "rigctl bind --group " TREE_BDF);
	tree_bind(t, TREE_MATE, "vfio-pci");
	tree_bind(t, "0000:65:00.2", "pci-stub");
	tree_assert(t, TREE_BDF, "");
}

static void bridges_stay_with_their_driver(void **state)
{
	struct tree *t = *state;

	tree_mate(t, "pcieport");
	tree_attribute(t, TREE_MATE, "class", "0x060400\n");
	tree_assert(t, TREE_BDF, "");
}

/* Linux 6.1 counts no driver of bridges but pcieport as harmless, and rigctl bind takes no bridge. */
static void a_bridge_with_another_driver_is_taken_away_from_it(void **state)
{
	struct tree *t = *state;

	tree_mate(t, "shpchp");
	tree_attribute(t, TREE_MATE, "class", "0x060400\n");
	tree_assert(t, TREE_BDF, "group-mate");
	tree_finding(t, "group-mate", TREE_MATE " is with shpchp",
	        "echo " TREE_MATE " > /sys/bus/pci/drivers/shpchp/unbind");
	assert_null(strstr(tree_finding(t, "group-mate", "", "")->command, "rigctl bind"));
}

static void a_mate_that_the_machine_works_through_makes_the_group_unusable(void **state)
{
	struct tree *t = *state;

	tree_mate(t, "ahci");
	tree_disk(t, TREE_MATE, "sda1", "8:1\n");
	tree_assert(t, TREE_BDF, "mate-in-use");
	tree_finding(t, "mate-in-use", TREE_MATE " is with ahci, and /dev/sda1 is mounted on /", "");
}

/* apu2#236, Media-Transport-Library#1667. */
static void a_large_group_names_the_bridge_that_does_not_isolate(void **state)
{
	uint8_t config[4096] = {0x86, 0x80, [0x100] = 0x01, 0x00, 0x01, 0x14, [0x140] = 0x0d, 0x00, 0x01,
	        0x00, [0x144] = 0x1d, 0, 0x1c, 0};
	struct tree *t = *state;

	tree_function(t, "pci0000:64/0000:64:01.0", "0000:66:00.0", "nvme", 12);
	tree_assert(t, TREE_BDF, "group-mate");
	tree_assert_silent(t, "acs"); /* the bridge isolates: the cause is elsewhere */
	tree_bytes(t, TREE_DEVICES TREE_BRIDGE "/config", config, sizeof(config));
	tree_assert(t, TREE_BDF, "group-mate");
	tree_finding(t, "acs", "bridge " TREE_BRIDGE " has ACS, but not switched on", "");
	config[0x140] = 0x0e;
	tree_bytes(t, TREE_DEVICES TREE_BRIDGE "/config", config, sizeof(config));
	tree_assert(t, TREE_BDF, "group-mate");
	tree_finding(t, "acs", "bridge " TREE_BRIDGE " has no ACS", "");
	/* A list that loops ends; what a user without rights may read says nothing. */
	config[0x142] = 0x01;
	config[0x143] = 0x14;
	tree_bytes(t, TREE_DEVICES TREE_BRIDGE "/config", config, sizeof(config));
	tree_assert(t, TREE_BDF, "group-mate");
	tree_finding(t, "acs", "has no ACS", "");
	tree_bytes(t, TREE_DEVICES TREE_BRIDGE "/config", config, 64);
	tree_assert(t, TREE_BDF, "group-mate");
	tree_assert_silent(t, "acs");
}

/* gatekeeper#718, harvester#7340. */
static void a_region_that_firmware_keeps_is_an_rmrr_and_stops(void **state)
{
	struct tree *t = *state;
	const struct rig_finding *f;

	tree_file(t, TREE_GROUP "/reserved_regions",
	        "0x000000007d000000 0x000000007f7fffff direct-relaxable\n"
	        "0x00000000fee00000 0x00000000feefffff msi\n");
	tree_assert(t, TREE_BDF, "");
	tree_file(t, TREE_GROUP "/reserved_regions",
	        "0x00000000bf7f0000 0x00000000bf7fffff direct\n"
	        "0x00000000fee00000 0x00000000feefffff msi\n");
	tree_assert(t, TREE_BDF, "rmrr");
	f = tree_finding(
	        t, "rmrr", "0x00000000bf7f0000 0x00000000bf7fffff direct (group 12, type DMA-FQ)", "");
	assert_non_null(strstr(f->text, "RMRR"));
	assert_non_null(strstr(f->text, "firmware setup"));
}

/* cloud-hypervisor#8896: the hole below 1 TiB. */
static void addresses_that_mappings_must_avoid_are_listed(void **state)
{
	struct tree *t = *state;

	tree_file(t, TREE_GROUP "/reserved_regions",
	        "0x00000000fee00000 0x00000000feefffff msi\n"
	        "0x000000fd00000000 0x000000ffffffffff reserved\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(
	        t, "reserved", "0xfee00000 to 0xfeefffff msi; 0xfd00000000 to 0xffffffffff reserved", "");
}

/* unvme#4, cloud-hypervisor#7030. */
static void an_iommu_of_39_bits_is_told(void **state)
{
	struct tree *t = *state;

	tree_assert(t, TREE_BDF, "");
	tree_assert_silent(t, "width");
	tree_file(t, "/sys/class/iommu/dmar0/intel-iommu/cap", "1c0000c40660462\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "width", "39 bits: mappings go below 512 GiB", "");
}

static const char *port_of_28_bits(unsigned vendor, unsigned device, unsigned *mask)
{
	(void)vendor;
	(void)device;
	*mask = 28;
	return "edu";
}

static void the_port_of_a_known_kind_says_its_mask(void **state)
{
	struct rig_doctor_ask ask = {.bdf = TREE_BDF,
	        .port = port_of_28_bits,
	        .pin = UINT64_C(512) << 20,
	        .way = RIG_DOCTOR_TYPE1};
	struct tree *t = *state;

	tree_file(t, "/proc/self/limits", NULL);
	tree_assert_ask(t, &ask, "mask");
	ask.mask = 46; /* who asks knows better */
	tree_assert_ask(t, &ask, "");
}

static void a_mask_that_leaves_too_little_room_stops(void **state)
{
	struct rig_doctor_ask ask = {.bdf = TREE_BDF, .mask = 28};
	struct tree *t = *state;

	tree_assert_ask(t, &ask, "");
	ask.pin = (UINT64_C(256) << 20) + 1;
	tree_assert_ask(t, &ask, "mask");
	tree_finding(t, "mask", "28 bits, of which 256 MiB are not reserved", "");
	ask.pin = UINT64_C(256) << 20;
	tree_assert_ask(t, &ask, "");
	tree_file(t, TREE_GROUP "/reserved_regions", "0x0000000000000000 0x0000000000000fff reserved\n");
	tree_assert_ask(t, &ask, "mask");
}

static void a_function_that_the_iommu_does_not_cover_is_told(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "iommu_group", NULL);
	tree_assert(t, TREE_BDF, "no-group");
}

/* -- The node -- */

static void set_mode(const struct tree *t, const char *path, mode_t mode)
{
	char full[128];

	snprintf(full, sizeof(full), "%s%s", t->root, path);
	assert_int_equal(chmod(full, mode), 0);
}

static void a_node_that_the_user_may_not_open_is_handed_over(void **state)
{
	struct tree *t = *state;
	char command[64];

	set_mode(t, "/dev/vfio/12", 0400);
	tree_assert(t, TREE_BDF, "permission");
	snprintf(command, sizeof(command), "rigctl bind --user %u " TREE_BDF, getuid());
	tree_finding(t, "permission", "mode 400", command);
	/* The function's own node serves as well, together with /dev/iommu. */
	tree_file(t, "/dev/vfio/devices/vfio0", "");
	tree_assert(t, TREE_BDF, "permission");
	tree_file(t, "/dev/iommu", "");
	tree_assert(t, TREE_BDF, "");
}

static void what_iommufd_needs_beside_the_functions_node_is_handed_over_too(void **state)
{
	struct tree *t = *state;
	const struct rig_doctor_ask ask = {.bdf = TREE_BDF, .way = RIG_DOCTOR_IOMMUFD};
	char command[64];

	tree_file(t, "/dev/vfio/devices/vfio0", "");
	tree_file(t, "/dev/iommu", "");
	tree_assert_ask(t, &ask, "");
	set_mode(t, "/dev/iommu", 0400);
	tree_assert_ask(t, &ask, "permission");
	snprintf(command, sizeof(command), "chown %u /dev/iommu", getuid());
	assert_null(strstr(tree_finding(t, "permission", "mode 400", command)->command, "rigctl bind"));
	set_mode(t, "/dev/vfio/devices/vfio0", 0400);
	tree_assert_ask(t, &ask, "permission permission");
	tree_finding(t, "permission", "mode 400", command);
	snprintf(command, sizeof(command), "rigctl bind --user %u " TREE_BDF, getuid());
	tree_finding(t, "permission", "mode 400", command);
}

static void a_captured_listing_stands_for_the_nodes(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/dev", NULL);
	tree_assert(t, TREE_BDF, "");
	tree_file(t, "/proc/self/status",
	        "Uid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\nGroups:\t27 44\n"
	        "CapEff:\t0000000000000000\n");
	tree_file(t, "/dev/vfio", "666 0 0 /dev/vfio/vfio\n600 0 0 /dev/vfio/12\n");
	tree_assert(t, TREE_BDF, "permission");
	tree_finding(
	        t, "permission", "mode 600, owner 0, group 0; the user is 1000", "chown 1000 /dev/vfio/12");
	tree_file(t, "/dev/vfio", "660 0 44 /dev/vfio/12\n666 0 0 /dev/vfio/vfio\n");
	tree_assert(t, TREE_BDF, "");
	tree_file(t, "/dev/vfio", "606 1000 44 /dev/vfio/12\n666 0 0 /dev/vfio/vfio\n");
	tree_assert(t, TREE_BDF, "");
	tree_file(t, "/dev/vfio", "066 1000 44 /dev/vfio/12\n666 0 0 /dev/vfio/vfio\n");
	tree_assert(t, TREE_BDF, "permission");
	tree_file(t, "/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n");
	tree_assert(t, TREE_BDF, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TREE_TEST(each_mate_with_a_kernel_driver_is_named_with_its_command),
	        TREE_TEST(bridges_stay_with_their_driver),
	        TREE_TEST(a_bridge_with_another_driver_is_taken_away_from_it),
	        TREE_TEST(a_mate_that_the_machine_works_through_makes_the_group_unusable),
	        TREE_TEST(a_large_group_names_the_bridge_that_does_not_isolate),
	        TREE_TEST(a_region_that_firmware_keeps_is_an_rmrr_and_stops),
	        TREE_TEST(addresses_that_mappings_must_avoid_are_listed),
	        TREE_TEST(an_iommu_of_39_bits_is_told),
	        TREE_TEST(the_port_of_a_known_kind_says_its_mask),
	        TREE_TEST(a_mask_that_leaves_too_little_room_stops),
	        TREE_TEST(a_function_that_the_iommu_does_not_cover_is_told),
	        TREE_TEST(a_node_that_the_user_may_not_open_is_handed_over),
	        TREE_TEST(what_iommufd_needs_beside_the_functions_node_is_handed_over_too),
	        TREE_TEST(a_captured_listing_stands_for_the_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
