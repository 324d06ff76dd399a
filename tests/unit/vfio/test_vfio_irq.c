/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_function.h"
#include "rig_pci.h"
#include "le.h"

static struct fake_function t;
static int ev[4];

static int setup(void **state)
{
	struct rig_fake_options o = fake_function_options();

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		ev[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fake_function_open(&t, &o, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_function_close(&t);
	for (unsigned i = 0; i < 4; i++)
		close(ev[i]);
	return 0;
}

static uint64_t count(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static void a_vector_adds_to_its_eventfd_and_to_no_other(void **state)
{
	(void)state;
	assert_int_equal(rig_pci_irq_count(t.pci, RIG_IRQ_MSIX), 4);
	assert_int_equal(rig_pci_irq_count(t.pci, RIG_IRQ_MSI), 0);
	assert_int_equal(rig_pci_irq_count(t.pci, RIG_IRQ_KINDS), 0);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 1, 2, ev), 0);
	assert_false(rig_fake_fire(t.fake, RIG_IRQ_MSIX, 0));
	assert_true(rig_fake_fire(t.fake, RIG_IRQ_MSIX, 2));
	assert_int_equal(count(ev[0]), 0);
	assert_int_equal(count(ev[1]), 1);
}

static void vectors_outside_the_range_stay_as_they_are(void **state)
{
	int one_off[2] = {-1, ev[3]};

	(void)state;
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 0, 2, ev), 0);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 2, 2, ev + 2), 0);
	assert_int_equal(rig_fake_connected(t.fake), 4);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 1, 2, one_off), 0);
	assert_int_equal(rig_fake_connected(t.fake), 3);
	assert_true(rig_fake_fire(t.fake, RIG_IRQ_MSIX, 0));
	assert_false(rig_fake_fire(t.fake, RIG_IRQ_MSIX, 1));
	assert_true(rig_fake_fire(t.fake, RIG_IRQ_MSIX, 2));
	assert_int_equal(count(ev[0]), 1);
	assert_int_equal(count(ev[3]), 1);
}

static void after_disabling_nothing_fires_and_again_sends_nothing(void **state)
{
	uint64_t messages;

	(void)state;
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 0, 4, ev), 0);
	assert_int_equal(rig_pci_irq_disable(t.pci, RIG_IRQ_MSIX), 0);
	assert_int_equal(rig_fake_connected(t.fake), 0);
	messages = rig_pci_messages(t.pci);
	assert_int_equal(rig_pci_irq_disable(t.pci, RIG_IRQ_MSIX), 0);
	assert_int_equal(rig_pci_irq_disable(t.pci, RIG_IRQ_INTX), 0);
	assert_int_equal(rig_pci_messages(t.pci), messages);
	assert_int_equal(rig_pci_irq_disable(t.pci, RIG_IRQ_KINDS), -EINVAL);
}

static void a_range_outside_is_refused(void **state)
{
	(void)state;
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 0, 0, ev), -EINVAL);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 1, 4, ev), -EINVAL);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 5, 1, ev), -EINVAL);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 1, UINT32_MAX, ev), -EINVAL);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSI, 0, 1, ev), -EINVAL);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_KINDS, 0, 1, ev), -EINVAL);
}

static void pin_and_message_interrupts_exclude_each_other(void **state)
{
	(void)state;
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 0, 1, ev), 0);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_INTX, 0, 1, ev), -EBUSY);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_ERR, 0, 1, ev), 0);
	assert_int_equal(rig_pci_irq_disable(t.pci, RIG_IRQ_MSIX), 0);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_INTX, 0, 1, ev), 0);
	assert_int_equal(rig_pci_irq_unmask(t.pci, RIG_IRQ_INTX), 0);
	assert_int_equal(rig_pci_irq_unmask(t.pci, RIG_IRQ_MSIX), -EINVAL);
}

static void a_descriptor_that_is_none_changes_nothing(void **state)
{
	int bad[2] = {ev[0], 9999};

	(void)state;
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 0, 2, bad), -EBADF);
	assert_int_equal(rig_fake_connected(t.fake), 0);
}

static void the_caller_may_close_its_descriptor(void **state)
{
	int own = dup(ev[0]);

	(void)state;
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 0, 1, &own), 0);
	close(own);
	assert_true(rig_fake_fire(t.fake, RIG_IRQ_MSIX, 0));
	assert_int_equal(count(ev[0]), 1);
}

static void a_reset_restores_command_and_interrupts(void **state)
{
	unsigned char *config = rig_fake_memory(t.fake, RIG_VFIO_CONFIG);

	(void)state;
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_MSIX, 1, 2, ev), 0);
	assert_int_equal(rig_pci_irq_enable(t.pci, RIG_IRQ_ERR, 0, 1, ev + 3), 0);
	assert_int_equal(rig_pci_bus_master(t.pci, true), 0);
	assert_int_equal(rig_pci_memory_decode(t.pci, true), 0);
	rig_fake_slow_reset(t.fake, 3);
	assert_int_equal(rig_pci_reset(t.pci), 0);
	assert_int_equal(rig_fake_resets(t.fake), 1);
	assert_int_equal(rig_get_le16(config + 4), 6);
	assert_int_equal(rig_fake_connected(t.fake), 3);
	assert_true(rig_fake_fire(t.fake, RIG_IRQ_MSIX, 2));
	assert_int_equal(count(ev[1]), 1);
	assert_true(rig_fake_fire(t.fake, RIG_IRQ_ERR, 0));
	assert_int_equal(count(ev[3]), 1);
}

/* MSI-X of four, of which the system has two to give. */
static void a_reset_arms_no_more_vectors_than_were_enabled(void **state)
{
	struct rig_fake_options o = fake_function_options();
	struct fake_function other;

	(void)state;
	o.irqs_taken = 2;
	fake_function_open(&other, &o, NULL);
	assert_int_equal(rig_pci_irq_enable(other.pci, RIG_IRQ_MSIX, 0, 3, ev), -ENOSPC);
	assert_int_equal(rig_pci_irq_enable(other.pci, RIG_IRQ_MSIX, 0, 2, ev), 0);
	assert_int_equal(rig_pci_reset(other.pci), 0);
	assert_int_equal(rig_fake_connected(other.fake), 2);
	fake_function_close(&other);
}

static void a_function_that_never_comes_back_is_gone(void **state)
{
	struct rig_fake_options o = fake_function_options();
	struct rig_pci_taking po = {.reset_ms = 5};
	struct fake_function other;
	const char *why;

	(void)state;
	fake_function_open(&other, &o, &po);
	rig_fake_slow_reset(other.fake, UINT32_MAX);
	assert_int_equal(rig_pci_reset(other.pci), -ETIMEDOUT);
	assert_non_null(strstr(rig_error(), "0xffff"));
	assert_true(rig_pci_gone(other.pci, &why));
	assert_int_equal(rig_pci_reset(other.pci), -ENODEV);
	fake_function_close(&other);
}

static void a_function_without_reset_says_so(void **state)
{
	struct rig_fake_options o = fake_function_options();
	struct fake_function other;

	(void)state;
	o.no_reset = true;
	fake_function_open(&other, &o, NULL);
	assert_int_equal(rig_pci_reset(other.pci), -ENOTSUP);
	fake_function_close(&other);
}

static void a_reset_that_fails_leaves_dma_forbidden(void **state)
{
	unsigned char *config = rig_fake_memory(t.fake, RIG_VFIO_CONFIG);

	(void)state;
	assert_int_equal(rig_pci_bus_master(t.pci, true), 0);
	rig_fake_fail_at(t.fake, 3); /* COMMAND is read and written first */
	assert_int_equal(rig_pci_reset(t.pci), -EIO);
	assert_int_equal(rig_get_le16(config + 4), 0);
	assert_false(rig_pci_gone(t.pci, NULL));
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ON_FAKE(a_vector_adds_to_its_eventfd_and_to_no_other),
	        ON_FAKE(vectors_outside_the_range_stay_as_they_are),
	        ON_FAKE(after_disabling_nothing_fires_and_again_sends_nothing),
	        ON_FAKE(a_range_outside_is_refused),
	        ON_FAKE(pin_and_message_interrupts_exclude_each_other),
	        ON_FAKE(a_descriptor_that_is_none_changes_nothing),
	        ON_FAKE(the_caller_may_close_its_descriptor),
	        ON_FAKE(a_reset_restores_command_and_interrupts),
	        ON_FAKE(a_reset_arms_no_more_vectors_than_were_enabled),
	        ON_FAKE(a_function_that_never_comes_back_is_gone),
	        ON_FAKE(a_function_without_reset_says_so),
	        ON_FAKE(a_reset_that_fails_leaves_dma_forbidden),
	};

	return cmocka_run_group_tests_name("irq and reset", tests, NULL, NULL);
}
