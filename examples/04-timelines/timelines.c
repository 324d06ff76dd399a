/* SPDX-License-Identifier: MIT */
/*
 * Timelines: two devices, and submissions that are not waited for one by one. usage: timelines [DEVICE
 * [DEVICE]]
 *
 * The first device adds a x to y chunk by chunk, a submission each, all handed over before any is waited for.
 * The second device works on its own; its one submission waits, in its queue, for a point of the first
 * device's timeline.
 */
#include "example.h"

#define CHUNKS 8u
#define CHUNK  4096u
#define GROUP  64u

struct params {
	uint64_t x, y;
	uint32_t count;
	float a;
};

struct side {
	struct rig_device *device;
	struct rig_image *image;
	struct rig_submission *submission;
	struct rig_run_args *run[CHUNKS];
	struct rig_buffer *x, *y;
};

static void open_side(struct side *side, const char *name, float x, float y)
{
	static float values[CHUNKS * CHUNK];
	const struct rig_ref refs[] = {{offsetof(struct params, x), 0}, {offsetof(struct params, y), 1}};
	uint32_t i;

	side->device = open_named(name);
	must(rig_image_load_file(side->device, AXPY_IMAGE, &side->image), "image");
	side->submission = make_launch(side->image, side->device, "axpy", sizeof(struct params), refs, 1, 1);
	must(rig_buffer_create(side->device, RIG_DEVICE, sizeof(values), &side->x), "x");
	must(rig_buffer_create(side->device, RIG_DEVICE, sizeof(values), &side->y), "y");
	for (i = 0; i < CHUNKS * CHUNK; i++)
		values[i] = x;
	must(rig_buffer_write(side->x, 0, values, sizeof(values)), "write");
	for (i = 0; i < CHUNKS * CHUNK; i++)
		values[i] = y;
	must(rig_buffer_write(side->y, 0, values, sizeof(values)), "write");
}

/* One run a chunk: views name the chunk, so that chunks are ordered only where they share memory. */
static void prepare(struct side *side, uint32_t chunk)
{
	const struct params params = {.count = CHUNK, .a = 2};
	const uint64_t bytes = CHUNK * sizeof(float);
	struct rig_buffer *x, *y;

	must(rig_buffer_view(side->x, chunk * bytes, bytes, &x), "view");
	must(rig_buffer_view(side->y, chunk * bytes, bytes, &y), "view");
	must(rig_run_make(side->submission, &side->run[chunk]), "run");
	must(rig_run_params(side->run[chunk], 0, 0, &params, sizeof(params)), "parameters");
	must(rig_run_grid(side->run[chunk], 0, CHUNK / GROUP, 1, 1), "grid");
	must(rig_run_group(side->run[chunk], 0, GROUP, 1, 1), "group");
	must(rig_run_buffer(side->run[chunk], 0, x), "x");
	must(rig_run_buffer(side->run[chunk], 1, y), "y");
	rig_buffer_put(x);
	rig_buffer_put(y);
}

static unsigned wrong(struct side *side, uint32_t chunks, float expected, float untouched)
{
	static float values[CHUNKS * CHUNK];
	unsigned i, bad = 0;

	must(rig_buffer_read(side->y, 0, values, sizeof(values)), "read");
	for (i = 0; i < CHUNKS * CHUNK; i++)
		bad += values[i] != (i < chunks * CHUNK ? expected : untouched);
	return bad;
}

static void close_side(struct side *side)
{
	uint32_t i;

	for (i = 0; i < CHUNKS; i++)
		rig_run_put(side->run[i]);
	rig_submission_put(side->submission);
	rig_image_put(side->image);
	rig_buffer_put(side->x);
	rig_buffer_put(side->y);
	close_named(side->device);
}

int main(int argc, char **argv)
{
	struct side first = {0}, second = {0};
	struct rig_point points[CHUNKS], after;
	unsigned bad;
	uint32_t i;

	open_side(&first, argc > 1 ? argv[1] : "sim", 1, 10);
	open_side(&second, argc > 2 ? argv[2] : "sim", 3, 0);
	for (i = 0; i < CHUNKS; i++) {
		prepare(&first, i);
		must(rig_submit(first.submission, first.run[i], NULL, 0, &points[i]), "submit");
	}
	prepare(&second, 0);
	must(rig_submit(second.submission, second.run[0], &points[CHUNKS - 1], 1, &after), "submit");
	must(rig_wait(after), "wait");

	/* The second device's work came after the first one's, so that is reached too. */
	printf("%u submissions on %s: the last is %s\n", CHUNKS, rig_name(first.device),
	        rig_reached(points[CHUNKS - 1]) == 1 ? "reached" : "not reached");
	bad = wrong(&first, CHUNKS, 12, 10) + wrong(&second, 1, 6, 0);
	printf("%u wrong numbers\n", bad);
	close_side(&first);
	close_side(&second);
	return bad != 0;
}
