/* SPDX-License-Identifier: MIT */
/* What a tree of sysfs files says about a function. */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "kernel_sysfs.h"
#include "vfio_kernel_bench.h"

static void every_fact_is_read(void **state)
{
	struct rig_ksysfs s;

	(void)state;
	assert_int_equal(rig_ksysfs_read(kernel.root, FAKE_KERNEL_BDF0, &s), 0);
	assert_int_equal(s.vendor, 0x1234);
	assert_int_equal(s.device, 0x5258);
	assert_int_equal(s.class_code, 0x120000);
	assert_string_equal(s.driver, "vfio-pci");
	assert_int_equal(s.group, 12);
	assert_false(s.noiommu);
	assert_string_equal(s.cdev, "vfio0");
	assert_string_equal(s.power, "D0");
	assert_int_equal(s.link_width, 1);
	assert_int_equal(s.numa, -1);
	assert_int_equal(s.bar[0], 0xfe000000);
	assert_int_equal(s.bar_bytes[0], 0x10000);
	assert_int_equal(s.bar[1], 0);
	assert_int_equal(s.bar[2], 0x4000000000);
	assert_int_equal(s.bar_bytes[2], 1 << 28);
}

static void files_that_are_missing_leave_facts_unknown(void **state)
{
	struct rig_ksysfs s;

	(void)state;
	fake_kernel_file(&kernel, "/sys/bus/pci/devices/0000:01:00.0/uevent", "");
	assert_int_equal(rig_ksysfs_read(kernel.root, "0000:01:00.0", &s), 0);
	assert_int_equal(s.vendor, 0);
	assert_string_equal(s.driver, "");
	assert_string_equal(s.cdev, "");
	assert_string_equal(s.power, "");
	assert_int_equal(s.group, -1);
	assert_int_equal(s.link_width, -1);
	assert_int_equal(s.numa, -1);
	assert_int_equal(s.bar[0], 0);
}

static void a_function_that_is_not_there_and_a_wrong_address_are_told_apart(void **state)
{
	struct rig_ksysfs s;

	(void)state;
	assert_int_equal(rig_ksysfs_read(kernel.root, "0000:02:00.0", &s), -ENOENT);
	assert_int_equal(rig_ksysfs_read(kernel.root, "02:00.0", &s), -EINVAL);
}

static void garbage_in_files_is_no_fact(void **state)
{
	struct rig_ksysfs s;

	(void)state;
	fake_kernel_file(
	        &kernel, "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0 "/current_link_width", "Unknown\n");
	fake_kernel_file(&kernel, "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0 "/resource", "no numbers here\n");
	fake_kernel_file(&kernel, "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0 "/power_state",
	        "a state with a name that is longer than any that the kernel has\n");
	fake_kernel_link(&kernel, "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0 "/driver",
	        "../a-name-that-is-longer-than-any-driver-of-the-kernel-has-or-could-have-at-all");
	assert_int_equal(rig_ksysfs_read(kernel.root, FAKE_KERNEL_BDF0, &s), 0);
	assert_int_equal(s.link_width, -1);
	assert_int_equal(s.bar[0], 0);
	assert_string_equal(s.driver, "");
	assert_true(strlen(s.power) < sizeof(s.power));
}

static int count(void *arg, const struct rig_ksysfs_member *m)
{
	unsigned *n = arg;

	assert_true(rig_ksysfs_is_function(m));
	assert_string_equal(m->driver, "vfio-pci");
	assert_true(m->vfio);
	assert_int_equal(m->class_code, 0x120000);
	++*n;
	return 0;
}

static void a_group_names_its_functions(void **state)
{
	unsigned n = 0;

	(void)state;
	assert_int_equal(rig_ksysfs_group(kernel.root, 12, count, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(rig_ksysfs_group(kernel.root, 13, count, &n), 0);
	assert_int_equal(n, 2);
}

static void only_regions_that_must_stay_mapped_are_in_the_way(void **state)
{
	char text[64];

	(void)state;
	assert_false(rig_ksysfs_direct_region(kernel.root, 12, text, sizeof(text)));
	fake_kernel_file(&kernel, "/sys/kernel/iommu_groups/12/reserved_regions",
	        "0x00000000fee00000 0x00000000feefffff msi\n0x000000007d000000 0x000000007f7fffff "
	        "direct-relaxable\n");
	assert_false(rig_ksysfs_direct_region(kernel.root, 12, text, sizeof(text)));
	fake_kernel_file(&kernel, "/sys/kernel/iommu_groups/12/reserved_regions",
	        "0x000000007d000000 0x000000007f7fffff direct\n");
	assert_true(rig_ksysfs_direct_region(kernel.root, 12, text, sizeof(text)));
	assert_string_equal(text, "0x000000007d000000 0x000000007f7fffff direct");
}

static void a_group_made_up_for_no_iommu_is_known(void **state)
{
	struct rig_ksysfs s;

	(void)state;
	fake_kernel_file(&kernel, "/sys/kernel/iommu_groups/12/name", "vfio-noiommu\n");
	assert_int_equal(rig_ksysfs_read(kernel.root, FAKE_KERNEL_BDF0, &s), 0);
	assert_true(s.noiommu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        KERNEL_TEST(every_fact_is_read),
	        KERNEL_TEST(files_that_are_missing_leave_facts_unknown),
	        KERNEL_TEST(a_function_that_is_not_there_and_a_wrong_address_are_told_apart),
	        KERNEL_TEST(garbage_in_files_is_no_fact),
	        KERNEL_TEST(a_group_names_its_functions),
	        KERNEL_TEST(only_regions_that_must_stay_mapped_are_in_the_way),
	        KERNEL_TEST(a_group_made_up_for_no_iommu_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
