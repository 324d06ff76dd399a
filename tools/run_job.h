/* SPDX-License-Identifier: MIT */
/*
 * One rigctl run: what cmd_run.c parses and says, run_work.c does and run_profile.c measures.
 * Functions answer 0, or an exit status after a complaint. One thread.
 */
#ifndef RIGCTL_RUN_JOB_H
#define RIGCTL_RUN_JOB_H

#include <json-c/json.h>

#include "run_args.h"

/* What the profile says of the launches. */
struct run_counters {
	uint64_t launches, fastest_ns, total_ns;
	uint64_t *least, *total; /* of each counter's values, in the facts' order */
	uint32_t n;
};

struct run_job {
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

/* What an error of the library means for the exit status. */
int run_failed(int err);

/* With the device open: all from loading the image to the outputs' files and what the command says. */
int run_work(struct run_job *job);

/* Of --profile and --counters; without either, nothing. */
int run_profile_start(struct run_job *job);
/* Also after a launch that failed: the file then says what came before. */
int run_profile_end(struct run_job *job);
void run_profile_free(struct run_job *job);
struct json_object *run_counters_json(const struct run_job *job);
void run_counters_print(const struct run_job *job);

void run_report(const struct run_job *job);

#endif
