/* SPDX-License-Identifier: MIT */
/* The ARGs of rigctl run: how parameters are packed, what is refused and how. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "test.h"

#include "counters.h"
#include "rigctl.h"
#include "run_args.h"

static char said[512]; /* the last complaint */
static unsigned complaints;

int complain(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
	complaints++;
	return status;
}

static struct run_args args;
static char folder[64];

static int setup(void **state)
{
	(void)state;
	memset(&args, 0, sizeof(args));
	complaints = 0;
	said[0] = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free_args(&args);
	return 0;
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/rigargs-XXXXXX");
	return !mkdtemp(folder) || chdir(folder);
}

static int remove_folder(void **state)
{
	(void)state;
	return chdir("/") || rmdir(folder);
}

/* add_arg splits the text in place. */
static int add(const char *text)
{
	static char copies[MAX_RUN_ARGS + 1][64];
	char *copy = copies[args.count];

	snprintf(copy, sizeof(copies[0]), "%s", text);
	return add_arg(&args, copy);
}

static void write_text(const char *name, const char *text)
{
	assert_int_equal(write_file(name, (const uint8_t *)text, strlen(text)), 0);
}

/* ---- Places ---- */

static void each_parameter_lies_at_its_own_alignment(void **state)
{
	static const struct {
		const char *text;
		uint32_t at, size, params;
	} rows[] = {{"u32:1", 0, 4, 4}, {"zero:8", 8, 8, 16}, {"f32:1", 16, 4, 24}, {"i32:1", 20, 4, 24},
	        {"f64:1", 24, 8, 32}, {"u32:1", 32, 4, 40}, {"u64:1", 40, 8, 48}, {"out:f,1", 48, 8, 56},
	        {"u32:1", 56, 4, 64}};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(add(rows[i].text), 0);
		assert_int_equal(args.arg[i].at, rows[i].at);
		assert_int_equal(args.arg[i].size, rows[i].size);
		assert_int_equal(args.params, rows[i].params);
	}
	assert_int_equal(args.count, i);
	assert_int_equal(args.end, 60);
	assert_int_equal(complaints, 0);
}

static void parameters_of_32_bits_alone_are_a_multiple_of_4(void **state)
{
	(void)state;
	assert_int_equal(args.params, 0);
	assert_int_equal(add("u32:1"), 0);
	assert_int_equal(add("f32:1"), 0);
	assert_int_equal(add("i32:1"), 0);
	assert_int_equal(args.params, 12);
}

static void there_may_be_256_and_no_more(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < MAX_RUN_ARGS; i++)
		assert_int_equal(add("u64:7"), 0);
	assert_int_equal(args.params, MAX_RUN_ARGS * 8);
	assert_int_equal(add("u64:7"), EXIT_USAGE);
	assert_non_null(strstr(said, "256"));
	assert_int_equal(args.count, MAX_RUN_ARGS);
}

/* ---- Numbers ---- */

static void integers_are_exact_up_to_their_bounds(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} rows[] = {{"u32:0", 0}, {"u32:4294967295", UINT32_MAX}, {"u32:0xFF", 255},
	        {"i32:2147483647", INT32_MAX}, {"i32:-2147483648", (uint32_t)INT32_MIN},
	        {"i32:-0x10", (uint32_t)-16}, {"u64:18446744073709551615", UINT64_MAX}, {"u64:0", 0}};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = 0;

		assert_int_equal(add(rows[i].text), 0);
		memcpy(&value, args.arg[i].scalar, args.arg[i].size);
		assert_true(value == rows[i].value);
		assert_int_equal(args.arg[i].kind, ARG_SCALAR);
	}
}

static void reals_are_the_nearest_of_their_type(void **state)
{
	static const struct {
		const char *text;
		double value;
	} rows[] = {{"f64:0.1", 0.1}, {"f64:-1e308", -1e308}, {"f64:1e-320", 1e-320}, {"f64:0x1p-3", 0.125},
	        {"f64:inf", INFINITY}, {"f32:0.1", 0.1f}, {"f32:3.4e38", 3.4e38f}, {"f32:1e-60", 0},
	        {"f32:-2", -2}};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double real;
		float single;

		assert_int_equal(add(rows[i].text), 0);
		memcpy(&real, args.arg[i].scalar, sizeof(real));
		memcpy(&single, args.arg[i].scalar, sizeof(single));
		assert_true((args.arg[i].size == 8 ? real : (double)single) == rows[i].value);
	}
	assert_int_equal(add("f64:nan"), 0);
}

static void what_is_no_number_of_its_type_is_named(void **state)
{
	static const char *const rows[] = {"u32:", "u32:-1", "u32:+1", "u32: 1", "u32:1 ", "u32:4294967296",
	        "u32:1.5", "u32:0x", "i32:", "i32:-", "i32:--1", "i32:2147483648", "i32:-2147483649",
	        "u64:-1", "u64:18446744073709551616", "f32:", "f32:x", "f32: 1", "f32:1 ", "f32:1e39",
	        "f32:-1e39", "f64:", "f64:1e309", "f64:1,5"};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		complaints = 0;
		assert_int_equal(add(rows[i]), EXIT_USAGE);
		assert_int_equal(complaints, 1);
		if (strncmp(said, rows[i], strlen(rows[i])) != 0)
			fail_msg("%s: %s", rows[i], said);
	}
}

/* ---- Buffers ---- */

static void buffers_have_the_bytes_of_their_files(void **state)
{
	(void)state;
	write_text("a,b", "four");
	assert_int_equal(add("in:a,b"), 0);
	assert_int_equal(add("inout:a,b,c"), 0);
	assert_int_equal(add("out:a,b,c,7"), 0);
	assert_int_equal(add("zero:0x10"), 0);
	assert_int_equal(args.arg[0].kind, ARG_IN);
	assert_int_equal(args.arg[0].count, 4);
	assert_memory_equal(args.arg[0].bytes, "four", 4);
	assert_null(args.arg[0].to);
	/* The last comma is the one that separates. */
	assert_int_equal(args.arg[1].kind, ARG_INOUT);
	assert_memory_equal(args.arg[1].bytes, "four", 4);
	assert_string_equal(args.arg[1].to, "c");
	assert_int_equal(args.arg[2].kind, ARG_OUT);
	assert_string_equal(args.arg[2].to, "a,b,c");
	assert_int_equal(args.arg[2].count, 7);
	assert_null(args.arg[2].bytes);
	assert_int_equal(args.arg[3].kind, ARG_ZERO);
	assert_int_equal(args.arg[3].count, 16);
	unlink("a,b");
}

static void what_is_no_buffer_is_named(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {{"in:", "FILE"}, {"in:nothere", "nothere"}, {"in:.", "directory"}, {"in:empty", "empty"},
	        {"out:", "BYTES"}, {"out:f", "BYTES"}, {"out:f,", "BYTES"}, {"out:f,0", "BYTES"},
	        {"out:f,-1", "BYTES"}, {"out:f,1k", "BYTES"}, {"out:,1", "BYTES"},
	        {"out:f,18446744073709551616", "BYTES"}, {"zero:", "number of bytes"},
	        {"zero:0", "number of bytes"}, {"zero: 1", "number of bytes"}, {"inout:", "OUTFILE"},
	        {"inout:f", "OUTFILE"}, {"inout:f,", "OUTFILE"}, {"inout:,f", "OUTFILE"},
	        {"inout:nothere,f", "nothere"}, {"", "ARG"}, {"in", "ARG"}, {"foo:1", "foo"}, {"u8:1", "u8"},
	        {"IN:f", "IN"}, {":1", "ARG"}};
	unsigned i;

	(void)state;
	write_text("empty", "");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		complaints = 0;
		assert_int_equal(add(rows[i].text), EXIT_USAGE);
		assert_int_equal(complaints, 1);
		if (!strstr(said, rows[i].why))
			fail_msg("%s: %s", rows[i].text, said);
	}
	unlink("empty");
}

static void files_of_any_size_are_read_whole(void **state)
{
	static const uint64_t sizes[] = {1, 65535, 65536, 65537, 131072, 1000000};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *bytes = malloc(sizes[i]), *seen;
		uint64_t count, at;

		assert_non_null(bytes);
		for (at = 0; at < sizes[i]; at++)
			bytes[at] = (uint8_t)(at * 31 >> 3);
		assert_int_equal(write_file("file", bytes, sizes[i]), 0);
		assert_int_equal(read_file("file", &seen, &count), 0);
		assert_int_equal(count, sizes[i]);
		assert_memory_equal(seen, bytes, count);
		free(seen);
		free(bytes);
	}
	unlink("file");
}

static void a_file_that_cannot_be_read_or_written_is_its_errno(void **state)
{
	uint8_t byte = 0, *seen;
	uint64_t count;

	(void)state;
	assert_int_equal(read_file("nothere", &seen, &count), -ENOENT);
	assert_null(seen);
	assert_int_equal(read_file(".", &seen, &count), -EISDIR);
	assert_int_equal(write_file("nothere/file", &byte, 1), -ENOENT);
	assert_int_equal(write_file(".", &byte, 1), -EISDIR);
}

static void a_write_that_does_not_fit_is_told(void **state)
{
	struct rlimit limit, small;
	uint8_t bytes[64] = {0};
	int answer;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = sizeof(bytes) / 2;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	answer = write_file("file", bytes, sizeof(bytes));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(answer, -EFBIG);
	unlink("file");
}

static void everything_taken_is_given_back(void **state)
{
	struct test_counts before;

	(void)state;
	write_text("file", "bytes");
	test_counts_take(&before);
	assert_int_equal(add("in:file"), 0);
	assert_int_equal(add("inout:file,other"), 0);
	assert_int_equal(add("in:nothere"), EXIT_USAGE);
	free_args(&args);
	test_counts_same(&before);
	memset(&args, 0, sizeof(args));
	unlink("file");
}

#define ARGS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ARGS(each_parameter_lies_at_its_own_alignment),
	        ARGS(parameters_of_32_bits_alone_are_a_multiple_of_4),
	        ARGS(there_may_be_256_and_no_more),
	        ARGS(integers_are_exact_up_to_their_bounds),
	        ARGS(reals_are_the_nearest_of_their_type),
	        ARGS(what_is_no_number_of_its_type_is_named),
	        ARGS(buffers_have_the_bytes_of_their_files),
	        ARGS(what_is_no_buffer_is_named),
	        ARGS(files_of_any_size_are_read_whole),
	        ARGS(a_file_that_cannot_be_read_or_written_is_its_errno),
	        ARGS(a_write_that_does_not_fit_is_told),
	        ARGS(everything_taken_is_given_back),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
