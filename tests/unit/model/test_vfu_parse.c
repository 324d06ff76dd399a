/* SPDX-License-Identifier: MIT */
/* The parsers of vfu_parse.h: exactly at each limit, one under, one over. */
#include "test.h"
#include <errno.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfu.h"
#include "vfu_parse.h"

static const uint32_t counts[VFU_IRQ_INDICES] = {1, 4, 8, 1, 1};

static int header_of(uint32_t size, uint32_t flags)
{
	struct vfu_wire_header in = {.id = 1, .cmd = 2, .size = size, .flags = flags}, out;

	return vfu_parse_header(&in, sizeof(in), &out);
}

static void a_header_is_taken_up_to_the_largest_message(void **state)
{
	(void)state;
	assert_int_equal(header_of(16, 0), 0);
	assert_int_equal(header_of((uint32_t)VFU_MAX_MSG, VFU_F_REPLY | VFU_F_ERROR), 0);
	assert_int_equal(header_of(15, 0), -EPROTO);
	assert_int_equal(header_of(0, 0), -EPROTO);
	assert_int_equal(header_of((uint32_t)VFU_MAX_MSG + 1, 0), -EPROTO);
	assert_int_equal(header_of(UINT32_MAX, 0), -EPROTO);
	assert_int_equal(header_of(16, 2), -EPROTO);
	assert_int_equal(header_of(16, 0xf), -EPROTO);
}

static int version_of(const char *json, size_t extra, struct vfu_version *out)
{
	uint8_t body[VFU_MAX_JSON + 64] = {0};
	struct vfu_wire_version wire = {0, 1};

	memcpy(body, &wire, sizeof(wire));
	memcpy(body + sizeof(wire), json, strlen(json));
	return vfu_parse_version(body, sizeof(wire) + strlen(json) + extra, out);
}

static void version_data_may_be_missing_and_the_defaults_apply(void **state)
{
	struct vfu_wire_version wire = {0, 7};
	struct vfu_version v;

	(void)state;
	assert_int_equal(vfu_parse_version(&wire, sizeof(wire), &v), 0);
	assert_int_equal(v.major, 0);
	assert_int_equal(v.minor, 7);
	assert_int_equal(v.max_fds, 1);
	assert_int_equal(v.max_data, VFU_MAX_DATA);
	assert_false(v.write_multiple);
	assert_int_equal(vfu_parse_version(&wire, sizeof(wire) - 1, &v), -EINVAL);
}

static void version_data_of_qemu_is_understood(void **state)
{
	struct vfu_version v;

	(void)state;
	assert_int_equal(
	        version_of("{\"capabilities\": {\"max_msg_fds\": 16, \"max_data_xfer_size\": 1048576, "
	                   "\"migration\": {\"pgsize\": 4096, \"max_bitmap_size\": 268435456}, "
	                   "\"pgsizes\": 4096, \"max_dma_maps\": 65535, \"write_multiple\": true}}",
	                1, &v),
	        0);
	assert_int_equal(v.max_fds, 16);
	assert_int_equal(v.max_data, 1048576);
	assert_true(v.write_multiple);
}

static void capabilities_are_bounded(void **state)
{
	struct vfu_version v;

	(void)state;
	assert_int_equal(
	        version_of("{\"capabilities\":{\"max_data_xfer_size\":8,\"max_msg_fds\":0}}", 1, &v), 0);
	assert_int_equal(v.max_data, 8);
	assert_int_equal(v.max_fds, 0);
	assert_int_equal(version_of("{\"capabilities\":{\"max_data_xfer_size\":7}}", 1, &v), -EINVAL);
	assert_int_equal(version_of("{\"capabilities\":{\"max_data_xfer_size\":-1}}", 1, &v), -EINVAL);
	assert_int_equal(version_of("{\"capabilities\":{\"max_data_xfer_size\":99999999999}}", 1, &v), 0);
	assert_int_equal(v.max_data, VFU_MAX_DATA);
	assert_int_equal(version_of("{\"capabilities\":{\"max_data_xfer_size\":\"1\"}}", 1, &v), -EINVAL);
	assert_int_equal(version_of("{\"capabilities\":{\"max_msg_fds\":1.5}}", 1, &v), -EINVAL);
	assert_int_equal(version_of("{\"capabilities\":{\"write_multiple\":1}}", 1, &v), -EINVAL);
	assert_int_equal(version_of("{\"capabilities\":[]}", 1, &v), -EINVAL);
}

static void version_data_that_is_no_json_object_is_refused(void **state)
{
	struct vfu_version v;

	(void)state;
	assert_int_equal(version_of("{}", 1, &v), 0);
	assert_int_equal(version_of("{} \n", 1, &v), 0);
	assert_int_equal(version_of("{}", 0, &v), -EINVAL); /* no NUL */
	assert_int_equal(version_of("{}", 2, &v), -EINVAL); /* two */
	assert_int_equal(version_of("", 1, &v), -EINVAL);
	assert_int_equal(version_of("{", 1, &v), -EINVAL);
	assert_int_equal(version_of("{}x", 1, &v), -EINVAL);
	assert_int_equal(version_of("[]", 1, &v), -EINVAL);
	assert_int_equal(version_of("1", 1, &v), -EINVAL);
	assert_int_equal(version_of("null", 1, &v), -EINVAL);
	assert_int_equal(version_of("{\"a\":[[[[[[[[[[]]]]]]]]]]}", 1, &v), -EINVAL); /* too deep */
}

static void version_data_is_taken_up_to_its_limit(void **state)
{
	char json[VFU_MAX_JSON + 8];
	struct vfu_version v;

	(void)state;
	memset(json, ' ', sizeof(json));
	memcpy(json, "{}", 2);
	json[VFU_MAX_JSON - 1] = 0;
	assert_int_equal(version_of(json, 1, &v), 0);
	json[VFU_MAX_JSON - 1] = ' ';
	json[VFU_MAX_JSON] = 0;
	assert_int_equal(version_of(json, 1, &v), -EINVAL);
}

static int map_of(uint64_t iova, uint64_t size, uint64_t offset, uint32_t flags)
{
	struct vfu_wire_dma_map in = {sizeof(in), flags, offset, iova, size}, out;

	return vfu_parse_dma_map(&in, sizeof(in), &out);
}

static void a_mapping_is_whole_pages_that_do_not_wrap(void **state)
{
	(void)state;
	assert_int_equal(map_of(0, 4096, 0, 3), 0);
	assert_int_equal(map_of(UINT64_MAX - 4095, 4096, 0, 1), 0);
	assert_int_equal(map_of(UINT64_MAX - 4095, 8192, 0, 1), -EINVAL);
	assert_int_equal(map_of(0, 0, 0, 3), -EINVAL);
	assert_int_equal(map_of(1, 4096, 0, 3), -EINVAL);
	assert_int_equal(map_of(0, 4097, 0, 3), -EINVAL);
	assert_int_equal(map_of(0, 4096, 1, 3), -EINVAL);
	assert_int_equal(map_of(0, 4096, UINT64_C(1) << 63, 3), -EINVAL);
	assert_int_equal(map_of(0, 4096, INT64_MAX - 4095, 3), 0);
	assert_int_equal(map_of(0, 8192, INT64_MAX - 4095, 3), -EINVAL);
}

static void a_mapping_is_readable_or_writable_and_nothing_else(void **state)
{
	(void)state;
	assert_int_equal(map_of(0, 4096, 0, VFU_READ), 0);
	assert_int_equal(map_of(0, 4096, 0, VFU_WRITE), 0);
	assert_int_equal(map_of(0, 4096, 0, 0), -EINVAL);
	assert_int_equal(map_of(0, 4096, 0, 4 | VFU_READ), -EINVAL);
}

static void a_mapping_is_exactly_its_size(void **state)
{
	struct vfu_wire_dma_map in[2] = {{sizeof(in[0]), 3, 0, 0, 4096}}, out;

	(void)state;
	assert_int_equal(vfu_parse_dma_map(in, sizeof(in[0]), &out), 0);
	assert_int_equal(vfu_parse_dma_map(in, sizeof(in[0]) - 1, &out), -EINVAL);
	assert_int_equal(vfu_parse_dma_map(in, sizeof(in[0]) + 1, &out), -EINVAL);
	in[0].argsz--;
	assert_int_equal(vfu_parse_dma_map(in, sizeof(in[0]), &out), -EINVAL);
}

static int unmap_of(uint64_t iova, uint64_t size, uint32_t flags)
{
	struct vfu_wire_dma_unmap in = {sizeof(in), flags, iova, size}, out;

	return vfu_parse_dma_unmap(&in, sizeof(in), &out);
}

static void an_unmap_is_whole_pages_or_all(void **state)
{
	(void)state;
	assert_int_equal(unmap_of(4096, 4096, 0), 0);
	assert_int_equal(unmap_of(0, 0, VFU_UNMAP_ALL), 0);
	assert_int_equal(unmap_of(0, 0, 0), -EINVAL);
	assert_int_equal(unmap_of(0, 1, 0), -EINVAL);
	assert_int_equal(unmap_of(UINT64_MAX - 4095, 8192, 0), -EINVAL);
	assert_int_equal(unmap_of(0, 4096, VFU_UNMAP_DIRTY), -ENOTSUP);
	assert_int_equal(unmap_of(0, 4096, 4), -EINVAL);
}

static void info_needs_room_for_its_answer(void **state)
{
	struct vfu_wire_region_info region = {.argsz = sizeof(region), .index = VFU_REGIONS - 1};
	struct vfu_wire_device_info device = {.argsz = sizeof(device)};
	struct vfu_wire_irq_info irq = {.argsz = sizeof(irq), .index = VFU_IRQ_INDICES - 1};

	(void)state;
	assert_int_equal(vfu_parse_device_info(&device, sizeof(device), &device), 0);
	assert_int_equal(vfu_parse_device_info(&device, sizeof(device) - 1, &device), -EINVAL);
	assert_int_equal(vfu_parse_region_info(&region, sizeof(region), &region), 0);
	region.index = VFU_REGIONS;
	assert_int_equal(vfu_parse_region_info(&region, sizeof(region), &region), -EINVAL);
	region = (struct vfu_wire_region_info){.argsz = sizeof(region) - 1};
	assert_int_equal(vfu_parse_region_info(&region, sizeof(region), &region), -EINVAL);
	assert_int_equal(vfu_parse_irq_info(&irq, sizeof(irq), &irq), 0);
	irq.index = VFU_IRQ_INDICES;
	assert_int_equal(vfu_parse_irq_info(&irq, sizeof(irq), &irq), -EINVAL);
}

static int irqs_of(uint32_t flags, uint32_t index, uint32_t start, uint32_t count, size_t data, size_t fds,
        struct vfu_irq_set *out)
{
	struct vfu_wire_irq_set in = {sizeof(in), flags, index, start, count};
	uint8_t body[sizeof(in) + 64] = {0};

	memcpy(body, &in, sizeof(in));
	return vfu_parse_irq_set(body, sizeof(in) + data, counts, fds, out);
}

#define NONE  VFIO_IRQ_SET_DATA_NONE
#define BOOL  VFIO_IRQ_SET_DATA_BOOL
#define EVENT VFIO_IRQ_SET_DATA_EVENTFD
#define TRIG  VFIO_IRQ_SET_ACTION_TRIGGER
#define MASK  VFIO_IRQ_SET_ACTION_MASK

static void interrupts_stay_inside_their_index(void **state)
{
	struct vfu_irq_set s;

	(void)state;
	assert_int_equal(irqs_of(NONE | MASK, 2, 0, 8, 0, 0, &s), 0);
	assert_int_equal(irqs_of(NONE | MASK, 2, 7, 1, 0, 0, &s), 0);
	assert_int_equal(irqs_of(NONE | MASK, 2, 8, 1, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | MASK, 2, 0, 9, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | MASK, 2, UINT32_MAX, 2, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | MASK, 2, 1, UINT32_MAX, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | MASK, 5, 0, 1, 0, 0, &s), -EINVAL);
}

static void interrupts_carry_the_data_their_flag_says(void **state)
{
	struct vfu_irq_set s;

	(void)state;
	assert_int_equal(irqs_of(EVENT | TRIG, 2, 0, 3, 0, 3, &s), 0);
	assert_true(s.eventfds);
	assert_int_equal(irqs_of(EVENT | TRIG, 2, 0, 3, 12, 3, &s), 0);
	assert_int_equal(irqs_of(EVENT | TRIG, 2, 0, 3, 0, 0, &s), 0);
	assert_int_equal(irqs_of(EVENT | TRIG, 2, 0, 3, 0, 2, &s), -EINVAL);
	assert_int_equal(irqs_of(EVENT | TRIG, 2, 0, 3, 8, 3, &s), -EINVAL);
	assert_int_equal(irqs_of(EVENT | TRIG, 2, 0, 0, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(BOOL | TRIG, 2, 0, 3, 3, 0, &s), 0);
	assert_non_null(s.bools);
	assert_int_equal(irqs_of(BOOL | TRIG, 2, 0, 3, 2, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(BOOL | TRIG, 2, 0, 3, 4, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(BOOL | TRIG, 2, 0, 3, 3, 1, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | TRIG, 2, 0, 3, 0, 1, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | TRIG, 2, 0, 3, 1, 0, &s), -EINVAL);
}

static void only_a_trigger_of_nothing_disables_an_index(void **state)
{
	struct vfu_irq_set s;

	(void)state;
	assert_int_equal(irqs_of(NONE | TRIG, 2, 0, 0, 0, 0, &s), 0);
	assert_true(s.disable);
	assert_int_equal(irqs_of(NONE | TRIG, 2, 1, 0, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | MASK, 2, 0, 0, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | TRIG, 2, 0, 1, 0, 0, &s), 0);
	assert_false(s.disable);
}

static void interrupts_take_one_action_and_one_kind_of_data(void **state)
{
	struct vfu_irq_set s;

	(void)state;
	assert_int_equal(irqs_of(NONE, 2, 0, 1, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(TRIG, 2, 0, 1, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | BOOL | TRIG, 2, 0, 1, 1, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | MASK | TRIG, 2, 0, 1, 0, 0, &s), -EINVAL);
	assert_int_equal(irqs_of(NONE | TRIG | 0x40, 2, 0, 1, 0, 0, &s), -EINVAL);
}

static int read_of(uint64_t off, uint32_t region, uint32_t count)
{
	struct vfu_wire_region_rw in = {off, region, count}, out;

	return vfu_parse_region_read(&in, sizeof(in), &out);
}

static void an_access_is_bounded_and_does_not_wrap(void **state)
{
	(void)state;
	assert_int_equal(read_of(0, 0, 1), 0);
	assert_int_equal(read_of(0, 0, VFU_MAX_DATA), 0);
	assert_int_equal(read_of(0, 0, VFU_MAX_DATA + 1), -EINVAL);
	assert_int_equal(read_of(0, 0, 0), -EINVAL);
	assert_int_equal(read_of(0, VFU_REGIONS, 1), -EINVAL);
	assert_int_equal(read_of(UINT64_MAX, 0, 1), -EINVAL);
	assert_int_equal(read_of(INT64_MAX, 0, 2), -EINVAL);
}

static void a_write_has_exactly_its_data(void **state)
{
	struct vfu_wire_region_rw in = {0, 0, 4}, out;
	uint8_t body[sizeof(in) + 5] = {0};
	const uint8_t *data;

	(void)state;
	memcpy(body, &in, sizeof(in));
	assert_int_equal(vfu_parse_region_write(body, sizeof(in) + 4, &out, &data), 0);
	assert_ptr_equal(data, body + sizeof(in));
	assert_int_equal(vfu_parse_region_write(body, sizeof(in) + 3, &out, &data), -EINVAL);
	assert_int_equal(vfu_parse_region_write(body, sizeof(in) + 5, &out, &data), -EINVAL);
	assert_int_equal(vfu_parse_region_write(body, sizeof(in) - 1, &out, &data), -EINVAL);
}

static void many_writes_are_counted(void **state)
{
	size_t room = sizeof(uint64_t) + (VFU_MULTI_MAX + 1) * sizeof(struct vfu_wire_write_one);
	uint8_t *body = calloc(1, room);
	struct vfu_wire_write_one one;
	uint64_t n = VFU_MULTI_MAX;
	uint32_t count;

	(void)state;
	assert_non_null(body);
	memcpy(body, &n, sizeof(n));
	assert_int_equal(vfu_parse_write_multi(body, room - sizeof(one), &count), 0);
	assert_int_equal(count, VFU_MULTI_MAX);
	assert_int_equal(vfu_parse_write_multi(body, room, &count), -EINVAL);
	n++;
	memcpy(body, &n, sizeof(n));
	assert_int_equal(vfu_parse_write_multi(body, room, &count), -EINVAL);
	n = 0;
	memcpy(body, &n, sizeof(n));
	assert_int_equal(vfu_parse_write_multi(body, sizeof(n), &count), -EINVAL);
	n = (UINT64_C(1) << 61) + 1;
	memcpy(body, &n, sizeof(n));
	assert_int_equal(vfu_parse_write_multi(body, sizeof(n) + sizeof(one), &count), -EINVAL);
	assert_int_equal(vfu_parse_write_one(body, sizeof(n) + sizeof(one), 0, &one), -EINVAL); /* count 0 */
	body[sizeof(n) + offsetof(struct vfu_wire_write_one, count)] = 8;
	assert_int_equal(vfu_parse_write_one(body, sizeof(n) + sizeof(one), 0, &one), 0);
	assert_int_equal(vfu_parse_write_one(body, sizeof(n) + sizeof(one), 1, &one), -EINVAL);
	body[sizeof(n) + offsetof(struct vfu_wire_write_one, count)] = 9;
	assert_int_equal(vfu_parse_write_one(body, sizeof(n) + sizeof(one), 0, &one), -EINVAL);
	free(body);
}

static void an_answer_to_another_dma_read_is_refused(void **state)
{
	struct vfu_wire_dma_rw in = {0x1000, 4};
	uint8_t body[sizeof(in) + 5] = {0};
	const uint8_t *data;

	(void)state;
	memcpy(body, &in, sizeof(in));
	assert_int_equal(vfu_parse_dma_data(body, sizeof(in) + 4, 0x1000, 4, &data), 0);
	assert_ptr_equal(data, body + sizeof(in));
	assert_int_equal(vfu_parse_dma_data(body, sizeof(in) + 4, 0x2000, 4, &data), -EPROTO);
	assert_int_equal(vfu_parse_dma_data(body, sizeof(in) + 4, 0x1000, 5, &data), -EPROTO);
	assert_int_equal(vfu_parse_dma_data(body, sizeof(in) + 5, 0x1000, 4, &data), -EPROTO);
	assert_int_equal(vfu_parse_dma_data(body, sizeof(in) - 1, 0x1000, 4, &data), -EPROTO);
}

static void an_error_reply_gives_an_errno_whatever_it_says(void **state)
{
	struct vfu_wire_header h = {.error = EACCES};

	(void)state;
	assert_int_equal(vfu_parse_error(&h), -EACCES);
	h.error = 0;
	assert_int_equal(vfu_parse_error(&h), -EIO);
	h.error = UINT32_MAX;
	assert_int_equal(vfu_parse_error(&h), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_header_is_taken_up_to_the_largest_message),
	        cmocka_unit_test(version_data_may_be_missing_and_the_defaults_apply),
	        cmocka_unit_test(version_data_of_qemu_is_understood),
	        cmocka_unit_test(capabilities_are_bounded),
	        cmocka_unit_test(version_data_that_is_no_json_object_is_refused),
	        cmocka_unit_test(version_data_is_taken_up_to_its_limit),
	        cmocka_unit_test(a_mapping_is_whole_pages_that_do_not_wrap),
	        cmocka_unit_test(a_mapping_is_readable_or_writable_and_nothing_else),
	        cmocka_unit_test(a_mapping_is_exactly_its_size),
	        cmocka_unit_test(an_unmap_is_whole_pages_or_all),
	        cmocka_unit_test(info_needs_room_for_its_answer),
	        cmocka_unit_test(interrupts_stay_inside_their_index),
	        cmocka_unit_test(interrupts_carry_the_data_their_flag_says),
	        cmocka_unit_test(only_a_trigger_of_nothing_disables_an_index),
	        cmocka_unit_test(interrupts_take_one_action_and_one_kind_of_data),
	        cmocka_unit_test(an_access_is_bounded_and_does_not_wrap),
	        cmocka_unit_test(a_write_has_exactly_its_data),
	        cmocka_unit_test(many_writes_are_counted),
	        cmocka_unit_test(an_answer_to_another_dma_read_is_refused),
	        cmocka_unit_test(an_error_reply_gives_an_errno_whatever_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
