/* SPDX-License-Identifier: MIT */
/* An image filter on the device, and what the driver did for it. usage: filter IN.png OUT.png [DEVICE [IMAGE]] */
#include <string.h>

#include "example.h"
#include "picture.h"

#define SIDE 16u /* a group is SIDE x SIDE threads, a thread a pixel */

struct params {
	uint64_t src, dst;
	uint32_t width, height;
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

/* Runs the filter over `picture` in place; the time of the launch in ns. */
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
	must(rig_run_params(run, 0, 0, &params, sizeof(params)), "parameters");
	must(rig_run_grid(run, 0, groups(picture->width), groups(picture->height), 1), "grid");
	must(rig_run_group(run, 0, SIDE, SIDE, 1), "group");
	must(rig_run_buffer(run, 0, src), "source");
	must(rig_run_buffer(run, 1, dst), "result");

	start = rig_now_ns();
	must(rig_submit(submission, run, NULL, 0, done), "submit");
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

	if (argc < 3 || argc > 5) {
		fprintf(stderr, "usage: filter IN.png OUT.png [DEVICE [IMAGE]]\n");
		return 2;
	}
	picture = picture_read(argv[1]);
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
