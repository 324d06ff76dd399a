/* SPDX-License-Identifier: MIT */
#include "vfio_user.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bits.h"
#include "rig_pci.h"
#include "error.h"
#include "log.h"
#include "range.h"
#include "vfio_ops.h"
#include "vfio_user_chan.h"
#include "vfio_user_parse.h"
#include "vfio_user_sock.h"

/* What we say we take in one message. The device's DMA by message is chopped into this, and it is two buffers
 * of ours, whose untouched pages cost nothing. */
#define OUR_XFER RIG_VUSER_DEFAULT_XFER

/* The most of one access to a region, whatever the device process takes: others wait for it meanwhile. Of a
 * write less: libvfio-user takes a command's data with one recv(2) and gives up if that answers with a part,
 * as it may where the kernel cut the message. Its pieces hold 32 KiB and more (UNIX_SKB_FRAGS_SZ in
 * net/unix/af_unix.c). */
#define READ_XFER  (UINT64_C(64) << 10)
#define WRITE_XFER (UINT64_C(32) << 10)

struct rig_vuser {
	struct rig_vuser_chan chan;
	bool attached;
	int fd; /* until attached, when it is the channel's */
	unsigned deadline_ms;
	const struct rig_vfio_sink *sink;
	struct rig_vuser_caps caps; /* the peer's */
	unsigned regions, irqs;     /* how many it has */
	int region_fd[RIG_VFIO_REGIONS];
};

int rig_vuser_new(int fd, unsigned deadline_ms, void **transport)
{
	struct rig_vuser *u = calloc(1, sizeof(*u));

	if (!u) {
		close(fd);
		return rig_vfio_fail(ENOMEM, NULL, "vfio-user");
	}
	u->fd = fd;
	u->deadline_ms = deadline_ms ? deadline_ms : RIG_VUSER_DEADLINE_MS;
	for (unsigned i = 0; i < RIG_VFIO_REGIONS; i++)
		u->region_fd[i] = -1;
	*transport = u;
	return 0;
}

static void quiet(void *transport)
{
	struct rig_vuser *u = transport;

	if (u->attached)
		rig_vuser_chan_quiet(&u->chan);
}

/* All that a child of fork does: the connection is the parent's. */
static void close_fds(void *transport)
{
	struct rig_vuser *u = transport;

	if (u->attached)
		rig_vuser_chan_close(&u->chan);
	else
		close(u->fd);
	for (unsigned i = 0; i < RIG_VFIO_REGIONS; i++) {
		if (u->region_fd[i] >= 0)
			close(u->region_fd[i]);
	}
}

static void close_transport(void *transport)
{
	struct rig_vuser *u = transport;

	close_fds(u);
	if (u->attached)
		rig_vuser_chan_fini(&u->chan);
	free(u);
}

/* One command whose failure is worded here. */
static int call(struct rig_vuser *u, struct rig_vuser_call *c)
{
	int err = rig_vuser_call(&u->chan, c);

	if (err)
		return rig_vfio_fail(err, NULL, "vfio-user: %s", rig_vuser_command_name(c->command));
	return 0;
}

static int broken(struct rig_vuser *u, const char *what)
{
	return rig_vfio_fail(rig_vuser_broken(&u->chan, what), "the device process has a defect",
	        "vfio-user: the device process sent %s", what);
}

/* -- "VFIO_USER_VERSION" -- */

static int accept_version(struct rig_vuser *u, const void *reply, size_t len)
{
	const char *why;
	int err = rig_vuser_parse_version(reply, len, &u->caps, &why);

	if (err == -ENOMEM)
		return rig_vfio_fail(err, NULL, "vfio-user: reading the capabilities");
	if (err)
		return broken(u, why);
	if (u->caps.major != RIG_VUSER_MAJOR || u->caps.minor > RIG_VUSER_MINOR)
		return rig_vfio_fail(EPROTO, "it needs another version of this library",
		        "vfio-user: the device process speaks %u.%u, we speak up to %u.%u", u->caps.major,
		        u->caps.minor, RIG_VUSER_MAJOR, RIG_VUSER_MINOR);
	rig_logf(u->sink->log, RIG_LOG_DEBUG,
	        "vfio-user %u.%u: %u descriptors and %" PRIu64 " bytes a message, %" PRIu64
	        " mappings, pages %#" PRIx64 ", %s",
	        u->caps.major, u->caps.minor, u->caps.max_fds, u->caps.max_xfer, u->caps.max_maps,
	        u->caps.page_sizes, u->caps.twin ? "two sockets" : "one socket");
	why = rig_vuser_chan_twin(&u->chan, u->caps.twin);
	return why ? broken(u, why) : 0;
}

static int negotiate(struct rig_vuser *u)
{
	const struct rig_vuser_version version = {RIG_VUSER_MAJOR, RIG_VUSER_MINOR};
	const struct rig_vuser_caps ours = {
	        .max_fds = RIG_VUSER_FDS_IN,
	        .max_xfer = OUR_XFER,
	        .max_maps = RIG_VUSER_DEFAULT_MAPS,
	        .page_sizes = RIG_VUSER_DEFAULT_PAGES,
	        .twin = true,
	};
	char json[RIG_VUSER_JSON_BYTES], reply[sizeof(version) + RIG_VUSER_JSON_BYTES];
	int json_len = rig_vuser_json_write(&ours, json, sizeof(json));
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_VERSION,
	        .head = &version,
	        .head_len = sizeof(version),
	        .data = json,
	        .data_len = (size_t)json_len,
	        .reply = reply,
	        .reply_room = sizeof(reply),
	};
	int err = json_len < 0 ? json_len : call(u, &c);

	return err ? err : accept_version(u, reply, c.reply_len);
}

static int attach(void *transport, const struct rig_vfio_sink *sink)
{
	struct rig_vuser *u = transport;
	int err = rig_vuser_chan_init(&u->chan, u->fd, u->deadline_ms, OUR_XFER, sink);

	if (err)
		return rig_vfio_fail(err, NULL, "vfio-user: starting the receiver");
	u->attached = true;
	u->sink = sink;
	return negotiate(u);
}

/* -- Facts -- */

static int device(void *transport, struct rig_vfio_device *out)
{
	struct rig_vuser *u = transport;
	struct rig_vuser_device_info info = {.argsz = sizeof(info)};
	char reply[sizeof(info)];
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_DEVICE_GET_INFO,
	        .head = &info,
	        .head_len = sizeof(info),
	        .reply = reply,
	        .reply_room = sizeof(reply),
	};
	const char *why;
	int err = call(u, &c);

	if (err)
		return err;
	if (rig_vuser_parse_device(reply, c.reply_len, &info, &why))
		return broken(u, why);
	if (!(info.flags & RIG_VUSER_DEVICE_PCI) || info.regions <= RIG_VFIO_CONFIG)
		return rig_vfio_fail(ENOTSUP, "serve a PCI function",
		        "vfio-user: the device has flags %#x and %u regions: no PCI function", info.flags,
		        info.regions);
	u->regions = info.regions;
	u->irqs = info.irqs;
	out->resets = (info.flags & RIG_VUSER_DEVICE_RESETS) != 0;
	out->peers = RIG_VFIO_PEERS_FILE;
	out->dma_page = UINT64_C(1) << rig_lowest_bit(u->caps.page_sizes);
	out->dma_maps = u->caps.max_maps;
	return 0;
}

/* Mapping beyond the end of a file faults at the first access, so such a list is refused here. */
static int check_file(struct rig_vuser *u, const struct rig_vfio_region *r)
{
	const struct rig_vfio_area *last = &r->area[r->areas - 1];
	uint64_t end;
	struct stat st;

	if (!rig_add_u64(r->fd_offset, last->offset + last->bytes, &end) || end > INT64_MAX)
		return broken(u, "a mappable area at an offset that no file has");
	if (fstat(r->fd, &st) < 0)
		return rig_vfio_fail(errno, NULL, "vfio-user: fstat of a region's descriptor");
	if (S_ISREG(st.st_mode) && end > (uint64_t)st.st_size)
		return broken(u, "a mappable area beyond the end of its file");
	return 0;
}

static int keep_region(struct rig_vuser *u, unsigned index, int fd, struct rig_vfio_region *out)
{
	if (u->region_fd[index] >= 0)
		close(u->region_fd[index]);
	u->region_fd[index] = fd;
	out->fd = fd;
	if (fd < 0 || out->areas == 0) {
		out->areas = 0;
		return 0;
	}
	return check_file(u, out);
}

static int region(void *transport, unsigned index, struct rig_vfio_region *out)
{
	struct rig_vuser *u = transport;
	struct rig_vuser_region_info info = {.argsz = RIG_VUSER_REGION_INFO_BYTES, .index = index};
	char reply[RIG_VUSER_REGION_INFO_BYTES];
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_REGION_INFO,
	        .head = &info,
	        .head_len = sizeof(info),
	        .reply = reply,
	        .reply_room = sizeof(reply),
	        .takes_fd = true,
	};
	const char *why;
	int err = call(u, &c);

	if (err)
		return err;
	if (rig_vuser_parse_region(reply, c.reply_len, index, out, &why)) {
		if (c.reply_fd >= 0)
			close(c.reply_fd);
		return broken(u, why);
	}
	return keep_region(u, index, c.reply_fd, out);
}

static int irqs(void *transport, unsigned kind, unsigned *count)
{
	struct rig_vuser *u = transport;
	struct rig_vuser_irq_info info = {.argsz = sizeof(info), .index = kind};
	char reply[sizeof(info)];
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_IRQ_INFO,
	        .head = &info,
	        .head_len = sizeof(info),
	        .reply = reply,
	        .reply_room = sizeof(reply),
	};
	const char *why;
	int err;

	*count = 0;
	if (kind >= u->irqs)
		return 0;
	err = call(u, &c);
	if (err)
		return err;
	return rig_vuser_parse_irq(reply, c.reply_len, kind, count, &why) ? broken(u, why) : 0;
}

/* The device process has no IOMMU whose reach could end somewhere. */
static int iova(void *transport, struct rig_ranges *out)
{
	(void)transport;
	return rig_ranges_add(out, 0, UINT64_MAX);
}

/* -- "Read and Write Operations" -- */

static int read_chunk(struct rig_vuser *u, const struct rig_vuser_region_access *a, void *buf)
{
	/* A register read answers into the stack, a longer one into memory of its own. */
	unsigned char small[sizeof(*a) + 64], *reply = small;
	size_t room = sizeof(*a) + a->count;
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_REGION_READ, .head = a, .head_len = sizeof(*a), .reply_room = room};
	const void *data;
	const char *why;
	int err;

	if (room > sizeof(small) && !(reply = malloc(room)))
		return rig_vfio_fail(ENOMEM, NULL, "vfio-user: reading %u bytes of a region", a->count);
	c.reply = reply;
	err = call(u, &c);
	if (!err && rig_vuser_parse_region_read(reply, c.reply_len, a, &data, &why))
		err = broken(u, why);
	if (!err)
		memcpy(buf, data, a->count);
	if (reply != small)
		free(reply);
	return err;
}

static int write_chunk(struct rig_vuser *u, const struct rig_vuser_region_access *a, const void *buf)
{
	char reply[sizeof(*a)];
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_REGION_WRITE,
	        .head = a,
	        .head_len = sizeof(*a),
	        .data = buf,
	        .data_len = a->count,
	        .reply = reply,
	        .reply_room = sizeof(reply),
	};
	const char *why;
	int err = call(u, &c);

	if (!err && rig_vuser_parse_region_write(reply, c.reply_len, a, &why))
		err = broken(u, why);
	return err;
}

static int region_read(void *transport, unsigned index, uint64_t offset, void *buf, uint64_t len)
{
	struct rig_vuser *u = transport;
	uint64_t most = rig_min_u64(u->caps.max_xfer, READ_XFER);
	int err = 0;

	for (uint64_t done = 0; done < len && !err;) {
		struct rig_vuser_region_access a = {
		        offset + done, index, (uint32_t)rig_min_u64(len - done, most)};

		err = read_chunk(u, &a, (char *)buf + done);
		done += a.count;
	}
	return err;
}

static int region_write(void *transport, unsigned index, uint64_t offset, const void *buf, uint64_t len)
{
	struct rig_vuser *u = transport;
	uint64_t most = rig_min_u64(u->caps.max_xfer, WRITE_XFER);
	int err = 0;

	for (uint64_t done = 0; done < len && !err;) {
		struct rig_vuser_region_access a = {
		        offset + done, index, (uint32_t)rig_min_u64(len - done, most)};

		err = write_chunk(u, &a, (const char *)buf + done);
		done += a.count;
	}
	return err;
}

/* -- DMA -- */

static int dma_map(void *transport, const struct rig_vfio_map *map)
{
	struct rig_vuser *u = transport;
	bool shared = map->fd >= 0;
	struct rig_vuser_dma_map m = {
	        .argsz = sizeof(m),
	        .flags = ((map->prot & RIG_DMA_READ) ? RIG_VUSER_DMA_READABLE : 0) |
	                 ((map->prot & RIG_DMA_WRITE) ? RIG_VUSER_DMA_WRITEABLE : 0),
	        .offset = shared ? map->fd_offset : 0,
	        .address = map->iova,
	        .bytes = map->bytes,
	};
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_DMA_MAP,
	        .head = &m,
	        .head_len = sizeof(m),
	        .fds = &map->fd,
	        .nfds = shared ? 1 : 0,
	};

	return call(u, &c);
}

/* "The server responds with the original DMA entry"; some answer with the header alone. */
static int dma_unmap(void *transport, uint64_t at, uint64_t bytes)
{
	struct rig_vuser *u = transport;
	struct rig_vuser_dma_unmap m = {.argsz = sizeof(m), .address = at, .bytes = bytes}, back;
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_DMA_UNMAP,
	        .head = &m,
	        .head_len = sizeof(m),
	        .reply = &back,
	        .reply_room = sizeof(back),
	};
	int err = call(u, &c);

	if (err || c.reply_len == 0)
		return err;
	if (c.reply_len < sizeof(back) || back.address != at || back.bytes != bytes)
		return broken(u, "the answer to another unmapping");
	return 0;
}

/* -- "VFIO_USER_DEVICE_SET_IRQS" -- */

static int set_irqs(struct rig_vuser *u, const struct rig_vuser_set_irqs *s, const int *fds, unsigned nfds)
{
	struct rig_vuser_call c = {
	        .command = RIG_VUSER_SET_IRQS, .head = s, .head_len = sizeof(*s), .fds = fds, .nfds = nfds};

	return call(u, &c);
}

/* A run of vectors that are all connected or all not, as far as one message's descriptors reach. */
static unsigned run_length(const struct rig_vuser *u, const int *fds, unsigned count)
{
	unsigned n = 1;

	while (n < count && (fds[n] >= 0) == (fds[0] >= 0) && (fds[0] < 0 || n < u->caps.max_fds))
		n++;
	return n;
}

/* "If no file descriptors are provided, this de-assigns the specified previously configured interrupts." */
static int connect_irqs(struct rig_vuser *u, const struct rig_vfio_irq *irq)
{
	int err = 0;

	for (unsigned i = 0; i < irq->count && !err;) {
		unsigned n = run_length(u, irq->fds + i, irq->count - i);
		bool on = irq->fds[i] >= 0;
		struct rig_vuser_set_irqs s = {
		        .argsz = sizeof(s),
		        .flags = RIG_VUSER_IRQ_DATA_EVENTFD | RIG_VUSER_IRQ_ACTION_TRIGGER,
		        .index = irq->kind,
		        .start = irq->first + i,
		        .count = n,
		};

		err = set_irqs(u, &s, on ? irq->fds + i : NULL, on ? n : 0);
		i += n;
	}
	return err;
}

static int irq_set(void *transport, const struct rig_vfio_irq *irq)
{
	struct rig_vuser *u = transport;
	struct rig_vuser_set_irqs s = {.argsz = sizeof(s), .index = irq->kind};

	switch (irq->action) {
	case RIG_VFIO_IRQ_CONNECT:
		return connect_irqs(u, irq);
	case RIG_VFIO_IRQ_OFF:
		s.flags = RIG_VUSER_IRQ_DATA_NONE | RIG_VUSER_IRQ_ACTION_TRIGGER;
		return set_irqs(u, &s, NULL, 0);
	case RIG_VFIO_IRQ_UNMASK:
		s.flags = RIG_VUSER_IRQ_DATA_NONE | RIG_VUSER_IRQ_ACTION_UNMASK;
		s.start = irq->first;
		s.count = irq->count;
		return set_irqs(u, &s, NULL, 0);
	}
	return rig_vfio_fail(EINVAL, NULL, "vfio-user: interrupt action %d", (int)irq->action);
}

static int reset(void *transport, unsigned reset_ms, bool ours)
{
	struct rig_vuser_call c = {.command = RIG_VUSER_RESET, .deadline_ms = reset_ms};

	(void)ours;
	return call(transport, &c);
}

static uint64_t messages(const void *transport)
{
	const struct rig_vuser *u = transport;

	return atomic_load_explicit(&u->chan.messages, memory_order_relaxed);
}

const struct rig_vfio_ops rig_vuser_ops = {
        .name = "vfio-user",
        .tells = true,
        .attach = attach,
        .quiet = quiet,
        .close = close_transport,
        .forked = close_fds,
        .device = device,
        .region = region,
        .irqs = irqs,
        .iova = iova,
        .read = region_read,
        .write = region_write,
        .dma_map = dma_map,
        .dma_unmap = dma_unmap,
        .irq_set = irq_set,
        .reset = reset,
        .messages = messages,
};
