/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "fake_function.h"
#include "le.h"
#include "rig_win.h"

static struct fake_function t;
static unsigned accesses;
static struct rig_fake_access last;

static void note(void *arg, struct rig_fake_access *a)
{
	(void)arg;
	if (a->region == RIG_VFIO_CONFIG)
		return;
	accesses++;
	last = *a;
}

static int setup(void **state)
{
	struct rig_fake_options o = fake_function_options();

	(void)state;
	o.hook = note;
	fake_function_open(&t, &o, NULL);
	accesses = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_function_close(&t);
	return 0;
}

static unsigned char *bar(unsigned i)
{
	return rig_fake_memory(t.fake, i);
}

static struct rig_win window(unsigned i, uint64_t off, uint64_t len, unsigned flags)
{
	struct rig_win w;

	assert_int_equal(rig_pci_window(t.pci, i, off, len, flags, &w), 0);
	return w;
}

/* Every width, load and store, at an offset that has every byte different. */
static void check_widths(const struct rig_win *w, unsigned char *mem)
{
	for (unsigned i = 0; i < 32; i++)
		mem[i] = (unsigned char)(0x10 + i);
	assert_int_equal(rig_win_load8(w, 3), 0x13);
	assert_int_equal(rig_win_load16(w, 2), 0x1312);
	assert_int_equal(rig_win_load32(w, 4), 0x17161514);
	assert_true(rig_win_load64(w, 8) == UINT64_C(0x1f1e1d1c1b1a1918));
	assert_true(rig_win_load64_lohi(w, 8) == UINT64_C(0x1f1e1d1c1b1a1918));
	rig_win_store8(w, 0, 0xa1);
	rig_win_store16(w, 2, 0xb2b1);
	rig_win_store32(w, 4, 0xc4c3c2c1);
	rig_win_store64(w, 8, UINT64_C(0xd8d7d6d5d4d3d2d1));
	assert_int_equal(mem[0], 0xa1);
	assert_int_equal(mem[1], 0x11);
	assert_int_equal(rig_get_le16(mem + 2), 0xb2b1);
	assert_int_equal(rig_get_le32(mem + 4), 0xc4c3c2c1);
	assert_true(rig_get_le64(mem + 8) == UINT64_C(0xd8d7d6d5d4d3d2d1));
	assert_int_equal(mem[16], 0x20);
	rig_win_store64_lohi(w, 16, UINT64_C(0x1122334455667788));
	assert_true(rig_get_le64(mem + 16) == UINT64_C(0x1122334455667788));
}

static void a_window_inside_one_area_is_memory(void **state)
{
	struct rig_win w = window(0, 0x2000, 0x2000, 0);
	uint64_t messages = rig_pci_messages(t.pci);

	(void)state;
	assert_non_null(rig_win_host(&w));
	check_widths(&w, bar(0) + 0x2000);
	assert_int_equal(accesses, 0);
	assert_int_equal(rig_pci_messages(t.pci), messages);
}

static void a_window_outside_the_areas_sends_one_access_of_exactly_its_width(void **state)
{
	struct rig_win w = window(0, 0x100, 0x100, 0);

	(void)state;
	assert_null(rig_win_host(&w));
	check_widths(&w, bar(0) + 0x100);
	accesses = 0;
	(void)rig_win_load16(&w, 6);
	assert_int_equal(accesses, 1);
	assert_int_equal(last.offset, 0x106);
	assert_int_equal(last.len, 2);
	assert_false(last.write);
	rig_win_store64(&w, 0xf8, 1);
	assert_int_equal(accesses, 2);
	assert_int_equal(last.offset, 0x1f8);
	assert_int_equal(last.len, 8);
	assert_true(last.write);
}

static void a_window_can_be_kept_from_memory(void **state)
{
	struct rig_win w = window(2, 0, 0, RIG_WIN_MESSAGES);

	(void)state;
	assert_null(rig_win_host(&w));
	check_widths(&w, bar(2));
	assert_true(accesses > 10);
}

static void one_byte_more_than_an_area_is_not_mapped(void **state)
{
	struct rig_win inside = window(0, 0x8000, 0x1000, 0), one_more = window(0, 0x8000, 0x1001, 0),
	               before = window(0, 0x7ff8, 8, 0), across = window(0, 0x7ffc, 8, 0);

	(void)state;
	assert_non_null(rig_win_host(&inside));
	assert_null(rig_win_host(&one_more));
	assert_null(rig_win_host(&before));
	assert_null(rig_win_host(&across));
}

static void a_window_over_areas_and_holes_goes_to_memory_where_it_can(void **state)
{
	struct rig_win w = window(0, 0, 0, 0);
	uint64_t messages;

	(void)state;
	rig_put_le32(bar(0) + 0x2010, 0x12345678);
	rig_put_le32(bar(0) + 0x1010, 0x9abcdef0);
	messages = rig_pci_messages(t.pci);
	assert_int_equal(rig_win_load32(&w, 0x2010), 0x12345678);
	assert_int_equal(rig_pci_messages(t.pci), messages);
	assert_int_equal(rig_win_load32(&w, 0x1010), 0x9abcdef0);
	assert_int_equal(accesses, 1);
	rig_win_store32(&w, 0x8004, 7);
	assert_int_equal(accesses, 1);
	assert_int_equal(rig_get_le32(bar(0) + 0x8004), 7);
}

static void bulk_access_over_areas_and_holes_moves_every_byte(void **state)
{
	static unsigned char in[0x10000], out[0x10000];
	struct rig_win w = window(0, 0x10, 0, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i * 7 + i / 256);
	rig_win_write(&w, 3, in, 0x9000);
	assert_memory_equal(bar(0) + 0x13, in, 0x9000);
	assert_int_equal(bar(0)[0x9013], 0);
	assert_int_equal(accesses, 3); /* the holes before, between and behind the areas */
	rig_win_read(&w, 3, out, 0x9000);
	assert_memory_equal(out, in, 0x9000);
	assert_int_equal(accesses, 6);
}

static void a_window_outside_its_bar_is_refused(void **state)
{
	static const uint64_t bad[][3] = {
	        {1, 0, 8},
	        {6, 0, 8},
	        {0, 0x10000, 0},
	        {0, 0x10000, 8},
	        {0, 0xfffc, 8},
	        {0, 8, UINT64_MAX},
	        {0, UINT64_MAX, 8},
	};
	struct rig_win w;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
		        rig_pci_window(t.pci, (unsigned)bad[i][0], bad[i][1], bad[i][2], 0, &w), -EINVAL);
		assert_true(rig_error()[0] != '\0');
	}
	assert_int_equal(rig_win_bytes(&(struct rig_win){.len = 3}), 3);
	assert_int_equal(window(0, 0xfff8, 8, 0).len, 8);
	assert_int_equal(window(0, 0xfff8, 0, 0).len, 8);
}

static void an_access_outside_a_window_reads_ones_and_writes_nothing(void **state)
{
	struct rig_win w = window(4, 0x10, 0x10, 0);
	unsigned char buf[8] = {0};

	(void)state;
	assert_int_equal(rig_win_load32(&w, 0x10), UINT32_MAX);
	assert_int_equal(rig_win_load32(&w, 0xfffffff0), UINT32_MAX);
	rig_win_store32(&w, 0x10, 5);
	rig_win_write(&w, 0xc, buf, 8);
	rig_win_read(&w, 0xc, buf, 8);
	assert_int_equal(buf[7], 0xff);
	assert_int_equal(accesses, 0);
}

static void the_first_window_makes_the_function_answer_in_its_bars(void **state)
{
	unsigned char *config = rig_fake_memory(t.fake, RIG_VFIO_CONFIG);

	(void)state;
	assert_int_equal(rig_get_le16(config + 4) & 2, 0);
	(void)window(0, 0, 0, 0);
	assert_int_equal(rig_get_le16(config + 4), 2);
	assert_int_equal(rig_pci_memory_decode(t.pci, false), 0);
	assert_int_equal(rig_get_le16(config + 4), 0);
}

static void after_gone_windows_read_ones_and_drop_writes(void **state)
{
	struct rig_win mapped = window(2, 0, 0, 0), asked = window(4, 0, 0, 0), half = window(0, 0, 0, 0);
	unsigned char buf[16] = {0};

	(void)state;
	rig_win_store32(&mapped, 0x100, 1);
	rig_win_store32(&asked, 0x100, 1);
	rig_fake_die(t.fake, "test");
	assert_int_equal(rig_win_load32(&mapped, 0x100), UINT32_MAX);
	assert_int_equal(rig_win_load8(&mapped, 0xfffff), 0xff);
	assert_int_equal(rig_win_load32(&asked, 0x100), UINT32_MAX);
	assert_int_equal(rig_win_load64(&half, 0x2000), UINT64_MAX);
	rig_win_store32(&mapped, 0x200, 0x5a5a5a5a);
	rig_win_store32(&asked, 0x200, 0x5a5a5a5a);
	rig_win_write(&half, 0x1ff8, buf, 16);
	assert_int_equal(rig_get_le32(bar(2) + 0x200), 0);
	assert_int_equal(rig_get_le32(bar(4) + 0x200), 0);
	assert_int_equal(rig_get_le32(bar(2) + 0x100), 1);
	rig_win_read(&half, 0x1ff8, buf, 16);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(buf[i], 0xff);
}

static void a_live_window_that_reads_ones_finds_the_function_gone(void **state)
{
	struct rig_win live = window(4, 0, 0, RIG_WIN_LIVE), plain = window(4, 0, 0, 0);

	(void)state;
	rig_put_le32(bar(4) + 8, UINT32_MAX);
	assert_int_equal(rig_win_load32(&live, 8), UINT32_MAX);
	assert_false(rig_pci_gone(t.pci, NULL)); /* the vendor id is there */
	rig_fake_vanish(t.fake);
	assert_int_equal(rig_win_load32(&plain, 0), UINT32_MAX);
	assert_false(rig_pci_gone(t.pci, NULL));
	assert_int_equal(rig_win_load32(&live, 0), UINT32_MAX);
	assert_true(rig_pci_gone(t.pci, NULL));
}

static void flushing_reads_back(void **state)
{
	struct rig_win w = window(4, 0, 0, 0);

	(void)state;
	rig_flush_posted(&w, 0x20);
	assert_int_equal(accesses, 1);
	assert_int_equal(last.offset, 0x20);
	assert_false(last.write);
}

static void a_child_of_fork_has_no_window(void **state)
{
	struct rig_win w = window(2, 0, 0, 0);

	(void)state;
	rig_win_write(&w, 0, "parent's", 8);
	assert_false(child_sees(rig_win_host(&w), "parent's"));
	assert_true(child_sees(bar(2), "parent's"));
}

#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ON_FAKE(a_window_inside_one_area_is_memory),
	        ON_FAKE(a_window_outside_the_areas_sends_one_access_of_exactly_its_width),
	        ON_FAKE(a_window_can_be_kept_from_memory),
	        ON_FAKE(one_byte_more_than_an_area_is_not_mapped),
	        ON_FAKE(a_window_over_areas_and_holes_goes_to_memory_where_it_can),
	        ON_FAKE(bulk_access_over_areas_and_holes_moves_every_byte),
	        ON_FAKE(a_window_outside_its_bar_is_refused),
	        ON_FAKE(an_access_outside_a_window_reads_ones_and_writes_nothing),
	        ON_FAKE(the_first_window_makes_the_function_answer_in_its_bars),
	        ON_FAKE(after_gone_windows_read_ones_and_drop_writes),
	        ON_FAKE(a_live_window_that_reads_ones_finds_the_function_gone),
	        ON_FAKE(flushing_reads_back),
	        ON_FAKE(a_child_of_fork_has_no_window),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
