/* SPDX-License-Identifier: MIT */
/* What rigctl does when all is well: arguments arrive, files are written, JSON is JSON, help is there. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

static void run(const char *command, struct sys_result *result)
{
	sys_run(result, command);
	sys_assert_done(result);
	assert_string_equal(result->err, "");
}

/* echo.k.c: u32 out i32 f32 u64 f64 buffer u32. */
static void every_kind_of_argument_arrives_in_its_place(void **state)
{
	static const int64_t expected[] = {4000000000, -7, -10, INT64_MAX, 25, 5};
	struct sys_result result;
	uint8_t *bytes;

	(void)state;
	sys_write_file("in.bin", "HAL 9", 5);
	run("rigctl run sim k/echo.elf echo u32:4000000000 out:out.bin,48 i32:-7 f32:-2.5 "
	    "u64:9223372036854775807 "
	    "f64:3.125 inout:in.bin,more.bin u32:5",
	        &result);
	assert_int_equal(sys_read_file(sys_path("out.bin"), &bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
	free(bytes);
	assert_int_equal(sys_read_file(sys_path("more.bin"), &bytes), 5);
	assert_memory_equal(bytes, "IBM!:", 5);
	free(bytes);
	assert_int_equal(sys_read_file(sys_path("in.bin"), &bytes), 5);
	assert_memory_equal(bytes, "HAL 9", 5);
	free(bytes);
	assert_non_null(strstr(result.out, "wrote out.bin, 48 bytes"));
	assert_non_null(strstr(result.out, "wrote more.bin, 5 bytes"));
}

static void numbers_may_be_hexadecimal_or_exponential(void **state)
{
	static const int64_t expected[] = {255, -16, 8, 256, 8000, 0};
	struct sys_result result;
	uint8_t *bytes;

	(void)state;
	run("rigctl run sim k/echo.elf echo u32:0xff out:out.bin,48 i32:-0x10 f32:2 u64:0x100 f64:1e3 zero:1 "
	    "u32:0",
	        &result);
	assert_int_equal(sys_read_file(sys_path("out.bin"), &bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
	free(bytes);
}

static void repeated_launches_run_one_after_the_other(void **state)
{
	struct sys_result result;
	uint8_t *bytes;

	(void)state;
	run("rigctl run sim k/globals.elf globals out:out.bin,64 --repeat 100", &result);
	assert_int_equal(sys_read_file(sys_path("out.bin"), &bytes), 64);
	assert_int_equal(*(uint64_t *)(void *)bytes, 100);
	free(bytes);
	assert_non_null(strstr(result.out, "100 launches"));
}

static void options_may_stand_anywhere_after_the_command(void **state)
{
	struct sys_result result;
	uint8_t *bytes;
	uint32_t *words;

	(void)state;
	run("rigctl run --group 2,3 sim --grid 2,1,2 k/ids.elf --shared 100 ids out:out.bin,1536 u32:24",
	        &result);
	assert_int_equal(sys_read_file(sys_path("out.bin"), &bytes), 1536);
	words = (uint32_t *)(void *)bytes + 16 * 23; /* the last thread */
	assert_int_equal(words[0], 1);
	assert_int_equal(words[1], 2);
	assert_int_equal(words[2], 0);
	assert_int_equal(words[3], 1);
	assert_int_equal(words[5], 1);
	assert_int_equal(words[6], 2);
	assert_int_equal(words[7], 3);
	assert_int_equal(words[12], 100);
	free(bytes);
}

/* ---- JSON ---- */

static struct json_object *parse(const char *text)
{
	struct json_object *o = json_tokener_parse(text);

	if (!o)
		fail_msg("no JSON: %s", text);
	return o;
}

static struct json_object *member(struct json_object *o, const char *name)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, name, &value))
		fail_msg("no member %s", name);
	return value;
}

static void a_run_as_json_says_what_ran_and_how_long(void **state)
{
	struct sys_result result;
	struct json_object *o;

	(void)state;
	run("rigctl run sim k/globals.elf globals out:out.bin,64 --repeat 3 --json", &result);
	o = parse(result.out);
	assert_string_equal(json_object_get_string(member(o, "function")), "globals");
	assert_string_equal(json_object_get_string(member(o, "arch")), "rvx1");
	assert_int_equal(json_object_get_int64(member(o, "launches")), 3);
	assert_true(json_object_get_int64(member(o, "fastest_ns")) > 0);
	assert_true(json_object_get_int64(member(o, "mean_ns")) >=
	            json_object_get_int64(member(o, "fastest_ns")));
	assert_int_equal(json_object_get_int64(member(o, "bytes_from_device")), 64);
	assert_int_equal(json_object_array_length(member(o, "outputs")), 1);
	json_object_put(o);
}

static void info_as_json_is_json(void **state)
{
	struct sys_result result;
	struct json_object *o;

	(void)state;
	run("rigctl info sim:mem=128M,aperture=16M --json", &result);
	o = parse(result.out);
	assert_true(json_object_is_type(o, json_type_object));
	assert_int_equal(json_object_array_length(member(o, "queues")), 2);
	assert_true(json_object_get_int64(member(o, "dma_bytes")) > 0);
	json_object_put(o);
}

static void the_list_as_json_is_json(void **state)
{
	struct sys_result result;
	struct json_object *o;

	(void)state;
	if (access("/sys/bus/pci", F_OK))
		skip();
	run("rigctl list --json", &result);
	o = parse(result.out);
	assert_false(json_object_is_type(o, json_type_null));
	json_object_put(o);
}

static void info_says_memory_queues_firmware_and_completion(void **state)
{
	static const char *const parts[] = {"rvx1", "1234:5258", "BLAKE2b-256 ", "aperture 16 MiB", "store",
	        "COMPUTE:0", "COPY:0", "hang bound  2000 ms"};
	struct sys_result result;
	size_t i;

	(void)state;
	run("rigctl info sim:aperture=16M,completion=store,hang=2s", &result);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(result.out, parts[i]))
			fail_msg("\"%s\" is not in: %s", parts[i], result.out);
}

/* Lines of text; a line without a space may be as long as it is. */
static void assert_narrow(const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (length > 100 && strncmp(text, "usage:", 6) != 0)
			fail_msg("a line of %zu columns: %.*s", length, (int)length, text);
		text += length + (text[length] == '\n');
	}
}

static void every_command_has_help_and_the_program_a_version(void **state)
{
	static const char *const commands[] = {"list", "info", "run", "bench"};
	struct sys_result result;
	char command[64], usage[64];
	size_t i;

	(void)state;
	run("rigctl --help", &result);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		assert_non_null(strstr(result.out, commands[i]));
	assert_non_null(strstr(result.out, "Exit status"));
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		snprintf(command, sizeof(command), "rigctl %s --help", commands[i]);
		snprintf(usage, sizeof(usage), "usage: rigctl %s", commands[i]);
		run(command, &result);
		assert_ptr_equal(strstr(result.out, usage), result.out);
		assert_narrow(result.out);
		snprintf(command, sizeof(command), "rigctl help %s", commands[i]);
		run(command, &result);
		assert_ptr_equal(strstr(result.out, usage), result.out);
	}
	run("rigctl help", &result);
	assert_non_null(strstr(result.out, "Exit status"));
	assert_narrow(result.out);
	sys_run(&result, "rigctl help nothing");
	sys_assert_failed(&result, 2, "the name of one command");
	run("rigctl --version", &result);
	run("rigctl --man", &result);
	assert_non_null(strstr(result.out, ".TH RIGCTL 1"));
}

static void verbose_says_on_stderr_what_opening_does(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl -v info sim");
	sys_assert_done(&result);
	assert_int_not_equal(strlen(result.err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_kind_of_argument_arrives_in_its_place),
	        cmocka_unit_test(numbers_may_be_hexadecimal_or_exponential),
	        cmocka_unit_test(repeated_launches_run_one_after_the_other),
	        cmocka_unit_test(options_may_stand_anywhere_after_the_command),
	        cmocka_unit_test(a_run_as_json_says_what_ran_and_how_long),
	        cmocka_unit_test(info_as_json_is_json),
	        cmocka_unit_test(the_list_as_json_is_json),
	        cmocka_unit_test(info_says_memory_queues_firmware_and_completion),
	        cmocka_unit_test(every_command_has_help_and_the_program_a_version),
	        cmocka_unit_test(verbose_says_on_stderr_what_opening_does),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
