/* SPDX-License-Identifier: MIT */
/*
 * What bench-hostcost measures is an operation over a bench: hostcost_make.c prepares one, hostcost_ops.c
 * runs it, hostcost.c names the pairs. Functions answer 0, or an error that rig_error may tell of. One
 * thread, but for hostcost_threads.c.
 */
#ifndef HOSTCOST_H
#define HOSTCOST_H

#include "polled.h"
#include "rig.h"

#define BATCH 32u
#define BYTES 4096u

#define POINTS    24u  /* of other devices */
#define BUFFERS   16u  /* of a run, the most that the polled driver takes */
#define PIPELINED 100u /* values on the queues at once */
#define DROPPED   1000u

struct bench {
	struct polled *p;
	struct rig_device *d;
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point point;
	enum rig_memory kind;
	/* The driver called by hand. */
	const struct rig_driver *hot;
	void *edge;
	uint64_t value;
	struct rig_part parts[1];
	struct rig_run direct;
	uint32_t nparts;
	/* Other devices and their points. */
	struct other {
		struct polled *p;
		struct rig_device *d;
		char name[16];
	} others[POINTS];
	struct rig_point points[POINTS];
	struct rig_submission *other_s;
	struct rig_run_args *other_run;
	struct rig_buffer *buffer, *dropped[DROPPED];
	struct rig_buffer **live;
};

/* A batch of operations: what callgrind counts lies below functions named op_ and floor_. */
int op_submit(struct bench *b);
int floor_submit(struct bench *b);
int op_wait(struct bench *b);
int floor_wait(struct bench *b);
int op_alloc(struct bench *b);
int floor_alloc(struct bench *b);
int op_waits(struct bench *b);
int floor_waits(struct bench *b);
int op_wait_buffer(struct bench *b);
int floor_wait_buffer(struct bench *b);
/* So many, the device's side between them. */
int replay_1(struct bench *b);
int replay_100(struct bench *b);
int drain_own(struct bench *b);
int drain_foreign(struct bench *b);

/* Before them: what they use. Of the floors also the driver, to be called by hand. */
int make_empty(struct bench *b);
int make_profiled(struct bench *b);
int make_copy(struct bench *b);
int make_launch(struct bench *b);
int make_buffers(struct bench *b);
int make_shared(struct bench *b);
int make_waits(struct bench *b);
int make_used(struct bench *b);
int make_dropped(struct bench *b);
int make_live_10(struct bench *b);
int make_live_1000(struct bench *b);
int make_live_100000(struct bench *b);
int make_images_10(struct bench *b);
int make_images_1000(struct bench *b);
int make_images_100000(struct bench *b);
int make_devices_10(struct bench *b);
int make_devices_1000(struct bench *b);
int make_wait(struct bench *b);
int make_device(struct bench *b);
int make_pinned(struct bench *b);
int floor_empty(struct bench *b);
int floor_copy(struct bench *b);
int floor_launch(struct bench *b);
int floor_buffers(struct bench *b);

/* Makes the opener's device beside the runtime, with the array's last word: the driver's state, or NULL. */
void *hostcost_by_hand(const struct rig_opener *opener, rig_atomic_u64 **word);

/* Two threads on one device, in time: prints the least of some rounds. An exit status. */
int hostcost_threads(void);

#endif
