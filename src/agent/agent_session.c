/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "agent_device.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "agent_queue.h"
#include "agent_rails.h"
#include "agent_session.h"
#include "clock.h"
#include "thread.h"

enum {
	BEATS = 4, /* in the time that the peer waits for one */
	TICK_MS = 10,
	FAREWELL_MS = 2000, /* for the controller to end the connection of a job that failed here */
	TELL_MS = 50,       /* for its reason to go before rails fail */
	SWEEP_MS = 200,     /* between two looks for ends of rails that are over */
};

int session_send(
        struct session *s, uint8_t kind, const struct rig_rmt_out *out, const void *body, size_t bytes)
{
	int err = out->bad ? -ENOMEM : rig_rmt_chan_send(s->chan, kind, out->at, out->used, body, bytes);

	/* The controller waits for it in vain. What befalls the connection is the reader's to say. */
	if (err == -ENOMEM || err == -EMSGSIZE)
		session_fail(s, "a message to the controller (kind %u) did not go: %s", kind, strerror(-err));
	return err;
}

int session_answer(
        struct session *s, uint32_t request, int status, const char *text, const void *payload, size_t bytes)
{
	struct rig_rmt_answer answer = {.request = request, .status = status};
	struct rig_rmt_out out = {0};
	int err;

	(void)snprintf(answer.text, sizeof(answer.text), "%s", text);
	rig_rmt_answer_put(&out, &answer);
	err = session_send(s, RIG_RMT_ANSWER, &out, payload, bytes);
	rig_rmt_out_free(&out);
	return err;
}

/* Without waiting for a controller that takes no bytes, as rails are to fail, but for threads that are just
   sending. */
static bool tell_soon(struct session *s, const struct rig_rmt_out *out)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, TELL_MS * RIG_NS_PER_MS);
	bool sent;

	while (!(sent = rig_rmt_chan_try_send(s->chan, RIG_RMT_FAILED, out->at, out->used)) &&
	        !rig_deadline_passed(&deadline))
		rig_deadline_sleep(&deadline, RIG_NS_PER_MS);
	return sent;
}

static void fail(struct session *s, uint32_t machine, bool in_haste, const char *format, va_list args)
{
	struct rig_rmt_out out = {0};
	bool first, sent;

	(void)pthread_mutex_lock(&s->lock);
	first = !s->reason[0];
	if (first)
		(void)vsnprintf(s->reason, sizeof(s->reason), format, args);
	(void)pthread_mutex_unlock(&s->lock);
	if (!first)
		return;
	agent_log(s->agent, "job of %s failed: %s", rig_rmt_chan_peer(s->chan), s->reason);
	rig_rmt_put32(&out, machine);
	rig_rmt_put_text(&out, s->reason);
	/* First to the controller, which would otherwise take the end of a data connection for the cause. */
	sent = !out.bad && tell_soon(s, &out);
	rails_fail(s, s->reason);
	if (!sent && in_haste)
		rig_rmt_chan_shut(s->chan);
	else if (!sent)
		(void)session_send(s, RIG_RMT_FAILED, &out, NULL, 0);
	rig_rmt_out_free(&out);
	/* The controller ends the connection once it has the reason. If this did, data connections would end
	   too, and the controller might see that first and take it for the cause. */
	atomic_store_explicit(&s->failed_at, rig_now_ns(), memory_order_release);
}

/* A controller that was told does not end it. */
static bool is_overdue(struct session *s)
{
	uint64_t since = atomic_load_explicit(&s->failed_at, memory_order_acquire);

	return since && rig_now_ns() - since > FAREWELL_MS * RIG_NS_PER_MS;
}

void session_fail(struct session *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail(s, RIG_RMT_HERE_PEER, false, format, args);
	va_end(args);
}

void session_fail_now(struct session *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail(s, RIG_RMT_HERE_PEER, true, format, args);
	va_end(args);
}

void session_fail_for(struct session *s, uint32_t machine, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail(s, machine, false, format, args);
	va_end(args);
}

void session_await_halts(struct session *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->nhalted++;
	(void)pthread_cond_broadcast(&s->changed);
	while (s->nhalted < s->ndevices)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
}

struct device *session_device(struct session *s, uint32_t id)
{
	struct device *d;

	(void)pthread_mutex_lock(&s->lock);
	d = id < s->ndevices ? s->devices[id] : NULL;
	(void)pthread_mutex_unlock(&s->lock);
	return d;
}

/* ---- The control thread ---- */

static void do_list(struct session *s, struct rig_rmt_in *in)
{
	uint32_t request = rig_rmt_get32(in), i;
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, s->agent->nserved);
	(void)pthread_mutex_lock(&s->agent->lock);
	for (i = 0; i < s->agent->nserved; i++) {
		rig_rmt_put_text(&out, s->agent->served[i].name);
		rig_rmt_put8(&out, s->agent->served[i].host);
		rig_rmt_put8(&out, s->agent->served[i].holder || s->agent->served[i].stuck);
	}
	(void)pthread_mutex_unlock(&s->agent->lock);
	rig_rmt_put_text(&out, s->agent->version ? s->agent->version : "");
	(void)session_answer(s, request, 0, "", out.at, out.used);
	rig_rmt_out_free(&out);
}

static void do_ping(struct session *s, struct rig_rmt_in *in)
{
	uint32_t request = rig_rmt_get32(in);
	struct rig_rmt_out out = {0};

	rig_rmt_put64(&out, rig_now_ns());
	(void)session_answer(s, request, 0, "", out.at, out.used);
	rig_rmt_out_free(&out);
}

/* Of links between agents, and of rails. */
static void do_link(struct session *s, uint8_t kind, struct rig_rmt_in *in)
{
	uint32_t request = rig_rmt_get32(in);
	struct rig_rmt_out out = {0};
	int err = kind == RIG_RMT_LINK ? peer_link(s, in) : rails_request(s, in, &out);

	if (err == -EPROTO)
		session_fail(s, "malformed: a request about links or rails");
	else
		(void)session_answer(s, request, err, err ? rig_error() : "", out.at, err ? 0 : out.used);
	rig_rmt_out_free(&out);
}

/* Of a device that has ended. */
static void refuse_fetch(struct session *s, const struct item *item)
{
	struct rig_rmt_fetch f;

	if (rig_rmt_fetch_parse(item->payload, item->bytes, &f))
		session_fail(s, "malformed: a fetch");
	else
		(f.parcel ? parcel_refuse : fetch_refuse)(
		        s, f.machine, f.id, "the device that it copies from is lost");
}

static void take_control(struct session *s, const struct item *item)
{
	struct rig_rmt_in in = rig_rmt_in_of(item->payload, item->bytes);

	switch (item->kind) {
	case RIG_RMT_LIST:
		do_list(s, &in);
		break;
	case RIG_RMT_PING:
		do_ping(s, &in);
		break;
	case RIG_RMT_FETCH:
		refuse_fetch(s, item);
		break;
	case RIG_RMT_SUBMIT:
		submit_give_up(s, item->payload, item->bytes);
		break;
	default:
		do_link(s, item->kind, &in);
	}
}

static void *control_run(void *session)
{
	struct session *s = session;

	while (!queue_is_closed(&s->control)) {
		struct item *item = queue_pop(&s->control, SWEEP_MS);

		if (item)
			take_control(s, item);
		else
			rails_sweep(s);
		free(item);
	}
	return NULL;
}

void session_beat(struct session *s, struct rig_rmt_chan *chan)
{
	const struct timespec nap = {.tv_nsec = TICK_MS * 1000000L};
	uint64_t every = s->join.silence_ms * RIG_NS_PER_MS / BEATS, last = rig_now_ns();

	while (!atomic_load_explicit(&s->ended, memory_order_acquire)) {
		(void)nanosleep(&nap, NULL);
		if (is_overdue(s))
			rig_rmt_chan_shut(s->chan);
		if (rig_now_ns() - last < every)
			continue;
		(void)rig_rmt_chan_try_send(chan, RIG_RMT_BEAT, NULL, 0);
		last = rig_now_ns();
	}
}

static void *beat_run(void *session)
{
	struct session *s = session;

	session_beat(s, s->chan);
	return NULL;
}

/* ---- The reader ---- */

/* -EPROTO, or -ENOMEM. */
static int to_device(struct session *s, uint8_t kind, const uint8_t *payload, size_t n)
{
	bool hot = kind == RIG_RMT_DATA || kind == RIG_RMT_SUBMIT || kind == RIG_RMT_FETCH;
	bool numbered = kind != RIG_RMT_DATA && kind != RIG_RMT_FREE && kind != RIG_RMT_CODE &&
	                kind != RIG_RMT_UNLOAD;
	struct rig_rmt_in in = rig_rmt_in_of(payload, n);
	struct queue *q;
	struct device *d;
	uint32_t id;

	if (kind == RIG_RMT_FETCH)
		(void)rig_rmt_get32(&in);
	if (numbered)
		(void)rig_rmt_get32(&in);
	id = rig_rmt_get32(&in);
	d = in.bad ? NULL : session_device(s, id);
	if (!d)
		return -EPROTO;
	q = hot ? &d->hot_queue : &d->cold_queue;
	if (queue_push(q, kind, payload, n))
		return 0;
	if (!queue_is_closed(q) && !(hot && device_is_ending(d)))
		return -ENOMEM;
	/* Work of a device that is ending goes nowhere; who waits for its bytes is told. */
	if (kind == RIG_RMT_FETCH || kind == RIG_RMT_SUBMIT)
		return queue_push(&s->control, kind, payload, n) ? 0 : -ENOMEM;
	return 0;
}

/* The reader waits for nobody, so it sends nothing itself. */
static int refuse_open(struct session *s, uint32_t request, const char *text)
{
	struct rig_rmt_answer answer = {.request = request, .status = -ENOSPC};
	struct rig_rmt_out out = {0};
	int err;

	(void)snprintf(answer.text, sizeof(answer.text), "%s", text);
	rig_rmt_answer_put(&out, &answer);
	err = out.bad ? -ENOMEM : rig_rmt_post_send(&s->post, s->chan, RIG_RMT_ANSWER, out.at, out.used);
	rig_rmt_out_free(&out);
	return err;
}

static int open_device(struct session *s, const uint8_t *payload, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload, n);
	char name[RIG_RMT_NAME];
	struct device *d = NULL;
	uint32_t request = rig_rmt_get32(&in);

	rig_rmt_get_text(&in, name, sizeof(name));
	if (rig_rmt_in_end(&in))
		return -EPROTO;
	if (s->ndevices < AGENT_DEVICES)
		d = device_make(s, s->ndevices, name);
	if (!d) {
		return refuse_open(s, request,
		        s->ndevices < AGENT_DEVICES ? "the agent has no memory or threads left"
		                                    : "this connection opened all the devices it may");
	}
	(void)pthread_mutex_lock(&s->lock);
	s->devices[s->ndevices++] = d;
	(void)pthread_mutex_unlock(&s->lock);
	return queue_push(&d->cold_queue, RIG_RMT_OPEN, payload, n) ? 0 : -ENOMEM;
}

static int take(struct session *s, uint8_t kind, const uint8_t *payload, size_t n)
{
	switch (kind) {
	case RIG_RMT_BEAT:
		return 0;
	case RIG_RMT_OPEN:
		return open_device(s, payload, n);
	case RIG_RMT_LIST:
	case RIG_RMT_PING:
	case RIG_RMT_LINK:
	case RIG_RMT_RAIL:
		return queue_push(&s->control, kind, payload, n) ? 0 : -ENOMEM;
	case RIG_RMT_ALLOC:
	case RIG_RMT_FREE:
	case RIG_RMT_MAP_PEER:
	case RIG_RMT_MAP_RAIL:
	case RIG_RMT_CODE:
	case RIG_RMT_LOAD:
	case RIG_RMT_ENTRY:
	case RIG_RMT_UNLOAD:
	case RIG_RMT_CHECK:
	case RIG_RMT_STOP:
	case RIG_RMT_SUBMIT:
	case RIG_RMT_DATA:
	case RIG_RMT_FETCH:
		return to_device(s, kind, payload, n);
	case RIG_RMT_CLOSE:
		return -ESHUTDOWN;
	default:
		return -EPROTO;
	}
}

static void told_failed(struct session *s, const uint8_t *payload, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload, n);
	char reason[RIG_RMT_REASON];

	(void)rig_rmt_get32(&in);
	rig_rmt_get_text(&in, reason, sizeof(reason));
	session_fail(s, "%s", rig_rmt_in_end(&in) ? "malformed: a reason" : reason);
}

static void fail_by_end(struct session *s, int err)
{
	char text[RIG_RMT_REASON / 2];

	rig_rmt_chan_end_text(err, s->join.silence_ms, text, sizeof(text));
	session_fail(s, "the controller: %s", text);
}

/* Of a job that failed: nothing else is of use any more. */
static void await_end(struct session *s)
{
	const uint8_t *payload;
	uint8_t kind = 0;
	size_t n;

	while (kind != RIG_RMT_FAILED && kind != RIG_RMT_CLOSE &&
	        !rig_rmt_chan_recv(s->chan, &kind, &payload, &n))
		;
}

static void read_all(struct session *s)
{
	const uint8_t *payload;
	uint8_t kind = 0;
	size_t n;
	int err = 0;

	while (!err && !atomic_load_explicit(&s->failed_at, memory_order_acquire)) {
		err = rig_rmt_chan_recv(s->chan, &kind, &payload, &n);
		if (!err && kind == RIG_RMT_FAILED) {
			told_failed(s, payload, n);
			return;
		}
		if (!err)
			err = take(s, kind, payload, n);
	}
	if (err == -ESHUTDOWN)
		agent_log(s->agent, "job of %s closed", rig_rmt_chan_peer(s->chan));
	else if (err == -EPROTO)
		session_fail(s, "malformed: the controller sent what is no message (kind %u)", kind);
	else if (err == -ENOMEM)
		session_fail(s, "the controller has more under way than the agent takes");
	else if (err)
		fail_by_end(s, err);
	if (err != -ESHUTDOWN)
		await_end(s);
}

/* ---- Life ---- */

static void end(struct session *s)
{
	uint32_t i;

	atomic_store_explicit(&s->ended, true, memory_order_release);
	queue_close(&s->control);
	/* Boards do not run on while the control thread dials or awaits a link. What their threads await of
	   other machines ends with rails and connections. */
	for (i = 0; i < s->ndevices; i++)
		device_close(s->devices[i]);
	(void)pthread_join(s->control_thread, NULL);
	(void)pthread_join(s->beat_thread, NULL);
	rails_end(s);
	peers_end(s);
	for (i = 0; i < s->ndevices; i++)
		device_join(s->devices[i]);
	for (i = 0; i < s->ndevices; i++)
		device_free(s->devices[i]);
	peers_free(s);
	rails_free(s);
	fetch_drop_all(s);
	parcels_free(s);
}

static struct session *make(struct agent *agent, struct rig_rmt_chan *chan, const struct rig_rmt_join *join)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->agent = agent;
	s->chan = chan;
	s->join = *join;
	queue_init(&s->control, QUEUE_OF_CONTROL);
	rig_rmt_post_init(&s->post);
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_cond_init(&s->changed, NULL);
	return s;
}

static void unmake(struct session *s)
{
	queue_fini(&s->control);
	rig_rmt_post_fini(&s->post);
	(void)pthread_cond_destroy(&s->changed);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

static void enlist(struct session *s)
{
	(void)pthread_mutex_lock(&s->agent->lock);
	s->next = s->agent->sessions;
	s->agent->sessions = s;
	(void)pthread_mutex_unlock(&s->agent->lock);
}

static void delist(struct session *s)
{
	struct session **at;

	(void)pthread_mutex_lock(&s->agent->lock);
	for (at = &s->agent->sessions; *at && *at != s; at = &(*at)->next)
		;
	if (*at)
		*at = s->next;
	(void)pthread_mutex_unlock(&s->agent->lock);
}

static int start_threads(struct session *s)
{
	int err = rig_thread_start(&s->control_thread, RIG_THREAD_ANY, control_run, s);

	if (err)
		return err;
	err = rig_thread_start(&s->beat_thread, RIG_THREAD_ANY, beat_run, s);
	if (!err)
		return 0;
	queue_close(&s->control);
	(void)pthread_join(s->control_thread, NULL);
	return err;
}

static void serve(struct agent *agent, struct rig_rmt_chan *chan, const struct rig_rmt_join *join)
{
	struct session *s = make(agent, chan, join);

	if (!s)
		return;
	if (!start_threads(s)) {
		enlist(s);
		agent_log(agent, "job of %s begins", rig_rmt_chan_peer(chan));
		read_all(s);
		rig_rmt_chan_shut(chan);
		/* From here on no other agent's connection finds it. */
		delist(s);
		end(s);
		agent_log(agent, "job of %s ended, its devices are stopped", rig_rmt_chan_peer(chan));
	}
	unmake(s);
}

enum { LEAST_SILENCE_MS = 50, MOST_SILENCE_MS = 600000 };

static int read_join(struct rig_rmt_chan *chan, struct rig_rmt_join *join)
{
	const uint8_t *payload;
	uint8_t kind;
	size_t n;
	int err = rig_rmt_chan_recv(chan, &kind, &payload, &n);

	if (!err)
		err = kind == RIG_RMT_JOIN ? rig_rmt_join_parse(payload, n, join) : -EPROTO;
	if (!err && (join->silence_ms < LEAST_SILENCE_MS || join->silence_ms > MOST_SILENCE_MS ||
	                    (join->role != RIG_RMT_CONTROLLER && join->role != RIG_RMT_AGENT)))
		err = -EPROTO;
	return err;
}

/* From the strangers to those who have the key; false: as many jobs as may be are served. Connections of
   other agents belong to jobs that are. */
static bool admit(struct agent *agent, bool proven, bool is_job)
{
	bool admitted;

	(void)pthread_mutex_lock(&agent->lock);
	admitted = proven && !agent->ending && (!is_job || agent->nsessions < AGENT_SESSIONS);
	if (admitted && is_job)
		agent->nsessions++;
	(void)pthread_mutex_unlock(&agent->lock);
	return admitted;
}

static void leave(struct agent *agent)
{
	(void)pthread_mutex_lock(&agent->lock);
	agent->nsessions--;
	(void)pthread_cond_broadcast(&agent->changed);
	(void)pthread_mutex_unlock(&agent->lock);
}

/* Takes the channel. */
static void serve_any(struct agent *agent, struct rig_rmt_chan *chan, const struct rig_rmt_join *join)
{
	rig_rmt_chan_set_silence(chan, join->silence_ms);
	if (join->role == RIG_RMT_AGENT) {
		peer_serve(agent, chan, join);
		return;
	}
	serve(agent, chan, join);
	rig_rmt_chan_free(chan);
	leave(agent);
}

void *session_run(void *served_socket)
{
	struct served_socket *socket = served_socket;
	struct agent *agent = socket->agent;
	uint64_t stranger = socket->stranger;
	struct rig_rmt_chan *chan = NULL;
	struct rig_rmt_join join = {0};
	int err = rig_rmt_chan_accept(socket->fd, agent->key, RIG_RMT_DIAL_MS, RIG_RMT_SILENCE_MS, &chan);

	free(socket);
	if (!err)
		err = read_join(chan, &join);
	agent_know(agent, stranger);
	if (!admit(agent, !err, join.role != RIG_RMT_AGENT)) {
		agent_log(agent, "a connection was refused: %s",
		        err ? rig_error() : "as many jobs as may be are served");
		rig_rmt_chan_free(chan);
		return NULL;
	}
	serve_any(agent, chan, &join);
	return NULL;
}
