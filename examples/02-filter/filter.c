/* SPDX-License-Identifier: MIT */
/* An image filter on the device, and what the driver did for it. */
#include <string.h>

#include "example.h"
#include "picture.h"

#define USAGE "usage: filter IN.png OUT.png [DEVICE [IMAGE]]\n"

#define SIDE        16u  /* a group is SIDE x SIDE threads, a thread a pixel */
#define TILE_GROUPS 256u /* the most of a launch */

struct params {
	uint64_t src, dst;
	uint32_t width, height, left, top;
};

static uint32_t groups(uint32_t pixels)
{
	return pixels / SIDE + (pixels % SIDE != 0);
}

static void print_device(struct rig_device *device)
{
	const struct rig_vfio_record *record = rig_capability(device, &rig_vfio_key);
	uint32_t i, n;
	const struct rig_queue *queues = rig_queues(device, &n);

	printf("device        %s, %s, function %04x:%04x over %s\n", rig_name(device), rig_arch(device),
	        record->vendor, record->device, record->transport);
	printf("firmware      %s\n", record->firmware);
	printf("memory        %" PRIu64 " MiB for programs, aperture %" PRIu64 " MiB\n",
	        record->memory_bytes >> 20, record->aperture_bytes >> 20);
	printf("queues        ");
	for (i = 0; i < n; i++)
		printf("%s%s", queues[i].name, i + 1 < n ? ", " : "\n");
}

static void print_bus(struct rig_device *device, struct rig_buffer *buffer)
{
	const struct rig_vfio_record *record = rig_capability(device, &rig_vfio_key);
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};
	size_t i;

	if (rig_buffer_dma(buffer, &answer) != RIG_BUS) {
		printf("bus addresses none: %s\n", answer.kind == RIG_NO_DMA ? answer.reason : rig_error());
		return;
	}
	for (i = 0; i < answer.nranges; i++)
		printf("%s 0x%" PRIx64 " + %" PRIu64 " bytes%s\n", i ? "             " : "bus addresses",
		        answer.ranges[i].address, answer.ranges[i].bytes,
		        record->simulated_bus ? " (of a simulated bus)" : "");
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Launches the filter tile by tile; no launch waits here for the one before. In one launch a large picture
   would look like a hang, as only finished work is progress. */
static void launch_tiles(struct rig_submission *submission, struct rig_run_args *run, struct params params,
        struct rig_point *done)
{
	uint32_t across = groups(params.width), down = groups(params.height);
	uint32_t wide = least(across, TILE_GROUPS), high = TILE_GROUPS / wide, x, y;

	must(rig_run_group(run, 0, SIDE, SIDE, 1), "group");
	for (y = 0; y < down; y += high)
		for (x = 0; x < across; x += wide) {
			params.left = x * SIDE;
			params.top = y * SIDE;
			must(rig_run_params(run, 0, 0, &params, sizeof(params)), "parameters");
			must(rig_run_grid(run, 0, least(wide, across - x), least(high, down - y), 1), "grid");
			must(rig_submit(submission, run, NULL, 0, done), "submit");
		}
}

/* Runs the filter over `picture` in place; the time of the launches in ns. */
static uint64_t filter(
        struct rig_device *device, struct rig_image *image, struct picture *picture, struct rig_point *done)
{
	const struct rig_ref refs[] = {{.at = offsetof(struct params, src), .slot = 0},
	        {.at = offsetof(struct params, dst), .slot = 1}};
	const struct params params = {.width = picture->width, .height = picture->height};
	struct rig_submission *submission = make_launch(image, device, "filter", sizeof(params), refs, 1, 1);
	struct rig_buffer *src, *dst;
	struct rig_run_args *run;
	uint64_t start, ns;

	/* The result lies where other functions of the bus reach it. */
	must(rig_buffer_create(device, RIG_DEVICE, picture->bytes, &src), "source");
	must(rig_buffer_create(device, RIG_MAPPED, picture->bytes, &dst), "result");
	must(rig_buffer_write(src, 0, picture->pixels, picture->bytes), "write");
	must(rig_run_make(submission, &run), "run");
	must(rig_run_buffer(run, 0, src), "source");
	must(rig_run_buffer(run, 1, dst), "result");

	start = rig_now_ns();
	launch_tiles(submission, run, params, done);
	must(rig_wait(*done), "wait");
	ns = rig_now_ns() - start;

	must(rig_buffer_read(dst, 0, picture->pixels, picture->bytes), "read");
	print_bus(device, dst);
	rig_run_put(run);
	rig_submission_put(submission);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	return ns;
}

int main(int argc, char **argv)
{
	struct rig_device *device;
	struct picture picture;
	struct rig_image *image;
	struct rig_point done;
	uint64_t ns;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		printf(USAGE);
		return 0;
	}
	if (argc < 3 || argc > 5) {
		fprintf(stderr, USAGE);
		return 2;
	}
	picture = picture_read(argv[1]);
	picture_check_output(argv[2]);
	device = open_named(argc > 3 ? argv[3] : "sim");
	print_device(device);
	must(rig_image_load_file(device, argc > 4 ? argv[4] : FILTER_IMAGE, &image), "image");
	ns = filter(device, image, &picture, &done);
	printf("moved         %" PRIu64 " bytes to the device, %" PRIu64 " back\n", picture.bytes,
	        picture.bytes);
	printf("launch        %u x %u pixels in %.1f ms\n", picture.width, picture.height, (double)ns / 1e6);
	printf("word          %" PRIu64 "\n", rig_signaled(device));
	picture_write(argv[2], &picture);
	printf("wrote         %s\n", argv[2]);
	rig_image_put(image);
	close_named(device);
	free(picture.pixels);
	return 0;
}
