/* SPDX-License-Identifier: MIT */
/* Loans of one function's BAR to another: by file, by mapping, by dma-buf, and what ends them. */
#include "test.h"
#include <errno.h>
#include <linux/pci_regs.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "fake.h"
#include "pci.h"
#include "peer.h"

enum { BAR = 2, BYTES = 0x100000, PAGE = 4096, OFF = 0x3000, LEN = 0x2000 };

struct side {
	struct rig_fake *fake;
	struct rig_pci *f;
};

static struct side a, b; /* a borrows of b */

static void take_as(struct side *s, const char *bdf, const char *resets_too, enum rig_vfio_peers peers)
{
	struct rig_fake_options o = {.bar_bytes = {[BAR] = BYTES},
	        .areas = {[BAR] = 1},
	        .area = {[BAR] = {{0, BYTES}}},
	        .peers = peers,
	        .bdf = bdf,
	        .resets_too = resets_too,
	        .exports = true};
	struct rig_pci_taking taken = {.ops = &rig_fake_ops};

	assert_int_equal(rig_fake_make(&s->fake, &o), 0);
	taken.transport = s->fake;
	assert_int_equal(rig_pci_take(&s->f, &taken), 0);
}

static void take(struct side *s, enum rig_vfio_peers peers)
{
	take_as(s, NULL, NULL, peers);
}

static void give(struct side *s)
{
	rig_pci_close(s->f);
	s->f = NULL;
	assert_true(!s->fake || rig_fake_maps(s->fake) == 0);
	rig_fake_free(s->fake);
	s->fake = NULL;
}

static void take_both(enum rig_vfio_peers peers)
{
	take(&a, peers);
	take(&b, peers);
}

static void says(const char *what)
{
	if (!strstr(rig_error(), what))
		fail_msg("\"%s\" does not say \"%s\"", rig_error(), what);
}

static struct rig_dma borrow(unsigned prot)
{
	struct rig_dma d;

	assert_int_equal(rig_pci_map_peer(a.f, b.f, BAR, OFF, LEN, prot, &d), 0);
	assert_int_equal(d.bytes, LEN);
	assert_null(d.host);
	return d;
}

static const enum rig_vfio_peers ways[] = {
        RIG_VFIO_PEERS_FILE, RIG_VFIO_PEERS_MAPPING, RIG_VFIO_PEERS_DMABUF};

static void what_is_lent_is_the_range_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct test_counts before;
		unsigned char *memory, byte = 7;
		struct rig_dma d;

		test_counts_take(&before);
		take_both(ways[i]);
		memory = rig_fake_memory(b.fake, BAR);
		d = borrow(RIG_DMA_READ | RIG_DMA_WRITE);
		assert_int_equal(rig_fake_dma_write(a.fake, d.iova, &byte, 1), 0);
		assert_int_equal(rig_fake_dma_write(a.fake, d.iova + LEN - 1, &byte, 1), 0);
		assert_int_equal(rig_fake_dma_write(a.fake, d.iova + LEN, &byte, 1), -EFAULT);
		assert_int_equal(memory[OFF] + memory[OFF + LEN - 1], 14);
		memory[OFF + 1] = 9;
		assert_int_equal(rig_fake_dma_read(a.fake, d.iova + 1, &byte, 1), 0);
		assert_int_equal(byte, 9);
		assert_int_equal(rig_dma_unmap(a.f, &d), 0);
		assert_null(d.handle);
		assert_int_equal(rig_fake_maps(a.fake), 0);
		d = borrow(RIG_DMA_READ);
		assert_int_equal(rig_fake_dma_write(a.fake, d.iova, &byte, 1), -EACCES);
		assert_int_equal(rig_dma_unmap(a.f, &d), 0);
		give(&a);
		give(&b);
		test_counts_same(&before);
	}
}

static void a_far_side_that_maps_no_file_is_served_by_message(void **state)
{
	struct rig_dma d;
	uint64_t word = 0;

	(void)state;
	take_both(RIG_VFIO_PEERS_FILE);
	d = borrow(RIG_DMA_READ);
	assert_int_equal(rig_fake_map(a.fake, 0).fd_offset, OFF);
	assert_true(rig_fake_map(a.fake, 0).fd >= 0);
	memset((unsigned char *)rig_fake_memory(b.fake, BAR) + OFF, 0x5A, sizeof(word));
	assert_int_equal(rig_fake_dma_ask(a.fake, d.iova, &word, sizeof(word)), 0);
	assert_int_equal(word, 0x5A5A5A5A5A5A5A5A);
	/* Closed first, the lender takes its memory along: nobody reads what was unmapped here. */
	give(&b);
	assert_int_equal(rig_fake_maps(a.fake), 0);
	assert_int_equal(rig_fake_dma_ask(a.fake, d.iova, &word, sizeof(word)), -EACCES);
	assert_int_equal(rig_dma_unmap(a.f, &d), 0);
	assert_int_equal(rig_fake_dma_ask(a.fake, d.iova, &word, sizeof(word)), -EFAULT);
	give(&a);
}

static void functions_of_different_kinds_have_no_path(void **state)
{
	static const enum rig_vfio_peers others[] = {
	        RIG_VFIO_PEERS_MAPPING, RIG_VFIO_PEERS_DMABUF, RIG_VFIO_PEERS_BUS};
	struct rig_dma d;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		take(&a, RIG_VFIO_PEERS_FILE);
		take(&b, others[i]);
		assert_int_equal(rig_pci_reaches(a.f, b.f, BAR), -ENOTSUP);
		says("no path");
		assert_int_equal(rig_pci_reaches(b.f, a.f, BAR), -ENOTSUP);
		assert_int_equal(rig_pci_map_peer(a.f, b.f, BAR, 0, PAGE, RIG_DMA_READ, &d), -ENOTSUP);
		assert_null(d.handle);
		give(&a);
		give(&b);
	}
}

static void a_dma_buf_ends_with_the_reset_and_is_reached_again_at_the_same_address(void **state)
{
	unsigned char byte = 7;
	struct rig_dma d;

	(void)state;
	take_both(RIG_VFIO_PEERS_DMABUF);
	d = borrow(RIG_DMA_WRITE);
	rig_fake_revoke(a.fake, d.iova); /* as the kernel does in the reset */
	assert_int_equal(rig_fake_dma_write(a.fake, d.iova, &byte, 1), -EACCES);
	assert_int_equal(rig_pci_reset(b.f), 0);
	assert_int_equal(rig_fake_dma_write(a.fake, d.iova, &byte, 1), 0);
	assert_int_equal(rig_dma_unmap(a.f, &d), 0);
	give(&a);
	give(&b);
}

/* a borrows of b, and another function is reset. */
static void a_reset_gives_loans_of_functions_that_it_hits_back_and_no_others(void **state)
{
	static const struct {
		const char *hit;
		bool again;
	} cases[] = {{NULL, false}, {"0000:66:00.0", false}, {"0000:65:00.1", true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct side other;
		struct rig_dma d;
		uint64_t calls;

		take(&a, RIG_VFIO_PEERS_DMABUF);
		take_as(&b, "0000:65:00.1", NULL, RIG_VFIO_PEERS_DMABUF);
		take_as(&other, "0000:65:00.0", cases[i].hit, RIG_VFIO_PEERS_DMABUF);
		d = borrow(RIG_DMA_WRITE);
		calls = rig_pci_messages(a.f);
		assert_int_equal(rig_pci_reset(other.f), 0);
		assert_int_equal(rig_pci_messages(a.f) != calls, cases[i].again);
		assert_int_equal(rig_dma_unmap(a.f, &d), 0);
		give(&other);
		give(&a);
		give(&b);
	}
}

static void a_reset_that_is_refused_interrupts_nobody(void **state)
{
	unsigned char byte = 7;
	uint64_t calls;
	struct rig_dma d;

	(void)state;
	take_both(RIG_VFIO_PEERS_DMABUF);
	assert_int_equal(rig_pci_bus_master(b.f, true), 0);
	d = borrow(RIG_DMA_WRITE);
	calls = rig_pci_messages(a.f);
	rig_fake_refuse_reset(b.fake, -EBUSY);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(i ? rig_pci_reset_bus(b.f) : rig_pci_reset(b.f), -EBUSY);
		says("the fake's reset");
		assert_int_equal(rig_pci_messages(a.f), calls);
		assert_int_equal(rig_fake_dma_write(a.fake, d.iova, &byte, 1), 0);
		assert_true(((unsigned char *)rig_fake_memory(b.fake, RIG_VFIO_CONFIG))[PCI_COMMAND] &
		            PCI_COMMAND_MASTER);
	}
	assert_int_equal(rig_dma_unmap(a.f, &d), 0);
	give(&a);
	give(&b);
}

/* A kernel revokes dma-bufs before it tries. */
static void a_reset_that_fails_gives_loans_back(void **state)
{
	unsigned char byte = 7;
	struct rig_dma d;

	(void)state;
	take_both(RIG_VFIO_PEERS_DMABUF);
	d = borrow(RIG_DMA_WRITE);
	rig_fake_revoke(a.fake, d.iova);
	rig_fake_refuse_reset(b.fake, -EAGAIN);
	assert_int_equal(rig_pci_reset(b.f), -EAGAIN);
	says("the fake's reset");
	assert_int_equal(rig_fake_dma_write(a.fake, d.iova, &byte, 1), 0);
	assert_int_equal(rig_dma_unmap(a.f, &d), 0);
	give(&a);
	give(&b);
}

/* Each call of either side fails once: the reset says nothing of it, and the loan is whole or revoked. */
static void a_loan_that_cannot_be_made_again_is_revoked_whole(void **state)
{
	(void)state;
	for (unsigned k = 1; k < 8; k++) {
		struct rig_dma d, other;
		unsigned char byte = 7;
		int answer;

		take_both(RIG_VFIO_PEERS_DMABUF);
		d = borrow(RIG_DMA_WRITE);
		rig_fake_fail_at(a.fake, k);
		assert_int_equal(rig_pci_reset(b.f), 0);
		if (!rig_fake_failed(a.fake))
			rig_fake_fail_at(a.fake, 0);
		if (!rig_pci_gone(a.f, NULL)) {
			answer = rig_fake_dma_write(a.fake, d.iova, &byte, 1);
			assert_true(answer == 0 || answer == -EFAULT);
			assert_int_equal(answer == 0, k > 2);
			assert_int_equal(rig_pci_map_peer(a.f, b.f, BAR, 0, PAGE, RIG_DMA_READ, &other), 0);
			assert_true(other.iova >= d.iova + LEN || other.iova + PAGE <= d.iova);
			assert_int_equal(rig_dma_unmap(a.f, &other), 0);
			assert_int_equal(rig_dma_unmap(a.f, &d), 0);
			assert_int_equal(rig_fake_maps(a.fake), 0);
		} else {
			assert_int_equal(k, 1); /* what could not be unmapped is not to be used */
			(void)rig_dma_unmap(a.f, &d);
		}
		rig_pci_close(a.f);
		rig_fake_free(a.fake);
		give(&b);
	}
}

static void nothing_is_borrowed_of_or_by_who_is_gone(void **state)
{
	struct rig_dma d;

	(void)state;
	take_both(RIG_VFIO_PEERS_FILE);
	rig_fake_die(b.fake, "it left");
	assert_int_equal(rig_pci_map_peer(a.f, b.f, BAR, 0, PAGE, RIG_DMA_READ, &d), -ENODEV);
	says("it left");
	assert_int_equal(rig_pci_map_peer(b.f, a.f, BAR, 0, PAGE, RIG_DMA_READ, &d), -ENODEV);
	says("it left");
	assert_int_equal(rig_pci_reaches(a.f, b.f, BAR), 0);
	assert_false(rig_pci_gone(a.f, NULL));
	give(&a);
	give(&b);
}

static void memory_of_an_arena_is_no_loan(void **state)
{
	struct rig_dma d, arena, copy;

	(void)state;
	take_both(RIG_VFIO_PEERS_FILE);
	d = borrow(RIG_DMA_READ);
	assert_int_equal(rig_dma_alloc(a.f, 100, 0, &arena), 0);
	copy = arena;
	assert_int_equal(rig_dma_unmap(a.f, &copy), -EINVAL);
	/* Nor is a loan of one function another's. */
	copy = d;
	assert_int_equal(rig_dma_unmap(b.f, &copy), -EINVAL);
	rig_dma_free(a.f, &arena);
	assert_int_equal(rig_dma_unmap(a.f, &d), 0);
	give(&a);
	give(&b);
}

static void a_child_of_fork_has_no_loans_and_makes_its_own(void **state)
{
	struct rig_dma d;
	int status;
	pid_t child;

	(void)state;
	take_both(RIG_VFIO_PEERS_FILE);
	d = borrow(RIG_DMA_READ);
	child = fork();
	if (child == 0) {
		struct rig_dma other = d, mine;
		bool ok = rig_dma_unmap(a.f, &other) == -ENODEV &&
		          rig_pci_map_peer(a.f, b.f, BAR, 0, PAGE, RIG_DMA_READ, &other) == -ENODEV;

		take_both(RIG_VFIO_PEERS_FILE);
		mine = borrow(RIG_DMA_READ);
		ok = ok && rig_dma_unmap(a.f, &mine) == 0;
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(rig_dma_unmap(a.f, &d), 0);
	give(&a);
	give(&b);
}

static void *lend_and_take_back(void *arg)
{
	struct side *mine = arg, *other = mine == &a ? &b : &a;
	struct rig_dma d;
	intptr_t bad = 0;

	for (unsigned i = 0; i < 300; i++) {
		bad += rig_pci_map_peer(mine->f, other->f, BAR, OFF, LEN, RIG_DMA_READ, &d) != 0;
		bad += i % 50 == 0 && rig_pci_reset(mine->f) != 0;
		bad += rig_dma_unmap(mine->f, &d) != 0;
	}
	return (void *)bad;
}

static void two_functions_borrow_of_each_other_at_once(void **state)
{
	pthread_t thread;
	void *one, *two;

	(void)state;
	take_both(RIG_VFIO_PEERS_DMABUF);
	assert_int_equal(pthread_create(&thread, NULL, lend_and_take_back, &a), 0);
	one = lend_and_take_back(&b);
	assert_int_equal(pthread_join(thread, &two), 0);
	assert_null(one);
	assert_null(two);
	give(&a);
	give(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(what_is_lent_is_the_range_and_no_more),
	        cmocka_unit_test(a_far_side_that_maps_no_file_is_served_by_message),
	        cmocka_unit_test(functions_of_different_kinds_have_no_path),
	        cmocka_unit_test(a_dma_buf_ends_with_the_reset_and_is_reached_again_at_the_same_address),
	        cmocka_unit_test(a_reset_gives_loans_of_functions_that_it_hits_back_and_no_others),
	        cmocka_unit_test(a_reset_that_is_refused_interrupts_nobody),
	        cmocka_unit_test(a_reset_that_fails_gives_loans_back),
	        cmocka_unit_test(a_loan_that_cannot_be_made_again_is_revoked_whole),
	        cmocka_unit_test(nothing_is_borrowed_of_or_by_who_is_gone),
	        cmocka_unit_test(memory_of_an_arena_is_no_loan),
	        cmocka_unit_test(a_child_of_fork_has_no_loans_and_makes_its_own),
	        cmocka_unit_test(two_functions_borrow_of_each_other_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
