/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "agent.h"

int rails_request(struct session *s, uint8_t kind, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	(void)s;
	(void)kind;
	(void)in;
	(void)out;
	return rig_error_set(-ENOTSUP, "this agent carries no rails");
}

void rails_fail(struct session *s, const char *why)
{
	(void)s;
	(void)why;
}

void rails_end(struct session *s)
{
	(void)s;
}
