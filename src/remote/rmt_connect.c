/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "rmt_job.h"
#include "thread.h"

enum {
	BEATS = 4,     /* in the time that an agent waits for one */
	PING_MS = 500, /* between two readings of a machine's clock */
	TICK_MS = 20,
};

static void *beat_run(void *arg)
{
	struct rig_remote_job *job = arg;
	const struct timespec nap = {.tv_nsec = TICK_MS * 1000000L};
	uint64_t beat = rig_now_ns(), ping = beat, every = job->options.silence_ms / BEATS * RIG_NS_PER_MS;
	uint32_t m;

	while (!rig_rmt_job_over(job)) {
		uint64_t now;

		(void)nanosleep(&nap, NULL);
		now = rig_now_ns();
		for (m = 0; m < job->nmachines && now - beat >= every; m++)
			rig_rmt_chan_try_send(job->machines[m].chan, RIG_RMT_BEAT, NULL, 0);
		for (m = 0; m < job->nmachines && now - ping >= PING_MS * RIG_NS_PER_MS; m++)
			rig_rmt_clock_ping(&job->machines[m]);
		if (now - beat >= every)
			beat = now;
		if (now - ping >= PING_MS * RIG_NS_PER_MS)
			ping = now;
	}
	return NULL;
}

/* ---- Connecting ---- */

static int join(struct rig_rmt_machine *m)
{
	struct rig_rmt_join j = {.role = RIG_RMT_CONTROLLER, .silence_ms = m->job->options.silence_ms};
	struct rig_rmt_out out = {0};
	int err;

	memcpy(j.token, m->job->token, sizeof(j.token));
	(void)snprintf(j.machine, sizeof(j.machine), "%" PRIu32, m->index);
	rig_rmt_join_put(&out, &j);
	err = rig_rmt_send(m, RIG_RMT_JOIN, &out, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

static int connect_one(struct rig_rmt_machine *m)
{
	struct rig_remote_job *job = m->job;
	int err = rig_rmt_chan_dial(
	        m->name, &job->key, job->options.step_ms, job->options.silence_ms, &m->chan);

	if (!err)
		err = join(m);
	if (!err) {
		err = rig_thread_start(&m->reader, RIG_THREAD_ANY, rig_rmt_reader_run, m);
		m->reading = !err;
	}
	return err ? err : rig_rmt_clock_measure(m);
}

/* Each machine dials those after it. */
static int link_one(struct rig_rmt_machine *from, const struct rig_rmt_machine *to)
{
	struct rig_rmt_out out = {0};
	char why[RIG_RMT_REASON];
	int err;

	rig_rmt_put32(&out, to->index);
	rig_rmt_put_text(&out, to->name);
	err = rig_rmt_request(from, RIG_RMT_LINK, &out, 0, NULL);
	rig_rmt_out_free(&out);
	if (!err)
		return 0;
	(void)snprintf(why, sizeof(why), "%s", rig_error());
	return rig_error_set(err, "machine %s cannot reach machine %s: %s", from->name, to->name, why);
}

int rig_rmt_connect_all(struct rig_remote_job *job)
{
	uint32_t i, k;
	int err = 0;

	for (i = 0; i < job->nmachines && !err; i++)
		err = connect_one(&job->machines[i]);
	for (i = 0; i < job->nmachines && !err; i++)
		for (k = i + 1; k < job->nmachines && !err; k++)
			err = link_one(&job->machines[i], &job->machines[k]);
	if (!err) {
		err = rig_thread_start(&job->beats, RIG_THREAD_ANY, beat_run, job);
		job->beating = !err;
	}
	return err;
}
