/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "rmt_job.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rig_remote_job *jobs;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered;

static void before(void)
{
	(void)pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	(void)pthread_mutex_unlock(&lock);
}

/* Other locks may be held by threads that the child does not have, so it takes none. */
static void in_child(void)
{
	struct rig_remote_job *job;
	uint32_t i;

	for (job = jobs; job; job = job->next) {
		job->forked = true;
		if (!rig_rmt_job_over(job))
			(void)snprintf(job->reason, sizeof(job->reason), "the process is a child of fork");
		atomic_store_explicit(&job->over, true, memory_order_release);
		for (i = 0; i < job->nmachines; i++)
			if (job->machines[i].chan)
				rig_rmt_chan_disown(job->machines[i].chan);
	}
	jobs = NULL;
	(void)pthread_mutex_init(&lock, NULL);
}

static void register_handlers(void)
{
	registered = pthread_atfork(before, in_parent, in_child);
}

int rig_rmt_fork_list(struct rig_remote_job *job)
{
	(void)pthread_once(&once, register_handlers);
	if (registered)
		return rig_error_set(-registered, "no handlers of fork");
	(void)pthread_mutex_lock(&lock);
	job->next = jobs;
	jobs = job;
	(void)pthread_mutex_unlock(&lock);
	return 0;
}

void rig_rmt_fork_unlist(struct rig_remote_job *job)
{
	struct rig_remote_job **at;

	(void)pthread_mutex_lock(&lock);
	for (at = &jobs; *at && *at != job; at = &(*at)->next)
		;
	if (*at)
		*at = job->next;
	(void)pthread_mutex_unlock(&lock);
}
