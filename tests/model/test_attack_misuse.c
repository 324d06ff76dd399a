/* SPDX-License-Identifier: MIT */
/* Misuse of librig is refused in words, and costs no device. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system_device.h"

#define assert_refused(call, why)                                                                            \
	do {                                                                                                 \
		(void)rig_error_set(0, "%s", "");                                                            \
		assert_int_equal(call, -EINVAL);                                                             \
		if (!strstr(rig_error(), why))                                                               \
			fail_msg("%s: \"%s\" is not in: %s", #call, why, rig_error());                       \
	} while (0)

static struct rig_device *device;

static int open_device(void **state)
{
	(void)state;
	device = sys_open("sim:mem=64M");
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	assert_false(rig_lost(device, NULL));
	sys_device_works(device);
	sys_close(device);
	return 0;
}

/* ---- Arguments that are missing ---- */

static void missing_devices_and_results_are_refused(void **state)
{
	struct rig_buffer *buffer = NULL;
	struct rig_opener *opener;
	struct rig_image *image;

	(void)state;
	assert_refused(rig_vfio_opener("sim", NULL, NULL), "out");
	assert_refused(rig_open(NULL, &device), "opener");
	sys_ok(rig_vfio_opener("sim", NULL, &opener));
	assert_refused(rig_open(opener, NULL), "device");
	rig_vfio_opener_free(opener);
	assert_int_equal(rig_close(NULL), 0);
	assert_int_equal(rig_devices(NULL, 5), 1);
	assert_refused(rig_wait_device(NULL, 0), "device");
	assert_refused(rig_buffer_create(NULL, RIG_DEVICE, 1, &buffer), "device");
	assert_refused(rig_buffer_create(device, RIG_DEVICE, 1, NULL), "buffer");
	assert_refused(rig_buffer_of_host(NULL, &buffer, 1, &buffer), "device");
	assert_refused(rig_buffer_of_host(device, &buffer, 1, NULL), "buffer");
	assert_refused(rig_image_load(NULL, "", 1, &image), "device");
	assert_refused(rig_image_load(device, "", 1, NULL), "image");
	assert_refused(rig_image_load(device, NULL, 1, &image), "binary");
	assert_refused(rig_image_load_file(device, NULL, &image), "path");
}

static void missing_buffers_and_bytes_are_refused(void **state)
{
	struct rig_buffer *buffer = sys_buffer(device, RIG_DEVICE, 64), *other;
	struct rig_dma_answer answer;
	struct rig_point point;
	char bytes[8] = {0};

	(void)state;
	assert_refused(rig_buffer_borrow(NULL, buffer, &other), "device");
	assert_refused(rig_buffer_borrow(device, NULL, &other), "buffer");
	assert_refused(rig_buffer_borrow(device, buffer, NULL), "borrowed");
	assert_refused(rig_buffer_view(NULL, 0, 0, &other), "buffer");
	assert_refused(rig_buffer_view(buffer, 0, 0, NULL), "view");
	assert_refused(rig_buffer_wait(NULL, RIG_READ), "buffer");
	assert_refused(rig_buffer_dma(NULL, &answer), "buffer");
	assert_refused(rig_buffer_dma(buffer, NULL), "answer");
	assert_refused(rig_buffer_write(NULL, 0, bytes, 1), "buffer");
	assert_refused(rig_buffer_write(buffer, 0, NULL, 1), "memory");
	assert_refused(rig_buffer_read(NULL, 0, bytes, 1), "buffer");
	assert_refused(rig_buffer_read(buffer, 0, NULL, 1), "memory");
	assert_refused(rig_buffer_copy(NULL, 0, buffer, 0, 1), "dst");
	assert_refused(rig_buffer_copy(buffer, 0, NULL, 0, 1), "src");
	assert_refused(rig_buffer_copy_async(buffer, 0, buffer, 0, 1, NULL), "point");
	assert_refused(rig_buffer_copy_async(buffer, 0, NULL, 0, 1, &point), "src");
	sys_ok(rig_buffer_write(buffer, 0, NULL, 0));
	sys_ok(rig_buffer_read(buffer, 0, NULL, 0));
	rig_buffer_put(buffer);
}

static void assert_part_refused(const struct rig_work *part, const char *why)
{
	const struct rig_description d = {.version = RIG_EDGE_VERSION, .parts = part, .nparts = 1};
	struct rig_submission *submission;

	assert_refused(rig_submission_make(device, &d, &submission), why);
}

static void missing_parts_of_a_description_are_refused(void **state)
{
	const struct rig_description no_parts = {.version = RIG_EDGE_VERSION, .nparts = 1},
	                             no_fixed = {.version = RIG_EDGE_VERSION, .nfixed = 1},
	                             empty = {.version = RIG_EDGE_VERSION};
	struct rig_image *image = sys_image(device, "globals");
	const uint32_t words[16] = {0};
	struct rig_submission *submission;
	struct rig_work part = {.kind = RIG_WORDS, .u.words = {words, 16}, .nafter = 1};

	(void)state;
	assert_refused(rig_submission_make(NULL, &empty, &submission), "device");
	assert_refused(rig_submission_make(device, NULL, &submission), "description");
	assert_refused(rig_submission_make(device, &empty, NULL), "submission");
	assert_refused(rig_submission_make(device, &no_parts, &submission), "parts");
	assert_refused(rig_submission_make(device, &no_fixed, &submission), "fixed");
	assert_part_refused(&part, "after");
	part = (struct rig_work){.kind = RIG_WORDS, .u.words = {NULL, 16}};
	assert_part_refused(&part, "words");
	part = (struct rig_work){.kind = RIG_LAUNCH};
	assert_part_refused(&part, "image");
	part.u.launch =
	        (struct rig_launch_work){.image = image, .function = "globals", .params = 8, .nrefs = 1};
	assert_part_refused(&part, "refs");
	rig_image_put(image);
}

static void write_nothing(void *object)
{
	(void)object;
}

static void missing_runs_and_waits_are_refused(void **state)
{
	struct rig_image *image = sys_image(device, "globals");
	struct rig_submission *empty = sys_empty(device);
	const uint64_t params = 0;
	struct rig_run_args *run;
	struct rig_entry entry;
	struct sys_launch launch;

	(void)state;
	sys_launch_make(&launch, image, "globals",
	        &(struct sys_params){.device = device, .bytes = &params, .count = sizeof(params)}, 1, 1);
	assert_refused(rig_image_entry(NULL, "globals", &entry), "image");
	assert_refused(rig_image_entry(image, NULL, &entry), "name");
	assert_refused(rig_image_entry(image, "globals", NULL), "entry");
	assert_refused(rig_run_make(NULL, &run), "submission");
	assert_refused(rig_run_make(launch.submission, NULL), "run");
	assert_refused(rig_run_grid(NULL, 0, 1, 1, 1), "run");
	assert_refused(rig_run_group(NULL, 0, 1, 1, 1), "run");
	assert_refused(rig_run_shared(NULL, 0, 0), "run");
	assert_refused(rig_run_params(NULL, 0, 0, &params, 8), "run");
	assert_refused(rig_run_params(launch.run, 0, 0, NULL, 8), "params");
	assert_refused(rig_run_buffer(NULL, 0, NULL), "run");
	assert_refused(rig_submission_keep(NULL, &run, write_nothing), "submission");
	assert_refused(rig_submit(NULL, NULL, NULL, 0, NULL), "submission");
	assert_refused(rig_submit(NULL, launch.run, NULL, 0, NULL), "submission");
	assert_refused(rig_submit(empty, NULL, NULL, 1, NULL), "waits");
	rig_submission_put(empty);
	sys_launch_end(&launch);
	rig_image_put(image);
}

/* ---- Points that were never given out ---- */

static void forged_points_are_refused(void **state)
{
	struct rig_submission *empty = sys_empty(device);
	struct rig_point point, forged;
	unsigned bit;

	(void)state;
	sys_ok(rig_submit(empty, NULL, NULL, 0, &point));
	sys_ok(rig_wait(point));
	for (bit = RIG_VALUE_BITS / 2; bit < 64; bit++) {
		forged.bits = point.bits ^ UINT64_C(1) << bit;
		assert_refused(rig_wait(forged), "no such point");
		assert_refused(rig_reached(forged), "no such point");
		assert_refused(rig_submit(empty, NULL, &forged, 1, NULL), "no such point");
	}
	assert_refused(rig_wait_device(device, UINT64_MAX), "never submitted");
	assert_int_equal(rig_submitted(device), rig_point_value(point));
	rig_submission_put(empty);
}

/* ---- Files ---- */

/* Nobody writes to it, ever: whoever waited for that would not come back. */
static void a_pipe_is_no_image(void **state)
{
	struct rig_image *image;

	(void)state;
	assert_int_equal(mkfifo(sys_path("pipe"), 0600), 0);
	assert_refused(rig_image_load_file(device, sys_path("pipe"), &image), "not a regular file");
	assert_refused(rig_image_load_file(device, "/dev/zero", &image), "not a regular file");
	assert_int_equal(unlink(sys_path("pipe")), 0);
}

/* ---- What programs keep ---- */

struct kept {
	struct rig_buffer *buffer;
	int answer;
};

static void write_it(void *object)
{
	struct kept *kept = object;

	kept->answer = rig_buffer_write(kept->buffer, 0, "done", 4);
}

/* The first staged copy of a device makes memory for it, and so gives back what is due. */
static void what_a_submission_keeps_may_copy_when_it_is_put(void **state)
{
	struct rig_submission *empty = sys_empty(device);
	struct kept kept = {sys_buffer(device, RIG_DEVICE, 64), 1};
	struct rig_point point;
	char bytes[4];

	(void)state;
	sys_ok(rig_submission_keep(empty, &kept, write_it));
	do {
		sys_ok(rig_submit(empty, NULL, NULL, 0, &point));
	} while (rig_reached(point) == 1);
	rig_submission_put(empty);
	if (kept.answer == 1)
		sys_ok(rig_wait(point));
	sys_ok(rig_buffer_read(kept.buffer, 0, bytes, sizeof(bytes)));
	sys_ok(kept.answer);
	sys_ok(rig_buffer_read(kept.buffer, 0, bytes, sizeof(bytes)));
	assert_memory_equal(bytes, "done", 4);
	rig_buffer_put(kept.buffer);
}

#define ON_A_DEVICE(test) cmocka_unit_test_setup_teardown(test, open_device, close_device)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ON_A_DEVICE(missing_devices_and_results_are_refused),
	        ON_A_DEVICE(missing_buffers_and_bytes_are_refused),
	        ON_A_DEVICE(missing_parts_of_a_description_are_refused),
	        ON_A_DEVICE(missing_runs_and_waits_are_refused),
	        ON_A_DEVICE(forged_points_are_refused),
	        ON_A_DEVICE(a_pipe_is_no_image),
	        ON_A_DEVICE(what_a_submission_keeps_may_copy_when_it_is_put),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
