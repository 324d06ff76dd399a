/* SPDX-License-Identifier: MIT */
/* Memory: kinds, views, borrows, copies, the cache and its budget. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rig_help.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static void fill(uint8_t *bytes, size_t n, unsigned seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + seed);
}

/* Sizes around the halves of staging memory. */
static void copies_both_ways_keep_the_bytes_at_every_size(void **state)
{
	static const uint64_t sizes[] = {1, 4095, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 12 * MIB, 13 * MIB + 5};
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rig_buffer *buffer = help_buffer(b.d, sizes[i] + 3);
		uint8_t *in = malloc(sizes[i]), *out = calloc(1, sizes[i]);

		assert_null(rig_buffer_host(buffer));
		fill(in, sizes[i], (unsigned)i);
		assert_ok(rig_buffer_write(buffer, 2, in, sizes[i]));
		assert_ok(rig_buffer_read(buffer, 2, out, sizes[i]));
		assert_memory_equal(in, out, sizes[i]);
		rig_buffer_put(buffer);
		free(in);
		free(out);
	}
	help_close(&b);
}

/* E-086: on the copy engine. */
static void staged_copies_go_on_the_copy_engine(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *buffer = help_buffer(b.d, 64);
	const struct rig_part *part;
	uint32_t n;

	(void)state;
	assert_ok(rig_buffer_write(buffer, 0, "abc", 4));
	part = polled_parts(b.p, &n);
	assert_int_equal(n, 1);
	assert_int_equal(part->queue, 1);
	rig_buffer_put(buffer);
	help_close(&b);
}

/* E-182, E-184 */
static void a_host_addressed_device_is_copied_by_the_host_and_asked_no_pinned(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *pinned, *device;
	char out[8];

	(void)state;
	o.host_addresses = true;
	b = help_open(&o);
	device = help_buffer(b.d, 64);
	assert_ok(rig_buffer_create(b.d, RIG_PINNED, 64, &pinned));
	assert_non_null(rig_buffer_host(pinned));
	assert_ok(rig_buffer_write(device, 8, "1234567", 8));
	assert_ok(rig_buffer_copy(pinned, 0, device, 8, 8));
	assert_ok(rig_buffer_read(pinned, 0, out, 8));
	assert_string_equal(out, "1234567");
	assert_int_equal(polled_count(b.p, POLLED_SUBMIT), 0);
	rig_buffer_put(pinned);
	rig_buffer_put(device);
	help_close(&b);
}

static void pinned_and_mapped_memory_has_a_host_address(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *pinned, *mapped, *device = help_buffer(b.d, 4096);
	struct rig_point point;

	(void)state;
	assert_ok(rig_buffer_create(b.d, RIG_PINNED, 4096, &pinned));
	assert_ok(rig_buffer_create(b.d, RIG_MAPPED, 4096, &mapped));
	memcpy(rig_buffer_host(pinned), "pinned", 7);
	assert_ok(rig_buffer_copy_async(device, 0, pinned, 0, 7, &point));
	assert_int_not_equal(point.bits, 0);
	assert_ok(rig_buffer_copy_async(mapped, 100, device, 0, 7, &point));
	assert_ok(rig_wait(point));
	assert_string_equal((char *)rig_buffer_host(mapped) + 100, "pinned");
	assert_ok(rig_buffer_wait(mapped, RIG_WRITE));
	rig_buffer_put(pinned);
	rig_buffer_put(mapped);
	rig_buffer_put(device);
	help_close(&b);
}

static void ranges_outside_a_buffer_are_refused(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *buffer = help_buffer(b.d, 64), *view, *none;
	struct rig_dma_answer answer;
	char byte[2] = {0};

	(void)state;
	assert_int_equal(rig_buffer_write(buffer, 63, byte, 2), -EINVAL);
	assert_int_equal(rig_buffer_read(buffer, 65, byte, 0), -EINVAL);
	assert_int_equal(rig_buffer_read(buffer, UINT64_MAX, byte, 2), -EINVAL);
	assert_int_equal(rig_buffer_view(buffer, 60, 5, &view), -EINVAL);
	assert_int_equal(rig_buffer_copy(buffer, 0, buffer, 63, 2), -EINVAL);
	assert_int_equal(rig_buffer_create(b.d, (enum rig_memory)9, 1, &view), -EINVAL);
	assert_ok(rig_buffer_view(buffer, 60, 4, &view));
	assert_int_equal(rig_buffer_address(view), rig_buffer_address(buffer) + 60);
	assert_ok(rig_buffer_create(b.d, RIG_DEVICE, 0, &none));
	assert_int_equal(rig_buffer_address(none), 0);
	assert_ok(rig_buffer_write(none, 0, NULL, 0));
	assert_int_equal(rig_buffer_dma(view, &answer), RIG_NO_DMA);
	assert_non_null(answer.reason);
	assert_int_equal(rig_buffer_dma(none, &answer), -EINVAL);
	rig_buffer_put(none);
	rig_buffer_put(view);
	rig_buffer_put(buffer);
	help_close(&b);
}

/* E-193, E-194 */
static void host_memory_is_borrowed_page_by_page(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct bench b, c;
	struct rig_buffer *host, *device;
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_point point;

	(void)state;
	o.maps_host = true;
	o1.name = "P1";
	b = help_open(&o);
	c = help_open(&o1);
	device = help_buffer(b.d, 4096);
	assert_int_equal(rig_buffer_of_host(b.d, pages + 1, 100, &host), -EINVAL);
	assert_int_equal(rig_buffer_of_host(b.d, NULL, 100, &host), -EINVAL);
	assert_int_equal(rig_buffer_of_host(c.d, pages, 100, &host), -ENOTSUP);
	assert_ok(rig_buffer_of_host(b.d, pages, 5000, &host));
	strcpy(pages, "mine");
	assert_ok(rig_buffer_copy_async(device, 0, host, 0, 5, &point));
	assert_ok(rig_buffer_copy_async(host, 4500, device, 0, 5, &point));
	assert_ok(rig_wait(point));
	assert_string_equal(pages + 4500, "mine");
	rig_buffer_put(host);
	rig_buffer_put(device);
	help_close(&b);
	help_close(&c);
	(void)munmap(pages, 8192);
}

/* E-199 */
static void a_mapping_without_room_is_asked_for_once_more(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *host;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	o.maps_host = true;
	o.no_room = 1;
	b = help_open(&o);
	assert_ok(rig_buffer_of_host(b.d, page, 4096, &host));
	assert_int_equal(polled_count(b.p, POLLED_MAP_HOST), 2);
	rig_buffer_put(host);
	help_close(&b);
	o.no_room = 100;
	b = help_open(&o);
	assert_int_equal(rig_buffer_of_host(b.d, page, 4096, &host), -ENOMEM);
	assert_int_equal(polled_count(b.p, POLLED_MAP_HOST), 2);
	help_close(&b);
	(void)munmap(page, 4096);
}

/* E-197: "not now" is no "never": neither the program's memory nor a buffer's is given up. */
static void memory_that_found_no_room_is_asked_for_again_by_the_next_call(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct bench a, b;
	struct rig_buffer *made, *pinned;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int borrows;

	(void)state;
	o1.name = "P1";
	o1.maps_host = true;
	o1.no_room = 3;
	for (borrows = 0; borrows < 2; borrows++) {
		a = help_open(&o);
		b = help_open(&o1);
		assert_ok(rig_buffer_create(a.d, RIG_PINNED, 4096, &pinned));
		assert_int_equal(borrows ? rig_buffer_borrow(b.d, pinned, &made)
		                         : rig_buffer_of_host(b.d, page, 4096, &made),
		        -ENOMEM);
		assert_ok(borrows ? rig_buffer_borrow(b.d, pinned, &made)
		                  : rig_buffer_of_host(b.d, page, 4096, &made));
		assert_int_equal(polled_count(b.p, POLLED_MAP_HOST), 4);
		rig_buffer_put(made);
		rig_buffer_put(pinned);
		help_close(&b);
		help_close(&a);
	}
	(void)munmap(page, 4096);
}

/* E-197 */
static void memory_that_a_device_never_maps_is_asked_for_once(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct bench a, b;
	struct rig_buffer *pinned, *borrowed;

	(void)state;
	o1.name = "P1";
	o1.maps_host = o1.never_maps = true;
	a = help_open(&o);
	b = help_open(&o1);
	assert_ok(rig_buffer_create(a.d, RIG_PINNED, 4096, &pinned));
	assert_int_equal(rig_buffer_borrow(b.d, pinned, &borrowed), -ENOTSUP);
	assert_non_null(strstr(rig_error(), "read-only pages"));
	assert_int_equal(rig_buffer_borrow(b.d, pinned, &borrowed), -ENOTSUP);
	assert_int_equal(polled_count(b.p, POLLED_MAP_HOST), 1);
	rig_buffer_put(pinned);
	help_close(&a);
	help_close(&b);
}

static void mapped_memory_is_pinned_where_there_is_no_window(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *buffer;

	(void)state;
	o.mapped_none = true;
	b = help_open(&o);
	assert_ok(rig_buffer_create(b.d, RIG_MAPPED, 4096, &buffer));
	assert_non_null(rig_buffer_host(buffer));
	assert_ok(rig_buffer_write(buffer, 0, "x", 2));
	rig_buffer_put(buffer);
	help_close(&b);
}

/* Two devices of a driver. */
static void a_peers_memory_is_mapped_once_a_device(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct bench a, b;
	struct rig_buffer *there, *here, *again;
	uint8_t in[100], out[100];

	(void)state;
	o.peers = o1.peers = true;
	o.waits.hosts = o1.waits.hosts = true;
	o.completion = o1.completion = RIG_HOST;
	o1.name = "P1";
	a = help_open(&o);
	b = help_open(&o1);
	there = help_buffer(a.d, 100);
	fill(in, sizeof(in), 3);
	assert_ok(rig_buffer_write(there, 0, in, sizeof(in)));
	assert_ok(rig_buffer_borrow(b.d, there, &here));
	assert_ok(rig_buffer_borrow(b.d, there, &again));
	assert_int_equal(polled_count(b.p, POLLED_MAP_PEER), 1);
	assert_ptr_equal(rig_buffer_device(here), b.d);
	assert_ok(rig_buffer_read(here, 0, out, sizeof(out)));
	assert_memory_equal(in, out, sizeof(in));
	rig_buffer_put(here);
	rig_buffer_put(again);
	rig_buffer_put(there);
	help_close(&a);
	help_close(&b);
}

static void memory_that_no_device_reaches_is_copied_through_the_host(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct bench a, b;
	struct rig_buffer *src, *dst, *borrowed;
	uint8_t *in = malloc(5 * MIB), *out = malloc(5 * MIB);

	(void)state;
	o1.name = "P1";
	a = help_open(&o);
	b = help_open(&o1);
	src = help_buffer(a.d, 5 * MIB);
	dst = help_buffer(b.d, 5 * MIB);
	assert_int_equal(rig_buffer_borrow(b.d, src, &borrowed), -ENOTSUP);
	fill(in, 5 * MIB, 9);
	assert_ok(rig_buffer_write(src, 0, in, 5 * MIB));
	assert_ok(rig_buffer_copy(dst, 0, src, 0, 5 * MIB));
	assert_ok(rig_buffer_read(dst, 0, out, 5 * MIB));
	assert_memory_equal(in, out, 5 * MIB);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	free(in);
	free(out);
	help_close(&a);
	help_close(&b);
}

static void dropped_memory_is_used_again_without_the_driver(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *buffer = help_buffer(b.d, 64 * KIB);
	uint64_t address = rig_buffer_address(buffer), cached;

	(void)state;
	rig_buffer_put(buffer);
	assert_int_equal(rig_held_bytes(b.d, &cached), 64 * KIB);
	assert_int_equal(cached, 64 * KIB);
	buffer = help_buffer(b.d, 64 * KIB);
	assert_int_equal(rig_buffer_address(buffer), address);
	assert_int_equal(polled_count(b.p, POLLED_ALLOC), 1);
	rig_buffer_put(buffer);
	rig_cache_trim(b.d, 0);
	assert_int_equal(polled_count(b.p, POLLED_FREE), 1);
	assert_int_equal(rig_held_bytes(b.d, NULL), 0);
	help_close(&b);
}

/* Pinned memory is cached too, but the device does not hold it. */
static void what_is_cached_and_a_new_budget_count_the_devices_own_memory(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *live = help_buffer(b.d, 64 * KIB), *pinned;
	uint64_t cached;

	(void)state;
	rig_buffer_put(help_buffer(b.d, 128 * KIB));
	assert_ok(rig_buffer_create(b.d, RIG_PINNED, 256 * KIB, &pinned));
	rig_buffer_put(pinned);
	assert_int_equal(rig_held_bytes(b.d, &cached), 192 * KIB);
	assert_int_equal(cached, 128 * KIB);
	rig_set_budget(b.d, 64 * KIB);
	assert_int_equal(rig_held_bytes(b.d, &cached), 64 * KIB);
	assert_int_equal(cached, 0);
	rig_buffer_put(live);
	help_close(&b);
}

static void memory_whose_bus_addresses_were_given_out_is_never_another_buffers(void **state)
{
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};
	struct polled_options o = help_options();
	struct rig_buffer *buffer;
	struct bench b;
	uint64_t cached;

	(void)state;
	o.has_bus = true;
	b = help_open(&o);
	buffer = help_buffer(b.d, 64 * KIB);
	assert_int_equal(rig_buffer_dma(buffer, &answer), RIG_BUS);
	rig_buffer_put(buffer);
	/* The driver keeps it; the cache would hand it out. */
	assert_int_equal(polled_count(b.p, POLLED_FREE), 1);
	assert_int_equal(rig_held_bytes(b.d, &cached), 0);
	assert_int_equal(cached, 0);
	help_close(&b);
}

/* Device order covers device memory; what the host may store to waits for the work. */
static void host_addressed_memory_is_reused_only_once_its_work_is_done(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *pinned, *again, *device = help_buffer(b.d, 4096);
	struct rig_point point;
	uint64_t address;

	(void)state;
	assert_ok(rig_buffer_create(b.d, RIG_PINNED, 4096, &pinned));
	address = rig_buffer_address(pinned);
	assert_ok(rig_buffer_copy_async(device, 0, pinned, 0, 4096, &point));
	rig_buffer_put(pinned);
	assert_ok(rig_buffer_create(b.d, RIG_PINNED, 4096, &again));
	assert_int_not_equal(rig_buffer_address(again), address);
	assert_ok(rig_wait(point));
	assert_ok(rig_buffer_create(b.d, RIG_PINNED, 4096, &pinned));
	assert_int_equal(rig_buffer_address(pinned), address);
	rig_buffer_put(pinned);
	rig_buffer_put(again);
	address = rig_buffer_address(device);
	assert_ok(rig_buffer_copy_async(device, 0, device, 2048, 100, &point));
	rig_buffer_put(device);
	device = help_buffer(b.d, 4096);
	assert_int_equal(rig_buffer_address(device), address);
	rig_buffer_put(device);
	help_close(&b);
}

/* E-058 */
static void the_budget_bounds_what_the_device_holds(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *first, *second, *third;

	(void)state;
	o.budget = 128 * KIB;
	b = help_open(&o);
	assert_int_equal(rig_budget(b.d), 128 * KIB);
	first = help_buffer(b.d, 64 * KIB);
	second = help_buffer(b.d, 64 * KIB);
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 1, &third), -ENOMEM);
	assert_non_null(
	        strstr(rig_error(), "no device memory for 1 bytes (131072 held of a budget of 131072)"));
	/* More than the device has is no remedy. */
	assert_null(strstr(rig_error(), "raise"));
	/* Cached memory gives way. */
	rig_buffer_put(second);
	third = help_buffer(b.d, 4 * KIB);
	assert_true(polled_held(b.p) <= 128 * KIB);
	/* More than all of it: at once, the cache kept. */
	rig_buffer_put(third);
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 128 * KIB + 1, &third), -ENOMEM);
	assert_int_equal(polled_held(b.p), 68 * KIB);
	assert_non_null(strstr(rig_error(), "the device has 131072 bytes in all"));
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, UINT64_MAX, &third), -ENOMEM);
	rig_set_budget(b.d, 64 * KIB);
	assert_int_equal(polled_held(b.p), 64 * KIB);
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 65 * KIB, &third), -ENOMEM);
	assert_non_null(strstr(rig_error(), "the budget is 65536 bytes; raise it, the device has 131072"));
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 4 * KIB, &third), -ENOMEM);
	assert_non_null(strstr(rig_error(), "free buffers or raise the budget"));
	rig_set_budget(b.d, 1 * MIB);
	third = help_buffer(b.d, 256 * KIB);
	rig_buffer_put(third);
	rig_buffer_put(first);
	help_close(&b);
}

/* Between any two buffers of one memory, host-addressed or not. */
static void a_copy_within_one_memory_is_refused_where_the_ranges_overlap(void **state)
{
	static const struct {
		uint64_t dst, src, bytes;
		bool refused;
	} cases[] = {
	        {0, 64, 64, false},
	        {64, 0, 64, false},
	        {32, 32, 64, false},
	        {0, 63, 64, true},
	        {63, 0, 64, true},
	        {0, 1, 128, true},
	        {0, 1, 0, false},
	};
	static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_PINNED};
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	size_t i, k;

	(void)state;
	for (k = 0; k < 2; k++) {
		struct rig_buffer *whole, *view;
		struct rig_point point;

		assert_ok(rig_buffer_create(b.d, kinds[k], 4096, &whole));
		assert_ok(rig_buffer_view(whole, 1000, 1000, &view));
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			int want = cases[i].refused ? -EINVAL : 0;

			assert_int_equal(rig_buffer_copy(whole, 1000 + cases[i].dst, view, cases[i].src,
			                         cases[i].bytes),
			        want);
			assert_int_equal(rig_buffer_copy_async(view, cases[i].dst, view, cases[i].src,
			                         cases[i].bytes, &point),
			        want);
			if (want)
				assert_non_null(strstr(rig_error(), "the ranges overlap"));
		}
		rig_buffer_put(view);
		rig_buffer_put(whole);
	}
	help_close(&b);
}

static void an_allocation_waits_for_work_that_holds_memory_back(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *first, *second;
	struct rig_point point;

	(void)state;
	o.memory = 100 * KIB + 8 * MIB;
	b = help_open(&o);
	first = help_buffer(b.d, 8 * MIB);
	assert_ok(rig_buffer_copy_async(first, 0, first, 4096, 100, &point));
	rig_buffer_put(first);
	assert_int_equal(rig_reached(point), 0);
	/* Another size: the cache does not help, only the memory of the first. */
	second = help_buffer(b.d, 7 * MIB);
	assert_int_equal(rig_reached(point), 1);
	rig_buffer_put(second);
	help_close(&b);
}

#define USERS 6

/* More users than the stamps of one chunk: the last of them is waited for too. */
static void refuse_always(void *arg, enum polled_call call)
{
	struct bench *b = arg;

	if (call == POLLED_ALLOC)
		polled_fail(b->p, POLLED_ALLOC, 1, POLLED_REFUSES);
}

/* E-058: what cannot come is not waited for: endless work goes on. */
static void an_allocation_that_no_work_can_make_room_for_is_refused_at_once(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *live, *held, *more;
	struct rig_submission *s;
	struct rig_run_args *run;

	(void)state;
	o.hang_ms = 1;
	o.sleep = POLLED_SLEEP_IDLE;
	o.budget = o.memory = 8 * MIB;
	b = help_open(&o);
	live = help_buffer(b.d, 4 * MIB);
	held = help_buffer(b.d, MIB);
	polled_gate(b.p, polled_last(b.p));
	/* Endless; all that it keeps, its fixed memory too, is 1 MiB. */
	s = help_copy(b.d, 4096);
	run = help_copy_run(s, held, held);
	(void)help_submit(s, run);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(held);
	/* Over the budget with what is live, and with less than the work keeps. */
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 5 * MIB, &more), -ENOMEM);
	assert_non_null(strstr(rig_error(), "free buffers"));
	/* Over what the device has. */
	rig_set_budget(b.d, 64 * MIB);
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 9 * MIB, &more), -ENOMEM);
	/* Host memory that no work keeps, and more than the machine has. */
	polled_hook(b.p, refuse_always, &b);
	assert_int_equal(rig_buffer_create(b.d, RIG_PINNED, MIB, &more), -ENOMEM);
	polled_hook(b.p, NULL, NULL);
	assert_int_equal(rig_buffer_create(b.d, RIG_PINNED, UINT64_C(1) << 60, &more), -ENOMEM);
	assert_int_equal(polled_count(b.p, POLLED_SLEEP), 0);
	assert_false(rig_lost(b.d, NULL));
	polled_gate(b.p, UINT64_MAX);
	assert_int_equal(polled_run(b.p, 1), 1);
	rig_buffer_put(live);
	help_close(&b);
}

/* What comes first is waited for first, and no more than is needed. */
static void an_allocation_waits_for_no_later_work_than_it_needs(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *first, *second, *made;
	struct rig_point early, late;

	(void)state;
	o.memory = o.budget = 8 * MIB;
	b = help_open(&o);
	first = help_buffer(b.d, 4 * MIB);
	second = help_buffer(b.d, 4 * MIB);
	assert_ok(rig_buffer_copy_async(first, 0, first, 4096, 100, &early));
	assert_ok(rig_buffer_copy_async(second, 0, second, 4096, 100, &late));
	rig_buffer_put(second);
	rig_buffer_put(first);
	made = help_buffer(b.d, 3 * MIB);
	assert_int_equal(rig_reached(early), 1);
	assert_int_equal(rig_reached(late), 0);
	rig_buffer_put(made);
	help_close(&b);
}

static void an_allocation_waits_for_every_device_that_holds_memory_back(void **state)
{
	struct polled_options o = help_options();
	struct bench owner, users[USERS];
	struct rig_buffer *first, *borrowed, *local, *second;
	struct rig_point point = {0};
	char name[8];
	int i;

	(void)state;
	o.peers = true;
	o.memory = 100 * KIB + 8 * MIB;
	owner = help_open(&o);
	o.memory = 0;
	first = help_buffer(owner.d, 8 * MIB);
	for (i = 0; i < USERS; i++) {
		(void)snprintf(name, sizeof(name), "P%d", i + 1);
		o.name = name;
		users[i] = help_open(&o);
		assert_ok(rig_buffer_borrow(users[i].d, first, &borrowed));
		local = help_buffer(users[i].d, 4096);
		assert_ok(rig_buffer_copy_async(local, 0, borrowed, 0, 4096, &point));
		if (i + 1 < USERS)
			assert_ok(rig_wait(point));
		rig_buffer_put(borrowed);
		rig_buffer_put(local);
	}
	rig_buffer_put(first);
	assert_int_equal(rig_reached(point), 0);
	second = help_buffer(owner.d, 7 * MIB);
	assert_int_equal(rig_reached(point), 1);
	rig_buffer_put(second);
	for (i = 0; i < USERS; i++)
		help_close(&users[i]);
	help_close(&owner);
}

/* Memory that another device's work still uses is not handed out. */
static void memory_waits_for_other_devices_uses(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct bench a, b;
	struct rig_buffer *there, *here, *local, *next;
	struct rig_point point;
	uint64_t address;

	(void)state;
	o.peers = o1.peers = true;
	o1.name = "P1";
	a = help_open(&o);
	b = help_open(&o1);
	there = help_buffer(a.d, 4096);
	address = rig_buffer_address(there);
	assert_ok(rig_buffer_borrow(b.d, there, &here));
	local = help_buffer(b.d, 4096);
	assert_ok(rig_buffer_copy_async(local, 0, here, 0, 4096, &point));
	rig_buffer_put(here);
	rig_buffer_put(there);
	next = help_buffer(a.d, 4096);
	assert_int_not_equal(rig_buffer_address(next), address);
	assert_ok(rig_wait(point));
	there = help_buffer(a.d, 4096);
	assert_int_equal(rig_buffer_address(there), address);
	rig_buffer_put(there);
	rig_buffer_put(next);
	rig_buffer_put(local);
	help_close(&a);
	help_close(&b);
}

static void break_alignment(struct rig_facts *f)
{
	f->alignment = INT64_C(1) << 40;
}

static void break_host(struct rig_facts *f)
{
	f->host_addresses = true;
}

/* E-188 to E-191 */
static void a_region_that_breaks_the_facts_is_freed_and_loses_the_device(void **state)
{
	static void (*const edits[])(struct rig_facts *) = {break_alignment, break_host};
	static const char *const names[] = {"alignment", "host_addresses"};
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct polled_options o = help_options();
		struct bench b = {.p = polled_new(&o)};
		struct rig_buffer *buffer;
		const char *reason;

		polled_edit_facts(b.p, edits[i]);
		assert_ok(rig_open(polled_opener(b.p), &b.d));
		assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 64, &buffer), RIG_LOST);
		assert_true(rig_lost(b.d, &reason));
		assert_non_null(strstr(reason, names[i]));
		assert_int_equal(polled_count(b.p, POLLED_FREE), 1);
		assert_non_null(polled_stop_reason(b.p));
		help_end(&b);
	}
}

/* A driver whose regions start on the alignment for the device and 8 bytes off it for the host. */
static const struct rig_driver_module *honest;
static struct rig_driver_module off;
static bool shifts; /* not the word */

static void locate_off(void *device, void *region, struct rig_location *at)
{
	honest->locate(device, region, at);
	if (shifts && at->has_host)
		at->host = (uint8_t *)at->host + 8;
}

static void a_host_address_off_the_alignment_loses_the_device(void **state)
{
	struct polled_options o = help_options();
	struct bench b = {.p = polled_new(&o)};
	struct rig_opener opener = *polled_opener(b.p);
	struct rig_buffer *buffer;
	const char *reason;

	(void)state;
	honest = opener.module;
	off = *opener.module;
	off.locate = locate_off;
	opener.module = &off;
	assert_ok(rig_open(&opener, &b.d));
	shifts = true;
	assert_int_equal(rig_buffer_create(b.d, RIG_PINNED, 64, &buffer), RIG_LOST);
	shifts = false;
	assert_true(rig_lost(b.d, &reason));
	assert_non_null(strstr(reason, "alignment"));
	assert_int_equal(polled_count(b.p, POLLED_FREE), 1);
	help_end(&b);
}

static void sizes_near_the_end_of_the_range_do_not_wrap(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *buffer;

	(void)state;
	rig_set_budget(b.d, UINT64_MAX);
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, UINT64_MAX, &buffer), -ENOMEM);
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, UINT64_MAX - 4096, &buffer), -ENOMEM);
	assert_int_equal(rig_buffer_create(b.d, RIG_PINNED, UINT64_MAX, &buffer), -ENOMEM);
	assert_int_equal(rig_held_bytes(b.d, NULL), 0);
	help_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(copies_both_ways_keep_the_bytes_at_every_size),
	        cmocka_unit_test(staged_copies_go_on_the_copy_engine),
	        cmocka_unit_test(a_host_addressed_device_is_copied_by_the_host_and_asked_no_pinned),
	        cmocka_unit_test(pinned_and_mapped_memory_has_a_host_address),
	        cmocka_unit_test(ranges_outside_a_buffer_are_refused),
	        cmocka_unit_test(host_memory_is_borrowed_page_by_page),
	        cmocka_unit_test(a_mapping_without_room_is_asked_for_once_more),
	        cmocka_unit_test(memory_that_found_no_room_is_asked_for_again_by_the_next_call),
	        cmocka_unit_test(memory_that_a_device_never_maps_is_asked_for_once),
	        cmocka_unit_test(mapped_memory_is_pinned_where_there_is_no_window),
	        cmocka_unit_test(a_peers_memory_is_mapped_once_a_device),
	        cmocka_unit_test(memory_that_no_device_reaches_is_copied_through_the_host),
	        cmocka_unit_test(dropped_memory_is_used_again_without_the_driver),
	        cmocka_unit_test(what_is_cached_and_a_new_budget_count_the_devices_own_memory),
	        cmocka_unit_test(memory_whose_bus_addresses_were_given_out_is_never_another_buffers),
	        cmocka_unit_test(host_addressed_memory_is_reused_only_once_its_work_is_done),
	        cmocka_unit_test(the_budget_bounds_what_the_device_holds),
	        cmocka_unit_test(a_copy_within_one_memory_is_refused_where_the_ranges_overlap),
	        cmocka_unit_test(an_allocation_waits_for_work_that_holds_memory_back),
	        cmocka_unit_test(an_allocation_that_no_work_can_make_room_for_is_refused_at_once),
	        cmocka_unit_test(an_allocation_waits_for_no_later_work_than_it_needs),
	        cmocka_unit_test(an_allocation_waits_for_every_device_that_holds_memory_back),
	        cmocka_unit_test(memory_waits_for_other_devices_uses),
	        cmocka_unit_test(a_region_that_breaks_the_facts_is_freed_and_loses_the_device),
	        cmocka_unit_test(a_host_address_off_the_alignment_loses_the_device),
	        cmocka_unit_test(sizes_near_the_end_of_the_range_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
