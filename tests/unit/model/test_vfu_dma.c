/* SPDX-License-Identifier: MIT */
/* The client's memory: mapping, unmapping, transfers by pointer and by message. */
#include "draw.h"
#include "test_vfu_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"

#define RW   (VFU_READ | VFU_WRITE)
#define PAGE 4096u

static int setup(void **state)
{
	struct peer *p;

	peer_setup(state);
	p = *state;
	peer_master(p);
	/* The list of mappings is allocated with the first: not a leak of the test that counts. */
	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_unmap(p, 0, PAGE, 0, NULL), 0);
	p->mapped = p->unmapped = 0;
	return 0;
}

static void a_mapping_is_told_and_reaches_the_clients_memory(void **state)
{
	struct peer *p = *state;
	int fd = peer_memfd(4 * PAGE);
	uint8_t *mem = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *here;
	uint32_t value = 0;

	assert_int_equal(peer_map(p, 0x100000, 2 * PAGE, RW, fd, PAGE), 0);
	assert_int_equal(p->mapped, 1);
	assert_int_equal(p->last_iova, 0x100000);
	assert_int_equal(p->last_len, 2 * PAGE);
	assert_int_equal(p->last_prot, RW);
	here = vfu_dma_ptr(p->dev, 0x100000, 2 * PAGE, RW);
	assert_ptr_equal(here, p->last_host);
	memcpy(mem + PAGE + 8, "abcd", 4);
	assert_int_equal(vfu_dma_read(p->dev, 0x100008, &value, 4), 0);
	assert_memory_equal(&value, "abcd", 4);
	assert_int_equal(vfu_dma_write(p->dev, 0x100000 + 2 * PAGE - 3, "xyz", 3), 0);
	assert_memory_equal(mem + 3 * PAGE - 3, "xyz", 3);
	munmap(mem, 4 * PAGE);
	close(fd);
}

static void pointers_end_where_the_mapping_ends(void **state)
{
	struct peer *p = *state;
	int fd = peer_memfd(2 * PAGE);

	assert_int_equal(peer_map(p, PAGE, PAGE, VFU_READ, fd, 0), 0);
	assert_int_equal(peer_map(p, 2 * PAGE, PAGE, RW, fd, PAGE), 0);
	assert_non_null(vfu_dma_ptr(p->dev, PAGE, PAGE, VFU_READ));
	assert_non_null(vfu_dma_ptr(p->dev, 2 * PAGE - 1, 1, VFU_READ));
	assert_null(vfu_dma_ptr(p->dev, PAGE, PAGE + 1, VFU_READ)); /* two mappings */
	assert_null(vfu_dma_ptr(p->dev, PAGE - 1, 1, VFU_READ));
	assert_null(vfu_dma_ptr(p->dev, 3 * PAGE, 1, VFU_READ));
	assert_null(vfu_dma_ptr(p->dev, PAGE, 1, VFU_WRITE));
	assert_null(vfu_dma_ptr(p->dev, PAGE, 0, VFU_READ));
	assert_null(vfu_dma_ptr(p->dev, PAGE, UINT64_MAX, VFU_READ));
	close(fd);
}

static void transfers_cross_neighbouring_mappings(void **state)
{
	struct peer *p = *state;
	int fd = peer_memfd(2 * PAGE);
	uint8_t out[64], in[64];

	for (unsigned i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)i;
	assert_int_equal(peer_map(p, PAGE, PAGE, RW, fd, PAGE), 0); /* the other way round in the file */
	assert_int_equal(peer_map(p, 2 * PAGE, PAGE, RW, fd, 0), 0);
	assert_int_equal(vfu_dma_write(p->dev, 2 * PAGE - 32, out, 64), 0);
	assert_int_equal(pread(fd, in, 32, 2 * PAGE - 32), 32);
	assert_int_equal(pread(fd, in + 32, 32, 0), 32);
	assert_memory_equal(in, out, 64);
	memset(in, 0, sizeof(in));
	assert_int_equal(vfu_dma_read(p->dev, 2 * PAGE - 32, in, 64), 0);
	assert_memory_equal(in, out, 64);
	close(fd);
}

static void transfers_outside_or_against_the_rights_fault_and_move_nothing(void **state)
{
	struct peer *p = *state;
	int fd = peer_memfd(PAGE);
	uint8_t buf[16] = "0123456789abcde", byte = 0;

	assert_int_equal(peer_map(p, PAGE, PAGE, VFU_READ, fd, 0), 0);
	assert_int_equal(peer_map(p, 4 * PAGE, PAGE, VFU_WRITE, fd, 0), 0);
	assert_int_equal(vfu_dma_read(p->dev, 0, buf, 1), -EFAULT);
	assert_int_equal(vfu_dma_read(p->dev, 2 * PAGE - 1, buf, 2), -EFAULT);
	assert_int_equal(vfu_dma_write(p->dev, PAGE, buf, 1), -EFAULT);
	assert_int_equal(vfu_dma_read(p->dev, 4 * PAGE, buf, 1), -EFAULT);
	assert_int_equal(vfu_dma_write(p->dev, 5 * PAGE - 8, buf, 16), -EFAULT);
	assert_int_equal(pread(fd, &byte, 1, PAGE - 8), 1);
	assert_int_equal(byte, 0);
	assert_int_equal(vfu_dma_read(p->dev, UINT64_MAX, buf, 2), -EFAULT);
	assert_int_equal(vfu_dma_read(p->dev, PAGE, buf, UINT64_MAX), -EFAULT);
	assert_int_equal(vfu_dma_read(p->dev, 0, buf, 0), 0);
	assert_non_null(strstr(p->logs, "not mapped"));
	close(fd);
}

static void without_bus_mastering_nothing_goes_out(void **state)
{
	struct peer *p = *state;
	int fd = peer_memfd(PAGE);
	uint8_t byte;

	assert_int_equal(peer_map(p, 0, PAGE, RW, fd, 0), 0);
	peer_cfg_set(p, 4, 2, 0);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), -EPERM);
	assert_null(vfu_dma_ptr(p->dev, 0, 1, VFU_READ));
	assert_non_null(strstr(p->logs, "bus mastering"));
	peer_hang_up(p);
	peer_poll(p);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), -ENOTCONN);
	close(fd);
}

static void mappings_never_overlap(void **state)
{
	struct peer *p = *state;

	assert_int_equal(peer_map(p, 4 * PAGE, 2 * PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_map(p, 4 * PAGE, 2 * PAGE, RW, -1, 0), -EEXIST);
	assert_int_equal(peer_map(p, 5 * PAGE, PAGE, RW, -1, 0), -EEXIST);
	assert_int_equal(peer_map(p, 3 * PAGE, 2 * PAGE, RW, -1, 0), -EEXIST);
	assert_int_equal(peer_map(p, 0, 16 * PAGE, RW, -1, 0), -EEXIST);
	assert_int_equal(peer_map(p, 3 * PAGE, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_map(p, 6 * PAGE, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_map(p, UINT64_MAX - PAGE + 1, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_map(p, UINT64_MAX - PAGE + 1, PAGE, RW, -1, 0), -EEXIST);
	assert_int_equal(p->mapped, 4);
}

static void a_file_too_small_for_the_mapping_is_refused(void **state)
{
	struct peer *p = *state;
	struct test_counts before;
	int fd = peer_memfd(2 * PAGE);

	test_counts_take(&before);
	assert_int_equal(peer_map(p, 0, 3 * PAGE, RW, fd, 0), -EINVAL);
	assert_int_equal(peer_map(p, 0, 2 * PAGE, RW, fd, PAGE), -EINVAL);
	assert_int_equal(peer_map(p, 0, PAGE, RW, fd, INT64_MAX / PAGE * PAGE - PAGE), -EINVAL);
	test_counts_same(&before);
	assert_int_equal(peer_map(p, 0, 2 * PAGE, RW, fd, 0), 0);
	close(fd);
}

static void a_descriptor_that_cannot_be_mapped_is_refused_and_closed(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_dma_map map = {sizeof(map), RW, 0, 0, PAGE};
	struct test_counts before;
	int fd = peer_memfd(PAGE), two[2] = {fd, fd}, event = peer_event();

	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	test_counts_take(&before);
	assert_int_equal(peer_map(p, 0, PAGE, RW, event, 0), -EINVAL);
	assert_int_equal(peer_map(p, 0, PAGE, RW, fd, 0), -EPERM);
	assert_int_equal(peer_call(p, VFU_CMD_DMA_MAP, &map, sizeof(map), two, 2, NULL, 0), -EINVAL);
	assert_int_equal(p->mapped, 0);
	test_counts_same(&before);
	close(fd);
	close(event);
}

static void a_file_that_only_reads_is_mapped_for_reading(void **state)
{
	struct peer *p = *state;
	int fd = peer_memfd(PAGE);

	assert_int_equal(pwrite(fd, "hi", 2, 0), 2);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	/*
	 * Kernels before 6.7 refuse every shared mapping of a write-sealed memfd: then it is the client's
	 * to know.
	 */
	if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		skip();
	assert_int_equal(peer_map(p, 0, PAGE, VFU_READ, fd, 0), 0);
	close(fd);
}

static void one_mapping_more_than_announced_is_refused(void **state)
{
	struct peer *p = *state;

	peer_close(p);
	peer_init(p);
	p->config.max_maps = 3;
	peer_open(p);
	peer_connect(p);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(peer_map(p, i * PAGE, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_map(p, 3 * PAGE, PAGE, RW, -1, 0), -ENOSPC);
	assert_int_equal(peer_unmap(p, PAGE, PAGE, 0, NULL), 0);
	assert_int_equal(peer_map(p, 3 * PAGE, PAGE, RW, -1, 0), 0);
}

static void an_unmap_ends_the_mapping_and_says_how_much(void **state)
{
	struct peer *p = *state;
	struct test_counts before;
	int fd = peer_memfd(2 * PAGE);
	uint64_t removed = 0;

	test_counts_take(&before);
	assert_int_equal(peer_map(p, PAGE, 2 * PAGE, RW, fd, 0), 0);
	assert_int_equal(peer_unmap(p, PAGE, 2 * PAGE, 0, &removed), 0);
	assert_int_equal(removed, 2 * PAGE);
	assert_int_equal(p->unmapped, 1);
	assert_int_equal(p->last_iova, PAGE);
	assert_null(vfu_dma_ptr(p->dev, PAGE, 1, VFU_READ));
	test_counts_same(&before);
	close(fd);
}

static void unmap_of_a_range_never_mapped_answers_zero(void **state)
{
	struct peer *p = *state;
	uint64_t removed = 1;

	assert_int_equal(peer_unmap(p, 0x1000000, 0x1000000, 0, &removed), 0);
	assert_int_equal(removed, 0);
	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_unmap(p, PAGE, PAGE, 0, &removed), 0);
	assert_int_equal(removed, 0);
	assert_int_equal(p->unmapped, 0);
}

static void an_unmap_over_whole_mappings_removes_them_all(void **state)
{
	struct peer *p = *state;
	uint64_t removed;

	assert_int_equal(peer_map(p, PAGE, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_map(p, 4 * PAGE, 2 * PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_map(p, 9 * PAGE, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_unmap(p, 0, 8 * PAGE, 0, &removed), 0);
	assert_int_equal(removed, 3 * PAGE);
	assert_int_equal(peer_unmap(p, 0, 0, VFU_UNMAP_ALL, &removed), 0);
	assert_int_equal(removed, PAGE);
	assert_int_equal(p->unmapped, 3);
}

static void an_unmap_that_would_cut_a_mapping_is_refused(void **state)
{
	struct peer *p = *state;

	assert_int_equal(peer_map(p, 2 * PAGE, 2 * PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_unmap(p, 2 * PAGE, PAGE, 0, NULL), -EINVAL);
	assert_int_equal(peer_unmap(p, 3 * PAGE, 2 * PAGE, 0, NULL), -EINVAL);
	assert_int_equal(peer_unmap(p, 0, 3 * PAGE, 0, NULL), -EINVAL);
	assert_int_equal(peer_unmap(p, 0, PAGE, VFU_UNMAP_DIRTY, NULL), -ENOTSUP);
	assert_int_equal(p->unmapped, 0);
}

/* The list against a flat model: a bit for each of 64 pages. */
static void many_maps_and_unmaps_agree_with_a_flat_model(void **state)
{
	struct peer *p = *state;
	uint8_t owner[64] = {0}; /* 0, or 1 + first page of the mapping */
	uint64_t seed = 12345;

	for (int step = 0; step < 4000; step++) {
		uint32_t at = test_draw(&seed, 64), len, covered = 0;
		bool map = test_draw(&seed, 2), clear = true, cut = false;
		uint64_t removed = 0;
		int rc;

		len = 1 + test_draw(&seed, 8);
		len = at + len > 64 ? 64 - at : len;
		for (uint32_t i = at; i < at + len; i++) {
			clear = clear && !owner[i];
			covered += owner[i] ? PAGE : 0;
		}
		cut = (at && owner[at] && owner[at] == owner[at - 1]) ||
		      (at + len < 64 && owner[at + len] && owner[at + len] == owner[at + len - 1]);
		if (map) {
			rc = peer_map(p, (uint64_t)at * PAGE, (uint64_t)len * PAGE, RW, -1, 0);
			assert_int_equal(rc, clear ? 0 : -EEXIST);
		} else {
			rc = peer_unmap(p, (uint64_t)at * PAGE, (uint64_t)len * PAGE, 0, &removed);
			assert_int_equal(rc, cut ? -EINVAL : 0);
			assert_int_equal(removed, cut ? 0 : covered);
		}
		for (uint32_t i = at; !rc && i < at + len; i++)
			owner[i] = map ? (uint8_t)(at + 1) : 0;
		p->logs[0] = 0;
	}
}

/* ---- by message. The client answers beforehand: message ids of a connection count from 0. ---- */

static void answer_read(struct peer *p, uint16_t id, uint64_t iova, const void *data, uint64_t len)
{
	struct vfu_wire_dma_rw rw = {iova, len};
	uint8_t *body = malloc(sizeof(rw) + len);

	assert_non_null(body);
	memcpy(body, &rw, sizeof(rw));
	memcpy(body + sizeof(rw), data, len);
	peer_send(p, id, VFU_CMD_DMA_READ, VFU_F_REPLY, body, sizeof(rw) + len, NULL, 0);
	free(body);
}

static void memory_without_a_descriptor_is_read_by_message(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header;
	struct vfu_wire_dma_rw asked;
	char buf[8] = "";
	int fd;

	assert_int_equal(peer_map(p, PAGE, PAGE, RW, -1, 0), 0);
	assert_null(p->last_host);
	assert_null(vfu_dma_ptr(p->dev, PAGE, 8, VFU_READ));
	answer_read(p, 0, PAGE + 16, "abcdefgh", 8);
	assert_int_equal(vfu_dma_read(p->dev, PAGE + 16, buf, 8), 0);
	assert_memory_equal(buf, "abcdefgh", 8);
	assert_int_equal(peer_recv(p, &header, &asked, sizeof(asked), &fd), sizeof(asked));
	assert_int_equal(header.cmd, VFU_CMD_DMA_READ);
	assert_int_equal(header.flags, 0);
	assert_int_equal(asked.iova, PAGE + 16);
	assert_int_equal(asked.count, 8);
}

static void memory_without_a_descriptor_is_written_by_message(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header;
	struct {
		struct vfu_wire_dma_rw rw;
		char data[8];
	} asked;
	int fd;

	assert_int_equal(peer_map(p, PAGE, PAGE, RW, -1, 0), 0);
	/* A bare header, as QEMU sends; 12 bytes, as the specification's table says; 16, as its text says. */
	for (uint16_t id = 0; id < 3; id++) {
		peer_send(p, id, VFU_CMD_DMA_WRITE, VFU_F_REPLY, "0123456789abcdef", id ? 8u + 4u * id : 0,
		        NULL, 0);
		assert_int_equal(vfu_dma_write(p->dev, 2 * PAGE - 8, "abcdefgh", 8), 0);
		assert_int_equal(peer_recv(p, &header, &asked, sizeof(asked), &fd), sizeof(asked));
		assert_int_equal(header.cmd, VFU_CMD_DMA_WRITE);
		assert_int_equal(asked.rw.iova, 2 * PAGE - 8);
		assert_int_equal(asked.rw.count, 8);
		assert_memory_equal(asked.data, "abcdefgh", 8);
	}
}

/* Another connection of the same client, whose messages are the twin socket's. */
static void connect_twin(struct peer *p, struct peer *twin)
{
	static const char hello[] =
	        "\0\0\1\0{\"capabilities\":{\"max_msg_fds\":1,\"twin_socket\":{\"supported\":true}}}";
	struct vfu_wire_header header;
	char reply[512];

	peer_hang_up(p);
	peer_poll(p);
	peer_attach(p);
	peer_send(p, 0, VFU_CMD_VERSION, 0, hello, sizeof(hello), NULL, 0);
	peer_poll(p);
	*twin = *p;
	assert_true(peer_recv(p, &header, reply, sizeof(reply), &twin->fd) > 4);
	assert_true(twin->fd >= 0);
	assert_non_null(strstr(reply + 4, "\"twin_socket\":{\"supported\":true,\"fd_index\":0}"));
	peer_master(p);
}

static void with_a_twin_socket_our_messages_and_their_answers_go_over_it(void **state)
{
	struct peer *p = *state, twin;
	struct vfu_wire_header header;
	struct vfu_wire_dma_rw asked;
	char buf[8] = "";
	int fd;

	connect_twin(p, &twin);
	assert_int_equal(peer_map(p, PAGE, PAGE, RW, -1, 0), 0);
	answer_read(&twin, 0, PAGE + 16, "abcdefgh", 8);
	/* A request of the client that is there already is served meanwhile, and not taken for the answer. */
	peer_send(p, 7, VFU_CMD_DEVICE_GET_INFO, 0, "\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, NULL, 0);
	assert_int_equal(vfu_dma_read(p->dev, PAGE + 16, buf, 8), 0);
	assert_memory_equal(buf, "abcdefgh", 8);
	assert_int_equal(peer_recv(&twin, &header, &asked, sizeof(asked), &fd), sizeof(asked));
	assert_int_equal(header.cmd, VFU_CMD_DMA_READ);
	assert_int_equal(peer_recv(p, &header, &asked, sizeof(asked), &fd), 16);
	assert_int_equal(header.cmd, VFU_CMD_DEVICE_GET_INFO);
	/* The same answer on the other socket is to nothing that was asked there. */
	answer_read(p, 1, PAGE, "ijklmnop", 8);
	assert_int_equal(vfu_dma_read(p->dev, PAGE, buf, 8), -ETIMEDOUT);
	/* Commands there are a client's that lost its way. */
	peer_send(&twin, 8, VFU_CMD_DEVICE_GET_INFO, 0, NULL, 0, NULL, 0);
	assert_int_equal(vfu_dma_read(p->dev, PAGE, buf, 8), -ENOTCONN);
	peer_poll(p);
	assert_non_null(strstr(p->logs, "a command on the socket for ours"));
	close(twin.fd);
}

/* All that comes, in one look. */
static size_t take_all(int fd)
{
	static char sink[1 << 16];
	size_t all = 0;
	ssize_t n;

	while ((n = recv(fd, sink, sizeof(sink), MSG_DONTWAIT)) > 0)
		all += (size_t)n;
	return all;
}

static void messages_that_a_client_leaves_unread_do_not_grow_and_go_on_when_it_reads(void **state)
{
	enum { WRITES = 64, BYTES = 64 << 10 };
	static char data[BYTES];
	struct peer *p = *state, twin;
	size_t came = 0, last;

	connect_twin(p, &twin);
	assert_int_equal(peer_map(p, 0, BYTES, RW, -1, 0), 0);
	for (unsigned i = 0; i < WRITES; i++)
		assert_int_equal(vfu_dma_write(p->dev, 0, data, BYTES), -ETIMEDOUT);
	do {
		last = take_all(twin.fd);
		came += last;
		assert_int_equal(vfu_dma_write(p->dev, 0, data, 1), -ETIMEDOUT);
	} while (last > BYTES);
	assert_true(came < (size_t)WRITES / 4 * BYTES);
	assert_true(take_all(twin.fd) > 0);
	close(twin.fd);
}

static void long_transfers_are_cut_at_the_clients_limit(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header;
	struct vfu_wire_dma_rw asked;
	char buf[20];
	int fd;

	peer_hang_up(p);
	peer_poll(p);
	peer_attach(p);
	assert_int_equal(peer_version(p, 0, 0, "{\"capabilities\":{\"max_data_xfer_size\":8}}"), 0);
	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	answer_read(p, 0, 0, "aaaaaaaa", 8);
	answer_read(p, 1, 8, "bbbbbbbb", 8);
	answer_read(p, 2, 16, "cccc", 4);
	assert_int_equal(vfu_dma_read(p->dev, 0, buf, 20), 0);
	assert_memory_equal(buf, "aaaaaaaabbbbbbbbcccc", 20);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(peer_recv(p, &header, &asked, sizeof(asked), &fd), sizeof(asked));
		assert_int_equal(asked.iova, 8 * i);
	}
}

static void a_transfer_may_be_part_pointer_part_message(void **state)
{
	struct peer *p = *state;
	int fd = peer_memfd(PAGE);
	char buf[8];

	assert_int_equal(pwrite(fd, "abcd", 4, PAGE - 4), 4);
	assert_int_equal(peer_map(p, 0, PAGE, RW, fd, 0), 0);
	assert_int_equal(peer_map(p, PAGE, PAGE, RW, -1, 0), 0);
	answer_read(p, 0, PAGE, "efgh", 4);
	assert_int_equal(vfu_dma_read(p->dev, PAGE - 4, buf, 8), 0);
	assert_memory_equal(buf, "abcdefgh", 8);
	close(fd);
}

static void register_accesses_that_come_meanwhile_are_served_at_once(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_region_rw rw = {0x20, 0, 4};
	struct vfu_wire_header header;
	uint8_t body[64];
	char byte;
	int fd;

	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	peer_send(p, 70, VFU_CMD_REGION_READ, 0, &rw, sizeof(rw), NULL, 0);
	peer_send(p, 71, VFU_CMD_DEVICE_GET_INFO, 0, "\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, NULL, 0);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), -ETIMEDOUT);
	assert_int_equal(p->reads, 1);
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), sizeof(struct vfu_wire_dma_rw));
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), sizeof(rw) + 4);
	assert_int_equal(header.id, 70);
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), sizeof(struct vfu_wire_device_info));
	assert_int_equal(header.id, 71);
	assert_int_equal(vfu_poll(p->dev), 0);
}

/*
 * Sends `len` bytes of a command, then an access, while a transfer waits: both must be served by the next
 * poll, in order.
 */
static void check_kept(struct peer *p, uint16_t id, uint16_t cmd, const void *body, size_t len)
{
	struct vfu_wire_region_rw rw = {0x20, 0, 4};
	struct vfu_wire_header header;
	uint8_t reply[64];
	unsigned reads = p->reads;
	char byte;
	int fd;

	peer_send(p, id, cmd, 0, body, len, NULL, 0);
	peer_send(p, 99, VFU_CMD_REGION_READ, 0, &rw, sizeof(rw), NULL, 0);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), -ETIMEDOUT);
	assert_int_equal(p->reads, reads);
	assert_int_equal(vfu_timeout(p->dev), 0);
	assert_true(peer_recv(p, &header, reply, sizeof(reply), &fd) == sizeof(struct vfu_wire_dma_rw));
	assert_int_equal(peer_recv(p, &header, reply, sizeof(reply), &fd), -1);
	peer_poll(p);
	assert_int_equal(p->reads, reads + 1);
	assert_true(peer_recv(p, &header, reply, sizeof(reply), &fd) >= 0);
	assert_int_equal(header.id, id);
	assert_true(peer_recv(p, &header, reply, sizeof(reply), &fd) >= 0);
	assert_int_equal(header.id, 99);
}

static void what_takes_memory_away_or_resets_waits_and_all_after_it(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_dma_unmap unmap = {sizeof(unmap), 0, 0x100000, PAGE};
	struct {
		struct vfu_wire_region_rw rw;
		uint8_t bytes[2];
	} flr = {{vfu_cfg_cap(p->dev, PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL, 7, 2}, {0x10, 0x80}};

	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	assert_int_equal(peer_map(p, 0x100000, PAGE, RW, -1, 0), 0);
	check_kept(p, 1, VFU_CMD_DMA_UNMAP, &unmap, sizeof(unmap));
	assert_int_equal(p->unmapped, 1);
	check_kept(p, 2, VFU_CMD_DEVICE_RESET, NULL, 0);
	assert_int_equal(p->resets, 1);
	peer_master(p);
	check_kept(p, 3, VFU_CMD_REGION_WRITE, &flr, sizeof(flr.rw) + 2);
	assert_int_equal(p->resets, 2);
}

static void a_client_that_floods_instead_of_answering_is_disconnected(void **state)
{
	struct peer *p = *state;
	char byte;
	int rc = -ETIMEDOUT;

	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	for (int i = 0; i < 64 && rc == -ETIMEDOUT; i++) {
		for (uint16_t k = 0; k < 64; k++)
			peer_send(p, k, VFU_CMD_DEVICE_RESET, VFU_F_NO_REPLY, NULL, 0, NULL, 0);
		rc = vfu_dma_read(p->dev, 0, &byte, 1);
	}
	assert_int_equal(rc, -ENOTCONN);
	assert_false(vfu_connected(p->dev));
	assert_int_equal(p->resets, 0);
	assert_non_null(strstr(p->logs, "too many requests"));
}

static void the_clients_error_is_the_result(void **state)
{
	struct peer *p = *state;
	struct vfu_wire_header header = {.id = 0,
	        .cmd = VFU_CMD_DMA_READ,
	        .size = 16,
	        .flags = VFU_F_REPLY | VFU_F_ERROR,
	        .error = EACCES};
	char byte;

	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	peer_raw(p, &header, sizeof(header), NULL, 0);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), -EACCES);
	assert_false(peer_gone(p));
}

static void a_client_that_does_not_answer_is_given_up_and_its_late_answer_dropped(void **state)
{
	struct peer *p = *state;
	char byte = 0;

	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), -ETIMEDOUT);
	answer_read(p, 0, 0, "l", 1);
	answer_read(p, 1, 0, "x", 1);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), 0);
	assert_int_equal(byte, 'x');
	assert_false(peer_gone(p) && p->disconnects);
}

static void an_answer_of_another_size_is_an_error(void **state)
{
	struct peer *p = *state;
	char buf[4];

	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	answer_read(p, 0, 0, "abcde", 5);
	assert_int_equal(vfu_dma_read(p->dev, 0, buf, 4), -EPROTO);
	answer_read(p, 1, 8, "abcd", 4);
	assert_int_equal(vfu_dma_read(p->dev, 0, buf, 4), -EPROTO);
	assert_true(vfu_connected(p->dev));
}

static void a_client_that_goes_ends_the_wait(void **state)
{
	struct peer *p = *state;
	char byte;

	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	peer_hang_up(p);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), -ENOTCONN);
	assert_false(vfu_connected(p->dev));
	assert_int_equal(p->disconnects, 0); /* told by the poll, not inside the transfer */
	peer_poll(p);
	assert_int_equal(p->disconnects, 1);
	assert_int_equal(p->unmapped, 1);
}

static int read_inside(void *ctx, uint64_t off, const void *buf, size_t len)
{
	struct peer *p = ctx;

	(void)off;
	(void)buf;
	return vfu_dma_read(p->dev, 0, p->bar0, len);
}

static void a_transfer_from_a_bar_callback_works_with_a_client_that_answers_it(void **state)
{
	struct peer *p = *state;
	struct {
		struct vfu_wire_region_rw rw;
		uint32_t value;
	} write = {{0, 0, 4}, 1};
	struct vfu_wire_header header;
	uint8_t body[64];
	int fd;

	peer_close(p);
	peer_init(p);
	p->config.bars[0].write = read_inside;
	peer_open(p);
	peer_connect(p);
	peer_master(p);
	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	peer_send(p, 50, VFU_CMD_REGION_WRITE, 0, &write, 20, NULL, 0);
	answer_read(p, 0, 0, "abcd", 4);
	peer_poll(p);
	assert_memory_equal(p->bar0, "abcd", 4);
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), sizeof(struct vfu_wire_dma_rw));
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), sizeof(struct vfu_wire_region_rw));
	assert_int_equal(header.id, 50);
}

static void a_transfer_from_inside_a_transfer_is_refused(void **state)
{
	struct peer *p = *state;
	struct {
		struct vfu_wire_region_rw rw;
		uint32_t value;
	} write = {{0, 0, 4}, 1};
	struct vfu_wire_header header;
	uint8_t body[64];
	char byte;
	int fd;

	peer_close(p);
	peer_init(p);
	p->config.bars[0].write = read_inside;
	peer_open(p);
	peer_connect(p);
	peer_master(p);
	assert_int_equal(peer_map(p, 0, PAGE, RW, -1, 0), 0);
	peer_send(p, 50, VFU_CMD_REGION_WRITE, 0, &write, 20, NULL, 0);
	answer_read(p, 0, 0, "x", 1);
	assert_int_equal(vfu_dma_read(p->dev, 0, &byte, 1), 0);
	assert_int_equal(byte, 'x');
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), sizeof(struct vfu_wire_dma_rw));
	assert_int_equal(peer_recv(p, &header, body, sizeof(body), &fd), 0);
	assert_int_equal(header.id, 50);
	assert_int_equal(header.error, EBUSY);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(a_mapping_is_told_and_reaches_the_clients_memory),
	        T(pointers_end_where_the_mapping_ends),
	        T(transfers_cross_neighbouring_mappings),
	        T(transfers_outside_or_against_the_rights_fault_and_move_nothing),
	        T(without_bus_mastering_nothing_goes_out),
	        T(mappings_never_overlap),
	        T(a_file_too_small_for_the_mapping_is_refused),
	        T(a_descriptor_that_cannot_be_mapped_is_refused_and_closed),
	        T(a_file_that_only_reads_is_mapped_for_reading),
	        T(one_mapping_more_than_announced_is_refused),
	        T(an_unmap_ends_the_mapping_and_says_how_much),
	        T(unmap_of_a_range_never_mapped_answers_zero),
	        T(an_unmap_over_whole_mappings_removes_them_all),
	        T(an_unmap_that_would_cut_a_mapping_is_refused),
	        T(many_maps_and_unmaps_agree_with_a_flat_model),
	        T(memory_without_a_descriptor_is_read_by_message),
	        T(memory_without_a_descriptor_is_written_by_message),
	        T(with_a_twin_socket_our_messages_and_their_answers_go_over_it),
	        T(messages_that_a_client_leaves_unread_do_not_grow_and_go_on_when_it_reads),
	        T(long_transfers_are_cut_at_the_clients_limit),
	        T(a_transfer_may_be_part_pointer_part_message),
	        T(register_accesses_that_come_meanwhile_are_served_at_once),
	        T(what_takes_memory_away_or_resets_waits_and_all_after_it),
	        T(a_client_that_floods_instead_of_answering_is_disconnected),
	        T(the_clients_error_is_the_result),
	        T(a_client_that_does_not_answer_is_given_up_and_its_late_answer_dropped),
	        T(an_answer_of_another_size_is_an_error),
	        T(a_client_that_goes_ends_the_wait),
	        T(a_transfer_from_a_bar_callback_works_with_a_client_that_answers_it),
	        T(a_transfer_from_inside_a_transfer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
