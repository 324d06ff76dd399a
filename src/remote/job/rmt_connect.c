/* SPDX-License-Identifier: MIT */
/*
 * The connections of a job: each machine is dialled, joined and asked for its clock, many at the same time;
 * then machines are linked with each other. Who has joined gets beats from then on, however long the others
 * take.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "rmt_job.h"
#include "rmt_request.h"
#include "thread.h"

enum {
	BEATS = 4,     /* in the time that an agent waits for one */
	PING_MS = 500, /* between two readings of a machine's clock */
	TICK_MS = 20,
	AT_ONCE = 64, /* machines that something is done for at the same time */
};

/* ---- Beats ---- */

static bool has_joined(struct rig_rmt_machine *m)
{
	bool joined;

	(void)pthread_mutex_lock(&m->lock);
	joined = m->chan != NULL;
	(void)pthread_mutex_unlock(&m->lock);
	return joined;
}

static void send_beat(struct rig_rmt_machine *m)
{
	rig_rmt_chan_try_send(m->chan, RIG_RMT_BEAT, NULL, 0);
}

/* For each that has joined, where it is time. */
static void tick(
        struct rig_remote_job *job, uint64_t *last, uint64_t every, void (*act)(struct rig_rmt_machine *))
{
	uint64_t now = rig_now_ns();
	uint32_t i;

	if (now - *last < every)
		return;
	*last = now;
	for (i = 0; i < job->nmachines; i++)
		if (has_joined(&job->machines[i]))
			act(&job->machines[i]);
}

static void *beat_run(void *arg)
{
	struct rig_remote_job *job = arg;
	const struct timespec nap = {.tv_nsec = TICK_MS * 1000000L};
	uint64_t beat = rig_now_ns(), ping = beat, every = job->options.silence_ms / BEATS * RIG_NS_PER_MS;

	while (!rig_rmt_job_over(job)) {
		(void)nanosleep(&nap, NULL);
		tick(job, &beat, every, send_beat);
		tick(job, &ping, PING_MS * RIG_NS_PER_MS, rig_rmt_clock_ping);
	}
	return NULL;
}

/* ---- For each machine ---- */

/* What is done for each machine, by several threads. The first failure is kept, and ends it. */
struct round {
	struct rig_remote_job *job;
	int (*act)(struct rig_rmt_machine *m, uint32_t step);
	uint32_t step;
	pthread_mutex_t lock;
	uint32_t next;
	int err;
	char why[RIG_RMT_REASON];
};

/* NULL: there is none left, or something failed. */
static struct rig_rmt_machine *next_machine(struct round *r)
{
	struct rig_rmt_machine *m = NULL;

	(void)pthread_mutex_lock(&r->lock);
	if (!r->err && r->next < r->job->nmachines)
		m = &r->job->machines[r->next++];
	(void)pthread_mutex_unlock(&r->lock);
	return m;
}

static void keep_failure(struct round *r, int err)
{
	(void)pthread_mutex_lock(&r->lock);
	if (!r->err) {
		r->err = err;
		(void)snprintf(r->why, sizeof(r->why), "%s", rig_error());
	}
	(void)pthread_mutex_unlock(&r->lock);
}

static void *round_run(void *round)
{
	struct round *r = round;
	struct rig_rmt_machine *m;

	while ((m = next_machine(r))) {
		int err = r->act(m, r->step);

		if (err)
			keep_failure(r, err);
	}
	return NULL;
}

/* This thread is one of those that do it: with no other it only takes longer. */
static int for_each(
        struct rig_remote_job *job, int (*act)(struct rig_rmt_machine *m, uint32_t step), uint32_t step)
{
	struct round r = {.job = job, .act = act, .step = step};
	pthread_t threads[AT_ONCE - 1];
	uint32_t n = 0, i;

	(void)pthread_mutex_init(&r.lock, NULL);
	while (n + 1 < job->nmachines && n < AT_ONCE - 1 &&
	        !rig_thread_start(&threads[n], RIG_THREAD_ANY, round_run, &r))
		n++;
	(void)round_run(&r);
	for (i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_mutex_destroy(&r.lock);
	return r.err ? rig_error_set(r.err, "%s", r.why) : 0;
}

/* ---- Connecting ---- */

static int join(const struct rig_rmt_machine *m, struct rig_rmt_chan *chan)
{
	struct rig_rmt_join j = {.role = RIG_RMT_CONTROLLER, .silence_ms = m->job->options.silence_ms};
	struct rig_rmt_out out = {0};
	int err;

	memcpy(j.token, m->job->token, sizeof(j.token));
	(void)snprintf(j.machine, sizeof(j.machine), "%" PRIu32, m->index);
	rig_rmt_join_put(&out, &j);
	err = out.bad ? -ENOMEM : rig_rmt_chan_send(chan, RIG_RMT_JOIN, out.at, out.used, NULL, 0);
	rig_rmt_out_free(&out);
	return err ? rig_error_set(err, "%s: it could not be joined: %s", m->name, strerror(-err)) : 0;
}

/* From here on others may send to it: JOIN is on its way. */
static int admit(struct rig_rmt_machine *m, struct rig_rmt_chan *chan)
{
	int err;

	(void)pthread_mutex_lock(&m->lock);
	m->chan = chan;
	(void)pthread_mutex_unlock(&m->lock);
	/* Who ended the job meanwhile did not see the connection, but the reader sees the end. */
	err = rig_thread_start(&m->reader, RIG_THREAD_ANY, rig_rmt_reader_run, m);
	m->reading = !err;
	return err ? rig_error_set(err, "no thread could be started for machine %s", m->name) : 0;
}

static int connect_one(struct rig_rmt_machine *m, uint32_t step)
{
	const struct rig_remote_options *o = &m->job->options;
	struct rig_rmt_chan *chan;
	int err = rig_rmt_chan_dial(m->name, m->job->key, o->step_ms, o->silence_ms, &chan);

	(void)step;
	if (err)
		return err;
	err = join(m, chan);
	if (err) {
		rig_rmt_chan_free(chan);
		return err;
	}
	err = admit(m, chan);
	return err ? err : rig_rmt_clock_measure(m);
}

static int link_one(struct rig_rmt_machine *from, const struct rig_rmt_machine *to)
{
	struct rig_rmt_out out = {0};
	char why[RIG_RMT_REASON];
	int err;

	rig_rmt_put32(&out, to->index);
	rig_rmt_put_text(&out, to->name);
	rig_rmt_put32(&out, from->job->options.step_ms);
	err = rig_rmt_request(from, RIG_RMT_LINK, &out, 0, NULL);
	rig_rmt_out_free(&out);
	if (!err)
		return 0;
	(void)snprintf(why, sizeof(why), "%s", rig_error());
	return rig_error_set(err, "machine %s cannot reach machine %s: %s", from->name, to->name, why);
}

/* Each machine dials the one so many places on, the last being followed by the first: in a round none is
   dialled twice, so that an agent is not taken by a crowd of strangers. */
static int link_on(struct rig_rmt_machine *m, uint32_t step)
{
	uint32_t n = m->job->nmachines;

	/* Opposite ones meet once. */
	if (2 * step == n && m->index >= step)
		return 0;
	return link_one(m, &m->job->machines[(m->index + step) % n]);
}

int rig_rmt_connect_all(struct rig_remote_job *job)
{
	uint32_t step;
	int err = rig_thread_start(&job->beats, RIG_THREAD_ANY, beat_run, job);

	job->beating = !err;
	if (err)
		return rig_error_set(err, "no thread could be started");
	err = for_each(job, connect_one, 0);
	for (step = 1; 2 * step <= job->nmachines && !err; step++)
		err = for_each(job, link_on, step);
	return err;
}
