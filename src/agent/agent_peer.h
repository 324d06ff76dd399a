/* SPDX-License-Identifier: MIT */
/* Connections to the other agents of a job, and what devices here fetch from devices there, by messages. */
#ifndef AGENT_PEER_H
#define AGENT_PEER_H

#include "rmt_chan.h"
#include "rmt_frames.h"
#include "rmt_post.h"

struct agent;
struct device;
struct session;

/* Bytes from another device, for a copy that waits for them. */
struct fetch {
	struct fetch *next;
	uint32_t id;
	uint64_t bytes, got;
	uint8_t *data;
	bool failed;   /* the bytes do not come; `data` says why */
	bool unwanted; /* nobody waits: it goes once all of it, or a reason, has come */
};

struct peer {
	struct session *session;
	uint32_t machine;
	bool came; /* it dialled this agent, and is told that it is let in */
	struct rig_rmt_chan *chan;
	struct rig_rmt_post post; /* refusals: a reader's, too */
	pthread_t thread, beat;
};

/* Puts arriving bytes down; 0 or -EPROTO, -ENOMEM. */
int fetch_put(struct session *s, const uint8_t *bytes, size_t n);
int fetch_add(struct session *s, uint32_t id, uint64_t all, uint64_t at, const uint8_t *bytes, size_t n);
/* Waits for all of a fetch and copies it to `to`; -ECANCELED: the device is ending, and nobody waits for it
   any more; -EREMOTEIO: its source is lost. */
int fetch_take(struct device *d, uint32_t id, uint8_t *to, uint64_t bytes);
void fetch_drop_all(struct session *s);
/* Sends bytes of a fetch to their agent. */
int fetch_send(struct session *s, uint32_t machine, uint32_t id, const uint8_t *bytes, uint64_t n);
/* Says that they do not come. */
void fetch_refuse(struct session *s, uint32_t machine, uint32_t id, const char *why);
/* Nobody waits for it any more. */
void fetch_forget(struct session *s, uint32_t id);
/* What came by messages: `failed`, with the reason, or, of a malformed peer, all bytes. NULL: neither did. To
   free by fetch_free. With the session's lock. */
struct fetch *fetch_ended(struct session *s, uint32_t id);
void fetch_free(struct fetch *f);
/* To another agent; nothing where there is no connection. */
void peer_send(struct session *s, uint32_t machine, uint8_t kind, const struct rig_rmt_out *out);
/* LINK messages: 0 or a negative errno with rig_error(). */
int peer_link(struct session *s, struct rig_rmt_in *in);
/* Serves a connection of another agent's, or says why not; takes the channel. */
void peer_serve(struct agent *agent, struct rig_rmt_chan *chan, const struct rig_rmt_join *join);
/* Breaks the connections; and, once no device sends any more, frees them. */
void peers_end(struct session *s);
void peers_free(struct session *s);

#endif
