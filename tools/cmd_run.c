/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "rig_vfio.h"
#include "rigctl.h"
#include "run_args.h"
#include "text.h"

#define MAX_REPEAT  1000000u
#define PROGRESS_NS 2000000000ull

enum { COUNTER_TEXT = 128 };

/* What the profile says of the launches. */
struct run_counters {
	uint64_t launches, fastest_ns, total_ns;
	uint64_t *least, *total; /* of each counter's values, in the facts' order */
	uint32_t n;
};

struct job {
	const char *device_text, *image_path, *function, *profile_path;
	uint32_t grid[3], group[3], shared, repeat;
	bool json, counters;
	struct run_args args;
	uint8_t *binary;
	uint64_t binary_bytes;
	/* While the device is open. */
	struct rig_device *device;
	struct rig_image *image;
	struct rig_submission *submission;
	struct rig_run_args *run;
	struct rig_profile *profile;
	struct run_counters measured;
	uint64_t fastest_ns, total_ns, value, bytes_in, bytes_out;
};

/* ---- The command line ---- */

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
static int parse_option(struct job *job, const char *option, const char *value)
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

static int parse_word(struct job *job, char *text)
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

static int parse(struct job *job, int argc, char **argv)
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

/* ---- The work ---- */

/* What an error of the library means for the exit status. */
static int failed(int err)
{
	return complain(err == RIG_LOST ? EXIT_FAILED : EXIT_USAGE, "%s", rig_error());
}

static int load_image(struct job *job)
{
	int err = rig_image_load(job->device, job->binary, job->binary_bytes, &job->image);

	if (err == RIG_LOST)
		return failed(err);
	return err ? complain(EXIT_USAGE, "image %s: %s", job->image_path, rig_error()) : 0;
}

static int check_entry(struct job *job)
{
	struct rig_entry entry = {.version = RIG_EDGE_VERSION};
	int err = rig_image_entry(job->image, job->function, &entry);

	if (err == -ENOENT)
		return complain(EXIT_USAGE,
		        "image %s has no function %s; readelf -W --dyn-syms lists its functions",
		        job->image_path, job->function);
	if (err)
		return failed(err);
	if (entry.has_params && job->args.params < entry.params)
		return complain(EXIT_USAGE, "the ARGs are %u parameter bytes; %s reads %u", job->args.params,
		        job->function, entry.params);
	if (entry.has_params && job->args.end > entry.params)
		return complain(EXIT_USAGE, "the ARGs are %u parameter bytes; %s reads only %u",
		        job->args.end, job->function, entry.params);
	return 0;
}

static int make_buffer(struct job *job, struct run_arg *a)
{
	uint8_t *zeroes = NULL;
	int err = rig_buffer_create(job->device, RIG_DEVICE, a->count, &a->buffer);

	if (err == -ENOMEM)
		return complain(EXIT_USAGE,
		        "a buffer of %" PRIu64 " bytes does not fit: of the device's %" PRIu64
		        " bytes %" PRIu64 " are taken; sim:mem=SIZE makes a larger sim",
		        a->count, rig_budget(job->device), rig_held_bytes(job->device, NULL));
	if (!err && !a->bytes) {
		zeroes = calloc(1, a->count);
		if (!zeroes)
			return complain(EXIT_FAILED, "out of host memory for %" PRIu64 " bytes", a->count);
	}
	if (!err)
		err = rig_buffer_write(a->buffer, 0, a->bytes ? a->bytes : zeroes, a->count);
	free(zeroes);
	job->bytes_in += a->count;
	return err ? failed(err) : 0;
}

static int make_buffers(struct job *job)
{
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < job->args.count; i++)
		if (job->args.arg[i].kind != ARG_SCALAR)
			err = make_buffer(job, &job->args.arg[i]);
	return err;
}

/* Every buffer is one of the run's that the kernel may write, at the parameter that is its address. */
static int make_submission(struct job *job)
{
	struct rig_ref refs[MAX_RUN_ARGS];
	struct rig_work work = {.kind = RIG_LAUNCH};
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &work, .nparts = 1};
	uint32_t n = 0;
	unsigned i;
	int err;

	for (i = 0; i < job->args.count; i++)
		if (job->args.arg[i].buffer) {
			refs[n] = (struct rig_ref){.at = job->args.arg[i].at, .slot = n};
			n++;
		}
	work.u.launch = (struct rig_launch_work){.image = job->image,
	        .function = job->function,
	        .params = job->args.params,
	        .refs = refs,
	        .nrefs = n};
	description.writes = n;
	err = rig_submission_make(job->device, &description, &job->submission);
	if (!err)
		err = rig_run_make(job->submission, &job->run);
	return err ? failed(err) : 0;
}

static int set_run(struct job *job)
{
	uint32_t slot = 0;
	unsigned i;
	int err = rig_run_grid(job->run, 0, job->grid[0], job->grid[1], job->grid[2]);

	if (!err)
		err = rig_run_group(job->run, 0, job->group[0], job->group[1], job->group[2]);
	if (!err)
		err = rig_run_shared(job->run, 0, job->shared);
	for (i = 0; !err && i < job->args.count; i++) {
		const struct run_arg *a = &job->args.arg[i];

		if (a->buffer)
			err = rig_run_buffer(job->run, slot++, a->buffer);
		else
			err = rig_run_params(job->run, 0, a->at, a->scalar, a->size);
	}
	return err ? failed(err) : 0;
}

/* The loss of a launch. One that lasted to the hang bound may only have needed longer. */
static int lost(const struct job *job, uint64_t ns)
{
	const struct rig_facts *facts = rig_device_facts(job->device);
	const char *reason;

	if (facts->has_hang_ms && ns / 1000000 >= (uint64_t)facts->hang_ms && rig_lost(job->device, &reason))
		return complain(EXIT_FAILED,
		        "%s lost: %s; for a launch that needs longer, give DEVICE the option hang=TIME",
		        rig_name(job->device), reason);
	return complain(EXIT_FAILED, "%s", rig_error());
}

static int launch_once(struct job *job)
{
	struct rig_point point;
	uint64_t start = rig_now_ns(), ns;
	int err = rig_submit(job->submission, job->run, NULL, 0, &point);

	if (err)
		return failed(err);
	err = rig_wait(point);
	ns = rig_now_ns() - start;
	if (err)
		return lost(job, ns);
	job->value = rig_point_value(point);
	job->total_ns += ns;
	if (!job->fastest_ns || ns < job->fastest_ns)
		job->fastest_ns = ns;
	return 0;
}

static int launch_all(struct job *job)
{
	uint64_t told = rig_now_ns();
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < job->repeat; i++) {
		err = launch_once(job);
		if (!err && !job->json && rig_now_ns() - told > PROGRESS_NS) {
			told = rig_now_ns();
			fprintf(stderr, "rigctl run: %u of %u launches\n", i + 1, job->repeat);
		}
	}
	return err;
}

/* ---- The profile ---- */

static int start_profile(struct job *job)
{
	int err;

	if (!job->profile_path && !job->counters)
		return 0;
	err = rig_profile_start(&job->device, 1, &job->profile);
	return err ? failed(err) : 0;
}

static uint32_t count_values(const struct rig_facts *facts)
{
	uint32_t n = 0, i;

	for (i = 0; i < facts->ncounters; i++)
		n += facts->counters[i].values;
	return n;
}

static void add_launch(struct run_counters *m, const struct rig_event *e)
{
	uint64_t ns = e->end - e->start;
	uint32_t i;

	for (i = 0; i < m->n && i < e->ncounters; i++) {
		m->total[i] += e->counters[i];
		if (!m->launches || e->counters[i] < m->least[i])
			m->least[i] = e->counters[i];
	}
	if (!m->launches || ns < m->fastest_ns)
		m->fastest_ns = ns;
	m->total_ns += ns;
	m->launches++;
}

static int count_launches(struct job *job)
{
	struct run_counters *m = &job->measured;
	const struct rig_event *events;
	size_t n, i;
	int err = rig_profile_events(job->profile, &events, &n);

	if (err)
		return failed(err);
	m->n = count_values(rig_device_facts(job->device));
	m->least = calloc(m->n + 1u, sizeof(*m->least));
	m->total = calloc(m->n + 1u, sizeof(*m->total));
	if (!m->least || !m->total)
		return complain(EXIT_FAILED, "out of host memory for %u counters", m->n);
	for (i = 0; i < n; i++)
		if (events[i].kind == RIG_EVENT_LAUNCH)
			add_launch(m, &events[i]);
	return 0;
}

/* Also after a launch that failed: the file then says what came before. */
static int end_profile(struct job *job)
{
	int err;

	if (!job->profile)
		return 0;
	err = rig_profile_stop(job->profile);
	if (!err && job->profile_path)
		err = rig_profile_save(job->profile, job->profile_path);
	return err ? complain(EXIT_FAILED, "%s", rig_error()) : job->counters ? count_launches(job) : 0;
}

static int save(struct job *job, struct run_arg *a)
{
	uint8_t *bytes = malloc(a->count);
	int err;

	if (!bytes)
		return complain(EXIT_FAILED, "out of host memory for %s", a->to);
	err = rig_buffer_read(a->buffer, 0, bytes, a->count);
	if (err) {
		free(bytes);
		return failed(err);
	}
	err = write_file(a->to, bytes, a->count);
	free(bytes);
	job->bytes_out += a->count;
	return err ? complain(EXIT_FAILED, "%s: %s", a->to, strerror(-err)) : 0;
}

static int save_all(struct job *job)
{
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < job->args.count; i++)
		if (job->args.arg[i].to)
			err = save(job, &job->args.arg[i]);
	return err;
}

/* ---- What it says ---- */

static struct json_object *dims_json(const uint32_t d[3])
{
	struct json_object *array = json_object_new_array();
	unsigned i;

	for (i = 0; i < 3; i++)
		json_object_array_add(array, json_object_new_int64(d[i]));
	return array;
}

static uint64_t mean_of(uint64_t total, uint64_t n)
{
	return n ? total / n : 0;
}

/* Whose the *index-th value of all counters is; *index is then its number among that one's. */
static const struct rig_counter *find_counter(const struct rig_facts *facts, uint32_t *index)
{
	uint32_t c = 0;

	while (c + 1 < facts->ncounters && *index >= facts->counters[c].values)
		*index -= facts->counters[c++].values;
	return &facts->counters[c];
}

/* As people call it. */
static void name_counter(const struct rig_facts *facts, uint32_t index, char *to, size_t bytes)
{
	const struct rig_counter *counter = find_counter(facts, &index);

	if (counter->values > 1)
		(void)snprintf(to, bytes, "%s[%u]", counter->name, index);
	else
		(void)snprintf(to, bytes, "%s", counter->name);
}

/* As programs call it, and a profile's file. */
static void key_counter(const struct rig_facts *facts, uint32_t index, char *to, size_t bytes)
{
	const struct rig_counter *counter = find_counter(facts, &index);
	struct rig_text text;

	rig_text_init(&text, to, bytes);
	rig_text_add_key(&text, counter->name);
	if (counter->values > 1)
		rig_text_addf(&text, "_%u", index);
}

static struct json_object *least_and_mean(uint64_t least, uint64_t mean)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "least", json_object_new_int64((int64_t)least));
	json_object_object_add(o, "mean", json_object_new_int64((int64_t)mean));
	return o;
}

/* By how much the driver says that a time may be off. False: it does not say. */
static bool get_error(const struct job *job, uint64_t *ns)
{
	const struct rig_vfio_record *record = rig_capability(job->device, &rig_vfio_key);
	struct rig_vfio_stats stats = {0};

	if (!record)
		return false;
	record->stats(record, &stats);
	*ns = stats.times_error_ns;
	return true;
}

static struct json_object *counters_json(const struct job *job)
{
	const struct run_counters *m = &job->measured;
	struct json_object *o = json_object_new_object();
	char key[COUNTER_TEXT];
	uint64_t error;
	uint32_t i;

	json_object_object_add(o, "launches", json_object_new_int64((int64_t)m->launches));
	if (get_error(job, &error))
		json_object_object_add(o, "time_error_ns", json_object_new_int64((int64_t)error));
	json_object_object_add(
	        o, "time_ns", least_and_mean(m->fastest_ns, mean_of(m->total_ns, m->launches)));
	for (i = 0; i < m->n; i++) {
		key_counter(rig_device_facts(job->device), i, key, sizeof(key));
		json_object_object_add(
		        o, key, least_and_mean(m->least[i], mean_of(m->total[i], m->launches)));
	}
	return o;
}

static void report_counters(const struct job *job)
{
	const struct run_counters *m = &job->measured;
	char name[COUNTER_TEXT];
	uint64_t error;
	uint32_t i;

	if (!m->launches) {
		printf("%s measured none of the launches\n", rig_name(job->device));
		return;
	}
	printf("on the device, of %" PRIu64 " measured:%*sleast %16s\n", m->launches, 6, "", "mean");
	printf("  %-20s %16" PRIu64 " %16" PRIu64 "\n", "time, ns", m->fastest_ns,
	        mean_of(m->total_ns, m->launches));
	for (i = 0; i < m->n; i++) {
		name_counter(rig_device_facts(job->device), i, name, sizeof(name));
		printf("  %-20s %16" PRIu64 " %16" PRIu64 "\n", name, m->least[i],
		        mean_of(m->total[i], m->launches));
	}
	if (get_error(job, &error))
		printf("starts and ends of launches are off by at most %" PRIu64 " ns\n", error);
}

static void report_json(const struct job *job)
{
	struct json_object *o = json_object_new_object(), *outputs = json_object_new_array();
	unsigned i;

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
	for (i = 0; i < job->args.count; i++)
		if (job->args.arg[i].to)
			json_object_array_add(outputs, json_object_new_string(job->args.arg[i].to));
	json_object_object_add(o, "outputs", outputs);
	if (job->counters)
		json_object_object_add(o, "counters", counters_json(job));
	if (job->profile_path)
		json_object_object_add(o, "profile", json_object_new_string(job->profile_path));
	printf("%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}

static void report(const struct job *job)
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
		report_counters(job);
	for (i = 0; i < job->args.count; i++)
		if (job->args.arg[i].to)
			printf("wrote %s, %" PRIu64 " bytes\n", job->args.arg[i].to, job->args.arg[i].count);
	if (job->profile_path)
		printf("wrote %s: open it in ui.perfetto.dev\n", job->profile_path);
}

/* A profile also says what led to a loss, so it ends in any case. */
static int launch_under_profile(struct job *job)
{
	int err = launch_all(job), ended = end_profile(job);

	return err ? err : ended;
}

static int work(struct job *job)
{
	int err = start_profile(job);

	if (!err)
		err = load_image(job);
	if (!err)
		err = check_entry(job);
	if (!err)
		err = make_buffers(job);
	if (!err)
		err = make_submission(job);
	if (!err)
		err = set_run(job);
	if (!err)
		err = launch_under_profile(job);
	if (!err)
		err = save_all(job);
	if (!err)
		report(job);
	rig_run_put(job->run);
	rig_submission_put(job->submission);
	rig_image_put(job->image);
	rig_profile_put(job->profile);
	free(job->measured.least);
	free(job->measured.total);
	return err;
}

static int run(int argc, char **argv)
{
	static struct job job = {.grid = {1, 1, 1}, .group = {1, 1, 1}, .repeat = 1};
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
		err = work(&job);
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
        .options = options,
        .run = run,
};
