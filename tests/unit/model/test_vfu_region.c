/* SPDX-License-Identifier: MIT */
/* Regions, the configuration space, resets. */
#include "test_vfu_client.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Asks for a region with `room` bytes of room: bytes of the reply, with *fd. */
static long ask(
        struct peer *p, uint32_t index, uint32_t room, struct vfu_wire_region_info *info, void *caps, int *fd)
{
	struct vfu_wire_header header;
	uint8_t body[256];
	long got;

	*info = (struct vfu_wire_region_info){.argsz = room, .index = index};
	peer_send(p, 1, VFU_CMD_DEVICE_GET_REGION_INFO, 0, info, sizeof(*info), NULL, 0);
	peer_poll(p);
	got = peer_recv(p, &header, body, sizeof(body), fd);
	if (header.flags & VFU_F_ERROR)
		return -(long)header.error;
	memcpy(info, body, sizeof(*info));
	if (caps)
		memcpy(caps, body + sizeof(*info), (size_t)got - sizeof(*info));
	return got;
}

static void a_region_without_memory_is_read_and_written_only(void **state)
{
	struct vfu_wire_region_info info;
	int fd;

	assert_int_equal(ask(*state, 0, sizeof(info), &info, NULL, &fd), sizeof(info));
	assert_int_equal(fd, -1);
	assert_int_equal(info.size, PEER_BAR0);
	assert_int_equal(info.flags, VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE);
	assert_int_equal(
	        ask(*state, VFIO_PCI_CONFIG_REGION_INDEX, sizeof(info), &info, NULL, &fd), sizeof(info));
	assert_int_equal(info.size, 4096);
	assert_int_equal(
	        ask(*state, VFIO_PCI_ROM_REGION_INDEX, sizeof(info), &info, NULL, &fd), sizeof(info));
	assert_int_equal(info.size, 0);
	assert_int_equal(info.flags, 0);
	assert_int_equal(ask(*state, 9, sizeof(info), &info, NULL, &fd), -EINVAL);
	assert_int_equal(ask(*state, 0, sizeof(info) - 1, &info, NULL, &fd), -EINVAL);
}

static void a_sparse_region_says_how_much_room_it_needs(void **state)
{
	struct vfu_wire_region_info info;
	int fd;

	for (uint32_t room = sizeof(info); room < 80; room++) {
		assert_int_equal(ask(*state, 2, room, &info, NULL, &fd), sizeof(info));
		assert_int_equal(fd, -1);
		assert_int_equal(info.argsz, 80);
		assert_int_equal(info.cap_offset, 32); /* QEMU looks at it before it asks again */
	}
}

static void a_sparse_region_lists_its_areas_and_hands_out_memory(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_region_info info;
	struct {
		struct vfu_wire_sparse head;
		struct vfu_wire_area areas[2];
	} caps;
	uint8_t *mem;
	int fd;

	assert_int_equal(ask(p, 2, 80, &info, &caps, &fd), 80);
	assert_true(fd >= 0);
	assert_int_equal(info.flags, VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE |
	                                     VFIO_REGION_INFO_FLAG_MMAP | VFIO_REGION_INFO_FLAG_CAPS);
	assert_int_equal(info.argsz, 80);
	assert_int_equal(caps.head.id, VFIO_REGION_INFO_CAP_SPARSE_MMAP);
	assert_int_equal(caps.head.version, 1);
	assert_int_equal(caps.head.next, 0);
	assert_int_equal(caps.head.count, 2);
	assert_int_equal(caps.areas[1].offset, PEER_AREA2);
	assert_int_equal(caps.areas[1].size, PEER_AREA);
	mem = mmap(
	        NULL, PEER_AREA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(info.offset + PEER_AREA2));
	assert_true(mem != MAP_FAILED);
	mem[5] = 0x77;
	assert_int_equal(p->mem[PEER_AREA2 + 5], 0x77);
	munmap(mem, PEER_AREA);
	close(fd);
}

static void a_wholly_mappable_region_needs_no_list(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_region_info info;
	int fd;

	assert_int_equal(ask(p, 4, sizeof(info), &info, NULL, &fd), sizeof(info));
	assert_true(fd >= 0);
	assert_int_equal(info.offset, PEER_BAR4_OFF);
	assert_int_equal(info.cap_offset, 0);
	assert_false(info.flags & VFIO_REGION_INFO_FLAG_CAPS);
	close(fd);
}

static void a_client_that_takes_no_descriptors_gets_none(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_region_info info;
	int fd;

	peer_hang_up(p);
	peer_poll(p);
	peer_attach(p);
	assert_int_equal(peer_version(p, 0, 0, "{\"capabilities\":{\"max_msg_fds\":0}}"), 0);
	assert_int_equal(ask(p, 4, sizeof(info), &info, NULL, &fd), sizeof(info));
	assert_int_equal(fd, -1);
	assert_false(info.flags & VFIO_REGION_INFO_FLAG_MMAP);
}

static void accesses_reach_the_device_with_their_width(void **state)
{
	struct peer *p = *state;
	uint64_t value = UINT64_C(0x1122334455667788), back = 0;

	assert_int_equal(peer_write(p, 0, 0x20, &value, 8), 0);
	assert_int_equal(p->writes, 1);
	assert_memory_equal(p->bar0 + 0x20, &value, 8);
	assert_int_equal(peer_read(p, 0, 0x24, &back, 4), 0);
	assert_int_equal(back, 0x11223344);
	assert_int_equal(p->reads, 1);
}

static void accesses_outside_a_region_are_refused(void **state)
{
	struct peer *p = *state;
	uint8_t bytes[16] = {0};

	assert_int_equal(peer_read(p, 0, PEER_BAR0 - 1, bytes, 1), 0);
	assert_int_equal(peer_read(p, 0, PEER_BAR0 - 1, bytes, 2), -EINVAL);
	assert_int_equal(peer_read(p, 0, PEER_BAR0, bytes, 1), -EINVAL);
	assert_int_equal(peer_read(p, 1, 0, bytes, 1), -EINVAL);
	assert_int_equal(peer_read(p, 3, 0, bytes, 1), -EINVAL);
	assert_int_equal(peer_read(p, VFIO_PCI_ROM_REGION_INDEX, 0, bytes, 1), -EINVAL);
	assert_int_equal(peer_read(p, VFIO_PCI_CONFIG_REGION_INDEX, 4095, bytes, 2), -EINVAL);
	assert_int_equal(peer_write(p, 0, PEER_BAR0 - 1, bytes, 2), -EINVAL);
	assert_int_equal(peer_write(p, VFIO_PCI_CONFIG_REGION_INDEX, 4095, bytes, 2), -EINVAL);
	assert_int_equal(peer_write(p, 8, 0, bytes, 1), -EINVAL);
	assert_int_equal(p->reads, 1);
	assert_int_equal(p->writes, 0);
}

static void what_the_device_answers_reaches_the_client(void **state)
{
	struct peer *p = *state;
	uint32_t value = 0;

	p->bar_rc = -EIO;
	assert_int_equal(peer_read(p, 0, 0, &value, 4), -EIO);
	assert_int_equal(peer_write(p, 0, 0, &value, 4), -EIO);
	p->bar_rc = 0;
	assert_int_equal(peer_write(p, 0, 0, &value, 4), 0);
}

static void a_region_of_memory_is_served_by_messages_too(void **state)
{
	struct peer *p = *state;
	uint32_t value = 0xabcd1234;
	uint8_t byte = 0;

	assert_int_equal(peer_write(p, 2, PEER_AREA + 1, &value, 4), 0);
	assert_memory_equal(p->mem + PEER_AREA + 1, &value, 4);
	assert_int_equal(peer_read(p, 2, PEER_AREA + 1, &byte, 1), 0);
	assert_int_equal(byte, 0x34);
	assert_int_equal(peer_write(p, 4, 8, &value, 4), 0);
	assert_memory_equal(p->mem + PEER_BAR4_OFF + 8, &value, 4);
}

static void many_writes_in_one_message_happen_in_order(void **state)
{
	struct peer *p = *state;
	struct {
		uint64_t count;
		struct vfu_wire_write_one writes[3];
	} msg = {3, {{0x10, 0, 4, "aaaa"}, {0x12, 0, 2, "bb"}, {0x18, 0, 8, "cccccccc"}}};
	uint64_t done = 0;

	assert_int_equal(
	        peer_call(p, VFU_CMD_REGION_WRITE_MULTI, &msg, sizeof(msg), NULL, 0, &done, sizeof(done)), 0);
	assert_int_equal(done, 3);
	assert_memory_equal(p->bar0 + 0x10, "aabb", 4);
	assert_memory_equal(p->bar0 + 0x18, "cccccccc", 8);
	msg.writes[1].offset = PEER_BAR0;
	assert_int_equal(
	        peer_call(p, VFU_CMD_REGION_WRITE_MULTI, &msg, sizeof(msg), NULL, 0, &done, sizeof(done)), 0);
	assert_int_equal(done, 1);
	msg.writes[0].region = 99;
	assert_int_equal(
	        peer_call(p, VFU_CMD_REGION_WRITE_MULTI, &msg, sizeof(msg), NULL, 0, &done, sizeof(done)),
	        -EINVAL);
}

static void the_header_says_what_was_described(void **state)
{
	struct peer *p = *state;

	assert_int_equal(peer_cfg(p, PCI_VENDOR_ID, 4), 0x52581234);
	assert_int_equal(peer_cfg(p, PCI_REVISION_ID, 4), 0x12000001);
	assert_int_equal(peer_cfg(p, PCI_SUBSYSTEM_VENDOR_ID, 4), 0x52581234);
	assert_int_equal(peer_cfg(p, PCI_INTERRUPT_PIN, 1), 1);
	assert_int_equal(peer_cfg(p, PCI_HEADER_TYPE, 1), 0);
	assert_true(peer_cfg(p, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST);
	assert_int_equal(peer_cfg(p, 0x100, 4), 0);
}

static uint32_t find_cap(struct peer *p, uint8_t id)
{
	uint32_t at = peer_cfg(p, PCI_CAPABILITY_LIST, 1);

	for (int hops = 0; at && hops < 48; hops++) {
		if (peer_cfg(p, at, 1) == id)
			return at;
		at = peer_cfg(p, at + 1, 1);
	}
	return 0;
}

static void the_capabilities_of_an_endpoint_are_linked(void **state)
{
	static const uint8_t ids[] = {PCI_CAP_ID_PM, PCI_CAP_ID_EXP, PCI_CAP_ID_MSI, PCI_CAP_ID_MSIX};
	struct peer *p = *state;
	uint32_t at;

	for (size_t i = 0; i < sizeof(ids); i++) {
		assert_true(find_cap(p, ids[i]));
		assert_int_equal(find_cap(p, ids[i]), vfu_cfg_cap(p->dev, ids[i]));
		assert_int_equal(find_cap(p, ids[i]) % 4, 0);
	}
	assert_int_equal(vfu_cfg_cap(p->dev, PCI_CAP_ID_AF), 0);
	at = find_cap(p, PCI_CAP_ID_EXP);
	assert_true(peer_cfg(p, at + PCI_EXP_DEVCAP, 4) & PCI_EXP_DEVCAP_FLR);
	at = find_cap(p, PCI_CAP_ID_MSIX);
	assert_int_equal(peer_cfg(p, at + PCI_MSIX_FLAGS, 2), PEER_VECTORS - 1);
	assert_int_equal(peer_cfg(p, at + PCI_MSIX_TABLE, 4), PEER_TABLE);
	assert_int_equal(peer_cfg(p, at + PCI_MSIX_PBA, 4), PEER_PBA);
}

static void ones_written_to_a_bar_read_back_as_its_size(void **state)
{
	struct peer *p = *state;

	for (uint32_t off = PCI_BASE_ADDRESS_0; off <= PCI_BASE_ADDRESS_5; off += 4)
		peer_cfg_set(p, off, 4, UINT32_MAX);
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_0, 4), ~(PEER_BAR0 - 1));
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_1, 4), 0);
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_2, 4),
	        ~(PEER_BAR2 - 1) | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_3, 4), UINT32_MAX);
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_4, 4), ~(PEER_BAR4 - 1));
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_5, 4), 0);
	peer_cfg_set(p, PCI_ROM_ADDRESS, 4, UINT32_MAX);
	assert_int_equal(peer_cfg(p, PCI_ROM_ADDRESS, 4), 0);
	peer_cfg_set(p, PCI_BASE_ADDRESS_0, 4, 0xfebf1234);
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_0, 4), 0xfebf0000);
	assert_int_equal(p->config_writes, 8);
}

static void read_only_bits_stay(void **state)
{
	struct peer *p = *state;

	peer_cfg_set(p, PCI_VENDOR_ID, 4, 0);
	peer_cfg_set(p, PCI_COMMAND, 2, 0xffff);
	peer_cfg_set(p, PCI_CAPABILITY_LIST, 1, 0);
	assert_int_equal(peer_cfg(p, PCI_VENDOR_ID, 4), 0x52581234);
	assert_int_equal(peer_cfg(p, PCI_COMMAND, 2), PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
	                                                      PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
	                                                      PCI_COMMAND_INTX_DISABLE);
	assert_true(find_cap(p, PCI_CAP_ID_MSIX));
	assert_true(vfu_bus_master(p->dev));
}

static void only_the_power_states_there_are_can_be_entered(void **state)
{
	struct peer *p = *state;
	uint32_t at = find_cap(p, PCI_CAP_ID_PM) + PCI_PM_CTRL;

	assert_int_equal(peer_cfg(p, at, 2), PCI_PM_CTRL_NO_SOFT_RESET);
	peer_cfg_set(p, at, 2, 3);
	assert_int_equal(peer_cfg(p, at, 2) & PCI_PM_CTRL_STATE_MASK, 3);
	peer_cfg_set(p, at, 2, 1);
	assert_int_equal(peer_cfg(p, at, 2) & PCI_PM_CTRL_STATE_MASK, 3);
	peer_cfg_set(p, at, 2, 0);
	assert_int_equal(peer_cfg(p, at, 2) & PCI_PM_CTRL_STATE_MASK, 0);
	peer_cfg_set(p, at, 2, 2);
	assert_int_equal(peer_cfg(p, at, 2) & PCI_PM_CTRL_STATE_MASK, 0);
}

static void a_capability_of_the_device_is_linked_in(void **state)
{
	static const uint8_t bytes[6] = {PCI_CAP_ID_VNDR, 0x99, 6, 0xaa, 0xbb, 0xcc},
	                     mask[6] = {0xff, 0xff, 0, 0, 0xf, 0};
	struct peer *p = *state;
	uint32_t at;

	assert_int_equal(vfu_cfg_add_cap(p->dev, bytes, mask, sizeof(bytes)), -EBUSY);
	peer_close(p);
	peer_init(p);
	peer_open(p);
	assert_int_equal(vfu_cfg_add_cap(p->dev, bytes, mask, 1), -ENOSPC);
	assert_true(vfu_cfg_add_cap(p->dev, bytes, mask, sizeof(bytes)) > 0x40);
	assert_int_equal(vfu_cfg_add_cap(p->dev, bytes, mask, 129), -ENOSPC);
	while (vfu_cfg_add_cap(p->dev, bytes, NULL, sizeof(bytes)) > 0)
		;
	peer_connect(p);
	at = find_cap(p, PCI_CAP_ID_VNDR);
	assert_true(at);
	peer_cfg_set(p, at, 2, 0);
	peer_cfg_set(p, at + 4, 1, 0x55);
	assert_int_equal(peer_cfg(p, at, 1), PCI_CAP_ID_VNDR);
	assert_int_equal(peer_cfg(p, at + 4, 1), 0xb5);
}

static void the_device_sets_what_the_client_reads(void **state)
{
	struct peer *p = *state;

	vfu_cfg_set(p->dev, PCI_SUBSYSTEM_ID, 2, 0x7777);
	assert_int_equal(peer_cfg(p, PCI_SUBSYSTEM_ID, 2), 0x7777);
	assert_int_equal(vfu_cfg_read(p->dev, PCI_SUBSYSTEM_ID, 2), 0x7777);
	assert_int_equal(vfu_cfg_read(p->dev, 4096, 4), UINT32_MAX);
	assert_int_equal(vfu_cfg_read(p->dev, 1, 2), UINT32_MAX);
	vfu_cfg_set(p->dev, 4096, 4, 0);
}

/* Sets things a reset must undo. */
static void spoil(struct peer *p)
{
	peer_master(p);
	peer_cfg_set(p, PCI_BASE_ADDRESS_0, 4, 0xfebf0000);
}

static void check_reset(struct peer *p)
{
	assert_int_equal(p->resets, 1);
	assert_int_equal(peer_cfg(p, PCI_COMMAND, 2), 0);
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_0, 4), 0);
	assert_int_equal(peer_cfg(p, PCI_VENDOR_ID, 4), 0x52581234);
}

static void a_reset_message_resets(void **state)
{
	struct peer *p = *state;

	spoil(p);
	assert_int_equal(peer_call(p, VFU_CMD_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0), 0);
	check_reset(p);
	assert_int_equal(peer_call(p, VFU_CMD_DEVICE_RESET, "x", 1, NULL, 0, NULL, 0), -EINVAL);
	assert_int_equal(p->resets, 1);
}

static void a_function_level_reset_resets_and_reads_as_zero(void **state)
{
	struct peer *p = *state;
	uint32_t at = find_cap(p, PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL, before = peer_cfg(p, at, 2);

	spoil(p);
	peer_cfg_set(p, at, 2, before | PCI_EXP_DEVCTL_BCR_FLR);
	check_reset(p);
	assert_int_equal(peer_cfg(p, at, 2), before);
	peer_cfg_set(p, at + 1, 1, PCI_EXP_DEVCTL_BCR_FLR >> 8); /* by its byte alone */
	assert_int_equal(p->resets, 2);
	peer_cfg_set(p, at, 2, before);
	assert_int_equal(p->resets, 2);
}

static void a_refused_reset_changes_nothing(void **state)
{
	struct peer *p = *state;
	uint32_t at = find_cap(p, PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;

	spoil(p);
	p->reset_rc = -EBUSY;
	assert_int_equal(peer_call(p, VFU_CMD_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0), -EBUSY);
	peer_cfg_set(p, at, 2, PCI_EXP_DEVCTL_BCR_FLR);
	assert_int_equal(p->resets, 2);
	assert_true(vfu_bus_master(p->dev));
	assert_int_equal(peer_cfg(p, PCI_BASE_ADDRESS_0, 4), 0xfebf0000);
	assert_non_null(strstr(p->logs, "refused a reset"));
}

#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CONNECTED(a_region_without_memory_is_read_and_written_only),
	        CONNECTED(a_sparse_region_says_how_much_room_it_needs),
	        CONNECTED(a_sparse_region_lists_its_areas_and_hands_out_memory),
	        CONNECTED(a_wholly_mappable_region_needs_no_list),
	        CONNECTED(a_client_that_takes_no_descriptors_gets_none),
	        CONNECTED(accesses_reach_the_device_with_their_width),
	        CONNECTED(accesses_outside_a_region_are_refused),
	        CONNECTED(what_the_device_answers_reaches_the_client),
	        CONNECTED(a_region_of_memory_is_served_by_messages_too),
	        CONNECTED(many_writes_in_one_message_happen_in_order),
	        CONNECTED(the_header_says_what_was_described),
	        CONNECTED(the_capabilities_of_an_endpoint_are_linked),
	        CONNECTED(ones_written_to_a_bar_read_back_as_its_size),
	        CONNECTED(read_only_bits_stay),
	        CONNECTED(only_the_power_states_there_are_can_be_entered),
	        CONNECTED(a_capability_of_the_device_is_linked_in),
	        CONNECTED(the_device_sets_what_the_client_reads),
	        CONNECTED(a_reset_message_resets),
	        CONNECTED(a_function_level_reset_resets_and_reads_as_zero),
	        CONNECTED(a_refused_reset_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
