/* SPDX-License-Identifier: MIT */
/* Much at once: submissions larger than a ring, thousands under way, many threads on one device. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rvx1/packet.h"
#include "system_device.h"

#define PACKET_WORDS (RVX1_PACKET_BYTES / 4)

static const char *const texts[] = {"sim", "sim:completion=store", "sim:aperture=16M"};

enum { TEXTS = 3 };

/* ---- Numbers that tell the order of launches ---- */

struct counter {
	struct rig_image *image;
	struct rig_buffer *number;
	struct sys_launch launch;
	uint64_t expected;
};

static void open_counter(struct counter *c, struct rig_device *device, uint64_t loops)
{
	const uint64_t params[3] = {0, loops, 1};

	c->image = sys_image(device, "spin");
	c->number = sys_buffer(device, RIG_DEVICE, sizeof(c->expected));
	c->expected = 0;
	sys_ok(rig_buffer_write(c->number, 0, &c->expected, sizeof(c->expected)));
	sys_launch_make(&c->launch, c->image, "spin",
	        &(struct sys_params){.device = device,
	                .bytes = params,
	                .count = sizeof(params),
	                .nbuffers = 1,
	                .buffer = {c->number}},
	        1, 1);
}

static struct rig_point count(struct counter *c, uint64_t add)
{
	sys_ok(rig_run_params(c->launch.run, 0, 16, &add, sizeof(add)));
	c->expected = 3 * c->expected + add;
	return sys_launch_submit(&c->launch);
}

static void close_counter(struct counter *c)
{
	uint64_t seen = 0;

	sys_ok(rig_buffer_read(c->number, 0, &seen, sizeof(seen)));
	if (seen != c->expected)
		fail_msg("0x%llx, not 0x%llx", (unsigned long long)seen, (unsigned long long)c->expected);
	sys_launch_end(&c->launch);
	rig_buffer_put(c->number);
	rig_image_put(c->image);
}

/* ---- Rings ---- */

/* A submission of so many packets that do nothing, given as words. */
static int make_words(struct rig_device *device, uint32_t packets, struct rig_submission **submission)
{
	struct rvx1_packet *all = calloc(packets, sizeof(*all));
	struct rig_work work = {.kind = RIG_WORDS};
	const struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &work, .nparts = 1};
	uint32_t i;
	int err;

	assert_non_null(all);
	for (i = 0; i < packets; i++)
		all[i].opcode = RVX1_OP_NOP;
	work.u.words = (struct rig_words_work){
	        .words = (const uint32_t *)(const void *)all, .count = packets * PACKET_WORDS};
	err = rig_submission_make(device, &description, submission);
	free(all);
	return err;
}

static void submissions_larger_than_a_ring_make_it_grow_while_it_is_in_use(void **state)
{
	static const uint32_t sizes[] = {10, 1000, 1500, 3000, 10, 9000, 16000, 700};
	unsigned i, j;

	(void)state;
	for (i = 0; i < TEXTS; i++) {
		struct rig_device *device = sys_open(texts[i]);
		struct rig_point last = {0};
		struct counter counter;

		open_counter(&counter, device, 2000);
		for (j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			struct rig_submission *words;

			sys_ok(make_words(device, sizes[j], &words));
			(void)count(&counter, j);
			(void)count(&counter, j + 100);
			sys_ok(rig_submit(words, NULL, NULL, 0, &last));
			last = count(&counter, j + 200);
			rig_submission_put(words);
		}
		sys_ok(rig_wait(last));
		close_counter(&counter);
		sys_close(device);
	}
}

static void more_than_the_largest_ring_is_refused_and_the_device_unharmed(void **state)
{
	struct rig_device *device = sys_open("sim");
	struct rig_submission *words = NULL;
	struct rig_point point;
	int err = make_words(device, 70000, &words);

	(void)state;
	if (!err)
		err = rig_submit(words, NULL, NULL, 0, &point);
	assert_int_equal(err, -EINVAL);
	assert_int_not_equal(strlen(rig_error()), 0);
	rig_submission_put(words);
	sys_device_works(device);
	sys_close(device);
}

static void thousands_of_submissions_are_under_way_and_run_in_order(void **state)
{
	enum { MANY = 6000 };
	unsigned i, j;

	(void)state;
	for (i = 0; i < TEXTS; i++) {
		struct rig_device *device = sys_open(texts[i]);
		struct rig_submission *empty = sys_empty(device);
		struct rig_point last = {0};
		struct counter counter;

		open_counter(&counter, device, 100);
		for (j = 0; j < MANY; j++) {
			last = count(&counter, j);
			sys_ok(rig_submit(empty, NULL, NULL, 0, NULL));
		}
		assert_int_equal(rig_submitted(device), rig_point_value(last) + 1);
		sys_ok(rig_wait_device(device, rig_submitted(device)));
		assert_int_equal(rig_signaled(device), rig_submitted(device));
		rig_submission_put(empty);
		close_counter(&counter);
		sys_close(device);
	}
}

/* The parameters of so many launches do not fit what the device keeps for them at once. */
static void launches_of_many_parameter_bytes_wait_for_room(void **state)
{
	enum { LAUNCHES = 1500, WORDS = 512 };
	struct rig_device *device = sys_open("sim");
	struct rig_image *image = sys_image(device, "params");
	struct rig_buffer *out = sys_buffer(device, RIG_DEVICE, WORDS * 8);
	uint64_t params[WORDS], seen[WORDS - 1];
	struct rig_point last = {0};
	struct sys_launch launch;
	unsigned i;

	(void)state;
	sys_fill((uint8_t *)params, sizeof(params), 1);
	params[0] = 0;
	sys_launch_make(&launch, image, "params",
	        &(struct sys_params){.device = device,
	                .bytes = params,
	                .count = sizeof(params),
	                .nbuffers = 1,
	                .buffer = {out}},
	        1, 1);
	for (i = 0; i < LAUNCHES; i++) {
		params[1 + i % (WORDS - 1)] = i;
		sys_ok(rig_run_params(launch.run, 0, 0, params, sizeof(params)));
		last = sys_launch_submit(&launch);
	}
	sys_ok(rig_wait(last));
	sys_ok(rig_buffer_read(out, 0, seen, sizeof(seen)));
	assert_memory_equal(seen, params + 1, sizeof(seen));
	sys_launch_end(&launch);
	rig_buffer_put(out);
	rig_image_put(image);
	sys_close(device);
}

/* So many launches of 4096 parameter bytes in one submission. */
static int submit_largest(
        struct rig_device *device, struct rig_image *image, struct rig_buffer *out, uint32_t launches)
{
	static const struct rig_ref ref = {0, 0};
	struct rig_work *parts = calloc(launches, sizeof(*parts));
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = parts, .nparts = launches, .writes = 1};
	struct sys_launch s;
	uint32_t i;
	int err;

	assert_non_null(parts);
	for (i = 0; i < launches; i++)
		parts[i] = (struct rig_work){.kind = RIG_LAUNCH,
		        .u.launch = {.image = image,
		                .function = "params",
		                .params = RIG_PARAMS,
		                .refs = &ref,
		                .nrefs = 1}};
	sys_ok(rig_submission_make(device, &description, &s.submission));
	sys_ok(rig_run_make(s.submission, &s.run));
	sys_ok(rig_run_buffer(s.run, 0, out));
	err = sys_launch_try(&s);
	sys_launch_end(&s);
	free(parts);
	return err;
}

/* All of the memory for parameters, wherever the last submission left off, and one launch more. */
static void parameters_up_to_what_the_device_keeps_run_and_more_are_refused(void **state)
{
	enum { FULL = 256 };
	struct rig_device *device = sys_open("sim");
	struct rig_image *image = sys_image(device, "params");
	struct rig_buffer *out = sys_buffer(device, RIG_DEVICE, RIG_PARAMS);
	uint32_t i;

	(void)state;
	for (i = 1; i < 5; i++) {
		sys_ok(submit_largest(device, image, out, i));
		sys_ok(submit_largest(device, image, out, FULL));
		sys_ok(submit_largest(device, image, out, FULL - i));
		assert_int_equal(submit_largest(device, image, out, FULL + 1), -EINVAL);
	}
	rig_buffer_put(out);
	rig_image_put(image);
	sys_device_works(device);
	sys_close(device);
}

/* Many parts in one submission, in order on their queues and across them. */
static void a_submission_of_many_parts_keeps_their_order_across_queues(void **state)
{
	enum { PAIRS = 100 };
	const uint64_t params[3] = {0, 500, 1};
	const struct rig_ref ref = {0, 0};
	struct rig_device *device = sys_open("sim");
	struct rig_image *image = sys_image(device, "spin");
	struct rig_buffer *number = sys_buffer(device, RIG_DEVICE, 8),
	                  *trace = sys_buffer(device, RIG_DEVICE, PAIRS * 8);
	struct rig_work parts[2 * PAIRS];
	uint32_t before[2 * PAIRS], i;
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = parts, .nparts = 2 * PAIRS, .writes = 2};
	uint64_t seen[PAIRS], expected = 0;
	struct sys_launch s;

	(void)state;
	sys_ok(rig_buffer_write(number, 0, &expected, 8));
	/* A launch changes the number, then a copy keeps it, then the next launch. */
	for (i = 0; i < 2 * PAIRS; i++) {
		before[i] = i - 1;
		parts[i] = (struct rig_work){
		        .kind = i % 2 ? RIG_COPY : RIG_LAUNCH, .after = &before[i], .nafter = i ? 1 : 0};
		if (i % 2)
			parts[i].u.copy = (struct rig_copy_work){.src = {.slot = 0},
			        .dst = {.slot = 1, .offset = i / 2 * 8},
			        .row_bytes = 8,
			        .rows = 1};
		else
			parts[i].u.launch = (struct rig_launch_work){.image = image,
			        .function = "spin",
			        .params = sizeof(params),
			        .refs = &ref,
			        .nrefs = 1};
	}
	sys_ok(rig_submission_make(device, &description, &s.submission));
	sys_ok(rig_run_make(s.submission, &s.run));
	for (i = 0; i < 2 * PAIRS; i += 2)
		sys_ok(rig_run_params(s.run, i, 0, params, sizeof(params)));
	sys_ok(rig_run_buffer(s.run, 0, number));
	sys_ok(rig_run_buffer(s.run, 1, trace));
	sys_ok(sys_launch_try(&s));
	sys_ok(rig_buffer_read(trace, 0, seen, sizeof(seen)));
	for (i = 0; i < PAIRS; i++) {
		expected = 3 * expected + 1;
		assert_true(seen[i] == expected);
	}
	sys_launch_end(&s);
	rig_image_put(image);
	rig_buffer_put(number);
	rig_buffer_put(trace);
	sys_close(device);
}

/* ---- Threads ---- */

enum { THREADS = 8, EACH = 150, BYTES = 5000 };

struct worker {
	pthread_t thread;
	struct rig_device *device;
	unsigned index;
	struct counter counter;
	atomic_uint *wrong; /* assertions belong to the main thread */
};

/* Its own launches, copies of its own bytes, and now and then an image and a buffer. */
static void *submit_much(void *arg)
{
	struct worker *w = arg;
	struct rig_buffer *buffer;
	uint8_t bytes[BYTES], seen[BYTES];
	struct rig_point point;
	unsigned i;
	int err = 0;

	for (i = 0; i < EACH && !err; i++) {
		uint64_t add = w->index * 1000 + i;

		w->counter.expected = 3 * w->counter.expected + add;
		err = rig_run_params(w->counter.launch.run, 0, 16, &add, sizeof(add));
		if (!err)
			err = rig_submit(
			        w->counter.launch.submission, w->counter.launch.run, NULL, 0, &point);
		if (!err && i % 10 == 0) {
			sys_fill(bytes, sizeof(bytes), add + 1);
			err = rig_buffer_create(w->device, i % 20 ? RIG_DEVICE : RIG_PINNED, BYTES, &buffer);
			if (err)
				break;
			err = rig_buffer_write(buffer, 0, bytes, BYTES);
			if (!err)
				err = rig_buffer_read(buffer, 0, seen, BYTES);
			if (memcmp(bytes, seen, BYTES) != 0)
				atomic_fetch_add(w->wrong, 1);
			rig_buffer_put(buffer);
		}
		if (!err && i % 7 == 0)
			err = rig_wait(point);
	}
	if (err)
		atomic_fetch_add(w->wrong, 1);
	return NULL;
}

static void eight_threads_submit_on_one_device(void **state)
{
	unsigned i, j;

	(void)state;
	for (i = 0; i < TEXTS; i++) {
		struct rig_device *device = sys_open(texts[i]);
		struct worker worker[THREADS];
		atomic_uint wrong = 0;

		for (j = 0; j < THREADS; j++) {
			worker[j] = (struct worker){.device = device, .index = j, .wrong = &wrong};
			open_counter(&worker[j].counter, device, 50);
		}
		for (j = 0; j < THREADS; j++)
			assert_int_equal(pthread_create(&worker[j].thread, NULL, submit_much, &worker[j]), 0);
		for (j = 0; j < THREADS; j++)
			assert_int_equal(pthread_join(worker[j].thread, NULL), 0);
		assert_int_equal(wrong, 0);
		for (j = 0; j < THREADS; j++)
			close_counter(&worker[j].counter);
		sys_close(device);
	}
}

/* Threads that wait for the same and for different points of a device that is lost: all are told. */
static void *wait_for(void *arg)
{
	struct rig_point *point = arg;

	return (void *)(intptr_t)rig_wait(*point);
}

static void every_waiting_thread_is_told_of_a_loss(void **state)
{
	struct rig_device *device = sys_open("sim:hang=1s");
	struct rig_image *image = sys_image(device, "loop_forever");
	struct rig_submission *empty = sys_empty(device);
	struct rig_point points[THREADS];
	pthread_t thread[THREADS];
	struct sys_launch launch;
	unsigned i;

	(void)state;
	sys_launch_make(&launch, image, "loop_forever", &(struct sys_params){.device = device}, 1, 1);
	points[0] = sys_launch_submit(&launch);
	for (i = 1; i < THREADS; i++)
		sys_ok(rig_submit(empty, NULL, NULL, 0, &points[i]));
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, wait_for, &points[i / 2]), 0);
	for (i = 0; i < THREADS; i++) {
		void *answer;

		assert_int_equal(pthread_join(thread[i], &answer), 0);
		assert_int_equal((intptr_t)answer, RIG_LOST);
	}
	sys_launch_end(&launch);
	rig_submission_put(empty);
	rig_image_put(image);
	rig_device_put(device);
	sys_assert_no_process();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(submissions_larger_than_a_ring_make_it_grow_while_it_is_in_use),
	        cmocka_unit_test(more_than_the_largest_ring_is_refused_and_the_device_unharmed),
	        cmocka_unit_test(thousands_of_submissions_are_under_way_and_run_in_order),
	        cmocka_unit_test(launches_of_many_parameter_bytes_wait_for_room),
	        cmocka_unit_test(parameters_up_to_what_the_device_keeps_run_and_more_are_refused),
	        cmocka_unit_test(a_submission_of_many_parts_keeps_their_order_across_queues),
	        cmocka_unit_test(eight_threads_submit_on_one_device),
	        cmocka_unit_test(every_waiting_thread_is_told_of_a_loss),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
