/* SPDX-License-Identifier: MIT */
/* A program's view of edu: buffers, submissions and the end of a device, through librig. */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "conform.h"
#include "fake_edu.h"
#include "rig.h"
#include "rig_edu.h"

#define MOST_BYTES 10000u
#define NUMBERS    13u
#define LAW_MS     60000u

#define assert_ok(expression)                                                                                \
	do {                                                                                                 \
		int answer_ = (expression);                                                                  \
		if (answer_)                                                                                 \
			fail_msg("%s answered %d: %s", #expression, answer_, rig_error());                   \
	} while (0)

static struct fake_edu t;
static struct rig_device *d;

static void open_device(const struct fake_edu_options *options)
{
	const struct rig_opener opener = {.version = RIG_EDGE_VERSION,
	        .name = "edu0",
	        .module = &rig_driver_module,
	        .make = fake_edu_open,
	        .arg = &t};

	fake_edu_init(&t, options);
	assert_ok(rig_open(&opener, &d));
}

static void close_device(void)
{
	assert_ok(rig_close(d));
	rig_device_put(d);
	assert_int_equal(t.released, 1);
	fake_edu_free(&t);
}

static struct rig_buffer *buffer(enum rig_memory kind, uint64_t bytes)
{
	struct rig_buffer *made;

	assert_ok(rig_buffer_create(d, kind, bytes, &made));
	return made;
}

static void put_pattern(uint8_t *at, size_t bytes, unsigned seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 11 + i / 256 + seed);
}

/* ---- */

static void what_is_written_to_the_buffer_is_read_from_it(void **state)
{
	static uint8_t in[FAKE_EDU_BUFFER], out[FAKE_EDU_BUFFER];
	struct rig_buffer *device;
	uint32_t bytes;

	(void)state;
	open_device(NULL);
	device = buffer(RIG_DEVICE, FAKE_EDU_BUFFER);
	for (bytes = 1; bytes <= FAKE_EDU_BUFFER; bytes += bytes < 70 ? 1 : 671) {
		put_pattern(in, bytes, bytes);
		memset(out, 0, sizeof(out));
		assert_ok(rig_buffer_write(device, FAKE_EDU_BUFFER - bytes, in, bytes));
		assert_ok(rig_buffer_read(device, FAKE_EDU_BUFFER - bytes, out, bytes));
		assert_memory_equal(out, in, bytes);
		assert_memory_equal(t.buffer + FAKE_EDU_BUFFER - bytes, in, bytes);
	}
	assert_int_equal(rig_buffer_write(device, 0, in, FAKE_EDU_BUFFER + 1), -EINVAL);
	rig_buffer_put(device);
	close_device();
}

/* Through the buffer, as much at a time as it takes. */
static void more_bytes_than_the_buffer_has_pass_through_it(void **state)
{
	struct rig_buffer *device, *from, *to;
	uint32_t at, n;

	(void)state;
	open_device(&(struct fake_edu_options){.reads = 3});
	device = buffer(RIG_DEVICE, FAKE_EDU_BUFFER);
	from = buffer(RIG_PINNED, MOST_BYTES);
	to = buffer(RIG_PINNED, MOST_BYTES);
	put_pattern(rig_buffer_host(from), MOST_BYTES, 1);
	for (at = 0; at < MOST_BYTES; at += n) {
		struct rig_point point;

		n = MOST_BYTES - at < FAKE_EDU_BUFFER ? MOST_BYTES - at : FAKE_EDU_BUFFER;
		assert_ok(rig_buffer_copy_async(device, 0, from, at, n, &point));
		assert_ok(rig_buffer_copy_async(to, at, device, 0, n, &point));
	}
	assert_ok(rig_buffer_wait(to, RIG_READ));
	assert_memory_equal(rig_buffer_host(to), rig_buffer_host(from), MOST_BYTES);
	assert_true(t.highest <= 1u << 28);
	rig_buffer_put(device);
	rig_buffer_put(from);
	rig_buffer_put(to);
	close_device();
}

static void memory_of_the_program_is_reached_below_28_bits(void **state)
{
	static uint8_t pages[2][FAKE_EDU_BUFFER] __attribute__((aligned(4096)));
	struct rig_buffer *device, *from, *to;

	(void)state;
	open_device(NULL);
	device = buffer(RIG_DEVICE, FAKE_EDU_BUFFER);
	assert_ok(rig_buffer_of_host(d, pages[0], FAKE_EDU_BUFFER, &from));
	assert_ok(rig_buffer_of_host(d, pages[1], FAKE_EDU_BUFFER, &to));
	put_pattern(pages[0], FAKE_EDU_BUFFER, 9);
	assert_true(rig_buffer_address(from) + FAKE_EDU_BUFFER <= 1u << 28);
	assert_ok(rig_buffer_copy(device, 0, from, 0, FAKE_EDU_BUFFER));
	assert_ok(rig_buffer_copy(to, 0, device, 0, FAKE_EDU_BUFFER));
	assert_memory_equal(pages[1], pages[0], FAKE_EDU_BUFFER);
	rig_buffer_put(device);
	rig_buffer_put(from);
	rig_buffer_put(to);
	close_device();
}

/* Factorials into pinned memory, that through the buffer into other pinned memory: one submission. */
static struct rig_submission *prepare(struct rig_buffer *results, struct rig_buffer *device)
{
	uint32_t words[NUMBERS * RIG_EDU_REQUEST_WORDS], n;
	const uint64_t bytes = NUMBERS * sizeof(uint32_t);
	const struct rig_work parts[] = {
	        {.kind = RIG_WORDS, .u.words = {words, NUMBERS * RIG_EDU_REQUEST_WORDS}},
	        {.kind = RIG_COPY,
	                .u.copy = {.dst = {.slot = RIG_FIXED, .buffer = device},
	                        .src = {.slot = RIG_FIXED, .buffer = results},
	                        .row_bytes = bytes,
	                        .rows = 1}},
	        {.kind = RIG_COPY,
	                .u.copy = {.dst = {.slot = 0},
	                        .src = {.slot = RIG_FIXED, .buffer = device},
	                        .row_bytes = bytes,
	                        .rows = 1}}};
	const struct rig_fixed fixed[] = {{results, RIG_WRITE}, {device, RIG_WRITE}};
	const struct rig_description description = {.version = RIG_EDGE_VERSION,
	        .parts = parts,
	        .nparts = 3,
	        .writes = 1,
	        .fixed = fixed,
	        .nfixed = 2};
	struct rig_submission *s;

	for (n = 0; n < NUMBERS; n++) {
		const struct rig_edu_request request = {
		        RIG_EDU_FACTORIAL, n, (uint32_t)rig_buffer_address(results) + 4 * n, 0};

		memcpy(words + n * RIG_EDU_REQUEST_WORDS, &request, sizeof(request));
	}
	assert_ok(rig_submission_make(d, &description, &s));
	return s;
}

static void one_submission_computes_and_copies_in_order(void **state)
{
	static const uint32_t expected[NUMBERS] = {
	        1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600};
	struct rig_buffer *results, *device, *copy;
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point point;
	unsigned round;

	(void)state;
	open_device(&(struct fake_edu_options){.irq = FAKE_EDU_INTX, .reads = 1});
	results = buffer(RIG_PINNED, 4096);
	device = buffer(RIG_DEVICE, 4096);
	copy = buffer(RIG_PINNED, 4096);
	s = prepare(results, device);
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_buffer(run, 0, copy));
	for (round = 0; round < 5; round++) {
		memset(rig_buffer_host(copy), 0, 4096);
		assert_ok(rig_submit(s, run, NULL, 0, &point));
		assert_ok(rig_wait(point));
		assert_memory_equal(rig_buffer_host(copy), expected, sizeof(expected));
	}
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(results);
	rig_buffer_put(device);
	rig_buffer_put(copy);
	close_device();
}

static void a_copy_inside_the_buffer_is_refused_with_the_reason(void **state)
{
	struct rig_buffer *device;
	uint8_t byte = 5;

	(void)state;
	open_device(NULL);
	device = buffer(RIG_DEVICE, FAKE_EDU_BUFFER);
	assert_true(rig_buffer_copy(device, 0, device, 100, 10) < 0);
	assert_non_null(strstr(rig_error(), "edu copies between its buffer and host memory"));
	assert_ok(rig_buffer_write(device, 0, &byte, 1)); /* nothing was lost by it */
	rig_buffer_put(device);
	close_device();
}

static void a_device_that_hangs_is_lost_and_its_memory_comes_back(void **state)
{
	const struct rig_open_options options = {.version = RIG_EDGE_VERSION, .hang_ms = 20};
	const struct rig_opener opener = {.version = RIG_EDGE_VERSION,
	        .name = "edu0",
	        .module = &rig_driver_module,
	        .make = fake_edu_open,
	        .arg = &t};
	struct rig_buffer *device;
	const char *reason;
	uint8_t byte = 5;

	(void)state;
	fake_edu_init(&t, &(struct fake_edu_options){.held = true});
	assert_ok(rig_open_with(&opener, &options, &d));
	device = buffer(RIG_DEVICE, FAKE_EDU_BUFFER);
	assert_int_equal(rig_buffer_write(device, 0, &byte, 1), RIG_LOST);
	assert_true(rig_lost(d, &reason));
	assert_non_null(strstr(reason, "no progress for 20 ms"));
	rig_buffer_put(device);
	close_device();
}

/* ---- The laws ---- */

static const struct rig_opener *opener_of(const struct conform_source *source, unsigned index)
{
	static const struct rig_opener opener = {.version = RIG_EDGE_VERSION,
	        .name = "edu0",
	        .module = &rig_driver_module,
	        .make = fake_edu_open,
	        .arg = &t};

	(void)source;
	if (index)
		return (void)rig_error_set(-ENODEV, "there is one"), NULL;
	return &opener;
}

/* Each law in a process of its own, which inherits the device that nobody opened. */
static void edu_keeps_each_law_or_skips_it_with_the_fact(void **state)
{
	const struct conform_source source = {.opener = opener_of};
	const struct conform_group *const *group;
	struct conform_result r;
	size_t i;

	(void)state;
	fake_edu_init(&t, NULL);
	for (group = conform_groups; *group; group++)
		for (i = 0; i < (*group)->n; i++) {
			conform_run(&(*group)->laws[i], &source, LAW_MS, false, &r);
			if (r.end == CONFORM_FAILED)
				fail_msg("%s: %s", (*group)->laws[i].name, r.text);
		}
	fake_edu_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(what_is_written_to_the_buffer_is_read_from_it),
	        cmocka_unit_test(more_bytes_than_the_buffer_has_pass_through_it),
	        cmocka_unit_test(memory_of_the_program_is_reached_below_28_bits),
	        cmocka_unit_test(one_submission_computes_and_copies_in_order),
	        cmocka_unit_test(a_copy_inside_the_buffer_is_refused_with_the_reason),
	        cmocka_unit_test(a_device_that_hangs_is_lost_and_its_memory_comes_back),
	        cmocka_unit_test(edu_keeps_each_law_or_skips_it_with_the_fact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
