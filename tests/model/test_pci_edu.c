/* SPDX-License-Identifier: MIT */
/* rig_pci.h on a model of QEMU's edu behind a socket, and example 08 on the same. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rig_pci.h"
#include "system.h"

#define BAR_BYTES   (UINT64_C(1) << 20)
#define ID          0x00u
#define LIVENESS    0x04u
#define IRQ_RAISE   0x60u
#define SOURCE      0x80u
#define EDU         0x010000edu
#define CAP_MSI     0x05u
#define CAP_EXPRESS 0x10u
#define CAP_NONE    0x7fu

static struct sys_process server;

static bool has_socket(void *arg)
{
	(void)arg;
	return !access(sys_path("edu"), F_OK);
}

static const char *device(void)
{
	static char text[512];

	snprintf(text, sizeof(text), "vfio-user:%s", sys_path("edu"));
	return text;
}

static int serve(void **state)
{
	char command[512];
	int err = sys_setup(state);

	snprintf(command, sizeof(command), EDU_MODEL " %s", sys_path("edu"));
	sys_start(&server, command);
	sys_await(has_socket, NULL, "the model's socket");
	return err;
}

static int end(void **state)
{
	struct sys_result result;

	kill(server.pid, SIGTERM);
	sys_finish(&server, &result);
	return sys_teardown(state);
}

static struct rig_pci *open_edu(void)
{
	struct rig_pci *f;

	if (rig_pci_open(device(), NULL, &f))
		fail_msg("%s", rig_error());
	return f;
}

static void the_example_moves_a_page_and_back(void **state)
{
	struct sys_result result;
	char command[1024];

	(void)state;
	snprintf(command, sizeof(command), EXAMPLE " %s", device());
	sys_run(&result, command);
	sys_assert_done(&result);
	assert_string_equal(result.out,
	        "edu 0x010000ed over vfio-user: 10! is 3628800, and byte 4095 came back as 0x5a\n");
	sys_run(&result, EXAMPLE);
	assert_int_equal(result.status, 1);
	assert_non_null(strstr(result.err, "PCI address"));
}

static void a_function_says_what_it_is(void **state)
{
	struct rig_pci *f = open_edu();
	const struct rig_pci_info *info = rig_pci_info(f);
	struct rig_pci_area area;
	unsigned msi = rig_pci_capability(f, CAP_MSI, 0);
	uint32_t head;

	(void)state;
	assert_int_equal(info->vendor, 0x1234);
	assert_int_equal(info->device, 0x11e8);
	assert_int_equal(info->bar[0].bytes, BAR_BYTES);
	assert_false(info->bar[0].mappable);
	assert_int_equal(rig_pci_areas(f, 0, &area, 1), 0);
	assert_int_equal(rig_pci_areas(f, 9, &area, 1), 0);
	assert_int_not_equal(msi, 0);
	assert_int_equal(rig_pci_config_read(f, msi, 1, &head), 0);
	assert_int_equal(head, CAP_MSI);
	assert_int_not_equal(rig_pci_capability(f, CAP_EXPRESS, 0), 0);
	assert_int_equal(rig_pci_capability(f, CAP_MSI, msi), 0);
	assert_int_equal(rig_pci_capability(f, CAP_NONE, 0), 0);
	assert_int_equal(rig_pci_extended_capability(f, 1, 0), 0);
	rig_pci_close(f);
}

static void accesses_by_width_are_those_of_the_window(void **state)
{
	struct rig_pci *f = open_edu();
	struct rig_win regs;
	uint64_t value;

	(void)state;
	assert_int_equal(rig_pci_window(f, 0, 0, 0x100, 0, &regs), 0);
	assert_int_equal(rig_win_load(&regs, ID, 4, &value), 0);
	assert_int_equal(value, EDU);
	assert_int_equal(rig_win_store(&regs, LIVENESS, 4, 0x12345678), 0);
	assert_int_equal(rig_win_load32(&regs, LIVENESS), ~0x12345678u);
	assert_int_equal(rig_win_store(&regs, SOURCE, 8, UINT64_C(0x123456789)), 0);
	assert_true(rig_win_load64(&regs, SOURCE) == UINT64_C(0x123456789));
	assert_int_equal(rig_win_load(&regs, ID, 3, &value), -EINVAL);
	assert_non_null(strstr(rig_error(), "3 bytes at 0"));
	assert_int_equal(rig_win_load(&regs, 2, 4, &value), -EINVAL);
	assert_int_equal(rig_win_load(&regs, 0x100, 4, &value), -EINVAL);
	assert_true(value == UINT64_MAX);
	assert_int_equal(rig_win_store(&regs, UINT64_MAX - 3, 4, 0), -EINVAL);
	rig_pci_close(f);
}

static void memory_lies_in_the_free_iovas_below_the_mask(void **state)
{
	struct rig_pci *f = open_edu();
	struct rig_pci_iova before[8], after[8];
	struct rig_dma memory;
	unsigned n;

	(void)state;
	assert_int_equal(rig_pci_set_dma_mask(f, 28), 0);
	n = rig_pci_iovas(f, before, 8);
	assert_int_equal(n, 1);
	assert_true(before[0].last == (UINT64_C(1) << 28) - 1);
	assert_int_equal(rig_dma_alloc(f, 4096, 0, &memory), 0);
	assert_true(memory.iova >= before[0].first && memory.iova + 4095 <= before[0].last);
	n = rig_pci_iovas(f, after, 8);
	assert_in_range(n, 1, 2);
	for (unsigned i = 0; i < n; i++)
		assert_true(after[i].last < memory.arena_iova ||
		            after[i].first >= memory.arena_iova + memory.arena_bytes);
	rig_dma_free(f, &memory);
	rig_pci_close(f);
}

static void an_interrupt_reaches_the_eventfd(void **state)
{
	struct pollfd event = {.fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN};
	struct rig_pci *f = open_edu();
	struct rig_win regs;

	(void)state;
	assert_int_equal(rig_pci_irq_count(f, RIG_IRQ_MSI), 1);
	assert_int_equal(rig_pci_irq_enable(f, RIG_IRQ_MSI, 0, 1, &event.fd), 0);
	assert_int_equal(rig_pci_bus_master(f, true), 0);
	assert_int_equal(rig_pci_window(f, 0, 0, 0, 0, &regs), 0);
	rig_win_store32(&regs, IRQ_RAISE, 1);
	assert_int_equal(poll(&event, 1, SYS_DEADLINE_MS), 1);
	rig_pci_close(f);
	close(event.fd);
}

static void what_no_driver_reads_is_refused_by_name(void **state)
{
	static const struct {
		const char *options, *says;
	} cases[] = {{",hang=2s", "option hang"}, {",completion=store", "option completion"},
	        {",dma=dmabuf", "option dma"}, {",firmware=/x", "option firmware"},
	        {",poller=0", "option poller"}, {",nothing=1", "option nothing"}};
	struct rig_pci_options options = {.version = RIG_EDGE_VERSION + 1};
	struct rig_pci *f = (struct rig_pci *)1;
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", device(), cases[i].options);
		assert_int_equal(rig_pci_open(text, NULL, &f), -EINVAL);
		assert_null(f);
		if (!strstr(rig_error(), cases[i].says))
			fail_msg("%s: %s", text, rig_error());
	}
	assert_int_equal(rig_pci_open(device(), &options, &f), -EINVAL);
	assert_non_null(strstr(rig_error(), "version"));
	options = (struct rig_pci_options){.version = RIG_EDGE_VERSION, .vf_token = "x"};
	assert_int_equal(rig_pci_open(device(), &options, &f), -EINVAL);
	assert_non_null(strstr(rig_error(), "of PCI functions"));
	assert_int_equal(rig_pci_open("0000:00:1f.7", &options, &f), -EINVAL);
	assert_non_null(strstr(rig_error(), "a UUID"));
}

static int count(void *arg, const struct rig_pci_finding *finding)
{
	assert_non_null(finding->text);
	assert_int_not_equal(finding->id[0], 0);
	++*(unsigned *)arg;
	return 0;
}

static int stop(void *arg, const struct rig_pci_finding *finding)
{
	(void)arg;
	(void)finding;
	return 7;
}

static void the_doctor_says_what_is_in_the_way_of_a_function_that_is_not_there(void **state)
{
	unsigned findings = 0;

	(void)state;
	assert_int_equal(rig_pci_doctor("fffe:ff:1f.7", count, &findings), 0);
	assert_int_not_equal(findings, 0);
	assert_int_equal(rig_pci_doctor("fffe:ff:1f.7", stop, NULL), 7);
	assert_int_equal(rig_pci_doctor("65:00", count, &findings), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_example_moves_a_page_and_back),
	        cmocka_unit_test(a_function_says_what_it_is),
	        cmocka_unit_test(accesses_by_width_are_those_of_the_window),
	        cmocka_unit_test(memory_lies_in_the_free_iovas_below_the_mask),
	        cmocka_unit_test(an_interrupt_reaches_the_eventfd),
	        cmocka_unit_test(what_no_driver_reads_is_refused_by_name),
	        cmocka_unit_test(the_doctor_says_what_is_in_the_way_of_a_function_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, serve, end);
}
