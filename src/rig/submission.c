/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "rt.h"

static void destroy(struct rig_submission *s)
{
	struct rig_device *d = s->device;
	uint32_t i;

	for (i = 0; i < s->nfixed; i++)
		rig_buffer_put(s->fixed[i]);
	for (i = 0; i < s->nimages; i++)
		rig_image_put(s->images[i]);
	free(s->parts);
	free(s->launches);
	free(s->images);
	free(s->rules);
	free(s->fixed);
	free(s->fixed_uses);
	free(s->block);
	free(s->scratch);
	free(s);
	rig_device_put(d);
}

static void run_kept(struct rig_submission *s)
{
	while (s->kept) {
		struct rig_rt_kept *kept = s->kept;

		s->kept = kept->next;
		kept->put(kept->object);
		free(kept);
	}
}

static void end(struct rig_rt_deferred *deferred)
{
	struct rig_submission *s = (void *)((char *)deferred - offsetof(struct rig_submission, deferred));

	run_kept(s);
	destroy(s);
}

/* What goes with it at most; what a program keeps with it may be anything. */
static void set_deferred(struct rig_submission *s)
{
	struct rig_rt_deferred *deferred = &s->deferred;
	uint32_t i;

	deferred->run = end;
	deferred->value = atomic_load_explicit(&s->last, memory_order_acquire);
	deferred->bytes = s->kept ? UINT64_MAX : 0;
	deferred->hosts = s->kept;
	for (i = 0; i < s->nfixed; i++) {
		const struct rig_rt_mem *mem = s->fixed[i]->mem;

		if (mem && mem->counted && !s->kept)
			deferred->bytes += mem->bytes;
		if (mem && !mem->counted)
			deferred->hosts = true;
	}
	for (i = 0; i < s->nimages && !s->kept; i++)
		deferred->bytes += s->images[i]->code ? s->images[i]->code->bytes : 0;
}

int rig_submission_make(struct rig_device *device, const struct rig_description *description,
        struct rig_submission **submission)
{
	struct rig_submission *s;
	int code = rig_rt_given2(device, "device", submission, "submission");

	if (code)
		return code;
	if (!description || description->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL, "the description has version %" PRIu32 ", this library %u",
		        description ? description->version : 0, RIG_EDGE_VERSION);
	if (!rig_rt_is_live(device))
		return rig_rt_lost_error(device);
	s = calloc(1, sizeof(*s));
	if (!s)
		return rig_error_set(-ENOMEM, "no host memory for a submission");
	rig_rt_drain(device);
	atomic_init(&s->refs, 1);
	s->device = rig_device_get(device);
	code = rig_rt_describe(s, description);
	if (code) {
		destroy(s);
		return code;
	}
	rig_rt_job_init(&s->job, s);
	*submission = s;
	return 0;
}

struct rig_submission *rig_submission_get(struct rig_submission *submission)
{
	if (submission)
		atomic_fetch_add_explicit(&submission->refs, 1, memory_order_relaxed);
	return submission;
}

void rig_submission_put(struct rig_submission *submission)
{
	struct rig_submission *s = submission;

	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	set_deferred(s);
	rig_rt_defer(s->device, &s->deferred);
}

int rig_submission_keep(struct rig_submission *submission, void *object, void (*put)(void *object))
{
	struct rig_rt_kept *kept;
	int code = rig_rt_given(submission, "submission");

	if (code)
		return code;
	if (!put)
		return rig_error_set(-EINVAL, "put is NULL");
	kept = calloc(1, sizeof(*kept));
	if (!kept)
		return rig_error_set(-ENOMEM, "no host memory to keep an object");
	kept->object = object;
	kept->put = put;
	rig_rt_lock(&submission->keep_lock);
	kept->next = submission->kept;
	submission->kept = kept;
	rig_rt_unlock(&submission->keep_lock);
	return 0;
}
