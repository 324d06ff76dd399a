/* SPDX-License-Identifier: MIT */
/* Submissions: placement, order, room, and what a submit may not do. */
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocs.h"
#include "rig_help.h"

#define BYTES 1000u
#define COUNT 16u

static void a_copy_submission_moves_the_bytes(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *src = help_buffer(b.d, BYTES), *dst = help_buffer(b.d, BYTES);
	struct rig_submission *s = help_copy(b.d, BYTES);
	struct rig_run_args *run = help_copy_run(s, src, dst);
	uint8_t in[BYTES], out[BYTES] = {0};
	struct rig_point point;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7);
	assert_ok(rig_buffer_write(src, 0, in, sizeof(in)));
	point = help_submit(s, run);
	assert_int_equal(rig_reached(point), 0);
	assert_ok(rig_wait(point));
	assert_int_equal(rig_reached(point), 1);
	assert_ok(rig_buffer_read(dst, 0, out, sizeof(out)));
	assert_memory_equal(in, out, sizeof(in));
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	help_close(&b);
}

static struct rig_work launch_of(struct rig_image *image, const char *function, uint32_t params)
{
	struct rig_work part = {.kind = RIG_LAUNCH};

	part.u.launch.image = image;
	part.u.launch.function = function;
	part.u.launch.params = params;
	return part;
}

static int make_one(
        struct rig_device *d, const struct rig_work *part, uint32_t writes, struct rig_submission **s)
{
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = part, .nparts = 1, .writes = writes};

	return rig_submission_make(d, &description, s);
}

static void a_launch_gets_its_grid_its_parameters_and_a_buffers_address(void **state)
{
	static const struct rig_ref ref = {.at = 0, .slot = 0};
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_image *image = help_image(b.d);
	struct rig_work part = launch_of(image, "add", sizeof(struct polled_add));
	struct rig_buffer *whole = help_buffer(b.d, 2 * COUNT * 4), *half;
	struct polled_add params = {.dst = 4, .add = 5};
	uint32_t zero[2 * COUNT] = {0}, out[2 * COUNT];
	struct rig_submission *s;
	struct rig_run_args *run;
	uint32_t i;

	(void)state;
	part.u.launch.refs = &ref;
	part.u.launch.nrefs = 1;
	assert_ok(make_one(b.d, &part, 1, &s));
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_buffer_view(whole, COUNT * 4, COUNT * 4, &half));
	assert_ok(rig_buffer_write(whole, 0, zero, sizeof(zero)));
	assert_ok(rig_run_grid(run, 0, 3, 1, 1));
	assert_ok(rig_run_group(run, 0, 4, 1, 1));
	assert_ok(rig_run_params(run, 0, 0, &params, sizeof(params)));
	assert_ok(rig_run_buffer(run, 0, half));
	(void)help_submit(s, run);
	assert_ok(rig_wait(help_submit(s, run)));
	assert_ok(rig_buffer_read(whole, 0, out, sizeof(out)));
	for (i = 0; i < 2 * COUNT; i++)
		assert_int_equal(out[i], i > COUNT && i <= COUNT + 12 ? 10 : 0);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(half);
	rig_buffer_put(whole);
	rig_image_put(image);
	help_close(&b);
}

/* E-222, E-223, E-225 and the bounds of refs. */
static void launches_out_of_the_functions_limits_are_refused(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_image *image = help_image(b.d);
	struct rig_work part = launch_of(image, "limited", 7);
	struct rig_ref refs[2] = {{.at = 0, .slot = 0}, {.at = 0, .slot = 0}};
	struct rig_submission *s;
	struct rig_run_args *run;

	(void)state;
	assert_int_equal(make_one(b.d, &part, 1, &s), -EINVAL);
	part.u.launch.params = RIG_PARAMS + 1;
	assert_int_equal(make_one(b.d, &part, 1, &s), -EINVAL);
	part.u.launch.params = 24;
	part.u.launch.refs = refs;
	part.u.launch.nrefs = 1;
	refs[0].at = 8; /* the function reads 8 bytes */
	assert_int_equal(make_one(b.d, &part, 1, &s), -EINVAL);
	refs[0].at = 4;
	assert_int_equal(make_one(b.d, &part, 1, &s), -EINVAL);
	refs[0].at = 0;
	refs[0].slot = 1;
	assert_int_equal(make_one(b.d, &part, 1, &s), -EINVAL);
	refs[0].slot = 0;
	part.u.launch.nrefs = 2;
	assert_int_equal(make_one(b.d, &part, 1, &s), -EINVAL);
	part.u.launch.nrefs = 1;
	part.u.launch.function = "none";
	assert_int_equal(make_one(b.d, &part, 1, &s), -ENOENT);
	part.u.launch.function = "limited";
	assert_ok(make_one(b.d, &part, 1, &s));
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_group(run, 0, 4, 4, 1));
	assert_int_equal(rig_run_group(run, 0, 17, 1, 1), -EINVAL);
	assert_int_equal(rig_run_group(run, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX), -EINVAL);
	assert_int_equal(rig_run_group(run, 0, 0, 1, 1), -EINVAL);
	assert_int_equal(rig_run_grid(run, 0, 1, 0, 1), -EINVAL);
	assert_int_equal(rig_run_grid(run, 1, 1, 1, 1), -EINVAL);
	assert_int_equal(rig_run_params(run, 0, 20, "12345", 5), -EINVAL);
	assert_int_equal(rig_run_params(run, 0, UINT32_MAX, "12345", 5), -EINVAL);
	assert_int_equal(rig_run_buffer(run, 1, NULL), -EINVAL);
	/* An unset slot. */
	assert_int_equal(rig_submit(s, run, NULL, 0, NULL), -EINVAL);
	assert_int_equal(rig_submit(s, NULL, NULL, 0, NULL), -EINVAL);
	rig_run_put(run);
	rig_submission_put(s);
	part = launch_of(image, "free", 3);
	assert_ok(make_one(b.d, &part, 0, &s));
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_group(run, 0, 4000, 1, 1));
	assert_ok(rig_wait(help_submit(s, run)));
	rig_run_put(run);
	rig_submission_put(s);
	rig_image_put(image);
	help_close(&b);
}

/* NEVER: no value is taken, and the driver's text arrives. */
static void what_the_driver_never_runs_is_refused_with_its_reason(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_image *image = help_image(b.d);
	struct rig_work part = launch_of(image, "free", 0);
	struct rig_submission *s;
	struct rig_run_args *run;
	uint64_t before = rig_submitted(b.d);

	(void)state;
	assert_ok(make_one(b.d, &part, 0, &s));
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_shared(run, 0, 4097));
	assert_int_equal(rig_submit(s, run, NULL, 0, NULL), -EINVAL);
	assert_non_null(strstr(rig_error(), "more than 16 parts"));
	assert_int_equal(rig_submitted(b.d), before);
	assert_false(rig_lost(b.d, NULL));
	assert_ok(rig_run_shared(run, 0, 4096));
	assert_ok(rig_wait(help_submit(s, run)));
	rig_run_put(run);
	rig_submission_put(s);
	rig_image_put(image);
	help_close(&b);
}

static int count_fill(void *context, const void *arg, uint64_t value)
{
	(void)context;
	**(uint64_t *const *)arg = value;
	return 0;
}

/* E-082 to E-090: the first case's words meet launches only on queue 2; copies follow words onto queue 2. */
static void parts_go_on_the_queues_that_the_contract_names(void **state)
{
	static const struct rig_queue queues[] = {
	        {"WORDS:0", RIG_RUNS(RIG_WORDS)},
	        {"COPY:0", RIG_RUNS(RIG_COPY)},
	        {"COMPUTE:0", RIG_RUNS(RIG_LAUNCH) | RIG_RUNS(RIG_WORDS) | RIG_RUNS(RIG_COPY)},
	        {"COMPUTE:1", RIG_RUNS(RIG_LAUNCH) | RIG_RUNS(RIG_WORDS)},
	        {"FILL:0", RIG_RUNS(RIG_FILL)},
	        {"FILL:1", RIG_RUNS(RIG_FILL)},
	};
	static const uint32_t words[] = {1, 2, 3}, after0[] = {0}, after4[] = {4}, after_all[] = {0, 1, 2, 4};
	static uint64_t filled, *filled_at = &filled;
	struct polled_options o = help_options();
	struct rig_work parts[7] = {{0}};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = parts, .nparts = 7, .reads = 1, .writes = 1};
	struct rig_buffer *src, *dst;
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_image *image;
	const struct rig_part *seen;
	uint32_t n, i, ran[4];
	struct bench b;

	(void)state;
	o.queues = queues;
	o.nqueues = 6;
	o.copy_engine = 1;
	b = help_open(&o);
	image = help_image(b.d);
	src = help_buffer(b.d, 64);
	dst = help_buffer(b.d, 64);
	parts[0].kind = RIG_WORDS; /* E-087 */
	parts[0].u.words.words = words;
	parts[0].u.words.count = 3;
	parts[1] = launch_of(image, "free", 0); /* E-089 */
	parts[2].kind = RIG_FILL;               /* E-090 */
	parts[2].u.fill.fill = count_fill;
	parts[2].u.fill.arg = &filled_at;
	for (i = 3; i < 7; i++) {
		parts[i].kind = RIG_COPY;
		parts[i].u.copy.dst.slot = 1;
		parts[i].u.copy.row_bytes = 64;
		parts[i].u.copy.rows = 1;
	}
	parts[3].after = after0; /* E-084: the queue of the part it follows */
	parts[3].nafter = 1;
	/* 4: E-085, follows nothing: the engine */
	parts[5].after = after4;
	parts[5].nafter = 1;
	parts[6].after = after_all; /* the latest is 4, on the engine */
	parts[6].nafter = 4;
	assert_ok(rig_submission_make(b.d, &description, &s));
	run = help_copy_run(s, src, dst);
	assert_ok(rig_wait(help_submit(s, run)));
	seen = polled_parts(b.p, &n);
	assert_int_equal(n, 7);
	assert_int_equal(seen[0].queue, 2);
	assert_int_equal(seen[1].queue, 2);
	assert_int_equal(seen[2].queue, 4);
	assert_int_equal(seen[3].queue, 2);
	assert_int_equal(seen[4].queue, 1);
	assert_int_equal(seen[5].queue, 1);
	assert_int_equal(seen[6].queue, 1);
	/* E-083: the told set is that of other queues. */
	assert_int_equal(seen[3].nafter, 0);
	assert_int_equal(seen[5].nafter, 0);
	assert_int_equal(seen[6].nafter, 3);
	assert_int_equal(seen[6].after[2], 2);
	assert_int_equal(polled_words(b.p, ran, 4), 3);
	assert_memory_equal(ran, words, sizeof(words));
	assert_int_equal(filled, rig_submitted(b.d));
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	rig_image_put(image);
	help_close(&b);
}

/* E-088 */
static void words_go_on_the_first_words_queue_where_they_never_meet_launches(void **state)
{
	static const struct rig_queue queues[] = {
	        {"L", RIG_RUNS(RIG_LAUNCH)}, {"W", RIG_RUNS(RIG_WORDS)}, {"W2", RIG_RUNS(RIG_WORDS)}};
	static const uint32_t word = 9;
	struct polled_options o = help_options();
	struct rig_work part = {.kind = RIG_WORDS, .u.words = {&word, 1}};
	struct rig_submission *s;
	const struct rig_part *seen;
	struct bench b;
	uint32_t n;

	(void)state;
	o.queues = queues;
	o.nqueues = 3;
	o.no_engine = true;
	b = help_open(&o);
	assert_ok(make_one(b.d, &part, 0, &s));
	assert_ok(rig_wait(help_submit(s, NULL)));
	seen = polled_parts(b.p, &n);
	assert_int_equal(seen[0].queue, 1);
	rig_submission_put(s);
	part.kind = RIG_COPY;
	part.u.copy.row_bytes = part.u.copy.rows = 1;
	assert_int_equal(make_one(b.d, &part, 1, &s), -ENOTSUP);
	part.kind = RIG_FILL;
	part.u.fill.fill = count_fill;
	assert_int_equal(make_one(b.d, &part, 1, &s), -ENOTSUP);
	help_close(&b);
}

static void bad_descriptions_are_refused_at_make(void **state)
{
	static const uint32_t self[] = {0}, twice[] = {0, 0};
	struct polled_options o = help_options(), o1 = help_options();
	struct bench b = help_open(&o), c;
	struct rig_buffer *own = help_buffer(b.d, 64), *foreign;
	struct rig_work parts[2] = {{0}};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = parts, .nparts = 1, .reads = 1, .writes = 1};
	struct rig_fixed fixed = {NULL, RIG_READ};
	struct rig_submission *s;

	(void)state;
	o1.name = "P1";
	c = help_open(&o1);
	foreign = help_buffer(c.d, 64);
	description.version = 2;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL);
	description.version = RIG_EDGE_VERSION;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* kind 0 */
	parts[0].kind = RIG_WORDS;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* no words */
	parts[0].kind = RIG_FILL;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* no function */
	parts[0].kind = RIG_COPY;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* no rows */
	parts[0].u.copy.rows = parts[0].u.copy.row_bytes = 2;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* writes a read slot */
	parts[0].u.copy.dst.slot = 2;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* no such slot */
	parts[0].u.copy.dst.slot = 1;
	parts[0].u.copy.dst.pitch = 1;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* rows overlap */
	parts[0].u.copy.dst.pitch = UINT64_MAX;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* wraps */
	parts[0].u.copy.dst.pitch = 0;
	parts[0].u.copy.src.slot = RIG_FIXED;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* no buffer */
	parts[0].u.copy.src.buffer = foreign;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL);
	assert_non_null(strstr(rig_error(), "borrow"));
	parts[0].u.copy.src.buffer = own;
	parts[0].u.copy.src.offset = 61;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL); /* one byte too far */
	parts[0].u.copy.src.offset = 60;
	parts[0].after = self;
	parts[0].nafter = 1;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL);
	parts[0].nafter = 0;
	parts[1] = parts[0];
	parts[1].after = twice;
	parts[1].nafter = 2;
	description.nparts = 2;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL);
	description.nparts = 1;
	description.fixed = &fixed;
	description.nfixed = 1;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL);
	description.nfixed = 0;
	description.reads = UINT32_MAX;
	assert_int_equal(rig_submission_make(b.d, &description, &s), -EINVAL);
	rig_buffer_put(own);
	rig_buffer_put(foreign);
	help_close(&b);
	help_close(&c);
}

static void a_runs_buffer_must_hold_what_the_copies_reach(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *exact = help_buffer(b.d, 64), *small = help_buffer(b.d, 63);
	struct rig_submission *s = help_copy(b.d, 64);
	struct rig_run_args *run;

	(void)state;
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_buffer(run, 0, exact));
	assert_int_equal(rig_run_buffer(run, 1, small), -EINVAL);
	assert_int_equal(rig_submit(s, run, NULL, 0, NULL), -EINVAL);
	assert_ok(rig_run_buffer(run, 1, exact));
	assert_ok(rig_wait(help_submit(s, run)));
	assert_ok(rig_run_buffer(run, 1, NULL));
	assert_int_equal(rig_submit(s, run, NULL, 0, NULL), -EINVAL);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(exact);
	rig_buffer_put(small);
	help_close(&b);
}

/* Rows with pitches, a fill, and fixed sides at offsets. */
static void rows_are_copied_and_filled_as_described(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *src = help_buffer(b.d, 32), *dst = help_buffer(b.d, 64);
	struct rig_work parts[2] = {{.kind = RIG_COPY}, {.kind = RIG_COPY}};
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = parts, .nparts = 2};
	struct rig_submission *s;
	uint8_t in[32], out[64], expected[64];
	uint32_t i;

	(void)state;
	for (i = 0; i < 32; i++)
		in[i] = (uint8_t)i;
	memset(out, 0xee, sizeof(out));
	memset(expected, 0xee, sizeof(expected));
	assert_ok(rig_buffer_write(src, 0, in, sizeof(in)));
	assert_ok(rig_buffer_write(dst, 0, out, sizeof(out)));
	parts[0].u.copy = (struct rig_copy_work){
	        .dst = {RIG_FIXED, dst, 1, 10}, .src = {RIG_FIXED, src, 2, 8}, .row_bytes = 3, .rows = 4};
	parts[1].u.copy = (struct rig_copy_work){
	        .dst = {RIG_FIXED, dst, 60, 0}, .row_bytes = 2, .rows = 2, .fill = true, .byte = 0x5a};
	assert_ok(rig_submission_make(b.d, &description, &s));
	assert_ok(rig_wait(help_submit(s, NULL)));
	for (i = 0; i < 4; i++)
		memcpy(expected + 1 + 10 * i, in + 2 + 8 * i, 3);
	memset(expected + 60, 0x5a, 4);
	assert_ok(rig_buffer_read(dst, 0, out, sizeof(out)));
	assert_memory_equal(out, expected, sizeof(out));
	rig_submission_put(s);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	help_close(&b);
}

static void submit_wait_and_reached_allocate_nothing(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *src = help_buffer(b.d, BYTES), *dst = help_buffer(b.d, BYTES);
	struct rig_submission *s = help_copy(b.d, BYTES), *empty = help_empty(b.d);
	struct rig_run_args *run = help_copy_run(s, src, dst);
	struct rig_point point;
	uint64_t before;
	int i;

	(void)state;
	before = test_allocs();
	for (i = 0; i < 100; i++) {
		(void)help_submit(empty, NULL);
		point = help_submit(s, run);
		assert_ok(rig_wait(point));
		assert_int_equal(rig_reached(point), 1);
		assert_ok(rig_wait(point));
	}
	assert_int_equal(test_allocs(), before);
	rig_run_put(run);
	rig_submission_put(s);
	rig_submission_put(empty);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	help_close(&b);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

struct confined {
	struct bench *b;
	struct rig_submission *s;
	struct rig_run_args *run;
	_Atomic int done, failures;
};

/* The system kills the thread at its first call but read, write and exit. */
static void *submit_confined(void *arg)
{
	struct confined *c = arg;
	struct rig_point point = {0};
	int i;

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) {
		c->done = -1;
		return NULL;
	}
	for (i = 0; i < 50; i++)
		c->failures += rig_submit(c->s, c->run, &point, i > 0, &point) != 0;
	(void)polled_run(c->b->p, 50);
	c->failures += rig_wait(point) != 0;
	c->failures += rig_reached(point) != 1;
	c->done = 1;
	(void)syscall(SYS_exit, 0);
	return NULL;
}

static void submit_wait_and_reached_make_no_system_call(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *src = help_buffer(b.d, BYTES), *dst = help_buffer(b.d, BYTES);
	struct rig_submission *s = help_copy(b.d, BYTES);
	struct confined c = {.b = &b, .s = s, .run = help_copy_run(s, src, dst)};
	pthread_t thread;

	(void)state;
	if (!SANITIZED) {
		/* Once before, so that the linker has resolved what is called. */
		assert_ok(rig_wait(help_submit(s, c.run)));
		assert_int_equal(pthread_create(&thread, NULL, submit_confined, &c), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	rig_run_put(c.run);
	rig_submission_put(s);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	help_close(&b);
	if (SANITIZED || c.done < 0) {
		print_message("sanitizers make system calls, or the system has no seccomp\n");
		skip();
	}
	assert_int_equal(c.done, 1);
	assert_int_equal(c.failures, 0);
}

/* LATER: the submit waits for one value more, without losing anything. */
static void a_full_queue_makes_a_submit_wait(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_submission *s;
	int i;

	(void)state;
	o.capacity = 4;
	b = help_open(&o);
	s = help_empty(b.d);
	for (i = 0; i < 50; i++)
		(void)help_submit(s, NULL);
	assert_int_equal(polled_last(b.p), rig_submitted(b.d));
	/* Only what was needed for room ran. */
	assert_int_equal(rig_signaled(b.d), rig_submitted(b.d) - 4);
	rig_submission_put(s);
	help_close(&b);
}

static void a_driver_that_says_later_while_idle_is_lost(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_submission *s;
	const char *reason;

	(void)state;
	o.always_later = true;
	b = help_open(&o);
	s = help_empty(b.d);
	assert_int_equal(rig_submit(s, NULL, NULL, 0, NULL), RIG_LOST);
	assert_true(rig_lost(b.d, &reason));
	assert_non_null(strstr(reason, "RIG_LATER"));
	rig_submission_put(s);
	help_end(&b);
}

/* E-229, E-232 */
static void queues_grow_and_a_short_growth_is_asked_again(void **state)
{
	static const uint32_t word = 1;
	struct polled_options o = help_options();
	struct rig_work parts[8];
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = parts, .nparts = 8};
	struct rig_submission *s;
	struct bench b;
	uint32_t i;

	(void)state;
	o.parts = 2;
	o.short_grows = 2;
	b = help_open(&o);
	for (i = 0; i < 8; i++)
		parts[i] = (struct rig_work){.kind = RIG_WORDS, .u.words = {&word, 1}};
	assert_ok(rig_submission_make(b.d, &description, &s));
	assert_ok(rig_wait(help_submit(s, NULL)));
	assert_int_equal(polled_count(b.p, POLLED_GROW), 3);
	assert_ok(rig_wait(help_submit(s, NULL)));
	assert_int_equal(polled_count(b.p, POLLED_GROW), 3);
	rig_submission_put(s);
	help_close(&b);
}

static void a_driver_that_asks_for_growth_for_ever_is_lost(void **state)
{
	static const uint32_t word = 1;
	struct polled_options o = help_options();
	struct rig_work parts[3];
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = parts, .nparts = 3};
	struct rig_submission *s;
	const char *reason;
	struct bench b;
	uint32_t i;

	(void)state;
	o.parts = 2;
	o.lie = POLLED_LIE_grows_nothing;
	b = help_open(&o);
	for (i = 0; i < 3; i++)
		parts[i] = (struct rig_work){.kind = RIG_WORDS, .u.words = {&word, 1}};
	assert_ok(rig_submission_make(b.d, &description, &s));
	assert_int_equal(rig_submit(s, NULL, NULL, 0, NULL), RIG_LOST);
	assert_true(rig_lost(b.d, &reason));
	assert_non_null(strstr(reason, "growth"));
	rig_submission_put(s);
	help_end(&b);
}

static void queues_that_cannot_grow_refuse_the_submit_alone(void **state)
{
	static const uint32_t word = 1;
	struct polled_options o = help_options();
	struct rig_work parts[3];
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = parts, .nparts = 3};
	struct rig_submission *s, *empty;
	struct bench b;
	uint32_t i;

	(void)state;
	o.parts = 2;
	o.short_grows = 1000;
	b = help_open(&o);
	for (i = 0; i < 3; i++)
		parts[i] = (struct rig_work){.kind = RIG_WORDS, .u.words = {&word, 1}};
	assert_ok(rig_submission_make(b.d, &description, &s));
	assert_int_equal(rig_submit(s, NULL, NULL, 0, NULL), -ENOMEM);
	empty = help_empty(b.d);
	assert_ok(rig_wait(help_submit(empty, NULL)));
	rig_submission_put(s);
	rig_submission_put(empty);
	help_close(&b);
}

/* E-139 to E-145: every wait commits first. */
static void a_wait_commits_what_a_batching_driver_only_encoded(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_submission *s;
	struct rig_point point;

	(void)state;
	o.batch = true;
	b = help_open(&o);
	s = help_empty(b.d);
	(void)help_submit(s, NULL);
	point = help_submit(s, NULL);
	assert_int_equal(polled_run(b.p, 10), 0);
	assert_int_equal(rig_reached(point), 0);
	assert_ok(rig_wait(point));
	assert_int_equal(polled_count(b.p, POLLED_COMMIT), 1);
	assert_ok(rig_wait(point));
	assert_int_equal(polled_count(b.p, POLLED_COMMIT), 1);
	(void)help_submit(s, NULL);
	(void)rig_signaled(b.d);
	assert_int_equal(polled_count(b.p, POLLED_COMMIT), 2);
	rig_submission_put(s);
	help_close(&b);
}

/* E-018 to E-021, E-023 */
static void a_word_of_the_drivers_own_is_read_through_signaled(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_submission *s;
	struct rig_point point;
	rig_atomic_u64 *words = rig_words();

	(void)state;
	o.own_word = true;
	b = help_open(&o);
	s = help_empty(b.d);
	point = help_submit(s, NULL);
	assert_int_equal(polled_run(b.p, 1), 1);
	assert_int_not_equal(rig_word_load(&words[rig_point_slot(point)]), rig_point_value(point));
	assert_int_equal(rig_reached(point), 1);
	/* Raised into the array, where others read it. */
	assert_int_equal(rig_word_load(&words[rig_point_slot(point)]), rig_point_value(point));
	assert_ok(rig_wait(help_submit(s, NULL)));
	rig_submission_put(s);
	help_close(&b);
}

static void points_that_never_were_are_refused(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point = help_submit(s, NULL), next = {point.bits + 1}, wild = {UINT64_MAX},
	                 none = {0}, host = {7};

	(void)state;
	assert_int_equal(rig_wait(next), -EINVAL);
	assert_int_equal(rig_wait(wild), -EINVAL);
	assert_int_equal(rig_wait(host), -EINVAL);
	assert_int_equal(rig_reached(next), -EINVAL);
	assert_int_equal(rig_submit(s, NULL, &next, 1, NULL), -EINVAL);
	assert_int_equal(rig_wait_device(b.d, rig_submitted(b.d) + 1), -EINVAL);
	assert_ok(rig_wait(none));
	assert_int_equal(rig_reached(none), 1);
	assert_ok(rig_submit(s, NULL, &none, 1, NULL));
	assert_ok(rig_wait_device(b.d, rig_submitted(b.d)));
	rig_submission_put(s);
	help_close(&b);
}

struct kept {
	struct polled *p;
	int puts;
	uint64_t word;
};

static void put_kept(void *object)
{
	struct kept *kept = object;

	kept->puts++;
	kept->word = polled_word(kept->p);
}

/* */
static void what_a_submission_keeps_is_put_once_its_work_is_done(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_submission *s = help_empty(b.d), *t;
	struct kept kept = {.p = b.p};
	struct rig_point point;

	(void)state;
	assert_ok(rig_submission_keep(s, &kept, put_kept));
	polled_gate(b.p, 0);
	point = help_submit(s, NULL);
	rig_submission_put(s);
	t = help_empty(b.d);
	assert_int_equal(kept.puts, 0);
	polled_gate(b.p, UINT64_MAX);
	assert_ok(rig_wait(point));
	rig_submission_put(t);
	assert_int_equal(kept.puts, 1);
	assert_true(kept.word >= rig_point_value(point));
	help_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_copy_submission_moves_the_bytes),
	        cmocka_unit_test(a_launch_gets_its_grid_its_parameters_and_a_buffers_address),
	        cmocka_unit_test(launches_out_of_the_functions_limits_are_refused),
	        cmocka_unit_test(what_the_driver_never_runs_is_refused_with_its_reason),
	        cmocka_unit_test(parts_go_on_the_queues_that_the_contract_names),
	        cmocka_unit_test(words_go_on_the_first_words_queue_where_they_never_meet_launches),
	        cmocka_unit_test(bad_descriptions_are_refused_at_make),
	        cmocka_unit_test(a_runs_buffer_must_hold_what_the_copies_reach),
	        cmocka_unit_test(rows_are_copied_and_filled_as_described),
	        cmocka_unit_test(submit_wait_and_reached_allocate_nothing),
	        cmocka_unit_test(submit_wait_and_reached_make_no_system_call),
	        cmocka_unit_test(a_full_queue_makes_a_submit_wait),
	        cmocka_unit_test(a_driver_that_says_later_while_idle_is_lost),
	        cmocka_unit_test(queues_grow_and_a_short_growth_is_asked_again),
	        cmocka_unit_test(a_driver_that_asks_for_growth_for_ever_is_lost),
	        cmocka_unit_test(queues_that_cannot_grow_refuse_the_submit_alone),
	        cmocka_unit_test(a_wait_commits_what_a_batching_driver_only_encoded),
	        cmocka_unit_test(a_word_of_the_drivers_own_is_read_through_signaled),
	        cmocka_unit_test(points_that_never_were_are_refused),
	        cmocka_unit_test(what_a_submission_keeps_is_put_once_its_work_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
