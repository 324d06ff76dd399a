/* SPDX-License-Identifier: MIT */
/* One buffer, one launch: doubles eight numbers on the device. usage: hello [DEVICE [IMAGE]] */
#include "example.h"

#define COUNT 8u

struct params {
	uint64_t numbers;
	uint32_t count;
};

int main(int argc, char **argv)
{
	struct rig_device *device = open_named(argc > 1 ? argv[1] : "sim");
	const struct rig_ref refs[] = {{.at = offsetof(struct params, numbers), .slot = 0}};
	const struct params params = {.count = COUNT};
	uint32_t i, numbers[COUNT];
	struct rig_submission *submission;
	struct rig_run_args *run;
	struct rig_buffer *buffer;
	struct rig_image *image;
	struct rig_point done;

	for (i = 0; i < COUNT; i++)
		numbers[i] = i + 1;
	must(rig_image_load_file(device, argc > 2 ? argv[2] : HELLO_IMAGE, &image), "image");
	must(rig_buffer_create(device, RIG_DEVICE, sizeof(numbers), &buffer), "buffer");
	must(rig_buffer_write(buffer, 0, numbers, sizeof(numbers)), "write");

	submission = make_launch(image, device, "hello", sizeof(params), refs, 0, 1);
	must(rig_run_make(submission, &run), "run");
	must(rig_run_params(run, 0, 0, &params, sizeof(params)), "parameters");
	must(rig_run_group(run, 0, COUNT, 1, 1), "group");
	must(rig_run_buffer(run, 0, buffer), "run's buffer");
	must(rig_submit(submission, run, NULL, 0, &done), "submit");
	must(rig_wait(done), "wait");

	must(rig_buffer_read(buffer, 0, numbers, sizeof(numbers)), "read");
	for (i = 0; i < COUNT; i++)
		printf("%u%c", numbers[i], i + 1 < COUNT ? ' ' : '\n');

	rig_run_put(run);
	rig_submission_put(submission);
	rig_buffer_put(buffer);
	rig_image_put(image);
	close_named(device);
	return 0;
}
