/* SPDX-License-Identifier: MIT */
/* rigctl bench: what it says, never how fast it was. */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "system.h"

enum { DONE = 0, LOST = 1, USAGE = 2, NOT_OPENED = 3 };

/* The array that the command prints; the caller's. */
static struct json_object *bench(const char *arguments)
{
	struct sys_result result;
	struct json_object *array;
	char command[512];

	snprintf(command, sizeof(command), "rigctl bench %s --json --time 1", arguments);
	sys_run(&result, command);
	sys_assert_done(&result);
	array = json_tokener_parse(result.out);
	assert_non_null(array);
	assert_true(json_object_is_type(array, json_type_array));
	assert_true(json_object_array_length(array) > 0);
	return array;
}

static struct json_object *field(struct json_object *object, const char *name)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value))
		fail_msg("no %s", name);
	return value;
}

static const char *text(struct json_object *object, const char *name)
{
	const char *value = json_object_get_string(field(object, name));

	return value ? value : "";
}

static struct json_object *row_at(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

static void assert_measured(struct json_object *row)
{
	assert_null(field(row, "not_measured"));
	assert_true(json_object_get_double(field(row, "ours_fastest_ns")) > 0);
	assert_true(json_object_get_double(field(row, "ours_median_ns")) >=
	            json_object_get_double(field(row, "ours_fastest_ns")));
	assert_true(json_object_get_boolean(field(row, "model")));
	assert_true(strlen(text(row, "unit")) > 0);
}

static void assert_beside_floor(struct json_object *row)
{
	assert_measured(row);
	assert_true(json_object_get_double(field(row, "floor_median_ns")) > 0);
	assert_true(json_object_get_double(field(row, "ratio")) > 0);
}

static void assert_all(const char *arguments, void (*check)(struct json_object *row))
{
	struct json_object *array = bench(arguments);
	size_t i;

	for (i = 0; i < json_object_array_length(array); i++)
		check(row_at(array, i));
	json_object_put(array);
}

static void assert_silent(struct json_object *row)
{
	assert_beside_floor(row);
	assert_true(json_object_get_double(field(row, "messages_per_op")) == 0);
}

static void submissions_launches_small_copies_and_reached_waits_send_no_message(void **state)
{
	(void)state;
	assert_all("sim --rows empty", assert_silent);
	assert_all("sim --rows launch", assert_silent);
	assert_all("sim --rows 16", assert_silent);
	assert_all("sim --rows reached", assert_silent);
	assert_all("sim:completion=store --rows empty", assert_silent);
}

static void copies_allocations_mappings_and_set_up_stand_beside_their_floors(void **state)
{
	(void)state;
	assert_all("sim --rows KiB", assert_beside_floor);
	assert_all("sim --rows within", assert_beside_floor);
	assert_all("sim --rows map", assert_beside_floor);
	assert_all("sim --rows load", assert_beside_floor);
	assert_all("sim --rows open", assert_beside_floor);
	assert_all("sim --rows close", assert_beside_floor);
}

/* On a board of 64 MiB. */
static void assert_fits_or_says_so(struct json_object *row)
{
	if (!strstr(text(row, "row"), "64 MiB")) {
		assert_beside_floor(row);
		return;
	}
	if (!strstr(text(row, "not_measured"), "memory"))
		fail_msg("%s: %s", text(row, "row"), text(row, "not_measured"));
	assert_null(field(row, "ours_median_ns"));
}

static void rows_for_which_the_device_has_no_room_say_so(void **state)
{
	(void)state;
	assert_all("sim:mem=64M --rows within", assert_fits_or_says_so);
	assert_all("sim:mem=64M --rows device,", assert_fits_or_says_so);
	assert_all("sim:mem=64M,aperture=16M --rows 16", assert_beside_floor);
}

static void assert_without_hand(struct json_object *row)
{
	struct json_object *floor = json_object_array_get_idx(field(row, "floors"), 0);

	assert_measured(row);
	assert_null(field(row, "ratio"));
	if (!strstr(text(floor, "not_measured"), "only sim"))
		fail_msg("%s: %s", text(row, "row"), text(floor, "not_measured"));
}

static void a_served_device_is_measured_and_floors_it_has_not_are_said_to_be_missing(void **state)
{
	struct sys_process model;
	char arguments[256];

	(void)state;
	sys_serve(&model, "");
	snprintf(arguments, sizeof(arguments), "%s --rows empty", sys_served());
	assert_all(arguments, assert_without_hand);
	snprintf(arguments, sizeof(arguments), "%s --rows open", sys_served());
	assert_all(arguments, assert_without_hand);
	sys_serve_end(&model);
}

static void the_table_says_that_the_board_is_a_model(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl bench sim --rows reached --time 1");
	sys_assert_done(&result);
	assert_non_null(strstr(result.out, "model: the board is a program"));
	assert_non_null(strstr(result.out, "wait for a reached point"));
	assert_non_null(strstr(result.out, "floor"));
}

static void bad_usage_is_told_and_measures_nothing(void **state)
{
	static const struct {
		const char *command, *why;
		int status;
	} rows[] = {
	        {"rigctl bench", "which DEVICE", USAGE},
	        {"rigctl bench sim sim", "one DEVICE", USAGE},
	        {"rigctl bench sim --rows", "must follow", USAGE},
	        {"rigctl bench sim --rows nonsense", "no row's name", USAGE},
	        {"rigctl bench sim --time 0", "--time 0", USAGE},
	        {"rigctl bench sim --time 60001", "--time 60001", USAGE},
	        {"rigctl bench sim --time 5x", "--time 5x", USAGE},
	        {"rigctl bench sim --fast", "--fast", USAGE},
	        {"rigctl bench sim:mem=1", "mem=1", USAGE},
	        {"rigctl bench vfio-user:none.sock", "cannot open", NOT_OPENED},
	};
	struct sys_result result;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sys_run(&result, rows[i].command);
		sys_assert_failed(&result, rows[i].status, rows[i].why);
		assert_string_equal(result.out, "");
	}
}

static void a_device_that_is_lost_ends_it_with_the_reason(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl bench sim:fault=hang,hang=300ms --rows launch --json");
	sys_assert_failed(&result, LOST, "no progress for 300 ms");
}

static void an_open_is_told_by_phase(void **state)
{
	static const char *const phases[] = {"starting the model", "taking the function", "reset",
	        "boot stage firmware", "interrupts and poller", "the first launch",
	        "open to first completed work"};
	struct sys_result result;
	size_t i;

	(void)state;
	sys_run(&result, "rigctl bench sim --open");
	sys_assert_done(&result);
	for (i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		if (!strstr(result.out, phases[i]))
			fail_msg("no phase \"%s\" in:\n%s", phases[i], result.out);
	sys_run(&result, "rigctl bench sim --open --json");
	sys_assert_failed(&result, USAGE, "--open goes without");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(submissions_launches_small_copies_and_reached_waits_send_no_message),
	        cmocka_unit_test(copies_allocations_mappings_and_set_up_stand_beside_their_floors),
	        cmocka_unit_test(rows_for_which_the_device_has_no_room_say_so),
	        cmocka_unit_test(a_served_device_is_measured_and_floors_it_has_not_are_said_to_be_missing),
	        cmocka_unit_test(the_table_says_that_the_board_is_a_model),
	        cmocka_unit_test(bad_usage_is_told_and_measures_nothing),
	        cmocka_unit_test(a_device_that_is_lost_ends_it_with_the_reason),
	        cmocka_unit_test(an_open_is_told_by_phase),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
