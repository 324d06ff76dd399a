/* SPDX-License-Identifier: MIT */
/* DMA memory through the kernel: exact unmaps, typed refusals, functions that share an address space, no
 * IOMMU. */
#include "test.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"
#include "rig_pci.h"
#include "kernel_abi.h"
#include "peer.h"
#include "vfio_kernel_bench.h"

static unsigned char page[2 * 4096] __attribute__((aligned(4096)));

static const enum rig_pci_transport both[] = {RIG_PCI_TYPE1, RIG_PCI_IOMMUFD};

static void memory_is_mapped_and_unmapped_exactly(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig_pci *f = take(both[i], FAKE_KERNEL_BDF0);
		struct rig_dma a, b;

		assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), 0);
		assert_int_equal(rig_dma_alloc(f, 100, 0, &b), 0);
		assert_int_equal(kernel.maps, 2);
		assert_int_equal(rig_dma_unmap(f, &a), 0);
		assert_int_equal(kernel.maps, 1);
		rig_pci_close(f);
		assert_int_equal(kernel.maps, 0);
	}
}

static void addresses_lie_in_the_ranges_that_the_kernel_reports(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	struct rig_dma a;

	(void)state;
	assert_int_equal(rig_pci_set_dma_mask(f, 32), 0);
	assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), 0);
	assert_true(a.iova + a.bytes <= 0xfee00000);
	rig_pci_close(f);
}

static void an_unmap_of_another_size_ends_the_function(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	struct rig_dma a;
	const char *why;

	(void)state;
	assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), 0);
	kernel.unmap_less = 4096;
	assert_true(rig_dma_unmap(f, &a) < 0);
	assert_true(rig_pci_gone(f, &why));
	kernel.unmap_less = 0;
	rig_pci_close(f);
}

static void the_entry_limit_is_named_with_its_parameter(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	struct rig_dma a;

	(void)state;
	kernel.entry_limit = 0;
	assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), -ENOSPC);
	says("dma_entry_limit");
	rig_pci_close(f);
}

static void a_refused_pinning_names_the_memory_limit(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig_pci *f = take(both[i], FAKE_KERNEL_BDF0);
		struct rig_dma a;

		kernel.fail_nr = both[i] == RIG_PCI_TYPE1 ? 113 : 0x85;
		kernel.fail_errno = ENOMEM;
		assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), -ENOMEM);
		says("RLIMIT_MEMLOCK");
		kernel.fail_nr = 0;
		assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), 0);
		rig_pci_close(f);
		assert_int_equal(kernel.maps, 0);
	}
}

static void a_range_that_is_taken_all_the_same_is_an_error_of_its_own(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	struct rig_dma a;

	(void)state;
	kernel.fail_nr = 113;
	kernel.fail_errno = EEXIST;
	assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), -EEXIST);
	says("mapped already");
	rig_pci_close(f);
}

static void functions_of_one_group_share_a_space_and_never_an_address(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct test_counts before;
		struct rig_pci *f, *g;
		struct rig_dma a, b, c;

		test_counts_take(&before);
		f = take(both[i], FAKE_KERNEL_BDF0);
		g = take(both[i], FAKE_KERNEL_BDF1);
		assert_int_equal(rig_dma_map_host(f, page, 4096, RIG_DMA_READ, &a), 0);
		assert_int_equal(rig_dma_map_host(g, page, 4096, RIG_DMA_READ, &b), 0);
		assert_int_equal(rig_dma_map_host(f, page, 8192, RIG_DMA_READ, &c), 0);
		assert_int_not_equal(a.iova, b.iova);
		assert_true(c.iova + 8192 <= b.iova || c.iova >= b.iova + 4096);
		/* Who leaves leaves nothing, and takes nothing of the other's. */
		rig_pci_close(f);
		assert_int_equal(kernel.maps, 1);
		assert_int_equal(kernel.map[0].iova, b.iova);
		rig_pci_close(g);
		assert_int_equal(kernel.maps, 0);
		test_counts_same(&before);
	}
}

static void memory_with_a_descriptor_is_mapped_by_it_where_the_kernel_can(void **state)
{
	struct rig_pci *f = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0);
	struct rig_dma a, b;

	(void)state;
	assert_int_equal(rig_dma_alloc(f, 100, 0, &a), 0);
	assert_int_equal(kernel.file_maps, 1);
	kernel.fail_nr = 0x8f;
	kernel.fail_errno = ENOTTY;
	assert_int_equal(rig_dma_alloc(f, 8 << 20, 0, &b), 0);
	assert_int_equal(kernel.file_maps, 1);
	assert_int_equal(kernel.maps, 2);
	rig_pci_close(f);
}

/* -- No IOMMU -- */

static struct rig_pci *take_noiommu(bool node)
{
	fake_kernel_file(&kernel, "/sys/kernel/iommu_groups/12/name", "vfio-noiommu\n");
	kernel.tells_pa = node;
	return take(RIG_PCI_NOIOMMU, FAKE_KERNEL_BDF0);
}

static void without_an_iommu_addresses_are_the_physical_ones(void **state)
{
	(void)state;
	for (unsigned node = 0; node < 2; node++) {
		struct rig_pci *f = take_noiommu(node);
		struct rig_dma a;

		assert_true(rig_pci_info(f)->physical);
		assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), 0);
		if (node)
			assert_true(a.iova > 0x100000000);
		else
			assert_int_equal(a.iova, 0x100000ull * 4096);
		assert_int_equal(kernel.maps, node);
		assert_int_equal(rig_dma_unmap(f, &a), 0);
		assert_int_equal(kernel.maps, 0);
		rig_pci_close(f);
	}
}

static void memory_in_pieces_is_refused_without_an_iommu(void **state)
{
	struct rig_pci *f = take_noiommu(true);
	struct rig_dma a;

	(void)state;
	kernel.pa_step = 4096;
	assert_int_equal(rig_dma_map_host(f, page, sizeof(page), RIG_DMA_READ, &a), -ENOSPC);
	says("nr_hugepages");
	assert_int_equal(kernel.maps, 0);
	assert_int_equal(rig_dma_map_host(f, page, 4096, RIG_DMA_READ, &a), 0);
	rig_pci_close(f);
}

static void memory_beyond_the_mask_is_refused_without_an_iommu(void **state)
{
	struct rig_pci *f = take_noiommu(true);
	struct rig_dma a;

	(void)state;
	assert_int_equal(rig_pci_set_dma_mask(f, 28), 0);
	assert_int_equal(rig_dma_map_host(f, page, 4096, RIG_DMA_READ, &a), -EINVAL);
	says("mask");
	assert_int_equal(kernel.maps, 0);
	rig_pci_close(f);
}

/* -- Peers -- */

static void a_peers_bar_is_mapped_by_its_dma_buf_or_its_mapping(void **state)
{
	(void)state;
	kernel.exports = true;
	for (size_t i = 0; i < 2; i++) {
		bool iommufd = both[i] == RIG_PCI_IOMMUFD;
		struct test_counts before;
		struct rig_pci *f, *peer;
		struct rig_dma d;

		test_counts_take(&before);
		kernel.file_maps = kernel.exported = 0;
		f = take(both[i], FAKE_KERNEL_BDF0);
		peer = take(both[i], FAKE_KERNEL_BDF1);
		assert_int_equal(rig_pci_reaches(f, peer, 2), 0);
		assert_int_equal(rig_pci_map_peer(f, peer, 2, 0x1000, 0x3000, RIG_DMA_WRITE, &d), 0);
		assert_int_equal(kernel.map[0].iova, d.iova);
		assert_int_equal(kernel.map[0].bytes, 0x3000);
		assert_int_equal(kernel.map[0].dmabuf, iommufd ? 2 : 0);
		assert_int_equal(kernel.file_maps, iommufd);
		assert_int_equal(kernel.exported, iommufd);
		assert_int_equal(rig_dma_unmap(f, &d), 0);
		assert_int_equal(kernel.maps, 0);
		rig_pci_close(f);
		rig_pci_close(peer);
		test_counts_same(&before);
	}
}

static void a_kernel_that_exports_no_bar_is_said_to_need_what_exports_them(void **state)
{
	struct rig_pci *f = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0);
	struct rig_pci *peer = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF1);
	struct rig_dma d;
	int fd;

	(void)state;
	assert_int_equal(rig_pci_reaches(f, peer, 2), -ENOTSUP);
	says("CONFIG_VFIO_PCI_DMABUF");
	assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), -ENOTSUP);
	says("6.19");
	assert_int_equal(rig_pci_export(peer, 2, 0, 0x1000, &fd), -ENOTSUP);
	says("exports no BAR as a dma-buf");
	assert_int_equal(fd, -1);
	assert_int_equal(kernel.maps, 0);
	rig_pci_close(f);
	rig_pci_close(peer);
}

/* Exports, but its iommufd maps no dma-bufs. */
static void a_kernel_that_cannot_map_a_dma_buf_is_said_to_be_one(void **state)
{
	struct rig_pci *f, *peer;
	struct rig_dma d;

	(void)state;
	kernel.exports = true;
	f = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0);
	peer = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF1);
	kernel.no_dmabuf_maps = true;
	kernel.fail_nr = 0x85;
	kernel.fail_errno = EFAULT;
	assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), -EFAULT);
	says("6.19");
	assert_int_equal(kernel.maps, 0);
	rig_pci_close(f);
	rig_pci_close(peer);
}

static void a_reset_of_the_peer_ends_its_dma_bufs_and_they_are_mapped_again(void **state)
{
	struct rig_pci *f, *peer;
	struct test_counts before;
	struct rig_dma d, other;
	uint64_t iova;

	(void)state;
	kernel.exports = true;
	test_counts_take(&before);
	f = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0);
	peer = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF1);
	assert_int_equal(rig_dma_map_host(f, page, 4096, RIG_DMA_READ, &other), 0);
	assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), 0);
	iova = d.iova;
	assert_int_equal(rig_pci_reset(peer), 0);
	assert_int_equal(kernel.maps, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(kernel.map[i].revoked);
		assert_true(kernel.map[i].iova == iova || kernel.map[i].iova == other.iova);
	}
	assert_int_equal(kernel.exported, 2);
	/* A reset of the one that borrowed ends nothing. */
	assert_int_equal(rig_pci_reset(f), 0);
	assert_int_equal(kernel.exported, 2);
	assert_int_equal(rig_dma_unmap(f, &d), 0);
	assert_int_equal(kernel.maps, 1);
	rig_pci_close(peer);
	rig_pci_close(f);
	assert_int_equal(kernel.maps, 0);
	test_counts_same(&before);
}

/* Their memory is at work while another bus is reset. */
static void a_hot_reset_leaves_dma_bufs_of_functions_that_it_does_not_hit_mapped(void **state)
{
	struct rig_pci *f, *peer;
	struct rig_dma d;

	(void)state;
	kernel.exports = kernel.hot_owned = kernel.hot_alone = true;
	kernel.function[0].flags = RIG_KVFIO_DEVICE_PCI;
	f = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0);
	peer = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF1);
	assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), 0);
	assert_int_equal(rig_pci_reset(f), 0);
	assert_int_equal(kernel.function[0].hot_resets, 1);
	assert_int_equal(kernel.exported, 1);
	rig_pci_close(f);
	rig_pci_close(peer);
}

/* A hot reset is one of all functions of a bus. */
static void a_hot_reset_ends_dma_bufs_of_others_and_they_are_mapped_again(void **state)
{
	struct rig_pci *f, *peer;
	struct rig_dma d;

	(void)state;
	kernel.exports = true;
	kernel.hot_owned = true;
	for (unsigned i = 0; i < 2; i++)
		kernel.function[i].flags = RIG_KVFIO_DEVICE_PCI;
	f = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0);
	peer = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF1);
	assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), 0);
	assert_int_equal(rig_pci_reset_bus(f), 0);
	assert_int_equal(kernel.function[0].hot_resets, 1);
	assert_int_equal(kernel.exported, 2);
	assert_int_equal(kernel.maps, 1);
	assert_false(kernel.map[0].revoked);
	rig_pci_close(f);
	rig_pci_close(peer);
}

static void a_reset_ends_no_mapping_of_type1(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	struct rig_pci *peer = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF1);
	struct rig_dma d;
	unsigned calls;

	(void)state;
	assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), 0);
	calls = (unsigned)rig_pci_messages(f);
	assert_int_equal(rig_pci_reset(peer), 0);
	assert_int_equal(kernel.maps, 1);
	assert_int_equal(rig_pci_messages(f), calls); /* it never was away */
	rig_pci_close(f);
	rig_pci_close(peer);
}

static void what_cannot_be_mapped_again_is_revoked_and_its_address_stays_taken(void **state)
{
	struct rig_pci *f, *peer;
	struct rig_dma d, e;
	uint64_t iova;

	(void)state;
	kernel.exports = true;
	f = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0);
	peer = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF1);
	assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), 0);
	iova = d.iova;
	kernel.exports = false;
	assert_int_equal(rig_pci_reset(peer), 0);
	assert_false(rig_pci_gone(f, NULL));
	assert_int_equal(rig_dma_map_host(f, page, 4096, RIG_DMA_READ, &e), 0);
	assert_int_not_equal(e.iova, iova);
	assert_int_equal(rig_dma_unmap(f, &e), 0);
	assert_int_equal(rig_dma_unmap(f, &d), 0);
	assert_int_equal(rig_dma_map_host(f, page, 4096, RIG_DMA_READ, &e), 0);
	rig_pci_close(f);
	rig_pci_close(peer);
	assert_int_equal(kernel.maps, 0);
}

static void a_peer_that_is_closed_first_takes_its_memory_along(void **state)
{
	(void)state;
	kernel.exports = true;
	for (size_t i = 0; i < 2; i++) {
		struct test_counts before;
		struct rig_pci *f, *peer;
		struct rig_dma d, e;

		test_counts_take(&before);
		f = take(both[i], FAKE_KERNEL_BDF0);
		peer = take(both[i], FAKE_KERNEL_BDF1);
		assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), 0);
		rig_pci_close(peer);
		assert_int_equal(kernel.maps, 0);
		assert_int_equal(rig_dma_map_host(f, page, 4096, RIG_DMA_READ, &e), 0);
		assert_int_not_equal(e.iova, d.iova);
		assert_int_equal(rig_dma_unmap(f, &d), 0);
		assert_int_equal(kernel.maps, 1);
		rig_pci_close(f);
		test_counts_same(&before);
	}
}

static void who_borrowed_may_close_with_the_loan(void **state)
{
	(void)state;
	kernel.exports = true;
	for (size_t i = 0; i < 2; i++) {
		struct test_counts before;
		struct rig_pci *f, *peer;
		struct rig_dma d;

		test_counts_take(&before);
		f = take(both[i], FAKE_KERNEL_BDF0);
		peer = take(both[i], FAKE_KERNEL_BDF1);
		assert_int_equal(rig_pci_map_peer(f, peer, 2, 0, 0x1000, RIG_DMA_WRITE, &d), 0);
		rig_pci_close(f);
		assert_int_equal(kernel.maps, 0);
		assert_int_equal(rig_pci_reset(peer), 0);
		rig_pci_close(peer);
		test_counts_same(&before);
	}
}

static void a_peer_range_over_a_hole_or_outside_is_refused(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	struct rig_pci *peer = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF1);
	struct rig_dma d;

	(void)state;
	assert_int_equal(rig_pci_map_peer(f, peer, 0, 0x3000, 0x1000, RIG_DMA_WRITE, &d), 0);
	assert_int_equal(rig_pci_map_peer(f, peer, 0, 0x3000, 0x2000, RIG_DMA_WRITE, &d), -ENOTSUP);
	assert_int_equal(rig_pci_map_peer(f, peer, 0, 0xf000, 0x2000, RIG_DMA_WRITE, &d), -EINVAL);
	assert_int_equal(rig_pci_map_peer(f, peer, 1, 0, 0x1000, RIG_DMA_WRITE, &d), -EINVAL);
	assert_int_equal(rig_pci_map_peer(f, peer, 6, 0, 0x1000, RIG_DMA_WRITE, &d), -EINVAL);
	assert_int_equal(rig_pci_map_peer(f, peer, 2, 0x10, 0x1000, RIG_DMA_WRITE, &d), -EINVAL);
	assert_int_equal(rig_pci_reaches(f, peer, 1), -ENOTSUP);
	assert_int_equal(rig_pci_reaches(f, peer, 6), -ENOTSUP);
	rig_pci_close(f);
	rig_pci_close(peer);
}

static void without_an_iommu_a_peer_is_at_its_bus_address(void **state)
{
	struct rig_pci *f = take_noiommu(true);
	struct rig_dma d;

	(void)state;
	assert_int_equal(rig_pci_map_peer(f, f, 2, 0x1000, 0x1000, RIG_DMA_WRITE, &d), 0);
	assert_int_equal(d.iova, 0x4000001000);
	assert_int_equal(rig_dma_unmap(f, &d), 0);
	rig_pci_close(f);
}

static void only_a_dma_buf_with_one_reference_is_known_not_to_be_shared(void **state)
{
	int fd = memfd_create("no-dma-buf", MFD_CLOEXEC);

	(void)state;
	assert_false(rig_dmabuf_text_is_shared(
	        "pos:\t0\nflags:\t02000002\nsize:\t4096\ncount:\t1\nexp_name:\tx\n"));
	assert_true(rig_dmabuf_text_is_shared("pos:\t0\nsize:\t4096\ncount:\t2\nexp_name:\tx\n"));
	assert_true(rig_dmabuf_text_is_shared("pos:\t0\nsize:\t4096\ncount:\t11\nexp_name:\tx\n"));
	assert_true(rig_dmabuf_text_is_shared("pos:\t0\nflags:\t02\n"));
	assert_true(rig_dmabuf_text_is_shared("pos:\t0\ncount:"));
	assert_true(rig_dmabuf_text_is_shared("discount:\t1\n"));
	assert_true(rig_dmabuf_text_is_shared(""));
	/* Nobody knows of other files. */
	assert_true(rig_dmabuf_is_shared(fd));
	assert_true(rig_dmabuf_is_shared(-1));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        KERNEL_TEST(memory_is_mapped_and_unmapped_exactly),
	        KERNEL_TEST(addresses_lie_in_the_ranges_that_the_kernel_reports),
	        KERNEL_TEST(an_unmap_of_another_size_ends_the_function),
	        KERNEL_TEST(the_entry_limit_is_named_with_its_parameter),
	        KERNEL_TEST(a_refused_pinning_names_the_memory_limit),
	        KERNEL_TEST(a_range_that_is_taken_all_the_same_is_an_error_of_its_own),
	        KERNEL_TEST(functions_of_one_group_share_a_space_and_never_an_address),
	        KERNEL_TEST(memory_with_a_descriptor_is_mapped_by_it_where_the_kernel_can),
	        KERNEL_TEST(without_an_iommu_addresses_are_the_physical_ones),
	        KERNEL_TEST(memory_in_pieces_is_refused_without_an_iommu),
	        KERNEL_TEST(memory_beyond_the_mask_is_refused_without_an_iommu),
	        KERNEL_TEST(a_peers_bar_is_mapped_by_its_dma_buf_or_its_mapping),
	        KERNEL_TEST(a_kernel_that_exports_no_bar_is_said_to_need_what_exports_them),
	        KERNEL_TEST(a_kernel_that_cannot_map_a_dma_buf_is_said_to_be_one),
	        KERNEL_TEST(a_reset_of_the_peer_ends_its_dma_bufs_and_they_are_mapped_again),
	        KERNEL_TEST(a_hot_reset_leaves_dma_bufs_of_functions_that_it_does_not_hit_mapped),
	        KERNEL_TEST(a_hot_reset_ends_dma_bufs_of_others_and_they_are_mapped_again),
	        KERNEL_TEST(a_reset_ends_no_mapping_of_type1),
	        KERNEL_TEST(what_cannot_be_mapped_again_is_revoked_and_its_address_stays_taken),
	        KERNEL_TEST(a_peer_that_is_closed_first_takes_its_memory_along),
	        KERNEL_TEST(who_borrowed_may_close_with_the_loan),
	        KERNEL_TEST(a_peer_range_over_a_hole_or_outside_is_refused),
	        KERNEL_TEST(without_an_iommu_a_peer_is_at_its_bus_address),
	        KERNEL_TEST(only_a_dma_buf_with_one_reference_is_known_not_to_be_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
