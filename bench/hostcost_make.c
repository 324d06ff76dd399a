/* SPDX-License-Identifier: MIT */
/* What the operations use. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "hostcost.h"
#include "rt.h"

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

int make_empty(struct bench *b)
{
	return make(b, NULL, 0, 0, 0);
}

/* Under a profile, which is never stopped. */
int make_profiled(struct bench *b)
{
	struct rig_profile *profile;
	int code = make_empty(b);

	return code ? code : rig_profile_start(&b->d, 1, &profile);
}

int make_copy(struct bench *b)
{
	struct rig_work part = {.kind = RIG_COPY};

	part.u.copy.dst.slot = 1;
	part.u.copy.row_bytes = BYTES;
	part.u.copy.rows = 1;
	return make(b, &part, 1, 1, 1);
}

int make_launch(struct bench *b)
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

int make_buffers(struct bench *b)
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
int make_shared(struct bench *b)
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

int make_waits(struct bench *b)
{
	int code = make_empty(b);

	return code ? code : make_others(b, POINTS);
}

/* A buffer that each of the other devices used. */
int make_used(struct bench *b)
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

int make_dropped(struct bench *b)
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

int make_live_10(struct bench *b)
{
	return make_live(b, 10);
}

int make_live_1000(struct bench *b)
{
	return make_live(b, 1000);
}

int make_live_100000(struct bench *b)
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

int make_images_10(struct bench *b)
{
	return make_images(b, 10);
}

int make_images_1000(struct bench *b)
{
	return make_images(b, 1000);
}

int make_images_100000(struct bench *b)
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

int make_devices_10(struct bench *b)
{
	return make_devices(b, 10);
}

int make_devices_1000(struct bench *b)
{
	return make_devices(b, 1000);
}

int make_wait(struct bench *b)
{
	int code = make_empty(b);

	if (!code)
		code = rig_submit(b->s, NULL, NULL, 0, &b->point);
	return code ? code : rig_wait(b->point);
}

int make_device(struct bench *b)
{
	b->kind = RIG_DEVICE;
	return make_empty(b);
}

int make_pinned(struct bench *b)
{
	b->kind = RIG_PINNED;
	return make_empty(b);
}

void *hostcost_by_hand(const struct rig_opener *opener, rig_atomic_u64 **word)
{
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};
	const char *fault;
	void *handle;
	char why[64];

	*word = &rig_words()[RIG_WORD_COUNT - 1];
	if (opener->make(opener->arg, *word, &handle, why, sizeof(why)) ||
	        opener->module->facts(handle, &facts, &fault))
		return NULL;
	return facts.edge;
}

/* Takes what the runtime handed the driver, and the device from the runtime. */
static void take_over(struct bench *b)
{
	const struct rig_part *parts = polled_parts(b->p, &b->nparts);

	if (b->nparts)
		b->parts[0] = parts[0];
	polled_last_run(b->p, &b->direct);
	(void)rig_close(b->d);
}

/* What the runtime handed the driver, handed again by hand: the same parts and run. */
static int direct(struct bench *b, int (*prepare)(struct bench *b))
{
	rig_atomic_u64 *word;
	int code = prepare(b);

	if (!code)
		code = rig_submit(b->s, b->run, NULL, 0, &b->point);
	if (!code)
		code = rig_wait(b->point);
	if (code)
		return code;
	take_over(b);
	b->edge = hostcost_by_hand(polled_opener(b->p), &word);
	if (!b->edge)
		return -ENODEV;
	b->hot = rig_driver_of(b->edge);
	b->value = rig_word_load(word);
	return 0;
}

int floor_empty(struct bench *b)
{
	return direct(b, make_empty);
}

int floor_copy(struct bench *b)
{
	return direct(b, make_copy);
}

int floor_launch(struct bench *b)
{
	return direct(b, make_launch);
}

int floor_buffers(struct bench *b)
{
	return direct(b, make_buffers);
}
