/* SPDX-License-Identifier: MIT */
/* The work of a rigctl run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rigctl.h"
#include "run_job.h"
#include "via.h"

#define PROGRESS_NS 2000000000ull

int run_failed(int err)
{
	return complain(err == RIG_LOST ? EXIT_FAILED : EXIT_USAGE, "%s", rig_error());
}

static int load_image(struct run_job *job)
{
	int err = rig_image_load(job->device, job->binary, job->binary_bytes, &job->image);

	if (err == RIG_LOST)
		return run_failed(err);
	return err ? complain(EXIT_USAGE, "image %s: %s", job->image_path, rig_error()) : 0;
}

static int check_entry(struct run_job *job)
{
	struct rig_entry entry = {.version = RIG_EDGE_VERSION};
	int err = rig_image_entry(job->image, job->function, &entry);

	if (err == -ENOENT)
		return complain(EXIT_USAGE,
		        "image %s has no function %s; readelf -W --dyn-syms lists its functions",
		        job->image_path, job->function);
	if (err)
		return run_failed(err);
	if (entry.has_params && job->args.params < entry.params)
		return complain(EXIT_USAGE, "the ARGs are %u parameter bytes; %s reads %u", job->args.params,
		        job->function, entry.params);
	if (entry.has_params && job->args.end > entry.params)
		return complain(EXIT_USAGE, "the ARGs are %u parameter bytes; %s reads only %u",
		        job->args.end, job->function, entry.params);
	return 0;
}

static int make_buffer(struct run_job *job, struct run_arg *a)
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
	return err ? run_failed(err) : 0;
}

static int make_buffers(struct run_job *job)
{
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < job->args.count; i++)
		if (job->args.arg[i].kind != ARG_SCALAR)
			err = make_buffer(job, &job->args.arg[i]);
	return err;
}

/* Every buffer is one of the run's that the kernel may write, at the parameter that is its address. */
static int make_submission(struct run_job *job)
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
	return err ? run_failed(err) : 0;
}

static int set_run(struct run_job *job)
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
	return err ? run_failed(err) : 0;
}

/* The loss of a launch. One that lasted to the hang bound may only have needed longer. */
static int lost(const struct run_job *job, uint64_t ns)
{
	const struct rig_facts *facts = rig_device_facts(job->device);
	const char *reason;

	if (facts->has_hang_ms && ns / 1000000 >= (uint64_t)facts->hang_ms && rig_lost(job->device, &reason))
		return complain(EXIT_FAILED,
		        "%s lost: %s; for a launch that needs longer, give %s the option hang=TIME",
		        rig_name(job->device), reason, via.machine ? "rig-agent's DEVICE" : "DEVICE");
	return complain(EXIT_FAILED, "%s", rig_error());
}

static int launch_once(struct run_job *job)
{
	struct rig_point point;
	uint64_t start = rig_now_ns(), ns;
	int err = rig_submit(job->submission, job->run, NULL, 0, &point);

	if (err)
		return run_failed(err);
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

static int launch_all(struct run_job *job)
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

static int save(struct run_job *job, struct run_arg *a)
{
	uint8_t *bytes = malloc(a->count);
	int err;

	if (!bytes)
		return complain(EXIT_FAILED, "out of host memory for %s", a->to);
	err = rig_buffer_read(a->buffer, 0, bytes, a->count);
	if (err) {
		free(bytes);
		return run_failed(err);
	}
	err = write_file(a->to, bytes, a->count);
	free(bytes);
	job->bytes_out += a->count;
	return err ? complain(EXIT_FAILED, "%s: %s", a->to, strerror(-err)) : 0;
}

static int save_all(struct run_job *job)
{
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < job->args.count; i++)
		if (job->args.arg[i].to)
			err = save(job, &job->args.arg[i]);
	return err;
}

/* A profile also says what led to a loss, so it ends in any case. */
static int launch_under_profile(struct run_job *job)
{
	int err = launch_all(job), ended = run_profile_end(job);

	return err ? err : ended;
}

int run_work(struct run_job *job)
{
	int err = run_profile_start(job);

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
		run_report(job);
	rig_run_put(job->run);
	rig_submission_put(job->submission);
	rig_image_put(job->image);
	run_profile_free(job);
	return err;
}
