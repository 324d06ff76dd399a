/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent.h"
#include "agent_device.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "agent_session.h"
#include "clock.h"
#include "thread.h"

enum { MOST_DIAL_MS = 600000 }; /* whatever a controller allows */

/* ---- Fetches ---- */

/* With the lock. */
static struct fetch **find(struct session *s, uint32_t id)
{
	struct fetch **at;

	for (at = &s->fetches; *at && (*at)->id != id; at = &(*at)->next)
		;
	return at;
}

/* With the lock. NULL: no memory. */
static struct fetch *make(struct session *s, uint32_t id)
{
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->id = id;
	f->next = s->fetches;
	s->fetches = f;
	return f;
}

/* With the lock. */
static void drop_fetch(struct session *s, struct fetch *f)
{
	*find(s, f->id) = f->next;
	fetch_free(f);
}

/* With the lock. NULL: no memory, or not the size that was said before. */
static struct fetch *find_fetch(struct session *s, uint32_t id, uint64_t all)
{
	struct fetch *f = *find(s, id);

	if (all > RIG_RMT_LOCAL_BYTES || !all)
		return NULL;
	if (f && f->unwanted && !f->got)
		f->bytes = all;
	if (f)
		return f->bytes == all ? f : NULL;
	f = make(s, id);
	if (!f)
		return NULL;
	f->data = malloc(all);
	if (!f->data) {
		drop_fetch(s, f);
		return NULL;
	}
	f->bytes = all;
	return f;
}

int fetch_add(struct session *s, uint32_t id, uint64_t all, uint64_t at, const uint8_t *bytes, size_t n)
{
	struct fetch *f;
	int err = 0;

	(void)pthread_mutex_lock(&s->lock);
	f = find_fetch(s, id, all);
	if (!f || at != f->got || n > f->bytes - f->got) {
		err = -EPROTO;
	} else if (f->unwanted) {
		f->got += n;
		if (f->got == f->bytes)
			drop_fetch(s, f);
	} else {
		memcpy(f->data + at, bytes, n);
		f->got += n;
		(void)pthread_cond_broadcast(&s->changed);
	}
	(void)pthread_mutex_unlock(&s->lock);
	return err;
}

/* The text need not be terminated; it is kept until it is asked for, and cut to what a reason may have. */
static int fetch_fail(struct session *s, uint32_t id, const uint8_t *why, size_t n)
{
	struct fetch *f;

	(void)pthread_mutex_lock(&s->lock);
	f = *find(s, id);
	if (f && f->unwanted) {
		drop_fetch(s, f);
		(void)pthread_mutex_unlock(&s->lock);
		return 0;
	}
	if (!f)
		f = make(s, id);
	if (f && !f->failed) {
		free(f->data);
		f->data = (uint8_t *)strndup((const char *)why, n < RIG_RMT_REASON ? n : RIG_RMT_REASON);
		f->failed = true;
		f->bytes = f->got = 0;
	}
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	return f ? 0 : -ENOMEM;
}

int fetch_put(struct session *s, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	uint32_t id = rig_rmt_get32(&in);
	uint64_t all = rig_rmt_get64(&in), at = rig_rmt_get64(&in);

	if (in.bad || !in.left)
		return -EPROTO;
	return all ? fetch_add(s, id, all, at, in.at, in.left) : fetch_fail(s, id, in.at, in.left);
}

/* With the lock. */
static struct fetch *take_whole(struct session *s, uint32_t id)
{
	struct fetch **at = find(s, id), *f = *at;

	if (!f || f->got < f->bytes)
		return NULL;
	*at = f->next;
	return f;
}

int fetch_take(struct device *d, uint32_t id, uint8_t *to, uint64_t bytes)
{
	struct session *s = d->session;
	struct fetch *f;
	int err = 0;

	(void)pthread_mutex_lock(&s->lock);
	while (!(f = take_whole(s, id)) && !device_is_ending(d) && !atomic_load(&s->ended))
		(void)pthread_cond_wait(&s->changed, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
	if (!f) {
		fetch_forget(s, id);
		return -ECANCELED;
	}
	if (f->failed)
		err = rig_error_set(-EREMOTEIO, "%s", f->data ? (const char *)f->data : "its source is lost");
	else if (f->bytes == bytes)
		memcpy(to, f->data, bytes);
	else
		err = rig_error_set(-EPROTO, "a copy of %" PRIu64 " bytes got %" PRIu64, bytes, f->bytes);
	fetch_free(f);
	return err;
}

struct fetch *fetch_ended(struct session *s, uint32_t id)
{
	return take_whole(s, id);
}

void fetch_free(struct fetch *f)
{
	free(f->data);
	free(f);
}

void fetch_forget(struct session *s, uint32_t id)
{
	struct fetch *f;

	(void)pthread_mutex_lock(&s->lock);
	f = *find(s, id);
	if (f && (f->failed || f->got == f->bytes)) {
		drop_fetch(s, f);
	} else if (f || (f = make(s, id))) {
		free(f->data);
		f->data = NULL;
		f->unwanted = true;
	}
	(void)pthread_mutex_unlock(&s->lock);
}

void fetch_drop_all(struct session *s)
{
	while (s->fetches) {
		struct fetch *f = s->fetches;

		s->fetches = f->next;
		fetch_free(f);
	}
}

/* NULL: there is no connection to it. */
static struct peer *peer_to(struct session *s, uint32_t machine)
{
	struct peer *peer = NULL;
	uint32_t i;

	(void)pthread_mutex_lock(&s->lock);
	for (i = 0; i < s->npeers && !peer; i++)
		if (s->peers[i].machine == machine)
			peer = &s->peers[i];
	(void)pthread_mutex_unlock(&s->lock);
	return peer;
}

static struct rig_rmt_chan *chan_to(struct session *s, uint32_t machine)
{
	struct peer *peer = peer_to(s, machine);

	return peer ? peer->chan : NULL;
}

int fetch_send(struct session *s, uint32_t machine, uint32_t id, const uint8_t *bytes, uint64_t n)
{
	uint32_t self = (uint32_t)strtoul(s->join.machine, NULL, 10);
	struct rig_rmt_chan *chan = machine == self ? NULL : chan_to(s, machine);
	uint64_t at, chunk;
	int err = 0;

	if (machine != self && !chan) {
		session_fail(s, "malformed: a copy to a machine without a connection");
		return -EPROTO;
	}
	for (at = 0; at < n && !err; at += chunk) {
		struct rig_rmt_out head = {0};

		chunk = n - at < RIG_RMT_DATA_BYTES ? n - at : RIG_RMT_DATA_BYTES;
		rig_rmt_put32(&head, id);
		rig_rmt_put64(&head, n);
		rig_rmt_put64(&head, at);
		if (!chan)
			err = fetch_add(s, id, n, at, bytes + at, chunk);
		else
			err = head.bad ? -ENOMEM
			               : rig_rmt_chan_send(chan, RIG_RMT_FETCHED, head.at, head.used,
			                         bytes + at, chunk);
		rig_rmt_out_free(&head);
	}
	if (err)
		session_fail(s, "bytes for another machine did not go: %s", strerror(-err));
	return err;
}

void fetch_refuse(struct session *s, uint32_t machine, uint32_t id, const char *why)
{
	uint32_t self = (uint32_t)strtoul(s->join.machine, NULL, 10);
	struct peer *peer = machine == self ? NULL : peer_to(s, machine);
	struct rig_rmt_out out = {0};

	if (machine == self) {
		(void)fetch_fail(s, id, (const uint8_t *)why, strlen(why));
		return;
	}
	rig_rmt_put32(&out, id);
	rig_rmt_put64(&out, 0);
	rig_rmt_put64(&out, 0);
	rig_rmt_put_bytes(&out, why, strlen(why));
	if (out.bad ||
	        (peer && rig_rmt_post_send(&peer->post, peer->chan, RIG_RMT_FETCHED, out.at, out.used)))
		session_fail(s, "the agent has no memory to refuse a fetch");
	rig_rmt_out_free(&out);
}

void peer_send(struct session *s, uint32_t machine, uint8_t kind, const struct rig_rmt_out *out)
{
	struct rig_rmt_chan *chan = chan_to(s, machine);

	if (out->bad)
		session_fail(s, "the agent has no memory for a message");
	else if (chan)
		(void)rig_rmt_chan_send(chan, kind, out->at, out->used, NULL, 0);
}

/* ---- Connections to other agents ---- */

/* What the other agent's JOIN is answered with. */
static int answer(struct rig_rmt_chan *chan, int status, const char *text)
{
	struct rig_rmt_answer a = {.status = status};
	struct rig_rmt_out out = {0};
	int err;

	(void)snprintf(a.text, sizeof(a.text), "%s", text);
	rig_rmt_answer_put(&out, &a);
	err = out.bad ? -ENOMEM : rig_rmt_chan_send(chan, RIG_RMT_ANSWER, out.at, out.used, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

static int take(struct peer *p, uint8_t kind, const uint8_t *payload, size_t n)
{
	switch (kind) {
	case RIG_RMT_FETCHED:
		return fetch_put(p->session, payload, n);
	case RIG_RMT_CLAIM:
		return parcel_claim(p->session, p->machine, payload, n);
	case RIG_RMT_UNCLAIM:
		return parcel_unclaim(p->session, p->machine, payload, n);
	default:
		return kind == RIG_RMT_BEAT ? 0 : -EPROTO;
	}
}

static void *peer_run(void *arg)
{
	char text[RIG_RMT_REASON / 2] = "it sent what is no message";
	struct peer *p = arg;
	struct session *s = p->session;
	const uint8_t *payload;
	uint8_t kind;
	size_t n;
	int err = p->came ? answer(p->chan, 0, "") : 0;

	while (!err) {
		err = rig_rmt_chan_recv(p->chan, &kind, &payload, &n);
		if (!err && kind == RIG_RMT_CLOSE)
			return NULL;
		if (!err)
			err = take(p, kind, payload, n);
	}
	if (err != -EPROTO)
		rig_rmt_chan_end_text(err, s->join.silence_ms, text, sizeof(text));
	if (!atomic_load(&s->ended))
		session_fail_for(s, p->machine, "between agents: %s", text);
	return NULL;
}

static void *beat_run(void *arg)
{
	struct peer *p = arg;

	session_beat(p->session, p->chan);
	return NULL;
}

/* Takes the channel if it answers 0. */
static int add_peer(struct session *s, uint32_t machine, struct rig_rmt_chan *chan, bool came)
{
	struct peer *p = NULL;
	int err = 0;

	(void)pthread_mutex_lock(&s->lock);
	if (!s->peers)
		s->peers = calloc(AGENT_MACHINES, sizeof(*s->peers));
	if (s->peers && s->npeers < AGENT_MACHINES && !atomic_load(&s->ended)) {
		p = &s->peers[s->npeers];
		*p = (struct peer){.session = s, .machine = machine, .came = came, .chan = chan};
		rig_rmt_post_init(&p->post);
		err = rig_thread_start(&p->thread, RIG_THREAD_ANY, peer_run, p);
		if (!err && rig_thread_start(&p->beat, RIG_THREAD_ANY, beat_run, p)) {
			rig_rmt_chan_shut(chan);
			p->beat = p->thread;
		}
		if (!err)
			s->npeers++;
		else
			rig_rmt_post_fini(&p->post);
	} else {
		err = -ENOSPC;
	}
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	return err ? rig_error_set(err, "no memory or thread for a connection between agents") : 0;
}

static int send_join(struct session *s, struct rig_rmt_chan *chan, uint32_t machine)
{
	struct rig_rmt_join join = s->join;
	struct rig_rmt_out out = {0};
	int err;

	join.role = RIG_RMT_AGENT;
	join.to = machine;
	rig_rmt_join_put(&out, &join);
	err = out.bad ? -ENOMEM : rig_rmt_chan_send(chan, RIG_RMT_JOIN, out.at, out.used, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

static unsigned ms_left(const struct rig_deadline *deadline)
{
	return (unsigned)(rig_deadline_left(deadline) / RIG_NS_PER_MS);
}

/* A refusal's status, with its text. */
static int await_answer(struct rig_rmt_chan *chan, const struct rig_deadline *deadline)
{
	struct rig_rmt_answer a;
	const uint8_t *payload;
	struct rig_rmt_in in;
	uint8_t kind;
	size_t n;
	int err;

	do {
		rig_rmt_chan_set_silence(chan, ms_left(deadline));
		err = rig_rmt_chan_recv(chan, &kind, &payload, &n);
	} while (!err && kind == RIG_RMT_BEAT);
	if (err)
		return rig_error_set(-ECONNABORTED, "it ended the connection: %s", strerror(-err));
	in = rig_rmt_in_of(payload, n);
	if (kind != RIG_RMT_ANSWER || rig_rmt_answer_parse(&in, &a) || in.left || a.status > 0)
		return rig_error_set(-ECONNABORTED, "it does not answer as an agent");
	return a.status ? rig_error_set(a.status == -EPROTO ? -ECONNABORTED : a.status, "%s", a.text) : 0;
}

static int dial(struct session *s, uint32_t machine, const char *name, unsigned ms)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, ms * RIG_NS_PER_MS);
	struct rig_rmt_chan *chan;
	int err = rig_rmt_chan_dial(name, s->agent->key, ms, ms, &chan);

	if (err)
		return err == -EPROTO ? -ECONNABORTED : err;
	rig_rmt_chan_set_silence(chan, ms_left(&deadline));
	if (send_join(s, chan, machine))
		err = rig_error_set(-ECONNABORTED, "it ended the connection");
	if (!err)
		err = await_answer(chan, &deadline);
	rig_rmt_chan_set_silence(chan, s->join.silence_ms);
	if (!err)
		err = add_peer(s, machine, chan, false);
	if (err)
		rig_rmt_chan_free(chan);
	return err;
}

/* LINK: the other machine's number and name, and the time that a connection may take. */
int peer_link(struct session *s, struct rig_rmt_in *in)
{
	uint32_t machine = rig_rmt_get32(in), ms;
	char name[RIG_RMT_NAME];

	rig_rmt_get_text(in, name, sizeof(name));
	ms = rig_rmt_get32(in);
	if (rig_rmt_in_end(in) || machine >= AGENT_MACHINES || !ms)
		return -EPROTO;
	return dial(s, machine, name, ms < MOST_DIAL_MS ? ms : MOST_DIAL_MS);
}

static struct session *find_session(struct agent *agent, const uint8_t token[RIG_RMT_TOKEN])
{
	struct session *s;

	for (s = agent->sessions; s && sodium_memcmp(s->join.token, token, RIG_RMT_TOKEN) != 0; s = s->next)
		;
	return s;
}

/* With the agent's lock, which keeps the session. The key alone does not show that the machine that answers
   is the one that was dialled; its number in the job does, which it has from the controller. */
static int let_in(struct agent *agent, struct rig_rmt_chan *chan, const struct rig_rmt_join *join)
{
	uint32_t machine = (uint32_t)strtoul(join->machine, NULL, 10), self;
	struct session *s = find_session(agent, join->token);

	if (!s || machine >= AGENT_MACHINES)
		return rig_error_set(-ENOENT, "the machine that answers serves no such job");
	self = (uint32_t)strtoul(s->join.machine, NULL, 10);
	if (join->to != self)
		return rig_error_set(-EREMCHG,
		        "machine %" PRIu32 " of the job was dialled, and machine %" PRIu32
		        " answers: its name leads elsewhere from there",
		        join->to, self);
	return add_peer(s, machine, chan, true);
}

void peer_serve(struct agent *agent, struct rig_rmt_chan *chan, const struct rig_rmt_join *join)
{
	int err;

	(void)pthread_mutex_lock(&agent->lock);
	err = let_in(agent, chan, join);
	(void)pthread_mutex_unlock(&agent->lock);
	if (!err)
		return;
	agent_log(agent, "%s: an agent is refused: %s", rig_rmt_chan_peer(chan), rig_error());
	(void)answer(chan, err, rig_error());
	rig_rmt_chan_free(chan);
}

void peers_end(struct session *s)
{
	uint32_t i;

	(void)pthread_mutex_lock(&s->lock);
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	for (i = 0; i < s->npeers; i++) {
		/* The other agent is told that this is no failure, if it is none. */
		if (!session_reason(s))
			rig_rmt_chan_try_send(s->peers[i].chan, RIG_RMT_CLOSE, NULL, 0);
		rig_rmt_chan_shut(s->peers[i].chan);
	}
	for (i = 0; i < s->npeers; i++) {
		(void)pthread_join(s->peers[i].thread, NULL);
		if (s->peers[i].beat != s->peers[i].thread)
			(void)pthread_join(s->peers[i].beat, NULL);
	}
	/* The done threads of devices that are not stopped yet may still send to them. */
}

void peers_free(struct session *s)
{
	uint32_t i;

	for (i = 0; i < s->npeers; i++) {
		rig_rmt_post_fini(&s->peers[i].post);
		rig_rmt_chan_free(s->peers[i].chan);
	}
	free(s->peers);
	s->peers = NULL;
	s->npeers = 0;
}
