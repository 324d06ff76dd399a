/* SPDX-License-Identifier: MIT */
/*
 * A job's rails, as the controller makes them: it carries the blobs of the rail engine (rail.h) between the
 * two machines, one of which may be this one, and no byte of a transfer. Engines and links are made on first
 * use.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "rmt_rails_private.h"

_Static_assert(RIG_REMOTE_TRANSFERS == RIG_RMT_RAIL_TRANSFERS, "agents take what is promised");

/* ---- Rails ---- */

/* What a call brings, from the side of machine `a`. */
struct wanted {
	uint64_t id;
	struct rig_rmt_machine *a, *b; /* b NULL: here */
	const struct rig_remote_transfer *send, *receive;
	size_t nsend, nreceive;
};

static uint32_t for_message(size_t n)
{
	return (uint32_t)(n < RIG_RMT_TRANSFERS ? n : RIG_RMT_TRANSFERS);
}

static int make_there(
        struct rig_rmt_machine *m, const struct wanted *w, bool swapped, struct rig_rail_blob *blob)
{
	const struct rig_rmt_machine *peer = swapped ? w->a : w->b;
	struct rig_rmt_rail r = {
	        .op = RIG_RMT_RAIL_MORE, .peer = peer ? peer->index : RIG_RMT_HERE_PEER, .rail = w->id};
	const struct rig_remote_transfer *send = swapped ? w->receive : w->send,
	                                 *receive = swapped ? w->send : w->receive;
	size_t nsend = swapped ? w->nreceive : w->nsend, nreceive = swapped ? w->nsend : w->nreceive;
	int err = 0;

	while (!err && r.op == RIG_RMT_RAIL_MORE) {
		r.nsend = for_message(nsend);
		r.nreceive = for_message(nreceive);
		if (r.nsend == nsend && r.nreceive == nreceive)
			r.op = RIG_RMT_RAIL_MAKE;
		err = rig_rmt_rail_ask(m, &r, send, receive, blob);
		send = r.nsend ? send + r.nsend : send;
		receive = r.nreceive ? receive + r.nreceive : receive;
		nsend -= r.nsend;
		nreceive -= r.nreceive;
	}
	return err;
}

static int join_there(struct rig_rmt_machine *m, uint64_t id, const struct rig_rail_blob *blob)
{
	struct rig_rmt_rail r = {.op = RIG_RMT_RAIL_JOIN, .rail = id};

	rig_rmt_rail_set_blob(&r, blob);
	return rig_rmt_rail_ask(m, &r, NULL, NULL, NULL);
}

static void drop_there(struct rig_rmt_machine *m, uint64_t id)
{
	const struct rig_rmt_rail r = {.op = RIG_RMT_RAIL_DROP, .rail = id};

	if (!rig_rmt_job_over(m->job))
		(void)rig_rmt_rail_ask(m, &r, NULL, NULL, NULL);
}

static int make_ends(struct rig_rmt_rails *rails, const struct wanted *w, const struct rig_remote_end **local)
{
	struct rig_rail_blob a, b;
	int err = make_there(w->a, w, false, &a);

	*local = NULL;
	if (err)
		return err;
	err = w->b ? make_there(w->b, w, true, &b)
	           : rig_rail_make(atomic_load(&rails->links[w->a->index]), w->id, w->receive, w->nreceive,
	                     w->send, w->nsend, &b, local);
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

/* Nobody has it any more. An end here tells the other by itself, when it goes too. */
static void end_rail(struct made *made)
{
	struct rig_remote_job *job = made->job;

	if (made->end) {
		rig_remote_end_put(made->end);
	} else {
		drop_there(&job->machines[made->machine[0]], made->id);
		drop_there(&job->machines[made->machine[1]], made->id);
	}
	rig_rmt_job_put(job);
}

/* The rail's last put, anywhere. */
static void released(void *owner)
{
	struct made *made = owner;
	pthread_mutex_t *lock = &made->job->rails->list_lock;
	bool over;

	(void)pthread_mutex_lock(lock);
	made->released = true;
	over = !made->uses;
	(void)pthread_mutex_unlock(lock);
	if (over)
		end_rail(made);
}

struct made *rig_rmt_rails_find(const struct rig_rmt_rails *rails, uint64_t id)
{
	struct made *made;

	for (made = rails->made; made && made->id != id; made = made->next)
		;
	return made;
}

struct made *rig_rmt_rails_keep(struct rig_remote_job *job, uint64_t id)
{
	struct made *made;

	(void)pthread_mutex_lock(&job->rails->list_lock);
	made = rig_rmt_rails_find(job->rails, id);
	if (made && made->released)
		made = NULL;
	if (made)
		made->uses++;
	(void)pthread_mutex_unlock(&job->rails->list_lock);
	return made;
}

void rig_rmt_rails_let(struct made *made)
{
	pthread_mutex_t *lock = &made->job->rails->list_lock;
	bool over;

	(void)pthread_mutex_lock(lock);
	over = --made->uses == 0 && made->released;
	(void)pthread_mutex_unlock(lock);
	if (over)
		end_rail(made);
}

static struct made *note_rail(
        struct rig_rmt_rails *rails, const struct wanted *w, const struct rig_remote_end *local)
{
	struct made *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->job = w->a->job;
	made->id = w->id;
	made->end = rig_remote_end_get(local);
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
	int err =
	        w->b ? rig_rmt_rails_link_machines(rails, w->a, w->b) : rig_rmt_rails_link_here(rails, w->a);

	if (err)
		return err;
	w->id = rails->next++;
	err = make_ends(rails, w, &local);
	if (err)
		return err;
	made = note_rail(rails, w, local);
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

static int check_wanted(const struct wanted *w, const struct rig_remote_host *peer)
{
	int err;

	if (w->b == w->a)
		return rig_error_set(-EINVAL, "a rail from machine %s to itself", w->a->name);
	err = rig_remote_check_transfers(w->send, w->nsend, w->receive, w->nreceive);
	if (err)
		return err;
	if (w->nsend > RIG_REMOTE_TRANSFERS || w->nreceive > RIG_REMOTE_TRANSFERS)
		return rig_error_set(-E2BIG, "a rail of this library carries at most %u transfers each way",
		        RIG_REMOTE_TRANSFERS);
	if (peer && (!w->b || w->b->job != w->a->job))
		return rig_error_set(-EXDEV, "machine %s is of another job", peer->machine);
	return 0;
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
	int err = check_wanted(&w, peer);

	if (err)
		return err;
	(void)pthread_mutex_lock(&m->job->rails->lock);
	err = rig_rmt_job_over(m->job) ? rig_error_set(-ECONNABORTED, "%s", m->job->reason)
	                               : make(m->job->rails, &w, rail);
	(void)pthread_mutex_unlock(&m->job->rails->lock);
	return err;
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

/* ---- Life ---- */

static void free_tables(struct rig_rmt_rails *rails)
{
	free(rails->links);
	free(rails->linked);
	free(rails->tried);
	free(rails);
}

/* Of n machines. NULL: no memory. */
static struct rig_rmt_rails *make_tables(size_t n)
{
	struct rig_rmt_rails *rails = calloc(1, sizeof(*rails));

	if (!rails)
		return NULL;
	rails->links = calloc(n, sizeof(*rails->links));
	rails->linked = calloc(n * n, sizeof(*rails->linked));
	rails->tried = calloc(n * n, sizeof(*rails->tried));
	if (rails->links && rails->linked && rails->tried)
		return rails;
	free_tables(rails);
	return NULL;
}

int rig_rmt_rails_open(struct rig_remote_job *job)
{
	struct rig_rmt_rails *rails = make_tables(job->nmachines);

	if (!rails)
		return rig_error_set(-ENOMEM, "no host memory for a job");
	(void)pthread_mutex_init(&rails->lock, NULL);
	(void)pthread_mutex_init(&rails->list_lock, NULL);
	(void)pthread_mutex_init(&rails->use_lock, NULL);
	rails->next = 1;
	job->rails = rails;
	return 0;
}

/* The close waits for who tells of a failure before it takes the engine away. */
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
		if (!rig_rmt_job_over(job) && job->rails->used)
			(void)rig_rmt_rail_ask(&job->machines[i], &halt, NULL, NULL, NULL);
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
	(void)pthread_mutex_lock(&rails->use_lock);
	rails->ended = true;
	(void)pthread_mutex_unlock(&rails->use_lock);
	for (i = 0; i < job->nmachines; i++)
		rig_rail_link_put(atomic_load(&rails->links[i]));
	if (engine)
		rig_rails_close(engine);
}

void rig_rmt_rails_free(struct rig_remote_job *job)
{
	struct rig_rmt_rails *rails = job->rails;

	if (!rails)
		return;
	rig_rmt_rails_free_windows(rails);
	while (rails->made) {
		struct made *made = rails->made;

		rails->made = made->next;
		free(made);
	}
	(void)pthread_mutex_destroy(&rails->list_lock);
	(void)pthread_mutex_destroy(&rails->use_lock);
	(void)pthread_mutex_destroy(&rails->lock);
	free_tables(rails);
	job->rails = NULL;
}
