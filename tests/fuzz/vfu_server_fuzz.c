/* SPDX-License-Identifier: MIT */
/*
 * The vfio-user server against a hostile client. The first byte chooses.
 *
 * Even: the rest is the body of every command in turn, for the pure parsers. Odd: the rest is a list of
 * records that are sent to a function with a handshake behind it, which with bit 1 brought a second socket:
 * kind (1 byte: bits 0-1 the number of descriptors, bit 2 memory instead of eventfds, bit 3 no reply, bit 4
 * the answer to the function's next message, bit 5 over the second socket, bit 6 a transfer by message waits
 * meanwhile, bit 7 the bytes are sent as they are), command (1 byte), length (2 bytes, little-endian),
 * bytes.
 */
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vfu.h"
#include "vfu_parse.h"

#define RECORD_HEAD 4u
#define RECORDS_MAX 256u
#define MEM_SIZE    0x4000u
#define BAR_SIZE    0x2000u
#define FDS_MAX     3u
#define PROBES      4u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

uint8_t vfu_fuzz_sink; /* visible outside, so that no read into it is left out */

struct target {
	struct vfu_device *dev;
	uint8_t bar[BAR_SIZE];
	int fd, event, memfd;
	int twin;         /* the second socket, -1 */
	bool twin_wanted; /* until it is here */
	uint16_t next_id; /* of the function's next message */
};

static int bar_read(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct target *t = ctx;

	memcpy(buf, t->bar + off, len);
	return 0;
}

static int bar_write(void *ctx, uint64_t off, const void *buf, size_t len)
{
	struct target *t = ctx;

	memcpy(t->bar + off, buf, len);
	return 0;
}

/* Touches all of what was promised to be reachable. */
static void mapped(void *ctx, uint64_t iova, uint64_t len, void *host, unsigned prot)
{
	const uint8_t *at = host;

	(void)ctx;
	(void)iova;
	(void)prot;
	for (uint64_t i = 0; at && i < len; i += VFU_PAGE)
		vfu_fuzz_sink ^= at[i];
}

static void log_line(void *ctx, enum vfu_log_level level, const char *text)
{
	(void)ctx;
	(void)level;
	if (!text[0])
		abort();
}

static void parse_all(const uint8_t *body, size_t len)
{
	static const uint32_t counts[VFU_IRQ_INDICES] = {1, 4, 16, 1, 1};
	union {
		struct vfu_wire_header header;
		struct vfu_version version;
		struct vfu_wire_dma_map map;
		struct vfu_wire_dma_unmap unmap;
		struct vfu_wire_device_info device;
		struct vfu_wire_region_info region;
		struct vfu_wire_irq_info irq;
		struct vfu_wire_region_rw rw;
		struct vfu_wire_write_one one;
	} out;
	struct vfu_irq_set set;
	const uint8_t *data;
	uint32_t writes;

	vfu_parse_header(body, len, &out.header);
	vfu_parse_version(body, len, &out.version);
	vfu_parse_dma_map(body, len, &out.map);
	vfu_parse_dma_unmap(body, len, &out.unmap);
	vfu_parse_device_info(body, len, &out.device);
	vfu_parse_region_info(body, len, &out.region);
	vfu_parse_irq_info(body, len, &out.irq);
	vfu_parse_region_read(body, len, &out.rw);
	for (size_t fds = 0; fds < FDS_MAX; fds++)
		if (!vfu_parse_irq_set(body, len, counts, fds, &set) && set.bools && set.count)
			vfu_fuzz_sink ^= set.bools[set.count - 1];
	if (!vfu_parse_region_write(body, len, &out.rw, &data))
		vfu_fuzz_sink ^= data[out.rw.count - 1];
	if (!vfu_parse_write_multi(body, len, &writes))
		for (uint32_t i = 0; i < writes; i++)
			vfu_parse_write_one(body, len, i, &out.one);
	if (!vfu_parse_dma_data(body, len, 0, len > 16 ? len - 16 : 0, &data) && len > 16)
		vfu_fuzz_sink ^= data[len - 17];
}

static void send_bytes(struct target *t, const uint8_t *bytes, size_t len, uint8_t kind)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	int fd = kind & 4 ? t->memfd : t->event, fds[FDS_MAX] = {fd, fd, fd};
	size_t count = kind & 3;

	if (count) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * count);
	}
	(void)!sendmsg(kind & 0x20 && t->twin >= 0 ? t->twin : t->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_message(struct target *t, const uint8_t *body, size_t len, uint8_t kind, uint8_t cmd)
{
	struct vfu_wire_header header = {.id = kind & 0x10 ? t->next_id : 0,
	        .cmd = cmd,
	        .size = (uint32_t)(sizeof(header) + len),
	        .flags = (kind & 8 ? VFU_F_NO_REPLY : 0) | (kind & 0x10 ? VFU_F_REPLY : 0)};
	uint8_t *bytes = malloc(header.size);

	if (!bytes)
		return;
	memcpy(bytes, &header, sizeof(header));
	if (len)
		memcpy(bytes + sizeof(header), body, len);
	send_bytes(t, bytes, header.size, kind);
	free(bytes);
}

/* Reads away what came, descriptors included. */
static void drain(struct target *t)
{
	static uint8_t sink[1 << 16];
	char control[256];
	struct iovec part = {.iov_base = sink, .iov_len = sizeof(sink)};

	for (;;) {
		struct msghdr msg = {.msg_iov = &part,
		        .msg_iovlen = 1,
		        .msg_control = control,
		        .msg_controllen = sizeof(control)};
		struct cmsghdr *c;
		int fd;

		if (recvmsg(t->fd, &msg, MSG_DONTWAIT) <= 0)
			return;
		c = CMSG_FIRSTHDR(&msg);
		if (c && c->cmsg_type == SCM_RIGHTS) {
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
			if (t->twin_wanted)
				t->twin = fd;
			else
				close(fd);
			t->twin_wanted = false;
		}
	}
}

/* Reads away what came over the second socket: the function's own messages. */
static void drain_twin(struct target *t)
{
	static uint8_t sink[1 << 16];
	struct vfu_wire_header header;

	while (t->twin >= 0 && recv(t->twin, &header, sizeof(header), MSG_DONTWAIT) == sizeof(header)) {
		(void)!recv(t->twin, sink, header.size - sizeof(header), MSG_DONTWAIT);
		t->next_id = (uint16_t)(header.id + 1);
	}
}

/*
 * What a device does between requests. Transfers only where a pointer is: messages would wait for an
 * answer.
 */
static void act(struct target *t)
{
	static const uint64_t iovas[PROBES] = {0, 0x1000, 0x10000, UINT64_C(0x100000000)};

	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t word = 1;

		vfu_irq(t->dev, i);
		if (vfu_dma_ptr(t->dev, iovas[i], sizeof(word), VFU_READ))
			vfu_dma_read(t->dev, iovas[i], &word, sizeof(word));
		if (vfu_dma_ptr(t->dev, iovas[i], sizeof(word), VFU_WRITE))
			vfu_dma_write(t->dev, iovas[i], &word, sizeof(word));
	}
	vfu_irq_clear(t->dev);
}

/* Finds what was sent before it in its socket, instead of an answer. */
static void transfer(struct target *t)
{
	uint8_t bytes[8];

	vfu_cfg_set(t->dev, PCI_COMMAND, 2, PCI_COMMAND_MASTER);
	vfu_dma_read(t->dev, 0, bytes, sizeof(bytes));
	vfu_dma_write(t->dev, UINT64_C(0x100000000), bytes, sizeof(bytes));
}

static void settle(struct target *t)
{
	do {
		drain(t);
		drain_twin(t);
	} while (vfu_poll(t->dev) > 0);
}

static void play(struct target *t, const uint8_t *bytes, size_t length)
{
	for (unsigned n = 0; length >= RECORD_HEAD && n < RECORDS_MAX && vfu_connected(t->dev); n++) {
		uint8_t kind = bytes[0], cmd = bytes[1];
		size_t len = (size_t)bytes[2] | (size_t)bytes[3] << 8;

		bytes += RECORD_HEAD;
		length -= RECORD_HEAD;
		len = len < length ? len : length;
		if (kind & 0x80)
			send_bytes(t, bytes, len, kind);
		else
			send_message(t, bytes, len, kind, cmd);
		bytes += len;
		length -= len;
		if (kind & 0x40)
			transfer(t);
		settle(t);
		act(t);
	}
}

static int make(struct target *t)
{
	struct vfu_config config = {.vendor = 0x1234,
	        .device = 0x5258,
	        .intx = true,
	        .msi_vectors = 4,
	        .msix = {16, 0, 0x1000, 0x1800},
	        .dma_timeout_ms = 1,
	        .max_maps = 64,
	        .ctx = t,
	        .dma_mapped = mapped,
	        .log = log_line};

	config.bars[0] = (struct vfu_bar){.size = BAR_SIZE, .read = bar_read, .write = bar_write};
	config.bars[2] = (struct vfu_bar){.size = BAR_SIZE,
	        .mem64 = true,
	        .mem = t->bar,
	        .memfd = t->memfd,
	        .areas = {{0, 0x1000}},
	        .area_count = 1};
	return vfu_open(&config, &t->dev);
}

static void greet(struct target *t)
{
	static const char two[] = "\0\0\1\0{\"capabilities\":{\"twin_socket\":{\"supported\":true}}}";

	send_message(t, (const uint8_t *)two, t->twin_wanted ? sizeof(two) : 4, 0, VFU_CMD_VERSION);
	settle(t);
	if (t->twin_wanted)
		abort();
}

static void run(struct target *t, const uint8_t *bytes, size_t length)
{
	int pair[2];

	if (make(t))
		abort();
	if (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		t->fd = pair[1];
		if (!vfu_attach_fd(t->dev, pair[0])) {
			greet(t);
			play(t, bytes, length);
		}
		close(pair[1]);
		if (t->twin >= 0)
			close(t->twin);
		while (vfu_poll(t->dev) > 0)
			;
	}
	vfu_close(t->dev);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct target t = {.event = -1, .memfd = -1, .twin = -1};

	if (!length)
		return 0;
	if (!(bytes[0] & 1)) {
		parse_all(bytes + 1, length - 1);
		return 0;
	}
	t.twin_wanted = bytes[0] & 2;
	t.event = eventfd(0, EFD_CLOEXEC);
	t.memfd = memfd_create("fuzz", MFD_CLOEXEC);
	if (t.event >= 0 && t.memfd >= 0 && !ftruncate(t.memfd, MEM_SIZE))
		run(&t, bytes + 1, length - 1);
	close(t.event);
	close(t.memfd);
	return 0;
}
