/* SPDX-License-Identifier: MIT */
/*
 * A job's rails, as the controller makes them: it carries the blobs of the rail engine (rail.h) between the
 * two machines, one of which may be this one, and no byte of a transfer. Engines and links are made on first
 * use.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "clock.h"
#include "rail.h"
#include "rmt_job.h"

/* A copy that makes the bulk rail waits for it: less than boards take for a hang. */
#define FINISH_NS (UINT64_C(5) * RIG_NS_PER_S)

/* Pages without memory that stand for an area elsewhere. */
struct window {
	struct window *next;
	uint64_t rail;
	uint32_t machine;
	bool inbound;
	void *at;
	size_t bytes;
};

/* A rail that was made; kept until the job's end, for its windows. */
struct made {
	struct made *next;
	struct rig_remote_job *job;
	uint64_t id;
	bool local; /* the other end is here */
	uint32_t machine[2];
	size_t outbound[2], inbound[2]; /* bytes of the areas of each */
};

struct rig_rmt_rails {
	pthread_mutex_t lock; /* of making: held while agents are asked */
	struct rig_rails *_Atomic engine;
	struct rig_rail_link **links; /* to each machine; NULL: none yet */
	bool *linked;                 /* machine by machine */
	uint64_t next;

	pthread_mutex_t list_lock;
	struct made *made;
	struct window *windows;
};

/* ---- Asking agents ---- */

/* The blob of the answer is put into *blob, if not NULL. */
static int ask(struct rig_rmt_machine *m, const struct rig_rmt_rail *r,
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

static void set_blob(struct rig_rmt_rail *r, const struct rig_rail_blob *blob)
{
	r->nblob = (uint32_t)blob->bytes;
	memcpy(r->blob, blob->at, blob->bytes);
}

static const char *provider_of(const struct rig_remote_job *job)
{
	return job->options.provider ? job->options.provider : "tcp";
}

/* ---- Links ---- */

static int link_step(struct rig_rmt_machine *m, enum rig_rmt_rail_op op, uint32_t peer, const char *name,
        const struct rig_rail_blob *in, struct rig_rail_blob *out)
{
	struct rig_rmt_rail r = {.op = op, .peer = peer};

	(void)snprintf(r.name, sizeof(r.name), "%s", name);
	(void)snprintf(r.provider, sizeof(r.provider), "%s", provider_of(m->job));
	if (in)
		set_blob(&r, in);
	return ask(m, &r, NULL, NULL, out);
}

static int link_machines(struct rig_rmt_rails *rails, struct rig_rmt_machine *a, struct rig_rmt_machine *b)
{
	bool *linked = &rails->linked[a->index * a->job->nmachines + b->index];
	struct rig_rail_blob offer, answer;
	int err;

	if (*linked)
		return 0;
	err = link_step(a, RIG_RMT_RAIL_OFFER, b->index, b->name, NULL, &offer);
	if (!err)
		err = link_step(b, RIG_RMT_RAIL_ACCEPT, a->index, a->name, &offer, &answer);
	if (!err)
		err = link_step(a, RIG_RMT_RAIL_FINISH, b->index, b->name, &answer, NULL);
	if (!err)
		err = link_step(b, RIG_RMT_RAIL_FINISH, a->index, a->name, NULL, NULL);
	*linked = !err;
	rails->linked[b->index * a->job->nmachines + a->index] = !err;
	return err;
}

static void engine_failed(void *job, const char *why)
{
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
	struct rig_deadline deadline = rig_deadline_in(NULL, FINISH_NS);
	struct rig_rail_blob answer;
	int err = link_step(m, RIG_RMT_RAIL_ACCEPT, RIG_RMT_HERE_PEER, "the controller", offer, &answer);

	if (!err)
		err = rig_rail_link_finish(link, &answer, &deadline);
	if (!err)
		err = link_step(m, RIG_RMT_RAIL_FINISH, RIG_RMT_HERE_PEER, "the controller", NULL, NULL);
	return err;
}

static int link_here(struct rig_rmt_rails *rails, struct rig_rmt_machine *m)
{
	struct rig_rail_blob offer;
	struct rig_rail_link *link;
	int err;

	if (rails->links[m->index])
		return 0;
	err = open_engine(rails, m);
	if (!err)
		err = rig_rail_link_offer(atomic_load(&rails->engine), m->name, &offer, &link);
	if (err)
		return err;
	err = finish_here(m, link, &offer);
	if (err)
		rig_rail_link_put(link);
	else
		rails->links[m->index] = link;
	return err;
}

/* ---- Rails ---- */

/* What a call brings, from the side of machine `a`. */
struct wanted {
	uint64_t id;
	struct rig_rmt_machine *a, *b; /* b NULL: here */
	const struct rig_remote_transfer *send, *receive;
	size_t nsend, nreceive;
};

static int make_there(
        struct rig_rmt_machine *m, const struct wanted *w, bool swapped, struct rig_rail_blob *blob)
{
	const struct rig_rmt_machine *peer = swapped ? w->a : w->b;
	struct rig_rmt_rail r = {.op = RIG_RMT_RAIL_MAKE,
	        .peer = peer ? peer->index : RIG_RMT_HERE_PEER,
	        .rail = w->id,
	        .nsend = (uint32_t)(swapped ? w->nreceive : w->nsend),
	        .nreceive = (uint32_t)(swapped ? w->nsend : w->nreceive)};

	return ask(m, &r, swapped ? w->receive : w->send, swapped ? w->send : w->receive, blob);
}

static int join_there(struct rig_rmt_machine *m, uint64_t id, const struct rig_rail_blob *blob)
{
	struct rig_rmt_rail r = {.op = RIG_RMT_RAIL_JOIN, .rail = id};

	set_blob(&r, blob);
	return ask(m, &r, NULL, NULL, NULL);
}

static void drop_there(struct rig_rmt_machine *m, uint64_t id)
{
	const struct rig_rmt_rail r = {.op = RIG_RMT_RAIL_DROP, .rail = id};

	if (!rig_rmt_job_over(m->job))
		(void)ask(m, &r, NULL, NULL, NULL);
}

static int make_ends(struct rig_rmt_rails *rails, const struct wanted *w, const struct rig_remote_end **local)
{
	struct rig_rail_blob a, b;
	int err = make_there(w->a, w, false, &a);

	*local = NULL;
	if (err)
		return err;
	err = w->b ? make_there(w->b, w, true, &b)
	           : rig_rail_make(rails->links[w->a->index], w->id, w->receive, w->nreceive, w->send,
	                     w->nsend, &b, local);
	if (!err)
		err = join_there(w->a, w->id, &b);
	if (!err)
		err = w->b ? join_there(w->b, w->id, &a) : rig_rail_join(*local, &a);
	if (!err)
		return 0;
	rig_remote_end_put(*local);
	*local = NULL;
	drop_there(w->a, w->id);
	if (w->b)
		drop_there(w->b, w->id);
	return err;
}

/* The rail's last put, anywhere. An end here tells the other by itself, when it goes too. */
static void released(void *owner)
{
	struct made *made = owner;
	struct rig_remote_job *job = made->job;

	if (!made->local) {
		drop_there(&job->machines[made->machine[0]], made->id);
		drop_there(&job->machines[made->machine[1]], made->id);
	}
	rig_rmt_job_put(job);
}

static struct made *note_rail(struct rig_rmt_rails *rails, const struct wanted *w)
{
	struct made *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->job = w->a->job;
	made->id = w->id;
	made->local = !w->b;
	made->machine[0] = w->a->index;
	made->machine[1] = w->b ? w->b->index : RIG_RMT_HERE_PEER;
	made->outbound[0] = 2 * rig_remote_copy_bytes(w->send, w->nsend, false);
	made->inbound[1] = 2 * rig_remote_copy_bytes(w->send, w->nsend, true);
	made->outbound[1] = 2 * rig_remote_copy_bytes(w->receive, w->nreceive, false);
	made->inbound[0] = 2 * rig_remote_copy_bytes(w->receive, w->nreceive, true);
	(void)pthread_mutex_lock(&rails->list_lock);
	made->next = rails->made;
	rails->made = made;
	(void)pthread_mutex_unlock(&rails->list_lock);
	return made;
}

/* With the lock. */
static int make(struct rig_rmt_rails *rails, struct wanted *w, const struct rig_remote_rail **rail)
{
	const struct rig_remote_end *local;
	struct made *made;
	int err = w->b ? link_machines(rails, w->a, w->b) : link_here(rails, w->a);

	if (err)
		return err;
	w->id = rails->next++;
	err = make_ends(rails, w, &local);
	if (err)
		return err;
	made = note_rail(rails, w);
	if (made)
		rig_rmt_job_get(made->job);
	err = made ? rig_remote_rail_make(w->id, local, released, made, rail)
	           : rig_error_set(-ENOMEM, "no host memory for a rail's record");
	if (err && made)
		released(made);
	/* The rail has its own reference. */
	rig_remote_end_put(local);
	return err;
}

static int make_rail(void *self, const struct rig_remote_host *peer, const struct rig_remote_transfer *send,
        size_t nsend, const struct rig_remote_transfer *receive, size_t nreceive,
        const struct rig_remote_rail **rail)
{
	struct rig_rmt_machine *m = self;
	struct wanted w = {.a = m,
	        .b = peer && peer->rail == make_rail ? peer->self : NULL,
	        .send = send,
	        .nsend = nsend,
	        .receive = receive,
	        .nreceive = nreceive};
	int err;

	if (w.b == m)
		return rig_error_set(-EINVAL, "a rail from machine %s to itself", m->name);
	err = rig_remote_check_transfers(send, nsend, receive, nreceive);
	if (err)
		return err;
	if (nsend > RIG_RMT_TRANSFERS || nreceive > RIG_RMT_TRANSFERS)
		return rig_error_set(
		        -E2BIG, "a rail of this library carries %d transfers each way", RIG_RMT_TRANSFERS);
	if (peer && (!w.b || w.b->job != m->job))
		return rig_error_set(-EXDEV, "machine %s is of another job", peer->machine);
	(void)pthread_mutex_lock(&m->job->rails->lock);
	err = rig_rmt_job_over(m->job) ? rig_error_set(-ECONNABORTED, "%s", m->job->reason)
	                               : make(m->job->rails, &w, rail);
	(void)pthread_mutex_unlock(&m->job->rails->lock);
	return err;
}

void rig_rmt_rails_bulk(struct rig_rmt_machine *m)
{
	struct rig_remote_transfer transfers[RIG_RMT_SLOT_TRANSFERS];
	const struct rig_remote_rail *rail;
	struct rig_rmt_rail use = {.op = RIG_RMT_RAIL_BULK};

	if (m->job->options.no_bulk_rails || atomic_exchange(&m->bulk_state, RIG_RMT_BULK_MADE))
		return;
	rig_rmt_bulk_transfers(transfers);
	if (make_rail(m, NULL, transfers, RIG_RMT_SLOT_TRANSFERS, transfers, RIG_RMT_SLOT_TRANSFERS, &rail))
		return;
	use.rail = rail->id;
	if (!ask(m, &use, NULL, NULL, NULL))
		rig_rmt_bulk_open(&m->bulk, rail->local);
	/* The end keeps the other one. */
	rig_remote_rail_put(rail);
}

/* No agent of this library loads programs for its host. */
static size_t threads(void *self, uint64_t program, int64_t *most, size_t room)
{
	(void)self;
	(void)program;
	(void)most;
	(void)room;
	return 0;
}

void rig_rmt_rails_host(struct rig_rmt_machine *m, struct rig_remote_host *host)
{
	host->machine = m->name;
	host->self = m;
	host->rail = make_rail;
	host->threads = threads;
}

/* ---- Windows ---- */

/* With the list's lock. */
static size_t area_bytes(const struct rig_rmt_rails *rails, uint64_t id, uint32_t machine, bool inbound)
{
	const struct made *made;
	unsigned i;

	for (made = rails->made; made && made->id != id; made = made->next)
		;
	for (i = 0; made && i < 2; i++)
		if (made->machine[i] == machine)
			return inbound ? made->inbound[i] : made->outbound[i];
	return 0;
}

/* With the list's lock: the one made before, or a new one; NULL: no address space. */
static struct window *get_window(
        struct rig_rmt_rails *rails, uint64_t id, uint32_t machine, bool inbound, size_t bytes)
{
	struct window *w;

	for (w = rails->windows; w; w = w->next)
		if (w->rail == id && w->machine == machine && w->inbound == inbound)
			return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->at == MAP_FAILED) {
		free(w);
		return NULL;
	}
	w->rail = id;
	w->machine = machine;
	w->inbound = inbound;
	w->bytes = bytes;
	w->next = rails->windows;
	rails->windows = w;
	return w;
}

int rig_remote_rail_area(struct rig_remote_job *job, const struct rig_remote_rail *rail, uint32_t machine,
        bool inbound, struct rig_remote_area *area)
{
	struct rig_rmt_rails *rails = job->rails;
	struct window *w = NULL;
	size_t bytes;

	(void)pthread_mutex_lock(&rails->list_lock);
	bytes = area_bytes(rails, rail->id, machine, inbound);
	if (bytes)
		w = get_window(rails, rail->id, machine, inbound, bytes);
	(void)pthread_mutex_unlock(&rails->list_lock);
	if (!bytes)
		return rig_error_set(-ENOENT, "rail %" PRIu64 " has no %s area on machine %" PRIu32, rail->id,
		        inbound ? "inbound" : "outbound", machine);
	if (!w)
		return rig_error_set(-ENOMEM, "no address space for a window of %zu bytes", bytes);
	*area = (struct rig_remote_area){w->at, w->bytes};
	return 0;
}

bool rig_rmt_rails_window(
        struct rig_rmt_machine *m, const void *at, uint64_t bytes, uint64_t *rail, bool *inbound)
{
	struct rig_rmt_rails *rails = m->job->rails;
	const struct window *w;

	(void)pthread_mutex_lock(&rails->list_lock);
	for (w = rails->windows; w && (w->at != at || w->bytes != bytes || w->machine != m->index);
	        w = w->next)
		;
	if (w) {
		*rail = w->rail;
		*inbound = w->inbound;
	}
	(void)pthread_mutex_unlock(&rails->list_lock);
	return w != NULL;
}

/* ---- Life ---- */

int rig_rmt_rails_open(struct rig_remote_job *job)
{
	struct rig_rmt_rails *rails = calloc(1, sizeof(*rails));
	size_t n = job->nmachines;

	if (rails) {
		rails->links = calloc(n, sizeof(struct rig_rail_link *));
		rails->linked = calloc(n * n, sizeof(*rails->linked));
	}
	if (!rails || !rails->links || !rails->linked) {
		if (rails) {
			free(rails->links);
			free(rails->linked);
		}
		free(rails);
		return rig_error_set(-ENOMEM, "no host memory for a job");
	}
	(void)pthread_mutex_init(&rails->lock, NULL);
	(void)pthread_mutex_init(&rails->list_lock, NULL);
	rails->next = 1;
	job->rails = rails;
	return 0;
}

void rig_rmt_rails_fail(struct rig_remote_job *job, const char *why)
{
	struct rig_rails *engine = job->rails ? atomic_load(&job->rails->engine) : NULL;

	if (engine)
		rig_rails_fail(engine, why);
}

/* Each agent first, so that no link's end looks like a failure. */
void rig_rmt_rails_close(struct rig_remote_job *job)
{
	const struct rig_rmt_rail halt = {.op = RIG_RMT_RAIL_HALT};
	struct rig_rails *engine = job->rails ? atomic_load(&job->rails->engine) : NULL;
	uint32_t i;

	if (engine)
		rig_rails_stop(engine);
	for (i = 0; job->rails && i < job->nmachines; i++)
		if (!rig_rmt_job_over(job) && job->rails->next > 1)
			(void)ask(&job->machines[i], &halt, NULL, NULL, NULL);
}

/* The engine's threads end here; what rails and windows name stays until the job goes. */
void rig_rmt_rails_end(struct rig_remote_job *job)
{
	struct rig_rmt_rails *rails = job->rails;
	struct rig_rails *engine;
	uint32_t i;

	if (!rails)
		return;
	/* Who makes a rail has finished its link, and nobody makes one any more: the job is over. */
	(void)pthread_mutex_lock(&rails->lock);
	engine = atomic_exchange(&rails->engine, NULL);
	(void)pthread_mutex_unlock(&rails->lock);
	for (i = 0; i < job->nmachines; i++) {
		rig_rmt_bulk_close(&job->machines[i].bulk);
		rig_rail_link_put(rails->links[i]);
	}
	if (engine)
		rig_rails_close(engine);
}

void rig_rmt_rails_free(struct rig_remote_job *job)
{
	struct rig_rmt_rails *rails = job->rails;

	if (!rails)
		return;
	while (rails->windows) {
		struct window *w = rails->windows;

		rails->windows = w->next;
		(void)munmap(w->at, w->bytes);
		free(w);
	}
	while (rails->made) {
		struct made *made = rails->made;

		rails->made = made->next;
		free(made);
	}
	(void)pthread_mutex_destroy(&rails->list_lock);
	(void)pthread_mutex_destroy(&rails->lock);
	free(rails->links);
	free(rails->linked);
	free(rails);
	job->rails = NULL;
}
