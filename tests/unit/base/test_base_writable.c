/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#include "writable.h"

enum { PAGES = 5, READ_ONLY = 2, GAP = 4 };

static size_t page;
static char *pages;

/* Two pages to write, one to read, one to write, and none. */
static int map(void **state)
{
	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return pages == MAP_FAILED || mprotect(pages + READ_ONLY * page, page, PROT_READ) ||
	       munmap(pages + GAP * page, page);
}

static int unmap(void **state)
{
	(void)state;
	return munmap(pages, GAP * page);
}

static void memory_to_write_is_writable_to_its_last_byte(void **state)
{
	(void)state;
	assert_true(rig_is_writable(pages, READ_ONLY * page));
	assert_true(rig_is_writable(pages + 1, READ_ONLY * page - 1));
	assert_true(rig_is_writable(pages + 3 * page, page));
	assert_true(rig_is_writable(&page, sizeof(page)));
}

static void one_byte_that_is_not_makes_the_range_none(void **state)
{
	(void)state;
	assert_false(rig_is_writable(pages, READ_ONLY * page + 1));
	assert_false(rig_is_writable(pages + READ_ONLY * page, 1));
	assert_false(rig_is_writable(pages + READ_ONLY * page, 2 * page));
	assert_false(rig_is_writable(pages, GAP * page));
	assert_false(rig_is_writable(pages + 3 * page, page + 1));
	assert_false(rig_is_writable(pages + GAP * page, 1));
	assert_false(rig_is_writable(NULL, 1));
}

static void a_range_that_wraps_is_not_writable(void **state)
{
	(void)state;
	assert_false(rig_is_writable(pages, UINT64_MAX));
	assert_false(rig_is_writable((const void *)UINTPTR_MAX, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(memory_to_write_is_writable_to_its_last_byte),
	        cmocka_unit_test(one_byte_that_is_not_makes_the_range_none),
	        cmocka_unit_test(a_range_that_wraps_is_not_writable),
	};

	return cmocka_run_group_tests(tests, map, unmap);
}
