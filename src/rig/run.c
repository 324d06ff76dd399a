/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "rt.h"

#define ARGS_ALIGN 16u

static void set_ones(uint32_t v[3])
{
	v[0] = v[1] = v[2] = 1;
}

static struct rig_block *block_of(struct rig_run_args *run, uint32_t part)
{
	return (void *)((uint8_t *)run->args + run->submission->parts[part].u.launch.block);
}

static int allocate(struct rig_run_args *run, const struct rig_submission *s)
{
	run->args = aligned_alloc(ARGS_ALIGN, s->args_bytes + ARGS_ALIGN);
	run->slots = calloc(s->nslots + 1u, sizeof(*run->slots));
	run->uses = calloc(s->nslots + 1u, sizeof(*run->uses));
	run->buffers = calloc(s->nslots + 1u, sizeof(struct rig_buffer *));
	if (!run->args || !run->slots || !run->uses || !run->buffers)
		return -ENOMEM;
	memset(run->args, 0, s->args_bytes + ARGS_ALIGN);
	return 0;
}

static void destroy(struct rig_run_args *run)
{
	uint32_t i;

	for (i = 0; run->buffers && i < run->submission->nslots; i++)
		rig_buffer_put(run->buffers[i]);
	free(run->args);
	free(run->slots);
	free(run->uses);
	free(run->buffers);
	rig_submission_put(run->submission);
	free(run);
}

int rig_run_make(struct rig_submission *submission, struct rig_run_args **run)
{
	struct rig_run_args *made;
	uint32_t i;
	int code = rig_rt_given2(submission, "submission", run, "run");

	if (code)
		return code;
	made = calloc(1, sizeof(*made));
	if (!made)
		return rig_error_set(-ENOMEM, "no host memory for a run");
	made->submission = rig_submission_get(submission);
	if (allocate(made, submission)) {
		destroy(made);
		return rig_error_set(-ENOMEM, "no host memory for a run");
	}
	for (i = 0; i < submission->nparts; i++)
		if (submission->parts[i].kind == RIG_LAUNCH) {
			set_ones(block_of(made, i)->groups);
			set_ones(block_of(made, i)->threads);
		}
	made->unset = submission->nslots;
	made->run.args = submission->args_bytes ? made->args : NULL;
	made->run.args_bytes = submission->args_bytes;
	made->run.slots = made->slots;
	made->run.nslots = submission->nslots;
	rig_rt_job_init(&made->job, submission);
	made->job.run = &made->run;
	made->job.private_at = &made->private_at;
	made->job.uses = made->uses;
	made->job.nuses = submission->nslots;
	*run = made;
	return 0;
}

void rig_run_put(struct rig_run_args *run)
{
	if (run)
		destroy(run);
}

static int check_idle(struct rig_run_args *run)
{
	if (!atomic_load_explicit(&run->busy, memory_order_acquire))
		return 0;
	return rig_error_set(-EBUSY, "the run is in use by a submit");
}

static int check_launch(struct rig_run_args *run, uint32_t part)
{
	const struct rig_submission *s;
	int code = rig_rt_given(run, "run");

	if (code)
		return code;
	s = run->submission;
	if (part >= s->nparts || s->parts[part].kind != RIG_LAUNCH)
		return rig_error_set(
		        -EINVAL, "part %" PRIu32 " of %" PRIu32 " is no launch", part, s->nparts);
	return check_idle(run);
}

static void set(uint32_t v[3], uint32_t x, uint32_t y, uint32_t z)
{
	v[0] = x;
	v[1] = y;
	v[2] = z;
}

int rig_run_grid(struct rig_run_args *run, uint32_t part, uint32_t x, uint32_t y, uint32_t z)
{
	int code = check_launch(run, part);

	if (code)
		return code;
	if (!x || !y || !z)
		return rig_error_set(-EINVAL,
		        "a grid of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " groups is empty", x, y, z);
	set(block_of(run, part)->groups, x, y, z);
	return 0;
}

/* Over the function's bound, without overflow. */
static bool exceeds(uint32_t x, uint32_t y, uint32_t z, uint32_t most)
{
	uint64_t xy = (uint64_t)x * y;

	return xy > most || xy * z > most;
}

int rig_run_group(struct rig_run_args *run, uint32_t part, uint32_t x, uint32_t y, uint32_t z)
{
	const struct rig_rt_launch *launch;
	int code = check_launch(run, part);

	if (code)
		return code;
	launch = &run->submission->launches[part];
	if (!x || !y || !z)
		return rig_error_set(-EINVAL,
		        "a group of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " threads is empty", x, y, z);
	if (launch->has_threads && exceeds(x, y, z, launch->threads))
		return rig_error_set(-EINVAL,
		        "a group of %" PRIu32 " x %" PRIu32 " x %" PRIu32
		        " threads exceeds the function's %" PRIu32,
		        x, y, z, launch->threads);
	set(block_of(run, part)->threads, x, y, z);
	return 0;
}

int rig_run_shared(struct rig_run_args *run, uint32_t part, uint32_t bytes)
{
	int code = check_launch(run, part);

	if (!code)
		block_of(run, part)->shared = bytes;
	return code;
}

int rig_run_params(struct rig_run_args *run, uint32_t part, uint32_t at, const void *params, uint32_t bytes)
{
	int code = check_launch(run, part);
	uint32_t most;

	if (code)
		return code;
	most = run->submission->parts[part].u.launch.params;
	if (at > most || bytes > most - at)
		return rig_error_set(-EINVAL,
		        "%" PRIu32 " bytes from %" PRIu32 " exceed the launch's %" PRIu32 " parameter bytes",
		        bytes, at, most);
	if (bytes)
		code = rig_rt_given(params, "params");
	if (bytes && !code)
		memcpy((uint8_t *)block_of(run, part) + sizeof(struct rig_block) + at, params, bytes);
	return code;
}

static int check_buffer(const struct rig_run_args *run, uint32_t slot, const struct rig_buffer *buffer)
{
	const struct rig_submission *s = run->submission;
	const struct rig_rt_slot_rule *rule = &s->rules[slot];

	if (buffer->device != s->device)
		return rig_error_set(-EINVAL, "slot %" PRIu32 ": the buffer is %s's, not %s's; borrow it",
		        slot, buffer->device->name, s->device->name);
	if (buffer->bytes < rule->least)
		return rig_error_set(-EINVAL,
		        "slot %" PRIu32 ": the submission's copies reach %" PRIu64
		        " bytes, the buffer has %" PRIu64,
		        slot, rule->least, buffer->bytes);
	if (rule->needs_address && buffer->mem && !buffer->at.has_address)
		return rig_error_set(
		        -EINVAL, "slot %" PRIu32 ": the buffer has no address, which a launch needs", slot);
	return 0;
}

/* The stamp is claimed now, so that a submit neither allocates nor searches. */
static int take_buffer(struct rig_run_args *run, uint32_t slot, struct rig_buffer *buffer)
{
	int code =
	        rig_rt_use_set(&run->uses[slot], buffer->mem, buffer->device, slot >= run->submission->reads);

	if (code)
		return code;
	atomic_store_explicit(&run->private_at, 0, memory_order_relaxed);
	run->slots[slot].address = rig_buffer_address(buffer);
	run->slots[slot].handle = buffer->at.handle;
	run->slots[slot].offset = buffer->offset;
	return 0;
}

int rig_run_buffer(struct rig_run_args *run, uint32_t slot, struct rig_buffer *buffer)
{
	struct rig_buffer *old;
	int code = rig_rt_given(run, "run");

	if (!code)
		code = check_idle(run);
	if (code)
		return code;
	if (slot >= run->submission->nslots)
		return rig_error_set(
		        -EINVAL, "slot %" PRIu32 " of %" PRIu32 " slots", slot, run->submission->nslots);
	if (buffer)
		code = check_buffer(run, slot, buffer);
	if (!code && buffer)
		code = take_buffer(run, slot, buffer);
	if (code)
		return code;
	if (!buffer)
		memset(&run->uses[slot], 0, sizeof(run->uses[slot]));
	old = run->buffers[slot];
	run->buffers[slot] = rig_buffer_get(buffer);
	run->unset += (uint32_t)(old != NULL) - (uint32_t)(buffer != NULL);
	rig_buffer_put(old);
	return 0;
}

void rig_rt_job_init(struct rig_rt_job *job, struct rig_submission *s)
{
	static const struct rig_run no_run;

	job->device = s->device;
	job->parts = s->parts;
	job->nparts = s->nparts;
	job->launches = s->launches;
	job->scratch = s->scratch;
	job->run = &no_run;
	job->fixed = s->fixed_uses;
	job->nfixed = s->nfixed;
	job->private_at = &s->private_at;
	job->last = &s->last;
}

static int submit_without_run(
        struct rig_submission *s, const struct rig_point *waits, uint32_t nwaits, struct rig_point *point)
{
	if (s->nslots || s->args_bytes)
		return rig_error_set(-EINVAL, "the submission has slots or launches and needs a run");
	return rig_rt_submit(&s->job, waits, nwaits, point);
}

static int refuse_run(const struct rig_submission *s, struct rig_run_args *run)
{
	if (run->submission != s)
		return rig_error_set(-EINVAL, "the run is another submission's");
	if (run->unset)
		return rig_error_set(
		        -EINVAL, "%" PRIu32 " of %" PRIu32 " slots have no buffer", run->unset, s->nslots);
	return check_idle(run);
}

int rig_submit(struct rig_submission *submission, struct rig_run_args *run, const struct rig_point *waits,
        uint32_t nwaits, struct rig_point *point)
{
	int code = rig_rt_given(submission, "submission");

	if (!code && nwaits)
		code = rig_rt_given(waits, "waits");
	if (code)
		return code;
	if (!run)
		return submit_without_run(submission, waits, nwaits, point);
	if (run->submission != submission || run->unset ||
	        atomic_load_explicit(&run->busy, memory_order_acquire))
		return refuse_run(submission, run);
	/* Not a lock: it tells misuse, and one submit at a time is the caller's part. */
	atomic_store_explicit(&run->busy, true, memory_order_relaxed);
	code = rig_rt_submit(&run->job, waits, nwaits, point);
	atomic_store_explicit(&run->busy, false, memory_order_release);
	return code;
}
