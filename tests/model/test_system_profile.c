/* SPDX-License-Identifier: MIT */
/* rigctl run --profile and --counters on the model: the file is a trace of what ran. */
#include <json-c/json.h>
#include <string.h>

#include "system.h"

#define LAUNCHES 3

static struct json_object *field(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(o, name, &value))
		fail_msg("no %s in %s", name, json_object_to_json_string(o));
	return value;
}

static double number(struct json_object *o, const char *name)
{
	return json_object_get_double(field(o, name));
}

static bool is(struct json_object *event, const char *phase, const char *name)
{
	return !strcmp(json_object_get_string(field(event, "ph")), phase) &&
	       !strcmp(json_object_get_string(field(event, "name")), name);
}

static void check_keys(struct json_object *o)
{
	json_object_object_foreach(o, key, value)
	{
		if (key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")])
			fail_msg("key \"%s\"", key);
		if (json_object_is_type(value, json_type_object))
			check_keys(value);
	}
}

/* A launch lies within the span of its value, and spans of a lane follow each other. */
static void check_launches(struct json_object *events)
{
	double end = 0, start = 0;
	size_t i, spans = 0, launches = 0;

	for (i = 0; i < json_object_array_length(events); i++) {
		struct json_object *e = json_object_array_get_idx(events, i), *args, *part;

		if (json_object_object_get_ex(e, "args", &args))
			check_keys(args);
		if (!is(e, "X", "globals"))
			continue;
		args = field(e, "args");
		if (!json_object_object_get_ex(args, "part", &part)) {
			assert_true(number(e, "ts") >= end);
			start = number(e, "ts");
			end = start + number(e, "dur");
			spans++;
			continue;
		}
		assert_true(number(e, "ts") >= start);
		assert_true(number(e, "ts") + number(e, "dur") <= end + 0.001);
		assert_true(number(args, "instructions") > 0);
		assert_true(number(args, "bytes_written") > 0);
		launches++;
	}
	assert_int_equal(spans, LAUNCHES);
	assert_int_equal(launches, LAUNCHES);
}

static void a_profile_shows_each_launch_in_its_queues_lane(void **state)
{
	struct sys_result result;
	struct json_object *file;

	(void)state;
	sys_run(&result,
	        "rigctl run sim k/globals.elf globals out:out.bin,64 --repeat 3 --profile trace.json");
	if (result.status)
		fail_msg("%s", result.err);
	assert_non_null(strstr(result.out, "wrote trace.json"));
	file = json_object_from_file(sys_path("trace.json"));
	assert_non_null(file);
	check_launches(field(file, "traceEvents"));
	assert_int_equal(number(field(file, "otherData"), "untimed"), 0);
	assert_int_equal(number(field(file, "otherData"), "lost"), 0);
	json_object_put(file);
}

static void counters_are_told_as_text_and_as_json(void **state)
{
	struct sys_result result;
	struct json_object *o, *counters;

	(void)state;
	sys_run(&result, "rigctl run sim k/globals.elf globals out:out.bin,64 --repeat 3 --counters");
	assert_int_equal(result.status, 0);
	assert_non_null(strstr(result.out, "of 3 measured"));
	assert_non_null(strstr(result.out, "instructions"));
	assert_non_null(strstr(result.out, "off by at most"));
	sys_run(&result, "rigctl run sim k/globals.elf globals out:out.bin,64 --repeat 3 --counters --json");
	assert_int_equal(result.status, 0);
	o = json_tokener_parse(result.out);
	assert_non_null(o);
	counters = field(o, "counters");
	assert_int_equal(number(counters, "launches"), LAUNCHES);
	assert_true(number(field(counters, "cycles"), "least") > 0);
	assert_true(number(field(counters, "bytes_written"), "least") > 0);
	check_keys(o);
	assert_true(number(counters, "time_error_ns") > 0);
	json_object_put(o);
}

static void a_profile_that_cannot_be_written_fails_the_command(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl run sim k/globals.elf globals out:out.bin,64 --profile nowhere/trace.json");
	sys_assert_failed(&result, 1, "nowhere/trace.json");
	sys_run(&result, "rigctl run sim k/globals.elf globals --profile");
	sys_assert_failed(&result, 2, "--profile");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_profile_shows_each_launch_in_its_queues_lane),
	        cmocka_unit_test(counters_are_told_as_text_and_as_json),
	        cmocka_unit_test(a_profile_that_cannot_be_written_fails_the_command),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
