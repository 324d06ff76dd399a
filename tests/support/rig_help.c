/* SPDX-License-Identifier: MIT */
#include "rig_help.h"

struct polled_options help_options(void)
{
	struct polled_options o = {.name = "P0"};

	return o;
}

struct bench help_open(const struct polled_options *options)
{
	struct bench b = {.p = polled_new(options)};

	assert_non_null(b.p);
	assert_ok(rig_open(polled_opener(b.p), &b.d));
	return b;
}

void help_end(struct bench *b)
{
	assert_true(rig_lost(b->d, NULL));
	rig_device_put(b->d);
	if (polled_breach(b->p))
		fail_msg("breach: %s", polled_breach(b->p));
	assert_int_equal(polled_left(b->p), 0);
	assert_int_equal(polled_count(b->p, POLLED_STOP), polled_count(b->p, POLLED_RELEASE));
	polled_free(b->p);
}

void help_close(struct bench *b)
{
	assert_ok(rig_close(b->d));
	help_end(b);
}

struct rig_submission *help_empty(struct rig_device *d)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct rig_submission *s;

	assert_ok(rig_submission_make(d, &description, &s));
	return s;
}

struct rig_submission *help_copy(struct rig_device *d, uint64_t bytes)
{
	struct rig_work part = {.kind = RIG_COPY};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .reads = 1, .writes = 1};
	struct rig_submission *s;

	part.u.copy.dst.slot = 1;
	part.u.copy.row_bytes = bytes;
	part.u.copy.rows = 1;
	assert_ok(rig_submission_make(d, &description, &s));
	return s;
}

struct rig_run_args *help_copy_run(struct rig_submission *s, struct rig_buffer *src, struct rig_buffer *dst)
{
	struct rig_run_args *run;

	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_buffer(run, 0, src));
	assert_ok(rig_run_buffer(run, 1, dst));
	return run;
}

struct rig_point help_submit(struct rig_submission *s, struct rig_run_args *run)
{
	struct rig_point point;

	assert_ok(rig_submit(s, run, NULL, 0, &point));
	return point;
}

struct rig_buffer *help_buffer(struct rig_device *d, uint64_t bytes)
{
	struct rig_buffer *buffer;

	assert_ok(rig_buffer_create(d, RIG_DEVICE, bytes, &buffer));
	return buffer;
}

struct rig_image *help_image(struct rig_device *d)
{
	struct rig_image *image;

	assert_ok(rig_image_load(d, POLLED_BINARY, sizeof(POLLED_BINARY), &image));
	return image;
}
