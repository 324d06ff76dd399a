/* SPDX-License-Identifier: MIT */
/* Messages to a machine, with and without an answer. Not for a machine's reader, which sends nothing. */
#ifndef RMT_REQUEST_H
#define RMT_REQUEST_H

#include "rmt_frames.h"

struct rig_remote_job;
struct rig_rmt_machine;

/* One that waits; the reader puts the answer down, with the machine's lock. */
struct rig_rmt_request {
	struct rig_rmt_request *next;
	uint32_t number;
	bool done;
	struct rig_rmt_answer answer;
	struct rig_rmt_out payload;
};

/* The job fails by what its connection to the machine answered. */
void rig_rmt_connection_fail(struct rig_rmt_machine *m, int err);
/* Sends; a failure is the job's. -ECONNABORTED: the job is over. */
int rig_rmt_send(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_out *out, const void *body,
        size_t bytes);
/*
 * Sends a request, `out` without its number, and waits for the answer. `answer_ms` 0: the job's. The answer's
 * status, with its text in rig_error(), or -ECONNABORTED: the job is over, with its reason. *payload (if not
 * NULL) is the caller's to free.
 */
int rig_rmt_request(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_out *out,
        unsigned answer_ms, struct rig_rmt_out *payload);
uint32_t rig_rmt_next_fetch(struct rig_remote_job *job);

#endif
