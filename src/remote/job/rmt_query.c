/* SPDX-License-Identifier: MIT */
/* What programs ask of a job: its machines, their clocks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rmt_job.h"
#include "rmt_request.h"

static int machine_of(struct rig_remote_job *job, uint32_t index, struct rig_rmt_machine **m)
{
	if (job && job->forked)
		return rig_rmt_over_error(job);
	if (!job || index >= job->nmachines)
		return rig_error_set(
		        -EINVAL, "machine %" PRIu32 " of %" PRIu32, index, job ? job->nmachines : 0);
	*m = &job->machines[index];
	return 0;
}

static int read_list(const struct rig_rmt_out *payload, struct rig_remote_listed *listed, uint32_t room,
        char version[RIG_RMT_AGENT_VERSION])
{
	struct rig_rmt_in in = rig_rmt_in_of(payload->at, payload->used);
	uint32_t n = rig_rmt_get32(&in), i;
	struct rig_remote_listed one;

	for (i = 0; i < n && !in.bad; i++) {
		rig_rmt_get_text(&in, one.name, sizeof(one.name));
		one.host = rig_rmt_get8(&in) == 1;
		one.busy = rig_rmt_get8(&in) == 1;
		if (i < room)
			listed[i] = one;
	}
	rig_rmt_get_text(&in, version, RIG_RMT_AGENT_VERSION);
	return rig_rmt_in_end(&in) || n > INT32_MAX ? -EPROTO : (int)n;
}

int rig_remote_list(
        struct rig_remote_job *job, uint32_t machine, struct rig_remote_listed *listed, uint32_t room)
{
	const struct rig_rmt_out none = {0};
	struct rig_rmt_out payload;
	struct rig_rmt_machine *m = NULL;
	char version[RIG_RMT_AGENT_VERSION];
	int err = machine_of(job, machine, &m);

	if (!err)
		err = rig_rmt_request(m, RIG_RMT_LIST, &none, 0, &payload);
	if (err)
		return err;
	err = read_list(&payload, listed, room, version);
	rig_rmt_out_free(&payload);
	if (err >= 0) {
		(void)pthread_mutex_lock(&m->lock);
		memcpy(m->version, version, sizeof(m->version));
		(void)pthread_mutex_unlock(&m->lock);
	}
	return err < 0 ? rig_error_set(err, "machine %s: malformed: a list", m->name) : err;
}

int rig_remote_agent_version(struct rig_remote_job *job, uint32_t machine, char *version, size_t bytes)
{
	struct rig_rmt_machine *m = NULL;
	int err = machine_of(job, machine, &m);

	if (err)
		return err;
	(void)pthread_mutex_lock(&m->lock);
	(void)snprintf(version, bytes, "%s", m->version);
	(void)pthread_mutex_unlock(&m->lock);
	return 0;
}

int rig_remote_clock(struct rig_remote_job *job, uint32_t machine, int64_t *ahead_ns, uint64_t *error_ns)
{
	struct rig_rmt_machine *m = NULL;
	struct rig_rmt_clock clock;
	int err = machine_of(job, machine, &m);

	if (err)
		return err;
	clock = rig_rmt_clock_now(m);
	*ahead_ns = clock.ahead;
	*error_ns = clock.error;
	return 0;
}

int rig_remote_stats(struct rig_remote_job *job, uint32_t machine, struct rig_remote_stats *stats)
{
	struct rig_rmt_machine *m = NULL;
	int err = machine_of(job, machine, &m);

	if (err)
		return err;
	rig_rmt_chan_counts(m->chan, &stats->sent, &stats->received);
	stats->round_trip_ns = rig_rmt_clock_now(m).round_trip;
	return 0;
}
