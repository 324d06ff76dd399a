/* SPDX-License-Identifier: MIT */
/* What the runtime's tests share: devices over the polled driver, opened and closed in pairs. */
#ifndef RIG_HELP_H
#define RIG_HELP_H

#include "test.h"

#include "polled.h"
#include "rig.h"

struct bench {
	struct polled *p;
	struct rig_device *d;
};

/* A polled driver with these options; name NULL: "P0". */
struct polled_options help_options(void);
/* Opens it; fails the test if it does not open. */
struct bench help_open(const struct polled_options *options);
/* Puts the device, which must be closed or lost: checks that the driver saw no breach and nothing is left. */
void help_end(struct bench *b);
/* Closes and ends. */
void help_close(struct bench *b);

/* A submission without parts. */
struct rig_submission *help_empty(struct rig_device *d);
/* One copy part: slot 0 (read) to slot 1 (written), `bytes` each. */
struct rig_submission *help_copy(struct rig_device *d, uint64_t bytes);
/* A run of it with its buffers. */
struct rig_run_args *help_copy_run(struct rig_submission *s, struct rig_buffer *src, struct rig_buffer *dst);
struct rig_point help_submit(struct rig_submission *s, struct rig_run_args *run);
struct rig_buffer *help_buffer(struct rig_device *d, uint64_t bytes);
struct rig_image *help_image(struct rig_device *d);

#define assert_ok(expression)                                                                                \
	do {                                                                                                 \
		int answer_ = (expression);                                                                  \
		if (answer_)                                                                                 \
			fail_msg("%s answered %d: %s", #expression, answer_, rig_error());                   \
	} while (0)

#endif
