/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocs.h"
#include "rig_pci.h"
#include "fake_function.h"
#include "hugemem.h"

#define MIB (UINT64_C(1) << 20)

static struct fake_function t;

static int setup(void **state)
{
	struct rig_fake_options o = fake_function_options();
	struct rig_pci_taking po = {.arena_step = 64 * MIB};

	(void)state;
	fake_function_open(&t, &o, &po);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_function_close(&t);
	return 0;
}

static struct rig_dma alloc(uint64_t bytes, uint64_t align)
{
	struct rig_dma d;

	if (rig_dma_alloc(t.pci, bytes, align, &d))
		fail_msg("%s", rig_error());
	return d;
}

static void the_device_and_the_host_see_the_same_bytes(void **state)
{
	struct rig_dma d = alloc(100, 0);
	uint64_t word = 0;

	(void)state;
	assert_true(d.bytes >= 100);
	memcpy(d.host, "from host", 10);
	char seen[10];
	assert_int_equal(rig_fake_dma_read(t.fake, d.iova, seen, 10), 0);
	assert_string_equal(seen, "from host");
	word = 42;
	assert_int_equal(rig_fake_dma_write(t.fake, d.iova + 64, &word, 8), 0);
	assert_int_equal(((uint64_t *)d.host)[8], 42);
	/* And whoever maps the descriptor. */
	char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, d.fd, (off_t)(d.fd_offset & ~UINT64_C(4095)));
	assert_true(p != MAP_FAILED);
	assert_string_equal(p + (d.fd_offset & 4095), "from host");
	munmap(p, 4096);
	rig_dma_free(t.pci, &d);
	assert_null(d.handle);
	rig_dma_free(t.pci, &d);
	rig_dma_free(t.pci, NULL);
}

static void allocating_in_an_arena_sends_no_message_and_asks_no_memory(void **state)
{
	struct rig_dma first = alloc(64, 0), many[64];
	uint64_t messages, allocs;

	(void)state;
	/* The allocator's own records reach their high mark once. */
	for (unsigned i = 0; i < 64; i++)
		many[i] = alloc(4096, 4096);
	for (unsigned i = 0; i < 64; i++)
		rig_dma_free(t.pci, &many[i]);
	messages = rig_pci_messages(t.pci);
	allocs = test_allocs();
	for (unsigned i = 0; i < 64; i++)
		many[i] = alloc(4096, 4096);
	for (unsigned i = 0; i < 64; i++)
		rig_dma_free(t.pci, &many[i]);
	assert_int_equal(rig_pci_messages(t.pci), messages);
	assert_int_equal(test_allocs(), allocs);
	rig_dma_free(t.pci, &first);
}

static void alignment_holds_for_both_addresses(void **state)
{
	struct rig_dma d[22];

	(void)state;
	for (unsigned i = 0; i <= 21; i++) {
		d[i] = alloc(1, UINT64_C(1) << i);
		assert_int_equal(d[i].iova & ((UINT64_C(1) << i) - 1), 0);
		assert_int_equal((uintptr_t)d[i].host & ((UINT64_C(1) << i) - 1), 0);
		assert_int_equal(d[i].iova % 64, 0);
	}
	for (unsigned i = 0; i <= 21; i++)
		rig_dma_free(t.pci, &d[i]);
}

static void new_memory_is_zero(void **state)
{
	struct rig_dma d = alloc(3 * MIB, 0);

	(void)state;
	for (uint64_t i = 0; i < 3 * MIB; i += 8)
		assert_int_equal(*(uint64_t *)((char *)d.host + i), 0);
	rig_dma_free(t.pci, &d);
}

static void arenas_grow_and_a_large_one_goes_back(void **state)
{
	struct rig_pci_stats before, with, after;
	struct rig_dma small = alloc(64, 0), large;

	(void)state;
	rig_pci_stats(t.pci, &before);
	assert_true(before.arena_bytes >= MIB && before.arena_bytes <= 2 * MIB); /* 2: a huge page */
	assert_int_equal(before.maps, 1);
	large = alloc(65 * MIB, 4096);
	rig_pci_stats(t.pci, &with);
	assert_int_equal(with.maps, 2);
	assert_true(with.arena_bytes >= 66 * MIB);
	rig_dma_free(t.pci, &large);
	rig_pci_stats(t.pci, &after);
	assert_int_equal(after.arena_bytes, before.arena_bytes);
	assert_int_equal(after.maps, 1);
	assert_int_equal(rig_fake_maps(t.fake), 1);
	rig_dma_free(t.pci, &small);
	assert_int_equal(rig_fake_maps(t.fake), 1); /* one that is empty stays */
}

static void freed_memory_serves_again_and_all_but_one_of_the_emptied_arenas_go_back(void **state)
{
	enum { N = 40 };
	struct rig_dma d[N], again;
	struct rig_pci_stats full, now;
	unsigned i;

	(void)state;
	for (i = 0; i < N; i++)
		d[i] = alloc(MIB, 4096);
	rig_pci_stats(t.pci, &full);
	assert_true(full.maps >= 5);
	/* In whichever arena it is. */
	for (i = 0; i < N; i++) {
		rig_dma_free(t.pci, &d[i]);
		again = alloc(MIB, 4096);
		rig_pci_stats(t.pci, &now);
		assert_int_equal(now.maps, full.maps);
		d[i] = again;
	}
	for (i = 0; i < N; i++)
		rig_dma_free(t.pci, &d[i]);
	rig_pci_stats(t.pci, &now);
	assert_int_equal(now.maps, 1);
	assert_true(now.arena_bytes <= 2 * MIB);
	/* No message for what fits the one that stayed, and none is kept that was refused. */
	again = alloc(MIB, 4096);
	rig_dma_refuse(t.pci, &again);
	assert_int_equal(rig_fake_maps(t.fake), 0);
}

static void memory_alone_shares_its_mapping_with_none_and_takes_it_along(void **state)
{
	struct rig_dma alone, other[2];
	unsigned i;

	(void)state;
	assert_int_equal(rig_dma_alloc_alone(t.pci, 8192, &alone), 0);
	assert_int_equal(alone.arena_iova, alone.iova);
	assert_int_equal(alone.iova % 4096, 0);
	other[0] = alloc(64, 0);
	other[1] = alloc(MIB / 2, 0);
	for (i = 0; i < 2; i++)
		assert_true(other[i].arena_iova != alone.arena_iova &&
		            other[i].arena_iova == other[0].arena_iova);
	assert_int_equal(rig_fake_maps(t.fake), 2);
	rig_dma_free(t.pci, &alone);
	assert_int_equal(rig_fake_maps(t.fake), 1);
	for (i = 0; i < 2; i++)
		rig_dma_free(t.pci, &other[i]);
	assert_int_equal(rig_dma_alloc_alone(t.pci, 0, &alone), -EINVAL);
}

static void pieces_never_overlap(void **state)
{
	struct rig_dma d[200];

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		d[i] = alloc(1 + i * 997, 0);
		memset(d[i].host, (int)i, d[i].bytes);
	}
	for (unsigned i = 0; i < 200; i++) {
		const unsigned char *p = d[i].host;

		assert_int_equal(p[0], i);
		assert_int_equal(p[d[i].bytes - 1], i);
		rig_dma_free(t.pci, &d[i]);
	}
}

static void a_limit_on_arenas_is_named(void **state)
{
	struct rig_fake_options o = fake_function_options();
	struct rig_pci_taking po = {.arena_step = 64 * MIB, .arena_limit = 2 * MIB};
	struct fake_function other;
	struct rig_dma d, e;

	(void)state;
	fake_function_open(&other, &o, &po);
	assert_int_equal(rig_dma_alloc(other.pci, MIB, 0, &d), 0);
	assert_int_equal(rig_dma_alloc(other.pci, MIB, 0, &e), 0);
	assert_int_equal(rig_dma_alloc(other.pci, MIB, 0, &e), -ENOSPC);
	assert_non_null(strstr(rig_error(), "arena_limit"));
	assert_null(e.handle);
	fake_function_close(&other);
}

static void sizes_and_alignments_that_are_none_are_refused(void **state)
{
	struct rig_dma d;

	(void)state;
	assert_int_equal(rig_dma_alloc(t.pci, 0, 0, &d), -EINVAL);
	assert_int_equal(rig_dma_alloc(t.pci, 64, 3, &d), -EINVAL);
	assert_int_equal(rig_dma_alloc(t.pci, 64, 4 * MIB, &d), -EINVAL);
	assert_int_not_equal(rig_dma_alloc(t.pci, UINT64_MAX, 0, &d), 0);
	assert_int_not_equal(rig_dma_alloc(t.pci, UINT64_C(1) << 60, 0, &d), 0);
	assert_null(d.handle);
}

static void a_descriptor_is_mapped_with_its_protection(void **state)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	struct rig_dma d;
	char byte = 1;

	(void)state;
	assert_int_equal(ftruncate(fd, 16384), 0);
	assert_int_equal(pwrite(fd, "xyz", 3, 8192), 3);
	assert_int_equal(rig_dma_map_fd(t.pci, fd, 8192, 4096, NULL, RIG_DMA_READ, &d), 0);
	assert_int_equal(rig_fake_map(t.fake, 0).fd, fd);
	assert_int_equal(rig_fake_map(t.fake, 0).fd_offset, 8192);
	assert_memory_equal(d.host, "xyz", 3);
	assert_int_equal(rig_fake_dma_read(t.fake, d.iova, &byte, 1), 0);
	assert_int_equal(byte, 'x');
	assert_int_equal(rig_fake_dma_write(t.fake, d.iova, &byte, 1), -EACCES);
	assert_int_equal(rig_dma_unmap(t.pci, &d), 0);
	assert_null(d.handle);
	assert_int_equal(rig_dma_unmap(t.pci, &d), 0);
	assert_int_equal(rig_dma_unmap(t.pci, NULL), 0);
	assert_int_equal(rig_fake_dma_read(t.fake, d.iova, &byte, 1), -EFAULT);
	assert_int_equal(rig_dma_map_fd(t.pci, -1, 0, 4096, NULL, RIG_DMA_READ, &d), -EBADF);
	assert_int_equal(rig_dma_map_fd(t.pci, fd, 1, 4096, NULL, RIG_DMA_READ, &d), -EINVAL);
	assert_int_equal(rig_dma_map_fd(t.pci, fd, 0, 4095, NULL, RIG_DMA_READ, &d), -EINVAL);
	assert_int_equal(rig_dma_map_fd(t.pci, fd, 0, 0, NULL, RIG_DMA_READ, &d), -EINVAL);
	assert_int_equal(rig_dma_map_fd(t.pci, fd, 0, 4096, NULL, 0, &d), -EINVAL);
	assert_int_equal(rig_dma_map_fd(t.pci, fd, 0, 4096, NULL, 7, &d), -EINVAL);
	close(fd);
}

static void host_memory_is_mapped_counted_and_given_back(void **state)
{
	struct rig_pci_stats stats;
	struct rig_dma d;
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_int_equal(rig_dma_map_host(t.pci, p, 8192, RIG_DMA_READ | RIG_DMA_WRITE, &d), 0);
	assert_ptr_equal(d.host, p);
	assert_int_equal(d.fd, -1);
	rig_pci_stats(t.pci, &stats);
	assert_int_equal(stats.pinned_bytes, 8192);
	assert_int_equal(rig_fake_dma_write(t.fake, d.iova + 4096, "hi", 3), 0);
	assert_string_equal(p + 4096, "hi");
	assert_int_equal(rig_dma_unmap(t.pci, &d), 0);
	rig_pci_stats(t.pci, &stats);
	assert_int_equal(stats.pinned_bytes, 0);
	munmap(p, 8192);
}

static void host_memory_that_is_not_there_or_not_writable_is_refused(void **state)
{
	char *p = mmap(NULL, 4 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_dma d;

	(void)state;
	munmap(p + 2 * 4096, 4096);
	assert_int_equal(rig_dma_map_host(t.pci, p, 4 * 4096, RIG_DMA_READ, &d), -EFAULT);
	assert_int_equal(rig_dma_map_host(t.pci, p + 2 * 4096, 4096, RIG_DMA_READ, &d), -EFAULT);
	assert_int_equal(rig_dma_map_host(t.pci, p, 4096, RIG_DMA_READ | RIG_DMA_WRITE, &d), -EFAULT);
	assert_int_equal(rig_dma_map_host(t.pci, NULL, 4096, RIG_DMA_READ, &d), -EFAULT);
	assert_int_equal(rig_dma_map_host(t.pci, p + 1, 4096, RIG_DMA_READ, &d), -EINVAL);
	assert_int_equal(rig_fake_maps(t.fake), 0);
	assert_int_equal(rig_dma_map_host(t.pci, p, 4096, RIG_DMA_READ, &d), 0);
	assert_int_equal(rig_dma_unmap(t.pci, &d), 0);
	munmap(p, 4 * 4096);
}

static void host_memory_past_the_end_of_its_file_is_refused(void **state)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	struct rig_dma d;
	char *p;

	(void)state;
	assert_int_equal(ftruncate(fd, 4096), 0);
	p = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(rig_dma_map_host(t.pci, p, 2 * 4096, RIG_DMA_READ, &d), -EFAULT);
	assert_int_equal(rig_dma_map_host(t.pci, p, 2 * 4096, RIG_DMA_WRITE, &d), -EFAULT);
	assert_int_equal(rig_fake_maps(t.fake), 0);
	assert_int_equal(rig_dma_map_host(t.pci, p, 4096, RIG_DMA_WRITE, &d), 0);
	assert_int_equal(rig_dma_unmap(t.pci, &d), 0);
	munmap(p, 2 * 4096);
	close(fd);
}

static void an_unmapping_that_fails_loses_the_function(void **state)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_dma d;

	(void)state;
	assert_int_equal(rig_dma_map_host(t.pci, p, 4096, RIG_DMA_READ, &d), 0);
	rig_fake_fail_at(t.fake, 1);
	assert_int_not_equal(rig_dma_unmap(t.pci, &d), 0);
	assert_null(d.handle);
	assert_true(rig_pci_gone(t.pci, NULL));
	assert_int_equal(rig_dma_alloc(t.pci, 64, 0, &d), -ENODEV);
	munmap(p, 4096);
}

static void what_was_left_mapped_goes_with_the_function(void **state)
{
	struct rig_dma d[3];

	(void)state;
	int fd = memfd_create("t", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, 4096), 0);
	d[0] = alloc(64, 0);
	d[1] = alloc(40 * MIB, 0);
	assert_int_equal(rig_dma_map_fd(t.pci, fd, 0, 4096, NULL, RIG_DMA_READ | RIG_DMA_WRITE, &d[2]), 0);
	close(fd);
	/* The teardown counts descriptors and mappings. */
}

static void a_child_of_fork_has_no_dma_memory(void **state)
{
	struct rig_dma d = alloc(4096, 4096);

	(void)state;
	memcpy(d.host, "parent's", 8);
	assert_false(child_sees(d.host, "parent's"));
	rig_dma_free(t.pci, &d);
}

static void a_child_of_fork_has_no_memory_that_was_mapped_of_a_descriptor(void **state)
{
	int fd = memfd_create("mapped", MFD_CLOEXEC);
	struct rig_dma d;

	(void)state;
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(rig_dma_map_fd(t.pci, fd, 0, 4096, NULL, RIG_DMA_READ | RIG_DMA_WRITE, &d), 0);
	memcpy(d.host, "parent's", 8);
	assert_false(child_sees(d.host, "parent's"));
	assert_int_equal(rig_dma_unmap(t.pci, &d), 0);
	close(fd);
}

static void arenas_say_what_they_are_made_of(void **state)
{
	struct rig_dma d = alloc(64, 0);

	(void)state;
	assert_non_null(strstr(rig_dma_pages(t.pci), "pages ("));
	rig_dma_free(t.pci, &d);
}

static void huge_memory_falls_back_to_ordinary_pages(void **state)
{
	struct rig_hugemem m;
	struct stat st;

	(void)state;
	assert_int_equal(rig_hugemem_open(&m, 5 * MIB + 1), 0);
	assert_true(m.bytes >= 5 * MIB + 1);
	assert_int_equal(m.bytes % m.page, 0);
	assert_int_equal((uintptr_t)m.host % RIG_HUGEMEM_ALIGN, 0);
	assert_int_equal(fstat(m.fd, &st), 0);
	assert_int_equal(st.st_size, m.bytes);
	rig_hugemem_close(&m);
	rig_hugemem_close(&m);
	assert_int_not_equal(rig_hugemem_open(&m, UINT64_MAX), 0);
	assert_int_not_equal(rig_hugemem_open(&m, UINT64_C(1) << 62), 0);
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ON_FAKE(the_device_and_the_host_see_the_same_bytes),
	        ON_FAKE(allocating_in_an_arena_sends_no_message_and_asks_no_memory),
	        ON_FAKE(alignment_holds_for_both_addresses),
	        ON_FAKE(new_memory_is_zero),
	        ON_FAKE(arenas_grow_and_a_large_one_goes_back),
	        ON_FAKE(freed_memory_serves_again_and_all_but_one_of_the_emptied_arenas_go_back),
	        ON_FAKE(memory_alone_shares_its_mapping_with_none_and_takes_it_along),
	        ON_FAKE(pieces_never_overlap),
	        cmocka_unit_test(a_limit_on_arenas_is_named),
	        ON_FAKE(sizes_and_alignments_that_are_none_are_refused),
	        ON_FAKE(a_descriptor_is_mapped_with_its_protection),
	        ON_FAKE(host_memory_is_mapped_counted_and_given_back),
	        ON_FAKE(host_memory_that_is_not_there_or_not_writable_is_refused),
	        ON_FAKE(host_memory_past_the_end_of_its_file_is_refused),
	        ON_FAKE(an_unmapping_that_fails_loses_the_function),
	        ON_FAKE(what_was_left_mapped_goes_with_the_function),
	        ON_FAKE(a_child_of_fork_has_no_dma_memory),
	        ON_FAKE(a_child_of_fork_has_no_memory_that_was_mapped_of_a_descriptor),
	        ON_FAKE(arenas_say_what_they_are_made_of),
	        cmocka_unit_test(huge_memory_falls_back_to_ordinary_pages),
	};

	return cmocka_run_group_tests_name("dma", tests, NULL, NULL);
}
