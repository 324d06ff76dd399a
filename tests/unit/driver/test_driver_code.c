/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "elf_image.h"
#include "passive.h"

#define STACKS_BYTES (64u * RVX1_STACK_BYTES) /* of the 64 threads that elf_image_make declares */
#define BLOCK        (256u << 10)
#define BLOCKS       1024u

static const struct rig_driver_module *const m = &rig_driver_module;
static struct passive t;
static struct elf_file file;
static struct rig_code code;
static struct rig_region *region;
static uint8_t *buffer;
static void *image;
static const char *fault;

static int setup(void **state)
{
	void *at;

	(void)state;
	code = (struct rig_code){.version = RIG_EDGE_VERSION};
	elf_image_make(&file);
	assert_int_equal(passive_make(&t, NULL, 0), 0);
	assert_int_equal(m->load(t.device, &file, sizeof(file), &code, &fault), 0);
	assert_int_equal(code.kind, RIG_PLACE);
	assert_int_equal(m->alloc(t.device, RIG_DEVICE, code.bytes, &at, &fault), 0);
	region = at;
	buffer = calloc(1, code.bytes);
	assert_non_null(buffer);
	assert_int_equal(code.place(t.device, &file, sizeof(file), region, buffer, &image), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(m->unload(t.device, image, &fault), 0);
	free(buffer);
	m->free(t.device, region, &fault);
	passive_close(&t);
	return 0;
}

static int ask(const char *name, struct rig_entry *entry, uint64_t *missing)
{
	*entry = (struct rig_entry){.version = RIG_EDGE_VERSION};
	*missing = 0;
	return m->entry(t.device, image, name, entry, missing, &fault);
}

static void a_function_says_where_it_is_and_what_it_was_declared_with(void **state)
{
	struct rig_entry entry;
	uint64_t missing;

	(void)state;
	assert_int_equal(ask(ELF_KERNEL, &entry, &missing), RIG_ENTRY);
	assert_int_equal(entry.code, region->address + ELF_TEXT + 4);
	assert_true(entry.has_params && entry.has_threads);
	assert_int_equal(entry.params, 12);
	assert_int_equal(entry.threads, 64);
	assert_int_not_equal(entry.launch, 0);
}

static void a_function_asked_for_again_makes_nothing(void **state)
{
	struct rig_entry first, again;
	uint64_t missing, allocations;

	(void)state;
	assert_int_equal(ask(ELF_KERNEL, &first, &missing), RIG_ENTRY);
	allocations = test_allocs();
	assert_int_equal(ask(ELF_KERNEL, &again, &missing), RIG_ENTRY);
	assert_int_equal(test_allocs(), allocations);
	assert_int_equal(again.launch, first.launch);
}

static void an_unknown_function_is_absent_and_the_image_unharmed(void **state)
{
	struct rig_entry entry;
	uint64_t missing;

	(void)state;
	assert_int_equal(ask("nope", &entry, &missing), RIG_ABSENT);
	assert_int_equal(ask("", &entry, &missing), RIG_ABSENT);
	assert_int_equal(ask(ELF_KERNEL, &entry, &missing), RIG_ENTRY);
}

static void a_function_without_stacks_says_how_many_bytes_they_need(void **state)
{
	static void *taken[BLOCKS];
	struct rig_entry entry;
	uint64_t missing;
	unsigned n = 0;

	(void)state;
	while (n < BLOCKS && !m->alloc(t.device, RIG_DEVICE, BLOCK, &taken[n], &fault))
		n++;
	assert_true(n > STACKS_BYTES / BLOCK && n < BLOCKS);
	while (n < BLOCKS && !m->alloc(t.device, RIG_DEVICE, RVX1_STACK_BYTES, &taken[n], &fault))
		n++;
	assert_int_equal(ask(ELF_KERNEL, &entry, &missing), RIG_NO_MEMORY);
	assert_int_equal(missing, STACKS_BYTES);
	/* No fewer do. */
	m->free(t.device, taken[--n], &fault);
	assert_int_equal(ask(ELF_KERNEL, &entry, &missing), RIG_NO_MEMORY);
	assert_true(missing > 0 && missing < STACKS_BYTES);
	while (n)
		m->free(t.device, taken[--n], &fault);
	assert_int_equal(ask(ELF_KERNEL, &entry, &missing), RIG_ENTRY);
}

static void placing_does_not_wait_for_a_call_that_waits_for_the_device(void **state)
{
	void *other;

	(void)state;
	pthread_mutex_lock(&t.dev->lock);
	assert_int_equal(code.place(t.device, &file, sizeof(file), region, buffer, &other), 0);
	pthread_mutex_unlock(&t.dev->lock);
	assert_int_equal(m->unload(t.device, other, &fault), 0);
}

static void what_is_no_image_is_refused_and_the_device_unharmed(void **state)
{
	static const uint8_t text[] = "not an image";
	struct rig_code other = {.version = RIG_EDGE_VERSION};

	(void)state;
	assert_int_equal(m->load(t.device, text, sizeof(text), &other, &fault), -ENOEXEC);
	assert_int_equal(m->load(t.device, text, 0, &other, &fault), -ENOEXEC);
	assert_int_equal(m->load(t.device, &file, sizeof(file), &other, &fault), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(a_function_says_where_it_is_and_what_it_was_declared_with),
	        CASE(a_function_asked_for_again_makes_nothing),
	        CASE(an_unknown_function_is_absent_and_the_image_unharmed),
	        CASE(a_function_without_stacks_says_how_many_bytes_they_need),
	        CASE(placing_does_not_wait_for_a_call_that_waits_for_the_device),
	        CASE(what_is_no_image_is_refused_and_the_device_unharmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
