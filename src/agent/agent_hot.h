/* SPDX-License-Identifier: MIT */
/*
 * The hot thread's work, inside: bytes that come with a message are laid down, it is built into what the
 * driver takes, and is handed over in its turn. By the device's hot thread, but for hot_copy and hot_check,
 * which agent_device.h has.
 */
#ifndef AGENT_HOT_H
#define AGENT_HOT_H

#include "agent_device.h"

enum { HOT_LOOK_MS = 20 }; /* between two looks at words that nothing here announces */

/* What the hot functions take, made of a message. Zeroed: nothing. */
struct built {
	struct rig_part *parts;
	uint8_t *args, *scratch;
	struct rig_run run;
	struct rig_wait waits[RIG_RMT_WAITS];
	uint32_t nwaits, nlaunches;
	struct uses uses; /* the pending's, once handed over */
	uint64_t shown;   /* the device's value, once handed over */
};

/* ---- agent_build.c ---- */

/* -EPROTO, -EINVAL, -ENOMEM with rig_error(); work_unbuild ends what it made in any case. Sides that are not
   the device's lie in the staging memory. */
int work_build(struct device *d, const struct rig_rmt_work *work, const struct staging *in,
        const struct staging *out, struct built *b);
/* One copy of the agent's own. */
int copy_build(struct built *b, const struct rig_copy_part *copy, const struct device *d);
void work_unbuild(struct device *d, struct built *b);
/* Whether the rows lie within a region: drivers rely on it. */
bool rows_fit(uint64_t offset, uint64_t pitch, uint64_t row_bytes, uint64_t rows, uint64_t bytes);

/* ---- agent_lay.c ---- */

/* Staging memory for the value, and in it the bytes that come with it. -ECANCELED: the device is ending;
   -ECONNABORTED: they do not come. */
int work_stage(struct device *d, const struct rig_rmt_work *work, struct pending *p);

/* ---- agent_steps.c: work of the machine's own queue, steps of rails and nothing beside them ---- */

bool work_has_steps(const struct device *d, const struct rig_rmt_work *work);
int steps_check(const struct rig_rmt_work *work);
/* The machine's memory does its work in submit, so its earlier values are complete: the steps are taken here,
   and the value that is handed over is empty. */
int steps_do(struct device *d, struct rig_rmt_work *work, struct built *b);

/* ---- agent_hand.c ---- */

/* The waits, for the queue or over. */
int work_follow(struct device *d, const struct rig_rmt_work *work, struct built *b);
/* Takes the pending in any case. -ECANCELED: the device is ending; other errors have lost it. */
int work_hand_over(struct device *d, struct built *b, uint32_t nparts, struct pending *p);
int value_await(struct device *d, struct device *other, uint64_t shown);

#endif
