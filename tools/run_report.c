/* SPDX-License-Identifier: MIT */
/* What rigctl run says when it is done. */
#include <inttypes.h>
#include <stdio.h>

#include "rigctl.h"
#include "run_job.h"

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
