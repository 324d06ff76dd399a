/* SPDX-License-Identifier: MIT */
/* Work: images, submissions, their runs, and what a submit is made of. */
#ifndef RT_WORK_H
#define RT_WORK_H

#include "rt_memory.h"

/* ---- Submitting (submit.c) ---- */

struct rig_rt_use {
	struct rig_rt_mem *mem; /* NULL: nothing */
	rig_rt_stamp *stamp;    /* of the submitting device */
	rig_rt_stamp *last;     /* the memory's last write where it is written; else `stamp` again */
	rig_rt_stamp none;      /* what both are without memory */
	bool write;
};

/* Makes a use of the memory, which may be NULL, by `d`: 0 or -ENOMEM. */
int rig_rt_use_set(struct rig_rt_use *use, struct rig_rt_mem *mem, struct rig_device *d, bool write);

struct rig_rt_launch;

struct rig_rt_job {
	struct rig_device *device;
	const struct rig_part *parts;
	const struct rig_rt_launch *launches; /* one a part, for profiles; NULL: no part is a launch */
	uint32_t nparts;
	void *scratch;
	const struct rig_run *run;
	const struct rig_rt_use *fixed, *uses; /* the submission's memory and the run's */
	uint32_t nfixed, nuses;
	/* All of this memory is the device's own and no other device's, as of `shares` one below; or NULL. */
	_Atomic uint64_t *private_at;
	_Atomic uint64_t *last; /* raised to the value; or NULL */
};

int rig_rt_submit(const struct rig_rt_job *job, const struct rig_point *waits, uint32_t nwaits,
        struct rig_point *point);

/* ---- Images and submissions ---- */

struct rig_image {
	_Atomic uint32_t refs;
	struct rig_device *device;
	void *image;
	struct rig_rt_mem *code; /* NULL: the driver placed it */
	struct rig_rt_deferred deferred;
};

struct rig_rt_kept {
	struct rig_rt_kept *next;
	void *object;
	void (*put)(void *object);
};

/* What a run and a profile must know of a launch. */
struct rig_rt_launch {
	const char *function;
	bool has_threads;
	uint32_t threads;
};

struct rig_rt_slot_rule {
	uint64_t least;     /* bytes that the copies of the submission reach */
	bool needs_address; /* a ref names it */
};

struct rig_submission {
	_Atomic uint32_t refs;
	struct rig_device *device;
	uint32_t nparts, nslots, reads, nfixed, nimages;
	struct rig_part *parts;
	void *scratch;
	void *block; /* what parts point to: words, refs, after */
	struct rig_rt_launch *launches;
	struct rig_rt_slot_rule *rules;
	struct rig_buffer **fixed;
	struct rig_rt_use *fixed_uses;
	struct rig_image **images;
	uint64_t args_bytes;
	struct rig_rt_lock keep_lock;
	struct rig_rt_kept *kept;
	_Atomic uint64_t last, private_at;
	struct rig_rt_job job; /* without a run */
	struct rig_rt_deferred deferred;
};

/* What every submit of it says, but for the run (run.c). */
void rig_rt_job_init(struct rig_rt_job *job, struct rig_submission *s);
/* Builds the parts (describe.c): 0 or a negative errno; the caller frees what was made. */
int rig_rt_describe(struct rig_submission *s, const struct rig_description *description);

struct rig_run_args {
	struct rig_submission *submission; /* a reference */
	_Atomic bool busy;
	uint32_t unset;
	_Atomic uint64_t private_at;
	struct rig_rt_job job;
	void *args;
	struct rig_run run;
	struct rig_slot *slots;
	struct rig_rt_use *uses;
	struct rig_buffer **buffers;
};

#endif
