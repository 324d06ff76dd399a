/* SPDX-License-Identifier: MIT */
#ifndef TEST_SYSTEM_DEVICE_H
#define TEST_SYSTEM_DEVICE_H

/* Real devices through librig, and work for them. Functions fail the running cmocka test when something is
 * refused. */

#include "rig.h"
#include "rig_vfio.h"
#include "system.h"

#define sys_ok(expression)                                                                                   \
	do {                                                                                                 \
		int answer_ = (expression);                                                                  \
		if (answer_)                                                                                 \
			fail_msg("%s answered %d: %s", #expression, answer_, rig_error());                   \
	} while (0)

/* Opens what a device string names. */
struct rig_device *sys_open(const char *text);
/* The same, with rig_open's answer. */
int sys_try_open(const char *text, struct rig_device **device);
/* Closes it and drops the reference, which ends its model. */
void sys_close(struct rig_device *device);

struct rig_buffer *sys_buffer(struct rig_device *device, enum rig_memory kind, uint64_t bytes);
struct rig_image *sys_image(struct rig_device *device, const char *kernel);

/* One launch as a submission, and its run. */
struct sys_launch {
	struct rig_submission *submission;
	struct rig_run_args *run;
};

enum { SYS_BUFFERS = 4 };

struct sys_params {
	struct rig_device *device;
	const void *bytes;
	uint32_t count;
	/* The address of buffer i is added to the 8 bytes at i * 8; each may be written. */
	uint32_t nbuffers;
	struct rig_buffer *buffer[SYS_BUFFERS];
};

void sys_launch_make(struct sys_launch *l, struct rig_image *image, const char *function,
        const struct sys_params *params, uint32_t groups, uint32_t threads);
struct rig_point sys_launch_submit(struct sys_launch *l);
/* Submits it and waits: rig_submit's or rig_wait's answer. */
int sys_launch_try(struct sys_launch *l);
void sys_launch_end(struct sys_launch *l);

/* A submission without parts. */
struct rig_submission *sys_empty(struct rig_device *device);
/* One copy of `bytes` bytes from slot 0 to slot 1, and its run. */
void sys_copy_make(struct sys_launch *l, struct rig_buffer *src, uint64_t src_offset, struct rig_buffer *dst,
        uint64_t dst_offset, uint64_t bytes);

/* Runs a kernel on the device and checks its answers. */
void sys_device_works(struct rig_device *device);

/* Fills with numbers that differ from place to place and from seed to seed. */
void sys_fill(uint8_t *bytes, size_t count, uint64_t seed);

void sys_stats(struct rig_device *device, struct rig_vfio_stats *stats);

/* Between what the host does with memory that is served by messages and what the device does with it. The
   device itself is what orders the two (a doorbell, the value it shows), which ThreadSanitizer cannot see. */
void sys_order(struct rig_device *device);

#endif
