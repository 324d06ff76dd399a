/* SPDX-License-Identifier: MIT */
/* A matrix product with shared memory and barriers, checked against the host's. usage: matmul [DEVICE
   [IMAGE]] */
#include "example.h"

#define TILE   16u
#define SHARED (2u * TILE * TILE * 4u) /* what the kernel declares */
#define ROWS   100u
#define COLS   90u
#define INNER  70u

struct params {
	uint64_t a, b, c;
	uint32_t rows, columns, inner;
};

static float a[ROWS * INNER], b[INNER * COLS], c[ROWS * COLS];

/* Small integers, so that the sums are exact in any order. */
static void fill(float *matrix, uint32_t count, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		seed = seed * 1664525u + 1013904223u;
		matrix[i] = (float)(int)(seed >> 28) - 8;
	}
}

static struct rig_buffer *upload(struct rig_device *device, const void *bytes, uint64_t count)
{
	struct rig_buffer *buffer;

	must(rig_buffer_create(device, RIG_DEVICE, count, &buffer), "buffer");
	must(rig_buffer_write(buffer, 0, bytes, count), "write");
	return buffer;
}

static unsigned differences(void)
{
	uint32_t row, column, k;
	unsigned wrong = 0;

	for (row = 0; row < ROWS; row++)
		for (column = 0; column < COLS; column++) {
			float sum = 0;

			for (k = 0; k < INNER; k++)
				sum += a[row * INNER + k] * b[k * COLS + column];
			wrong += c[row * COLS + column] != sum;
		}
	return wrong;
}

int main(int argc, char **argv)
{
	struct rig_device *device = open_named(argc > 1 ? argv[1] : "sim");
	const struct rig_ref refs[] = {{offsetof(struct params, a), 0}, {offsetof(struct params, b), 1},
	        {offsetof(struct params, c), 2}};
	const struct params params = {.rows = ROWS, .columns = COLS, .inner = INNER};
	struct rig_buffer *buffers[3];
	struct rig_submission *submission;
	struct rig_run_args *run;
	struct rig_image *image;
	struct rig_point done;
	uint32_t i;

	fill(a, ROWS * INNER, 1);
	fill(b, INNER * COLS, 2);
	must(rig_image_load_file(device, argc > 2 ? argv[2] : MATMUL_IMAGE, &image), "image");
	buffers[0] = upload(device, a, sizeof(a));
	buffers[1] = upload(device, b, sizeof(b));
	buffers[2] = upload(device, c, sizeof(c));
	submission = make_launch(image, device, "matmul", sizeof(params), refs, 2, 1);
	must(rig_run_make(submission, &run), "run");
	must(rig_run_params(run, 0, 0, &params, sizeof(params)), "parameters");
	must(rig_run_grid(run, 0, (COLS + TILE - 1) / TILE, (ROWS + TILE - 1) / TILE, 1), "grid");
	must(rig_run_group(run, 0, TILE, TILE, 1), "group");
	must(rig_run_shared(run, 0, SHARED), "shared memory");
	for (i = 0; i < 3; i++)
		must(rig_run_buffer(run, i, buffers[i]), "run's buffer");
	must(rig_submit(submission, run, NULL, 0, &done), "submit");
	must(rig_buffer_read(buffers[2], 0, c, sizeof(c)), "read"); /* waits for the launch by itself */

	printf("%u x %u x %u: %u of %u elements differ from the host's\n", ROWS, INNER, COLS, differences(),
	        ROWS * COLS);
	for (i = 0; i < 3; i++)
		rig_buffer_put(buffers[i]);
	rig_run_put(run);
	rig_submission_put(submission);
	rig_image_put(image);
	close_named(device);
	return differences() != 0;
}
