/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "maps.h"
#include "pci.h"

#define PAGE UINT64_C(4096)
#define BASE RIG_PCI_IOVA_BASE

static struct rig_maps maps;
static unsigned char memory[8 * 4096];

static void fresh(uint64_t first, uint64_t last, uint64_t limit)
{
	struct rig_ranges ranges = {0};

	assert_int_equal(rig_ranges_add(&ranges, first, last), 0);
	assert_int_equal(rig_maps_init(&maps, &ranges, PAGE, limit, BASE), 0);
}

static int setup(void **state)
{
	(void)state;
	fresh(0, UINT64_MAX, 16);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_maps_fini(&maps);
	return 0;
}

static int add(uint64_t bytes, uint64_t align, unsigned prot, unsigned char *host, uint64_t *iova)
{
	struct rig_map m = {.bytes = bytes, .prot = prot, .host = host};
	int err = rig_maps_add(&maps, &m, align);

	*iova = m.iova;
	return err;
}

static void the_first_iova_is_the_base_and_mappings_never_overlap(void **state)
{
	uint64_t a, b, c;

	(void)state;
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ, memory, &a), 0);
	assert_int_equal(add(2 * PAGE, 0, RIG_DMA_READ, memory, &b), 0);
	assert_int_equal(add(PAGE, 1 << 21, RIG_DMA_READ, memory, &c), 0);
	assert_int_equal(a, BASE);
	assert_int_equal(b, BASE + PAGE);
	assert_int_equal(c % (1 << 21), 0);
	assert_true(c >= b + 2 * PAGE);
}

static void below_the_base_is_used_when_the_mask_leaves_nothing_above(void **state)
{
	uint64_t at;

	(void)state;
	assert_int_equal(rig_maps_set_mask(&maps, 32), 0);
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ, memory, &at), 0);
	assert_int_equal(at, PAGE); /* never 0 */
}

static void the_last_byte_may_touch_the_mask_but_not_pass_it(void **state)
{
	uint64_t at;

	(void)state;
	assert_int_equal(rig_maps_set_mask(&maps, 14), 0);
	assert_int_equal(add(4 * PAGE, 0, RIG_DMA_READ, memory, &at), -ENOSPC);
	assert_non_null(strstr(rig_error(), "ENOSPC"));
	assert_int_equal(add(3 * PAGE, 0, RIG_DMA_READ, memory, &at), 0);
	assert_int_equal(at, PAGE);
	assert_int_equal(rig_maps_set_mask(&maps, 13), -EBUSY);
	assert_int_equal(rig_maps_set_mask(&maps, 11), -EINVAL);
	assert_int_equal(rig_maps_set_mask(&maps, 65), -EINVAL);
}

static void only_what_the_transport_reports_is_used(void **state)
{
	uint64_t at;

	(void)state;
	rig_maps_fini(&maps);
	fresh(BASE + 5 * PAGE, BASE + 6 * PAGE - 1, 16);
	assert_int_equal(add(2 * PAGE, 0, RIG_DMA_READ, memory, &at), -ENOSPC);
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ, memory, &at), 0);
	assert_int_equal(at, BASE + 5 * PAGE);
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ, memory, &at), -ENOSPC);
}

static void one_mapping_more_than_the_limit_is_refused_by_name(void **state)
{
	struct rig_map was;
	uint64_t at[17];

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(add(PAGE, 0, RIG_DMA_READ, memory, &at[i]), 0);
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ, memory, &at[16]), -ENOSPC);
	assert_non_null(strstr(rig_error(), "16 mappings"));
	assert_int_equal(rig_maps_remove(&maps, at[7], PAGE, &was), 0);
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ, memory, &at[16]), 0);
	assert_int_equal(at[16], at[7]);
}

static void removing_takes_exactly_what_was_added(void **state)
{
	struct rig_map was;
	uint64_t at;

	(void)state;
	assert_int_equal(add(2 * PAGE, 0, RIG_DMA_READ, memory, &at), 0);
	assert_int_equal(rig_maps_remove(&maps, at, PAGE, &was), -ENOENT);
	assert_int_equal(rig_maps_remove(&maps, at + PAGE, PAGE, &was), -ENOENT);
	assert_int_equal(rig_maps_remove(&maps, at, 2 * PAGE, &was), 0);
	assert_ptr_equal(was.host, memory);
	assert_int_equal(rig_maps_remove(&maps, at, 2 * PAGE, &was), -ENOENT);
	assert_int_equal(maps.count, 0);
	assert_int_equal(maps.mapped_bytes, 0);
}

static void an_access_may_span_mappings_that_touch(void **state)
{
	unsigned char buf[2 * 4096];
	uint64_t a, b;

	(void)state;
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ | RIG_DMA_WRITE, memory, &a), 0);
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ | RIG_DMA_WRITE, memory + 4 * PAGE, &b), 0);
	assert_int_equal(b, a + PAGE);
	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(rig_maps_write(&maps, a + 1, buf, 2 * PAGE - 2), 0);
	assert_int_equal(memory[0], 0);
	assert_int_equal(memory[1], 0x5a);
	assert_int_equal(memory[PAGE - 1], 0x5a);
	assert_int_equal(memory[PAGE], 0); /* what lies behind the first in this process is not touched */
	assert_int_equal(memory[4 * PAGE], 0x5a);
	assert_int_equal(memory[5 * PAGE - 2], 0x5a);
	assert_int_equal(memory[5 * PAGE - 1], 0);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(rig_maps_read(&maps, a, buf, 2 * PAGE), 0);
	assert_int_equal(buf[0], 0);
	assert_int_equal(buf[PAGE], 0x5a);
}

static void an_access_where_nothing_was_ever_mapped_is_refused(void **state)
{
	unsigned char byte = 0;

	(void)state;
	assert_int_equal(rig_maps_read(&maps, BASE, &byte, 1), -EFAULT);
	assert_int_equal(rig_maps_write(&maps, UINT64_MAX, &byte, 1), -EFAULT);
	assert_int_equal(rig_maps_read(&maps, 0, &byte, 0), 0);
	assert_int_equal(maps.refused, 2);
}

static void an_access_outside_or_beyond_its_protection_touches_nothing(void **state)
{
	unsigned char buf[2 * 4096];
	uint64_t r, w;

	(void)state;
	memset(memory, 0, sizeof(memory));
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ, memory, &r), 0);
	assert_int_equal(add(PAGE, 1 << 21, RIG_DMA_WRITE, memory + PAGE, &w), 0);
	memset(buf, 0x77, sizeof(buf));
	assert_int_equal(rig_maps_write(&maps, r, buf, 8), -EACCES);
	assert_int_equal(rig_maps_read(&maps, w, buf, 8), -EACCES);
	assert_int_equal(rig_maps_write(&maps, w + PAGE - 4, buf, 8), -EFAULT);
	assert_int_equal(rig_maps_write(&maps, w - 4, buf, 8), -EFAULT);
	assert_int_equal(rig_maps_read(&maps, r - 1, buf, 1), -EFAULT);
	assert_int_equal(rig_maps_read(&maps, r + PAGE, buf, 1), -EFAULT);
	assert_int_equal(rig_maps_read(&maps, 0, buf, 1), -EFAULT);
	assert_int_equal(rig_maps_read(&maps, UINT64_MAX, buf, 1), -EFAULT);
	assert_int_equal(rig_maps_read(&maps, UINT64_MAX - 3, buf, 8), -EFAULT);
	assert_int_equal(rig_maps_read(&maps, r, buf, UINT64_MAX), -EFAULT);
	for (size_t i = 0; i < 2 * PAGE; i++)
		assert_int_equal(memory[i], 0);
	assert_int_equal(buf[0], 0x77);
	assert_int_equal(maps.refused, maps.served);
}

static void after_a_denial_nothing_is_touched(void **state)
{
	unsigned char buf[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct rig_map was;
	uint64_t iova;

	(void)state;
	memset(memory, 0, sizeof(memory));
	assert_int_equal(add(PAGE, 0, RIG_DMA_READ | RIG_DMA_WRITE, memory, &iova), 0);
	rig_maps_deny(&maps);
	assert_int_equal(rig_maps_write(&maps, iova, buf, sizeof(buf)), -EACCES);
	assert_int_equal(rig_maps_read(&maps, iova, buf, sizeof(buf)), -EACCES);
	assert_int_equal(buf[0], 1);
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(memory[i], 0);
	assert_int_equal(rig_maps_remove(&maps, iova, PAGE, &was), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(
	                the_first_iova_is_the_base_and_mappings_never_overlap, setup, teardown),
	        cmocka_unit_test_setup_teardown(
	                below_the_base_is_used_when_the_mask_leaves_nothing_above, setup, teardown),
	        cmocka_unit_test_setup_teardown(
	                the_last_byte_may_touch_the_mask_but_not_pass_it, setup, teardown),
	        cmocka_unit_test_setup_teardown(only_what_the_transport_reports_is_used, setup, teardown),
	        cmocka_unit_test_setup_teardown(
	                one_mapping_more_than_the_limit_is_refused_by_name, setup, teardown),
	        cmocka_unit_test_setup_teardown(removing_takes_exactly_what_was_added, setup, teardown),
	        cmocka_unit_test_setup_teardown(an_access_may_span_mappings_that_touch, setup, teardown),
	        cmocka_unit_test_setup_teardown(
	                an_access_where_nothing_was_ever_mapped_is_refused, setup, teardown),
	        cmocka_unit_test_setup_teardown(after_a_denial_nothing_is_touched, setup, teardown),
	        cmocka_unit_test_setup_teardown(
	                an_access_outside_or_beyond_its_protection_touches_nothing, setup, teardown),
	};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
