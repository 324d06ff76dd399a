/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "cond.h"
#include "rmt_job.h"
#include "rmt_rails.h"

enum { LEAST_SILENCE_MS = 50 };

/* ---- Failure ---- */

static void tell_devices(struct rig_remote_job *job)
{
	uint32_t m;

	for (m = 0; m < job->nmachines; m++)
		rig_rmt_devices_lose(&job->machines[m], job->reason);
}

/* Agents are told why, where that needs no waiting; the connection's end tells the rest. */
static void tell_agents(struct rig_remote_job *job, uint8_t kind)
{
	struct rig_rmt_out out = {0};
	uint32_t m;

	if (kind == RIG_RMT_FAILED) {
		rig_rmt_put32(&out, RIG_RMT_HERE_PEER);
		rig_rmt_put_text(&out, job->reason);
	}
	for (m = 0; m < job->nmachines; m++) {
		struct rig_rmt_chan *chan;

		/* Others may still be joining. */
		(void)pthread_mutex_lock(&job->machines[m].lock);
		chan = job->machines[m].chan;
		(void)pthread_mutex_unlock(&job->machines[m].lock);
		if (!chan)
			continue;
		if (!out.bad)
			rig_rmt_chan_try_send(chan, kind, out.at, out.used);
		rig_rmt_chan_shut(chan);
	}
	rig_rmt_out_free(&out);
}

/* Whether this is the first end of it. */
static bool end_job(struct rig_remote_job *job, bool failed, const char *format, va_list args)
{
	bool first;

	(void)pthread_mutex_lock(&job->lock);
	first = !rig_rmt_job_over(job);
	if (first) {
		(void)vsnprintf(job->reason, sizeof(job->reason), format, args);
		job->failed = job->failing = failed;
		atomic_store_explicit(&job->over, true, memory_order_release);
		(void)pthread_cond_broadcast(&job->changed);
	}
	(void)pthread_mutex_unlock(&job->lock);
	return first;
}

void rig_rmt_job_fail(struct rig_remote_job *job, const char *format, ...)
{
	va_list args;
	bool first;

	va_start(args, format);
	first = end_job(job, true, format, args);
	va_end(args);
	if (!first)
		return;
	/* First who would otherwise take the end of a data connection for the cause; it blocks on nothing. */
	tell_agents(job, RIG_RMT_FAILED);
	rig_rmt_rails_fail(job, job->reason);
	tell_devices(job);
	/* This may be a proxy's thread, for which its device's stop would wait: none is stopped in it. */
	rig_locks_add(1);
	if (job->options.failed)
		job->options.failed(job->options.arg, job->reason);
	rig_locks_add(-1);
	(void)pthread_mutex_lock(&job->lock);
	job->failing = false;
	(void)pthread_cond_broadcast(&job->changed);
	(void)pthread_mutex_unlock(&job->lock);
}

/* Who fails the job may be a program's thread or a proxy's, which no join waits for. */
static void await_telling(struct rig_remote_job *job)
{
	(void)pthread_mutex_lock(&job->lock);
	while (job->failing)
		(void)pthread_cond_wait(&job->changed, &job->lock);
	(void)pthread_mutex_unlock(&job->lock);
}

bool rig_remote_failed(struct rig_remote_job *job, const char **why)
{
	bool failed;

	if (job->forked)
		return false;
	(void)pthread_mutex_lock(&job->lock);
	failed = job->failed;
	(void)pthread_mutex_unlock(&job->lock);
	if (failed && why)
		*why = job->reason;
	return failed;
}

int rig_rmt_over_error(const struct rig_remote_job *job)
{
	return rig_error_set(-ECONNABORTED, "%s", job->reason);
}
/* ---- Life ---- */

static void free_job(struct rig_remote_job *job)
{
	uint32_t i;

	for (i = 0; i < job->nmachines; i++) {
		rig_rmt_chan_free(job->machines[i].chan);
		rig_rmt_devices_free(&job->machines[i]);
		(void)pthread_cond_destroy(&job->machines[i].answered);
		(void)pthread_mutex_destroy(&job->machines[i].lock);
	}
	while (job->openers) {
		struct rig_rmt_opener *o = job->openers;

		job->openers = o->next;
		free(o);
	}
	rig_rmt_rails_free(job);
	(void)pthread_cond_destroy(&job->changed);
	(void)pthread_mutex_destroy(&job->lock);
	free(job->machines);
	rig_rmt_key_free(job->key);
	sodium_memzero(job, sizeof(*job));
	free(job);
}

void rig_rmt_job_get(struct rig_remote_job *job)
{
	(void)pthread_mutex_lock(&job->lock);
	job->refs++;
	(void)pthread_mutex_unlock(&job->lock);
}

void rig_rmt_job_put(struct rig_remote_job *job)
{
	bool last;

	(void)pthread_mutex_lock(&job->lock);
	last = --job->refs == 0;
	(void)pthread_mutex_unlock(&job->lock);
	if (last)
		free_job(job);
}

/* The threads end with the connections. */
static void join_threads(struct rig_remote_job *job)
{
	uint32_t i;

	for (i = 0; i < job->nmachines; i++)
		if (job->machines[i].reading)
			(void)pthread_join(job->machines[i].reader, NULL);
	if (job->beating)
		(void)pthread_join(job->beats, NULL);
}

static void close_with(struct rig_remote_job *job, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
static void close_with(struct rig_remote_job *job, const char *format, ...)
{
	va_list args;
	bool first;

	va_start(args, format);
	first = end_job(job, false, format, args);
	va_end(args);
	if (first) {
		tell_devices(job);
		tell_agents(job, RIG_RMT_CLOSE);
	}
	join_threads(job);
}

void rig_remote_close(struct rig_remote_job *job)
{
	/* A child's copy is left as it is: its threads and locks are the parent's. */
	if (!job || job->forked)
		return;
	rig_rmt_rails_close(job);
	close_with(job, "the job was closed");
	await_telling(job);
	rig_rmt_rails_end(job);
	rig_rmt_fork_unlist(job);
	rig_rmt_job_put(job);
}

static int check(const char *const *machines, uint32_t n, const struct rig_remote_options *options)
{
	char host[RIG_RMT_HOST], port[RIG_RMT_PORT];
	uint32_t i, k;

	if (!machines || !n || n > RIG_RMT_MACHINES)
		return rig_error_set(-EINVAL, "machines: 1 to %d", RIG_RMT_MACHINES);
	if (options && options->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL, "options of version %" PRIu32 ", the library is of %u",
		        options->version, RIG_EDGE_VERSION);
	if (options && options->silence_ms && options->silence_ms < LEAST_SILENCE_MS)
		return rig_error_set(-EINVAL, "silence_ms is %" PRIu32 ", below %d", options->silence_ms,
		        LEAST_SILENCE_MS);
	for (i = 0; i < n; i++) {
		if (!machines[i] || strlen(machines[i]) >= RIG_RMT_NAME ||
		        rig_rmt_split_name(machines[i], host, sizeof(host), port, sizeof(port)))
			return rig_error_set(-EINVAL,
			        "machine %" PRIu32 ": \"%s\" is no HOST:PORT with a port up to 65535", i,
			        machines[i] ? machines[i] : "");
		for (k = 0; k < i; k++)
			if (!strcmp(machines[i], machines[k]))
				return rig_error_set(-EINVAL, "machine %s is named twice", machines[i]);
	}
	return 0;
}

static void set_options(struct rig_remote_job *job, const struct rig_remote_options *options)
{
	struct rig_remote_options *o = &job->options;

	if (options)
		*o = *options;
	o->step_ms = o->step_ms ? o->step_ms : RIG_RMT_DIAL_MS;
	o->silence_ms = o->silence_ms ? o->silence_ms : RIG_RMT_SILENCE_MS;
	o->answer_ms = o->answer_ms ? o->answer_ms : RIG_RMT_ANSWER_MS;
}

static void init_machine(struct rig_remote_job *job, uint32_t index, const char *name)
{
	struct rig_rmt_machine *m = &job->machines[index];

	m->job = job;
	m->index = index;
	(void)snprintf(m->name, sizeof(m->name), "%s", name);
	(void)pthread_mutex_init(&m->lock, NULL);
	rig_cond_init(&m->answered);
}

static struct rig_remote_job *make_job(
        const char *const *machines, uint32_t n, const struct rig_remote_options *options)
{
	struct rig_remote_job *job = calloc(1, sizeof(*job));
	uint32_t i;

	if (!job)
		return NULL;
	job->machines = calloc(n, sizeof(*job->machines));
	if (!job->machines) {
		free(job);
		return NULL;
	}
	set_options(job, options);
	job->nmachines = n;
	job->refs = 1;
	job->next_request = job->next_fetch = 1;
	(void)pthread_mutex_init(&job->lock, NULL);
	rig_cond_init(&job->changed);
	for (i = 0; i < n; i++)
		init_machine(job, i, machines[i]);
	return job;
}

/* What fails leaves the rest to the close. */
static int begin(struct rig_remote_job *job, const char *key_file)
{
	int err = rig_rmt_rails_open(job);

	randombytes_buf(job->token, sizeof(job->token));
	if (!err)
		err = rig_rmt_fork_list(job);
	if (!err)
		job->key = rig_rmt_key_alloc();
	if (!err && !job->key)
		err = rig_error_set(-ENOMEM, "no host memory for a key");
	if (!err)
		err = rig_rmt_key_read(key_file, job->key);
	return err ? err : rig_rmt_connect_all(job);
}

int rig_remote_connect(const char *const *machines, uint32_t n, const char *key_file,
        const struct rig_remote_options *options, struct rig_remote_job **job)
{
	struct rig_remote_job *made;
	char why[RIG_RMT_REASON];
	int err = check(machines, n, options);

	if (err)
		return err;
	if (sodium_init() < 0)
		return rig_error_set(-ENOSYS, "the system gives no random numbers");
	made = make_job(machines, n, options);
	if (!made)
		return rig_error_set(-ENOMEM, "no host memory for a job");
	err = begin(made, key_file);
	if (!err) {
		*job = made;
		return 0;
	}
	(void)snprintf(why, sizeof(why), "%s", rig_error());
	rig_remote_close(made);
	return rig_error_set(err, "%s", why);
}

int rig_remote_make_key(const char *path)
{
	return rig_rmt_key_make(path);
}
