/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "counters.h"
#include "rig_vfio.h"

static struct test_counts before;
static struct rig_opener *opener;
static void *device;
static char why[256];

static int setup(void **state)
{
	(void)state;
	(void)rig_words();
	test_counts_take(&before);
	device = &before; /* what make has to clear */
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_vfio_opener_free(opener);
	opener = NULL;
	test_counts_same(&before);
	return 0;
}

static void open_opener(const char *text, const char *name)
{
	const struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .name = name};

	assert_int_equal(rig_vfio_opener(text, &options, &opener), 0);
}

/* Beside the opener, which is a heap block. */
static void nothing_is_open(void)
{
	struct test_counts now;

	test_counts_take(&now);
	assert_int_equal(now.fds, before.fds);
	assert_int_equal(now.mappings, before.mappings);
	assert_int_equal(now.children, before.children);
}

static int make(rig_atomic_u64 *word)
{
	return opener->make(opener->arg, word, &device, why, sizeof(why));
}

static void making_an_opener_does_no_io(void **state)
{
	(void)state;
	open_opener("vfio-user:/nonexistent/socket", NULL);
	assert_string_equal(opener->name, "vfio-user:/nonexistent/socket");
	assert_int_equal(opener->version, RIG_EDGE_VERSION);
	nothing_is_open();
}

static void sims_without_a_name_are_told_apart(void **state)
{
	struct rig_opener *other;

	(void)state;
	open_opener("sim", NULL);
	assert_int_equal(rig_vfio_opener("sim:mem=64M", NULL, &other), 0);
	assert_string_not_equal(opener->name, other->name);
	rig_vfio_opener_free(other);
}

static void a_name_has_no_machine_suffix(void **state)
{
	struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .name = "a@b"};

	(void)state;
	assert_int_equal(rig_vfio_opener("sim", &options, &opener), -EINVAL);
	assert_null(opener);
	assert_int_equal(rig_vfio_opener("vfio-user:/run/a@b", NULL, &opener), -EINVAL);
	assert_non_null(strstr(rig_error(), "@"));
	assert_null(opener);
	open_opener("vfio-user:/run/a@b", "a");
	assert_string_equal(opener->name, "a");
}

static void options_of_another_contract_are_refused_with_both_versions(void **state)
{
	struct rig_vfio_options options = {.version = RIG_EDGE_VERSION + 1};

	(void)state;
	assert_int_equal(rig_vfio_opener("sim", &options, &opener), -EINVAL);
	assert_non_null(strstr(rig_error(), "version 2"));
	assert_non_null(strstr(rig_error(), "version 1"));
}

static void make_under_a_lock_is_refused_and_opens_nothing(void **state)
{
	int code;

	(void)state;
	open_opener("sim", NULL);
	rig_locks_add(1);
	code = make(rig_words());
	rig_locks_add(-1);
	assert_int_equal(code, -EINVAL);
	assert_non_null(strstr(why, "lock"));
	assert_null(device);
	nothing_is_open();
}

static void make_at_a_misaligned_word_is_refused(void **state)
{
	(void)state;
	open_opener("sim", NULL);
	assert_int_equal(make((rig_atomic_u64 *)(void *)((uint8_t *)rig_words() + 4)), -EINVAL);
	assert_non_null(strstr(why, "multiple of 8"));
	assert_int_equal(make(NULL), -EINVAL);
	assert_null(device);
}

static void a_socket_that_nobody_serves_is_a_text_and_nothing_is_left(void **state)
{
	(void)state;
	open_opener("vfio-user:/nonexistent/socket", NULL);
	assert_int_equal(make(rig_words()), -ENOENT);
	assert_int_equal(strncmp(why, "vfio-user:/nonexistent/socket: connecting: ENOENT", 49), 0);
	assert_null(strstr(why + 30, "/nonexistent/socket")); /* each is named once */
	assert_null(device);
	assert_int_equal(rig_word_load(rig_words()), 0);
	nothing_is_open();
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(making_an_opener_does_no_io),
	        CASE(sims_without_a_name_are_told_apart),
	        CASE(a_name_has_no_machine_suffix),
	        CASE(options_of_another_contract_are_refused_with_both_versions),
	        CASE(make_under_a_lock_is_refused_and_opens_nothing),
	        CASE(make_at_a_misaligned_word_is_refused),
	        CASE(a_socket_that_nobody_serves_is_a_text_and_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
