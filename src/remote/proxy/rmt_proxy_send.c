/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "cond.h"
#include "rmt_proxy.h"

/* Between two looks at words that nothing here announces; then doubling. */
#define LOOK_NS  (50 * RIG_NS_PER_US)
#define LOOKS_NS RIG_NS_PER_MS

/* ---- Whether a value may go ---- */

/* Whether it is a value of a proxy of the same machine that is on its way, and then whose. */
static bool is_siblings(struct proxy *p, const struct rig_wait *wait, uint32_t *id)
{
	bool sent = false;
	uint32_t i;

	(void)pthread_mutex_lock(&p->m->lock);
	for (i = 0; i < RIG_RMT_DEVICES && !sent; i++) {
		/* All of a machine's devices here are proxies. */
		struct rig_rmt_device *d = p->m->devices[i];
		const struct proxy *other = d ? rig_rmt_proxy_of(d) : NULL;

		sent = other && other != p && other->word == wait->word &&
		       atomic_load_explicit(&other->sent, memory_order_acquire) >= wait->value;
		*id = i;
	}
	(void)pthread_mutex_unlock(&p->m->lock);
	return sent;
}

static bool has_sources(const struct value *v)
{
	uint32_t i;

	for (i = 0; i < v->nlocals; i++)
		if (v->locals[i].in)
			return true;
	return false;
}

/* What remains of the waits goes with the value, for the queue there. A sibling's value must be on its way
   before: then every message follows those that it waits for. */
static bool waits_are_over(struct proxy *p, struct value *v)
{
	bool sources = has_sources(v);
	uint32_t i;

	v->work.nwaits = 0;
	for (i = 0; i < v->nwaits; i++) {
		const struct rig_wait *wait = &v->waits[i];
		uint32_t id;

		if (rig_word_load(wait->word) >= wait->value)
			continue;
		/* Its bytes are read here, or by another agent, at once: what it follows must be done. */
		if (v->nforeigns || sources || !is_siblings(p, wait, &id))
			return false;
		v->work.waits[v->work.nwaits++] = (struct rig_rmt_wait){id, wait->value};
	}
	return true;
}

/* Whether what `early` brings must be here before the later value is sent: it is taken from here then, or
   comes another way, and so perhaps sooner. */
static bool comes_first(const struct local *early, const struct local *late)
{
	return !early->in && rig_rmt_locals_overlap(early, late) &&
	       (late->in || rig_rmt_local_is_whole(early) || rig_rmt_local_is_whole(late));
}

/* With the lock. */
static bool awaits_bytes(const struct proxy *p, const struct value *v)
{
	const struct value *f;
	uint32_t i, k;

	for (f = p->flight; f; f = f->next)
		for (i = 0; i < f->nlocals; i++)
			for (k = 0; k < v->nlocals; k++)
				if (comes_first(&f->locals[i], &v->locals[k]))
					return true;
	return false;
}

/* ---- Sending ---- */

struct stream {
	struct proxy *p;
	const struct value *v;
	uint64_t at; /* of the value's incoming bytes */
	uint8_t *buffer;
	size_t used;
};

static int flush(struct stream *s)
{
	struct rig_rmt_out head = {0};
	int err;

	if (!s->used)
		return 0;
	rig_rmt_put32(&head, s->p->id);
	rig_rmt_put64(&head, s->v->work.value);
	rig_rmt_put64(&head, s->at);
	err = rig_rmt_send(s->p->m, RIG_RMT_DATA, &head, s->buffer, s->used);
	rig_rmt_out_free(&head);
	s->at += s->used;
	s->used = 0;
	return err;
}

static int push(struct stream *s, const uint8_t *bytes, uint64_t n)
{
	int err = 0;

	while (n && !err) {
		size_t room = RIG_RMT_DATA_BYTES - s->used, take = n < room ? (size_t)n : room;

		memcpy(s->buffer + s->used, bytes, take);
		s->used += take;
		bytes += take;
		n -= take;
		if (s->used == RIG_RMT_DATA_BYTES)
			err = flush(s);
	}
	return err;
}

/* The local sources' bytes, part after part; the place among them of what goes otherwise is left
   out. */
static int send_locals(struct proxy *p, const struct value *v)
{
	struct stream s = {.p = p, .v = v, .buffer = malloc(RIG_RMT_DATA_BYTES)};
	uint32_t part, next = 0;
	uint64_t row;
	int err = s.buffer ? 0 : rig_error_set(-ENOMEM, "no host memory for bytes on their way");

	for (part = 0; part < v->work.nparts && !err; part++) {
		const struct rig_rmt_part *w = &v->work.parts[part];

		if (w->kind != RIG_COPY || w->fill || w->src.where == RIG_RMT_HERE)
			continue;
		if (w->src.where != RIG_RMT_LOCAL) {
			err = flush(&s);
			s.at += w->rows * w->row_bytes;
			continue;
		}
		while (v->locals[next].part != part || !v->locals[next].in)
			next++;
		for (row = 0; row < w->rows && !err; row++)
			err = push(&s, v->locals[next].at + row * v->locals[next].pitch, w->row_bytes);
		/* The agent takes a part's bytes in messages of their own. */
		if (!err)
			err = flush(&s);
	}
	free(s.buffer);
	return err;
}

static int send_fetches(const struct value *v)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < v->nforeigns && !err; i++) {
		struct rig_rmt_out out = {0};

		rig_rmt_fetch_put(&out, &v->foreigns[i].fetch);
		err = rig_rmt_send(v->foreigns[i].machine, RIG_RMT_FETCH, &out, NULL, 0);
		rig_rmt_out_free(&out);
	}
	return err;
}

static int send_work(struct proxy *p, const struct rig_rmt_work *work)
{
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_work_put(&out, work);
	err = rig_rmt_send(p->m, RIG_RMT_SUBMIT, &out, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

/* Each piece in a message of its own. */
static int send_pieces(struct proxy *p, const struct value *v)
{
	struct rig_rmt_work work = v->work;
	int err = 0;

	work.nparts = 1;
	for (; work.first < v->work.nparts && !err; work.first++) {
		work.parts = &v->work.parts[work.first];
		work.partial = work.first + 1 < v->work.nparts;
		err = send_work(p, &work);
	}
	return err;
}

/* A failure is the job's, and so every proxy's. */
static void send_value(struct proxy *p, struct value *v)
{
	int err;

	rig_rmt_value_wrap(p, v);
	err = send_fetches(v);
	if (!err)
		err = rig_rmt_value_is_in_pieces(v) ? send_pieces(p, v) : send_work(p, &v->work);
	if (!err && has_sources(v))
		err = send_locals(p, v);
	if (err)
		rig_rmt_job_fail(
		        p->m->job, "machine %s: work could not be sent: %s", p->m->name, rig_error());
}

/* Takes the first value out of the queue if it may go now, into the flight. With the lock. */
static struct value *next_ready(struct proxy *p)
{
	struct value *v = p->queue;
	bool ready;

	if (!v || p->quit || p->faulted || awaits_bytes(p, v))
		return NULL;
	/* `sending` is ours, so the value stays the first. */
	(void)pthread_mutex_unlock(&p->lock);
	ready = waits_are_over(p, v);
	(void)pthread_mutex_lock(&p->lock);
	if (!ready || p->quit || p->faulted)
		return NULL;
	p->queue = v->next;
	if (!p->queue)
		p->queue_tail = &p->queue;
	v->next = NULL;
	*p->flight_tail = v;
	p->flight_tail = &v->next;
	v->busy = true;
	return v;
}

/* With the lock. */
static void send_ready(struct proxy *p)
{
	struct value *v;

	p->sending = true;
	while ((v = next_ready(p))) {
		uint64_t number = v->work.value;

		(void)pthread_mutex_unlock(&p->lock);
		send_value(p, v);
		atomic_store_explicit(&p->sent, number, memory_order_release);
		(void)pthread_mutex_lock(&p->lock);
		v->busy = false;
		if (v->done)
			rig_rmt_value_end(p, v);
	}
	p->sending = false;
}

int rig_rmt_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	struct proxy *p = self;
	struct value *v = rig_rmt_value_make(p, value, parts, nparts, run);

	(void)scratch;
	if (!v || rig_rmt_value_keep(p, v)) {
		rig_rmt_value_free(v);
		*failure = "no host memory for work on its way";
		return RIG_FAILED;
	}
	if (nwaits)
		memcpy(v->waits, waits, nwaits * sizeof(*waits));
	v->nwaits = nwaits;
	v->times = times;
	v->work.timed = times != NULL;
	v->handed = rig_now_ns();
	(void)pthread_mutex_lock(&p->lock);
	p->submitted = value;
	if (p->faulted || p->stopped) {
		(void)pthread_mutex_unlock(&p->lock);
		rig_rmt_value_free(v);
		*failure = p->reason;
		return RIG_FAILED;
	}
	*p->queue_tail = v;
	p->queue_tail = &v->next;
	p->nvalues++;
	p->bytes += v->local_bytes;
	if (!p->sending)
		send_ready(p);
	if (p->queue)
		(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
	return RIG_COMMITTED;
}

/* With the lock. */
static void nap(struct proxy *p, uint64_t ns)
{
	(void)rig_cond_wait(&p->moved, &p->lock, ns);
}

/* With the lock, which is given up meanwhile. */
static void free_spent(struct proxy *p)
{
	struct value *spent = p->spent;

	p->spent = NULL;
	(void)pthread_mutex_unlock(&p->lock);
	rig_rmt_values_free(spent);
	(void)pthread_mutex_lock(&p->lock);
}

void *rig_rmt_worker_run(void *proxy)
{
	struct proxy *p = proxy;
	uint64_t look = LOOK_NS;

	(void)pthread_mutex_lock(&p->lock);
	while (!p->quit) {
		const struct value *first = p->queue, *held = rig_rmt_proxy_is_held(p) ? p->flight : NULL;
		bool sends = first && !p->sending && !p->faulted;

		if (p->spent) {
			free_spent(p);
			continue;
		}
		if (!sends && !held) {
			(void)pthread_cond_wait(&p->moved, &p->lock);
			look = LOOK_NS;
			continue;
		}
		if (sends)
			send_ready(p);
		if (held)
			rig_rmt_proxy_advance(p);
		if (p->queue == first && (!held || p->flight == held) && !p->quit) {
			nap(p, look);
			look = look < LOOKS_NS ? 2 * look : look;
		} else {
			look = LOOK_NS;
		}
	}
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}
