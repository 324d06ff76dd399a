/* SPDX-License-Identifier: MIT */
/* Interrupts: every index, every action, every kind of data. */
#include "test_vfu_client.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "counters.h"

#define NONE   VFIO_IRQ_SET_DATA_NONE
#define BOOL   VFIO_IRQ_SET_DATA_BOOL
#define EVENT  VFIO_IRQ_SET_DATA_EVENTFD
#define TRIG   VFIO_IRQ_SET_ACTION_TRIGGER
#define MASK   VFIO_IRQ_SET_ACTION_MASK
#define UNMASK VFIO_IRQ_SET_ACTION_UNMASK
#define INTX   VFIO_PCI_INTX_IRQ_INDEX
#define MSI    VFIO_PCI_MSI_IRQ_INDEX
#define MSIX   VFIO_PCI_MSIX_IRQ_INDEX
#define ERR    VFIO_PCI_ERR_IRQ_INDEX
#define REQ    VFIO_PCI_REQ_IRQ_INDEX
#define ENTRY  16u
#define CTRL   12u

struct irqs {
	struct peer *p;
	int e[PEER_VECTORS];
};

static int setup(void **state)
{
	struct irqs *t = malloc(sizeof(*t));
	void *peer;

	assert_non_null(t);
	peer_setup(&peer);
	t->p = peer;
	for (unsigned i = 0; i < PEER_VECTORS; i++)
		t->e[i] = peer_event();
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct irqs *t = *state;
	void *peer = t->p;

	for (unsigned i = 0; i < PEER_VECTORS; i++)
		close(t->e[i]);
	free(t);
	return peer_teardown(&peer);
}

static int set(struct irqs *t, uint32_t flags, uint32_t index, uint32_t start, uint32_t count)
{
	return peer_irqs(t->p, flags, index, start, count, NULL, 0, NULL, 0);
}

static void arm(struct irqs *t, uint32_t index, uint32_t count)
{
	assert_int_equal(peer_irqs(t->p, EVENT | TRIG, index, 0, count, NULL, 0, t->e, count), 0);
}

static void each_index_says_what_it_has(void **state)
{
	struct irqs *t = *state;
	static const uint32_t counts[] = {1, PEER_MSI, PEER_VECTORS, 1, 1};
	struct vfu_wire_irq_info info;

	for (uint32_t i = 0; i < 5; i++) {
		info = (struct vfu_wire_irq_info){.argsz = sizeof(info), .index = i};
		assert_int_equal(peer_call(t->p, VFU_CMD_DEVICE_GET_IRQ_INFO, &info, sizeof(info), NULL, 0,
		                         &info, sizeof(info)),
		        0);
		assert_int_equal(info.index, i);
		assert_int_equal(info.count, counts[i]);
		assert_true(info.flags & VFIO_IRQ_INFO_EVENTFD);
		assert_int_equal(!!(info.flags & VFIO_IRQ_INFO_AUTOMASKED), i == INTX);
	}
	info = (struct vfu_wire_irq_info){.argsz = sizeof(info), .index = 5};
	assert_int_equal(peer_call(t->p, VFU_CMD_DEVICE_GET_IRQ_INFO, &info, sizeof(info), NULL, 0, &info,
	                         sizeof(info)),
	        -EINVAL);
}

static void a_vector_signals_its_own_eventfd(void **state)
{
	struct irqs *t = *state;

	arm(t, MSIX, 4);
	assert_int_equal(vfu_irq(t->p->dev, 2), 1);
	assert_int_equal(vfu_irq(t->p->dev, 2), 1);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(peer_events(t->e[i]), i == 2 ? 2 : 0);
	assert_int_equal(vfu_irq(t->p->dev, 4), -EINVAL);
}

static void assigning_sets_enable_and_disabling_clears_it(void **state)
{
	struct irqs *t = *state;
	uint32_t at = vfu_cfg_cap(t->p->dev, PCI_CAP_ID_MSIX) + PCI_MSIX_FLAGS;
	struct test_counts before;

	test_counts_take(&before);
	assert_false(peer_cfg(t->p, at, 2) & PCI_MSIX_FLAGS_ENABLE);
	arm(t, MSIX, 4);
	assert_true(peer_cfg(t->p, at, 2) & PCI_MSIX_FLAGS_ENABLE);
	assert_int_equal(set(t, NONE | TRIG, MSIX, 0, 0), 0);
	assert_false(peer_cfg(t->p, at, 2) & PCI_MSIX_FLAGS_ENABLE);
	vfu_irq(t->p->dev, 0);
	assert_int_equal(peer_events(t->e[0]), 0);
	test_counts_same(&before);
}

static void a_vector_without_eventfd_is_pending_until_it_has_one(void **state)
{
	struct irqs *t = *state;
	uint64_t pba = 0;

	arm(t, MSIX, 1);
	assert_int_equal(vfu_irq(t->p->dev, 3), 0);
	assert_int_equal(peer_read(t->p, 0, PEER_PBA, &pba, 8), 0);
	assert_int_equal(pba, 1 << 3);
	assert_int_equal(peer_irqs(t->p, EVENT | TRIG, MSIX, 3, 1, NULL, 0, &t->e[3], 1), 0);
	assert_int_equal(peer_events(t->e[3]), 1);
	assert_int_equal(peer_read(t->p, 0, PEER_PBA, &pba, 8), 0);
	assert_int_equal(pba, 0);
}

static void taking_assignments_back_closes_them(void **state)
{
	struct irqs *t = *state;
	struct test_counts before;

	test_counts_take(&before);
	arm(t, MSIX, 2);
	assert_int_equal(set(t, EVENT | TRIG, MSIX, 0, 1), 0);
	assert_int_equal(vfu_irq(t->p->dev, 0), 0);
	assert_int_equal(vfu_irq(t->p->dev, 1), 1);
	assert_int_equal(peer_events(t->e[0]), 0);
	arm(t, MSIX, 2); /* replaces */
	assert_int_equal(peer_events(t->e[0]), 1);
	assert_int_equal(set(t, EVENT | TRIG, MSIX, 0, 2), 0);
	test_counts_same(&before);
}

static void a_masked_vector_is_pending_and_fires_once_at_unmask(void **state)
{
	struct irqs *t = *state;

	arm(t, MSIX, 4);
	assert_int_equal(set(t, NONE | MASK, MSIX, 1, 2), 0);
	assert_int_equal(vfu_irq(t->p->dev, 1), 0);
	assert_int_equal(vfu_irq(t->p->dev, 1), 0);
	assert_int_equal(vfu_irq(t->p->dev, 0), 1);
	assert_int_equal(peer_events(t->e[1]), 0);
	assert_int_equal(set(t, NONE | UNMASK, MSIX, 0, 4), 0);
	assert_int_equal(peer_events(t->e[1]), 1);
	assert_int_equal(peer_events(t->e[2]), 0);
}

static void booleans_choose_the_vectors(void **state)
{
	struct irqs *t = *state;

	arm(t, MSIX, 4);
	assert_int_equal(peer_irqs(t->p, BOOL | MASK, MSIX, 1, 3, "\0\1\0", 3, NULL, 0), 0);
	assert_int_equal(vfu_irq(t->p->dev, 1), 1);
	assert_int_equal(vfu_irq(t->p->dev, 2), 0);
	assert_int_equal(peer_irqs(t->p, BOOL | TRIG, MSIX, 0, 4, "\1\0\0\1", 4, NULL, 0), 0);
	assert_int_equal(peer_events(t->e[0]), 1);
	assert_int_equal(peer_events(t->e[1]), 1);
	assert_int_equal(peer_events(t->e[2]), 0);
	assert_int_equal(peer_events(t->e[3]), 1);
	assert_int_equal(peer_irqs(t->p, BOOL | UNMASK, MSIX, 2, 1, "\1", 1, NULL, 0), 0);
	assert_int_equal(peer_events(t->e[2]), 1);
}

static void the_table_keeps_what_is_written_and_its_mask_bit_holds_vectors_back(void **state)
{
	struct irqs *t = *state;
	uint32_t entry[4] = {0xfee00000, 1, 0x4041, 1}, back[4], control = 0;

	assert_int_equal(peer_read(t->p, 0, PEER_TABLE + 3 * ENTRY + CTRL, &control, 4), 0);
	assert_int_equal(control, 1); /* masked at power-on */
	arm(t, MSIX, 4);
	assert_int_equal(peer_write(t->p, 0, PEER_TABLE + ENTRY, entry, sizeof(entry)), 0);
	assert_int_equal(peer_read(t->p, 0, PEER_TABLE + ENTRY, back, sizeof(back)), 0);
	assert_memory_equal(entry, back, sizeof(entry));
	assert_int_equal(vfu_irq(t->p->dev, 1), 0);
	control = 0;
	assert_int_equal(peer_write(t->p, 0, PEER_TABLE + ENTRY + CTRL, &control, 4), 0);
	assert_int_equal(peer_events(t->e[1]), 1);
	assert_int_equal(t->p->reads, 0);
	assert_int_equal(t->p->writes, 0);
}

static void an_access_across_the_table_goes_to_each_owner(void **state)
{
	struct irqs *t = *state;
	uint8_t bytes[ENTRY * PEER_VECTORS + 16], back[sizeof(bytes)];

	memset(bytes, 0x5a, sizeof(bytes));
	assert_int_equal(peer_write(t->p, 0, PEER_TABLE - 8, bytes, sizeof(bytes)), 0);
	assert_int_equal(t->p->writes, 2);
	assert_int_equal(t->p->bar0[PEER_TABLE - 1], 0x5a);
	assert_int_equal(t->p->bar0[PEER_TABLE], 0);
	assert_int_equal(t->p->bar0[PEER_TABLE + ENTRY * PEER_VECTORS], 0x5a);
	assert_int_equal(peer_read(t->p, 0, PEER_TABLE - 8, back, sizeof(back)), 0);
	assert_memory_equal(bytes, back, sizeof(bytes));
	assert_int_equal(peer_write(t->p, 0, PEER_PBA - 4, bytes, 16), 0);
	assert_int_equal(peer_read(t->p, 0, PEER_PBA - 4, back, 16), 0);
	assert_int_equal(back[3], 0x5a);
	assert_int_equal(back[4], 0); /* pending bits are read-only */
	assert_int_equal(back[12], 0x5a);
}

static void function_mask_and_enable_hold_all_vectors_back(void **state)
{
	struct irqs *t = *state;
	uint32_t at = vfu_cfg_cap(t->p->dev, PCI_CAP_ID_MSIX) + PCI_MSIX_FLAGS;

	arm(t, MSIX, 4);
	peer_cfg_set(t->p, at, 2, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	assert_int_equal(vfu_irq(t->p->dev, 0), 0);
	assert_int_equal(peer_events(t->e[0]), 0);
	peer_cfg_set(t->p, at, 2, PCI_MSIX_FLAGS_ENABLE);
	assert_int_equal(peer_events(t->e[0]), 1);
	peer_cfg_set(t->p, at, 2, 0);
	assert_int_equal(vfu_irq(t->p->dev, 0), 0);
	vfu_irq_clear(t->p->dev);
	peer_cfg_set(t->p, at, 2, PCI_MSIX_FLAGS_ENABLE);
	assert_int_equal(peer_events(t->e[0]), 0);
}

static void assignments_survive_a_reset_and_pending_bits_do_not(void **state)
{
	struct irqs *t = *state;

	arm(t, MSIX, 4);
	assert_int_equal(set(t, NONE | MASK, MSIX, 1, 1), 0);
	vfu_irq(t->p->dev, 1);
	assert_int_equal(peer_call(t->p, VFU_CMD_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0), 0);
	assert_int_equal(set(t, NONE | UNMASK, MSIX, 1, 1), 0);
	assert_int_equal(peer_events(t->e[1]), 0);
	assert_int_equal(vfu_irq(t->p->dev, 1), 1);
}

static void msi_has_its_own_eventfds(void **state)
{
	struct irqs *t = *state;
	uint32_t at = vfu_cfg_cap(t->p->dev, PCI_CAP_ID_MSI) + PCI_MSI_FLAGS;

	arm(t, MSI, 2);
	assert_true(peer_cfg(t->p, at, 2) & PCI_MSI_FLAGS_ENABLE);
	assert_int_equal(vfu_irq(t->p->dev, 1), 1);
	assert_int_equal(peer_events(t->e[1]), 1);
	assert_int_equal(set(t, NONE | MASK, MSI, 0, 1), 0);
	assert_int_equal(vfu_irq(t->p->dev, 0), 0);
	assert_int_equal(set(t, NONE | UNMASK, MSI, 0, 1), 0);
	assert_int_equal(peer_events(t->e[0]), 1);
	assert_int_equal(set(t, NONE | TRIG, MSI, 0, 0), 0);
	assert_false(peer_cfg(t->p, at, 2) & PCI_MSI_FLAGS_ENABLE);
}

static void the_line_fires_once_and_again_at_unmask_while_it_is_asserted(void **state)
{
	struct irqs *t = *state;
	struct vfu_device *dev = t->p->dev;

	arm(t, INTX, 1);
	assert_int_equal(vfu_irq(dev, 0), 1);
	assert_int_equal(vfu_irq(dev, 0), 0);
	assert_int_equal(peer_events(t->e[0]), 1);
	assert_true(peer_cfg(t->p, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT);
	assert_int_equal(set(t, NONE | UNMASK, INTX, 0, 1), 0);
	assert_int_equal(peer_events(t->e[0]), 1);
	vfu_irq_clear(dev);
	assert_false(peer_cfg(t->p, PCI_STATUS, 2) & PCI_STATUS_INTERRUPT);
	assert_int_equal(set(t, NONE | UNMASK, INTX, 0, 1), 0);
	assert_int_equal(peer_events(t->e[0]), 0);
}

static void the_line_obeys_interrupt_disable(void **state)
{
	struct irqs *t = *state;

	arm(t, INTX, 1);
	peer_cfg_set(t->p, PCI_COMMAND, 2, PCI_COMMAND_INTX_DISABLE);
	assert_int_equal(vfu_irq(t->p->dev, 0), 0);
	peer_cfg_set(t->p, PCI_COMMAND, 2, 0);
	assert_int_equal(peer_events(t->e[0]), 1);
}

static void the_line_is_masked_and_unmasked_by_the_clients_eventfds(void **state)
{
	struct irqs *t = *state;
	struct pollfd fds[VFU_MAX_FDS];
	int mask = peer_event(), unmask = peer_event();

	arm(t, INTX, 1);
	assert_int_equal(peer_irqs(t->p, EVENT | MASK, INTX, 0, 1, NULL, 0, &mask, 1), 0);
	assert_int_equal(peer_irqs(t->p, EVENT | UNMASK, INTX, 0, 1, NULL, 0, &unmask, 1), 0);
	assert_int_equal(vfu_fds(t->p->dev, fds, VFU_MAX_FDS), 3);
	eventfd_write(mask, 1);
	peer_poll(t->p);
	assert_int_equal(vfu_irq(t->p->dev, 0), 0);
	eventfd_write(unmask, 1);
	peer_poll(t->p);
	assert_int_equal(peer_events(t->e[0]), 1);
	assert_int_equal(set(t, EVENT | UNMASK, INTX, 0, 1), 0);
	assert_int_equal(vfu_fds(t->p->dev, fds, VFU_MAX_FDS), 2);
	assert_int_equal(peer_irqs(t->p, EVENT | UNMASK, MSIX, 0, 1, NULL, 0, &unmask, 1), -ENOTSUP);
	close(mask);
	close(unmask);
}

static void error_and_request_are_bare_eventfds(void **state)
{
	struct irqs *t = *state;

	assert_int_equal(vfu_irq_err(t->p->dev), 0);
	arm(t, ERR, 1);
	assert_int_equal(peer_irqs(t->p, EVENT | TRIG, REQ, 0, 1, NULL, 0, &t->e[1], 1), 0);
	assert_int_equal(vfu_irq_err(t->p->dev), 1);
	assert_int_equal(peer_events(t->e[0]), 1);
	assert_int_equal(vfu_irq_req(t->p->dev), 1);
	assert_int_equal(peer_events(t->e[1]), 1);
	assert_int_equal(set(t, NONE | MASK, ERR, 0, 1), -EINVAL);
	assert_int_equal(set(t, NONE | TRIG, REQ, 0, 1), 0);
	assert_int_equal(peer_events(t->e[1]), 1);
	assert_int_equal(set(t, NONE | TRIG, REQ, 0, 0), 0);
	assert_int_equal(vfu_irq_req(t->p->dev), 0);
}

static void a_descriptor_that_is_no_eventfd_is_refused_and_closed(void **state)
{
	struct irqs *t = *state;
	struct test_counts before;
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	test_counts_take(&before);
	assert_int_equal(peer_irqs(t->p, EVENT | TRIG, MSIX, 0, 1, NULL, 0, &pipes[1], 1), -EINVAL);
	test_counts_same(&before);
	close(pipes[0]);
	close(pipes[1]);
}

static void a_full_counter_does_not_block_the_device(void **state)
{
	struct irqs *t = *state;
	int full = eventfd(0, EFD_CLOEXEC); /* blocking */

	assert_int_equal(eventfd_write(full, UINT64_MAX - 1), 0);
	assert_int_equal(peer_irqs(t->p, EVENT | TRIG, MSIX, 0, 1, NULL, 0, &full, 1), 0);
	assert_int_equal(vfu_irq(t->p->dev, 0), 1);
	close(full);
}

static void without_a_client_nobody_listens(void **state)
{
	struct irqs *t = *state;

	arm(t, MSIX, 4);
	peer_hang_up(t->p);
	peer_poll(t->p);
	assert_int_equal(vfu_irq(t->p->dev, 0), 0);
	assert_int_equal(peer_events(t->e[0]), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(each_index_says_what_it_has),
	        T(a_vector_signals_its_own_eventfd),
	        T(assigning_sets_enable_and_disabling_clears_it),
	        T(a_vector_without_eventfd_is_pending_until_it_has_one),
	        T(taking_assignments_back_closes_them),
	        T(a_masked_vector_is_pending_and_fires_once_at_unmask),
	        T(booleans_choose_the_vectors),
	        T(the_table_keeps_what_is_written_and_its_mask_bit_holds_vectors_back),
	        T(an_access_across_the_table_goes_to_each_owner),
	        T(function_mask_and_enable_hold_all_vectors_back),
	        T(assignments_survive_a_reset_and_pending_bits_do_not),
	        T(msi_has_its_own_eventfds),
	        T(the_line_fires_once_and_again_at_unmask_while_it_is_asserted),
	        T(the_line_obeys_interrupt_disable),
	        T(the_line_is_masked_and_unmasked_by_the_clients_eventfds),
	        T(error_and_request_are_bare_eventfds),
	        T(a_descriptor_that_is_no_eventfd_is_refused_and_closed),
	        T(a_full_counter_does_not_block_the_device),
	        T(without_a_client_nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
