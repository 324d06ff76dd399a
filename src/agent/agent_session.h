/* SPDX-License-Identifier: MIT */
/*
 * A session is one controller's connection: the part of a job that this machine has. It ends with the
 * connection, and with it its devices, which are stopped and whose memory is given back; then the names are
 * free for the next session.
 */
#ifndef AGENT_SESSION_H
#define AGENT_SESSION_H

#include <stdatomic.h>

#include "agent_queue.h"
#include "rmt_chan.h"
#include "rmt_frames.h"
#include "rmt_post.h"

enum {
	AGENT_DEVICES = 64,   /* that an agent serves, and that a session opens over its life */
	AGENT_MACHINES = 256, /* of a job */
};

struct agent;
struct claim;
struct device;
struct fetch;
struct peer;
struct rails; /* agent_rails.c's */

struct session {
	struct agent *agent;
	struct session *next;
	struct rig_rmt_chan *chan;
	struct rig_rmt_post post; /* the reader's messages */
	struct rig_rmt_join join;
	pthread_t thread;
	pthread_t control_thread, beat_thread;
	struct queue control;
	struct device *devices[AGENT_DEVICES];
	uint32_t ndevices, nhalted;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct fetch *fetches;
	struct claim *claims;
	uint32_t nclaims;
	struct peer *peers;
	uint32_t npeers;
	atomic_bool ended;
	char reason[RIG_RMT_REASON]; /* why the job failed; written once, under lock */
	_Atomic uint64_t failed_at;  /* by rig_now_ns, once the controller was told; 0: it was not */
	struct rails *rails;
};

/* A new thread's function: serves the connection on `fd` until it ends. */
struct served_socket {
	struct agent *agent;
	int fd;
	uint64_t stranger; /* its number, until the proof is done */
};
void *session_run(void *served_socket);
int session_answer(
        struct session *s, uint32_t request, int status, const char *text, const void *payload, size_t bytes);
int session_send(
        struct session *s, uint8_t kind, const struct rig_rmt_out *out, const void *body, size_t bytes);
/* Whatever other threads wait for, who is at the channel's other end sees that the agent lives, until the
   session ends. By a thread of the channel's. */
void session_beat(struct session *s, struct rig_rmt_chan *chan);
/* Why the job failed, for as long as the session is there; NULL: it has not. */
static inline const char *session_reason(struct session *s)
{
	bool has;

	(void)pthread_mutex_lock(&s->lock);
	has = s->reason[0];
	(void)pthread_mutex_unlock(&s->lock);
	return has ? s->reason : NULL;
}
/* A device is stopped: returns once all of the ending session are. */
void session_await_halts(struct session *s);
/* The job failed here; the first reason is told. */
void session_fail(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same without waiting for a controller that takes no bytes: its connection ends. */
void session_fail_now(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, because of another machine of the job. */
void session_fail_for(struct session *s, uint32_t machine, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* The device of that number, or NULL. */
struct device *session_device(struct session *s, uint32_t id);

#endif
