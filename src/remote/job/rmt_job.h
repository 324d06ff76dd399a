/* SPDX-License-Identifier: MIT */
/*
 * A job's controller, inside. Who may touch what:
 *   job->lock      the reason, the numbers of requests and fetches, openers, references
 *   machine->lock  the requests that wait, the table of devices (rmt_devices.h); innermost but for a
 *                  device's own
 * A machine's reader takes each for a moment and waits for nothing but bytes, with none of them held; it
 * sends nothing.
 */
#ifndef RMT_JOB_H
#define RMT_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "rig_remote.h"
#include "rmt_chan.h"
#include "rmt_clock.h"
#include "rmt_devices.h"
#include "rmt_frames.h"

enum {
	RIG_RMT_MACHINES = 256,
	RIG_RMT_ANSWER_MS = 60000,
};

struct rig_rmt_request;

struct rig_rmt_machine {
	struct rig_remote_job *job;
	uint32_t index;
	char name[RIG_RMT_NAME];
	struct rig_rmt_chan *chan; /* set once it has joined, under the lock */
	pthread_t reader;
	bool reading;

	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct rig_rmt_request *requests;
	struct rig_rmt_device *devices[RIG_RMT_DEVICES];
	char *losses[RIG_RMT_DEVICES];       /* of devices that are lost before they are in the table */
	char version[RIG_RMT_AGENT_VERSION]; /* of its agent, as the last list has it */
	struct rig_rmt_clock clock;
	bool has_clock;
	atomic_bool tried;  /* to link with it for parcels */
	uint32_t ping;      /* the number of the one under way; 0: none */
	uint64_t ping_sent; /* when */
};

/* Made as a program asks for one (rmt_proxy_open.c); it goes with the job. */
struct rig_rmt_opener {
	struct rig_rmt_opener *next;
	struct rig_opener opener;
	char name[RIG_RMT_NAME];
	struct rig_rmt_machine *machine;
};

struct rig_remote_job {
	struct rig_remote_options options;
	struct rig_rmt_key *key;
	uint8_t token[RIG_RMT_TOKEN];
	uint32_t nmachines;
	struct rig_rmt_machine *machines;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t refs; /* the program's, and one a proxy */
	uint32_t next_request, next_fetch;
	struct rig_rmt_opener *openers;
	atomic_bool over;            /* failed or closed; `reason` is written before */
	bool failed, forked;         /* forked: this is a child's copy, which is nobody's */
	bool failing;                /* its failure is being told: the engine of rails stays meanwhile */
	struct rig_remote_job *next; /* of the process's */
	char reason[RIG_RMT_REASON];
	pthread_t beats;
	bool beating;
	struct rig_rmt_rails *rails; /* rmt_rails.c's */
};

/* The first cause is kept. */
void rig_rmt_job_fail(struct rig_remote_job *job, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
static inline bool rig_rmt_job_over(const struct rig_remote_job *job)
{
	return atomic_load_explicit(&job->over, memory_order_acquire);
}
void rig_rmt_job_get(struct rig_remote_job *job);
void rig_rmt_job_put(struct rig_remote_job *job);

/* -ECONNABORTED with the reason. */
int rig_rmt_over_error(const struct rig_remote_job *job);

/* rmt_connect.c: with every machine, and those with each other; and the beats. What failed first is the
   error, in rig_error() too; what was made is the close's. */
int rig_rmt_connect_all(struct rig_remote_job *job);

/* rmt_reader.c: a machine's thread */
void *rig_rmt_reader_run(void *machine);

/* rmt_fork.c: a child of fork has no job. Listed jobs are over in it, their descriptors closed. */
int rig_rmt_fork_list(struct rig_remote_job *job);
void rig_rmt_fork_unlist(struct rig_remote_job *job);

#endif
