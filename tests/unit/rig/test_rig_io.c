/* SPDX-License-Identifier: MIT */
/* Io devices: a library of memory that is reached by calls, opened beside polled devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig_help.h"

#define PAGE  4096u
#define BYTES (3u * PAGE)
#define LARGE (5u << 20) /* more than a staging half */

static const struct rig_key library_key = {"library"}, other_key = {"other"};

/* What the library does, and what it saw. */
static struct library {
	bool no_memory, own_only, no_pages, fails_make, faults;
	int answer; /* of read, write and pages, if not 0 */
	unsigned makes, allocs, frees, reads, writes, page_asks, prefetches, stops, releases, inside;
	uint64_t last_prefetch;
} lib;

struct region {
	uint64_t bytes;
	uint8_t *at;
};

static struct region *make_region(uint64_t bytes)
{
	struct region *r = calloc(1, sizeof(*r));

	r->bytes = bytes;
	r->at = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
	memset(r->at, 0, bytes);
	return r;
}

static uint64_t io_budget(void *device)
{
	(void)device;
	return UINT64_C(1) << 30;
}

static int io_alloc(void *device, uint64_t bytes, void **region, const char **fault)
{
	(void)device;
	(void)fault;
	lib.allocs++;
	if (lib.own_only)
		return rig_error_set(-EINVAL, "this library makes no memory");
	if (lib.no_memory)
		return -ENOMEM;
	*region = make_region(bytes);
	return 0;
}

static int io_free(void *device, void *region, const char **fault)
{
	struct region *r = region;

	(void)device;
	(void)fault;
	lib.frees++;
	free(r->at);
	free(r);
	return 0;
}

static int io_answer(const char **fault)
{
	if (!lib.faults)
		return lib.answer;
	*fault = "the library broke";
	return RIG_FAULT;
}

static int io_read(void *device, void *region, uint64_t at, void *dst, uint64_t bytes, const char **fault)
{
	struct region *r = region;

	(void)device;
	lib.reads++;
	assert_true(at + bytes <= r->bytes);
	memcpy(dst, r->at + at, bytes);
	return io_answer(fault);
}

static int io_write(
        void *device, void *region, uint64_t at, const void *src, uint64_t bytes, const char **fault)
{
	struct region *r = region;

	(void)device;
	lib.writes++;
	assert_true(at + bytes <= r->bytes);
	memcpy(r->at + at, src, bytes);
	return io_answer(fault);
}

static int io_pages(void *device, void *region, void **pages, const char **fault)
{
	struct region *r = region;

	(void)device;
	lib.page_asks++;
	*pages = lib.no_pages ? NULL : r->at;
	return io_answer(fault);
}

static void io_prefetch(void *device, void *region, uint64_t at, uint64_t bytes)
{
	(void)device;
	(void)region;
	(void)bytes;
	lib.prefetches++;
	lib.last_prefetch = at;
}

static void io_stop(void *device)
{
	(void)device;
	lib.stops++;
}

static void io_release(void *device)
{
	lib.releases++;
	free(device);
}

static const struct rig_io_module library = {RIG_EDGE_VERSION, &library_key, io_budget, io_alloc, io_free,
        io_read, io_write, io_pages, io_prefetch, io_stop, io_release};

static int io_make(void *arg, void **device, char *why, size_t why_bytes)
{
	(void)arg;
	lib.makes++;
	if (lib.fails_make) {
		(void)snprintf(why, why_bytes, "no such library");
		return -ENOENT;
	}
	*device = malloc(1);
	return 0;
}

static struct rig_io_opener opener_of(const char *name)
{
	struct rig_io_opener opener = {RIG_EDGE_VERSION, name, &library, io_make, NULL};

	return opener;
}

static int clear(void **state)
{
	(void)state;
	memset(&lib, 0, sizeof(lib));
	return 0;
}

static struct rig_device *open_io(const char *name)
{
	struct rig_io_opener opener = opener_of(name);
	struct rig_device *d;

	assert_ok(rig_open_io(&opener, &d));
	return d;
}

/* Everything was given back. */
static void close_io(struct rig_device *d)
{
	assert_ok(rig_close(d));
	rig_device_put(d);
	assert_int_equal(lib.stops, lib.releases);
}

static uint8_t *pattern(uint64_t bytes)
{
	uint8_t *made = malloc(bytes);
	uint64_t i;

	for (i = 0; i < bytes; i++)
		made[i] = (uint8_t)(i * 31 + i / 251);
	return made;
}

static void check_bytes(struct rig_buffer *buffer, const uint8_t *expected, uint64_t bytes)
{
	uint8_t *got = malloc(bytes);

	assert_ok(rig_buffer_read(buffer, 0, got, bytes));
	assert_memory_equal(got, expected, bytes);
	free(got);
}

/* ---- Life ---- */

/* E-254 to E-256. */
static void an_io_device_is_opened_once_a_name_and_stopped_at_its_close(void **state)
{
	struct rig_io_opener opener = opener_of("LIB");
	struct rig_device *d = open_io("LIB"), *again;

	(void)state;
	assert_string_equal(rig_name(d), "LIB");
	assert_int_equal(rig_open_io(&opener, &again), -EBUSY);
	assert_int_equal(lib.makes, 1);
	assert_ok(rig_close(d));
	assert_int_equal(lib.stops, 1);
	assert_int_equal(lib.releases, 0);
	assert_ok(rig_open_io(&opener, &again));
	rig_device_put(d);
	assert_int_equal(lib.releases, 1);
	close_io(again);
	assert_int_equal(lib.stops, 2);
}

static void a_library_that_does_not_open_says_why(void **state)
{
	struct rig_io_opener opener = opener_of("LIB");
	struct rig_device *d;

	(void)state;
	lib.fails_make = true;
	assert_int_equal(rig_open_io(&opener, &d), -ENOENT);
	assert_string_equal(rig_error(), "LIB: no such library");
	opener.version++;
	assert_int_equal(rig_open_io(&opener, &d), -EINVAL);
	opener = opener_of("LIB");
	opener.module = NULL;
	assert_int_equal(rig_open_io(&opener, &d), -EINVAL);
	assert_int_equal(rig_open_io(NULL, &d), -EINVAL);
	assert_int_equal(lib.stops, 0);
}

static void an_io_device_runs_no_work(void **state)
{
	struct rig_device *d = open_io("LIB");
	struct rig_submission *s = help_empty(d);
	struct rig_point point;
	struct rig_image *image;

	(void)state;
	assert_int_equal(rig_submit(s, NULL, NULL, 0, &point), -EINVAL);
	assert_non_null(strstr(rig_error(), "runs no work"));
	assert_int_equal(rig_submitted(d), rig_signaled(d));
	assert_int_equal(rig_image_load(d, "x", 1, &image), -ENOTSUP);
	rig_submission_put(s);
	assert_false(rig_lost(d, NULL));
	close_io(d);
}

/* ---- Bytes ---- */

/* E-253. */
static void bytes_go_by_the_librarys_calls(void **state)
{
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *buffer = help_buffer(d, BYTES), *view;
	uint8_t in[100], out[100];
	uint64_t at;

	(void)state;
	assert_null(rig_buffer_host(buffer));
	memset(in, 0x5a, sizeof(in));
	for (at = 0; at + sizeof(in) <= BYTES; at += 577) {
		assert_ok(rig_buffer_write(buffer, at, in, sizeof(in)));
		assert_ok(rig_buffer_read(buffer, at, out, sizeof(out)));
		assert_memory_equal(in, out, sizeof(in));
	}
	assert_int_equal(rig_buffer_read(buffer, BYTES - 1, out, 2), -EINVAL);
	assert_ok(rig_buffer_view(buffer, PAGE, PAGE, &view));
	in[0] = 1;
	assert_ok(rig_buffer_write(view, 5, in, 1));
	assert_ok(rig_buffer_read(buffer, PAGE + 5, out, 1));
	assert_int_equal(out[0], 1);
	rig_buffer_put(view);
	rig_buffer_put(buffer);
	close_io(d);
	assert_int_equal(lib.frees, lib.allocs);
}

static void dropped_io_memory_is_used_again(void **state)
{
	struct rig_device *d = open_io("LIB");

	(void)state;
	rig_buffer_put(help_buffer(d, BYTES));
	rig_buffer_put(help_buffer(d, BYTES));
	assert_int_equal(lib.allocs, 1);
	rig_cache_trim(d, 0);
	assert_int_equal(lib.frees, 1);
	close_io(d);
}

static void what_alloc_refuses_is_handed_on(void **state)
{
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *buffer;

	(void)state;
	lib.own_only = true;
	assert_int_equal(rig_buffer_create(d, RIG_DEVICE, BYTES, &buffer), -EINVAL);
	lib.own_only = false;
	lib.no_memory = true;
	assert_int_equal(rig_buffer_create(d, RIG_DEVICE, BYTES, &buffer), -ENOMEM);
	assert_int_equal(rig_buffer_create(d, RIG_DEVICE, UINT64_C(2) << 30, &buffer), -ENOMEM);
	close_io(d);
}

static void a_region_of_the_librarys_own_becomes_a_buffer_and_is_freed_once(void **state)
{
	struct rig_device *d = open_io("LIB");
	struct region *region = make_region(100);
	struct rig_buffer *buffer;
	uint8_t byte = 7, out;

	(void)state;
	assert_int_equal(rig_buffer_of_io(d, &library_key, region, 0, &buffer), -EINVAL);
	assert_int_equal(rig_buffer_of_io(d, &other_key, region, 100, &buffer), -EINVAL);
	assert_int_equal(lib.frees, 0);
	assert_ok(rig_buffer_of_io(d, &library_key, region, 100, &buffer));
	assert_int_equal(rig_buffer_bytes(buffer), 100);
	assert_ptr_equal(rig_buffer_io_region(buffer, &library_key), region);
	assert_null(rig_buffer_io_region(buffer, &other_key));
	assert_ok(rig_buffer_write(buffer, 99, &byte, 1));
	assert_ok(rig_buffer_read(buffer, 99, &out, 1));
	assert_int_equal(out, 7);
	rig_buffer_put(buffer);
	assert_int_equal(lib.frees, 1);
	close_io(d);
	assert_int_equal(lib.frees, 1);
}

static void an_errno_of_the_library_loses_nothing(void **state)
{
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *buffer = help_buffer(d, BYTES);
	uint8_t byte = 0;

	(void)state;
	lib.answer = -EFAULT;
	assert_int_equal(rig_buffer_read(buffer, 0, &byte, 1), -EFAULT);
	assert_int_equal(rig_buffer_write(buffer, 0, &byte, 1), -EFAULT);
	lib.answer = 0;
	assert_ok(rig_buffer_read(buffer, 0, &byte, 1));
	rig_buffer_put(buffer);
	close_io(d);
}

static void a_fault_of_the_library_loses_the_device(void **state)
{
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *buffer = help_buffer(d, BYTES);
	const char *reason = "";
	uint8_t byte = 0;

	(void)state;
	lib.faults = true;
	assert_int_equal(rig_buffer_read(buffer, 0, &byte, 1), RIG_LOST);
	assert_true(rig_lost(d, &reason));
	assert_string_equal(reason, "the library broke");
	assert_int_equal(lib.stops, 1);
	assert_int_equal(rig_buffer_write(buffer, 0, &byte, 1), RIG_LOST);
	rig_buffer_put(buffer);
	assert_int_equal(lib.frees, 1);
	close_io(d);
}

/* ---- Copies ---- */

static void copies_reach_memory_that_the_host_does_not_address(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *from = help_buffer(d, LARGE), *back = help_buffer(d, LARGE);
	struct rig_buffer *on_device = help_buffer(b.d, LARGE);
	uint8_t *bytes = pattern(LARGE);

	(void)state;
	assert_ok(rig_buffer_write(from, 0, bytes, LARGE));
	assert_ok(rig_buffer_copy(on_device, 0, from, 0, LARGE));
	assert_true(lib.prefetches > 0);
	assert_ok(rig_buffer_copy(back, 1, on_device, 1, LARGE - 1));
	assert_ok(rig_buffer_write(back, 0, bytes, 1));
	check_bytes(back, bytes, LARGE);
	assert_int_equal(lib.page_asks, 0);
	free(bytes);
	rig_buffer_put(from);
	rig_buffer_put(back);
	rig_buffer_put(on_device);
	close_io(d);
	help_close(&b);
}

static void copies_reach_memory_that_the_host_addresses(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *from = help_buffer(d, BYTES), *to = help_buffer(d, BYTES), *host;
	uint8_t *bytes = pattern(BYTES);

	(void)state;
	o.host_addresses = true;
	b = help_open(&o);
	host = help_buffer(b.d, BYTES);
	assert_ok(rig_buffer_write(from, 0, bytes, BYTES));
	assert_ok(rig_buffer_copy(host, 0, from, 0, BYTES));
	assert_memory_equal(rig_buffer_host(host), bytes, BYTES);
	assert_ok(rig_buffer_copy(to, 0, host, 0, BYTES));
	check_bytes(to, bytes, BYTES);
	free(bytes);
	rig_buffer_put(from);
	rig_buffer_put(to);
	rig_buffer_put(host);
	close_io(d);
	help_close(&b);
}

static void copies_between_io_devices_go_through_the_host(void **state)
{
	struct rig_device *d = open_io("LIB"), *e = open_io("LIB2");
	struct rig_buffer *from = help_buffer(d, LARGE), *to = help_buffer(e, LARGE);
	uint8_t *bytes = pattern(LARGE);
	struct rig_point point;

	(void)state;
	assert_ok(rig_buffer_write(from, 0, bytes, LARGE));
	assert_ok(rig_buffer_copy_async(to, 0, from, 0, LARGE, &point));
	assert_int_equal(point.bits, 0);
	check_bytes(to, bytes, LARGE);
	free(bytes);
	rig_buffer_put(from);
	rig_buffer_put(to);
	assert_ok(rig_close(d));
	assert_ok(rig_close(e));
	rig_device_put(d);
	rig_device_put(e);
	assert_int_equal(lib.frees, lib.allocs);
}

/* ---- Pages ---- */

static void pages_are_borrowed_and_calls_wait_for_the_work_on_them(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *memory = help_buffer(d, BYTES), *borrowed, *src;
	uint8_t *bytes = pattern(BYTES);
	struct rig_submission *s;
	struct rig_run_args *run;

	(void)state;
	o.maps_host = true;
	b = help_open(&o);
	assert_ok(rig_buffer_borrow(b.d, memory, &borrowed));
	src = help_buffer(b.d, BYTES);
	assert_ok(rig_buffer_write(src, 0, bytes, BYTES));
	s = help_copy(b.d, BYTES);
	run = help_copy_run(s, src, borrowed);
	(void)help_submit(s, run);
	/* The read sleeps in the driver, which runs the copy. */
	check_bytes(memory, bytes, BYTES);
	assert_int_equal(rig_submitted(b.d), rig_signaled(b.d));
	assert_ok(rig_buffer_prefetch(borrowed, PAGE, PAGE));
	assert_int_equal(lib.last_prefetch, PAGE);
	free(bytes);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(src);
	rig_buffer_put(borrowed);
	rig_buffer_put(memory);
	help_close(&b);
	close_io(d);
}

static void an_engine_reads_through_borrowed_pages_after_a_hint(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *memory = help_buffer(d, BYTES), *borrowed, *dst;
	uint8_t *bytes = pattern(BYTES);

	(void)state;
	o.maps_host = true;
	b = help_open(&o);
	dst = help_buffer(b.d, BYTES);
	assert_ok(rig_buffer_write(memory, 0, bytes, BYTES));
	assert_ok(rig_buffer_borrow(b.d, memory, &borrowed));
	lib.reads = 0;
	assert_ok(rig_buffer_copy(dst, 0, borrowed, 0, BYTES));
	assert_int_equal(lib.reads, 0);
	assert_int_equal(lib.prefetches, 1);
	check_bytes(dst, bytes, BYTES);
	/* A copy between the two ways to one memory could wait for itself. */
	assert_int_equal(rig_buffer_copy(borrowed, 0, memory, 0, PAGE), -EINVAL);
	assert_int_equal(rig_buffer_copy(memory, 0, borrowed, 0, PAGE), -EINVAL);
	free(bytes);
	rig_buffer_put(dst);
	rig_buffer_put(borrowed);
	rig_buffer_put(memory);
	help_close(&b);
	close_io(d);
}

static void memory_without_pages_is_asked_for_them_once(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_device *d = open_io("LIB");
	struct rig_buffer *memory = help_buffer(d, BYTES), *borrowed;

	(void)state;
	o.maps_host = true;
	b = help_open(&o);
	lib.answer = -EAGAIN;
	assert_int_equal(rig_buffer_borrow(b.d, memory, &borrowed), -EAGAIN);
	lib.answer = 0;
	lib.no_pages = true;
	assert_int_equal(rig_buffer_borrow(b.d, memory, &borrowed), -ENOTSUP);
	assert_int_equal(rig_buffer_borrow(b.d, memory, &borrowed), -ENOTSUP);
	assert_int_equal(lib.page_asks, 2);
	rig_buffer_put(memory);
	help_close(&b);
	close_io(d);
}

#define TEST(name) cmocka_unit_test_setup(name, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(an_io_device_is_opened_once_a_name_and_stopped_at_its_close),
	        TEST(a_library_that_does_not_open_says_why),
	        TEST(an_io_device_runs_no_work),
	        TEST(bytes_go_by_the_librarys_calls),
	        TEST(dropped_io_memory_is_used_again),
	        TEST(what_alloc_refuses_is_handed_on),
	        TEST(a_region_of_the_librarys_own_becomes_a_buffer_and_is_freed_once),
	        TEST(an_errno_of_the_library_loses_nothing),
	        TEST(copies_reach_memory_that_the_host_does_not_address),
	        TEST(copies_reach_memory_that_the_host_addresses),
	        TEST(copies_between_io_devices_go_through_the_host),
	        TEST(pages_are_borrowed_and_calls_wait_for_the_work_on_them),
	        TEST(an_engine_reads_through_borrowed_pages_after_a_hint),
	        TEST(memory_without_pages_is_asked_for_them_once),
	        TEST(a_fault_of_the_library_loses_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
