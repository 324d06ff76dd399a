/* SPDX-License-Identifier: MIT */
/* This machine's part of a job's rails: links, ends, and steps on them. */
#ifndef AGENT_RAILS_H
#define AGENT_RAILS_H

#include "rail.h"
#include "rmt_frames.h"

struct device;
struct session;

/* The link to that machine, or to the controller (RIG_RMT_HERE_PEER), until rails_free; NULL: none. */
struct rig_rail_link *rails_link_to(struct session *s, uint32_t machine);
int rails_request(struct session *s, struct rig_rmt_in *in, struct rig_rmt_out *out);
/* This machine's end of the rail with a reference, or NULL. */
const struct rig_remote_end *rails_end_of(struct session *s, uint64_t rail);
/* Gives up ends whose other side has ended. The control thread's. */
void rails_sweep(struct session *s);
/* Waits until the end's count is there; -ECANCELED. */
int rails_await(struct device *d, const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c);
/* A step of rig_remote_step: -ENOENT; -ECANCELED: the device is ending. */
int rails_step(struct device *d, const uint32_t *words); /* RIG_REMOTE_STEP_WORDS of them */
void rails_fail(struct session *s, const char *why);
/* Stops them, with which parcels end; and frees the rest once no device uses it. */
void rails_end(struct session *s);
void rails_free(struct session *s);

#endif
