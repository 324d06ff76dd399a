/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_function.h"
#include "vfio_kernel.h"
#include "le.h"
#include "log.h"
#include "vfio_user.h"

static struct fake_function t;

static int setup(void **state)
{
	struct rig_fake_options o = fake_function_options();

	(void)state;
	fake_function_open(&t, &o, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_function_close(&t);
	return 0;
}

static unsigned char *config(void)
{
	return rig_fake_memory(t.fake, RIG_VFIO_CONFIG);
}

static void what_was_taken_is_described(void **state)
{
	const struct rig_pci_info *i = rig_pci_info(t.pci);

	(void)state;
	assert_int_equal(i->vendor, 0x1234);
	assert_int_equal(i->device, 0x5258);
	assert_int_equal(i->subsystem_vendor, 0x1234);
	assert_int_equal(i->class_code, 0x120000);
	assert_int_equal(i->revision, 1);
	assert_null(i->bdf);
	assert_string_equal(i->transport, "fake");
	assert_int_equal(i->bar[0].bytes, 0x10000);
	assert_true(i->bar[0].mappable && i->bar[2].mappable && !i->bar[4].mappable);
	assert_int_equal(i->bar[1].bytes, 0);
	assert_true(i->resets);
	assert_int_equal(i->dma_page, 4096);
}

static void taking_and_giving_back_leave_the_device_as_it_was(void **state)
{
	struct rig_fake_options o = fake_function_options();
	struct fake_function other;
	unsigned char before[256];

	(void)state;
	memcpy(before, config(), sizeof(before));
	fake_function_open(&other, &o, NULL);
	assert_memory_equal(rig_fake_memory(other.fake, RIG_VFIO_CONFIG), before, sizeof(before));
	fake_function_close(&other);
}

static void bus_mastering_comes_only_when_asked_and_goes_at_the_end(void **state)
{
	struct rig_fake_options o = fake_function_options();
	struct rig_pci_taking po = {.ops = &rig_fake_ops};
	struct rig_pci *f;

	(void)state;
	assert_int_equal(rig_fake_make((struct rig_fake **)&po.transport, &o), 0);
	assert_int_equal(rig_pci_take(&f, &po), 0);
	unsigned char *c = rig_fake_memory(po.transport, RIG_VFIO_CONFIG);
	assert_int_equal(rig_get_le16(c + 4), 0);
	assert_int_equal(rig_pci_bus_master(f, true), 0);
	assert_int_equal(rig_get_le16(c + 4), 4);
	rig_pci_close(f);
	assert_int_equal(rig_get_le16(c + 4), 0);
	rig_fake_free(po.transport);
}

static void configuration_space_is_accessed_by_width(void **state)
{
	uint32_t v;

	(void)state;
	rig_put_le32(config() + 0x40, 0x44332211);
	assert_int_equal(rig_pci_config_read(t.pci, 0x40, 4, &v), 0);
	assert_int_equal(v, 0x44332211);
	assert_int_equal(rig_pci_config_read(t.pci, 0x42, 2, &v), 0);
	assert_int_equal(v, 0x4433);
	assert_int_equal(rig_pci_config_read(t.pci, 0x43, 1, &v), 0);
	assert_int_equal(v, 0x44);
	assert_int_equal(rig_pci_config_write(t.pci, 0x42, 1, 0xaa), 0);
	assert_int_equal(rig_get_le32(config() + 0x40), 0x44aa2211);
}

static void a_configuration_access_that_cannot_be_is_refused(void **state)
{
	static const unsigned bad[][2] = {
	        {0x41, 2}, {0x42, 4}, {0x40, 3}, {0x40, 8}, {0x40, 0}, {4096, 1}, {4094, 4}};
	uint32_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		v = 0;
		assert_int_equal(rig_pci_config_read(t.pci, bad[i][0], bad[i][1], &v), -EINVAL);
		assert_int_equal(v, UINT32_MAX);
		assert_int_equal(rig_pci_config_write(t.pci, bad[i][0], bad[i][1], 0), -EINVAL);
	}
	assert_int_equal(rig_pci_config_read(t.pci, 4092, 4, &v), 0);
}

/* Lists that end in a loop, so that a walk which trusts them would not end. */
static void capabilities_are_found_by_id_one_after_the_other_and_loops_end(void **state)
{
	unsigned char *c = config();

	(void)state;
	c[0x06] |= 0x10;
	c[0x34] = 0x40;
	memcpy(c + 0x40, (unsigned char[]){0x01, 0x50}, 2);
	memcpy(c + 0x50, (unsigned char[]){0x09, 0x60}, 2);
	memcpy(c + 0x60, (unsigned char[]){0x09, 0x40}, 2);
	rig_put_le32(c + 0x100, 0x14010001);
	rig_put_le32(c + 0x140, 0x10010003);
	assert_int_equal(rig_pci_capability(t.pci, 0x01, 0), 0x40);
	assert_int_equal(rig_pci_capability(t.pci, 0x09, 0), 0x50);
	assert_int_equal(rig_pci_capability(t.pci, 0x09, 0x50), 0x60);
	assert_int_equal(rig_pci_capability(t.pci, 0x11, 0), 0);
	assert_int_equal(rig_pci_extended_capability(t.pci, 0x0001, 0), 0x100);
	assert_int_equal(rig_pci_extended_capability(t.pci, 0x0003, 0), 0x140);
	assert_int_equal(rig_pci_extended_capability(t.pci, 0x0010, 0), 0);
	c[0x06] &= (unsigned char)~0x10;
	assert_int_equal(rig_pci_capability(t.pci, 0x01, 0), 0);
}

static void a_function_that_reads_all_ones_cannot_be_taken(void **state)
{
	struct rig_fake_options o = fake_function_options();
	struct rig_pci_taking po = {.ops = &rig_fake_ops};
	struct rig_fake *fake;
	struct rig_pci *f;

	(void)state;
	assert_int_equal(rig_fake_make(&fake, &o), 0);
	rig_fake_vanish(fake);
	po.transport = fake;
	assert_int_equal(rig_pci_take(&f, &po), -ENODEV);
	assert_null(f);
	assert_non_null(strstr(rig_error(), "all ones"));
	assert_int_equal(rig_fake_open_count(fake), 0);
	rig_fake_free(fake);
}

static void being_gone_is_sticky_keeps_its_first_reason_and_wakes_a_poller(void **state)
{
	struct pollfd p = {.fd = rig_pci_gone_fd(t.pci), .events = POLLIN};
	const char *why = "x";
	uint32_t v;

	(void)state;
	assert_false(rig_pci_gone(t.pci, &why));
	assert_null(why);
	assert_int_equal(poll(&p, 1, 0), 0);
	rig_fake_die(t.fake, "the first reason");
	rig_fake_die(t.fake, "another");
	assert_true(rig_pci_gone(t.pci, &why));
	assert_string_equal(why, "the first reason");
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(rig_pci_config_read(t.pci, 0, 4, &v), -ENODEV);
	assert_int_equal(v, UINT32_MAX);
	assert_non_null(strstr(rig_error(), "the first reason"));
	assert_int_equal(rig_pci_check(t.pci), -ENODEV);
}

static void a_check_finds_out_that_the_vendor_id_is_gone(void **state)
{
	const char *why;

	(void)state;
	assert_int_equal(rig_pci_check(t.pci), 0);
	rig_fake_vanish(t.fake);
	assert_false(rig_pci_gone(t.pci, NULL));
	assert_int_equal(rig_pci_check(t.pci), -ENODEV);
	assert_true(rig_pci_gone(t.pci, &why));
	assert_non_null(strstr(why, "0xffff"));
}

static void a_pci_address_where_nothing_is_says_so(void **state)
{
	struct rig_kernel_want want = {.bdf = "fffe:fe:1e.7"};
	struct rig_pci_taking o = {.begin = rig_kernel_begin, .arg = &want};
	struct rig_pci *f;

	(void)state;
	assert_int_equal(rig_pci_take(&f, &o), -ENOENT);
	assert_non_null(strstr(rig_error(), "fffe:fe:1e.7"));
}

static void a_socket_that_is_not_there_is_named(void **state)
{
	struct rig_vuser_want want = {.path = "/nonexistent/rig.sock"};
	struct rig_pci_taking o = {.begin = rig_vuser_begin, .arg = &want, .name = want.path};
	struct test_counts before;
	struct rig_pci *f;
	char longer[200];

	(void)state;
	test_counts_take(&before);
	assert_int_equal(rig_pci_take(&f, &o), -ENOENT);
	assert_non_null(strstr(rig_error(), "/nonexistent/rig.sock"));
	memset(longer, 'x', sizeof(longer));
	longer[199] = '\0';
	want.path = o.name = longer;
	assert_int_equal(rig_pci_take(&f, &o), -ENAMETOOLONG);
	test_counts_same(&before);
}

static void a_socket_that_hangs_up_at_once_is_closed_and_said_so(void **state)
{
	struct rig_pci_taking o = {.ops = &rig_vuser_ops};
	struct test_counts before;
	struct rig_pci *f;
	int pair[2];

	(void)state;
	test_counts_take(&before);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	close(pair[1]);
	assert_int_equal(rig_vuser_new(pair[0], 0, &o.transport), 0);
	assert_int_equal(rig_pci_take(&f, &o), -ENODEV);
	assert_non_null(strstr(rig_error(), "hung up"));
	test_counts_same(&before);
}

static void closing_nothing_is_allowed(void **state)
{
	(void)state;
	rig_pci_close(NULL);
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ON_FAKE(what_was_taken_is_described),
	        ON_FAKE(taking_and_giving_back_leave_the_device_as_it_was),
	        ON_FAKE(bus_mastering_comes_only_when_asked_and_goes_at_the_end),
	        ON_FAKE(configuration_space_is_accessed_by_width),
	        ON_FAKE(a_configuration_access_that_cannot_be_is_refused),
	        ON_FAKE(capabilities_are_found_by_id_one_after_the_other_and_loops_end),
	        cmocka_unit_test(a_function_that_reads_all_ones_cannot_be_taken),
	        ON_FAKE(being_gone_is_sticky_keeps_its_first_reason_and_wakes_a_poller),
	        ON_FAKE(a_check_finds_out_that_the_vendor_id_is_gone),
	        cmocka_unit_test(a_pci_address_where_nothing_is_says_so),
	        cmocka_unit_test(a_socket_that_is_not_there_is_named),
	        cmocka_unit_test(a_socket_that_hangs_up_at_once_is_closed_and_said_so),
	        cmocka_unit_test(closing_nothing_is_allowed),
	};

	return cmocka_run_group_tests_name("pci", tests, NULL, NULL);
}
