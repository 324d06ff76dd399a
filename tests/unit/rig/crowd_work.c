/* SPDX-License-Identifier: MIT */
/* Work: what a crowd's thread submits. */
#include <stdlib.h>

#include "crowd.h"

#define QUEUES (1u << CROWD_PLAIN | 1u << CROWD_BLOCK | 1u << CROWD_LOST | 1u << CROWD_HOST)
#define BOARD  (1u << CROWD_PLAIN | 1u << CROWD_BLOCK | 1u << CROWD_LOST)
#define ADDS   16u

/* ---- Points ---- */

static struct mark *some_mark(struct crowd *t)
{
	return t->nmarks ? &t->marks[crowd_random(t, t->nmarks)] : NULL;
}

static void op_reached(struct crowd *t)
{
	struct mark *mark = some_mark(t);

	if (mark)
		crowd_look(t, mark, false);
}

static void op_wait(struct crowd *t)
{
	struct mark *mark = some_mark(t);

	if (mark)
		crowd_look(t, mark, true);
}

static void op_wait_device(struct crowd *t)
{
	struct rig_device *d;
	struct opening *o = crowd_take(t, (enum crowd_seat)crowd_random(t, CROWD_SEATS), &d);
	uint64_t value = rig_submitted(d);

	/* What is reached before a loss answers so after it. */
	if (crowd_ok(t, rig_wait_device(d, value), "rig_wait_device", &o, 1) && !rig_lost(d, NULL) &&
	        rig_signaled(d) < value && !atomic_load(&o->ending))
		(void)crowd_wrong(t, "a value that was waited for is not signaled");
	if (rig_wait_device(d, value + (UINT64_C(1) << 40)) != -EINVAL)
		(void)crowd_wrong(t, "a value of the future can be waited for");
	rig_device_put(d);
}

/* ---- Submitting ---- */

static void count_unkept(void *object)
{
	struct world *w = object;

	atomic_fetch_add(&w->unkept, 1);
}

static bool keep(struct crowd *t, struct rig_submission *s)
{
	atomic_fetch_add(&t->w->kept, 1);
	if (!rig_submission_keep(s, t->w, count_unkept))
		return true;
	return crowd_wrong(t, "keep: %s", rig_error());
}

/*
 * Submits for a cell, perhaps after one of the thread's points. True: the cell's bytes are what the work
 * makes of them. Otherwise nothing was submitted, or all of it is lost.
 */
static bool submit(struct crowd *t, struct cell *cell, struct rig_submission *s, struct rig_run_args *run)
{
	struct mark *mark = crowd_random(t, 2) ? some_mark(t) : NULL;
	struct opening *o = cell->deps[0];
	uint64_t before = atomic_load(&o->latest);
	struct rig_point point;
	int code;

	if (mark && !crowd_depend(t, cell, mark->deps, mark->ndeps))
		return false;
	code = rig_submit(s, run, mark ? &mark->point : NULL, mark ? 1 : 0, &point);
	if (!crowd_cell_ok(t, cell, code, "rig_submit") || !crowd_value(t, o, before, point))
		return false;
	crowd_mark(t, point, cell->deps, cell->ndeps);
	return true;
}

static bool describe(struct crowd *t, struct cell *cell, struct rig_work *parts, uint32_t nparts,
        uint32_t reads, uint32_t writes, struct rig_submission **s)
{
	struct rig_fixed fixed = {cell->buffer, RIG_WRITE};
	struct rig_description description = {.version = RIG_EDGE_VERSION,
	        .parts = parts,
	        .nparts = nparts,
	        .reads = reads,
	        .writes = writes,
	        .fixed = &fixed,
	        .nfixed = reads + writes ? 0 : 1};
	int code = rig_submission_make(rig_buffer_device(cell->buffer), &description, s);

	return crowd_cell_ok(t, cell, code, "rig_submission_make") && keep(t, *s);
}

/* A range of the cell becomes one byte; on a board after words. */
static void op_fill(struct crowd *t)
{
	static const uint32_t word = 7;
	struct rig_work parts[2] = {{.kind = RIG_COPY}, {.kind = RIG_WORDS, .u.words = {&word, 1}}};
	struct cell *cell = crowd_cell(t, QUEUES);
	struct rig_submission *s;
	uint32_t from = crowd_random(t, CROWD_BYTES), n = 1 + crowd_random(t, CROWD_BYTES - from);
	uint8_t byte = (uint8_t)crowd_random(t, 256);

	if (!cell)
		return;
	parts[0].u.copy = (struct rig_copy_work){.dst = {RIG_FIXED, cell->buffer, from, 0},
	        .row_bytes = n,
	        .rows = 1,
	        .fill = true,
	        .byte = byte};
	if (!describe(t, cell, parts, BOARD & 1u << cell->deps[0]->seat ? 2 : 1, 0, 0, &s))
		return;
	if (submit(t, cell, s, NULL))
		memset(cell->bytes + from, byte, n);
	rig_submission_put(rig_submission_get(s));
	rig_submission_put(s);
}

static bool set_run(struct crowd *t, struct cell *cell, struct rig_run_args *run, struct rig_buffer *from)
{
	return crowd_cell_ok(t, cell, rig_run_buffer(run, 0, from), "rig_run_buffer") &&
	       crowd_cell_ok(t, cell, rig_run_buffer(run, 1, cell->buffer), "rig_run_buffer");
}

static void copy_by_run(struct crowd *t, struct cell *cell, struct rig_submission *s, struct cell *src)
{
	struct rig_run_args *run;

	if (!crowd_cell_ok(t, cell, rig_run_make(s, &run), "rig_run_make"))
		return;
	if (set_run(t, cell, run, src->buffer) && submit(t, cell, s, run) &&
	        /* The same run again, at once. */
	        submit(t, cell, s, run))
		memcpy(cell->bytes, src->bytes, CROWD_BYTES);
	else
		crowd_cell_drop(cell);
	rig_run_put(run);
}

static void op_copy_work(struct crowd *t)
{
	struct cell *cell = crowd_cell(t, QUEUES), *src = crowd_cell(t, QUEUES);
	struct rig_work part = {.kind = RIG_COPY};
	struct rig_submission *s;

	if (!cell || !src || cell == src || !cell->buffer || cell->deps[0] != src->deps[0] ||
	        !crowd_depend(t, cell, src->deps, src->ndeps))
		return;
	part.u.copy = (struct rig_copy_work){
	        .dst = {1, NULL, 0, 0}, .src = {0, NULL, 0, 0}, .row_bytes = CROWD_BYTES, .rows = 1};
	if (!describe(t, cell, &part, 1, 1, 1, &s))
		return;
	copy_by_run(t, cell, s, src);
	/* Its own wait may have brought others. */
	if (cell->buffer)
		(void)crowd_depend(t, src, cell->deps, cell->ndeps);
	rig_submission_put(s);
}

/* ---- Launches ---- */

static bool load(struct crowd *t, struct cell *cell, struct rig_image **image)
{
	struct rig_device *d = rig_buffer_device(cell->buffer);
	struct rig_entry entry;
	int code = crowd_random(t, 2) ? rig_image_load(d, POLLED_BINARY, sizeof(POLLED_BINARY), image)
	                              : rig_image_load_file(d, t->w->binary, image);

	if (!crowd_cell_ok(t, cell, code, "rig_image_load"))
		return false;
	if (crowd_cell_ok(t, cell, rig_image_entry(*image, "add", &entry), "rig_image_entry"))
		return true;
	rig_image_put(*image);
	return false;
}

static bool set_launch(struct crowd *t, struct cell *cell, struct rig_run_args *run, uint32_t add)
{
	return crowd_cell_ok(t, cell, rig_run_grid(run, 0, 2, 1, 1), "rig_run_grid") &&
	       crowd_cell_ok(t, cell, rig_run_group(run, 0, ADDS / 2, 1, 1), "rig_run_group") &&
	       crowd_cell_ok(t, cell, rig_run_shared(run, 0, 64), "rig_run_shared") &&
	       crowd_cell_ok(t, cell,
	               rig_run_params(run, 0, offsetof(struct polled_add, add), &add, sizeof(add)),
	               "rig_run_params") &&
	       crowd_cell_ok(t, cell, rig_run_buffer(run, 0, cell->buffer), "rig_run_buffer");
}

static void add_to_model(struct cell *cell, uint32_t add)
{
	uint32_t words[ADDS], i;

	memcpy(words, cell->bytes, sizeof(words));
	for (i = 0; i < ADDS; i++)
		words[i] += add;
	memcpy(cell->bytes, words, sizeof(words));
}

static void launch_run(struct crowd *t, struct cell *cell, struct rig_submission *s)
{
	uint32_t add = crowd_random(t, 1000);
	struct rig_run_args *run;

	if (!crowd_cell_ok(t, cell, rig_run_make(s, &run), "rig_run_make"))
		return;
	if (set_launch(t, cell, run, add) && submit(t, cell, s, run))
		add_to_model(cell, add);
	rig_run_put(run);
}

static void op_launch(struct crowd *t)
{
	struct rig_ref ref = {.at = offsetof(struct polled_add, dst), .slot = 0};
	struct rig_work part = {.kind = RIG_LAUNCH};
	struct cell *cell = crowd_cell(t, BOARD);
	struct rig_submission *s;
	struct rig_image *image;

	if (!cell || !load(t, cell, &image))
		return;
	part.u.launch = (struct rig_launch_work){image, "add", sizeof(struct polled_add), &ref, 1};
	if (describe(t, cell, &part, 1, 0, 1, &s)) {
		/* The submission keeps it. */
		rig_image_put(image);
		launch_run(t, cell, s);
		rig_submission_put(s);
		return;
	}
	rig_image_put(rig_image_get(image));
	rig_image_put(image);
}

/* ---- Shared work ---- */

/* All threads submit one submission on one buffer, each with a run of its own. */
static void op_sum(struct crowd *t)
{
	struct opening *o = t->w->seats[CROWD_PLAIN];
	struct cell all = {.buffer = t->w->sum, .deps = {o}, .ndeps = 1};
	uint64_t before = atomic_load(&o->latest);
	uint32_t add = 1 + crowd_random(t, 100);
	struct rig_run_args *run;
	struct rig_point point;

	if (!crowd_ok(t, rig_run_make(t->w->add, &run), "rig_run_make", &o, 1))
		return;
	if (set_launch(t, &all, run, add) &&
	        crowd_ok(t, rig_submit(t->w->add, run, NULL, 0, &point), "rig_submit", &o, 1) &&
	        crowd_value(t, o, before, point)) {
		atomic_fetch_add(&t->w->expected, add);
		crowd_mark(t, point, &o, 1);
	}
	rig_run_put(run);
}

static bool fill_all(struct crowd *t, struct rig_buffer *buffer, uint8_t byte)
{
	struct rig_work part = {.kind = RIG_COPY};
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *s;
	int code;

	part.u.copy = (struct rig_copy_work){.dst = {RIG_FIXED, buffer, 0, 0},
	        .row_bytes = CROWD_BYTES,
	        .rows = 1,
	        .fill = true,
	        .byte = byte};
	code = rig_submission_make(rig_buffer_device(buffer), &description, &s);
	if (!crowd_ok(t, code, "the baton's submission", &t->w->seats[CROWD_PLAIN], 2))
		return false;
	code = rig_submit(s, NULL, NULL, 0, NULL);
	rig_submission_put(s);
	return crowd_ok(t, code, "the baton's submit", &t->w->seats[CROWD_PLAIN], 2);
}

/* With the baton. The order of the submits is all that orders two devices' work on it. */
static void pass_baton(struct crowd *t)
{
	struct rig_buffer *at = crowd_random(t, 2) ? t->w->baton : t->w->baton_borrowed;
	uint8_t byte = (uint8_t)crowd_random(t, 256), bytes[CROWD_BYTES];
	unsigned i;

	if (crowd_random(t, 3)) {
		if (fill_all(t, at, byte))
			t->w->byte = byte;
		return;
	}
	if (!crowd_ok(t, rig_buffer_read(at, 0, bytes, CROWD_BYTES), "the baton's read",
	            &t->w->seats[CROWD_PLAIN], 2))
		return;
	for (i = 0; i < CROWD_BYTES && !t->wrong; i++)
		if (bytes[i] != t->w->byte)
			(void)crowd_wrong(
			        t, "byte %u of the baton is 0x%02x, not 0x%02x", i, bytes[i], t->w->byte);
}

static void op_baton(struct crowd *t)
{
	(void)pthread_mutex_lock(&t->w->baton_lock);
	pass_baton(t);
	(void)pthread_mutex_unlock(&t->w->baton_lock);
}

const struct crowd_named crowd_work_ops[] = {
        {"reached", op_reached},
        {"wait", op_wait},
        {"wait_device", op_wait_device},
        {"fill", op_fill},
        {"copy_work", op_copy_work},
        {"launch", op_launch},
        {"sum", op_sum},
        {"baton", op_baton},
};
const unsigned crowd_work_nops = sizeof(crowd_work_ops) / sizeof(crowd_work_ops[0]);
