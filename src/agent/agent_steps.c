/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent_device.h"
#include "agent_hot.h"
#include "agent_rails.h"
#include "rig_remote.h"

bool work_has_steps(const struct device *d, const struct rig_rmt_work *work)
{
	return d->host && work->nparts && work->parts[0].kind == RIG_WORDS;
}

int steps_check(const struct rig_rmt_work *work)
{
	uint32_t i, w;

	for (i = 0; i < work->nparts; i++) {
		const struct rig_rmt_part *part = &work->parts[i];

		if (part->kind != RIG_WORDS || part->nwords % RIG_REMOTE_STEP_WORDS)
			return rig_error_set(-EINVAL,
			        "part %" PRIu32
			        ": work with steps has no other, and steps have %u words each",
			        i, RIG_REMOTE_STEP_WORDS);
		for (w = 0; w < part->nwords; w += RIG_REMOTE_STEP_WORDS)
			if (!part->words[w] || part->words[w] > RIG_REMOTE_ADVANCE)
				return rig_error_set(
				        -EINVAL, "part %" PRIu32 ": no step is %" PRIu32, i, part->words[w]);
	}
	return 0;
}

static int run_steps(struct device *d, const struct rig_rmt_work *work)
{
	uint32_t i, w;
	int err = steps_check(work);

	for (i = 0; i < work->nparts && !err; i++)
		for (w = 0; w < work->parts[i].nwords && !err; w += RIG_REMOTE_STEP_WORDS)
			err = rails_step(d, work->parts[i].words + w);
	return err;
}

int steps_do(struct device *d, struct rig_rmt_work *work, struct built *b)
{
	int err = work_follow(d, work, b);
	uint32_t i;

	if (!err)
		err = run_steps(d, work);
	for (i = 0; i < work->nparts; i++) {
		free((void *)(uintptr_t)work->parts[i].after);
		free((void *)(uintptr_t)work->parts[i].words);
		free((void *)(uintptr_t)work->parts[i].params);
	}
	work->nparts = 0;
	return err;
}
