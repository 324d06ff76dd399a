/* SPDX-License-Identifier: MIT */
/* The reader of a machine: it takes what the agent sends. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "rmt_job.h"
#include "rmt_rails.h"
#include "rmt_request.h"

static int take_answer(struct rig_rmt_machine *m, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_answer answer;
	struct rig_rmt_request *r;

	if (rig_rmt_answer_parse(&in, &answer) || answer.status > 0 || answer.status < RIG_FAULT)
		return -EPROTO;
	(void)pthread_mutex_lock(&m->lock);
	if (!rig_rmt_clock_answer(m, answer.request, in.at, in.left)) {
		for (r = m->requests; r && r->number != answer.request; r = r->next)
			;
		if (r && !r->done) {
			r->answer = answer;
			rig_rmt_put_bytes(&r->payload, in.at, in.left);
			r->done = true;
			(void)pthread_cond_broadcast(&m->answered);
		}
	}
	(void)pthread_mutex_unlock(&m->lock);
	return 0;
}

/* An agent says why it ended its part, and which other machine made it do so. */
static int take_failed(struct rig_rmt_machine *m, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	uint32_t machine = rig_rmt_get32(&in);
	char reason[RIG_RMT_REASON];

	rig_rmt_get_text(&in, reason, sizeof(reason));
	if (rig_rmt_in_end(&in))
		return -EPROTO;
	if (machine < m->job->nmachines && machine != m->index)
		rig_rmt_job_fail(m->job, "machine %s, as %s has it: %s", m->job->machines[machine].name,
		        m->name, reason);
	else
		rig_rmt_job_fail(m->job, "machine %s: %s", m->name, reason);
	return 0;
}

static int take_void(struct rig_rmt_machine *m, const uint8_t *bytes, size_t n)
{
	uint32_t number;
	int err = rig_rmt_number_parse(bytes, n, &number);

	if (!err)
		rig_rmt_parcel_void(m, number);
	return err;
}

static int take(struct rig_rmt_machine *m, uint8_t kind, const uint8_t *bytes, size_t n)
{
	switch (kind) {
	case RIG_RMT_BEAT:
		return 0;
	case RIG_RMT_ANSWER:
		return take_answer(m, bytes, n);
	case RIG_RMT_FAILED:
		return take_failed(m, bytes, n);
	case RIG_RMT_VOID:
		return take_void(m, bytes, n);
	case RIG_RMT_TICKET:
	case RIG_RMT_DATA:
	case RIG_RMT_REACHED:
	case RIG_RMT_LOST:
		return rig_rmt_devices_take(m, kind, bytes, n);
	default:
		return -EPROTO;
	}
}

void *rig_rmt_reader_run(void *machine)
{
	struct rig_rmt_machine *m = machine;
	const uint8_t *bytes;
	uint8_t kind = 0;
	size_t n;
	int err = 0, taken = 0;

	while (!err && !taken && !rig_rmt_job_over(m->job)) {
		err = rig_rmt_chan_recv(m->chan, &kind, &bytes, &n);
		if (!err)
			taken = take(m, kind, bytes, n);
	}
	if (err == -EPROTO || taken == -EPROTO)
		rig_rmt_job_fail(
		        m->job, "machine %s: malformed: it sent what is no message (kind %u)", m->name, kind);
	else if (taken)
		rig_rmt_job_fail(m->job, "machine %s: what it sent could not be taken here: %s", m->name,
		        strerror(-taken));
	else if (err)
		rig_rmt_connection_fail(m, err);
	return NULL;
}
