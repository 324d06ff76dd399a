/* SPDX-License-Identifier: MIT */
/* What devices of other machines do for a program: memory, copies, launches, waits. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote_support.h"

static struct agent_process agents[2];

static int start(void **state)
{
	static const char *const devices[] = {"sim:mem=64M sim:mem=64M", "sim:mem=64M"};

	return remote_start(state, agents, devices, 2);
}

static int end(void **state)
{
	return remote_end(state, agents, 2);
}

static void bytes_written_to_a_remote_device_are_read_back(void **state)
{
	static const uint64_t sizes[] = {1, 4096, 100000, 1 << 20, 9000001};
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *d = remote_open(job, "RVX1:0", &agents[0]);
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rig_buffer *b = sys_buffer(d, RIG_DEVICE, sizes[i]);
		uint8_t *bytes = malloc(sizes[i]), *again = calloc(1, sizes[i]);

		sys_fill(bytes, sizes[i], i);
		sys_ok(rig_buffer_write(b, 0, bytes, sizes[i]));
		sys_ok(rig_buffer_read(b, 0, again, sizes[i]));
		assert_memory_equal(bytes, again, sizes[i]);
		free(bytes);
		free(again);
		rig_buffer_put(b);
	}
	sys_close(d);
	rig_remote_close(job);
}

static void kernels_run_on_a_remote_device(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *d = remote_open(job, "RVX1:0", &agents[0]);

	(void)state;
	sys_device_works(d);
	sys_close(d);
	rig_remote_close(job);
}

static void memory_of_a_remote_host_is_a_device(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *d = remote_open(job, "CPU", &agents[0]);
	struct rig_buffer *b = sys_buffer(d, RIG_DEVICE, 10000);
	uint8_t bytes[10000], again[10000];

	(void)state;
	assert_string_equal(remote_host(d)->machine, agents[0].name);
	sys_fill(bytes, sizeof(bytes), 7);
	sys_ok(rig_buffer_write(b, 0, bytes, sizeof(bytes)));
	sys_ok(rig_buffer_read(b, 0, again, sizeof(again)));
	assert_memory_equal(bytes, again, sizeof(bytes));
	rig_buffer_put(b);
	sys_close(d);
	rig_remote_close(job);
}

enum { LARGE = 5 << 20, MOVERS = 3 };

/* What a large copy there and back adds to the control connection. */
static uint64_t copy_large(struct rig_remote_job *job, struct rig_device *d, uint64_t seed)
{
	uint8_t *sent = malloc(LARGE), *got = calloc(1, LARGE);
	struct rig_buffer *b = sys_buffer(d, RIG_DEVICE, LARGE);
	struct rig_remote_stats before, after;

	sys_fill(sent, LARGE, seed);
	sys_ok(rig_remote_stats(job, 0, &before));
	sys_ok(rig_buffer_write(b, 0, sent, LARGE));
	sys_ok(rig_buffer_read(b, 0, got, LARGE));
	sys_ok(rig_remote_stats(job, 0, &after));
	assert_memory_equal(sent, got, LARGE);
	free(sent);
	free(got);
	rig_buffer_put(b);
	return after.sent + after.received - before.sent - before.received;
}

static void large_copies_go_over_a_rail_unless_the_job_says_otherwise(void **state)
{
	const struct rig_remote_options encrypted = {.version = RIG_EDGE_VERSION, .no_bulk_rails = true};
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *d = remote_open(job, "RVX1:0", &agents[0]);

	(void)state;
	(void)copy_large(job, d, 1);
	assert_true(copy_large(job, d, 2) < LARGE);
	sys_close(d);
	rig_remote_close(job);
	job = remote_connect(agents, 1, &encrypted);
	d = remote_open(job, "RVX1:0", &agents[0]);
	assert_true(copy_large(job, d, 3) > 2 * LARGE);
	sys_close(d);
	rig_remote_close(job);
}

static void large_copies_go_without_a_rail_where_none_can_be_made(void **state)
{
	/* No address of this machine's. */
	const struct rig_remote_options elsewhere = {.version = RIG_EDGE_VERSION, .node = "192.0.2.1"};
	struct rig_remote_job *job = remote_connect(agents, 1, &elsewhere);
	struct rig_device *d = remote_open(job, "RVX1:0", &agents[0]);

	(void)state;
	assert_true(copy_large(job, d, 4) > 2 * LARGE);
	assert_false(rig_remote_failed(job, NULL));
	sys_close(d);
	rig_remote_close(job);
}

struct mover {
	struct rig_remote_job *job;
	struct rig_device *device;
	unsigned seed;
};

static void *move(void *arg)
{
	const struct mover *m = arg;
	unsigned i;

	for (i = 0; i < 6; i++)
		(void)copy_large(m->job, m->device, m->seed + i);
	return NULL;
}

/* More large copies at once than a link takes in one go: none is lost or mixed up. */
static void devices_copy_beside_each_other(void **state)
{
	static const char *const names[] = {"RVX1:0", "RVX1:1", "CPU"};
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct mover movers[MOVERS];
	pthread_t threads[MOVERS];
	unsigned i;

	(void)state;
	for (i = 0; i < MOVERS; i++) {
		movers[i] = (struct mover){job, remote_open(job, names[i], &agents[0]), 100 * i};
		assert_int_equal(pthread_create(&threads[i], NULL, move, &movers[i]), 0);
	}
	for (i = 0; i < MOVERS; i++) {
		(void)pthread_join(threads[i], NULL);
		sys_close(movers[i].device);
	}
	rig_remote_close(job);
}

enum { PLACE = 1 << 20, PATCH = 4096, PATCH_AT = 700000, REPEATS = 50 };

/* One by a parcel, one by message. */
static void of_two_copies_to_one_place_the_later_one_stays(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *d = remote_open(job, "RVX1:0", &agents[0]);
	struct rig_buffer *all = sys_buffer(d, RIG_DEVICE, PLACE), *patch = sys_buffer(d, RIG_DEVICE, PATCH),
	                  *place;
	uint8_t *bytes = malloc(PLACE), *expected = malloc(PLACE), *memory = aligned_alloc(PATCH, PLACE);
	struct rig_point points[2];

	(void)state;
	sys_ok(rig_buffer_of_host(d, memory, PLACE, &place));
	for (unsigned i = 0; i < REPEATS; i++) {
		bool small_first = i % 2;

		sys_fill(expected, PLACE, i);
		sys_fill(bytes, PATCH, 1000 + i);
		sys_ok(rig_buffer_write(all, 0, expected, PLACE));
		sys_ok(rig_buffer_write(patch, 0, bytes, PATCH));
		if (small_first)
			sys_ok(rig_buffer_copy_async(place, PATCH_AT, patch, 0, PATCH, &points[1]));
		sys_ok(rig_buffer_copy_async(place, 0, all, 0, PLACE, &points[0]));
		if (!small_first)
			sys_ok(rig_buffer_copy_async(place, PATCH_AT, patch, 0, PATCH, &points[1]));
		sys_ok(rig_wait(points[0]));
		sys_ok(rig_wait(points[1]));
		if (!small_first)
			memcpy(expected + PATCH_AT, bytes, PATCH);
		assert_memory_equal(memory, expected, PLACE);
	}
	rig_buffer_put(place);
	rig_buffer_put(patch);
	rig_buffer_put(all);
	sys_close(d);
	rig_remote_close(job);
	free(memory);
	free(expected);
	free(bytes);
}

enum { MUCH = 16 << 20 };

/* The second board is done long before the bytes that the first brings are here. */
static void what_follows_a_copy_is_not_shown_before_its_bytes_are_here(void **state)
{
	static const struct rig_description nothing = {.version = RIG_EDGE_VERSION};
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *d[2] = {
	        remote_open(job, "RVX1:0", &agents[0]), remote_open(job, "RVX1:1", &agents[0])};
	struct rig_buffer *from = sys_buffer(d[0], RIG_DEVICE, MUCH), *to;
	uint8_t *memory = aligned_alloc(PATCH, MUCH);
	struct rig_submission *empty;
	struct rig_point copied, followed;

	(void)state;
	sys_ok(rig_buffer_of_host(d[0], memory, MUCH, &to));
	sys_ok(rig_submission_make(d[1], &nothing, &empty));
	for (unsigned i = 0; i < 20; i++) {
		sys_ok(rig_buffer_copy_async(to, 0, from, 0, MUCH, &copied));
		sys_ok(rig_submit(empty, NULL, &copied, 1, &followed));
		sys_ok(rig_wait(followed));
		assert_int_equal(rig_reached(copied), 1);
	}
	rig_submission_put(empty);
	rig_buffer_put(to);
	rig_buffer_put(from);
	sys_close(d[1]);
	sys_close(d[0]);
	rig_remote_close(job);
	free(memory);
}

/* Some pieces and a bit, at odd places; each way, and between machines. */
static void a_copy_in_pieces_is_one_copy(void **state)
{
	enum { ODD = 24 << 20 | 4097, AT = 3 };
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *d = remote_open(job, "RVX1:0", &agents[0]),
	                  *o = remote_open(job, "CPU", &agents[1]);
	struct rig_buffer *there = sys_buffer(d, RIG_DEVICE, ODD + AT),
	                  *other = sys_buffer(o, RIG_DEVICE, ODD), *here;
	uint8_t *sent = malloc(ODD), *memory = aligned_alloc(PATCH, 28 << 20);

	(void)state;
	sys_ok(rig_buffer_of_host(d, memory, 28 << 20, &here));
	for (unsigned i = 0; i < 3; i++) {
		sys_fill(sent, ODD, 77 + i);
		memcpy(memory + 1, sent, ODD);
		sys_ok(rig_buffer_copy(there, AT, here, 1, ODD));
		memset(memory, 0, 28 << 20);
		sys_ok(rig_buffer_copy(here, 5, there, AT, ODD));
		assert_memory_equal(memory + 5, sent, ODD);
		assert_true(!memory[4] && !memory[5 + ODD]);
		sys_ok(rig_buffer_copy(other, 0, there, AT, ODD));
		sys_ok(rig_buffer_read(other, 0, memory, ODD));
		assert_memory_equal(memory, sent, ODD);
	}
	rig_buffer_put(here);
	rig_buffer_put(other);
	rig_buffer_put(there);
	sys_close(o);
	sys_close(d);
	rig_remote_close(job);
	free(memory);
	free(sent);
}

static void *write_behind(void *buffer)
{
	static const uint8_t bytes[200000];

	/* Behind work that does not end: until the device is lost. */
	return rig_buffer_write(buffer, 0, bytes, sizeof(bytes)) == RIG_LOST ? buffer : NULL;
}

static void a_device_that_does_not_get_on_holds_up_no_other(void **state)
{
	static const uint64_t none[2] = {0};
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *stuck = remote_open(job, "RVX1:0", &agents[0]);
	struct rig_device *d = remote_open(job, "RVX1:1", &agents[0]);
	struct rig_image *image = sys_image(stuck, "loop_forever");
	struct rig_buffer *b = sys_buffer(stuck, RIG_DEVICE, 200000);
	struct sys_launch launch;
	pthread_t thread;
	void *lost;

	(void)state;
	sys_launch_make(&launch, image, "loop_forever",
	        &(struct sys_params){.device = stuck, .bytes = none, .count = 8}, 1, 1);
	(void)sys_launch_submit(&launch);
	assert_int_equal(pthread_create(&thread, NULL, write_behind, b), 0);
	sys_device_works(d);
	(void)copy_large(job, d, 8);
	sys_close(d);
	rig_remote_close(job);
	(void)pthread_join(thread, &lost);
	assert_ptr_equal(lost, b);
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_buffer_put(b);
	rig_device_put(stuck);
}

/* From a to b, and back to the program. */
static void copy_between(struct rig_device *a, struct rig_device *b, uint64_t bytes)
{
	struct rig_buffer *from = sys_buffer(a, RIG_DEVICE, bytes), *to = sys_buffer(b, RIG_DEVICE, bytes);
	uint8_t *sent = malloc(bytes), *got = calloc(1, bytes);

	sys_fill(sent, bytes, bytes);
	sys_ok(rig_buffer_write(from, 0, sent, bytes));
	sys_ok(rig_buffer_copy(to, 0, from, 0, bytes));
	sys_ok(rig_buffer_read(to, 0, got, bytes));
	assert_memory_equal(sent, got, bytes);
	free(sent);
	free(got);
	rig_buffer_put(from);
	rig_buffer_put(to);
}

static void bytes_move_between_machines_without_the_controller(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *a = remote_open(job, "RVX1:0", &agents[0]);
	struct rig_device *b = remote_open(job, "RVX1:0", &agents[1]);
	struct rig_device *host = remote_open(job, "CPU", &agents[1]);
	struct rig_buffer *from = sys_buffer(a, RIG_DEVICE, 8 << 20),
	                  *to = sys_buffer(b, RIG_DEVICE, 8 << 20);
	struct rig_remote_stats before, after;

	(void)state;
	copy_between(a, b, 3000001);
	copy_between(b, a, 70000);
	copy_between(a, host, 123457);
	copy_between(host, a, 123457);
	copy_between(host, b, 123457);
	sys_ok(rig_remote_stats(job, 0, &before));
	sys_ok(rig_buffer_copy(to, 0, from, 0, 8 << 20));
	sys_ok(rig_remote_stats(job, 0, &after));
	assert_true(after.received - before.received < 100000);
	rig_buffer_put(from);
	rig_buffer_put(to);
	sys_close(host);
	sys_close(a);
	sys_close(b);
	rig_remote_close(job);
}

static void copies_and_launches_of_two_devices_of_a_machine_follow_each_other(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *a = remote_open(job, "RVX1:0", &agents[0]);
	struct rig_device *b = remote_open(job, "RVX1:1", &agents[0]);
	struct rig_device *here = sys_open("sim:mem=64M");
	unsigned i;

	(void)state;
	for (i = 0; i < 20; i++) {
		copy_between(a, b, 65536);
		copy_between(b, a, 4096);
		copy_between(here, a, 50000);
		copy_between(a, here, 50000);
	}
	sys_close(here);
	sys_close(a);
	sys_close(b);
	rig_remote_close(job);
}

/* A later image may lie where an earlier one did, and its functions too. */
static void images_come_and_go_and_each_launch_runs_its_own(void **state)
{
	static const uint64_t params[3] = {0, 1, 7};
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *d = remote_open(job, "RVX1:0", &agents[0]);
	struct rig_buffer *number = sys_buffer(d, RIG_DEVICE, 8);
	struct sys_launch launch;
	struct rig_image *image;
	uint64_t expected = 0, seen;
	unsigned i;

	(void)state;
	sys_ok(rig_buffer_write(number, 0, &expected, 8));
	for (i = 0; i < 24; i++) {
		image = sys_image(d, "spin");
		sys_launch_make(&launch, image, "spin",
		        &(struct sys_params){.device = d,
		                .bytes = params,
		                .count = sizeof(params),
		                .nbuffers = 1,
		                .buffer = {number}},
		        1, 1);
		sys_ok(sys_launch_try(&launch));
		expected = 3 * expected + 7;
		sys_ok(rig_buffer_read(number, 0, &seen, 8));
		assert_true(seen == expected);
		sys_launch_end(&launch);
		rig_image_put(image);
		sys_device_works(d);
	}
	rig_buffer_put(number);
	sys_close(d);
	rig_remote_close(job);
}

static void a_device_is_one_jobs_at_a_time_and_the_next_ones_afterwards(void **state)
{
	struct rig_remote_job *one = remote_connect(agents, 1, NULL), *two = remote_connect(agents, 1, NULL);
	struct rig_device *d = remote_open(one, "RVX1:0", &agents[0]), *other = NULL;
	char name[128];

	(void)state;
	snprintf(name, sizeof(name), "RVX1:1@%s", agents[0].name);
	sys_ok(rig_remote_open(two, name, &other));
	sys_close(other);
	snprintf(name, sizeof(name), "RVX1:0@%s", agents[0].name);
	/* In this process the name is taken; at the agent it would be too. */
	assert_true(rig_remote_open(two, name, &other) < 0);
	sys_close(d);
	rig_remote_close(one);
	sys_ok(rig_remote_open(two, name, &other));
	sys_device_works(other);
	sys_close(other);
	rig_remote_close(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(bytes_written_to_a_remote_device_are_read_back),
	        cmocka_unit_test(large_copies_go_over_a_rail_unless_the_job_says_otherwise),
	        cmocka_unit_test(large_copies_go_without_a_rail_where_none_can_be_made),
	        cmocka_unit_test(devices_copy_beside_each_other),
	        cmocka_unit_test(of_two_copies_to_one_place_the_later_one_stays),
	        cmocka_unit_test(a_copy_in_pieces_is_one_copy),
	        cmocka_unit_test(what_follows_a_copy_is_not_shown_before_its_bytes_are_here),
	        cmocka_unit_test(a_device_that_does_not_get_on_holds_up_no_other),
	        cmocka_unit_test(kernels_run_on_a_remote_device),
	        cmocka_unit_test(memory_of_a_remote_host_is_a_device),
	        cmocka_unit_test(bytes_move_between_machines_without_the_controller),
	        cmocka_unit_test(copies_and_launches_of_two_devices_of_a_machine_follow_each_other),
	        cmocka_unit_test(images_come_and_go_and_each_launch_runs_its_own),
	        cmocka_unit_test(a_device_is_one_jobs_at_a_time_and_the_next_ones_afterwards),
	};

	return cmocka_run_group_tests(tests, start, end);
}
