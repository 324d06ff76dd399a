/* SPDX-License-Identifier: MIT */
/* Links of the rail engines: between machines, and from here. Each is made on first use. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "rmt_rail_over.h"
#include "rmt_rails_private.h"
#include "rmt_request.h"

/* ---- Asking agents ---- */

/* The blob of the answer is put into *blob, if not NULL. */
int rig_rmt_rail_ask(struct rig_rmt_machine *m, const struct rig_rmt_rail *r,
        const struct rig_remote_transfer *send, const struct rig_remote_transfer *receive,
        struct rig_rail_blob *blob)
{
	struct rig_rmt_out out = {0}, payload = {0};
	int err;

	rig_rmt_rail_put(&out, r, send, receive);
	err = rig_rmt_request(m, RIG_RMT_RAIL, &out, 0, &payload);
	rig_rmt_out_free(&out);
	if (err)
		return err;
	if (payload.used > RIG_RAIL_BLOB)
		err = rig_error_set(
		        -EPROTO, "machine %s: malformed: a blob of %zu bytes", m->name, payload.used);
	if (!err && blob) {
		blob->bytes = payload.used;
		if (payload.used)
			memcpy(blob->at, payload.at, payload.used);
	}
	rig_rmt_out_free(&payload);
	return err;
}

void rig_rmt_rail_set_blob(struct rig_rmt_rail *r, const struct rig_rail_blob *blob)
{
	r->nblob = (uint32_t)blob->bytes;
	memcpy(r->blob, blob->at, blob->bytes);
}

static const char *provider_of(const struct rig_remote_job *job)
{
	return job->options.provider ? job->options.provider : RIG_RAIL_SEALED;
}

/* ---- Links ---- */

static int link_step(struct rig_rmt_machine *m, enum rig_rmt_rail_op op, uint32_t peer, const char *name,
        const struct rig_rail_blob *in, struct rig_rail_blob *out)
{
	struct rig_rmt_rail r = {.op = op, .peer = peer};

	(void)snprintf(r.name, sizeof(r.name), "%s", name);
	(void)snprintf(r.provider, sizeof(r.provider), "%s", provider_of(m->job));
	if (in)
		rig_rmt_rail_set_blob(&r, in);
	return rig_rmt_rail_ask(m, &r, NULL, NULL, out);
}

/* The last step failed: the other side's link stands, nobody can take it back, and its end would fail that
   side's rails a moment later, for a reason that says less. */
static int fail_half(struct rig_rmt_machine *m, const char *other)
{
	char why[RIG_RMT_REASON];

	(void)snprintf(why, sizeof(why), "%s", rig_error());
	rig_rmt_job_fail(m->job, "machine %s did not finish a link of rails that stands at %s: %s", m->name,
	        other, why);
	return rig_rmt_over_error(m->job);
}

int rig_rmt_rails_link_machines(
        struct rig_rmt_rails *rails, struct rig_rmt_machine *a, struct rig_rmt_machine *b)
{
	uint32_t n = a->job->nmachines;
	struct rig_rail_blob offer, answer;
	int err;

	if (atomic_load(&rails->linked[a->index * n + b->index]))
		return 0;
	rails->used = true;
	err = link_step(a, RIG_RMT_RAIL_OFFER, b->index, b->name, NULL, &offer);
	if (!err)
		err = link_step(b, RIG_RMT_RAIL_ACCEPT, a->index, a->name, &offer, &answer);
	if (!err)
		err = link_step(a, RIG_RMT_RAIL_FINISH, b->index, b->name, &answer, NULL);
	if (!err && link_step(b, RIG_RMT_RAIL_FINISH, a->index, a->name, NULL, NULL))
		err = fail_half(b, a->name);
	atomic_store(&rails->linked[a->index * n + b->index], !err);
	atomic_store(&rails->linked[b->index * n + a->index], !err);
	return err;
}

static bool is_over(void *job)
{
	return rig_rmt_job_over(job);
}

static void engine_failed(void *job, const char *why)
{
	rig_rmt_rail_await_cause(is_over, job);
	rig_rmt_job_fail(job, "rails: %s", why);
}

static int open_engine(struct rig_rmt_rails *rails, struct rig_rmt_machine *m)
{
	char node[RIG_RMT_NAME];
	struct rig_rails_options options = {.provider = provider_of(m->job),
	        .node = m->job->options.node,
	        .spin_ns = UINT64_MAX,
	        .failed = engine_failed,
	        .arg = m->job};
	struct rig_rails *engine;
	int err;

	if (atomic_load(&rails->engine))
		return 0;
	if (!options.node) {
		rig_rmt_chan_local(m->chan, node, sizeof(node));
		options.node = node;
	}
	err = rig_rails_open(&options, &engine);
	if (err)
		return err;
	atomic_store(&rails->engine, engine);
	if (rig_rmt_job_over(m->job))
		rig_rails_fail(engine, m->job->reason);
	return 0;
}

static int finish_here(
        struct rig_rmt_machine *m, struct rig_rail_link *link, const struct rig_rail_blob *offer)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RIG_RMT_LINK_NS);
	struct rig_rail_blob answer;
	int err = link_step(m, RIG_RMT_RAIL_ACCEPT, RIG_RMT_HERE_PEER, "the controller", offer, &answer);

	if (!err)
		err = rig_rail_link_finish(link, &answer, &deadline);
	if (!err && link_step(m, RIG_RMT_RAIL_FINISH, RIG_RMT_HERE_PEER, "the controller", NULL, NULL))
		err = fail_half(m, "the controller");
	return err;
}

int rig_rmt_rails_link_here(struct rig_rmt_rails *rails, struct rig_rmt_machine *m)
{
	struct rig_rail_blob offer;
	struct rig_rail_link *link;
	int err;

	if (atomic_load(&rails->links[m->index]))
		return 0;
	rails->used = true;
	err = open_engine(rails, m);
	if (!err)
		err = rig_rail_link_offer(atomic_load(&rails->engine), m->name, &offer, &link);
	if (err)
		return err;
	err = finish_here(m, link, &offer);
	if (err)
		rig_rail_link_put(link);
	else
		atomic_store(&rails->links[m->index], link);
	return err;
}
