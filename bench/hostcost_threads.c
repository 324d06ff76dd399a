/* SPDX-License-Identifier: MIT */
/* Two threads on one device, in time: a ring whose word is raised at once, so that it never fills. */
#include <pthread.h>
#include <stdio.h>

#include "hostcost.h"
#include "rt.h"

#define SUBMITS 100000u
#define ROUNDS  9u

/* Before the polled driver. */
static struct ring {
	const struct rig_driver *hot; /* first: what facts.edge points to */
	const struct rig_driver *below;
	void *inner;
	struct rig_rt_lock lock; /* by hand */
	uint64_t value;
	rig_atomic_u64 *word;
} rings[2];

static int ring_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	struct ring *r = self;

	return r->below->room(r->inner, parts, nparts, nwaits, run, scratch);
}

static int ring_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	struct ring *r = self;
	int answer =
	        r->below->submit(r->inner, value, parts, nparts, waits, nwaits, run, scratch, times, failure);

	rig_word_raise(r->word, value);
	return answer;
}

static const struct rig_driver ring_hot = {RIG_EDGE_VERSION, ring_room, ring_submit, NULL, NULL, NULL};

static void *put_before(struct ring *r, void *edge)
{
	r->hot = &ring_hot;
	r->inner = edge;
	r->below = rig_driver_of(edge);
	return r;
}

static void use_ring(struct rig_facts *facts)
{
	facts->edge = put_before(&rings[0], facts->edge);
}

/* Each thread has a submission of its own. */
static void *submit_many(void *arg)
{
	struct bench b = {.d = arg};
	struct rig_point point;
	unsigned i;

	if (make_empty(&b))
		return NULL;
	for (i = 0; i < SUBMITS; i++)
		(void)rig_submit(b.s, b.run, NULL, 0, &point);
	rig_run_put(b.run);
	rig_submission_put(b.s);
	return NULL;
}

static void *submit_by_hand(void *arg)
{
	static const struct rig_run no_run;
	_Alignas(16) uint8_t scratch[RIG_SCRATCH];
	struct ring *r = arg;
	const char *failure;
	unsigned i;

	for (i = 0; i < SUBMITS; i++) {
		rig_rt_lock_raw(&r->lock);
		if (r->hot->room(r, NULL, 0, 0, &no_run, scratch) == RIG_FITS)
			(void)r->hot->submit(
			        r, ++r->value, NULL, 0, NULL, 0, &no_run, scratch, NULL, &failure);
		rig_rt_unlock_raw(&r->lock);
	}
	return NULL;
}

/* Nanoseconds of a submit with so many threads at it. */
static double time_threads(void *(*run)(void *arg), void *arg, unsigned n)
{
	uint64_t start = rig_now_ns();
	pthread_t other;

	if (n == 2 && pthread_create(&other, NULL, run, arg))
		return 0;
	(void)run(arg);
	if (n == 2)
		(void)pthread_join(other, NULL);
	return (double)(rig_now_ns() - start) / (double)(n * SUBMITS);
}

static void keep_least(double *least, double ns)
{
	if (*least == 0 || ns < *least)
		*least = ns;
}

/* A second ring, which the runtime does not know. */
static bool open_by_hand(void)
{
	static const struct polled_options options = {.name = "P1"};
	struct ring *r = &rings[1];
	void *edge = hostcost_by_hand(polled_opener(polled_new(&options)), &r->word);

	if (!edge)
		return false;
	(void)put_before(r, edge);
	return true;
}

/* Rig and the bare lock with one thread, and with two. */
int hostcost_threads(void)
{
	static const struct polled_options options = {.name = "P0"};
	struct bench b = {.p = polled_new(&options)};
	double rig[2] = {0}, hand[2] = {0};
	unsigned i, n;
	int code;

	polled_edit_facts(b.p, use_ring);
	code = rig_open(polled_opener(b.p), &b.d);
	if (!code)
		code = make_empty(&b);
	if (code || !open_by_hand())
		return 1;
	/* The first free slot. */
	rings[0].word = &rig_words()[1];
	for (i = 0; i < ROUNDS; i++)
		for (n = 1; n <= 2; n++) {
			keep_least(&rig[n - 1], time_threads(submit_many, b.d, n));
			keep_least(&hand[n - 1], time_threads(submit_by_hand, &rings[1], n));
		}
	(void)printf("%.1f %.1f %.1f %.1f\n", rig[0], hand[0], rig[1], hand[1]);
	return polled_last(b.p) == rig_word_load(rings[0].word) ? 0 : 1;
}
