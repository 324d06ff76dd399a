/* SPDX-License-Identifier: MIT */
/*
 * A rail's transfers as they come: more than a message holds are sent in several, MORE before the MAKE that
 * has the last. One rail at a time is drafted: another's begins anew.
 */
#ifndef RMT_DRAFT_H
#define RMT_DRAFT_H

#include "rmt_frames.h"

/* Zeroed: empty. One direction's. */
struct rig_rmt_draft_list {
	struct rig_remote_transfer *at; /* malloc's */
	size_t n, size;
};

struct rig_rmt_draft {
	uint64_t rail;
	struct rig_rmt_draft_list send, receive;
};

/* Appends the message's transfers. -E2BIG: more than a rail may have; -ENOMEM. Then it is as before. */
int rig_rmt_draft_add(struct rig_rmt_draft *draft, const struct rig_rmt_rail *rail);
void rig_rmt_draft_drop(struct rig_rmt_draft *draft);

#endif
