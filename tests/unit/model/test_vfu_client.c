/* SPDX-License-Identifier: MIT */
#include "test_vfu_client.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_ROOM (VFU_MAX_DATA + 64)

static int bar0_read(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct peer *p = ctx;

	p->reads++;
	memcpy(buf, p->bar0 + off, len);
	return p->bar_rc;
}

static int bar0_write(void *ctx, uint64_t off, const void *buf, size_t len)
{
	struct peer *p = ctx;

	p->writes++;
	memcpy(p->bar0 + off, buf, len);
	return p->bar_rc;
}

static int on_reset(void *ctx)
{
	struct peer *p = ctx;

	p->resets++;
	return p->reset_rc;
}

static void on_mapped(void *ctx, uint64_t iova, uint64_t len, void *host, unsigned prot)
{
	struct peer *p = ctx;

	p->mapped++;
	p->last_iova = iova;
	p->last_len = len;
	p->last_host = host;
	p->last_prot = prot;
}

static void on_unmapped(void *ctx, uint64_t iova, uint64_t len, void *host)
{
	struct peer *p = ctx;

	p->unmapped++;
	p->last_iova = iova;
	p->last_len = len;
	p->last_host = host;
}

static void on_connected(void *ctx)
{
	((struct peer *)ctx)->connects++;
}

static void on_disconnected(void *ctx)
{
	((struct peer *)ctx)->disconnects++;
}

static void on_config(void *ctx, uint32_t off, uint32_t len)
{
	(void)off;
	(void)len;
	((struct peer *)ctx)->config_writes++;
}

static void on_log(void *ctx, enum vfu_log_level level, const char *text)
{
	struct peer *p = ctx;
	size_t at = strlen(p->logs);

	(void)level;
	snprintf(p->logs + at, sizeof(p->logs) - at, "%s\n", text);
}

static uint64_t on_now(void *ctx)
{
	return ((struct peer *)ctx)->clock;
}

int peer_memfd(uint64_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static void init_bars(struct peer *p)
{
	struct vfu_bar *bars = p->config.bars;

	p->memfd = peer_memfd(PEER_BAR4_OFF + PEER_BAR4);
	p->mem = mmap(NULL, PEER_BAR4_OFF + PEER_BAR4, PROT_READ | PROT_WRITE, MAP_SHARED, p->memfd, 0);
	assert_true(p->mem != MAP_FAILED);
	bars[0] = (struct vfu_bar){.size = PEER_BAR0, .read = bar0_read, .write = bar0_write};
	bars[2] = (struct vfu_bar){.size = PEER_BAR2,
	        .mem64 = true,
	        .prefetch = true,
	        .mem = p->mem,
	        .memfd = p->memfd,
	        .areas = {{0, PEER_AREA}, {PEER_AREA2, PEER_AREA}},
	        .area_count = 2};
	bars[4] = (struct vfu_bar){.size = PEER_BAR4,
	        .mem = p->mem + PEER_BAR4_OFF,
	        .memfd = p->memfd,
	        .memfd_offset = PEER_BAR4_OFF,
	        .areas = {{0, PEER_BAR4}},
	        .area_count = 1};
}

void peer_init(struct peer *p)
{
	memset(p, 0, sizeof(*p));
	p->fd = -1;
	p->clock = 1;
	p->config = (struct vfu_config){.vendor = 0x1234,
	        .device = 0x5258,
	        .class_code = 0x120000,
	        .revision = 1,
	        .intx = true,
	        .msi_vectors = PEER_MSI,
	        .msix = {PEER_VECTORS, 0, PEER_TABLE, PEER_PBA},
	        .dma_timeout_ms = 1,
	        .ctx = p,
	        .reset = on_reset,
	        .dma_mapped = on_mapped,
	        .dma_unmapped = on_unmapped,
	        .connected = on_connected,
	        .disconnected = on_disconnected,
	        .config_written = on_config,
	        .log = on_log,
	        .now = on_now};
	init_bars(p);
}

void peer_open(struct peer *p)
{
	assert_int_equal(vfu_open(&p->config, &p->dev), 0);
}

void peer_attach(struct peer *p)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vfu_attach_fd(p->dev, pair[0]), 0);
	p->fd = pair[1];
	p->id = 100;
}

void peer_connect(struct peer *p)
{
	peer_attach(p);
	assert_int_equal(peer_version(p, 0, 1, "{\"capabilities\":{\"max_msg_fds\":8}}"), 0);
}

void peer_hang_up(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void peer_close(struct peer *p)
{
	vfu_close(p->dev);
	peer_hang_up(p);
	munmap(p->mem, PEER_BAR4_OFF + PEER_BAR4);
	close(p->memfd);
}

int peer_setup(void **state)
{
	struct peer *p = malloc(sizeof(*p));

	assert_non_null(p);
	peer_init(p);
	peer_open(p);
	peer_connect(p);
	*state = p;
	return 0;
}

int peer_teardown(void **state)
{
	peer_close(*state);
	free(*state);
	return 0;
}

void peer_poll(struct peer *p)
{
	while (vfu_poll(p->dev) > 0)
		;
}

void peer_raw(struct peer *p, const void *bytes, size_t len, const int *fds, size_t fd_count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
	} control;
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd_count) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * fd_count);
	}
	assert_int_equal(sendmsg(p->fd, &msg, MSG_NOSIGNAL), len);
}

void peer_send(struct peer *p, uint16_t id, uint16_t cmd, uint32_t flags, const void *body, size_t len,
        const int *fds, size_t fd_count)
{
	struct vfu_wire_header header = {
	        .id = id, .cmd = cmd, .size = (uint32_t)(sizeof(header) + len), .flags = flags};
	uint8_t *bytes = malloc(header.size);

	assert_non_null(bytes);
	memcpy(bytes, &header, sizeof(header));
	if (len)
		memcpy(bytes + sizeof(header), body, len);
	peer_raw(p, bytes, header.size, fds, fd_count);
	free(bytes);
}

static ssize_t take(struct peer *p, void *buf, size_t len, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	struct iovec part = {.iov_base = buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part,
	        .msg_iovlen = 1,
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(p->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	if (c) {
		assert_int_equal(c->cmsg_len, CMSG_LEN(sizeof(int)));
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	}
	return got;
}

long peer_recv(struct peer *p, struct vfu_wire_header *header, void *body, size_t room, int *fd)
{
	uint8_t *at = body;
	ssize_t got;
	size_t left;

	*fd = -1;
	got = take(p, header, sizeof(*header), fd);
	if (got <= 0)
		return got == 0 || errno == ECONNRESET ? -2 : -1;
	assert_int_equal(got, sizeof(*header));
	left = header->size - sizeof(*header);
	assert_true(left <= room);
	while (left) {
		got = take(p, at, left, fd);
		if (got < 0) {
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(vfu_poll(p->dev), 1);
			continue;
		}
		assert_true(got > 0);
		at += got;
		left -= (size_t)got;
	}
	return at - (uint8_t *)body;
}

int peer_call(struct peer *p, uint16_t cmd, const void *body, size_t len, const int *fds, size_t fd_count,
        void *out, size_t want)
{
	struct vfu_wire_header header;
	uint8_t *reply = malloc(BODY_ROOM);
	int fd, rc = 0;
	long got;

	assert_non_null(reply);
	peer_send(p, ++p->id, cmd, 0, body, len, fds, fd_count);
	peer_poll(p);
	got = peer_recv(p, &header, reply, BODY_ROOM, &fd);
	assert_true(got >= 0);
	assert_int_equal(fd, -1);
	assert_int_equal(header.id, p->id);
	assert_int_equal(header.cmd, cmd);
	assert_int_equal(header.flags & VFU_F_TYPE, VFU_F_REPLY);
	if (header.flags & VFU_F_ERROR) {
		assert_int_equal(got, 0);
		rc = -(int)header.error;
	} else {
		assert_int_equal(got, want);
		if (want)
			memcpy(out, reply, want);
	}
	free(reply);
	return rc;
}

bool peer_gone(struct peer *p)
{
	char byte;
	ssize_t got;

	peer_poll(p);
	got = recv(p->fd, &byte, 1, MSG_DONTWAIT);
	return got == 0 || (got < 0 && errno == ECONNRESET);
}

int peer_version(struct peer *p, uint16_t major, uint16_t minor, const char *json)
{
	struct vfu_wire_version version = {major, minor};
	size_t len = sizeof(version) + (json ? strlen(json) + 1 : 0);
	struct vfu_wire_header header;
	uint8_t body[VFU_MAX_JSON + 16];
	int fd;
	long got;

	memcpy(body, &version, sizeof(version));
	if (json)
		memcpy(body + sizeof(version), json, strlen(json) + 1);
	peer_send(p, ++p->id, VFU_CMD_VERSION, 0, body, len, NULL, 0);
	peer_poll(p);
	got = peer_recv(p, &header, body, sizeof(body), &fd);
	assert_true(got >= 0);
	assert_int_equal(header.id, p->id);
	if (header.flags & VFU_F_ERROR)
		return -(int)header.error;
	assert_true(got > (long)sizeof(version));
	assert_int_equal(body[got - 1], 0);
	return 0;
}

int peer_map(struct peer *p, uint64_t iova, uint64_t size, uint32_t flags, int fd, uint64_t offset)
{
	struct vfu_wire_dma_map map = {sizeof(map), flags, offset, iova, size};

	return peer_call(p, VFU_CMD_DMA_MAP, &map, sizeof(map), &fd, fd >= 0, NULL, 0);
}

int peer_unmap(struct peer *p, uint64_t iova, uint64_t size, uint32_t flags, uint64_t *removed)
{
	struct vfu_wire_dma_unmap unmap = {sizeof(unmap), flags, iova, size};
	int rc = peer_call(p, VFU_CMD_DMA_UNMAP, &unmap, sizeof(unmap), NULL, 0, &unmap, sizeof(unmap));

	if (!rc)
		assert_int_equal(unmap.iova, iova);
	if (!rc && removed)
		*removed = unmap.size;
	return rc;
}

int peer_read(struct peer *p, uint32_t region, uint64_t off, void *buf, uint32_t len)
{
	struct vfu_wire_region_rw rw = {off, region, len};
	uint8_t *out = malloc(sizeof(rw) + len);
	int rc;

	assert_non_null(out);
	rc = peer_call(p, VFU_CMD_REGION_READ, &rw, sizeof(rw), NULL, 0, out, sizeof(rw) + len);
	if (!rc) {
		assert_memory_equal(out, &rw, sizeof(rw));
		memcpy(buf, out + sizeof(rw), len);
	}
	free(out);
	return rc;
}

int peer_write(struct peer *p, uint32_t region, uint64_t off, const void *buf, uint32_t len)
{
	struct vfu_wire_region_rw rw = {off, region, len}, answer;
	uint8_t *in = malloc(sizeof(rw) + len);
	int rc;

	assert_non_null(in);
	memcpy(in, &rw, sizeof(rw));
	memcpy(in + sizeof(rw), buf, len);
	rc = peer_call(p, VFU_CMD_REGION_WRITE, in, sizeof(rw) + len, NULL, 0, &answer, sizeof(answer));
	if (!rc)
		assert_memory_equal(&answer, &rw, sizeof(rw));
	free(in);
	return rc;
}

uint32_t peer_cfg(struct peer *p, uint32_t off, unsigned size)
{
	uint32_t value = 0;

	assert_int_equal(peer_read(p, VFIO_PCI_CONFIG_REGION_INDEX, off, &value, size), 0);
	return value;
}

void peer_cfg_set(struct peer *p, uint32_t off, unsigned size, uint32_t value)
{
	assert_int_equal(peer_write(p, VFIO_PCI_CONFIG_REGION_INDEX, off, &value, size), 0);
}

int peer_irqs(struct peer *p, uint32_t flags, uint32_t index, uint32_t start, uint32_t count,
        const void *data, size_t len, const int *fds, size_t fd_count)
{
	struct vfu_wire_irq_set set = {(uint32_t)(sizeof(set) + len), flags, index, start, count};
	uint8_t body[sizeof(set) + 64];

	memcpy(body, &set, sizeof(set));
	if (len)
		memcpy(body + sizeof(set), data, len);
	return peer_call(p, VFU_CMD_DEVICE_SET_IRQS, body, sizeof(set) + len, fds, fd_count, NULL, 0);
}

void peer_master(struct peer *p)
{
	peer_cfg_set(p, PCI_COMMAND, 2, peer_cfg(p, PCI_COMMAND, 2) | PCI_COMMAND_MASTER);
}

int peer_event(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_true(fd >= 0);
	return fd;
}

uint64_t peer_events(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count) ? count : 0;
}
