/* SPDX-License-Identifier: MIT */
/* What the kernel answers, taken apart: boundaries of chains, areas and ranges. */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "kernel_abi.h"
#include "kernel_parse.h"
#include "range_look.h"
#include "vfio_ops.h"

enum { PAGE = 4096 };

static struct {
	struct rig_kvfio_region_info info;
	struct rig_kvfio_sparse sparse;
	uint64_t area[RIG_VFIO_AREAS + 1][2];
} region;

static void make_region(uint64_t bytes, unsigned areas)
{
	memset(&region, 0, sizeof(region));
	region.info = (struct rig_kvfio_region_info){.argsz = sizeof(region),
	        .flags = RIG_KVFIO_REGION_READ | RIG_KVFIO_REGION_MMAP | RIG_KVFIO_REGION_CAPS,
	        .caps = sizeof(region.info),
	        .bytes = bytes,
	        .offset = 1 << 20};
	region.sparse =
	        (struct rig_kvfio_sparse){.head = {.id = RIG_KVFIO_CAP_SPARSE, .version = 1}, .areas = areas};
	for (unsigned i = 0; i < areas && i <= RIG_VFIO_AREAS; i++) {
		region.area[i][0] = i * 2 * PAGE;
		region.area[i][1] = PAGE;
	}
}

static void a_region_that_can_be_mapped_is_one_area(void **state)
{
	struct rig_vfio_region out = {0};

	(void)state;
	make_region(8 * PAGE, 0);
	region.info.flags &= ~RIG_KVFIO_REGION_CAPS;
	assert_int_equal(rig_kparse_region(&region, sizeof(region.info), PAGE, &out), 0);
	assert_int_equal(out.areas, 1);
	assert_int_equal(out.area[0].bytes, 8 * PAGE);
	assert_int_equal(out.fd_offset, 1 << 20);
	assert_true(out.readable && !out.writable);
}

static void sparse_areas_are_what_can_be_mapped(void **state)
{
	struct rig_vfio_region out = {0};

	(void)state;
	make_region(8 * PAGE, 2);
	assert_int_equal(rig_kparse_region(&region, sizeof(region), PAGE, &out), 0);
	assert_int_equal(out.areas, 2);
	assert_int_equal(out.area[1].offset, 2 * PAGE);
}

static void no_sparse_area_means_none(void **state)
{
	struct rig_vfio_region out = {0};

	(void)state;
	make_region(8 * PAGE, 0);
	assert_int_equal(rig_kparse_region(&region, sizeof(region), PAGE, &out), 0);
	assert_int_equal(out.areas, 0);
}

static void areas_less_than_a_page_are_left_to_the_kernel(void **state)
{
	struct rig_vfio_region out = {0};

	(void)state;
	make_region(PAGE / 2, 0);
	region.info.flags &= ~RIG_KVFIO_REGION_CAPS;
	assert_int_equal(rig_kparse_region(&region, sizeof(region.info), PAGE, &out), 0);
	assert_int_equal(out.areas, 0);
	assert_int_equal(out.bytes, PAGE / 2);
	/* With a larger page than the areas were made for. */
	make_region(64 * PAGE, 2);
	region.area[0][1] = 16 * PAGE + PAGE;
	region.area[1][0] = 20 * PAGE;
	assert_int_equal(rig_kparse_region(&region, sizeof(region), 16 * PAGE, &out), 0);
	assert_int_equal(out.areas, 1);
	assert_int_equal(out.area[0].bytes, 16 * PAGE);
}

static void areas_outside_the_region_or_out_of_order_are_refused(void **state)
{
	struct rig_vfio_region out = {0};

	(void)state;
	make_region(3 * PAGE, 2);
	assert_int_equal(rig_kparse_region(&region, sizeof(region), PAGE, &out), 0);
	region.area[1][1] = PAGE + 1;
	assert_int_equal(rig_kparse_region(&region, sizeof(region), PAGE, &out), -EPROTO);
	make_region(8 * PAGE, 2);
	region.area[1][0] = 0;
	assert_int_equal(rig_kparse_region(&region, sizeof(region), PAGE, &out), -EPROTO);
	make_region(8 * PAGE, 2);
	region.area[1][0] = UINT64_MAX - PAGE + 1;
	assert_int_equal(rig_kparse_region(&region, sizeof(region), PAGE, &out), -EPROTO);
}

static void more_areas_than_are_used_are_refused_and_one_less_is_not(void **state)
{
	struct rig_vfio_region out = {0};

	(void)state;
	make_region(1 << 24, RIG_VFIO_AREAS);
	assert_int_equal(rig_kparse_region(&region, sizeof(region), PAGE, &out), 0);
	assert_int_equal(out.areas, RIG_VFIO_AREAS);
	make_region(1 << 24, RIG_VFIO_AREAS + 1);
	assert_int_equal(rig_kparse_region(&region, sizeof(region), PAGE, &out), 0);
	assert_int_equal(out.areas, 0);
}

static void answers_cut_anywhere_are_refused_or_without_what_is_missing(void **state)
{
	(void)state;
	for (size_t len = 0; len < sizeof(region.info) + sizeof(region.sparse) + 32; len++) {
		struct rig_vfio_region out = {0};
		int err;

		make_region(8 * PAGE, 2);
		err = rig_kparse_region(&region, len, PAGE, &out);
		if (len < sizeof(region.info))
			assert_int_equal(err, -EPROTO);
		else if (len < sizeof(region.info) + sizeof(region.sparse))
			assert_int_equal(err, 0);
		else
			assert_int_equal(err, -EPROTO);
	}
}

static void a_chain_that_loops_ends(void **state)
{
	struct rig_kvfio_cap caps[3] = {{.id = 90, .next = 8}, {.id = 91, .next = 8}, {.id = 92}};

	(void)state;
	assert_null(rig_kparse_cap(caps, sizeof(caps), 8, 92, 8));
	assert_non_null(rig_kparse_cap(caps, sizeof(caps), 8, 91, 8));
	assert_null(rig_kparse_cap(caps, sizeof(caps), 0, 90, 8));
	assert_null(rig_kparse_cap(caps, sizeof(caps), 17, 0, 8));
	assert_null(rig_kparse_cap(caps, sizeof(caps), UINT32_MAX, 0, 8));
	assert_null(rig_kparse_cap(caps, sizeof(caps), 16, 92, 16));
}

static void type1_without_capabilities_takes_every_address(void **state)
{
	struct rig_kvfio_iommu_info info = {.argsz = 16, .flags = RIG_KVFIO_IOMMU_PGSIZES, .pgsizes = 0x1000};
	struct rig_ranges ranges = {0};
	struct rig_ktype1_info out;

	(void)state;
	assert_int_equal(rig_kparse_type1(&info, 16, &out, &ranges), 0);
	assert_int_equal(out.pgsizes, 0x1000);
	assert_int_equal(out.avail, UINT64_MAX);
	assert_true(ranges_contain(&ranges, 0, UINT64_MAX));
	rig_ranges_fini(&ranges);
	assert_int_equal(rig_kparse_type1(&info, 15, &out, &ranges), -EPROTO);
}

static void type1_ranges_and_limits_are_taken_as_they_are(void **state)
{
	struct {
		struct rig_kvfio_iommu_info info;
		struct rig_kvfio_iova_ranges head;
		uint64_t range[2][2];
		struct rig_kvfio_dma_avail avail;
	} answer = {.info = {.flags = RIG_KVFIO_IOMMU_CAPS, .caps = sizeof(answer.info)},
	        .head = {{RIG_KVFIO_CAP_IOVA_RANGES, 1, offsetof(__typeof__(answer), avail)}, 2, 0},
	        .range = {{0, 0xfedfffff}, {0xfef00000, 0xffffffffff}},
	        .avail = {{RIG_KVFIO_CAP_DMA_AVAIL, 1, 0}, 16}};
	struct rig_ranges ranges = {0};
	struct rig_ktype1_info out;

	(void)state;
	assert_int_equal(rig_kparse_type1(&answer, sizeof(answer), &out, &ranges), 0);
	assert_int_equal(out.avail, 16);
	assert_int_equal(ranges.count, 2);
	assert_false(ranges_overlap(&ranges, 0xfee00000, 0xfeefffff));
	rig_ranges_fini(&ranges);
	answer.range[1][1] = 0;
	assert_int_equal(rig_kparse_type1(&answer, sizeof(answer), &out, &ranges), -EPROTO);
	rig_ranges_fini(&ranges);
	answer.head.ranges = UINT32_MAX;
	assert_int_equal(rig_kparse_type1(&answer, sizeof(answer), &out, &ranges), -EPROTO);
	rig_ranges_fini(&ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_region_that_can_be_mapped_is_one_area),
	        cmocka_unit_test(sparse_areas_are_what_can_be_mapped),
	        cmocka_unit_test(no_sparse_area_means_none),
	        cmocka_unit_test(areas_less_than_a_page_are_left_to_the_kernel),
	        cmocka_unit_test(areas_outside_the_region_or_out_of_order_are_refused),
	        cmocka_unit_test(more_areas_than_are_used_are_refused_and_one_less_is_not),
	        cmocka_unit_test(answers_cut_anywhere_are_refused_or_without_what_is_missing),
	        cmocka_unit_test(a_chain_that_loops_ends),
	        cmocka_unit_test(type1_without_capabilities_takes_every_address),
	        cmocka_unit_test(type1_ranges_and_limits_are_taken_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
