/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocs.h"
#include "counters.h"

static void every_allocation_is_counted_and_every_free_balances_it(void **state)
{
	(void)state;
	uint64_t count = test_allocs();
	unsigned live = test_allocs_live();
	char *text = strdup("a text long enough that nobody drops the call");
	void *bytes = calloc(3, 5);

	bytes = realloc(bytes, 4000);
	assert_int_equal(test_allocs() - count, 3);
	assert_int_equal(test_allocs_live() - live, 2);
	free(bytes);
	free(text);
	assert_int_equal(test_allocs_live(), live);
}

static void the_kth_allocation_fails_once(void **state)
{
	(void)state;
	test_allocs_fail_at(2);
	void *first = malloc(8);
	assert_false(test_allocs_failed());
	void *second = malloc(8);
	assert_true(test_allocs_failed());
	void *third = malloc(8);

	assert_non_null(first);
	assert_null(second);
	assert_non_null(third);
	free(first);
	free(third);
	test_allocs_fail_at(0);
}

static void a_failed_realloc_keeps_its_block(void **state)
{
	(void)state;
	unsigned live = test_allocs_live();
	void *block = malloc(8);

	test_allocs_fail_at(1);
	void *grown = realloc(block, 1 << 20);
	test_allocs_fail_at(0);
	assert_int_equal(test_allocs_live(), live + 1);
	assert_null(grown);
	free(grown ? grown : block);
}

static void descriptors_mappings_and_blocks_are_counted(void **state)
{
	(void)state;
	struct test_counts before, now;

	test_counts_take(&before);
	int fd = memfd_create("counted", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, 4096), 0);
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	void *block = malloc(16);
	assert_ptr_not_equal(block, page); /* keeps the compiler from dropping the allocation */
	test_counts_take(&now);
	assert_int_equal(now.fds, before.fds + 1);
	assert_int_equal(now.mappings, before.mappings + 1);
	assert_int_equal(now.blocks, before.blocks + 1);
	free(block);
	munmap(page, 4096);
	close(fd);
	test_counts_same(&before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_allocation_is_counted_and_every_free_balances_it),
	        cmocka_unit_test(the_kth_allocation_fails_once),
	        cmocka_unit_test(a_failed_realloc_keeps_its_block),
	        cmocka_unit_test(descriptors_mappings_and_blocks_are_counted),
	};

	return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
