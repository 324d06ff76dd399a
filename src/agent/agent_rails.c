/* SPDX-License-Identifier: MIT */
/* This machine's part of a job's rails: an engine, links to other machines and to the controller, ends. All
   made as the controller asks, on the control thread. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent_device.h"
#include "agent_rails.h"
#include "agent_session.h"
#include "clock.h"
#include "cond.h"
#include "rail.h"
#include "rig_remote.h"
#include "rmt_draft.h"
#include "rmt_rail_over.h"
#include "thread.h"

enum { LOOK_MS = 20 };

struct link {
	struct link *next;
	uint32_t peer;
	struct rig_rail_link *link;
	bool stands;
	bool finishing; /* in a thread of its own, for the other side finishes at the same time */
	pthread_t thread;
	int answer;
	char why[RIG_RMT_REASON];
};

struct kept_end {
	struct kept_end *next;
	uint64_t rail;
	const struct rig_remote_end *end;
};

struct rails {
	struct rig_rails *_Atomic engine;
	struct rig_rmt_draft draft; /* the control thread's */

	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct link *links; /* changed by the control thread alone */
	struct kept_end *ends;
};

/* ---- The engine ---- */

static bool has_reason(void *session)
{
	struct session *s = session;

	return session_reason(s) || atomic_load(&s->ended);
}

static void engine_failed(void *session, const char *why)
{
	rig_rmt_rail_await_cause(has_reason, session);
	session_fail(session, "rails: %s", why);
}

static void engine_moved(void *session)
{
	struct rails *r = ((struct session *)session)->rails;

	(void)pthread_mutex_lock(&r->lock);
	(void)pthread_cond_broadcast(&r->moved);
	(void)pthread_mutex_unlock(&r->lock);
}

static struct rails *make_rails(void)
{
	struct rails *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	(void)pthread_mutex_init(&r->lock, NULL);
	rig_cond_init(&r->moved);
	return r;
}

/* On first use. s->rails is set once, under the session's lock. */
static int open_engine(struct session *s, const char *provider)
{
	char node[RIG_RMT_NAME];
	struct rig_rails_options options = {.provider = provider,
	        .node = s->agent->node,
	        .first_port = s->agent->first_port,
	        .last_port = s->agent->last_port,
	        .spin_ns = UINT64_MAX,
	        .failed = engine_failed,
	        .moved = engine_moved,
	        .arg = s};
	struct rig_rails *engine;
	int err;

	if (strcmp(provider, RIG_RAIL_SEALED) && !s->agent->plain_rails)
		return rig_error_set(-EACCES,
		        "the agent's rails are " RIG_RAIL_SEALED
		        "; over %s they are plain, which it takes with "
		        "--plain-rails alone",
		        provider);
	if (!s->rails) {
		struct rails *made = make_rails();

		if (!made)
			return rig_error_set(-ENOMEM, "the agent has no memory for rails");
		(void)pthread_mutex_lock(&s->lock);
		s->rails = made;
		(void)pthread_mutex_unlock(&s->lock);
	}
	if (atomic_load(&s->rails->engine))
		return 0;
	if (!options.node) {
		rig_rmt_chan_local(s->chan, node, sizeof(node));
		options.node = node;
	}
	err = rig_rails_open(&options, &engine);
	if (!err)
		atomic_store(&s->rails->engine, engine);
	return err;
}

/* ---- Links ---- */

static struct link *find_link(struct session *s, uint32_t peer)
{
	struct link *l = s->rails ? s->rails->links : NULL;

	while (l && l->peer != peer)
		l = l->next;
	return l;
}

static struct link *add_link(struct session *s, uint32_t peer)
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->peer = peer;
	(void)pthread_mutex_lock(&s->rails->lock);
	l->next = s->rails->links;
	s->rails->links = l;
	(void)pthread_mutex_unlock(&s->rails->lock);
	return l;
}

/* The link is forgotten: what failed is begun anew. */
static void drop_link(struct session *s, struct link *link)
{
	struct link **at;

	(void)pthread_mutex_lock(&s->rails->lock);
	for (at = &s->rails->links; *at != link; at = &(*at)->next)
		;
	*at = link->next;
	(void)pthread_mutex_unlock(&s->rails->lock);
	rig_rail_link_put(link->link);
	free(link);
}

static void *finish_run(void *arg)
{
	struct link *l = arg;
	struct rig_deadline deadline = rig_deadline_in(NULL, RIG_RMT_LINK_NS);

	l->answer = rig_rail_link_finish(l->link, NULL, &deadline);
	if (l->answer)
		(void)snprintf(l->why, sizeof(l->why), "%s", rig_error());
	return NULL;
}

static void put_blob(struct rig_rmt_out *out, const struct rig_rail_blob *blob)
{
	rig_rmt_put_bytes(out, blob->at, blob->bytes);
}

static void get_blob(const struct rig_rmt_rail *r, struct rig_rail_blob *blob)
{
	blob->bytes = r->nblob;
	memcpy(blob->at, r->blob, r->nblob);
}

static int begin_link(struct session *s, const struct rig_rmt_rail *r, struct rig_rmt_out *out)
{
	bool accepts = r->op == RIG_RMT_RAIL_ACCEPT;
	struct rig_rail_blob in, blob;
	struct link *l;
	int err = open_engine(s, r->provider);

	if (err)
		return err;
	l = find_link(s, r->peer);
	if (l && l->stands)
		return rig_error_set(-EEXIST, "there is a link to %s already", r->name);
	/* What the controller gave up is begun anew. */
	if (l && l->finishing)
		(void)pthread_join(l->thread, NULL);
	if (l)
		drop_link(s, l);
	l = add_link(s, r->peer);
	if (!l)
		return rig_error_set(-ENOMEM, "the agent has no memory for a link");
	get_blob(r, &in);
	err = accepts ? rig_rail_link_accept(s->rails->engine, r->name, &in, &blob, &l->link)
	              : rig_rail_link_offer(s->rails->engine, r->name, &blob, &l->link);
	if (!err && accepts) {
		err = rig_thread_start(&l->thread, RIG_THREAD_ANY, finish_run, l);
		l->finishing = !err;
	}
	if (err)
		drop_link(s, l);
	else
		put_blob(out, &blob);
	return err;
}

static int finish_link(struct session *s, const struct rig_rmt_rail *r)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RIG_RMT_LINK_NS);
	struct link *l = find_link(s, r->peer);
	struct rig_rail_blob answer;
	int err;

	if (!l)
		return rig_error_set(-ENOENT, "no link was begun");
	if (l->finishing) {
		(void)pthread_join(l->thread, NULL);
		l->finishing = false;
		err = l->answer ? rig_error_set(l->answer, "%s", l->why) : 0;
	} else {
		get_blob(r, &answer);
		err = rig_rail_link_finish(l->link, &answer, &deadline);
	}
	if (err) {
		drop_link(s, l);
		return err;
	}
	(void)pthread_mutex_lock(&s->rails->lock);
	l->stands = true;
	(void)pthread_mutex_unlock(&s->rails->lock);
	return 0;
}

static struct rails *rails_of(struct session *s)
{
	struct rails *r;

	(void)pthread_mutex_lock(&s->lock);
	r = s->rails;
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

struct rig_rail_link *rails_link_to(struct session *s, uint32_t machine)
{
	struct rig_rail_link *link = NULL;
	struct rails *r = rails_of(s);
	struct link *l;

	if (!r)
		return NULL;
	(void)pthread_mutex_lock(&r->lock);
	for (l = r->links; l; l = l->next)
		if (l->peer == machine && l->stands)
			link = l->link;
	(void)pthread_mutex_unlock(&r->lock);
	return link;
}

/* ---- Ends ---- */

static int keep_end(struct rails *r, uint64_t rail, const struct rig_remote_end *end)
{
	struct kept_end *kept = calloc(1, sizeof(*kept));

	if (!kept) {
		rig_remote_end_put(end);
		return rig_error_set(-ENOMEM, "the agent has no memory for an end");
	}
	kept->rail = rail;
	kept->end = end;
	(void)pthread_mutex_lock(&r->lock);
	kept->next = r->ends;
	r->ends = kept;
	(void)pthread_mutex_unlock(&r->lock);
	return 0;
}

static int make_end(struct session *s, const struct rig_rmt_rail *r, struct rig_rmt_out *out)
{
	struct link *l = find_link(s, r->peer);
	struct rig_rmt_draft *draft;
	const struct rig_remote_end *end;
	struct rig_rail_blob blob;
	int err;

	if (!l || !l->stands)
		return rig_error_set(-ENOENT, "no link to machine %" PRIu32, r->peer);
	draft = &s->rails->draft;
	err = rig_rmt_draft_add(draft, r);
	if (!err)
		err = rig_rail_make(l->link, r->rail, draft->send.at, draft->send.n, draft->receive.at,
		        draft->receive.n, &blob, &end);
	rig_rmt_draft_drop(draft);
	if (!err)
		err = keep_end(s->rails, r->rail, end);
	if (!err)
		put_blob(out, &blob);
	return err;
}

const struct rig_remote_end *rails_end_of(struct session *s, uint64_t rail)
{
	const struct rig_remote_end *end = NULL;
	struct rails *r = rails_of(s);
	struct kept_end *kept;

	if (!r)
		return NULL;
	(void)pthread_mutex_lock(&r->lock);
	for (kept = r->ends; kept && kept->rail != rail; kept = kept->next)
		;
	if (kept)
		end = rig_remote_end_get(kept->end);
	(void)pthread_mutex_unlock(&r->lock);
	return end;
}

static int join_end(struct session *s, const struct rig_rmt_rail *r)
{
	const struct rig_remote_end *end = rails_end_of(s, r->rail);
	struct rig_rail_blob blob;
	int err;

	if (!end)
		return rig_error_set(-ENOENT, "no end of rail %" PRIu64, r->rail);
	get_blob(r, &blob);
	err = rig_rail_join(end, &blob);
	rig_remote_end_put(end);
	return err;
}

/* Drops the first end that `rail` names, or, with rail 0, that is over. Whether there was one. */
static bool drop_end(struct rails *r, uint64_t rail)
{
	struct kept_end **at, *kept;

	(void)pthread_mutex_lock(&r->lock);
	for (at = &r->ends; *at; at = &(*at)->next)
		if (rail ? (*at)->rail == rail : rig_rmt_rail_is_over((*at)->end))
			break;
	kept = *at;
	if (kept)
		*at = kept->next;
	(void)pthread_mutex_unlock(&r->lock);
	if (!kept)
		return false;
	rig_remote_end_put(kept->end);
	free(kept);
	return true;
}

void rails_sweep(struct session *s)
{
	while (s->rails && drop_end(s->rails, 0))
		;
}

/* ---- Steps of the host's queue ---- */

int rails_await(struct device *d, const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c)
{
	struct rails *r = d->session->rails;
	int err = 0;

	(void)pthread_mutex_lock(&r->lock);
	while (rig_remote_load(end, count) < c && !err) {
		if (device_is_ending(d))
			err = -ECANCELED;
		else
			(void)rig_cond_wait_ms(&r->moved, &r->lock, LOOK_MS);
	}
	(void)pthread_mutex_unlock(&r->lock);
	return err;
}

int rails_step(struct device *d, const uint32_t *words)
{
	uint64_t rail = words[1] | (uint64_t)words[2] << 32, c = words[3] | (uint64_t)words[4] << 32;
	const struct rig_remote_end *end = rails_end_of(d->session, rail);
	int err = 0;

	if (!end)
		return rig_error_set(
		        -ENOENT, "a step names rail %" PRIu64 ", of which there is no end", rail);
	if (words[0] == RIG_REMOTE_ADVANCE)
		end->ready(end->ready_arg, c);
	else
		err = rails_await(
		        d, end, words[0] == RIG_REMOTE_AWAIT_SENT ? RIG_REMOTE_SENT : RIG_REMOTE_ARRIVED, c);
	rig_remote_end_put(end);
	return err;
}

/* ---- Requests, life ---- */

static int halt(struct session *s)
{
	struct rig_rails *engine = s->rails ? atomic_load(&s->rails->engine) : NULL;

	if (engine)
		rig_rails_stop(engine);
	return 0;
}

static int dispatch(struct session *s, const struct rig_rmt_rail *r, struct rig_rmt_out *out)
{
	switch (r->op) {
	case RIG_RMT_RAIL_OFFER:
	case RIG_RMT_RAIL_ACCEPT:
		return begin_link(s, r, out);
	case RIG_RMT_RAIL_FINISH:
		return finish_link(s, r);
	case RIG_RMT_RAIL_MAKE:
		return make_end(s, r, out);
	case RIG_RMT_RAIL_MORE:
		return s->rails ? rig_rmt_draft_add(&s->rails->draft, r)
		                : rig_error_set(-ENOENT, "no link for rail %" PRIu64, r->rail);
	case RIG_RMT_RAIL_JOIN:
		return join_end(s, r);
	case RIG_RMT_RAIL_DROP:
		if (s->rails)
			(void)drop_end(s->rails, r->rail);
		return 0;
	default:
		return halt(s);
	}
}

int rails_request(struct session *s, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	struct rig_rmt_rail *r = malloc(sizeof(*r));
	int err = r ? rig_rmt_rail_parse(in, r) : -ENOMEM;

	if (!err) {
		err = dispatch(s, r, out);
		free(r->transfers);
		/* A blob that is none is an answer, not a broken message. */
		if (err == -EPROTO)
			err = -EBADMSG;
	}
	free(r);
	return err;
}

void rails_fail(struct session *s, const char *why)
{
	struct rails *r = rails_of(s);
	struct rig_rails *engine = r ? atomic_load(&r->engine) : NULL;

	if (engine)
		rig_rails_fail(engine, why);
}

/* Ends that devices' regions name stay with these. */
void rails_end(struct session *s)
{
	struct rails *r = s->rails;

	if (!r)
		return;
	if (session_reason(s))
		rails_fail(s, session_reason(s));
	else
		(void)halt(s);
	if (atomic_load(&r->engine))
		rig_rails_down(atomic_load(&r->engine));
	while (r->ends)
		(void)drop_end(r, r->ends->rail);
	while (r->links) {
		if (r->links->finishing)
			(void)pthread_join(r->links->thread, NULL);
		drop_link(s, r->links);
	}
}

void rails_free(struct session *s)
{
	struct rails *r = s->rails;

	if (!r)
		return;
	/* Not before: threads of devices and peers may be telling it a failure. */
	if (atomic_load(&r->engine))
		rig_rails_close(atomic_load(&r->engine));
	rig_rmt_draft_drop(&r->draft);
	(void)pthread_cond_destroy(&r->moved);
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
	s->rails = NULL;
}
