/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include <json-c/json.h>

#include "bench.h"

#define TIME_TEXT  16u
#define RATIO_TEXT 16u
#define NAME_WIDTH 54
#define RARE       0.001 /* messages an operation: the cache was filled once */

static const char *const titles[BENCH_GROUPS] = {
        [BENCH_TRIPS] = "Round trips: handed to the live board and seen to be complete",
        [BENCH_BULK] = "Bulk: copies",
        [BENCH_MEMORY] = "Host: waits for what is complete, memory, mappings",
        [BENCH_LIFE] = "Set-up",
};

static const char *const group_names[BENCH_GROUPS] = {[BENCH_TRIPS] = "round trip",
        [BENCH_BULK] = "bulk",
        [BENCH_MEMORY] = "host",
        [BENCH_LIFE] = "set-up"};

void bench_print_head(const struct bench *bench)
{
	printf("%s, %s over %s, firmware %s\n"
	       "model: the board is a program, so these are the model's times and say nothing about "
	       "hardware.\n"
	       "ratio: median by the floor's median. messages: to the device process, an operation. System "
	       "calls "
	       "are not counted.\n",
	        rig_name(bench->device), bench->record->board, bench->record->transport,
	        bench->record->firmware ? bench->record->firmware : "none");
	if (bench->cpu >= 0)
		printf("CPUs: this thread stays on CPU %d, device processes on the others; set-up rows run "
		       "anywhere.\n",
		        bench->cpu);
}

static void ratio_text(const struct bench_times *ours, const struct bench_times *floor, char *text)
{
	if (floor->samples && floor->median_ns > 0)
		snprintf(text, RATIO_TEXT, "%.2f", ours->median_ns / floor->median_ns);
	else
		snprintf(text, RATIO_TEXT, "-");
}

static void print_floor(const struct bench_result *r, unsigned i)
{
	char median[TIME_TEXT], fastest[TIME_TEXT], ratio[RATIO_TEXT];

	if (!r->floor[i].samples) {
		printf("  %-*s not measured: %s\n", NAME_WIDTH - 2, r->row->floor[i].what, r->floor_why[i]);
		return;
	}
	bench_time_text(r->floor[i].median_ns, median, sizeof(median));
	bench_time_text(r->floor[i].fastest_ns, fastest, sizeof(fastest));
	ratio_text(&r->ours, &r->floor[i], ratio);
	printf("  %-*s %9s %9s %8s   floor\n", NAME_WIDTH - 2, r->row->floor[i].what, median, fastest, ratio);
}

static void print_title(const struct bench_row *row)
{
	static int last = -1;

	if (last == (int)row->group)
		return;
	last = (int)row->group;
	printf("\n%s\n%-*s %9s %9s %8s   %s\n", titles[row->group], NAME_WIDTH, "", "median", "fastest",
	        "ratio", "messages");
}

void bench_print_row(const struct bench_result *r)
{
	char median[TIME_TEXT], fastest[TIME_TEXT], messages[TIME_TEXT] = "-";
	unsigned i;

	print_title(r->row);
	if (*r->skipped) {
		printf("%-*s not measured: %s\n", NAME_WIDTH, r->row->name, r->skipped);
		return;
	}
	bench_time_text(r->ours.median_ns, median, sizeof(median));
	bench_time_text(r->ours.fastest_ns, fastest, sizeof(fastest));
	if (r->messages > 0 && r->messages < RARE)
		snprintf(messages, sizeof(messages), "<%g", RARE);
	else if (r->messages >= 0)
		snprintf(messages, sizeof(messages), "%.4g", r->messages);
	printf("%-*s %9s %9s %8s   %-8s model\n", NAME_WIDTH, r->row->name, median, fastest, "", messages);
	for (i = 0; i < BENCH_FLOORS && r->row->floor[i].what; i++)
		print_floor(r, i);
	fflush(stdout);
}

static struct json_object *number(const struct bench_times *times, double value)
{
	return times->samples ? json_object_new_double(value) : NULL;
}

static struct json_object *ratio(const struct bench_result *r, unsigned i)
{
	if (!r->floor[i].samples || r->floor[i].median_ns <= 0)
		return NULL;
	return json_object_new_double(r->ours.median_ns / r->floor[i].median_ns);
}

static struct json_object *floor_json(const struct bench_result *r, unsigned i)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "what", json_object_new_string(r->row->floor[i].what));
	json_object_object_add(o, "median_ns", number(&r->floor[i], r->floor[i].median_ns));
	json_object_object_add(o, "fastest_ns", number(&r->floor[i], r->floor[i].fastest_ns));
	json_object_object_add(o, "samples", json_object_new_int64((int64_t)r->floor[i].samples));
	json_object_object_add(o, "ratio", ratio(r, i));
	json_object_object_add(
	        o, "not_measured", r->floor[i].samples ? NULL : json_object_new_string(r->floor_why[i]));
	return o;
}

/* Without an exponent, which some readers of JSON do not take. */
static struct json_object *new_plain(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6f", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *row_json(const struct bench_result *r)
{
	struct json_object *o = json_object_new_object(), *floors = json_object_new_array();
	unsigned i;

	json_object_object_add(o, "row", json_object_new_string(r->row->name));
	json_object_object_add(o, "group", json_object_new_string(group_names[r->row->group]));
	json_object_object_add(o, "unit", json_object_new_string(r->row->unit));
	json_object_object_add(o, "model", json_object_new_boolean(true));
	json_object_object_add(o, "ours_median_ns", number(&r->ours, r->ours.median_ns));
	json_object_object_add(o, "ours_fastest_ns", number(&r->ours, r->ours.fastest_ns));
	json_object_object_add(o, "samples", json_object_new_int64((int64_t)r->ours.samples));
	/* The first floor's, for those who want one number. */
	json_object_object_add(o, "floor_median_ns", number(&r->floor[0], r->floor[0].median_ns));
	json_object_object_add(o, "floor_fastest_ns", number(&r->floor[0], r->floor[0].fastest_ns));
	json_object_object_add(o, "ratio", ratio(r, 0));
	json_object_object_add(o, "messages_per_op", r->messages >= 0 ? new_plain(r->messages) : NULL);
	json_object_object_add(o, "not_measured", *r->skipped ? json_object_new_string(r->skipped) : NULL);
	for (i = 0; i < BENCH_FLOORS && r->row->floor[i].what; i++)
		json_object_array_add(floors, floor_json(r, i));
	json_object_object_add(o, "floors", floors);
	return o;
}

void bench_print_json(const struct bench_result *results, unsigned count)
{
	struct json_object *array = json_object_new_array();
	unsigned i;

	for (i = 0; i < count; i++)
		json_object_array_add(array, row_json(&results[i]));
	printf("%s\n", json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY));
	json_object_put(array);
}
