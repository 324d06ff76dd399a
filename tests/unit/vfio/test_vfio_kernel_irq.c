/* SPDX-License-Identifier: MIT */
/* Interrupts and resets through the kernel. */
#include "test.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "counters.h"
#include "rig_pci.h"
#include "kernel_abi.h"
#include "vfio_kernel_bench.h"

enum { SOON_MS = 5000 };

static void raise_irq(unsigned kind, unsigned vector)
{
	uint64_t one = 1;

	assert_true(kernel.function[0].irq[kind][vector] >= 0);
	assert_int_equal(write(kernel.function[0].irq[kind][vector], &one, sizeof(one)), sizeof(one));
}

static void an_interrupt_reaches_its_eventfd(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t n;

	(void)state;
	assert_int_equal(rig_pci_irq_enable(f, RIG_IRQ_MSIX, 1, 1, &fd), 0);
	raise_irq(RIG_IRQ_MSIX, 1);
	assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(rig_pci_irq_disable(f, RIG_IRQ_MSIX), 0);
	assert_int_equal(kernel.function[0].irq[RIG_IRQ_MSIX][1], -1);
	rig_pci_close(f);
	close(fd);
}

static void where_vectors_cannot_be_added_later_all_are_enabled_first(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	int fd = eventfd(0, EFD_NONBLOCK);

	(void)state;
	assert_int_equal(rig_pci_irq_enable(f, RIG_IRQ_MSIX, 2, 1, &fd), 0);
	assert_int_equal(kernel.function[0].irq_start, 0);
	assert_int_equal(kernel.function[0].irq_count, FAKE_KERNEL_VECTORS);
	assert_int_equal(rig_pci_irq_enable(f, RIG_IRQ_MSIX, 0, 1, &fd), 0);
	assert_int_equal(kernel.function[0].irq_count, 1);
	assert_true(kernel.function[0].irq[RIG_IRQ_MSIX][2] >= 0);
	rig_pci_close(f);
	close(fd);
}

static void a_machine_with_fewer_vectors_says_so_and_gives_those(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	int fds[2] = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK)};

	(void)state;
	kernel.vectors_free = 1;
	assert_int_equal(rig_pci_irq_enable(f, RIG_IRQ_MSIX, 0, 2, fds), -ENOSPC);
	assert_non_null(strstr(rig_error(), "no more vectors to give"));
	assert_int_equal(rig_pci_irq_enable(f, RIG_IRQ_MSIX, 0, 1, fds), 0);
	raise_irq(RIG_IRQ_MSIX, 0);
	rig_pci_close(f);
	close(fds[0]);
	close(fds[1]);
}

static void becomes_gone(unsigned kind, const char *says)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	struct pollfd gone = {.fd = rig_pci_gone_fd(f), .events = POLLIN};
	const char *why;

	assert_false(rig_pci_gone(f, NULL));
	raise_irq(kind, 0);
	assert_int_equal(poll(&gone, 1, SOON_MS), 1);
	assert_true(rig_pci_gone(f, &why));
	assert_non_null(strstr(why, says));
	rig_pci_close(f);
}

static void a_request_to_give_the_function_back_makes_it_gone(void **state)
{
	(void)state;
	becomes_gone(RIG_IRQ_REQ, "asks for it back");
}

static void an_uncorrectable_error_makes_it_gone(void **state)
{
	(void)state;
	becomes_gone(RIG_IRQ_ERR, "error");
}

static void who_asks_for_the_request_gets_it_in_place_of_the_library(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t n;

	(void)state;
	assert_int_equal(rig_pci_irq_enable(f, RIG_IRQ_REQ, 0, 1, &fd), 0);
	raise_irq(RIG_IRQ_REQ, 0);
	assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
	assert_false(rig_pci_gone(f, NULL));
	/* Let go, it is the library's again. */
	assert_int_equal(rig_pci_irq_disable(f, RIG_IRQ_REQ), 0);
	assert_true(kernel.function[0].irq[RIG_IRQ_REQ][0] >= 0);
	rig_pci_close(f);
	close(fd);
}

static void nothing_stays_connected_after_close(void **state)
{
	struct test_counts before;
	struct rig_pci *f;
	int fd;

	(void)state;
	test_counts_take(&before);
	f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(rig_pci_irq_enable(f, RIG_IRQ_MSIX, 0, 1, &fd), 0);
	close(fd);
	rig_pci_close(f);
	test_counts_same(&before);
}

static void a_reset_is_the_functions_own_where_it_has_one(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);

	(void)state;
	assert_int_equal(rig_pci_reset(f), 0);
	assert_int_equal(kernel.function[0].resets, 1);
	assert_int_equal(kernel.function[0].hot_resets, 0);
	rig_pci_close(f);
}

static void a_hot_reset_that_would_hit_others_is_not_offered_and_they_are_named(void **state)
{
	struct rig_pci *f;

	(void)state;
	kernel.function[0].flags = RIG_KVFIO_DEVICE_PCI;
	fake_kernel_bind(&kernel, FAKE_KERNEL_BDF1, "nvme");
	f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	assert_false(rig_pci_info(f)->resets);
	assert_non_null(strstr(logged, FAKE_KERNEL_BDF1 " (nvme)"));
	assert_int_equal(rig_pci_reset(f), -ENOTSUP);
	assert_int_equal(kernel.function[0].hot_resets, 0);
	rig_pci_close(f);
}

/* The kernel has 16 bits for the domain of what is hit. */
static void what_a_hot_reset_hits_in_a_long_domain_is_named_whole(void **state)
{
	struct rig_pci *f;

	(void)state;
	kernel.function[1].flags = RIG_KVFIO_DEVICE_PCI;
	fake_kernel_link(&kernel, "/sys/bus/pci/devices/10000:65:00.1", FAKE_KERNEL_BDF1);
	f = take(RIG_PCI_TYPE1, "10000:65:00.1");
	assert_string_equal(rig_pci_info(f)->bdf, "10000:65:00.1");
	assert_non_null(strstr(logged, "would also reset 10000:65:00.1 "));
	rig_pci_close(f);
}

static void a_hot_reset_that_hits_only_ours_is_done(void **state)
{
	struct rig_pci *f;

	(void)state;
	kernel.function[0].flags = RIG_KVFIO_DEVICE_PCI;
	kernel.hot_group = 12;
	f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	assert_true(rig_pci_info(f)->resets);
	assert_int_equal(rig_pci_reset(f), 0);
	assert_int_equal(kernel.function[0].hot_resets, 1);
	assert_int_equal(kernel.function[0].resets, 0);
	rig_pci_close(f);
}

static void a_hot_reset_spares_what_this_process_has_open_unless_it_is_asked_to_hit_it(void **state)
{
	static const enum rig_pci_transport ways[] = {RIG_PCI_TYPE1, RIG_PCI_IOMMUFD};

	(void)state;
	kernel.function[0].flags = RIG_KVFIO_DEVICE_PCI;
	kernel.hot_group = 12;
	for (unsigned i = 0; i < 2; i++) {
		struct rig_pci *f, *other;
		unsigned done = kernel.function[0].hot_resets;
		uint32_t before, after;

		kernel.hot_owned = ways[i] == RIG_PCI_IOMMUFD;
		f = take(ways[i], FAKE_KERNEL_BDF0);
		other = take(ways[i], FAKE_KERNEL_BDF1);
		assert_int_equal(rig_pci_bus_master(f, true), 0);
		assert_int_equal(rig_pci_config_read(f, 4, 2, &before), 0);
		assert_int_equal(rig_pci_reset(f), -EBUSY);
		says(FAKE_KERNEL_BDF1 " (which this process has open)");
		assert_null(strstr(rig_error(), FAKE_KERNEL_BDF0 " ("));
		assert_int_equal(kernel.function[0].hot_resets, done);
		assert_int_equal(rig_pci_config_read(f, 4, 2, &after), 0);
		assert_int_equal(after, before);
		assert_int_equal(rig_pci_reset_bus(f), 0);
		assert_int_equal(kernel.function[0].hot_resets, done + 1);
		rig_pci_close(other);
		assert_int_equal(rig_pci_reset(f), 0);
		assert_int_equal(kernel.function[0].hot_resets, done + 2);
		rig_pci_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        KERNEL_TEST(an_interrupt_reaches_its_eventfd),
	        KERNEL_TEST(a_machine_with_fewer_vectors_says_so_and_gives_those),
	        KERNEL_TEST(where_vectors_cannot_be_added_later_all_are_enabled_first),
	        KERNEL_TEST(a_request_to_give_the_function_back_makes_it_gone),
	        KERNEL_TEST(an_uncorrectable_error_makes_it_gone),
	        KERNEL_TEST(who_asks_for_the_request_gets_it_in_place_of_the_library),
	        KERNEL_TEST(nothing_stays_connected_after_close),
	        KERNEL_TEST(a_reset_is_the_functions_own_where_it_has_one),
	        KERNEL_TEST(a_hot_reset_that_would_hit_others_is_not_offered_and_they_are_named),
	        KERNEL_TEST(what_a_hot_reset_hits_in_a_long_domain_is_named_whole),
	        KERNEL_TEST(a_hot_reset_that_hits_only_ours_is_done),
	        KERNEL_TEST(a_hot_reset_spares_what_this_process_has_open_unless_it_is_asked_to_hit_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
