/* SPDX-License-Identifier: MIT */
/*
 * hostcost OPERATION COUNT: runs one operation of the runtime at least COUNT times over the polled driver,
 * whose rings are passive memory, and prints how often it ran and the nanoseconds each.
 * scripts/bench-hostcost runs it under callgrind, which counts only what lies below the functions named op_
 * and floor_; the device's side runs between them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "polled.h"
#include "rt.h"

#define BATCH 32u
#define BYTES 4096u
#define ALLOC UINT64_C(65536)

#define POINTS    24u  /* of other devices */
#define BUFFERS   16u  /* of a run, the most that the polled driver takes */
#define PIPELINED 100u /* values on the queues at once */
#define DROPPED   1000u

struct bench {
	struct polled *p;
	struct rig_device *d;
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point point;
	enum rig_memory kind;
	/* The driver called by hand. */
	void *handle;
	const struct rig_driver *hot;
	void *edge;
	uint64_t value;
	struct rig_part parts[1];
	struct rig_run direct;
	uint32_t nparts;
	/* Other devices and their points. */
	struct other {
		struct polled *p;
		struct rig_device *d;
		char name[16];
	} others[POINTS];
	struct rig_point points[POINTS];
	struct rig_submission *other_s;
	struct rig_run_args *other_run;
	struct rig_buffer *buffer, *dropped[DROPPED];
	struct rig_buffer **live;
};

/* So that the pair is not removed as useless. */
static void *_Atomic kept_object;

static void keep_object(void *object)
{
	atomic_store_explicit(&kept_object, object, memory_order_relaxed);
}

#define OPERATION __attribute__((noinline)) static int

OPERATION op_submit(struct bench *b)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_submit(b->s, b->run, NULL, 0, &b->point);
	return code;
}

OPERATION floor_submit(struct bench *b)
{
	_Alignas(16) uint8_t scratch[RIG_SCRATCH];
	const char *failure = NULL;
	unsigned i;

	for (i = 0; i < BATCH; i++) {
		if (b->hot->room(b->edge, b->parts, b->nparts, 0, &b->direct, scratch) != RIG_FITS)
			return 1;
		if (b->hot->submit(b->edge, ++b->value, b->parts, b->nparts, NULL, 0, &b->direct, scratch,
		            NULL, &failure) != RIG_COMMITTED)
			return 1;
	}
	return 0;
}

OPERATION op_wait(struct bench *b)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_wait(b->point);
	return code;
}

/* One acquire load and a compare. */
OPERATION floor_wait(struct bench *b)
{
	const rig_atomic_u64 *word = &rig_words()[rig_point_slot(b->point)];
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_word_load(word) < rig_point_value(b->point);
	return code;
}

OPERATION op_alloc(struct bench *b)
{
	struct rig_buffer *buffer;
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH && !code; i++) {
		code = rig_buffer_create(b->d, b->kind, ALLOC, &buffer);
		rig_buffer_put(buffer);
	}
	return code;
}

/* An object of the same size from the heap. */
OPERATION floor_alloc(struct bench *b)
{
	unsigned i;

	(void)b;
	for (i = 0; i < BATCH; i++) {
		void *object = calloc(1, 96);

		keep_object(object);
		free(object);
	}
	return 0;
}

/* ---- What grows: run buffers, points ---- */

OPERATION op_waits(struct bench *b)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_submit(b->s, NULL, b->points, POINTS, &b->point);
	return code;
}

/* The same submission, the words looked at by hand. */
OPERATION floor_waits(struct bench *b)
{
	rig_atomic_u64 *words = rig_words();
	unsigned i, k;
	int code = 0;

	for (i = 0; i < BATCH; i++) {
		for (k = 0; k < POINTS; k++)
			code |= rig_word_load(&words[rig_point_slot(b->points[k])]) <
			        rig_point_value(b->points[k]);
		code |= rig_submit(b->s, NULL, NULL, 0, &b->point);
	}
	return code;
}

OPERATION op_wait_buffer(struct bench *b)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_buffer_wait(b->buffer, RIG_WRITE);
	return code;
}

OPERATION floor_wait_buffer(struct bench *b)
{
	rig_atomic_u64 *words = rig_words();
	unsigned i, k;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		for (k = 0; k < POINTS; k++)
			code |= rig_word_load(&words[rig_point_slot(b->points[k])]) <
			        rig_point_value(b->points[k]);
	return code;
}

/* One value after the other, the device's side between them. */
OPERATION op_replay(struct bench *b)
{
	return rig_submit(b->s, b->run, NULL, 0, &b->point);
}

static int replay(struct bench *b, unsigned pipelined)
{
	unsigned done, i;
	int code = 0;

	for (done = 0; done < BATCH * pipelined && !code; done += pipelined) {
		for (i = 0; i < pipelined && !code; i++)
			code = op_replay(b);
		(void)polled_run(b->p, pipelined);
	}
	return code;
}

static int replay_1(struct bench *b)
{
	return replay(b, 1);
}

static int replay_100(struct bench *b)
{
	return replay(b, PIPELINED);
}

/* Puts of buffers that work under way uses, and what takes them back once it is done. */
OPERATION op_put_all(struct bench *b)
{
	unsigned i;

	for (i = 0; i < DROPPED; i++)
		rig_buffer_put(b->dropped[i]);
	return 0;
}

OPERATION op_take_back(struct bench *b)
{
	rig_cache_trim(b->d, UINT64_MAX);
	return 0;
}

/* Each buffer is read by the device itself and, with `foreign`, through a mapping by another. */
static int use_one(struct bench *b, unsigned i, bool foreign)
{
	struct rig_buffer *borrowed = NULL;
	int code = rig_buffer_create(b->d, RIG_DEVICE, BYTES, &b->dropped[i]);

	if (!code)
		code = rig_run_buffer(b->run, 0, b->dropped[i]);
	if (!code)
		code = rig_submit(b->s, b->run, NULL, 0, &b->point);
	if (!code)
		code = rig_run_buffer(b->run, 0, NULL);
	(void)polled_run(b->p, foreign);
	if (code || !foreign)
		return code;
	code = rig_buffer_borrow(b->others[0].d, b->dropped[i], &borrowed);
	if (!code)
		code = rig_run_buffer(b->other_run, 0, borrowed);
	if (!code)
		code = rig_submit(b->other_s, b->other_run, NULL, 0, &b->point);
	if (!code)
		code = rig_run_buffer(b->other_run, 0, NULL);
	rig_buffer_put(borrowed);
	return code;
}

static int drain(struct bench *b, bool foreign)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < DROPPED && !code; i++)
		code = use_one(b, i, foreign);
	if (!code)
		code = op_put_all(b);
	(void)polled_run(b->p, DROPPED);
	if (foreign)
		(void)polled_run(b->others[0].p, DROPPED);
	return code ? code : op_take_back(b);
}

static int drain_own(struct bench *b)
{
	return drain(b, false);
}

static int drain_foreign(struct bench *b)
{
	return drain(b, true);
}

static int make(
        struct bench *b, const struct rig_work *part, uint32_t nparts, uint32_t reads, uint32_t writes)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION,
	        .parts = part,
	        .nparts = nparts,
	        .reads = reads,
	        .writes = writes};
	struct rig_buffer *buffer;
	uint32_t i;
	int code = rig_submission_make(b->d, &description, &b->s);

	if (!code)
		code = rig_run_make(b->s, &b->run);
	for (i = 0; i < reads + writes && !code; i++) {
		code = rig_buffer_create(b->d, RIG_DEVICE, BYTES, &buffer);
		if (!code)
			code = rig_run_buffer(b->run, i, buffer);
		rig_buffer_put(buffer);
	}
	return code;
}

static int make_empty(struct bench *b)
{
	return make(b, NULL, 0, 0, 0);
}

/* Under a profile, which is never stopped. */
static int make_profiled(struct bench *b)
{
	struct rig_profile *profile;
	int code = make_empty(b);

	return code ? code : rig_profile_start(&b->d, 1, &profile);
}

static int make_copy(struct bench *b)
{
	struct rig_work part = {.kind = RIG_COPY};

	part.u.copy.dst.slot = 1;
	part.u.copy.row_bytes = BYTES;
	part.u.copy.rows = 1;
	return make(b, &part, 1, 1, 1);
}

static int make_launch(struct bench *b)
{
	static const struct rig_ref ref;
	struct rig_work part = {.kind = RIG_LAUNCH};
	struct rig_image *image;
	int code = rig_image_load(b->d, POLLED_BINARY, sizeof(POLLED_BINARY), &image);

	if (code)
		return code;
	part.u.launch.image = image;
	part.u.launch.function = "add";
	part.u.launch.params = sizeof(struct polled_add);
	part.u.launch.refs = &ref;
	part.u.launch.nrefs = 1;
	code = make(b, &part, 1, 0, 1);
	rig_image_put(image);
	return code;
}

static int make_run(struct bench *b, uint32_t buffers)
{
	return make(b, NULL, 0, buffers / 2, buffers - buffers / 2);
}

static int make_buffers(struct bench *b)
{
	return make_run(b, BUFFERS);
}

/* Devices with a value each that is reached; devices reach each other's memory. */
static int make_others(struct bench *b, unsigned n)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct rig_submission *s;
	unsigned i;
	int code = 0;

	for (i = 0; i < n && !code; i++) {
		struct other *o = &b->others[i];
		struct polled_options options = {
		        .name = o->name, .peers = true, .capacity = DROPPED, .completion = RIG_STORE};

		(void)snprintf(o->name, sizeof(o->name), "P%u", i + 1);
		o->p = polled_new(&options);
		code = rig_open(polled_opener(o->p), &o->d);
		if (!code)
			code = rig_submission_make(o->d, &description, &s);
		if (!code)
			code = rig_submit(s, NULL, NULL, 0, &b->points[i]);
		if (!code)
			code = rig_wait(b->points[i]);
		rig_submission_put(s);
	}
	return code;
}

/* The run's buffers, each also on another device, which used it. */
static int make_shared(struct bench *b)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION, .reads = 1};
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_buffer *borrowed;
	unsigned i;
	int code = make_buffers(b);

	if (!code)
		code = make_others(b, 1);
	if (!code)
		code = rig_submission_make(b->others[0].d, &description, &s);
	if (!code)
		code = rig_run_make(s, &run);
	for (i = 0; i < BUFFERS && !code; i++) {
		code = rig_buffer_borrow(b->others[0].d, b->run->buffers[i], &borrowed);
		if (!code)
			code = rig_run_buffer(run, 0, borrowed);
		if (!code)
			code = rig_submit(s, run, NULL, 0, &b->point);
		if (!code)
			code = rig_wait(b->point);
	}
	return code;
}

static int make_waits(struct bench *b)
{
	int code = make_empty(b);

	return code ? code : make_others(b, POINTS);
}

/* A buffer that each of the other devices used. */
static int make_used(struct bench *b)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION, .reads = 1};
	unsigned i;
	int code = make_waits(b);

	if (!code)
		code = rig_buffer_create(b->d, RIG_DEVICE, BYTES, &b->buffer);
	for (i = 0; i < POINTS && !code; i++) {
		struct rig_submission *s;
		struct rig_run_args *run;
		struct rig_buffer *borrowed;

		code = rig_buffer_borrow(b->others[i].d, b->buffer, &borrowed);
		if (!code)
			code = rig_submission_make(b->others[i].d, &description, &s);
		if (!code)
			code = rig_run_make(s, &run);
		if (!code)
			code = rig_run_buffer(run, 0, borrowed);
		if (!code)
			code = rig_submit(s, run, NULL, 0, &b->points[i]);
		if (!code)
			code = rig_wait(b->points[i]);
	}
	return code;
}

static int make_dropped(struct bench *b)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION, .reads = 1};
	int code = make(b, NULL, 0, 1, 0);

	if (!code)
		code = make_others(b, 1);
	if (!code)
		code = rig_submission_make(b->others[0].d, &description, &b->other_s);
	return code ? code : rig_run_make(b->other_s, &b->other_run);
}

/* Buffers that live meanwhile, of several sizes, each the run's in turn. */
static int make_live(struct bench *b, unsigned n)
{
	unsigned i;
	int code = make_run(b, 2);

	b->kind = RIG_DEVICE;
	b->live = calloc(n, sizeof(struct rig_buffer *));
	for (i = 0; i < n && !code && b->live; i++) {
		code = rig_buffer_create(b->d, RIG_DEVICE, BYTES * (1 + i % 40), &b->live[i]);
		if (!code && i % 10 == 0)
			code = rig_run_buffer(b->run, i / 10 % 2, b->live[i]);
		if (!code && i % 10 == 0)
			code = rig_submit(b->s, b->run, NULL, 0, &b->point);
		if (!code && i % 10 == 0)
			(void)polled_run(b->p, 1);
	}
	return code;
}

static int make_live_10(struct bench *b)
{
	return make_live(b, 10);
}

static int make_live_1000(struct bench *b)
{
	return make_live(b, 1000);
}

static int make_live_100000(struct bench *b)
{
	return make_live(b, 100000);
}

/* Images, and submissions of each, that live meanwhile. */
static int make_images(struct bench *b, unsigned n)
{
	struct rig_image *image;
	unsigned i;
	int code = make_launch(b);

	for (i = 0; i < n && !code; i++)
		code = rig_image_load(b->d, POLLED_BINARY, sizeof(POLLED_BINARY), &image);
	return code;
}

static int make_images_10(struct bench *b)
{
	return make_images(b, 10);
}

static int make_images_1000(struct bench *b)
{
	return make_images(b, 1000);
}

static int make_images_100000(struct bench *b)
{
	return make_images(b, 100000);
}

/* Other devices that are open meanwhile. */
static int make_devices(struct bench *b, unsigned n)
{
	struct rig_device *d;
	char name[16];
	unsigned i;
	int code = make_run(b, 2);

	b->kind = RIG_DEVICE;
	for (i = 0; i < n && !code; i++) {
		struct polled_options options = {.name = name, .capacity = 1};

		(void)snprintf(name, sizeof(name), "D%u", i);
		code = rig_open(polled_opener(polled_new(&options)), &d);
	}
	return code;
}

static int make_devices_10(struct bench *b)
{
	return make_devices(b, 10);
}

static int make_devices_1000(struct bench *b)
{
	return make_devices(b, 1000);
}

static int make_wait(struct bench *b)
{
	int code = make_empty(b);

	if (!code)
		code = rig_submit(b->s, NULL, NULL, 0, &b->point);
	return code ? code : rig_wait(b->point);
}

static int make_device(struct bench *b)
{
	b->kind = RIG_DEVICE;
	return make_empty(b);
}

static int make_pinned(struct bench *b)
{
	b->kind = RIG_PINNED;
	return make_empty(b);
}

/* What the runtime handed the driver, handed again by hand: the same parts and run. */
static int direct(struct bench *b, int (*prepare)(struct bench *b))
{
	const struct rig_opener *opener = polled_opener(b->p);
	rig_atomic_u64 *word;
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};
	const struct rig_part *parts;
	const char *fault;
	char why[64];
	int code = prepare(b);

	if (!code)
		code = rig_submit(b->s, b->run, NULL, 0, &b->point);
	if (!code)
		code = rig_wait(b->point);
	if (code)
		return code;
	parts = polled_parts(b->p, &b->nparts);
	if (b->nparts)
		b->parts[0] = parts[0];
	polled_last_run(b->p, &b->direct);
	(void)rig_close(b->d);
	word = &rig_words()[RIG_WORD_COUNT - 1];
	code = opener->make(opener->arg, word, &b->handle, why, sizeof(why));
	if (!code)
		code = opener->module->facts(b->handle, &facts, &fault);
	b->edge = facts.edge;
	b->hot = rig_driver_of(facts.edge);
	b->value = rig_word_load(word);
	return code;
}

static int floor_empty(struct bench *b)
{
	return direct(b, make_empty);
}

static int floor_copy(struct bench *b)
{
	return direct(b, make_copy);
}

static int floor_launch(struct bench *b)
{
	return direct(b, make_launch);
}

static int floor_buffers(struct bench *b)
{
	return direct(b, make_buffers);
}

/* ---- Two threads on one device, in time: a ring whose word is raised at once, so that it never fills ----
   */

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
static int open_by_hand(void)
{
	static const struct polled_options options = {.name = "P1"};
	const struct rig_opener *opener = polled_opener(polled_new(&options));
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};
	struct ring *r = &rings[1];
	const char *fault;
	void *handle;
	char why[64];
	int code;

	r->word = &rig_words()[RIG_WORD_COUNT - 1];
	code = opener->make(opener->arg, r->word, &handle, why, sizeof(why));
	if (!code)
		code = opener->module->facts(handle, &facts, &fault);
	if (!code)
		(void)put_before(r, facts.edge);
	return code;
}

/* Prints the least of some rounds: rig and the bare lock with one thread, and with two. */
static int threads(void)
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
	if (code || open_by_hand())
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

static const struct operation {
	const char *name;
	int (*prepare)(struct bench *b);
	int (*run)(struct bench *b);
	unsigned per; /* operations a run */
} operations[] = {
        {"empty", make_empty, op_submit, BATCH},
        {"empty-floor", floor_empty, floor_submit, BATCH},
        {"profiled", make_profiled, op_submit, BATCH},
        {"launch", make_launch, op_submit, BATCH},
        {"launch-floor", floor_launch, floor_submit, BATCH},
        {"copy", make_copy, op_submit, BATCH},
        {"copy-floor", floor_copy, floor_submit, BATCH},
        {"wait", make_wait, op_wait, BATCH},
        {"wait-floor", make_wait, floor_wait, BATCH},
        {"alloc-device", make_device, op_alloc, BATCH},
        {"alloc-device-floor", make_device, floor_alloc, BATCH},
        {"alloc-pinned", make_pinned, op_alloc, BATCH},
        {"alloc-pinned-floor", make_pinned, floor_alloc, BATCH},
        {"buffers", make_buffers, op_submit, BATCH},
        {"buffers-shared", make_shared, op_submit, BATCH},
        {"buffers-floor", floor_buffers, floor_submit, BATCH},
        {"waits", make_waits, op_waits, BATCH},
        {"waits-floor", make_waits, floor_waits, BATCH},
        {"wait-buffer", make_used, op_wait_buffer, BATCH},
        {"wait-buffer-floor", make_used, floor_wait_buffer, BATCH},
        {"replay-1", make_copy, replay_1, BATCH},
        {"replay-100", make_copy, replay_100, BATCH *PIPELINED},
        {"drain", make_dropped, drain_own, DROPPED},
        {"drain-foreign", make_dropped, drain_foreign, DROPPED},
        {"submit-10", make_live_10, op_submit, BATCH},
        {"submit-1000", make_live_1000, op_submit, BATCH},
        {"submit-100000", make_live_100000, op_submit, BATCH},
        {"alloc-10", make_live_10, op_alloc, BATCH},
        {"alloc-1000", make_live_1000, op_alloc, BATCH},
        {"alloc-100000", make_live_100000, op_alloc, BATCH},
        {"devices-10", make_devices_10, op_submit, BATCH},
        {"devices-1000", make_devices_1000, op_submit, BATCH},
        {"devices-alloc-10", make_devices_10, op_alloc, BATCH},
        {"devices-alloc-1000", make_devices_1000, op_alloc, BATCH},
        {"launch-10", make_images_10, op_submit, BATCH},
        {"launch-1000", make_images_1000, op_submit, BATCH},
        {"launch-100000", make_images_100000, op_submit, BATCH},
};

static int run(const struct operation *op, unsigned long count)
{
	struct polled_options options = {.name = "P0",
	        .capacity = 1024,
	        .peers = true,
	        .times = true,
	        .waits = {true, true},
	        .completion = RIG_STORE};
	static struct bench b;
	unsigned long done;
	uint64_t start, spent = 0;
	int code;

	b.p = polled_new(&options);
	code = rig_open(polled_opener(b.p), &b.d);

	if (!code)
		code = op->prepare(&b);
	for (done = 0; done < count && !code; done += op->per) {
		start = rig_now_ns();
		code = op->run(&b);
		spent += rig_now_ns() - start;
		(void)polled_run(b.p, BATCH);
	}
	if (code || polled_breach(b.p)) {
		(void)fprintf(
		        stderr, "%s: %s\n", op->name, polled_breach(b.p) ? polled_breach(b.p) : rig_error());
		return 1;
	}
	(void)printf("%lu %.1f\n", done, (double)spent / (double)done);
	return 0;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 2 && strcmp(argv[1], "threads") == 0)
		return threads();
	if (argc != 3) {
		(void)fprintf(stderr, "usage: %s OPERATION COUNT, or %s threads\n", argv[0], argv[0]);
		return 2;
	}
	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(operations[i].name, argv[1]) == 0)
			return run(&operations[i], strtoul(argv[2], NULL, 10));
	(void)fprintf(stderr, "%s: no such operation\n", argv[1]);
	return 2;
}
