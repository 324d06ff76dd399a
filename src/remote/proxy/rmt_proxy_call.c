/* SPDX-License-Identifier: MIT */
/* A proxy and its agent: requests, messages, loss. */
#include <errno.h>
#include <stdio.h>

#include "rmt_proxy.h"

void rig_rmt_proxy_lose(struct proxy *p, const char *reason)
{
	(void)pthread_mutex_lock(&p->lock);
	if (!p->faulted) {
		(void)snprintf(p->reason, sizeof(p->reason), "%s", reason);
		p->faulted = true;
	}
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
}

bool rig_rmt_proxy_faulted(struct proxy *p)
{
	bool faulted;

	(void)pthread_mutex_lock(&p->lock);
	faulted = p->faulted;
	(void)pthread_mutex_unlock(&p->lock);
	return faulted;
}

int rig_rmt_proxy_fault(struct proxy *p, const char **fault)
{
	*fault = p->reason;
	return RIG_FAULT;
}

/* A request's failure: of the device or the job a fault, else the answer itself. */
int rig_rmt_proxy_judge(struct proxy *p, int err, const char **fault)
{
	bool over = err && rig_rmt_job_over(p->m->job);

	if (over)
		rig_rmt_proxy_lose(p, p->m->job->reason);
	else if (err == RIG_FAULT)
		rig_rmt_proxy_lose(p, rig_error());
	return over || err == RIG_FAULT ? rig_rmt_proxy_fault(p, fault) : err;
}

/* The request of a device: its number comes first. *payload is malloc's. */
int rig_rmt_proxy_ask(struct proxy *p, uint8_t kind, const struct rig_rmt_out *body,
        struct rig_rmt_out *payload, const char **fault)
{
	struct rig_rmt_out out = {.bad = body->bad};
	int err;

	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	rig_rmt_put32(&out, p->id);
	rig_rmt_put_bytes(&out, body->at, body->used);
	err = rig_rmt_request(p->m, kind, &out, 0, payload);
	rig_rmt_out_free(&out);
	return rig_rmt_proxy_judge(p, err, fault);
}

int rig_rmt_proxy_malformed(struct proxy *p, const char **fault)
{
	rig_rmt_job_fail(p->m->job, "machine %s: malformed: an answer", p->m->name);
	rig_rmt_proxy_lose(p, p->m->job->reason);
	return rig_rmt_proxy_fault(p, fault);
}

/* A message without an answer. */
void rig_rmt_proxy_tell(struct proxy *p, uint8_t kind, uint32_t number)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, p->id);
	rig_rmt_put32(&out, number);
	(void)rig_rmt_send(p->m, kind, &out, NULL, 0);
	rig_rmt_out_free(&out);
}
