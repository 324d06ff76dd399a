/* SPDX-License-Identifier: MIT */
/* rigctl run: the command line, and what it says when it is done. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rigctl.h"
#include "run_job.h"

#define MAX_REPEAT 1000000u

/* -- The command line -- */

static bool parse_u32(const char *text, char **end, uint32_t *out)
{
	unsigned long long n;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoull(text, end, 0);
	*out = (uint32_t)n;
	return !errno && n <= UINT32_MAX;
}

/* "X[,Y[,Z]]"; what is left out is 1. */
static int parse_dims(const char *option, const char *text, uint32_t d[3])
{
	char *end = (char *)(uintptr_t)text;
	unsigned i;

	d[0] = d[1] = d[2] = 1;
	for (i = 0; i < 3; i++) {
		if (!parse_u32(end, &end, &d[i]) || (*end && *end != ','))
			break;
		if (!*end)
			return 0;
		end++;
	}
	return complain(EXIT_USAGE, "%s %s: X, X,Y or X,Y,Z, numbers below 2^32", option, text);
}

static int parse_number(const char *option, const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
	char *end;

	if (!parse_u32(text, &end, out) || *end || *out < least || *out > most)
		return complain(EXIT_USAGE, "%s %s: a number from %u to %u", option, text, least, most);
	return 0;
}

/* `value` is NULL at the end of the line. */
static int parse_option(struct run_job *job, const char *option, const char *value)
{
	static const char *const names[] = {"--grid", "--group", "--shared", "--repeat", "--profile"};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && strcmp(option, names[i]) != 0; i++)
		;
	if (i == sizeof(names) / sizeof(names[0]))
		return complain(EXIT_USAGE,
		        "option %s: --grid, --group, --shared, --repeat or --profile, its value the next "
		        "word, or "
		        "--counters or --json; -v goes before run",
		        option);
	if (!value)
		return complain(EXIT_USAGE, "%s: a value must follow", option);
	if (!strcmp(option, "--profile")) {
		job->profile_path = value;
		return 0;
	}
	if (!strcmp(option, "--grid"))
		return parse_dims(option, value, job->grid);
	if (!strcmp(option, "--group"))
		return parse_dims(option, value, job->group);
	if (!strcmp(option, "--shared"))
		return parse_number(option, value, 0, UINT32_MAX, &job->shared);
	return parse_number(option, value, 1, MAX_REPEAT, &job->repeat);
}

static int parse_word(struct run_job *job, char *text)
{
	if (!job->device_text)
		job->device_text = text;
	else if (!job->image_path)
		job->image_path = text;
	else if (!job->function)
		job->function = text;
	else
		return add_arg(&job->args, text);
	return 0;
}

static int parse(struct run_job *job, int argc, char **argv)
{
	int i, err = 0;

	for (i = 1; !err && i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			job->json = true;
		} else if (!strcmp(argv[i], "--counters")) {
			job->counters = true;
		} else if (argv[i][0] == '-') {
			err = parse_option(job, argv[i], argv[i + 1]); /* argv ends with NULL */
			i++;
		} else {
			err = parse_word(job, argv[i]);
		}
	}
	if (!err && !job->function)
		err = complain(EXIT_USAGE,
		        "it needs DEVICE, IMAGE and FUNCTION, as in rigctl run sim scale.elf scale");
	return err;
}

/* -- What it says when it is done -- */

static struct json_object *dims_json(const uint32_t d[3])
{
	struct json_object *array = json_object_new_array();
	unsigned i;

	for (i = 0; i < 3; i++)
		json_object_array_add(array, json_object_new_int64(d[i]));
	return array;
}

static struct json_object *outputs_json(const struct run_job *job)
{
	struct json_object *outputs = json_object_new_array();
	unsigned i;

	for (i = 0; i < job->args.count; i++)
		if (job->args.arg[i].to)
			json_object_array_add(outputs, json_object_new_string(job->args.arg[i].to));
	return outputs;
}

static void report_json(const struct run_job *job)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "device", json_object_new_string(rig_name(job->device)));
	json_object_object_add(o, "arch", json_object_new_string(rig_arch(job->device)));
	json_object_object_add(o, "image", json_object_new_string(job->image_path));
	json_object_object_add(o, "function", json_object_new_string(job->function));
	json_object_object_add(o, "grid", dims_json(job->grid));
	json_object_object_add(o, "group", dims_json(job->group));
	json_object_object_add(o, "shared", json_object_new_int64(job->shared));
	json_object_object_add(o, "launches", json_object_new_int64(job->repeat));
	json_object_object_add(o, "fastest_ns", json_object_new_int64((int64_t)job->fastest_ns));
	json_object_object_add(o, "mean_ns", json_object_new_int64((int64_t)(job->total_ns / job->repeat)));
	json_object_object_add(o, "value", json_object_new_int64((int64_t)job->value));
	json_object_object_add(o, "bytes_to_device", json_object_new_int64((int64_t)job->bytes_in));
	json_object_object_add(o, "bytes_from_device", json_object_new_int64((int64_t)job->bytes_out));
	json_object_object_add(o, "outputs", outputs_json(job));
	if (job->counters)
		json_object_object_add(o, "counters", run_counters_json(job));
	if (job->profile_path)
		json_object_object_add(o, "profile", json_object_new_string(job->profile_path));
	printf("%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}

void run_report(const struct run_job *job)
{
	unsigned i;

	if (job->json) {
		report_json(job);
		return;
	}
	printf("%s on %s: %u launch%s, fastest %.3f ms, mean %.3f ms, value %" PRIu64 "\n", job->function,
	        rig_name(job->device), job->repeat, job->repeat == 1 ? "" : "es",
	        (double)job->fastest_ns / 1e6, (double)job->total_ns / job->repeat / 1e6, job->value);
	if (job->counters)
		run_counters_print(job);
	for (i = 0; i < job->args.count; i++)
		if (job->args.arg[i].to)
			printf("wrote %s, %" PRIu64 " bytes\n", job->args.arg[i].to, job->args.arg[i].count);
	if (job->profile_path)
		printf("wrote %s: open it in ui.perfetto.dev\n", job->profile_path);
}

/* -- The command -- */

static int run(int argc, char **argv)
{
	static struct run_job job = {.grid = {1, 1, 1}, .group = {1, 1, 1}, .repeat = 1};
	int err = parse(&job, argc, argv);

	if (!err) {
		int unread = read_file(job.image_path, &job.binary, &job.binary_bytes);

		err = unread ? complain(EXIT_USAGE, "image %s: %s", job.image_path, strerror(-unread)) : 0;
	}
	if (!err)
		err = check_outputs(&job.args);
	if (!err)
		err = open_device(job.device_text, &job.device);
	if (!err)
		err = run_work(&job);
	free_args(&job.args);
	free(job.binary);
	if (job.device)
		close_device(job.device);
	return err;
}

static const struct option_help options[] = {
        {"--grid X[,Y[,Z]]", "groups of the grid (1)"},
        {"--group X[,Y[,Z]]", "threads of a group (1)"},
        {"--shared BYTES", "shared memory of a group (0)"},
        {"--repeat N", "launch N times, one after the other (1)"},
        {"--profile FILE",
                "write what the device did, and when, to FILE, as Perfetto and Chrome's trace viewer "
                "read it"},
        {"--counters", "also print what the device measured of the launches: their time and its counters"},
        {"--json", "an object instead of text; its keys, and a counter's, are of small letters, digits and "
                   "_, as "
                   "bytes_read"},
        {NULL, NULL},
};

const struct command command_run = {
        .name = "run",
        .synopsis = "DEVICE IMAGE FUNCTION [OPTION ...] [ARG ...]",
        .summary = "run a function of a compiled kernel image over files",
        .text = "ARGs are the function's parameters in order, packed, each at its own alignment: in:FILE, a "
                "buffer with the file's "
                "bytes; out:FILE,BYTES, a zeroed buffer that is written to FILE afterwards; "
                "inout:FILE,OUTFILE, both; zero:BYTES, "
                "a zeroed buffer; u32:N, i32:N, u64:N, f32:N, f64:N, a number. A buffer's parameter is its "
                "64-bit device address. BYTES is a plain number. A launch of --repeat finds the buffers as "
                "the one "
                "before left them.\n"
                "As in C, the parameters end at a multiple of their largest alignment: a last 4-byte ARG "
                "that is "
                "missing is not noticed where such padding has its place.\n"
                "rvx1-cc compiles images.",
        .via = "With --via HOST:PORT and --key FILE before it: on a DEVICE that a rig-agent(1) serves there; "
               "files are here, and every option holds.",
        .options = options,
        .run = run,
};
