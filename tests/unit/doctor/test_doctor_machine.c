/* SPDX-License-Identifier: MIT */
/* What a machine lacks: IOMMU, interrupt remapping, modules. */
#include "machine_tree.h"

#include <errno.h>
#include <string.h>

static void without_iommu(struct tree *t)
{
	tree_file(t, "/sys/kernel/iommu_groups", NULL);
	tree_file(t, TREE_DEVICES TREE_BDF "/iommu_group", NULL);
	tree_file(t, TREE_DEVICES TREE_BRIDGE "/iommu_group", NULL);
}

static void a_machine_and_a_function_that_lack_nothing_are_usable(void **state)
{
	struct tree *t = *state;

	tree_assert(t, NULL, "");
	tree_assert_silent(t, "bars");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "kernel", "Linux 6.6.12-amd64: type1, iommufd", "");
	tree_finding(t, "kernel", "taken: iommufd, because the function has the node vfio0", "");
	tree_finding(t, "bars", "BAR0 64 KiB, BAR2 256 MiB", "");
	tree_assert_silent(t, "acs");
	tree_assert_silent(t, "unsafe-interrupts");
	tree_assert_silent(t, "lockdown");
	tree_assert_silent(t, "new-id");
}

static void an_empty_tree_says_little_and_ends(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/sys", NULL);
	tree_file(t, "/proc", NULL);
	tree_file(t, "/dev", NULL);
	tree_assert(t, NULL, "");
	assert_int_equal(t->found.count, 0);
	tree_assert(t, TREE_BDF, "absent");
}

static void what_is_no_address_is_refused(void **state)
{
	const struct rig_doctor_ask ask = {.root = ((struct tree *)*state)->root, .bdf = "65:00.0"};
	struct rig_diagnosis d;

	assert_int_equal(rig_doctor_examine(&ask, &d), -EINVAL);
}

static void an_iommu_that_the_kernel_does_not_use_is_switched_on_by_the_command_line_of_its_vendor(
        void **state)
{
	struct tree *t = *state;

	without_iommu(t);
	tree_file(t, "/proc/cmdline", "root=/dev/sda1 quiet\n");
	tree_assert(t, TREE_BDF, "iommu-off");
	tree_finding(t, "iommu-off", "root=/dev/sda1 quiet", "intel_iommu=on");
	tree_file(t, "/proc/cpuinfo", "vendor_id\t: AuthenticAMD\n");
	tree_file(t, "/proc/cmdline", "root=/dev/sda1 amd_iommu=off\n");
	tree_assert(t, NULL, "iommu-off");
	tree_finding(t, "iommu-off", "amd_iommu=off", "take away amd_iommu=off");
	tree_file(t, "/proc/cpuinfo", "CPU implementer\t: 0x41\n");
	tree_assert(t, NULL, "iommu-off");
	tree_finding(t, "iommu-off", "", "SMMU");
}

/* spdk#594: EC2 has no IOMMU. */
static void a_machine_whose_firmware_shows_no_iommu_has_none(void **state)
{
	struct tree *t = *state;

	without_iommu(t);
	tree_file(t, "/sys/firmware/acpi/tables/DMAR", NULL);
	tree_file(t, "/sys/firmware/acpi/tables/FACP", "");
	tree_assert(t, TREE_BDF, "iommu-absent");
	tree_finding(t, "iommu-absent", "no table DMAR", "VT-d");
	tree_file(t, "/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor lahf_lm\n");
	tree_assert(t, TREE_BDF, "iommu-absent");
	tree_finding(t, "iommu-absent", "", "the hypervisor must give");
	tree_finding(t, "iommu-absent", "", "enable_unsafe_noiommu_mode");
}

static void groups_made_up_for_no_iommu_are_no_iommu(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/sys/kernel/iommu_groups/11", NULL);
	tree_file(t, TREE_DEVICES TREE_BRIDGE "/iommu_group", NULL);
	tree_file(t, TREE_GROUP "/name", "vfio-noiommu\n");
	tree_file(t, "/dev/vfio/noiommu-12", "");
	tree_assert(t, TREE_BDF, "noiommu");
	tree_finding(t, "noiommu", "vfio-noiommu", "transport=noiommu");
	tree_assert(t, NULL, "iommu-off");
}

/* rust-vmm#152, kata#12684: machines without an IOMMU, on which no-IOMMU is asked for. */
static void who_asks_for_no_iommu_is_told_what_that_needs(void **state)
{
	struct tree *t = *state;
	const struct rig_doctor_ask ask = {.bdf = TREE_BDF, .way = RIG_DOCTOR_NOIOMMU};

	tree_assert_ask(t, &ask, "noiommu-refused");
	tree_finding(t, "noiommu-refused", "group 12", "leave transport=noiommu out");
	without_iommu(t);
	tree_bind(t, TREE_BDF, "");
	tree_file(t, "/sys/module/vfio_iommu_type1", NULL);
	tree_file(t, "/sys/class/misc/iommu", NULL);
	tree_file(t, "/sys/module/vfio", NULL);
	tree_file(t, "/sys/bus/pci/drivers/vfio-pci", NULL);
	tree_assert_ask(t, &ask, "noiommu-off vfio-pci driver");
	tree_finding(t, "noiommu-off", "no vfio", "modprobe vfio enable_unsafe_noiommu_mode=1");
	tree_bind(t, TREE_BDF, "vfio-pci");
	tree_bind(t, TREE_BDF, "");
	tree_assert_ask(t, &ask, "noiommu-absent driver");
	assert_non_null(strstr(tree_finding(t, "noiommu-absent", "no enable_unsafe_noiommu_mode", "")->text,
	        "CONFIG_VFIO_NOIOMMU"));
	tree_file(t, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n");
	tree_assert_ask(t, &ask, "noiommu-off driver");
	tree_finding(
	        t, "noiommu-off", "N", "echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
	tree_file(t, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
	tree_assert_ask(t, &ask, "driver");
	tree_bind(t, TREE_BDF, "vfio-pci");
	tree_link(t, TREE_DEVICES TREE_BDF "/iommu_group", TREE_GROUP);
	tree_file(t, TREE_GROUP "/name", "vfio-noiommu\n");
	tree_file(t, "/dev/vfio/noiommu-12", "");
	tree_assert_ask(t, &ask, "");
	assert_non_null(strstr(tree_finding(t, "noiommu-on", "vfio-noiommu", "")->text, "all memory"));
}

/* unvme#23. */
static void interrupts_that_are_not_remapped_need_the_switch_and_its_risk_is_said(void **state)
{
	struct tree *t = *state;
	const struct rig_finding *f;

	tree_file(t, "/proc/interrupts",
	        "  9:  3  IO-APIC   9-fasteoi   acpi\n 24:  0  PCI-MSI  1-edge  eth0\n");
	tree_assert(t, TREE_BDF, "no-remapping");
	f = tree_finding(t, "no-remapping", "IR-",
	        "echo Y > /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts");
	assert_non_null(strstr(f->text, "forge"));
	tree_file(t, "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "unsafe-interrupts", "Y", "");
}

static void interrupts_of_other_architectures_are_not_judged(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/proc/interrupts",
	        " 11:  3  GICv3  27 Level  arch_timer\n 24:  0  ITS-MSI 1 Edge nvme\n");
	tree_assert(t, TREE_BDF, "");
}

static void modules_that_are_not_loaded_are_named(void **state)
{
	struct tree *t = *state;

	tree_bind(t, TREE_BDF, "");
	tree_file(t, TREE_DRIVERS "vfio-pci", NULL);
	tree_file(t, "/sys/module/vfio_iommu_type1", NULL);
	tree_file(t, "/sys/class/misc/iommu", NULL);
	tree_assert(t, TREE_BDF, "vfio-pci back-end driver");
	tree_finding(t, "vfio-pci", "no vfio-pci", "modprobe vfio-pci");
	tree_finding(t, "back-end", "no vfio_iommu_type1", "modprobe vfio_iommu_type1");
}

static void one_back_end_is_enough(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/sys/module/vfio_iommu_type1", NULL);
	tree_assert(t, NULL, "");
	tree_finding(t, "kernel", "no type1, iommufd", "");
	tree_finding(t, "kernel", "peer mappings by type1 only", "");
}

/* rshim#72, pf-bb-config#1, nvme-cli#2444. */
static void a_kernel_that_is_locked_down_is_told(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "lockdown", "[integrity]", "");
}

/* spdk#447: the decision and why. */
static void what_is_taken_of_what_the_kernel_offers_is_said(void **state)
{
	struct tree *t = *state;

	tree_file(t, "/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
	tree_file(t, TREE_DEVICES TREE_BDF "/vfio-dev", NULL);
	tree_file(t, "/sys/class/misc/iommu", NULL);
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "kernel", "no iommufd, no nodes for functions (from 6.6); taken: type1", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TREE_TEST(a_machine_and_a_function_that_lack_nothing_are_usable),
	        TREE_TEST(an_empty_tree_says_little_and_ends),
	        TREE_TEST(what_is_no_address_is_refused),
	        TREE_TEST(
	                an_iommu_that_the_kernel_does_not_use_is_switched_on_by_the_command_line_of_its_vendor),
	        TREE_TEST(a_machine_whose_firmware_shows_no_iommu_has_none),
	        TREE_TEST(groups_made_up_for_no_iommu_are_no_iommu),
	        TREE_TEST(who_asks_for_no_iommu_is_told_what_that_needs),
	        TREE_TEST(interrupts_that_are_not_remapped_need_the_switch_and_its_risk_is_said),
	        TREE_TEST(interrupts_of_other_architectures_are_not_judged),
	        TREE_TEST(modules_that_are_not_loaded_are_named),
	        TREE_TEST(one_back_end_is_enough),
	        TREE_TEST(a_kernel_that_is_locked_down_is_told),
	        TREE_TEST(what_is_taken_of_what_the_kernel_offers_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
