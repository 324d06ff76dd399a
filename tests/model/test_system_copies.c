/* SPDX-License-Identifier: MIT */
/* Bytes between the host and memory of every kind, of every size and alignment, and between devices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "system_device.h"

#define GUARD  64u /* bytes before and after what is written, which must stay */
#define LARGE  ((48u << 20) + 4321)
#define MEDIUM (100u << 10)

static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};
static const uint64_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 63, 64, 65, 255, 4095, 4096, 4097, 65535, 65536,
        65537, (1u << 20) - 1, (1u << 20) + 3, (3u << 20) + 17};
static const uint64_t offsets[] = {0, 1, 7, 8, 4093};

enum { KINDS = 3, SIZES = sizeof(sizes) / sizeof(sizes[0]), OFFSETS = sizeof(offsets) / sizeof(offsets[0]) };

static const char *const texts[] = {"sim", "sim:completion=store", "sim:mem=256M,aperture=16M"};

static uint8_t *allocate(size_t bytes)
{
	uint8_t *at = malloc(bytes);

	assert_non_null(at);
	return at;
}

/* Fails unless the two are the same; says where they differ without printing all. */
static void assert_same(const uint8_t *a, const uint8_t *b, size_t count)
{
	size_t i;

	if (!memcmp(a, b, count))
		return;
	for (i = 0; a[i] == b[i]; i++)
		;
	fail_msg("byte %zu of %zu: 0x%02x, not 0x%02x", i, count, a[i], b[i]);
}

/* The whole buffer is known before, and compared as a whole after. */
static void write_and_read(struct rig_device *device, enum rig_memory kind, uint64_t size, uint64_t offset)
{
	uint64_t whole = GUARD + offset + size + GUARD, at = GUARD + offset;
	struct rig_buffer *buffer = sys_buffer(device, kind, whole);
	uint8_t *expected = allocate(whole), *seen = allocate(whole);

	sys_fill(expected, whole, size);
	sys_ok(rig_buffer_write(buffer, 0, expected, whole));
	sys_fill(expected + at, size, size + offset + 1);
	sys_ok(rig_buffer_write(buffer, at, expected + at, size));
	sys_ok(rig_buffer_read(buffer, at, seen, size));
	assert_same(seen, expected + at, size);
	sys_ok(rig_buffer_read(buffer, 0, seen, whole));
	assert_same(seen, expected, whole);
	free(expected);
	free(seen);
	rig_buffer_put(buffer);
}

static void write_and_read_all(const char *text)
{
	struct rig_device *device = sys_open(text);
	unsigned kind, size, offset;

	for (kind = 0; kind < KINDS; kind++)
		for (size = 0; size < SIZES; size++)
			for (offset = 0; offset < OFFSETS; offset++)
				write_and_read(device, kinds[kind], sizes[size], offsets[offset]);
	sys_close(device);
}

static void what_is_written_is_read_and_its_neighbours_stay(void **state)
{
	(void)state;
	write_and_read_all(texts[0]);
}

static void the_same_with_stores(void **state)
{
	(void)state;
	write_and_read_all(texts[1]);
}

static void the_same_beyond_a_small_aperture(void **state)
{
	(void)state;
	write_and_read_all(texts[2]);
}

/* ---- Between buffers ---- */

static void copy(
        struct rig_buffer *dst, struct rig_buffer *src, uint64_t size, uint64_t dst_at, uint64_t src_at)
{
	uint64_t whole = rig_buffer_bytes(dst);
	uint8_t *from = allocate(whole), *expected = allocate(whole), *seen = allocate(whole);

	sys_fill(from, whole, size + 1);
	sys_fill(expected, whole, size + 2);
	sys_ok(rig_buffer_write(src, 0, from, whole));
	sys_ok(rig_buffer_write(dst, 0, expected, whole));
	memcpy(expected + dst_at, from + src_at, size);
	sys_ok(rig_buffer_copy(dst, dst_at, src, src_at, size));
	sys_ok(rig_buffer_read(dst, 0, seen, whole));
	assert_same(seen, expected, whole);
	free(from);
	free(expected);
	free(seen);
}

static void copy_all(struct rig_device *to, struct rig_device *from)
{
	static const struct {
		uint64_t size, dst_at, src_at;
	} rows[] = {{1, 0, 0}, {1, 3, 8}, {3, 4095, 1}, {8, 5, 3}, {4096, 0, 0}, {4096, 1, 0},
	        {4097, 7, 4093}, {MEDIUM - 5000, 11, 4096}};
	unsigned i, j, k;

	for (i = 0; i < KINDS; i++)
		for (j = 0; j < KINDS; j++) {
			struct rig_buffer *dst = sys_buffer(to, kinds[i], MEDIUM);
			struct rig_buffer *src = sys_buffer(from, kinds[j], MEDIUM);

			for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
				copy(dst, src, rows[k].size, rows[k].dst_at, rows[k].src_at);
			rig_buffer_put(dst);
			rig_buffer_put(src);
		}
}

static void every_kind_copies_to_every_kind(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct rig_device *device = sys_open(texts[i]);

		copy_all(device, device);
		sys_close(device);
	}
}

static void buffers_of_two_devices_copy_to_each_other(void **state)
{
	struct rig_device *a = sys_open(texts[1]), *b = sys_open(texts[2]);

	(void)state;
	copy_all(a, b);
	copy_all(b, a);
	sys_close(a);
	sys_close(b);
}

static void a_copy_to_itself_changes_nothing_and_halves_may_be_swapped(void **state)
{
	struct rig_device *device = sys_open("sim");
	struct rig_buffer *buffer = sys_buffer(device, RIG_DEVICE, 2 * MEDIUM);
	uint8_t *expected = allocate(2 * MEDIUM), *seen = allocate(2 * MEDIUM);

	(void)state;
	sys_fill(expected, 2 * MEDIUM, 3);
	sys_ok(rig_buffer_write(buffer, 0, expected, 2 * MEDIUM));
	sys_ok(rig_buffer_copy(buffer, 0, buffer, 0, 2 * MEDIUM));
	sys_ok(rig_buffer_read(buffer, 0, seen, 2 * MEDIUM));
	assert_same(seen, expected, 2 * MEDIUM);
	sys_ok(rig_buffer_copy(buffer, MEDIUM, buffer, 0, MEDIUM));
	sys_ok(rig_buffer_read(buffer, 0, seen, 2 * MEDIUM));
	assert_same(seen, expected, MEDIUM);
	assert_same(seen + MEDIUM, expected, MEDIUM);
	free(expected);
	free(seen);
	rig_buffer_put(buffer);
	sys_close(device);
}

static void copies_that_are_handed_over_keep_their_order(void **state)
{
	enum { HOPS = 60 };
	struct rig_device *device = sys_open("sim");
	struct rig_buffer *chain[HOPS];
	uint8_t *expected = allocate(MEDIUM), *seen = allocate(MEDIUM);
	struct rig_point point;
	unsigned i;

	(void)state;
	for (i = 0; i < HOPS; i++)
		chain[i] = sys_buffer(device, kinds[i % KINDS], MEDIUM);
	sys_fill(expected, MEDIUM, 4);
	sys_ok(rig_buffer_write(chain[0], 0, expected, MEDIUM));
	for (i = 1; i < HOPS; i++)
		sys_ok(rig_buffer_copy_async(chain[i], 0, chain[i - 1], 0, MEDIUM, &point));
	sys_ok(rig_wait(point));
	sys_ok(rig_buffer_read(chain[HOPS - 1], 0, seen, MEDIUM));
	assert_same(seen, expected, MEDIUM);
	for (i = 0; i < HOPS; i++)
		rig_buffer_put(chain[i]);
	free(expected);
	free(seen);
	sys_close(device);
}

/* ---- Large ---- */

static void a_buffer_larger_than_the_aperture_holds_what_is_written(void **state)
{
	struct rig_device *device = sys_open("sim:mem=256M,aperture=16M");
	struct rig_buffer *a = sys_buffer(device, RIG_DEVICE, LARGE),
	                  *b = sys_buffer(device, RIG_DEVICE, LARGE);
	uint8_t *expected = allocate(LARGE), *seen = allocate(LARGE);

	(void)state;
	assert_null(rig_buffer_host(a));
	sys_fill(expected, LARGE, 5);
	sys_ok(rig_buffer_write(a, 0, expected, LARGE));
	sys_ok(rig_buffer_copy(b, 0, a, 0, LARGE));
	sys_ok(rig_buffer_read(b, 0, seen, LARGE));
	assert_same(seen, expected, LARGE);
	free(expected);
	free(seen);
	rig_buffer_put(a);
	rig_buffer_put(b);
	sys_close(device);
}

/* ---- Rows, views, bounds ---- */

static void run_copy_work(struct rig_device *device, const struct rig_copy_work *copy_work,
        struct rig_buffer *src, struct rig_buffer *dst)
{
	const struct rig_work work = {.kind = RIG_COPY, .u.copy = *copy_work};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &work, .nparts = 1, .reads = 1, .writes = 1};
	struct sys_launch launch;

	sys_ok(rig_submission_make(device, &description, &launch.submission));
	sys_ok(rig_run_make(launch.submission, &launch.run));
	sys_ok(rig_run_buffer(launch.run, 0, src));
	sys_ok(rig_run_buffer(launch.run, 1, dst));
	sys_ok(sys_launch_try(&launch));
	sys_launch_end(&launch);
}

static void rows_with_pitches_are_copied_and_filled_and_nothing_between(void **state)
{
	enum { ROWS = 37, ROW = 101, PITCH = 128, OTHER = 257, BYTES = ROWS * OTHER + 64 };
	struct rig_device *device = sys_open("sim");
	struct rig_buffer *src = sys_buffer(device, RIG_DEVICE, BYTES),
	                  *dst = sys_buffer(device, RIG_PINNED, BYTES);
	uint8_t *from = allocate(BYTES), *expected = allocate(BYTES), *seen = allocate(BYTES);
	struct rig_copy_work work = {.src = {.slot = 0, .offset = 3, .pitch = PITCH},
	        .dst = {.slot = 1, .offset = 5, .pitch = OTHER},
	        .row_bytes = ROW,
	        .rows = ROWS};
	unsigned i;

	(void)state;
	sys_fill(from, BYTES, 1);
	sys_fill(expected, BYTES, 2);
	sys_ok(rig_buffer_write(src, 0, from, BYTES));
	sys_ok(rig_buffer_write(dst, 0, expected, BYTES));
	run_copy_work(device, &work, src, dst);
	for (i = 0; i < ROWS; i++)
		memcpy(expected + 5 + i * OTHER, from + 3 + i * PITCH, ROW);
	sys_ok(rig_buffer_read(dst, 0, seen, BYTES));
	assert_same(seen, expected, BYTES);
	work.fill = true;
	work.byte = 0xA5;
	work.dst.offset = 7;
	run_copy_work(device, &work, src, dst);
	for (i = 0; i < ROWS; i++)
		memset(expected + 7 + i * OTHER, 0xA5, ROW);
	sys_ok(rig_buffer_read(dst, 0, seen, BYTES));
	assert_same(seen, expected, BYTES);
	free(from);
	free(expected);
	free(seen);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	sys_close(device);
}

static void a_view_is_its_part_of_the_buffer(void **state)
{
	struct rig_device *device = sys_open("sim:aperture=16M");
	struct rig_buffer *whole = sys_buffer(device, RIG_DEVICE, MEDIUM), *view, *inner;
	uint8_t *expected = allocate(MEDIUM), *seen = allocate(MEDIUM);

	(void)state;
	sys_fill(expected, MEDIUM, 6);
	sys_ok(rig_buffer_write(whole, 0, expected, MEDIUM));
	sys_ok(rig_buffer_view(whole, 1001, 5000, &view));
	sys_ok(rig_buffer_view(view, 99, 1000, &inner));
	rig_buffer_put(whole); /* the views keep the memory */
	assert_int_equal(rig_buffer_address(inner), rig_buffer_address(view) + 99);
	sys_ok(rig_buffer_read(inner, 0, seen, 1000));
	assert_same(seen, expected + 1100, 1000);
	assert_int_equal(rig_buffer_view(view, 4000, 1001, &inner), -EINVAL);
	rig_buffer_put(inner);
	rig_buffer_put(view);
	free(expected);
	free(seen);
	sys_close(device);
}

static void copies_out_of_bounds_are_refused_and_nothing_happens(void **state)
{
	struct rig_device *device = sys_open("sim");
	struct rig_buffer *a = sys_buffer(device, RIG_DEVICE, 100), *b = sys_buffer(device, RIG_PINNED, 50);
	uint64_t before = rig_submitted(device);
	uint8_t bytes[200] = {0};

	(void)state;
	assert_int_equal(rig_buffer_write(a, 1, bytes, 100), -EINVAL);
	assert_int_equal(rig_buffer_read(a, 101, bytes, 0), -EINVAL);
	assert_int_equal(rig_buffer_read(a, UINT64_MAX, bytes, 2), -EINVAL);
	assert_int_equal(rig_buffer_copy(b, 0, a, 0, 51), -EINVAL);
	assert_int_equal(rig_buffer_copy(a, 90, b, 0, 11), -EINVAL);
	assert_int_equal(rig_buffer_copy(a, UINT64_MAX - 3, b, 0, 8), -EINVAL);
	assert_int_equal(rig_submitted(device), before);
	sys_ok(rig_buffer_write(a, 100, bytes, 0));
	rig_buffer_put(a);
	rig_buffer_put(b);
	a = sys_buffer(device, RIG_DEVICE, 0);
	assert_int_equal(rig_buffer_bytes(a), 0);
	assert_int_equal(rig_buffer_write(a, 0, bytes, 1), -EINVAL);
	sys_ok(rig_buffer_read(a, 0, bytes, 0));
	rig_buffer_put(a);
	sys_device_works(device);
	sys_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(what_is_written_is_read_and_its_neighbours_stay),
	        cmocka_unit_test(the_same_with_stores),
	        cmocka_unit_test(the_same_beyond_a_small_aperture),
	        cmocka_unit_test(every_kind_copies_to_every_kind),
	        cmocka_unit_test(buffers_of_two_devices_copy_to_each_other),
	        cmocka_unit_test(a_copy_to_itself_changes_nothing_and_halves_may_be_swapped),
	        cmocka_unit_test(copies_that_are_handed_over_keep_their_order),
	        cmocka_unit_test(a_buffer_larger_than_the_aperture_holds_what_is_written),
	        cmocka_unit_test(rows_with_pitches_are_copied_and_filled_and_nothing_between),
	        cmocka_unit_test(a_view_is_its_part_of_the_buffer),
	        cmocka_unit_test(copies_out_of_bounds_are_refused_and_nothing_happens),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
