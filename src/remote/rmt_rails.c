/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "rmt_job.h"

static int make_rail(void *self, const struct rig_remote_host *peer, const struct rig_remote_transfer *send,
        size_t nsend, const struct rig_remote_transfer *receive, size_t nreceive,
        const struct rig_remote_rail **rail)
{
	struct rig_rmt_machine *m = self;
	int err = rig_remote_check_transfers(send, nsend, receive, nreceive);

	(void)rail;
	if (peer && peer->self == self)
		return rig_error_set(-EINVAL, "a rail from %s to itself", m->name);
	return err ? err : rig_error_set(-ENOTSUP, "no rails yet");
}

static size_t threads(void *self, uint64_t program, int64_t *most, size_t room)
{
	(void)self;
	(void)program;
	(void)most;
	(void)room;
	return 0;
}

void rig_rmt_rails_host(struct rig_rmt_machine *m, struct rig_remote_host *host)
{
	host->machine = m->name;
	host->self = m;
	host->rail = make_rail;
	host->threads = threads;
}

int rig_rmt_rails_open(struct rig_remote_job *job)
{
	(void)job;
	return 0;
}

void rig_rmt_rails_fail(struct rig_remote_job *job, const char *why)
{
	(void)job;
	(void)why;
}

void rig_rmt_rails_close(struct rig_remote_job *job)
{
	(void)job;
}
