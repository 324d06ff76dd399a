/* SPDX-License-Identifier: MIT */
/* Memory: locked, mapped, in huge pages. */
#include "machine_tree.h"

#include <stdio.h>

#define NODES "/sys/devices/system/node/"
#define POOL  "/hugepages/hugepages-2048kB/"

static void limit(struct tree *t, const char *bytes)
{
	char text[128];

	snprintf(text, sizeof(text),
	        "Max locked memory         %s              8388608              bytes     \n", bytes);
	tree_file(t, "/proc/self/limits", text);
}

/* cloud-hypervisor#165, kubevirt#17694: users ask how much they need. */
static void a_limit_below_the_need_names_both_and_the_command(void **state)
{
	struct tree *t = *state;

	limit(t, "8388608");
	tree_assert(t, TREE_BDF, "memlock");
	tree_finding(t, "memlock", "limit 8192 KiB, needed 65536 KiB", "ulimit -l 65536");
	/* NV-Kernels#248: BARs are named apart. */
	tree_finding(t, "memlock", "may be charged 262208 KiB more", "");
}

static void the_need_is_the_callers_and_what_is_locked_already(void **state)
{
	const struct rig_doctor_ask more = {.bdf = TREE_BDF, .pin = UINT64_C(4) << 30};
	struct tree *t = *state;

	limit(t, "67108864");
	tree_assert(t, TREE_BDF, "");
	limit(t, "67108863");
	tree_assert(t, TREE_BDF, "memlock");
	tree_assert_ask(t, &more, "memlock");
	tree_finding(t, "memlock", "needed 4194304 KiB", "ulimit -l 4194304");
	limit(t, "67108864");
	tree_file(t, "/proc/self/status", "VmLck:\t      64 kB\nCapEff:\t0000000000000000\n");
	tree_assert(t, TREE_BDF, "memlock");
	tree_finding(t, "memlock", "needed 65600 KiB", "ulimit -l 65600");
}

static void who_may_lock_all_is_not_limited(void **state)
{
	struct tree *t = *state;

	limit(t, "8388608");
	tree_file(t, "/proc/self/status", "CapEff:\t0000000000004000\n");
	tree_assert(t, TREE_BDF, "");
}

/* kata#11721, nvtrust#46, spdk#1142. */
static void an_entry_limit_below_the_need_names_the_parameter(void **state)
{
	const struct rig_doctor_ask more = {.bdf = TREE_BDF, .pin = UINT64_C(128) << 30};
	struct tree *t = *state;

	tree_file(t, "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "16\n");
	tree_assert(t, TREE_BDF, "entry-limit");
	tree_finding(t, "entry-limit", "16, needed", "dma_entry_limit");
	tree_file(t, "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "1024\n");
	tree_assert(t, TREE_BDF, "");
	tree_assert_ask(t, &more, "entry-limit");
}

/* What is named goes beyond what there is, also where that is the kernel's own 65,535. */
static void a_full_address_space_is_given_more_than_it_has(void **state)
{
	const struct rig_doctor_ask ask = {.bdf = TREE_BDF, .seen = {.full = true, .mappings = 65535}};
	const struct rig_doctor_ask vast = {.bdf = TREE_BDF, .pin = UINT64_C(8) << 40};
	struct tree *t = *state;

	tree_assert_ask(t, &ask, "entry-limit");
	tree_finding(t, "entry-limit", "limit 65535; the address space has 65535", "echo 131070 > ");
	tree_assert_ask(t, &vast, "entry-limit");
	tree_finding(t, "entry-limit", "needed about 131088", "echo 131089 > ");
	tree_file(t, "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "16\n");
	tree_assert_ask(t, &ask, "entry-limit");
	tree_finding(t, "entry-limit", "limit 16;", "echo 65535 > ");
}

/* spdk#757, #1050, #2973. */
static void huge_pages_are_counted_by_size_and_node(void **state)
{
	struct tree *t = *state;

	tree_file(t, NODES "node1/hugepages/hugepages-1048576kB/nr_hugepages", "4\n");
	tree_file(t, NODES "node1/hugepages/hugepages-1048576kB/free_hugepages", "1\n");
	tree_assert(t, NULL, "");
	tree_finding(
	        t, "huge-pages", "node 0, 2048 KiB: 60 of 64 free; node 1, 1048576 KiB: 1 of 4 free", "");
	tree_assert_silent(t, "huge-none");
}

static void huge_pages_that_do_not_exist_are_told(void **state)
{
	struct tree *t = *state;

	tree_file(t, NODES "node0" POOL "nr_hugepages", "0\n");
	tree_file(t, NODES "node0" POOL "free_hugepages", "0\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "huge-none", "0 pages",
	        "echo 32 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
}

static void huge_pages_on_another_node_than_the_functions_are_told(void **state)
{
	struct tree *t = *state;

	tree_attribute(t, TREE_BDF, "numa_node", "1\n");
	tree_file(t, NODES "node1" POOL "nr_hugepages", "0\n");
	tree_assert(t, TREE_BDF, "");
	tree_finding(t, "huge-node", "1; node 0", "node1/hugepages/hugepages-2048kB/nr_hugepages");
	tree_attribute(t, TREE_BDF, "numa_node", "0\n");
	tree_assert(t, TREE_BDF, "");
	tree_assert_silent(t, "huge-node");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TREE_TEST(a_limit_below_the_need_names_both_and_the_command),
	        TREE_TEST(the_need_is_the_callers_and_what_is_locked_already),
	        TREE_TEST(who_may_lock_all_is_not_limited),
	        TREE_TEST(an_entry_limit_below_the_need_names_the_parameter),
	        TREE_TEST(a_full_address_space_is_given_more_than_it_has),
	        TREE_TEST(huge_pages_are_counted_by_size_and_node),
	        TREE_TEST(huge_pages_that_do_not_exist_are_told),
	        TREE_TEST(huge_pages_on_another_node_than_the_functions_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
