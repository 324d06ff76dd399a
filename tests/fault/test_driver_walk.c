/* SPDX-License-Identifier: MIT */
/*
 * The driver's life with the k-th access of the function, or the k-th allocation, failing, for every k until
 * the whole scenario succeeds: each step answers an error or works, and nothing is left behind.
 */
#include "test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "allocs.h"
#include "counters.h"
#include "passive.h"

#define MAX_BINARY (1u << 20)
#define MOST       4000u /* steps of a walk: more is a scenario that never succeeds */

static struct passive t;
static uint8_t binary[MAX_BINARY];
static size_t binary_bytes;
static bool failed; /* whether the access that was to fail in the last life came */
static void *host_page;

static int read_kernel(void **state)
{
	FILE *file = fopen(KERNEL_IMAGE, "rb");

	(void)state;
	assert_non_null(file);
	binary_bytes = fread(binary, 1, sizeof(binary), file);
	fclose(file);
	assert_true(binary_bytes > 0 && binary_bytes < sizeof(binary));
	host_page = mmap(NULL, 2 * RIG_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(host_page, MAP_FAILED);
	return 0;
}

static int drop_page(void **state)
{
	(void)state;
	return munmap(host_page, 2 * RIG_PAGE);
}

/* Whether every call worked. A failure may be told in any of the ways the contract allows. */
static bool regions(void)
{
	static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};
	const char *fault;
	bool all = true;
	unsigned i;

	for (i = 0; i < 3; i++) {
		void *region;

		if (rig_driver_module.alloc(t.device, kinds[i], 10000, &region, &fault)) {
			all = false;
			continue;
		}
		if (kinds[i] == RIG_MAPPED)
			all &= rig_driver_module.dma(t.device, region, &answer, &fault) == RIG_BUS;
		all &= rig_driver_module.free(t.device, region, &fault) == 0;
	}
	return all;
}

static bool host_memory(void)
{
	const char *fault;
	void *region;

	if (rig_driver_module.map_host(t.device, host_page, 2 * RIG_PAGE, &region, &fault) != RIG_MAPS)
		return false;
	return rig_driver_module.free(t.device, region, &fault) == 0;
}

static bool image_in(void *region, const struct rig_code *code)
{
	struct rig_entry entry = {.version = RIG_EDGE_VERSION};
	uint8_t *buffer = calloc(1, code->bytes);
	uint64_t missing;
	const char *fault;
	bool all = false;
	void *image;

	if (buffer && !code->place(t.device, binary, binary_bytes, region, buffer, &image)) {
		all = rig_driver_module.entry(t.device, image, "ids", &entry, &missing, &fault) == RIG_ENTRY;
		all &= rig_driver_module.unload(t.device, image, &fault) == 0;
	}
	free(buffer);
	return all;
}

static bool code(void)
{
	struct rig_code loaded = {.version = RIG_EDGE_VERSION};
	const char *fault;
	void *region;
	bool all;

	if (rig_driver_module.load(t.device, binary, binary_bytes, &loaded, &fault) ||
	        rig_driver_module.alloc(t.device, RIG_DEVICE, loaded.bytes, &region, &fault))
		return false;
	all = image_in(region, &loaded);
	return rig_driver_module.free(t.device, region, &fault) == 0 && all;
}

static bool work(void)
{
	const char *failure;
	uint8_t scratch[RIG_SCRATCH] __attribute__((aligned(16)));

	if (t.dev->hot->room(t.device, NULL, 0, 0, NULL, scratch) != RIG_FITS ||
	        t.dev->hot->submit(t.device, 1, NULL, 0, NULL, 0, NULL, scratch, NULL, &failure) !=
	                RIG_COMMITTED)
		return false;
	passive_complete(&t, 1);
	if (t.dev->options.store)
		rig_word_raise(t.word, 1); /* the device's own store */
	while (rig_word_load(t.word) != 1)
		if (rig_driver_module.sleep(t.device, 0, 1000, &failure))
			return false;
	return true;
}

static bool use(void)
{
	bool all = regions();

	all &= host_memory();
	all &= code();
	return work() && all;
}

static void end_life(void)
{
	failed = rig_fake_failed(t.fake);
	rig_fake_fail_at(t.fake, 0);
	test_allocs_fail_at(0);
	passive_close(&t);
}

/* One life; whether all of it worked. */
static bool live(const struct passive_options *options, uint64_t access)
{
	int err = passive_make(&t, options, access);
	bool all = false;

	if (err) {
		assert_null(t.device);
		assert_true(t.why[0] != 0);
	} else {
		all = use();
	}
	end_life();
	return all;
}

static void walk_accesses(const struct passive_options *options)
{
	struct test_counts before;
	uint64_t k;

	assert_true(live(options, 0));
	test_counts_take(&before);
	for (k = 1, failed = true; failed; k++) {
		bool all = live(options, k);

		test_counts_same(&before);
		assert_true(failed || all);
		assert_true(k < MOST);
	}
	assert_true(k > 30);
}

static void a_failing_access_fails_cleanly(void **state)
{
	const struct passive_options options = {0};

	(void)state;
	walk_accesses(&options);
}

static void a_failing_access_fails_cleanly_with_store_completion(void **state)
{
	const struct passive_options options = {.store = true};

	(void)state;
	walk_accesses(&options);
}

static void a_failing_access_fails_cleanly_without_mapped_bars(void **state)
{
	struct passive_options options = {.unmapped = true};
	struct test_counts before;
	uint64_t k;

	(void)state;
	/* RIG_MAPPED memory is none here, so no life works whole: boots are walked. */
	assert_int_equal(passive_make(&t, &options, 0), 0);
	passive_close(&t);
	test_counts_take(&before);
	for (k = 1, failed = true; failed; k++) {
		int err = passive_make(&t, &options, k);

		end_life();
		test_counts_same(&before);
		assert_true(failed || !err);
		assert_true(k < MOST);
	}
	assert_true(k > 30);
}

static void a_failing_allocation_fails_cleanly(void **state)
{
	struct passive_options options = {0};
	struct test_counts before;
	bool all = false;

	(void)state;
	assert_true(live(&options, 0));
	test_counts_take(&before);
	while (!all && options.fail_allocation++ < MOST) {
		all = live(&options, 0);
		test_counts_same(&before);
	}
	assert_true(options.fail_allocation > 20 && options.fail_allocation < MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_failing_access_fails_cleanly),
	        cmocka_unit_test(a_failing_access_fails_cleanly_with_store_completion),
	        cmocka_unit_test(a_failing_access_fails_cleanly_without_mapped_bars),
	        cmocka_unit_test(a_failing_allocation_fails_cleanly),
	};

	return cmocka_run_group_tests(tests, read_kernel, drop_page);
}
