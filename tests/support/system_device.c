/* SPDX-License-Identifier: MIT */
#include "system_device.h"

#include <stdlib.h>
#include <string.h>

#include "draw.h"

#define GLOBALS_WORDS 8

int sys_try_open(const char *text, struct rig_device **device)
{
	struct rig_opener *opener;
	int err;

	*device = NULL;
	sys_ok(rig_vfio_opener(text, NULL, &opener));
	err = rig_open(opener, device);
	rig_vfio_opener_free(opener);
	return err;
}

struct rig_device *sys_open(const char *text)
{
	struct rig_device *device;

	sys_ok(sys_try_open(text, &device));
	return device;
}

void sys_close(struct rig_device *device)
{
	sys_ok(rig_close(device));
	rig_device_put(device);
}

struct rig_buffer *sys_buffer(struct rig_device *device, enum rig_memory kind, uint64_t bytes)
{
	struct rig_buffer *buffer;

	sys_ok(rig_buffer_create(device, kind, bytes, &buffer));
	return buffer;
}

struct rig_image *sys_image(struct rig_device *device, const char *kernel)
{
	struct rig_image *image;
	uint8_t *bytes;
	size_t count = sys_kernel_bytes(kernel, &bytes);

	sys_ok(rig_image_load(device, bytes, count, &image));
	free(bytes);
	return image;
}

static void make(struct sys_launch *l, struct rig_device *device, const struct rig_description *description)
{
	sys_ok(rig_submission_make(device, description, &l->submission));
	sys_ok(rig_run_make(l->submission, &l->run));
}

void sys_launch_make(struct sys_launch *l, struct rig_image *image, const char *function,
        const struct sys_params *params, uint32_t groups, uint32_t threads)
{
	struct rig_ref refs[SYS_BUFFERS];
	struct rig_work work = {.kind = RIG_LAUNCH,
	        .u.launch = {.image = image,
	                .function = function,
	                .params = params->count,
	                .refs = refs,
	                .nrefs = params->nbuffers}};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &work, .nparts = 1, .writes = params->nbuffers};
	uint32_t i;

	for (i = 0; i < params->nbuffers; i++)
		refs[i] = (struct rig_ref){.at = i * 8, .slot = i};
	make(l, params->device, &description);
	if (params->count)
		sys_ok(rig_run_params(l->run, 0, 0, params->bytes, params->count));
	sys_ok(rig_run_grid(l->run, 0, groups, 1, 1));
	sys_ok(rig_run_group(l->run, 0, threads, 1, 1));
	for (i = 0; i < params->nbuffers; i++)
		sys_ok(rig_run_buffer(l->run, i, params->buffer[i]));
}

struct rig_point sys_launch_submit(struct sys_launch *l)
{
	struct rig_point point;

	sys_ok(rig_submit(l->submission, l->run, NULL, 0, &point));
	return point;
}

int sys_launch_try(struct sys_launch *l)
{
	struct rig_point point;
	int err = rig_submit(l->submission, l->run, NULL, 0, &point);

	return err ? err : rig_wait(point);
}

void sys_launch_end(struct sys_launch *l)
{
	rig_run_put(l->run);
	rig_submission_put(l->submission);
}

struct rig_submission *sys_empty(struct rig_device *device)
{
	const struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct rig_submission *submission;

	sys_ok(rig_submission_make(device, &description, &submission));
	return submission;
}

void sys_copy_make(struct sys_launch *l, struct rig_buffer *src, uint64_t src_offset, struct rig_buffer *dst,
        uint64_t dst_offset, uint64_t bytes)
{
	const struct rig_work work = {.kind = RIG_COPY,
	        .u.copy = {.src = {.slot = 0, .offset = src_offset},
	                .dst = {.slot = 1, .offset = dst_offset},
	                .row_bytes = bytes,
	                .rows = 1}};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &work, .nparts = 1, .reads = 1, .writes = 1};

	make(l, rig_buffer_device(src), &description);
	sys_ok(rig_run_buffer(l->run, 0, src));
	sys_ok(rig_run_buffer(l->run, 1, dst));
}

void sys_device_works(struct rig_device *device)
{
	/* What globals.k.c says of its answers. */
	static const uint64_t expected[GLOBALS_WORDS] = {1, 41, 42, 610, 'e' + 3, 14, 40, 'z'};
	uint64_t zero = 0, answer[GLOBALS_WORDS] = {0};
	struct rig_image *image = sys_image(device, "globals");
	struct rig_buffer *out = sys_buffer(device, RIG_DEVICE, sizeof(answer));
	struct sys_launch launch;

	sys_launch_make(&launch, image, "globals",
	        &(struct sys_params){.device = device,
	                .bytes = &zero,
	                .count = sizeof(zero),
	                .nbuffers = 1,
	                .buffer = {out}},
	        1, 1);
	sys_ok(sys_launch_try(&launch));
	sys_ok(rig_buffer_read(out, 0, answer, sizeof(answer)));
	assert_memory_equal(answer, expected, sizeof(answer));
	sys_launch_end(&launch);
	rig_buffer_put(out);
	rig_image_put(image);
}

void sys_fill(uint8_t *bytes, size_t count, uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;

	test_draw_bytes(&state, bytes, count);
}

void sys_stats(struct rig_device *device, struct rig_vfio_stats *stats)
{
	const struct rig_vfio_record *record = rig_capability(device, &rig_vfio_key);

	assert_non_null(record);
	record->stats(record, stats);
}

/* Takes and leaves the lock under which messages are served. */
void sys_order(struct rig_device *device)
{
	struct rig_vfio_stats stats;

	sys_stats(device, &stats);
}
