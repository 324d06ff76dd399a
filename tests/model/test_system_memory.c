/* SPDX-License-Identifier: MIT */
/* Host memory that the device maps, bus addresses, budgets, and memory that runs out. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"
#include "system_device.h"

#define PAGE 4096u
#define MIB  (1ull << 20)

static void *map_pages(size_t bytes, int protection, int flags, int fd)
{
	void *at = mmap(NULL, bytes, protection, flags, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

/* ---- Host memory ---- */

/* spin.k.c: the number becomes three times itself and `add`. */
static void spin(struct rig_device *device, struct rig_buffer *number, uint64_t loops, uint64_t add)
{
	const uint64_t params[3] = {0, loops, add};
	struct rig_image *image = sys_image(device, "spin");
	struct sys_launch launch;

	sys_launch_make(&launch, image, "spin",
	        &(struct sys_params){.device = device,
	                .bytes = params,
	                .count = sizeof(params),
	                .nbuffers = 1,
	                .buffer = {number}},
	        1, 1);
	sys_order(device);
	sys_ok(sys_launch_try(&launch));
	sys_order(device);
	sys_launch_end(&launch);
	rig_image_put(image);
}

/* A kernel and the copy engine read what the host wrote there, and the host reads what they wrote. */
static void share(struct rig_device *device, uint64_t *memory, size_t bytes)
{
	struct rig_buffer *mapped, *own = sys_buffer(device, RIG_DEVICE, bytes), *number;
	size_t last = bytes / 8 - 1;
	uint8_t *copy = malloc(bytes);

	sys_fill((uint8_t *)memory, bytes, 1);
	assert_non_null(copy);
	memcpy(copy, memory, bytes);
	sys_ok(rig_buffer_of_host(device, memory, bytes, &mapped));
	assert_ptr_equal(rig_buffer_host(mapped), memory);
	sys_order(device);
	sys_ok(rig_buffer_copy(own, 0, mapped, 0, bytes));
	sys_order(device);
	memset(memory, 0, bytes);
	sys_order(device);
	sys_ok(rig_buffer_copy(mapped, 0, own, 0, bytes));
	sys_order(device);
	assert_memory_equal(memory, copy, bytes);
	memory[last] = 11;
	sys_ok(rig_buffer_view(mapped, last * 8, 8, &number));
	spin(device, number, 0, 5);
	assert_int_equal(memory[last], 38);
	memory[last] = 2;
	spin(device, number, 0, 1);
	assert_int_equal(memory[last], 7);
	rig_buffer_put(number);
	rig_buffer_put(mapped);
	rig_buffer_put(own);
	free(copy);
}

static void kernels_and_copies_share_memory_of_the_host(void **state)
{
	static const char *const texts[] = {"sim", "sim:completion=store", "sim:aperture=16M"};
	const size_t bytes = 300 * PAGE;
	unsigned i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct rig_device *device = sys_open(texts[i]);
		int fd = memfd_create("shared", MFD_CLOEXEC);
		void *anonymous = map_pages(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		void *shared = map_pages(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1),
		     *file;

		assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
		file = map_pages(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
		share(device, anonymous, bytes);
		share(device, anonymous, bytes);
		share(device, shared, bytes);
		share(device, file, bytes);
		sys_close(device);
		munmap(anonymous, bytes);
		munmap(shared, bytes);
		munmap(file, bytes);
		close(fd);
	}
}

static void mapping_and_unmapping_leaves_no_mapping(void **state)
{
	struct rig_device *device = sys_open("sim");
	uint64_t *memory = map_pages(64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct rig_vfio_stats before, after;
	struct rig_buffer *buffer;
	struct test_counts counts;
	unsigned i;

	(void)state;
	share(device, memory, 64 * PAGE);
	rig_cache_trim(device, 0);
	sys_stats(device, &before);
	test_counts_take(&counts);
	for (i = 0; i < 100; i++) {
		sys_ok(rig_buffer_of_host(device, memory, 64 * PAGE, &buffer));
		rig_buffer_put(buffer);
	}
	sys_stats(device, &after);
	assert_int_equal(after.dma_maps, before.dma_maps);
	assert_int_equal(after.dma_bytes, before.dma_bytes);
	test_counts_same(&counts);
	munmap(memory, 64 * PAGE);
	sys_close(device);
}

static void refuse_for_ever(struct rig_device *device, void *memory)
{
	struct rig_buffer *buffer;
	unsigned i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(rig_buffer_of_host(device, memory, PAGE, &buffer), -ENOTSUP);
		assert_int_not_equal(strlen(rig_error()), 0);
	}
}

static void pages_that_cannot_be_written_are_refused_for_ever(void **state)
{
	struct rig_device *device = sys_open("sim");
	void *anonymous = map_pages(PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1), *file;
	int fd = open(SYS_FIRMWARE, O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	file = map_pages(PAGE, PROT_READ, MAP_SHARED, fd);
	refuse_for_ever(device, anonymous);
	refuse_for_ever(device, file);
	munmap(file, PAGE);
	refuse_for_ever(device, file); /* nothing at all is there */
	close(fd);
	munmap(anonymous, PAGE);
	sys_device_works(device);
	sys_close(device);
}

static void host_memory_off_a_page_is_misuse(void **state)
{
	struct rig_device *device = sys_open("sim");
	uint8_t *memory = map_pages(2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct rig_buffer *buffer;

	(void)state;
	assert_int_equal(rig_buffer_of_host(device, memory + 1, PAGE, &buffer), -EINVAL);
	assert_int_equal(rig_buffer_of_host(device, memory + 8, PAGE, &buffer), -EINVAL);
	sys_ok(rig_buffer_of_host(device, memory, PAGE + 1, &buffer)); /* any length */
	assert_int_equal(rig_buffer_bytes(buffer), PAGE + 1);
	rig_buffer_put(buffer);
	munmap(memory, 2 * PAGE);
	sys_device_works(device);
	sys_close(device);
}

static void one_memory_of_the_host_serves_two_devices(void **state)
{
	struct rig_device *a = sys_open("sim"), *b = sys_open("sim:completion=store");
	uint64_t *memory = map_pages(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct rig_buffer *on_a, *on_b;
	unsigned i;

	(void)state;
	sys_ok(rig_buffer_of_host(a, memory, PAGE, &on_a));
	sys_ok(rig_buffer_of_host(b, memory, PAGE, &on_b));
	for (i = 0; i < 5; i++) {
		spin(a, on_a, 0, 1);
		spin(b, on_b, 0, 2);
	}
	/* Ten times x becomes 3x + 1 or 3x + 2, from 0. */
	assert_int_equal(*memory, 36905);
	rig_buffer_put(on_a);
	rig_buffer_put(on_b);
	munmap(memory, PAGE);
	sys_close(a);
	sys_close(b);
}

static void a_buffer_is_borrowed_by_another_device_where_the_host_has_it(void **state)
{
	struct rig_device *a = sys_open("sim"), *b = sys_open("sim");
	struct rig_buffer *pinned = sys_buffer(a, RIG_PINNED, PAGE), *borrowed;
	uint64_t number = 4;

	(void)state;
	sys_ok(rig_buffer_write(pinned, 0, &number, sizeof(number)));
	sys_ok(rig_buffer_borrow(b, pinned, &borrowed));
	spin(b, borrowed, 0, 1);
	spin(a, pinned, 0, 2);
	spin(b, borrowed, 0, 3);
	sys_ok(rig_buffer_read(pinned, 0, &number, sizeof(number)));
	assert_int_equal(number, 3 * (3 * (3 * 4 + 1) + 2) + 3);
	rig_buffer_put(borrowed);
	rig_buffer_put(pinned);
	sys_close(b);
	sys_close(a);
}

/* ---- Bus addresses ---- */

static const struct rig_bus_range *bus_of(struct rig_buffer *buffer, uint64_t offset)
{
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};

	assert_int_equal(rig_buffer_dma(buffer, &answer), RIG_BUS);
	assert_int_equal(answer.kind, RIG_BUS);
	assert_int_equal(answer.nranges, 1);
	assert_int_equal(answer.offset, offset);
	assert_int_equal(answer.ranges->address % PAGE, 0);
	assert_int_equal(answer.ranges->bytes % PAGE, 0);
	assert_true(answer.ranges->bytes >= offset + rig_buffer_bytes(buffer));
	return answer.ranges;
}

static void assert_no_dma(struct rig_buffer *buffer, const char *why)
{
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};

	assert_int_equal(rig_buffer_dma(buffer, &answer), RIG_NO_DMA);
	assert_int_equal(answer.kind, RIG_NO_DMA);
	assert_non_null(answer.reason);
	if (!strstr(answer.reason, why))
		fail_msg("\"%s\" is not in: %s", why, answer.reason);
}

static void memory_in_the_aperture_has_bus_addresses_for_as_long_as_the_process(void **state)
{
	struct rig_device *device = sys_open("sim");
	struct rig_buffer *a = sys_buffer(device, RIG_DEVICE, 5 * PAGE + 1),
	                  *b = sys_buffer(device, RIG_MAPPED, PAGE), *view;
	const struct rig_bus_range *at, *other;
	struct rig_vfio_stats before, after;
	unsigned i;

	(void)state;
	at = bus_of(a, 0);
	other = bus_of(b, 0);
	assert_true(
	        at->address + at->bytes <= other->address || other->address + other->bytes <= at->address);
	sys_ok(rig_buffer_view(a, 777, 100, &view));
	assert_int_equal(bus_of(view, 777)->address, at->address);
	rig_buffer_put(view);
	rig_cache_trim(device, 0);
	sys_stats(device, &before);
	rig_buffer_put(a);
	rig_cache_trim(device, 0);
	sys_stats(device, &after);
	/* Another function may still write there: the memory is nobody else's any more. */
	assert_int_equal(before.bus_bytes, 7 * PAGE);
	assert_int_equal(after.bus_bytes, 7 * PAGE);
	assert_int_equal(after.memory_free, before.memory_free);
	for (i = 0; i < 50; i++) {
		struct rig_buffer *more = sys_buffer(device, RIG_DEVICE, PAGE);
		const struct rig_bus_range *range = bus_of(more, 0);

		assert_true(range->address >= at->address + 6 * PAGE ||
		            range->address + range->bytes <= at->address);
		rig_buffer_put(more);
	}
	rig_buffer_put(b);
	sys_device_works(device);
	sys_close(device);
}

static void memory_outside_the_aperture_or_of_the_host_has_none_and_says_why(void **state)
{
	struct rig_device *device = sys_open("sim:aperture=16M");
	struct rig_buffer *far = sys_buffer(device, RIG_DEVICE, 32 * MIB),
	                  *mapped = sys_buffer(device, RIG_MAPPED, PAGE);
	struct rig_buffer *pinned = sys_buffer(device, RIG_PINNED, PAGE), *host;
	void *memory = map_pages(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	(void)state;
	sys_ok(rig_buffer_of_host(device, memory, PAGE, &host));
	assert_no_dma(far, "aperture");
	assert_no_dma(pinned, "host");
	assert_no_dma(host, "host");
	(void)bus_of(mapped, 0);
	rig_buffer_put(far);
	rig_buffer_put(pinned);
	rig_buffer_put(host);
	rig_buffer_put(mapped);
	munmap(memory, PAGE);
	sys_device_works(device);
	sys_close(device);
}

/* ---- Memory that runs out ---- */

enum { MOST = 512 };

/* Buffers of so many bytes until there is no memory; how many. */
static unsigned exhaust(
        struct rig_device *device, enum rig_memory kind, uint64_t bytes, struct rig_buffer **buffers)
{
	unsigned n = 0;
	int err = 0;

	while (n < MOST && !(err = rig_buffer_create(device, kind, bytes, &buffers[n])))
		n++;
	assert_int_equal(err, -ENOMEM);
	assert_int_not_equal(strlen(rig_error()), 0);
	return n;
}

static void put_all(struct rig_buffer **buffers, unsigned n)
{
	while (n)
		rig_buffer_put(buffers[--n]);
}

static void memory_runs_out_cleanly_and_comes_back_whole(void **state)
{
	static const char *const texts[] = {"sim:mem=64M", "sim:mem=128M,aperture=16M"};
	struct rig_buffer *buffers[MOST];
	unsigned i, round, first;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct rig_device *device = sys_open(texts[i]);

		first = exhaust(device, RIG_DEVICE, 3 * MIB, buffers);
		assert_true(first >= 10);
		put_all(buffers, first);
		for (round = 0; round < 5; round++) {
			unsigned n = exhaust(device, RIG_DEVICE, 3 * MIB, buffers);

			assert_int_equal(n, first);
			put_all(buffers, n);
		}
		sys_device_works(device);
		sys_close(device);
	}
}

static void a_budget_bounds_what_is_held_and_is_no_loss(void **state)
{
	struct rig_device *device = sys_open("sim");
	struct rig_buffer *buffers[MOST], *buffer;
	uint64_t cached;
	unsigned n;

	(void)state;
	rig_set_budget(device, 8 * MIB);
	assert_int_equal(rig_budget(device), 8 * MIB);
	n = exhaust(device, RIG_DEVICE, MIB, buffers);
	assert_true(n >= 6 && n <= 8);
	assert_true(rig_held_bytes(device, NULL) <= 8 * MIB);
	put_all(buffers, n);
	(void)rig_held_bytes(device, &cached);
	rig_cache_trim(device, 0);
	(void)rig_held_bytes(device, &cached);
	assert_int_equal(cached, 0);
	assert_int_equal(rig_buffer_create(device, RIG_DEVICE, 9 * MIB, &buffer), -ENOMEM);
	rig_set_budget(device, 64 * MIB);
	sys_ok(rig_buffer_create(device, RIG_DEVICE, 9 * MIB, &buffer));
	rig_buffer_put(buffer);
	sys_device_works(device);
	sys_close(device);
}

/* The memory of a buffer that is put while work uses it comes back when the work is done. */
static void memory_put_while_it_is_used_is_reused_only_afterwards(void **state)
{
	struct rig_device *device = sys_open("sim:mem=64M");
	struct rig_image *image = sys_image(device, "spin");
	const uint64_t params[3] = {0, 200000, 1};
	struct rig_point last = {0};
	unsigned i;

	(void)state;
	for (i = 0; i < 40; i++) {
		struct rig_buffer *buffer = sys_buffer(device, RIG_DEVICE, 20 * MIB);
		struct sys_launch launch;

		sys_launch_make(&launch, image, "spin",
		        &(struct sys_params){.device = device,
		                .bytes = params,
		                .count = sizeof(params),
		                .nbuffers = 1,
		                .buffer = {buffer}},
		        1, 1);
		last = sys_launch_submit(&launch);
		sys_launch_end(&launch);
		rig_buffer_put(buffer);
	}
	sys_ok(rig_wait(last));
	rig_image_put(image);
	sys_device_works(device);
	sys_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(kernels_and_copies_share_memory_of_the_host),
	        cmocka_unit_test(mapping_and_unmapping_leaves_no_mapping),
	        cmocka_unit_test(pages_that_cannot_be_written_are_refused_for_ever),
	        cmocka_unit_test(host_memory_off_a_page_is_misuse),
	        cmocka_unit_test(one_memory_of_the_host_serves_two_devices),
	        cmocka_unit_test(a_buffer_is_borrowed_by_another_device_where_the_host_has_it),
	        cmocka_unit_test(memory_in_the_aperture_has_bus_addresses_for_as_long_as_the_process),
	        cmocka_unit_test(memory_outside_the_aperture_or_of_the_host_has_none_and_says_why),
	        cmocka_unit_test(memory_runs_out_cleanly_and_comes_back_whole),
	        cmocka_unit_test(a_budget_bounds_what_is_held_and_is_no_loss),
	        cmocka_unit_test(memory_put_while_it_is_used_is_reused_only_afterwards),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
