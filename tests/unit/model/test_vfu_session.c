/* SPDX-License-Identifier: MIT */
/* Connecting, disconnecting, and clients that break the protocol. */
#include "test_vfu_client.h"

#include <errno.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocs.h"
#include "counters.h"

#define SECOND UINT64_C(1000000000)

static int closed_setup(void **state)
{
	struct peer *p = malloc(sizeof(*p));

	assert_non_null(p);
	peer_init(p);
	peer_open(p);
	*state = p;
	return 0;
}

static void the_handshake_answers_its_limits_and_says_connected(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header;
	char body[512];
	int fd;
	long got;

	peer_attach(p);
	peer_send(p, 7, VFU_CMD_VERSION, 0, "\0\0\5\0{\"capabilities\":{\"write_multiple\":true}}", 45, NULL,
	        0);
	assert_int_equal(p->connects, 0);
	peer_poll(p);
	got = peer_recv(p, &header, body, sizeof(body), &fd);
	assert_true(got > 4);
	assert_int_equal(header.id, 7);
	assert_int_equal(header.flags, VFU_F_REPLY);
	assert_memory_equal(body, "\0\0\1\0", 4);
	assert_int_equal(body[got - 1], 0);
	assert_non_null(strstr(body + 4, "\"max_msg_fds\":16"));
	assert_non_null(strstr(body + 4, "\"max_data_xfer_size\":1048576"));
	assert_non_null(strstr(body + 4, "\"max_dma_maps\":32768"));
	assert_non_null(strstr(body + 4, "\"write_multiple\":true"));
	assert_null(strstr(body + 4, "migration"));
	assert_int_equal(p->connects, 1);
	assert_true(vfu_connected(p->dev));
}

static void an_older_minor_version_is_answered_with_itself(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header;
	char body[512];
	int fd;

	peer_attach(p);
	peer_send(p, 1, VFU_CMD_VERSION, 0, "\0\0\0\0", 4, NULL, 0);
	peer_poll(p);
	assert_true(peer_recv(p, &header, body, sizeof(body), &fd) > 4);
	assert_memory_equal(body, "\0\0\0\0", 4);
	assert_null(strstr(body + 4, "write_multiple"));
}

static void another_major_version_is_refused_and_disconnected(void **state)
{
	struct peer *p = *state;

	peer_attach(p);
	assert_int_equal(peer_version(p, 1, 0, NULL), -ENOTSUP);
	assert_true(peer_gone(p));
	assert_int_equal(p->connects, 0);
	assert_int_equal(p->disconnects, 0);
	assert_non_null(strstr(p->logs, "handshake"));
}

static void a_command_before_the_handshake_is_refused_and_disconnected(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_device_info info = {.argsz = sizeof(info)};

	peer_attach(p);
	assert_int_equal(
	        peer_call(p, VFU_CMD_DEVICE_GET_INFO, &info, sizeof(info), NULL, 0, &info, sizeof(info)),
	        -EINVAL);
	assert_true(peer_gone(p));
}

static void a_bad_handshake_is_refused_and_disconnected(void **state)
{
	struct peer *p = *state;

	peer_attach(p);
	assert_int_equal(peer_version(p, 0, 1, "{\"capabilities\":"), -EINVAL);
	assert_true(peer_gone(p));
}

static void a_second_handshake_is_refused_and_changes_nothing(void **state)
{
	struct peer *p = *state;

	assert_int_equal(peer_version(p, 0, 1, NULL), -EINVAL);
	assert_false(peer_gone(p));
	assert_int_equal(p->connects, 1);
}

static void device_info_says_pci_with_reset(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_device_info info = {.argsz = sizeof(info)};

	assert_int_equal(
	        peer_call(p, VFU_CMD_DEVICE_GET_INFO, &info, sizeof(info), NULL, 0, &info, sizeof(info)), 0);
	assert_int_equal(info.argsz, sizeof(info));
	assert_int_equal(info.flags, VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET);
	assert_int_equal(info.regions, 9);
	assert_int_equal(info.irqs, 5);
}

static void a_message_that_comes_byte_by_byte_is_one_message(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_device_info info = {.argsz = sizeof(info)};
	struct vfu_wire_header header = {.id = 5, .cmd = VFU_CMD_DEVICE_GET_INFO, .size = 32};
	uint8_t bytes[32];
	int fd;

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &info, sizeof(info));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		assert_int_equal(peer_recv(p, &header, &info, sizeof(info), &fd), -1);
		peer_raw(p, bytes + i, 1, NULL, 0);
		peer_poll(p);
	}
	assert_int_equal(peer_recv(p, &header, &info, sizeof(info), &fd), sizeof(info));
	assert_int_equal(header.id, 5);
}

static void pipelined_messages_are_answered_in_order(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_device_info info = {.argsz = sizeof(info)};
	struct vfu_wire_header header;
	int fd;

	for (uint16_t i = 0; i < 200; i++)
		peer_send(p, i, VFU_CMD_DEVICE_GET_INFO, 0, &info, sizeof(info), NULL, 0);
	peer_poll(p);
	for (uint16_t i = 0; i < 200; i++) {
		assert_int_equal(peer_recv(p, &header, &info, sizeof(info), &fd), sizeof(info));
		assert_int_equal(header.id, i);
	}
}

static void one_poll_serves_a_bounded_number_of_messages(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_region_rw rw = {0, 0, 1};

	for (uint16_t i = 0; i < 100; i++)
		peer_send(p, i, VFU_CMD_REGION_READ, VFU_F_NO_REPLY, &rw, sizeof(rw), NULL, 0);
	assert_int_equal(vfu_poll(p->dev), 1);
	assert_int_equal(p->reads, 64);
	assert_int_equal(vfu_poll(p->dev), 1);
	assert_int_equal(p->reads, 100);
	assert_int_equal(vfu_poll(p->dev), 0);
}

static void no_reply_gets_none_even_for_an_error(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header;
	uint8_t body[64];
	int fd;

	peer_send(p, 1, VFU_CMD_DEVICE_RESET, VFU_F_NO_REPLY, NULL, 0, NULL, 0);
	peer_send(p, 2, 999, VFU_F_NO_REPLY, NULL, 0, NULL, 0);
	peer_send(p, 3, VFU_CMD_DEVICE_RESET, 0, NULL, 0, NULL, 0);
	peer_poll(p);
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), 0);
	assert_int_equal(header.id, 3);
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), -1);
	assert_int_equal(p->resets, 2);
}

static void what_is_not_served_is_answered_so(void **state)
{
	static const uint16_t known[] = {VFU_CMD_DEVICE_GET_REGION_IO_FDS, VFU_CMD_DIRTY_PAGES,
	        VFU_CMD_DEVICE_FEATURE, VFU_CMD_MIG_DATA_READ, VFU_CMD_MIG_DATA_WRITE};
	static const uint16_t unknown[] = {0, VFU_CMD_DMA_READ, VFU_CMD_DMA_WRITE, 19, 65535};
	struct peer *p = *state;
	uint8_t body[16] = {0};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_int_equal(peer_call(p, known[i], body, sizeof(body), NULL, 0, NULL, 0), -ENOTSUP);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(peer_call(p, unknown[i], body, sizeof(body), NULL, 0, NULL, 0), -EINVAL);
	assert_false(peer_gone(p));
}

static void a_reply_nobody_asked_for_is_dropped(void **state)
{
	struct peer *p = *state;

	peer_send(p, 9, VFU_CMD_DMA_READ, VFU_F_REPLY, "0123456789abcdef", 16, NULL, 0);
	assert_false(peer_gone(p));
	assert_int_equal(peer_call(p, VFU_CMD_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0), 0);
}

static void a_size_that_cannot_be_disconnects_with_the_reason(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header = {.id = 1, .cmd = VFU_CMD_DEVICE_RESET, .size = 15};

	peer_raw(p, &header, sizeof(header), NULL, 0);
	assert_true(peer_gone(p));
	assert_non_null(strstr(p->logs, "15 bytes"));
	assert_int_equal(p->disconnects, 1);
	assert_false(vfu_connected(p->dev));
}

static void a_message_too_large_disconnects_before_it_is_read(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header = {.id = 1, .cmd = VFU_CMD_REGION_WRITE, .size = UINT32_MAX};

	peer_raw(p, &header, sizeof(header), NULL, 0);
	assert_true(peer_gone(p));
}

static void a_kind_that_is_none_disconnects(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header = {.id = 1, .cmd = VFU_CMD_DEVICE_RESET, .size = 16, .flags = 2};

	peer_raw(p, &header, sizeof(header), NULL, 0);
	assert_true(peer_gone(p));
}

static void a_client_that_goes_in_the_middle_of_a_message_is_cleaned_up(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header = {.id = 1, .cmd = VFU_CMD_DEVICE_SET_IRQS, .size = 64};
	int event = peer_event();

	peer_raw(p, &header, sizeof(header), &event, 1);
	peer_poll(p);
	peer_hang_up(p);
	peer_poll(p);
	assert_false(vfu_connected(p->dev));
	assert_int_equal(p->disconnects, 1);
	assert_non_null(strstr(p->logs, "middle"));
	close(event);
}

static void descriptors_where_none_belong_are_refused_and_closed(void **state)
{
	struct peer *p = *state;
	struct test_counts before;
	int event = peer_event();

	test_counts_take(&before);
	assert_int_equal(peer_call(p, VFU_CMD_DEVICE_RESET, NULL, 0, &event, 1, NULL, 0), -EINVAL);
	assert_int_equal(p->resets, 0);
	test_counts_same(&before);
	close(event);
}

static void more_descriptors_than_the_limit_are_refused_and_closed(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_irq_set set = {
	        sizeof(set), VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 2, 0, 4};
	struct test_counts before;
	int events[VFU_MAX_MSG_FDS + 1], event = peer_event();

	for (size_t i = 0; i <= VFU_MAX_MSG_FDS; i++)
		events[i] = event;
	test_counts_take(&before);
	assert_int_equal(peer_call(p, VFU_CMD_DEVICE_SET_IRQS, &set, sizeof(set), events, VFU_MAX_MSG_FDS + 1,
	                         NULL, 0),
	        -EINVAL);
	assert_int_equal(
	        peer_call(p, VFU_CMD_DEVICE_SET_IRQS, &set, sizeof(set), events, VFU_MAX_MSG_FDS, NULL, 0),
	        -EINVAL);
	test_counts_same(&before);
	close(event);
}

static void descriptors_of_several_pieces_of_a_message_add_up(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header = {.id = 1, .cmd = VFU_CMD_DEVICE_SET_IRQS, .size = 36};
	struct vfu_wire_irq_set set = {
	        sizeof(set), VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 2, 0, 2};
	int events[2] = {peer_event(), peer_event()}, fd;

	peer_raw(p, &header, sizeof(header), &events[0], 1);
	peer_raw(p, &set, sizeof(set), &events[1], 1);
	peer_poll(p);
	assert_int_equal(peer_recv(p, &header, &set, sizeof(set), &fd), 0);
	assert_int_equal(header.flags, VFU_F_REPLY);
	assert_int_equal(vfu_irq(p->dev, 1), 1);
	assert_int_equal(peer_events(events[0]), 0);
	assert_int_equal(peer_events(events[1]), 1);
	close(events[0]);
	close(events[1]);
}

/* One client with a mapping, interrupts and a half-sent message, from first to last. */
static void scenario(struct peer *p)
{
	int fd = peer_memfd(0x2000), events[4];

	peer_connect(p);
	assert_int_equal(peer_map(p, 0x10000, 0x2000, VFU_READ | VFU_WRITE, fd, 0), 0);
	assert_int_equal(peer_map(p, 0x20000, 0x2000, VFU_READ, -1, 0), 0);
	for (int i = 0; i < 4; i++)
		events[i] = peer_event();
	assert_int_equal(peer_irqs(p, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 2, 0, 4, NULL,
	                         0, events, 4),
	        0);
	assert_int_equal(peer_irqs(p, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 3, 0, 1, NULL,
	                         0, events, 1),
	        0);
	assert_int_equal(peer_irqs(p, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_UNMASK, 0, 0, 1, NULL,
	                         0, events, 1),
	        0);
	peer_raw(p, "abc", 3, &fd, 1);
	peer_poll(p);
	peer_hang_up(p);
	peer_poll(p);
	for (int i = 0; i < 4; i++)
		close(events[i]);
	close(fd);
}

static void a_client_that_went_leaves_nothing_open_or_mapped(void **state)
{
	struct peer *p = *state;
	struct test_counts before;

	scenario(p);
	test_counts_take(&before);
	scenario(p);
	test_counts_same(&before);
	assert_int_equal(p->connects, 2);
	assert_int_equal(p->disconnects, 2);
	assert_int_equal(p->mapped, 4);
	assert_int_equal(p->unmapped, 4);
}

static void the_next_client_finds_the_device_as_it_was(void **state)
{
	struct peer *p = *state;
	uint32_t value = 0x12345678;

	assert_int_equal(peer_write(p, 0, 0x10, &value, 4), 0);
	peer_master(p);
	peer_hang_up(p);
	peer_poll(p);
	peer_connect(p);
	value = 0;
	assert_int_equal(peer_read(p, 0, 0x10, &value, 4), 0);
	assert_int_equal(value, 0x12345678);
	assert_true(vfu_bus_master(p->dev));
	assert_int_equal(p->resets, 0);
}

static void an_attached_descriptor_is_checked_and_taken(void **state)
{
	struct peer *p = *state;
	struct test_counts before;
	int pair[2];

	test_counts_take(&before);
	assert_int_equal(vfu_attach_fd(p->dev, peer_event()), -EBUSY);
	peer_hang_up(p);
	peer_poll(p);
	assert_int_equal(vfu_attach_fd(p->dev, peer_event()), -ENOTSOCK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_int_equal(vfu_attach_fd(p->dev, pair[0]), -EPROTOTYPE);
	close(pair[1]);
	peer_connect(p);
	test_counts_same(&before);
}

static int poll_inside(void *ctx)
{
	struct peer *p = ctx;

	return vfu_poll(p->dev) == -EBUSY ? 0 : -EIO;
}

static void a_poll_from_a_callback_is_refused(void **state)
{
	struct peer *p = *state;

	peer_init(p);
	p->config.reset = poll_inside;
	peer_open(p);
	peer_connect(p);
	assert_int_equal(peer_call(p, VFU_CMD_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0), 0);
}

static void the_device_may_send_the_client_away(void **state)
{
	struct peer *p = *state;

	vfu_disconnect(p->dev, "told to die");
	assert_false(vfu_connected(p->dev));
	assert_int_equal(vfu_timeout(p->dev), 0);
	assert_true(peer_gone(p));
	assert_int_equal(p->disconnects, 1);
	assert_non_null(strstr(p->logs, "told to die"));
	assert_int_equal(vfu_timeout(p->dev), -1);
}

static void answers_that_are_not_read_stop_the_requests_and_arrive_later(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_region_rw rw = {0, 2, PEER_BAR2};
	struct vfu_wire_header header;
	struct pollfd fds[VFU_MAX_FDS];
	uint8_t *body = malloc(PEER_BAR2 + 64);
	int fd, sent = 0, got = 0;

	assert_non_null(body);
	p->mem[PEER_BAR2 - 1] = 0x5a;
	while (sent < 64) {
		peer_send(p, (uint16_t)sent++, VFU_CMD_REGION_READ, 0, &rw, sizeof(rw), NULL, 0);
		peer_poll(p);
	}
	assert_int_equal(vfu_fds(p->dev, fds, VFU_MAX_FDS), 1);
	assert_int_equal(fds[0].events, POLLOUT);
	while (got < sent) {
		if (peer_recv(p, &header, body, PEER_BAR2 + 64, &fd) == -1) {
			assert_int_equal(vfu_poll(p->dev), 1);
			continue;
		}
		assert_int_equal(header.id, got++);
		assert_int_equal(header.size, 16 + 16 + PEER_BAR2);
		assert_int_equal(body[16 + PEER_BAR2 - 1], 0x5a);
	}
	peer_poll(p);
	assert_int_equal(vfu_fds(p->dev, fds, VFU_MAX_FDS), 1);
	assert_int_equal(fds[0].events, POLLIN);
	free(body);
}

static void a_device_that_memory_is_missing_for_is_not_made(void **state)
{
	struct peer *p = *state;
	unsigned live = test_allocs_live();
	struct vfu_device *dev;
	int rc;

	for (uint64_t k = 1;; k++) {
		test_allocs_fail_at(k);
		rc = vfu_open(&p->config, &dev);
		if (!test_allocs_failed())
			break;
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(test_allocs_live(), live);
	}
	test_allocs_fail_at(0);
	assert_int_equal(rc, 0);
	vfu_close(dev);
}

/* One command to a fresh client with its k-th allocation failing: whether that one was reached. */
static bool starve(struct peer *p, uint16_t cmd, const void *body, size_t len, uint64_t k)
{
	struct vfu_wire_header header;
	uint8_t reply[512];
	bool failed;
	long got;
	int fd;

	peer_connect(p);
	peer_send(p, 1, cmd, 0, body, len, NULL, 0);
	test_allocs_fail_at(k);
	peer_poll(p);
	failed = test_allocs_failed();
	test_allocs_fail_at(0);
	got = peer_recv(p, &header, reply, sizeof(reply), &fd);
	if (fd >= 0)
		close(fd);
	if (!failed)
		assert_int_equal(header.flags, VFU_F_REPLY);
	else if (got != -2) /* else it was disconnected: there was no memory for the message */
		assert_int_equal(header.error, ENOMEM);
	peer_hang_up(p);
	peer_poll(p);
	return failed;
}

static void a_request_that_memory_is_missing_for_fails_and_leaks_nothing(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_dma_map map = {sizeof(map), 3, 0, 0, 4096};
	struct vfu_wire_dma_unmap unmap = {sizeof(unmap), 0, 0, 4096};
	struct vfu_wire_region_info region = {.argsz = 256, .index = 2};
	struct vfu_wire_region_rw rw = {0, 0, 4};
	const struct {
		uint16_t cmd;
		const void *body;
		size_t len;
	} commands[] = {{VFU_CMD_DMA_MAP, &map, sizeof(map)}, {VFU_CMD_DMA_UNMAP, &unmap, sizeof(unmap)},
	        {VFU_CMD_DEVICE_GET_REGION_INFO, &region, sizeof(region)},
	        {VFU_CMD_REGION_READ, &rw, sizeof(rw)}, {VFU_CMD_DEVICE_RESET, NULL, 0}};
	struct test_counts before;

	test_counts_take(&before);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		uint64_t k = 1;

		while (starve(p, commands[i].cmd, commands[i].body, commands[i].len, k))
			k++;
		assert_true(k > 1);
	}
	test_counts_same(&before);
}

/* ---- a path ---- */

static char folder[64], path[96];

static int folder_setup(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/vfu-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	return closed_setup(state);
}

static int folder_teardown(void **state)
{
	peer_teardown(state);
	unlink(path);
	return rmdir(folder);
}

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void a_path_is_private_and_goes_with_the_object(void **state)
{
	struct peer *p = *state;
	struct stat st;

	assert_int_equal(vfu_listen(p->dev, path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(vfu_listen(p->dev, path), -EBUSY);
	vfu_close(p->dev);
	p->dev = NULL;
	assert_int_equal(stat(path, &st), -1);
}

static void clients_of_a_path_come_one_after_the_other(void **state)
{
	struct peer *p = *state;
	int second;

	assert_int_equal(vfu_listen(p->dev, path), 0);
	p->fd = dial();
	assert_int_equal(peer_version(p, 0, 1, NULL), 0);
	second = dial();
	peer_poll(p);
	assert_int_equal(recv(second, folder, 1, MSG_DONTWAIT), 0);
	assert_non_null(strstr(p->logs, "second client"));
	close(second);
	assert_int_equal(peer_call(p, VFU_CMD_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0), 0);
	peer_hang_up(p);
	peer_poll(p);
	p->fd = dial();
	assert_int_equal(peer_version(p, 0, 1, NULL), 0);
	assert_int_equal(p->connects, 2);
}

static void a_client_that_comes_as_the_last_one_leaves_is_served(void **state)
{
	struct peer *p = *state;

	assert_int_equal(vfu_listen(p->dev, path), 0);
	p->fd = dial();
	assert_int_equal(peer_version(p, 0, 1, NULL), 0);
	peer_send(p, 3, VFU_CMD_DEVICE_RESET, 0, NULL, 0, NULL, 0);
	peer_hang_up(p);
	p->fd = dial();
	peer_poll(p);
	peer_poll(p);
	assert_int_equal(peer_version(p, 0, 1, NULL), 0);
	assert_int_equal(p->connects, 2);
	assert_null(strstr(p->logs, "second client"));
}

static void an_occupied_path_is_refused_with_the_reason(void **state)
{
	struct peer *p = *state;
	struct vfu_device *other;

	assert_int_equal(vfu_open(&p->config, &other), 0);
	assert_int_equal(vfu_listen(other, path), 0);
	assert_int_equal(vfu_listen(p->dev, path), -EADDRINUSE);
	assert_non_null(strstr(p->logs, "another server"));
	vfu_close(other);
	assert_int_equal(vfu_listen(p->dev, path), 0);
}

static void a_stale_path_is_refused_and_left_alone(void **state)
{
	struct peer *p = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_int_equal(vfu_listen(p->dev, path), -EADDRINUSE);
	assert_non_null(strstr(p->logs, "remove it"));
	assert_int_equal(stat(path, &st), 0);
}

static void a_folder_that_others_can_write_is_refused(void **state)
{
	struct peer *p = *state;
	char text[200];

	assert_int_equal(chmod(folder, 0770), 0);
	assert_int_equal(vfu_listen(p->dev, path), -EPERM);
	assert_int_equal(chmod(folder, 0700), 0);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	assert_int_equal(vfu_listen(p->dev, text), -ENAMETOOLONG);
	snprintf(text, sizeof(text), "%s/none/socket", folder);
	assert_int_equal(vfu_listen(p->dev, text), -ENOENT);
}

static void a_client_of_a_path_that_says_nothing_makes_way(void **state)
{
	struct peer *p = *state;

	assert_int_equal(vfu_listen(p->dev, path), 0);
	p->fd = dial();
	peer_poll(p);
	assert_int_equal(vfu_timeout(p->dev), 10000);
	p->clock += 10 * SECOND - 1;
	peer_poll(p);
	assert_int_equal(vfu_timeout(p->dev), 1);
	assert_true(vfu_connected(p->dev));
	p->clock++;
	assert_true(peer_gone(p));
	assert_non_null(strstr(p->logs, "no handshake in 10 s"));
}

static void half_a_message_on_a_path_makes_way(void **state)
{
	struct peer *p = *state;

	assert_int_equal(vfu_listen(p->dev, path), 0);
	p->fd = dial();
	assert_int_equal(peer_version(p, 0, 1, NULL), 0);
	assert_int_equal(vfu_timeout(p->dev), -1);
	p->clock += 1000 * SECOND;
	peer_poll(p);
	peer_raw(p, "abc", 3, NULL, 0);
	peer_poll(p);
	assert_int_equal(vfu_timeout(p->dev), 30000);
	p->clock += 30 * SECOND;
	assert_true(peer_gone(p));
}

static void an_inherited_socket_has_no_deadline(void **state)
{
	struct peer *p = *state;

	peer_raw(p, "abc", 3, NULL, 0);
	peer_poll(p);
	assert_int_equal(vfu_timeout(p->dev), -1);
	p->clock += 1000 * SECOND;
	assert_false(peer_gone(p));
}

static int open_rc(struct peer *p)
{
	struct vfu_device *dev;
	int rc = vfu_open(&p->config, &dev);

	if (!rc)
		vfu_close(dev);
	return rc;
}

static void a_description_that_breaks_a_rule_is_refused(void **state)
{
	struct peer *p = *state;
	struct vfu_config good = p->config;

#define REFUSED(change)                                                                                      \
	do {                                                                                                 \
		change;                                                                                      \
		assert_int_equal(open_rc(p), -EINVAL);                                                       \
		p->config = good;                                                                            \
	} while (0)
	assert_int_equal(open_rc(p), 0);
	REFUSED(p->config.bars[0].size = 24);
	REFUSED(p->config.bars[0].size = 8);
	REFUSED(p->config.bars[0].size = UINT64_C(1) << 32);
	REFUSED(p->config.bars[3].size = 4096); /* upper half of BAR 2 */
	REFUSED(p->config.bars[5] = p->config.bars[2]);
	REFUSED(p->config.bars[2].areas[0].size = 100);
	REFUSED(p->config.bars[2].areas[1].offset = 0);
	REFUSED(p->config.bars[2].areas[1].size = PEER_BAR2);
	REFUSED(p->config.bars[2].memfd = -1);
	REFUSED(p->config.bars[2].memfd_offset = 0x10000); /* past the end of the file */
	REFUSED(p->config.msix.vectors = VFU_MAX_VECTORS + 1);
	REFUSED(p->config.msix.vectors = 1024); /* table past the end of the BAR */
	REFUSED(p->config.msix.pba_offset = PEER_TABLE);
	REFUSED(p->config.msix.table_offset = PEER_TABLE + 4);
	REFUSED((p->config.msix.bar = 2, p->config.msix.table_offset = 0)); /* mappable */
	REFUSED(p->config.msi_vectors = 3);
	REFUSED(p->config.msi_vectors = 64);
	REFUSED(p->config.max_maps = 65536);
	REFUSED(p->config.class_code = 1u << 24);
	vfu_close(NULL);
}

#define CLOSED(test)    cmocka_unit_test_setup_teardown(test, closed_setup, peer_teardown)
#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)
#define FOLDER(test)    cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

static int bare_setup(void **state)
{
	*state = malloc(sizeof(struct peer));
	return *state ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CLOSED(the_handshake_answers_its_limits_and_says_connected),
	        CLOSED(an_older_minor_version_is_answered_with_itself),
	        CLOSED(another_major_version_is_refused_and_disconnected),
	        CLOSED(a_command_before_the_handshake_is_refused_and_disconnected),
	        CLOSED(a_bad_handshake_is_refused_and_disconnected),
	        CONNECTED(a_second_handshake_is_refused_and_changes_nothing),
	        CONNECTED(device_info_says_pci_with_reset),
	        CONNECTED(a_message_that_comes_byte_by_byte_is_one_message),
	        CONNECTED(pipelined_messages_are_answered_in_order),
	        CONNECTED(one_poll_serves_a_bounded_number_of_messages),
	        CONNECTED(no_reply_gets_none_even_for_an_error),
	        CONNECTED(what_is_not_served_is_answered_so),
	        CONNECTED(a_reply_nobody_asked_for_is_dropped),
	        CONNECTED(a_size_that_cannot_be_disconnects_with_the_reason),
	        CONNECTED(a_message_too_large_disconnects_before_it_is_read),
	        CONNECTED(a_kind_that_is_none_disconnects),
	        CONNECTED(a_client_that_goes_in_the_middle_of_a_message_is_cleaned_up),
	        CONNECTED(descriptors_where_none_belong_are_refused_and_closed),
	        CONNECTED(more_descriptors_than_the_limit_are_refused_and_closed),
	        CONNECTED(descriptors_of_several_pieces_of_a_message_add_up),
	        CLOSED(a_client_that_went_leaves_nothing_open_or_mapped),
	        CONNECTED(the_next_client_finds_the_device_as_it_was),
	        CONNECTED(an_attached_descriptor_is_checked_and_taken),
	        cmocka_unit_test_setup_teardown(a_poll_from_a_callback_is_refused, bare_setup, peer_teardown),
	        CONNECTED(the_device_may_send_the_client_away),
	        CONNECTED(answers_that_are_not_read_stop_the_requests_and_arrive_later),
	        CLOSED(a_device_that_memory_is_missing_for_is_not_made),
	        CLOSED(a_request_that_memory_is_missing_for_fails_and_leaks_nothing),
	        FOLDER(a_path_is_private_and_goes_with_the_object),
	        FOLDER(clients_of_a_path_come_one_after_the_other),
	        FOLDER(a_client_that_comes_as_the_last_one_leaves_is_served),
	        FOLDER(an_occupied_path_is_refused_with_the_reason),
	        FOLDER(a_stale_path_is_refused_and_left_alone),
	        FOLDER(a_folder_that_others_can_write_is_refused),
	        FOLDER(a_client_of_a_path_that_says_nothing_makes_way),
	        FOLDER(half_a_message_on_a_path_makes_way),
	        CONNECTED(an_inherited_socket_has_no_deadline),
	        CLOSED(a_description_that_breaks_a_rule_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
