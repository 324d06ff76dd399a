/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "le.h"
#include "vfio_user_parse.h"

static const char *why;

/* -- Headers -- */

static void header(unsigned char *h, uint16_t command, uint32_t size, uint32_t flags)
{
	memset(h, 0, 16);
	rig_put_le16(h + 2, command);
	rig_put_le32(h + 4, size);
	rig_put_le32(h + 8, flags);
}

static void a_header_says_what_its_bytes_say(void **state)
{
	struct rig_vuser_header out;
	unsigned char h[16];

	(void)state;
	header(h, 9, 32, 1);
	rig_put_le16(h, 0xbeef);
	rig_put_le32(h + 12, 22);
	assert_int_equal(rig_vuser_parse_header(h, 16, 64, &out, &why), 0);
	assert_int_equal(out.id, 0xbeef);
	assert_int_equal(out.command, 9);
	assert_int_equal(out.size, 32);
	assert_int_equal(out.flags, 1);
	assert_int_equal(out.error, 22);
}

static void a_header_of_nonsense_is_refused(void **state)
{
	static const struct {
		uint16_t command;
		uint32_t size, flags;
		size_t len;
	} bad[] = {
	        {9, 32, 1, 15},
	        {9, 15, 1, 16},
	        {9, 0, 1, 16},
	        {9, 65, 1, 16},
	        {9, UINT32_MAX, 1, 16},
	        {0, 32, 1, 16},
	        {14, 32, 1, 16},
	        {65535, 32, 1, 16},
	        {9, 32, 2, 16},
	        {9, 32, 15, 16},
	};
	struct rig_vuser_header out;
	unsigned char h[16];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		header(h, bad[i].command, bad[i].size, bad[i].flags);
		why = NULL;
		assert_int_equal(rig_vuser_parse_header(h, bad[i].len, 64, &out, &why), -EPROTO);
		assert_non_null(why);
	}
	header(h, 9, 64, 1);
	assert_int_equal(rig_vuser_parse_header(h, 16, 64, &out, &why), 0);
}

/* -- The version -- */

static int version(const char *json, size_t json_len, struct rig_vuser_caps *caps)
{
	unsigned char bytes[8192] = {0, 0, 1, 0};

	memcpy(bytes + 4, json, json_len);
	return rig_vuser_parse_version(bytes, 4 + json_len, caps, &why);
}

static void a_version_without_capabilities_means_the_defaults(void **state)
{
	struct rig_vuser_caps caps;

	(void)state;
	assert_int_equal(version("", 0, &caps), 0);
	assert_int_equal(caps.minor, 1);
	assert_int_equal(caps.max_fds, 1);
	assert_int_equal(caps.max_xfer, 1048576);
	assert_int_equal(caps.max_maps, 65535);
	assert_int_equal(caps.page_sizes, 4096);
	assert_int_equal(version("{}", 3, &caps), 0);
	assert_int_equal(caps.max_maps, 65535);
}

static void capabilities_are_read_and_unknown_ones_passed_over(void **state)
{
	static const char json[] =
	        "{\"x\":[[1]],\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":64,"
	        "\"max_dma_maps\":3,\"pgsizes\":2101248,\"twin_socket\":{\"supported\":false}}}";
	struct rig_vuser_caps caps;

	(void)state;
	assert_int_equal(version(json, sizeof(json), &caps), 0);
	assert_int_equal(caps.max_fds, 8);
	assert_int_equal(caps.max_xfer, 64);
	assert_int_equal(caps.max_maps, 3);
	assert_int_equal(caps.page_sizes, 2101248);
}

static void capabilities_that_nothing_can_work_with_are_refused(void **state)
{
	static const char *const bad[] = {
	        "{",
	        "[]",
	        "7",
	        "nonsense",
	        "{\"capabilities\":7}",
	        "{\"capabilities\":{\"max_msg_fds\":0}}",
	        "{\"capabilities\":{\"max_msg_fds\":\"8\"}}",
	        "{\"capabilities\":{\"max_msg_fds\":-1}}",
	        "{\"capabilities\":{\"max_data_xfer_size\":7}}",
	        "{\"capabilities\":{\"max_data_xfer_size\":1.5}}",
	        "{\"capabilities\":{\"max_dma_maps\":0}}",
	        "{\"capabilities\":{\"pgsizes\":0}}",
	        "[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]",
	};
	struct rig_vuser_caps caps;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why = NULL;
		assert_int_equal(version(bad[i], strlen(bad[i]) + 1, &caps), -EPROTO);
		assert_non_null(why);
	}
	/* Without its NUL, and with nothing but bytes. */
	assert_int_equal(version("{}", 2, &caps), -EPROTO);
	assert_int_equal(version("\xff\xfe\x00", 3, &caps), -EPROTO);
	assert_int_equal(rig_vuser_parse_version("\0\0\1", 3, &caps, &why), -EPROTO);
}

static void huge_capabilities_are_cut_to_what_is_useful(void **state)
{
	static const char json[] = "{\"capabilities\":{\"max_msg_fds\":4000000000,"
	                           "\"max_data_xfer_size\":9000000000000000000}}";
	struct rig_vuser_caps caps;

	(void)state;
	assert_int_equal(version(json, sizeof(json), &caps), 0);
	assert_true(caps.max_fds <= 253);
	assert_true(caps.max_xfer <= UINT64_C(16) << 20);
}

static void what_is_written_is_read_back(void **state)
{
	struct rig_vuser_caps ours = {.max_fds = 5, .max_xfer = 4096, .max_maps = 9, .page_sizes = 4096},
	                      back = {0};
	char text[256];
	int n = rig_vuser_json_write(&ours, text, sizeof(text));

	(void)state;
	assert_int_equal(n, strlen(text) + 1);
	assert_int_equal(version(text, (size_t)n, &back), 0);
	assert_int_equal(back.max_fds, 5);
	assert_int_equal(back.max_maps, 9);
	assert_int_equal(rig_vuser_json_write(&ours, text, (size_t)n - 1), -ENOSPC);
}

/* -- Regions -- */

/* A region info of 64 KiB with `areas` areas of one sparse capability. */
static size_t region(unsigned char *b, uint32_t flags, unsigned areas, const uint64_t (*area)[2])
{
	size_t len = 32 + 8 + 8 + 16 * areas;

	memset(b, 0, len);
	rig_put_le32(b, (uint32_t)len);
	rig_put_le32(b + 4, flags);
	rig_put_le32(b + 8, 2);
	rig_put_le32(b + 12, 32);
	rig_put_le64(b + 16, 0x10000);
	rig_put_le64(b + 24, 0x7000);
	rig_put_le16(b + 32, 1);
	rig_put_le16(b + 34, 1);
	rig_put_le32(b + 40, areas);
	for (unsigned i = 0; i < areas; i++) {
		rig_put_le64(b + 48 + 16 * i, area[i][0]);
		rig_put_le64(b + 56 + 16 * i, area[i][1]);
	}
	return len;
}

static int parse(const unsigned char *b, size_t len, struct rig_vfio_region *r)
{
	why = NULL;
	return rig_vuser_parse_region(b, len, 2, r, &why);
}

static void sparse_areas_come_out_sorted(void **state)
{
	static const uint64_t area[][2] = {{0x4000, 0x1000}, {0, 0x1000}, {0x3000, 0}, {0xf000, 0x1000}};
	struct rig_vfio_region r;
	unsigned char b[256];
	size_t len = region(b, 0xf, 4, area);

	(void)state;
	assert_int_equal(parse(b, len, &r), 0);
	assert_true(r.readable && r.writable);
	assert_int_equal(r.bytes, 0x10000);
	assert_int_equal(r.fd_offset, 0x7000);
	assert_int_equal(r.fd, -1);
	assert_int_equal(r.areas, 3);
	assert_int_equal(r.area[0].offset, 0);
	assert_int_equal(r.area[1].offset, 0x4000);
	assert_int_equal(r.area[2].offset, 0xf000);
}

static void a_mappable_region_without_areas_is_one_area(void **state)
{
	struct rig_vfio_region r;
	unsigned char b[256];

	(void)state;
	region(b, 0x7, 0, NULL);
	rig_put_le32(b, 32);
	assert_int_equal(parse(b, 32, &r), 0);
	assert_int_equal(r.areas, 1);
	assert_int_equal(r.area[0].bytes, 0x10000);
	rig_put_le32(b + 4, 0x3);
	assert_int_equal(parse(b, 32, &r), 0);
	assert_int_equal(r.areas, 0);
}

static void a_region_of_more_areas_than_are_used_is_not_mapped_and_one_less_is(void **state)
{
	static uint64_t area[RIG_VFIO_AREAS + 1][2];
	static unsigned char b[64 + 16 * (RIG_VFIO_AREAS + 1)];
	struct rig_vfio_region r;
	size_t len;

	(void)state;
	for (unsigned i = 0; i <= RIG_VFIO_AREAS; i++) {
		area[i][0] = i * 512;
		area[i][1] = 256;
	}
	len = region(b, 0xf, RIG_VFIO_AREAS, area);
	assert_int_equal(parse(b, len, &r), 0);
	assert_int_equal(r.areas, RIG_VFIO_AREAS);
	len = region(b, 0xf, RIG_VFIO_AREAS + 1, area);
	assert_int_equal(parse(b, len, &r), 0);
	assert_int_equal(r.areas, 0);
	assert_int_equal(r.bytes, 0x10000);
	/* So many that the answer has no room for them. */
	region(b, 0xf, 0, NULL);
	rig_put_le32(b, RIG_VUSER_REGION_INFO_BYTES + 16);
	rig_put_le32(b + 12, 0);
	assert_int_equal(parse(b, 32, &r), 0);
	assert_int_equal(r.areas, 0);
}

static void areas_outside_or_overlapping_are_refused(void **state)
{
	static const uint64_t bad[][2][2] = {
	        {{0xf000, 0x2000}, {0, 0}},
	        {{UINT64_MAX, 0x1000}, {0, 0}},
	        {{0x1000, UINT64_MAX}, {0, 0}},
	        {{0, 0x1001}, {0x1000, 0x1000}},
	        {{0x1000, 0x1000}, {0x1000, 0x1000}},
	        {{0x10000, 1}, {0, 0}},
	};
	struct rig_vfio_region r;
	unsigned char b[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		size_t len = region(b, 0xf, 2, bad[i]);

		assert_int_equal(parse(b, len, &r), -EPROTO);
		assert_non_null(why);
	}
}

static void a_capability_list_that_leaves_the_info_or_loops_is_refused(void **state)
{
	static const uint64_t area[][2] = {{0, 0x1000}};
	struct rig_vfio_region r;
	unsigned char b[256];
	size_t len = region(b, 0xf, 1, area);

	(void)state;
	rig_put_le32(b + 36, 32); /* itself */
	assert_int_equal(parse(b, len, &r), -EPROTO);
	rig_put_le32(b + 36, (uint32_t)len - 7);
	assert_int_equal(parse(b, len, &r), -EPROTO);
	rig_put_le32(b + 36, UINT32_MAX);
	assert_int_equal(parse(b, len, &r), -EPROTO);
	region(b, 0xf, 1, area);
	rig_put_le32(b + 12, 8);
	assert_int_equal(parse(b, len, &r), -EPROTO);
	region(b, 0xf, 1, area);
	rig_put_le32(b + 40, 2); /* one more area than there are bytes */
	assert_int_equal(parse(b, len, &r), -EPROTO);
	region(b, 0xf, 1, area);
	rig_put_le32(b + 40, UINT32_MAX);
	assert_int_equal(parse(b, len, &r), -EPROTO);
}

static void a_region_info_cut_anywhere_is_refused(void **state)
{
	static const uint64_t area[][2] = {{0, 0x1000}, {0x2000, 0x1000}};
	struct rig_vfio_region r;
	unsigned char b[256];
	size_t len = region(b, 0xf, 2, area);

	(void)state;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(parse(b, i, &r), -EPROTO);
	assert_int_equal(parse(b, len, &r), 0);
	assert_int_equal(rig_vuser_parse_region(b, len, 3, &r, &why), -EPROTO);
}

/* -- Interrupts, accesses, DMA -- */

static void an_interrupt_without_eventfds_counts_as_none(void **state)
{
	unsigned char b[16] = {16, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0};
	unsigned count;

	(void)state;
	assert_int_equal(rig_vuser_parse_irq(b, 16, 2, &count, &why), 0);
	assert_int_equal(count, 9);
	b[4] = 0;
	assert_int_equal(rig_vuser_parse_irq(b, 16, 2, &count, &why), 0);
	assert_int_equal(count, 0);
	rig_put_le32(b + 12, 2049);
	assert_int_equal(rig_vuser_parse_irq(b, 16, 2, &count, &why), -EPROTO);
	assert_int_equal(rig_vuser_parse_irq(b, 15, 2, &count, &why), -EPROTO);
	assert_int_equal(rig_vuser_parse_irq(b, 16, 1, &count, &why), -EPROTO);
}

static void an_access_reply_must_be_the_one_that_was_asked(void **state)
{
	const struct rig_vuser_region_access asked = {0x100, 2, 4};
	unsigned char b[20];
	const void *data;

	(void)state;
	rig_put_le64(b, 0x100);
	rig_put_le32(b + 8, 2);
	rig_put_le32(b + 12, 4);
	assert_int_equal(rig_vuser_parse_region_read(b, 20, &asked, &data, &why), 0);
	assert_ptr_equal(data, b + 16);
	assert_int_equal(rig_vuser_parse_region_write(b, 16, &asked, &why), 0);
	assert_int_equal(rig_vuser_parse_region_read(b, 19, &asked, &data, &why), -EPROTO);
	assert_int_equal(rig_vuser_parse_region_read(b, 16, &asked, &data, &why), -EPROTO);
	assert_int_equal(rig_vuser_parse_region_write(b, 20, &asked, &why), -EPROTO);
	assert_int_equal(rig_vuser_parse_region_read(b, 15, &asked, &data, &why), -EPROTO);
	for (unsigned field = 0; field < 16; field += 4) {
		b[field] ^= 1;
		assert_int_equal(rig_vuser_parse_region_read(b, 20, &asked, &data, &why), -EPROTO);
		b[field] ^= 1;
	}
}

static void a_dma_command_must_carry_what_it_says(void **state)
{
	struct rig_vuser_dma_access a;
	unsigned char b[24] = {0};
	const void *data;

	(void)state;
	rig_put_le64(b, 0x123456789abc);
	rig_put_le64(b + 8, 8);
	assert_int_equal(rig_vuser_parse_dma(b, 24, true, 64, &a, &data, &why), 0);
	assert_int_equal(a.address, 0x123456789abc);
	assert_ptr_equal(data, b + 16);
	assert_int_equal(rig_vuser_parse_dma(b, 16, false, 64, &a, &data, &why), 0);
	assert_null(data);
	assert_int_equal(rig_vuser_parse_dma(b, 23, true, 64, &a, &data, &why), -EPROTO);
	assert_int_equal(rig_vuser_parse_dma(b, 24, false, 64, &a, &data, &why), -EPROTO);
	assert_int_equal(rig_vuser_parse_dma(b, 24, true, 7, &a, &data, &why), -EPROTO);
	rig_put_le64(b + 8, UINT64_MAX);
	assert_int_equal(rig_vuser_parse_dma(b, 16, false, 64, &a, &data, &why), -EPROTO);
	assert_int_equal(rig_vuser_parse_dma(b, 15, false, 64, &a, &data, &why), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_header_says_what_its_bytes_say),
	        cmocka_unit_test(a_header_of_nonsense_is_refused),
	        cmocka_unit_test(a_version_without_capabilities_means_the_defaults),
	        cmocka_unit_test(capabilities_are_read_and_unknown_ones_passed_over),
	        cmocka_unit_test(capabilities_that_nothing_can_work_with_are_refused),
	        cmocka_unit_test(huge_capabilities_are_cut_to_what_is_useful),
	        cmocka_unit_test(what_is_written_is_read_back),
	        cmocka_unit_test(sparse_areas_come_out_sorted),
	        cmocka_unit_test(a_mappable_region_without_areas_is_one_area),
	        cmocka_unit_test(a_region_of_more_areas_than_are_used_is_not_mapped_and_one_less_is),
	        cmocka_unit_test(areas_outside_or_overlapping_are_refused),
	        cmocka_unit_test(a_capability_list_that_leaves_the_info_or_loops_is_refused),
	        cmocka_unit_test(a_region_info_cut_anywhere_is_refused),
	        cmocka_unit_test(an_interrupt_without_eventfds_counts_as_none),
	        cmocka_unit_test(an_access_reply_must_be_the_one_that_was_asked),
	        cmocka_unit_test(a_dma_command_must_carry_what_it_says),
	};

	return cmocka_run_group_tests_name("vfio_user_parse", tests, NULL, NULL);
}
