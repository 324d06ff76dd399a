/* SPDX-License-Identifier: MIT */
/* The device under librig: what a program sees. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "conform_groups.h"
#include "dut.h"
#include "rig.h"

enum { BYTES = 256 };

#define ok(c, expression)                                                                                    \
	do {                                                                                                 \
		int answer_ = (expression);                                                                  \
		conform_check(c, !answer_, "%s answered %d: %s", #expression, answer_, rig_error());         \
	} while (0)

static struct rig_device *open_with(struct conform *c, unsigned index, const struct rig_open_options *options)
{
	const struct rig_opener *opener = c->source->opener(c->source, index);
	struct rig_device *device;

	if (!opener && index)
		conform_skip(c, "needs %u devices: %s", index + 1, rig_error());
	conform_check(c, opener, "no opener: %s", rig_error());
	ok(c, rig_open_with(opener, options, &device));
	return device;
}

static void check_complaint(struct conform *c)
{
	const char *complaint = c->source->complaint ? c->source->complaint(c->source) : NULL;

	conform_check(c, !complaint, "the driver says of the runtime: %s", complaint);
}

static void end(struct conform *c, struct rig_device *device)
{
	ok(c, rig_close(device));
	rig_device_put(device);
	check_complaint(c);
}

static struct rig_buffer *buffer(struct conform *c, struct rig_device *device, uint64_t bytes)
{
	struct rig_buffer *b;
	int answer = rig_buffer_create(device, RIG_DEVICE, bytes, &b);

	if (answer == -ENOMEM)
		conform_skip(c, "the device has no %llu bytes: %s", (unsigned long long)bytes, rig_error());
	conform_check(c, !answer, "a buffer of %llu bytes: %s", (unsigned long long)bytes, rig_error());
	return b;
}

static void a_program_writes_and_reads_memory(struct conform *c)
{
	static const uint64_t sizes[] = {1, 7, 64, 1000, 4097, 100001};
	struct rig_device *device = open_with(c, 0, NULL);
	uint8_t *src = malloc(100001), *other = malloc(100001), *dst = malloc(100001);
	struct rig_buffer *a, *b;
	size_t i;

	conform_check(c, src && dst && other, "no host memory");
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (rig_buffer_create(device, RIG_DEVICE, sizes[i], &a))
			break;
		/* The other one's bytes keep those of the first from lying where they passed through. */
		if (rig_buffer_create(device, RIG_DEVICE, sizes[i], &b))
			b = rig_buffer_get(a);
		dut_pattern(src, sizes[i], i);
		dut_pattern(other, sizes[i], i + 100);
		ok(c, rig_buffer_write(b, 0, other, sizes[i]));
		ok(c, rig_buffer_read(b, 0, dst, sizes[i]));
		conform_check(c, !memcmp(other, dst, sizes[i]), "%llu bytes are not what was written",
		        (unsigned long long)sizes[i]);
		ok(c, rig_buffer_write(a, 0, src, sizes[i]));
		if (a != b)
			ok(c, rig_buffer_write(b, 0, other, sizes[i]));
		ok(c, rig_buffer_read(a, 0, dst, sizes[i]));
		conform_check(c, !memcmp(src, dst, sizes[i]), "%llu bytes are not what was written",
		        (unsigned long long)sizes[i]);
		rig_buffer_put(a);
		rig_buffer_put(b);
	}
	conform_check(c, i, "no buffer: %s", rig_error());
	free(src);
	free(other);
	free(dst);
	end(c, device);
}

static void a_name_opens_once_and_again_after_its_close(struct conform *c)
{
	struct rig_device *device = open_with(c, 0, NULL), *second = NULL;
	int answer = rig_open(c->source->opener(c->source, 0), &second);

	conform_check(c, answer == -EBUSY, "a second open of the name answered %d", answer);
	end(c, device);
	device = open_with(c, 0, NULL);
	end(c, device);
}

static struct rig_submission *submission(struct conform *c, struct rig_device *device, uint64_t bytes)
{
	struct rig_work part = {.kind = RIG_COPY};
	struct rig_description description = {.version = RIG_EDGE_VERSION,
	        .parts = &part,
	        .nparts = bytes ? 1 : 0,
	        .reads = 1,
	        .writes = 1};
	struct rig_submission *s;

	if (!bytes)
		description.reads = description.writes = 0;
	part.u.copy.dst.slot = 1;
	part.u.copy.row_bytes = bytes;
	part.u.copy.rows = 1;
	if (rig_submission_make(device, &description, &s))
		conform_skip(c, "no such submission: %s", rig_error());
	return s;
}

static struct rig_run_args *run_of(
        struct conform *c, struct rig_submission *s, struct rig_buffer *src, struct rig_buffer *dst)
{
	struct rig_run_args *run;

	ok(c, rig_run_make(s, &run));
	ok(c, rig_run_buffer(run, 0, src));
	ok(c, rig_run_buffer(run, 1, dst));
	return run;
}

/* Of work that is no misuse: -EINVAL is a device that never runs it. */
static void check_work(struct conform *c, int answer)
{
	if (answer == -EINVAL)
		conform_skip(c, "the device runs no such work: %s", rig_error());
	conform_check(c, !answer, "handing over work answered %d: %s", answer, rig_error());
}

static struct rig_point submit(struct conform *c, struct rig_submission *s, struct rig_run_args *run)
{
	struct rig_point point = {0};

	check_work(c, rig_submit(s, run, NULL, 0, &point));
	return point;
}

static void points_are_reached_in_the_order_of_submission(struct conform *c)
{
	enum { VALUES = 500 };
	struct rig_device *device = open_with(c, 0, NULL);
	struct rig_submission *s = submission(c, device, 0);
	struct rig_point points[VALUES];
	unsigned i;

	for (i = 0; i < VALUES; i++)
		points[i] = submit(c, s, NULL);
	ok(c, rig_wait(points[VALUES / 2]));
	for (i = 0; i <= VALUES / 2; i++)
		conform_check(c, rig_reached(points[i]) == 1, "point %u is not reached after a later one", i);
	ok(c, rig_wait(points[VALUES - 1]));
	conform_check(c, rig_signaled(device) == rig_submitted(device), "signaled is %llu of %llu",
	        (unsigned long long)rig_signaled(device), (unsigned long long)rig_submitted(device));
	rig_submission_put(s);
	end(c, device);
}

static void chains_of_copies_keep_the_bytes_with_nothing_said_of_order(struct conform *c)
{
	enum { LINKS = 6, ROUNDS = 30 };
	struct rig_device *device = open_with(c, 0, NULL);
	struct rig_submission *s = submission(c, device, BYTES);
	struct rig_buffer *b[LINKS];
	struct rig_run_args *run[LINKS - 1];
	uint8_t src[BYTES], dst[BYTES];
	unsigned i, k;

	for (i = 0; i < LINKS; i++)
		b[i] = buffer(c, device, BYTES);
	for (i = 0; i + 1 < LINKS; i++)
		run[i] = run_of(c, s, b[i], b[i + 1]);
	for (k = 0; k < ROUNDS; k++) {
		dut_pattern(src, BYTES, k);
		ok(c, rig_buffer_write(b[0], 0, src, BYTES));
		for (i = 0; i + 1 < LINKS; i++)
			(void)submit(c, s, run[i]);
		ok(c, rig_buffer_read(b[LINKS - 1], 0, dst, BYTES));
		conform_check(c, !memcmp(src, dst, BYTES), "round %u of the chain lost bytes", k);
	}
	for (i = 0; i + 1 < LINKS; i++)
		rig_run_put(run[i]);
	for (i = 0; i < LINKS; i++)
		rig_buffer_put(b[i]);
	rig_submission_put(s);
	end(c, device);
}

static void two_devices_wait_for_each_other_in_a_pipeline(struct conform *c)
{
	enum { ROUNDS = 100 };
	struct rig_device *d[2];
	struct rig_submission *s[2];
	struct rig_point point = {0};
	unsigned i;

	d[0] = open_with(c, 0, NULL);
	d[1] = open_with(c, 1, NULL);
	s[0] = submission(c, d[0], 0);
	s[1] = submission(c, d[1], 0);
	for (i = 0; i < ROUNDS; i++)
		ok(c, rig_submit(s[i & 1], NULL, &point, 1, &point));
	ok(c, rig_wait(point));
	conform_check(c, rig_signaled(d[0]) == rig_submitted(d[0]),
	        "the first device is not done although the last point is");
	rig_submission_put(s[0]);
	rig_submission_put(s[1]);
	end(c, d[1]);
	end(c, d[0]);
}

static void bytes_go_from_one_device_to_the_other(struct conform *c)
{
	struct rig_device *d[2];
	struct rig_buffer *a, *b;
	uint8_t src[BYTES], dst[BYTES] = {0};

	d[0] = open_with(c, 0, NULL);
	d[1] = open_with(c, 1, NULL);
	a = buffer(c, d[0], BYTES);
	b = buffer(c, d[1], BYTES);
	dut_pattern(src, BYTES, 6);
	ok(c, rig_buffer_write(a, 0, src, BYTES));
	ok(c, rig_buffer_copy(b, 0, a, 0, BYTES));
	ok(c, rig_buffer_read(b, 0, dst, BYTES));
	conform_check(c, !memcmp(src, dst, BYTES), "the bytes did not arrive");
	rig_buffer_put(a);
	rig_buffer_put(b);
	end(c, d[1]);
	end(c, d[0]);
}

static void copies_within_a_buffer_keep_the_bytes_and_never_overlap(struct conform *c)
{
	struct rig_device *device = open_with(c, 0, NULL);
	struct rig_buffer *b = buffer(c, device, 2 * BYTES);
	uint8_t want[2 * BYTES], got[2 * BYTES];
	int code;

	dut_pattern(want, 2 * BYTES, 8);
	ok(c, rig_buffer_write(b, 0, want, 2 * BYTES));
	code = rig_buffer_copy(b, 0, b, BYTES - 1, BYTES);
	conform_check(c, code == -EINVAL, "a copy to an overlapping range before it answered %d", code);
	code = rig_buffer_copy(b, BYTES - 1, b, 0, BYTES);
	conform_check(c, code == -EINVAL, "a copy to an overlapping range behind it answered %d", code);
	check_work(c, rig_buffer_copy(b, 7, b, 7, BYTES));
	check_work(c, rig_buffer_copy(b, BYTES, b, 0, BYTES));
	memcpy(want + BYTES, want, BYTES);
	ok(c, rig_buffer_read(b, 0, got, 2 * BYTES));
	conform_check(c, !memcmp(want, got, 2 * BYTES), "the copy lost bytes");
	rig_buffer_put(b);
	end(c, device);
}

static void memory_is_used_again_and_comes_back_at_the_end(struct conform *c)
{
	enum { ROUNDS = 300, SIZE = 1000 };
	struct rig_device *device = open_with(c, 0, NULL);
	struct rig_buffer *b;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		b = buffer(c, device, SIZE);
		rig_buffer_put(b);
	}
	rig_cache_trim(device, 0);
	conform_check(c, !rig_held_bytes(device, NULL), "%llu bytes are held after all buffers were put",
	        (unsigned long long)rig_held_bytes(device, NULL));
	end(c, device);
}

static void a_closed_device_answers_lost_and_its_reached_points_stay_reached(struct conform *c)
{
	struct rig_device *device = open_with(c, 0, NULL);
	struct rig_submission *s = submission(c, device, 0);
	struct rig_point point = submit(c, s, NULL);
	const char *reason = NULL;

	ok(c, rig_close(device));
	conform_check(c, rig_lost(device, &reason) && reason && strstr(reason, "closed"),
	        "lost for the reason \"%s\"", reason ? reason : "none");
	conform_check(c, rig_reached(point) == 1, "close lost a point that was submitted before");
	conform_check(c, rig_submit(s, NULL, NULL, 0, &point) == RIG_LOST, "a closed device takes work");
	rig_submission_put(s);
	rig_device_put(device);
	check_complaint(c);
}

struct user {
	struct conform *c;
	struct rig_submission *s;
};

static void *use(void *arg)
{
	struct user *u = arg;
	unsigned i;

	for (i = 0; i < 200; i++) {
		struct rig_point point = submit(u->c, u->s, NULL);

		if (i % 16 == 0)
			ok(u->c, rig_wait(point));
	}
	return NULL;
}

static void threads_share_a_device(struct conform *c)
{
	enum { THREADS = 4 };
	struct rig_device *device = open_with(c, 0, NULL);
	struct user u = {c, submission(c, device, 0)};
	pthread_t threads[THREADS];
	unsigned i;

	for (i = 0; i < THREADS; i++)
		conform_check(c, !pthread_create(&threads[i], NULL, use, &u), "no thread");
	for (i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	ok(c, rig_wait_device(device, rig_submitted(device)));
	rig_submission_put(u.s);
	end(c, device);
}

/* ---- Code ---- */

static const struct rig_conform_code *code_of(struct conform *c, const struct rig_device *device)
{
	const struct rig_conform_code *code = NULL;

	if (c->source->code)
		code = c->source->code(c->source, rig_arch(device));
	if (!code)
		conform_skip(c, "no code of the laws for architecture %s", rig_arch(device));
	return code;
}

static struct rig_image *load(
        struct conform *c, struct rig_device *device, const struct rig_conform_code *code)
{
	struct rig_image *image;

	ok(c, rig_image_load(device, code->binary, code->bytes, &image));
	return image;
}

static struct rig_submission *launch(struct conform *c, struct rig_image *image, struct rig_device *device,
        const char *function, uint32_t params)
{
	static const struct rig_ref ref = {.at = 0, .slot = 0};
	struct rig_work part = {.kind = RIG_LAUNCH};
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *s;

	part.u.launch.image = image;
	part.u.launch.function = function;
	part.u.launch.params = params;
	if (params) {
		part.u.launch.refs = &ref;
		part.u.launch.nrefs = 1;
		description.writes = 1;
	}
	ok(c, rig_submission_make(device, &description, &s));
	return s;
}

static void a_program_runs_code_on_its_buffers(struct conform *c)
{
	enum { CELLS = 64 };
	struct rig_conform_add p = {.add = 7};
	struct rig_device *device = open_with(c, 0, NULL);
	struct rig_image *image = load(c, device, code_of(c, device));
	struct rig_submission *s = launch(c, image, device, "conform_add", sizeof(p));
	struct rig_buffer *b = buffer(c, device, CELLS * 4);
	uint32_t cells[CELLS] = {0};
	struct rig_run_args *run;
	unsigned i;

	ok(c, rig_buffer_write(b, 0, cells, sizeof(cells)));
	ok(c, rig_run_make(s, &run));
	ok(c, rig_run_params(run, 0, 0, &p, sizeof(p)));
	ok(c, rig_run_buffer(run, 0, b));
	ok(c, rig_run_grid(run, 0, 8, 1, 1));
	ok(c, rig_run_group(run, 0, 4, 2, 1));
	(void)submit(c, s, run);
	(void)submit(c, s, run);
	ok(c, rig_buffer_read(b, 0, cells, sizeof(cells)));
	for (i = 0; i < CELLS; i++)
		conform_check(
		        c, cells[i] == 14, "cell %u holds %u after two launches that add 7", i, cells[i]);
	rig_run_put(run);
	rig_buffer_put(b);
	rig_submission_put(s);
	rig_image_put(image);
	end(c, device);
}

/* Runs the function, which loses the device; its reason. */
static void lose(struct conform *c, const char *function, int64_t hang_ms, const char *word)
{
	struct rig_open_options options = {.version = RIG_EDGE_VERSION, .hang_ms = hang_ms};
	struct rig_device *device = open_with(c, 0, &options);
	const struct rig_conform_code *code = code_of(c, device);
	struct rig_image *image = load(c, device, code);
	const char *reason = NULL;
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point point;

	if (!(hang_ms ? code->forever : code->fault))
		conform_skip(c, "the code of the laws has no %s", function);
	s = launch(c, image, device, function, 0);
	ok(c, rig_run_make(s, &run));
	point = submit(c, s, run);
	conform_check(c, rig_wait(point) == RIG_LOST, "%s is reached", function);
	conform_check(c, rig_lost(device, &reason) && reason[0] && strstr(reason, word),
	        "lost for the reason \"%s\"", reason ? reason : "none");
	conform_check(c, rig_reached(point) == RIG_LOST, "a lost point is not lost");
	rig_run_put(run);
	rig_submission_put(s);
	rig_image_put(image);
	rig_device_put(device);
	device = open_with(c, 0, NULL);
	s = submission(c, device, 0);
	ok(c, rig_wait(submit(c, s, NULL)));
	rig_submission_put(s);
	end(c, device);
}

static void a_fault_loses_the_device_with_its_text_and_the_name_opens_again(struct conform *c)
{
	lose(c, "conform_fault", 0, "");
}

static void endless_work_loses_the_device_at_the_bound_and_the_name_opens_again(struct conform *c)
{
	lose(c, "conform_forever", 300, "no progress for 300 ms");
}

/* In the queue or, where the device's queues wait for no such device, in the submit. */
static void a_wait_is_told_of_a_fault_of_the_device_that_the_work_waits_for(struct conform *c)
{
	struct rig_device *a = open_with(c, 0, NULL), *b = open_with(c, 1, NULL);
	const struct rig_conform_code *code = code_of(c, a);
	struct rig_image *image = load(c, a, code);
	struct rig_submission *fault, *after = submission(c, b, 0);
	struct rig_run_args *run;
	struct rig_point point;
	int answer;

	if (!code->fault)
		conform_skip(c, "the code of the laws has no conform_fault");
	fault = launch(c, image, a, "conform_fault", 0);
	ok(c, rig_run_make(fault, &run));
	point = submit(c, fault, run);
	answer = rig_submit(after, NULL, &point, 1, &point);
	if (!answer)
		answer = rig_wait(point);
	conform_check(c, answer == RIG_LOST, "the work after a fault answered %d: %s", answer, rig_error());
	conform_check(
	        c, strstr(rig_error(), rig_name(a)), "\"%s\" does not name %s", rig_error(), rig_name(a));
	conform_check(c, rig_lost(a, NULL), "the device that faulted is not lost");
	rig_run_put(run);
	rig_submission_put(fault);
	rig_submission_put(after);
	rig_image_put(image);
	end(c, b);
	end(c, a);
}

static const struct conform_law laws[] = {
        LAW(a_program_writes_and_reads_memory, "E-093 E-184"),
        LAW(a_name_opens_once_and_again_after_its_close, "E-035"),
        LAW(points_are_reached_in_the_order_of_submission, "E-008 E-097"),
        LAW(chains_of_copies_keep_the_bytes_with_nothing_said_of_order, "E-097 E-127"),
        LAW(two_devices_wait_for_each_other_in_a_pipeline, "E-009 E-054 E-055 E-056"),
        LAW(bytes_go_from_one_device_to_the_other, "E-007"),
        LAW(copies_within_a_buffer_keep_the_bytes_and_never_overlap, "E-093"),
        LAW(memory_is_used_again_and_comes_back_at_the_end, "E-058"),
        LAW(a_closed_device_answers_lost_and_its_reached_points_stay_reached, "E-235"),
        LAW(threads_share_a_device, "E-103 E-106"),
        LAW(a_program_runs_code_on_its_buffers, "E-095 E-213 E-217"),
        LAW(a_fault_loses_the_device_with_its_text_and_the_name_opens_again, "E-042 E-100 E-233"),
        LAW(a_wait_is_told_of_a_fault_of_the_device_that_the_work_waits_for, "E-233 E-238"),
        LAW(endless_work_loses_the_device_at_the_bound_and_the_name_opens_again, "E-234 E-242 E-247"),
};
CONFORM_GROUP(runtime, laws);
