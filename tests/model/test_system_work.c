/* SPDX-License-Identifier: MIT */
/* Kernels through librig, their answers compared with the host's; images; the largest launches and
 * parameters. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "system_device.h"

static const char *const texts[] = {"sim", "sim:completion=store", "sim:aperture=16M"};

enum { TEXTS = 3 };

/* ---- Places in the grid ---- */

enum { ID_WORDS = 16 };

struct shape {
	uint32_t grid[3], group[3];
};

static uint64_t volume(const uint32_t d[3])
{
	return (uint64_t)d[0] * d[1] * d[2];
}

static void split_index(uint64_t index, const uint32_t size[3], uint32_t at[3])
{
	at[0] = (uint32_t)(index % size[0]);
	at[1] = (uint32_t)(index / size[0] % size[1]);
	at[2] = (uint32_t)(index / size[0] / size[1]);
}

/* What ids.k.c says of the words of thread i. */
static void check_ids(const uint32_t *words, uint64_t i, const struct shape *shape, uint32_t shared)
{
	uint32_t expected[ID_WORDS];

	split_index(i % volume(shape->group), shape->group, expected);
	split_index(i / volume(shape->group), shape->grid, expected + 3);
	memcpy(expected + 6, shape->group, sizeof(shape->group));
	memcpy(expected + 9, shape->grid, sizeof(shape->grid));
	expected[12] = shared;
	expected[13] = (uint32_t)i;
	expected[14] = 0;
	expected[15] = 0x1D5;
	assert_memory_equal(words, expected, sizeof(expected));
}

static void run_ids(
        struct rig_device *device, struct rig_image *image, const struct shape *shape, uint32_t shared)
{
	uint64_t threads = volume(shape->grid) * volume(shape->group), bytes = threads * ID_WORDS * 4, i;
	struct rig_buffer *out = sys_buffer(device, RIG_DEVICE, bytes);
	const struct {
		uint64_t out;
		uint32_t capacity, none;
	} params = {0, (uint32_t)threads, 0};
	uint32_t *words = malloc(bytes);
	struct sys_launch launch;

	assert_non_null(words);
	sys_launch_make(&launch, image, "ids",
	        &(struct sys_params){.device = device,
	                .bytes = &params,
	                .count = sizeof(params),
	                .nbuffers = 1,
	                .buffer = {out}},
	        1, 1);
	sys_ok(rig_run_grid(launch.run, 0, shape->grid[0], shape->grid[1], shape->grid[2]));
	sys_ok(rig_run_group(launch.run, 0, shape->group[0], shape->group[1], shape->group[2]));
	sys_ok(rig_run_shared(launch.run, 0, shared));
	sys_ok(sys_launch_try(&launch));
	sys_ok(rig_buffer_read(out, 0, words, bytes));
	for (i = 0; i < threads; i++)
		check_ids(words + ID_WORDS * i, i, shape, shared);
	free(words);
	sys_launch_end(&launch);
	rig_buffer_put(out);
}

static void threads_know_their_places_in_grids_and_groups_of_every_shape(void **state)
{
	static const struct shape shapes[] = {
	        {{1, 1, 1}, {1, 1, 1}},
	        {{7, 1, 1}, {5, 1, 1}},
	        {{1, 7, 1}, {1, 5, 1}},
	        {{2, 3, 4}, {4, 3, 2}},
	        {{3, 1, 2}, {1, 8, 3}},
	        {{1, 1, 3}, {1024, 1, 1}},
	        {{2, 1, 1}, {1, 1024, 1}},
	        {{1, 2, 1}, {1, 1, 1024}},
	        {{2, 2, 1}, {16, 8, 8}},
	        {{3, 1, 1}, {31, 33, 1}},
	        {{3000, 1, 1}, {1, 1, 1}},
	};
	unsigned i, j;

	(void)state;
	for (i = 0; i < TEXTS; i++) {
		struct rig_device *device = sys_open(texts[i]);
		struct rig_image *image = sys_image(device, "ids");

		for (j = 0; j < sizeof(shapes) / sizeof(shapes[0]); j++)
			run_ids(device, image, &shapes[j], j % 2 ? 0 : 65536);
		rig_image_put(image);
		sys_close(device);
	}
}

static void launches_at_the_limits_run_and_one_over_is_refused(void **state)
{
	struct rig_device *device = sys_open("sim");
	struct rig_image *image = sys_image(device, "ids"), *limits = sys_image(device, "limits");
	const uint64_t params[3] = {0};
	struct sys_launch launch, limited;

	(void)state;
	sys_launch_make(&launch, image, "ids",
	        &(struct sys_params){.device = device, .bytes = params, .count = 16}, 1, 1024);
	sys_ok(rig_run_shared(launch.run, 0, 65536));
	sys_ok(sys_launch_try(&launch));
	sys_ok(rig_run_shared(launch.run, 0, 65537));
	assert_int_equal(sys_launch_try(&launch), -EINVAL);
	sys_ok(rig_run_shared(launch.run, 0, 0));
	sys_ok(rig_run_group(launch.run, 0, 1025, 1, 1));
	assert_int_equal(sys_launch_try(&launch), -EINVAL);
	sys_ok(rig_run_group(launch.run, 0, 1, 1, 1));
	sys_ok(sys_launch_try(&launch));
	sys_launch_make(&limited, limits, "limits",
	        &(struct sys_params){.device = device, .bytes = params, .count = 24}, 1, 64);
	sys_ok(rig_run_shared(limited.run, 0, 1024));
	sys_ok(sys_launch_try(&limited));
	assert_int_equal(rig_run_group(limited.run, 0, 65, 1, 1), -EINVAL);
	assert_int_equal(rig_run_group(limited.run, 0, 13, 5, 1), -EINVAL);
	sys_ok(rig_run_shared(limited.run, 0, 1025));
	assert_int_equal(sys_launch_try(&limited), -EINVAL);
	sys_launch_end(&launch);
	sys_launch_end(&limited);
	rig_image_put(image);
	rig_image_put(limits);
	sys_device_works(device);
	sys_close(device);
}

/* ---- Atomics, mathematics, shared memory ---- */

struct atomics_result { /* atomics.k.c */
	uint64_t add64;
	uint32_t add32, or32;
	uint16_t add16, sub16;
	uint8_t add8, xor8, nand8, and8;
	uint64_t most;
	uint32_t locked, lock;
	uint16_t most16;
	uint8_t swapped, taken;
	uint32_t first;
};

static void run_atomics(struct rig_device *device, enum rig_memory kind, uint32_t groups, uint32_t threads)
{
	struct rig_image *image = sys_image(device, "atomics");
	struct rig_buffer *out = sys_buffer(device, kind, sizeof(struct atomics_result));
	struct atomics_result r = {0};
	uint32_t all = groups * threads;
	struct sys_launch launch;
	uint64_t zero = 0;

	sys_ok(rig_buffer_write(out, 0, &r, sizeof(r)));
	sys_launch_make(&launch, image, "atomics",
	        &(struct sys_params){.device = device,
	                .bytes = &zero,
	                .count = sizeof(zero),
	                .nbuffers = 1,
	                .buffer = {out}},
	        groups, threads);
	sys_ok(sys_launch_try(&launch));
	sys_ok(rig_buffer_read(out, 0, &r, sizeof(r)));
	assert_int_equal(r.add64, all);
	assert_int_equal(r.add32, all);
	assert_int_equal(r.add16, all % 0x10000);
	assert_int_equal(r.sub16, (0x10000 - all) % 0x10000);
	assert_int_equal(r.add8, all % 256);
	assert_int_equal(r.xor8, all % 2);
	assert_int_equal(r.and8, 0);
	assert_int_equal(r.or32, all < 32 ? (1u << all) - 1 : UINT32_MAX);
	assert_int_equal(r.most, all);
	assert_int_equal(r.locked, all);
	assert_int_equal(r.most16, all - 1);
	assert_int_equal(r.swapped, 1);
	assert_int_equal(r.first, 1);
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_buffer_put(out);
}

static void atomics_of_every_width_work_in_board_and_host_memory(void **state)
{
	struct rig_device *device = sys_open("sim");

	(void)state;
	run_atomics(device, RIG_DEVICE, 20, 100);
	run_atomics(device, RIG_MAPPED, 3, 7);
	run_atomics(device, RIG_PINNED, 20, 100);
	run_atomics(device, RIG_DEVICE, 2, 1024);
	sys_close(device);
}

enum { NUMBERS = 300, RESULTS = 16 };

/* What math.k.c computes. */
static void expect(double x, double *want)
{
	int64_t n = (int64_t)(x * 1000), divisor = (n & 7) - 3;
	const double all[RESULTS] = {sin(x), cos(x), exp(x / 64), log(fabs(x) + 1), sqrt(fabs(x)),
	        pow(fabs(x) + 0.5, 1.5), fma(x, x, 1.0 / 3), floor(x) + ceil(x) + rint(x), atan2(x, 3),
	        fmod(x, 0.7), (double)sinf((float)x), (double)sqrtf(fabsf((float)x)),
	        (double)expf((float)x / 64), (double)(n / (divisor ? divisor : 5)), (double)(n % 1000003),
	        (double)((uint32_t)n / 7u)};

	memcpy(want, all, sizeof(all));
}

/* sqrt, fma, rounding, fmod and integers are exact in both; libm's functions may differ in their last
 * digits. */
static double bound(unsigned result, double want)
{
	static const double relative[RESULTS] = {[0] = 1e-13,
	        [1] = 1e-13,
	        [2] = 1e-13,
	        [3] = 1e-13,
	        [5] = 1e-13,
	        [8] = 1e-13,
	        [10] = 1e-6,
	        [12] = 1e-6};

	return relative[result] * (1 + fabs(want));
}

static void mathematics_agrees_with_the_host(void **state)
{
	const struct {
		uint64_t in, out;
		uint32_t count, none;
	} params = {0, 0, NUMBERS, 0};
	struct rig_device *device = sys_open("sim");
	struct rig_image *image = sys_image(device, "math");
	static double in[NUMBERS], out[NUMBERS * RESULTS];
	struct rig_buffer *a = sys_buffer(device, RIG_DEVICE, sizeof(in)),
	                  *b = sys_buffer(device, RIG_PINNED, sizeof(out));
	double want[RESULTS];
	struct sys_launch launch;
	unsigned i, j;

	(void)state;
	for (i = 0; i < NUMBERS; i++)
		in[i] = ((double)i - 150) * 1.371;
	sys_ok(rig_buffer_write(a, 0, in, sizeof(in)));
	sys_launch_make(&launch, image, "math",
	        &(struct sys_params){.device = device,
	                .bytes = &params,
	                .count = sizeof(params),
	                .nbuffers = 2,
	                .buffer = {a, b}},
	        NUMBERS / 50, 50);
	sys_ok(sys_launch_try(&launch));
	sys_ok(rig_buffer_read(b, 0, out, sizeof(out)));
	for (i = 0; i < NUMBERS; i++) {
		expect(in[i], want);
		for (j = 0; j < RESULTS; j++)
			if (!(fabs(out[RESULTS * i + j] - want[j]) <= bound(j, want[j])))
				fail_msg("result %u of %g: %.17g, the host says %.17g", j, in[i],
				        out[RESULTS * i + j], want[j]);
	}
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_buffer_put(a);
	rig_buffer_put(b);
	sys_close(device);
}

enum { GROUPS = 9, THREADS = 1024 };

static void groups_of_1024_threads_share_memory_that_starts_as_zero(void **state)
{
	static uint32_t in[GROUPS * THREADS], sums[GROUPS];
	const uint64_t params[3] = {0};
	uint32_t dirty = 0, g, t;
	unsigned i;

	(void)state;
	for (i = 0; i < GROUPS * THREADS; i++)
		in[i] = i * 2654435761u;
	for (i = 0; i < TEXTS; i++) {
		struct rig_device *device = sys_open(texts[i]);
		struct rig_image *image = sys_image(device, "shared");
		struct rig_buffer *a = sys_buffer(device, RIG_DEVICE, sizeof(in));
		struct rig_buffer *b = sys_buffer(device, RIG_MAPPED, sizeof(sums)),
		                  *c = sys_buffer(device, RIG_PINNED, 4);
		struct sys_launch launch;

		sys_ok(rig_buffer_write(a, 0, in, sizeof(in)));
		sys_ok(rig_buffer_write(c, 0, &dirty, sizeof(dirty)));
		sys_launch_make(&launch, image, "shared",
		        &(struct sys_params){.device = device,
		                .bytes = params,
		                .count = sizeof(params),
		                .nbuffers = 3,
		                .buffer = {a, b, c}},
		        GROUPS, THREADS);
		sys_ok(rig_run_shared(launch.run, 0, THREADS * 4));
		sys_ok(sys_launch_try(&launch));
		sys_ok(sys_launch_try(&launch)); /* after another launch too */
		sys_ok(rig_buffer_read(b, 0, sums, sizeof(sums)));
		sys_ok(rig_buffer_read(c, 0, &dirty, sizeof(dirty)));
		assert_int_equal(dirty, 0);
		for (g = 0; g < GROUPS; g++) {
			uint32_t sum = 0;

			for (t = 0; t < THREADS; t++)
				sum += in[g * THREADS + t];
			assert_int_equal(sums[g], sum);
		}
		sys_launch_end(&launch);
		rig_image_put(image);
		rig_buffer_put(a);
		rig_buffer_put(b);
		rig_buffer_put(c);
		sys_close(device);
	}
}

/* ---- Parameters ---- */

static void a_parameter_block_of_4096_bytes_arrives_whole(void **state)
{
	enum { WORDS = 512 };
	uint64_t params[WORDS], seen[WORDS - 1];
	unsigned i;

	(void)state;
	sys_fill((uint8_t *)params, sizeof(params), 9);
	params[0] = 0;
	for (i = 0; i < TEXTS; i++) {
		struct rig_device *device = sys_open(texts[i]);
		struct rig_image *image = sys_image(device, "params");
		struct rig_buffer *out = sys_buffer(device, RIG_DEVICE, sizeof(seen));
		struct sys_launch launch;

		sys_launch_make(&launch, image, "params",
		        &(struct sys_params){.device = device,
		                .bytes = params,
		                .count = sizeof(params),
		                .nbuffers = 1,
		                .buffer = {out}},
		        1, 1);
		sys_ok(sys_launch_try(&launch));
		sys_ok(rig_buffer_read(out, 0, seen, sizeof(seen)));
		assert_memory_equal(seen, params + 1, sizeof(seen));
		sys_launch_end(&launch);
		rig_image_put(image);
		rig_buffer_put(out);
		sys_close(device);
	}
}

static void parameters_of_every_launch_are_its_own(void **state)
{
	enum { LAUNCHES = 200 };
	struct rig_device *device = sys_open("sim");
	struct rig_image *image = sys_image(device, "spin");
	struct rig_buffer *number = sys_buffer(device, RIG_DEVICE, 8);
	uint64_t params[3] = {0}, expected = 0, seen = 0;
	struct rig_point last = {0};
	struct sys_launch launch;
	unsigned i;

	(void)state;
	sys_ok(rig_buffer_write(number, 0, &seen, 8));
	sys_launch_make(&launch, image, "spin",
	        &(struct sys_params){.device = device,
	                .bytes = params,
	                .count = sizeof(params),
	                .nbuffers = 1,
	                .buffer = {number}},
	        1, 1);
	/* One run, set anew before each submit while the last ones are under way. */
	for (i = 0; i < LAUNCHES; i++) {
		params[1] = i % 3 ? 0 : 1000;
		params[2] = i * 7919;
		sys_ok(rig_run_params(launch.run, 0, 0, params, sizeof(params)));
		last = sys_launch_submit(&launch);
		expected = 3 * expected + params[2];
	}
	sys_ok(rig_wait(last));
	sys_ok(rig_buffer_read(number, 0, &seen, 8));
	assert_true(seen == expected);
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_buffer_put(number);
	sys_close(device);
}

/* ---- Images ---- */

/* Launches so far, which every loaded image counts for itself (globals.k.c). */
static void run_globals(struct rig_image *image, struct rig_buffer *out, uint64_t count)
{
	uint64_t zero = 0, seen[8];
	struct sys_launch launch;

	sys_launch_make(&launch, image, "globals",
	        &(struct sys_params){.device = rig_buffer_device(out),
	                .bytes = &zero,
	                .count = sizeof(zero),
	                .nbuffers = 1,
	                .buffer = {out}},
	        1, 1);
	sys_ok(sys_launch_try(&launch));
	sys_ok(rig_buffer_read(out, 0, seen, sizeof(seen)));
	assert_int_equal(seen[0], count);
	assert_int_equal(seen[1], 40 + count);
	assert_int_equal(seen[7], 'z');
	sys_launch_end(&launch);
}

static void two_images_of_one_binary_have_globals_of_their_own(void **state)
{
	struct rig_device *device = sys_open("sim");
	struct rig_image *a = sys_image(device, "globals"), *b = sys_image(device, "globals");
	struct rig_buffer *out = sys_buffer(device, RIG_DEVICE, 64);

	(void)state;
	run_globals(a, out, 1);
	run_globals(a, out, 2);
	run_globals(b, out, 1);
	run_globals(a, out, 3);
	rig_image_put(a);
	run_globals(b, out, 2);
	a = sys_image(device, "globals");
	run_globals(a, out, 1); /* a new start */
	run_globals(b, out, 3);
	rig_image_put(a);
	rig_image_put(b);
	rig_buffer_put(out);
	sys_close(device);
}

/* The code of work that is under way stays, whatever its holder does; others come and go meanwhile. */
static void an_image_put_while_it_runs_runs_on_and_others_come_and_go(void **state)
{
	enum { ROUNDS = 30 };
	struct rig_device *device = sys_open("sim");
	struct rig_buffer *number = sys_buffer(device, RIG_DEVICE, 8),
	                  *out = sys_buffer(device, RIG_DEVICE, 64);
	uint64_t params[3] = {0, 300000, 0}, expected = 0, seen = 0;
	struct rig_point last = {0};
	unsigned i;

	(void)state;
	sys_ok(rig_buffer_write(number, 0, &seen, 8));
	for (i = 0; i < ROUNDS; i++) {
		struct rig_image *image = sys_image(device, "spin"), *other;
		struct sys_launch launch;

		params[2] = i;
		sys_launch_make(&launch, image, "spin",
		        &(struct sys_params){.device = device,
		                .bytes = params,
		                .count = sizeof(params),
		                .nbuffers = 1,
		                .buffer = {number}},
		        1, 1);
		rig_image_put(image);
		last = sys_launch_submit(&launch);
		sys_launch_end(&launch);
		other = sys_image(device, "globals"); /* must not lie where the running one does */
		if (i % 8 == 0)
			run_globals(other, out, 1);
		rig_image_put(other);
		expected = 3 * expected + i;
	}
	sys_ok(rig_wait(last));
	sys_ok(rig_buffer_read(number, 0, &seen, 8));
	assert_true(seen == expected);
	rig_buffer_put(number);
	rig_buffer_put(out);
	sys_close(device);
}

static void loading_and_unloading_gives_all_memory_back(void **state)
{
	struct rig_device *device = sys_open("sim:mem=64M");
	struct rig_vfio_stats before, after;
	struct test_counts counts;
	unsigned i;

	(void)state;
	sys_device_works(device);
	rig_cache_trim(device, 0);
	sys_stats(device, &before);
	test_counts_take(&counts);
	for (i = 0; i < 100; i++)
		sys_device_works(device);
	rig_cache_trim(device, 0);
	sys_stats(device, &after);
	test_counts_same(&counts);
	assert_int_equal(after.memory_free, before.memory_free);
	assert_int_equal(after.table_bytes, before.table_bytes);
	sys_close(device);
}

static void what_is_no_image_is_refused_and_the_device_unharmed(void **state)
{
	struct rig_device *device = sys_open("sim");
	uint8_t *bytes;
	size_t count = sys_kernel_bytes("globals", &bytes);
	struct rig_image *image = NULL;
	struct rig_entry entry = {.version = RIG_EDGE_VERSION};

	(void)state;
	assert_int_equal(rig_image_load(device, bytes, 0, &image), -ENOEXEC);
	assert_int_equal(rig_image_load(device, "text", 4, &image), -ENOEXEC);
	assert_int_equal(rig_image_load(device, bytes, count / 2, &image), -ENOEXEC);
	bytes[18] = 62; /* e_machine */
	assert_int_equal(rig_image_load(device, bytes, count, &image), -ENOEXEC);
	free(bytes);
	assert_int_equal(rig_image_load_file(device, "/nonexistent", &image), -ENOENT);
	image = sys_image(device, "globals");
	assert_int_equal(rig_image_entry(image, "nope", &entry), -ENOENT);
	assert_int_equal(rig_image_entry(image, "launches", &entry), -ENOENT);
	sys_ok(rig_image_entry(image, "globals", &entry));
	assert_true(entry.has_params && entry.params == 8);
	rig_image_put(image);
	assert_false(rig_lost(device, NULL));
	sys_device_works(device);
	sys_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(threads_know_their_places_in_grids_and_groups_of_every_shape),
	        cmocka_unit_test(launches_at_the_limits_run_and_one_over_is_refused),
	        cmocka_unit_test(atomics_of_every_width_work_in_board_and_host_memory),
	        cmocka_unit_test(mathematics_agrees_with_the_host),
	        cmocka_unit_test(groups_of_1024_threads_share_memory_that_starts_as_zero),
	        cmocka_unit_test(a_parameter_block_of_4096_bytes_arrives_whole),
	        cmocka_unit_test(parameters_of_every_launch_are_its_own),
	        cmocka_unit_test(two_images_of_one_binary_have_globals_of_their_own),
	        cmocka_unit_test(an_image_put_while_it_runs_runs_on_and_others_come_and_go),
	        cmocka_unit_test(loading_and_unloading_gives_all_memory_back),
	        cmocka_unit_test(what_is_no_image_is_refused_and_the_device_unharmed),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
