/* SPDX-License-Identifier: MIT */
/*
 * hostcost OPERATION COUNT: runs one operation of the runtime COUNT times over the polled driver, whose rings
 * are passive memory. scripts/bench-hostcost runs it under callgrind, which counts only what lies below the
 * functions named op_ and floor_; the device's side runs between them.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "polled.h"
#include "rig.h"

#define BATCH 32u
#define BYTES 4096u
#define ALLOC UINT64_C(65536)

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

static const struct operation {
	const char *name;
	int (*prepare)(struct bench *b);
	int (*run)(struct bench *b);
} operations[] = {
        {"empty", make_empty, op_submit},
        {"empty-floor", floor_empty, floor_submit},
        {"launch", make_launch, op_submit},
        {"launch-floor", floor_launch, floor_submit},
        {"copy", make_copy, op_submit},
        {"copy-floor", floor_copy, floor_submit},
        {"wait", make_wait, op_wait},
        {"wait-floor", make_wait, floor_wait},
        {"alloc-device", make_device, op_alloc},
        {"alloc-device-floor", make_device, floor_alloc},
        {"alloc-pinned", make_pinned, op_alloc},
        {"alloc-pinned-floor", make_pinned, floor_alloc},
};

static int run(const struct operation *op, unsigned long count)
{
	struct polled_options options = {.name = "P0"};
	struct bench b = {.p = polled_new(&options)};
	unsigned long done;
	uint64_t start, spent = 0;
	int code = rig_open(polled_opener(b.p), &b.d);

	if (!code)
		code = op->prepare(&b);
	for (done = 0; done < count && !code; done += BATCH) {
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

	if (argc != 3) {
		(void)fprintf(stderr, "usage: %s OPERATION COUNT\n", argv[0]);
		return 2;
	}
	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(operations[i].name, argv[1]) == 0)
			return run(&operations[i], strtoul(argv[2], NULL, 10));
	(void)fprintf(stderr, "%s: no such operation\n", argv[1]);
	return 2;
}
