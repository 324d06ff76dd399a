/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cond.h"
#include "rmt_job.h"
#include "rmt_request.h"

void rig_rmt_connection_fail(struct rig_rmt_machine *m, int err)
{
	char text[RIG_RMT_REASON / 2];

	rig_rmt_chan_end_text(err, m->job->options.silence_ms, text, sizeof(text));
	rig_rmt_job_fail(m->job, "machine %s: %s", m->name, text);
}

int rig_rmt_send(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_out *out, const void *body,
        size_t bytes)
{
	int err;

	if (rig_rmt_job_over(m->job))
		return rig_rmt_over_error(m->job);
	if (out->bad)
		return rig_error_set(-ENOMEM, "no host memory for a message");
	err = rig_rmt_chan_send(m->chan, kind, out->at, out->used, body, bytes);
	if (!err)
		return 0;
	if (err == -EMSGSIZE)
		return rig_error_set(
		        err, "a message of %zu bytes exceeds what one carries", out->used + bytes);
	rig_rmt_connection_fail(m, err);
	return rig_rmt_over_error(m->job);
}

static void enlist(struct rig_rmt_machine *m, struct rig_rmt_request *r)
{
	(void)pthread_mutex_lock(&m->job->lock);
	r->number = m->job->next_request++;
	(void)pthread_mutex_unlock(&m->job->lock);
	(void)pthread_mutex_lock(&m->lock);
	r->next = m->requests;
	m->requests = r;
	(void)pthread_mutex_unlock(&m->lock);
}

/* With the lock. */
static void delist(struct rig_rmt_machine *m, struct rig_rmt_request *r)
{
	struct rig_rmt_request **at;

	for (at = &m->requests; *at && *at != r; at = &(*at)->next)
		;
	if (*at)
		*at = r->next;
}

/* Answers whether the answer came. */
static bool await_answer(struct rig_rmt_machine *m, struct rig_rmt_request *r, unsigned ms)
{
	struct timespec end = rig_cond_end_ms(ms);
	int err = 0;

	(void)pthread_mutex_lock(&m->lock);
	while (!r->done && !rig_rmt_job_over(m->job) && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&m->answered, &m->lock, &end);
	delist(m, r);
	(void)pthread_mutex_unlock(&m->lock);
	return r->done;
}

static int send_request(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_request *r,
        const struct rig_rmt_out *out)
{
	struct rig_rmt_out head = {.bad = out->bad};
	int err;

	rig_rmt_put32(&head, r->number);
	err = rig_rmt_send(m, kind, &head, out->at, out->used);
	rig_rmt_out_free(&head);
	return err;
}

int rig_rmt_request(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_out *out,
        unsigned answer_ms, struct rig_rmt_out *payload)
{
	struct rig_rmt_request r = {0};
	unsigned ms = answer_ms ? answer_ms : m->job->options.answer_ms;
	bool came = false;
	int err;

	enlist(m, &r);
	err = send_request(m, kind, &r, out);
	came = await_answer(m, &r, err ? 0 : ms);
	if (!err && !came) {
		if (!rig_rmt_job_over(m->job))
			rig_rmt_job_fail(m->job, "machine %s gave no answer within %u ms", m->name, ms);
		err = rig_rmt_over_error(m->job);
	}
	if (!err && r.answer.status)
		err = rig_error_set(
		        r.answer.status, "%s", *r.answer.text ? r.answer.text : strerror(-r.answer.status));
	if (!err && r.payload.bad)
		err = rig_error_set(-ENOMEM, "no host memory for an answer");
	if (!err && payload)
		*payload = r.payload;
	else
		rig_rmt_out_free(&r.payload);
	return err;
}

uint32_t rig_rmt_next_fetch(struct rig_remote_job *job)
{
	uint32_t next;

	(void)pthread_mutex_lock(&job->lock);
	next = job->next_fetch++;
	(void)pthread_mutex_unlock(&job->lock);
	return next;
}
