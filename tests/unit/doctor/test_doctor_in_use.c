/* SPDX-License-Identifier: MIT */
/* Whether the machine works through a function. */
#include "machine_tree.h"

#include <stdio.h>
#include <string.h>

static void assert_used(struct tree *t, const char *why)
{
	char text[128];

	assert_true(rig_doctor_in_use(t->root, TREE_BDF, text, sizeof(text)));
	assert_string_equal(text, why);
}

static void assert_free(struct tree *t)
{
	char text[128];

	if (rig_doctor_in_use(t->root, TREE_BDF, text, sizeof(text)))
		fail_msg("in use: %s", text);
}

static void a_function_without_disk_and_network_is_free(void **state)
{
	assert_free(*state);
}

static void a_mounted_disk_is_in_use_by_its_number_and_by_its_name(void **state)
{
	struct tree *t = *state;

	tree_disk(t, TREE_BDF, "sdb1", "8:17\n");
	assert_free(t);
	tree_file(t, "/proc/self/mountinfo", "22 1 8:17 / /data rw - ext4 /dev/root rw\n");
	assert_used(t, "/dev/sdb1 is mounted on /data");
	tree_file(t, "/proc/self/mountinfo", "22 1 0:41 / /data rw shared:1 - btrfs /dev/sdb1 rw\n");
	assert_used(t, "/dev/sdb1 is mounted on /data");
	tree_file(t, "/proc/self/mountinfo", "22 1 0:41 / /data rw shared:1 - btrfs /dev/sdb11 rw\n");
	assert_free(t);
	/* Another mount namespace, that of the machine. */
	tree_file(t, "/proc/1/mountinfo", "22 1 8:17 / /host rw - ext4 /dev/sdb1 rw\n");
	assert_used(t, "/dev/sdb1 is mounted on /host");
}

static void a_disk_elsewhere_is_not_this_functions(void **state)
{
	struct tree *t = *state;

	tree_mate(t, "ahci");
	tree_disk(t, TREE_MATE, "sda1", "8:1\n");
	assert_free(t);
}

static void a_disk_that_is_swapped_to_is_in_use(void **state)
{
	struct tree *t = *state;

	tree_disk(t, TREE_BDF, "sda2", "8:2\n");
	assert_used(t, "/dev/sda2 is swapped to");
}

static void what_is_made_of_a_disk_counts(void **state)
{
	struct tree *t = *state;

	tree_disk(t, TREE_BDF, "sdc", "8:32\n");
	tree_file(t, TREE_DEVICES TREE_BDF "/ata1/host0/block/sdc/holders/dm-0/dev", "253:0\n");
	tree_file(t, "/sys/devices/virtual/block/dm-0/dev", "253:0\n");
	tree_file(t, "/sys/devices/virtual/block/dm-0/dm/name", "vg-home\n");
	tree_link(t, "/sys/class/block/dm-0", "/sys/devices/virtual/block/dm-0");
	assert_free(t);
	tree_file(t, "/proc/self/mountinfo", "22 1 253:0 / /home rw - ext4 /dev/mapper/vg-home rw\n");
	assert_used(t, "/dev/mapper/vg-home is mounted on /home");
	tree_file(t, "/proc/self/mountinfo", "22 1 8:99 / / rw - ext4 /dev/sdx rw\n");
	tree_file(t, "/sys/fs/btrfs/1234-abcd/devices/sdc", "");
	assert_used(t, "/dev/sdc is part of a mounted btrfs");
}

static void a_namespace_of_an_nvme_subsystem_belongs_to_its_controllers(void **state)
{
	static const char subsystem[] = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
	struct tree *t = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/nvme0n1/dev", subsystem);
	tree_file(t, path, "259:0\n");
	tree_file(t, TREE_DEVICES TREE_BDF "/nvme/nvme0/state", "live\n");
	snprintf(path, sizeof(path), "%s/nvme0", subsystem);
	tree_link(t, path, TREE_DEVICES TREE_BDF "/nvme/nvme0");
	snprintf(path, sizeof(path), "%s/nvme0n1", subsystem);
	tree_link(t, "/sys/class/block/nvme0n1", path);
	assert_free(t);
	tree_file(t, "/proc/self/mountinfo", "22 1 259:0 / / rw - ext4 /dev/nvme0n1 rw\n");
	assert_used(t, "/dev/nvme0n1 is mounted on /");
}

static void a_disk_whose_use_cannot_be_told_is_in_use(void **state)
{
	struct tree *t = *state;

	tree_disk(t, TREE_BDF, "sdb", "8:16\n");
	tree_file(t, "/proc/self/mountinfo", NULL);
	assert_used(t, "it has the disk /dev/sdb, and what is mounted cannot be read");
	tree_file(t, "/proc/mounts", "/dev/sdb /mnt ext4 rw 0 0\n");
	assert_used(t, "/dev/sdb is mounted on /mnt");
}

static void an_interface_with_a_route_carries_the_network(void **state)
{
	struct tree *t = *state;

	tree_interface(t, TREE_BDF, "eth1");
	assert_free(t);
	tree_interface(t, TREE_BDF, "eth0");
	assert_used(t, "interface eth0 has the default route");
	tree_file(t, "/proc/net/route", "Iface\tDestination\neth0\t0002A8C0\t00000000\n");
	assert_used(t, "interface eth0 has an address or a route");
	tree_file(t, "/proc/net/route", "Iface\tDestination\n");
	assert_free(t);
}

static void an_address_that_is_not_the_links_own_carries_the_network(void **state)
{
	struct tree *t = *state;

	tree_interface(t, TREE_BDF, "eth1");
	tree_file(t, "/proc/net/if_inet6", "fe800000000000000000000000000001 02 40 20 80     eth1\n");
	assert_free(t);
	tree_file(t, "/proc/net/if_inet6", "20010db8000000000000000000000001 02 40 00 80     eth1\n");
	assert_used(t, "interface eth1 has an IPv6 address");
}

static void an_interface_below_a_bond_carries_what_the_bond_does(void **state)
{
	struct tree *t = *state;

	tree_interface(t, TREE_BDF, "eth1");
	tree_link(t, "/sys/devices/pci0000:64/" TREE_BRIDGE "/" TREE_BDF "/net/eth1/upper_bond0",
	        "/sys/class/net/bond0");
	tree_file(t, "/sys/devices/virtual/net/bond0/ifindex", "9\n");
	tree_link(t, "/sys/class/net/bond0", "/sys/devices/virtual/net/bond0");
	assert_free(t);
	tree_file(t, "/proc/net/route", "Iface\tDestination\nbond0\t00000000\t0102A8C0\n");
	assert_used(t, "interface bond0 has the default route");
}

static void the_doctor_stops_at_a_function_that_is_in_use(void **state)
{
	struct tree *t = *state;

	tree_bind(t, TREE_BDF, "e1000e");
	tree_interface(t, TREE_BDF, "eth0");
	tree_assert(t, TREE_BDF, "in-use");
	tree_finding(t, "in-use", "e1000e, and interface eth0 has the default route", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TREE_TEST(a_function_without_disk_and_network_is_free),
	        TREE_TEST(a_mounted_disk_is_in_use_by_its_number_and_by_its_name),
	        TREE_TEST(a_disk_elsewhere_is_not_this_functions),
	        TREE_TEST(a_disk_that_is_swapped_to_is_in_use),
	        TREE_TEST(what_is_made_of_a_disk_counts),
	        TREE_TEST(a_namespace_of_an_nvme_subsystem_belongs_to_its_controllers),
	        TREE_TEST(a_disk_whose_use_cannot_be_told_is_in_use),
	        TREE_TEST(an_interface_with_a_route_carries_the_network),
	        TREE_TEST(an_address_that_is_not_the_links_own_carries_the_network),
	        TREE_TEST(an_interface_below_a_bond_carries_what_the_bond_does),
	        TREE_TEST(the_doctor_stops_at_a_function_that_is_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
