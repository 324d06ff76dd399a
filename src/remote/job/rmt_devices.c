/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rmt_job.h"

void rig_rmt_devices_add(struct rig_rmt_machine *m, uint32_t id, struct rig_rmt_device *d)
{
	(void)pthread_mutex_lock(&m->lock);
	m->devices[id] = d;
	if (m->losses[id])
		d->lose(d, m->losses[id]);
	/* Who failed the job meanwhile did not find it. */
	if (rig_rmt_job_over(m->job))
		d->lose(d, m->job->reason);
	(void)pthread_mutex_unlock(&m->lock);
}

void rig_rmt_devices_remove(struct rig_rmt_machine *m, uint32_t id, const struct rig_rmt_device *d)
{
	(void)pthread_mutex_lock(&m->lock);
	if (m->devices[id] == d)
		m->devices[id] = NULL;
	(void)pthread_mutex_unlock(&m->lock);
}

/* With the lock. A device may be lost before it is in the table, even before its open is answered. */
static int take_lost(struct rig_rmt_machine *m, uint32_t id, struct rig_rmt_in *in)
{
	char reason[RIG_RMT_REASON];

	rig_rmt_get_text(in, reason, sizeof(reason));
	if (rig_rmt_in_end(in))
		return -EPROTO;
	if (m->devices[id]) {
		m->devices[id]->lose(m->devices[id], reason);
		return 0;
	}
	if (!m->losses[id])
		m->losses[id] = strdup(reason);
	return m->losses[id] ? 0 : -ENOMEM;
}

int rig_rmt_devices_take(struct rig_rmt_machine *m, uint8_t kind, const uint8_t *payload, size_t bytes)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload, bytes);
	uint32_t id = rig_rmt_get32(&in);
	int err = 0;

	if (in.bad || id >= RIG_RMT_DEVICES)
		return -EPROTO;
	(void)pthread_mutex_lock(&m->lock);
	if (kind == RIG_RMT_LOST)
		err = take_lost(m, id, &in);
	else if (m->devices[id])
		err = m->devices[id]->take(m->devices[id], kind, payload, bytes);
	(void)pthread_mutex_unlock(&m->lock);
	return err;
}

void rig_rmt_devices_lose(struct rig_rmt_machine *m, const char *reason)
{
	uint32_t i;

	(void)pthread_mutex_lock(&m->lock);
	(void)pthread_cond_broadcast(&m->answered);
	for (i = 0; i < RIG_RMT_DEVICES; i++)
		if (m->devices[i])
			m->devices[i]->lose(m->devices[i], reason);
	(void)pthread_mutex_unlock(&m->lock);
}

void rig_rmt_devices_free(struct rig_rmt_machine *m)
{
	uint32_t i;

	for (i = 0; i < RIG_RMT_DEVICES; i++)
		free(m->losses[i]);
}
