/* SPDX-License-Identifier: MIT */
/*
 * The life of a taken function with its k-th step failing, for every k until none does: a call of the
 * transport, or an allocation. Whatever failed, nothing is left behind and the function can be taken again.
 */
#include "test.h"
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocs.h"
#include "rig_pci.h"
#include "fake_function.h"
#include "fake_peer.h"

enum { STEPS_MOST = 500, VECTORS = 4 };

static int ev[VECTORS];
static int words;
static char *host;

static int use_memory(struct rig_pci *f)
{
	struct rig_dma ring, large, mapped, pinned;
	int err = rig_dma_alloc(f, 4096, 4096, &ring);

	if (!err)
		err = rig_dma_alloc(f, UINT64_C(3) << 20, 0, &large);
	if (!err)
		err = rig_dma_map_fd(f, words, 0, 4096, NULL, RIG_DMA_READ, &mapped);
	if (!err)
		err = rig_dma_map_host(f, host, 4096, RIG_DMA_READ | RIG_DMA_WRITE, &pinned);
	if (!err)
		err = rig_dma_unmap(f, &pinned);
	if (!err)
		rig_dma_free(f, &large);
	/* The rest is left for the close. */
	return err;
}

static int use(struct rig_pci *f)
{
	struct rig_win mapped, asked;
	int err = rig_pci_window(f, 2, 0, 0, 0, &mapped);

	if (!err)
		err = rig_pci_window(f, 0, 0, 0x100, 0, &asked);
	if (err)
		return err;
	rig_win_store32(&mapped, 0, 1);
	rig_win_store32(&asked, 0, 1);
	(void)rig_win_load32(&asked, 0);
	err = use_memory(f);
	if (!err)
		err = rig_pci_irq_enable(f, RIG_IRQ_MSIX, 0, VECTORS, ev);
	if (!err)
		err = rig_pci_bus_master(f, true);
	if (!err)
		err = rig_pci_reset(f);
	return err;
}

static int scenario(const struct rig_pci_taking *o)
{
	struct rig_pci *f = NULL;
	int err = rig_pci_take(&f, o);

	if (err) {
		assert_null(f);
		assert_true(rig_error()[0] != '\0');
		return err;
	}
	err = use(f);
	if (err)
		assert_true(rig_error()[0] != '\0');
	rig_pci_close(f);
	return err;
}

static struct rig_pci_taking on(struct rig_fake *fake)
{
	return (struct rig_pci_taking){
	        .ops = &rig_fake_ops, .transport = fake, .arena_step = UINT64_C(2) << 20};
}

static void any_call_of_the_transport_may_fail(void **state)
{
	struct rig_fake_options fake_options = fake_function_options();
	struct test_counts before;
	uint64_t k;

	(void)state;
	for (k = 1; k < STEPS_MOST; k++) {
		struct rig_pci_taking o;
		struct rig_fake *fake;
		int err;

		test_counts_take(&before);
		assert_int_equal(rig_fake_make(&fake, &fake_options), 0);
		o = on(fake);
		rig_fake_fail_at(fake, k);
		err = scenario(&o);
		bool failed = rig_fake_failed(fake);
		assert_int_equal(rig_fake_open_count(fake), 0);
		assert_int_equal(rig_fake_maps(fake), 0);
		assert_int_equal(rig_fake_connected(fake), 0);
		rig_fake_fail_at(fake, 0);
		assert_int_equal(scenario(&o), 0);
		rig_fake_free(fake);
		test_counts_same(&before);
		if (!failed) {
			assert_int_equal(err, 0);
			break;
		}
	}
	assert_true(k > 20 && k < STEPS_MOST);
	print_message("%u steps failed in turn\n", (unsigned)k - 1);
}

static void any_allocation_may_fail(void **state)
{
	struct rig_fake_options fake_options = fake_function_options();
	struct test_counts before;
	struct rig_pci_taking o;
	struct rig_fake *fake;
	uint64_t k;

	(void)state;
	assert_int_equal(rig_fake_make(&fake, &fake_options), 0);
	o = on(fake);
	test_counts_take(&before);
	for (k = 1; k < STEPS_MOST; k++) {
		test_allocs_fail_at(k);
		int err = scenario(&o);
		bool failed = test_allocs_failed();
		test_allocs_fail_at(0);
		test_counts_same(&before);
		if (!failed) {
			assert_int_equal(err, 0);
			break;
		}
	}
	assert_true(k > 5 && k < STEPS_MOST);
	print_message("%u allocations failed in turn\n", (unsigned)k - 1);
	rig_fake_free(fake);
}

static int scenario_over(int fd)
{
	struct rig_pci_taking o = {.arena_step = UINT64_C(2) << 20};
	int err = fake_peer_give(fd, 0, &o);

	return err ? err : scenario(&o);
}

static void any_allocation_may_fail_over_vfio_user(void **state)
{
	struct test_counts before;
	uint64_t k;

	(void)state;
	for (k = 1; k < STEPS_MOST; k++) {
		int fd;
		struct fake_peer peer = {0};

		test_counts_take(&before);
		fake_peer_start(&peer, &fd);
		test_allocs_fail_at(k);
		int err = scenario_over(fd);
		bool failed = test_allocs_failed();
		test_allocs_fail_at(0);
		fake_peer_stop(&peer);
		test_counts_same(&before);
		if (!failed) {
			assert_int_equal(err, 0);
			break;
		}
	}
	assert_true(k > 5 && k < STEPS_MOST);
	print_message("%u allocations failed in turn\n", (unsigned)k - 1);
}

/* The k-th message of the client is answered with an error, or with the end. */
static unsigned bad_at, seen;
static bool hang;

static enum peer_do spoil(struct fake_peer *p, const struct peer_message *m)
{
	if (++seen != bad_at)
		return PEER_BEHAVE;
	if (hang)
		return PEER_HANG_UP;
	peer_error(p, m, 5);
	return PEER_DONE;
}

static void spoil_each(bool by_hanging_up)
{
	struct test_counts before;

	hang = by_hanging_up;
	for (bad_at = 1; bad_at < STEPS_MOST; bad_at++) {
		int fd;
		struct fake_peer peer = {.hook = spoil};

		test_counts_take(&before);
		seen = 0;
		fake_peer_start(&peer, &fd);
		int err = scenario_over(fd);
		fake_peer_stop(&peer);
		test_counts_same(&before);
		if (seen < bad_at) {
			assert_int_equal(err, 0);
			break;
		}
	}
	assert_true(bad_at > 20 && bad_at < STEPS_MOST);
	print_message("%u messages failed in turn\n", bad_at - 1);
}

static void any_message_may_be_answered_with_an_error(void **state)
{
	(void)state;
	spoil_each(false);
}

static void the_peer_may_die_at_any_message(void **state)
{
	(void)state;
	spoil_each(true);
}

static int setup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < VECTORS; i++)
		ev[i] = eventfd(0, EFD_CLOEXEC);
	words = memfd_create("words", MFD_CLOEXEC);
	host = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return ftruncate(words, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(any_call_of_the_transport_may_fail),
	        cmocka_unit_test(any_allocation_may_fail),
	        cmocka_unit_test(any_allocation_may_fail_over_vfio_user),
	        cmocka_unit_test(any_message_may_be_answered_with_an_error),
	        cmocka_unit_test(the_peer_may_die_at_any_message),
	};

	return cmocka_run_group_tests_name(
	        "a function's life with its k-th step failing", tests, setup, NULL);
}
