/* SPDX-License-Identifier: MIT */
/* The life of a function and its client: open, serve, disconnect. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "vfu_priv.h"

#define LINE_MAX_LEN    256
#define VFU_JSON_BYTES  512    /* of our version's text */
#define MAPS_LIMIT      65535u /* QEMU refuses a server that announces more */
#define DMA_TIMEOUT_MS  2000u
#define MESSAGES_A_POLL 64
#define HANDSHAKE_NS    UINT64_C(10000000000) /* others wait for their turn meanwhile */
#define STALL_NS                                                                                             \
	UINT64_C(30000000000) /* half a message, or answers not read: as long as a debugger may take */
#define MEANWHILE_BYTES  (2 * VFU_MAX_MSG) /* unsent: our own DMA message, and an answer */
#define NS_PER_S         UINT64_C(1000000000)
#define NS_PER_MS        UINT64_C(1000000)
#define PAGE_SIZES       (UINT64_C(1) << 12 | UINT64_C(1) << 21 | UINT64_C(1) << 30)
#define MAX_MSI          32u
#define CLASS_CODE_LIMIT (1u << 24)

void vfu_log(struct vfu_device *dev, enum vfu_log_level level, const char *format, ...)
{
	char line[LINE_MAX_LEN];
	va_list args;

	if (!dev->config.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	dev->config.log(dev->config.ctx, level, line);
}

/*
 * The connection ends at the next poll: its owner may be in the middle of using it. The first reason
 * counts.
 */
void vfu_drop(struct vfu_device *dev, const char *format, ...)
{
	char why[VFU_WHY];
	va_list args;

	if (dev->conn.fd < 0 || dev->conn.dead)
		return;
	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	dev->conn.dead = true;
	vfu_log(dev, dev->conn.negotiated ? VFU_LOG_INFO : VFU_LOG_ERROR, "disconnected: %s", why);
}

void vfu_disconnect(struct vfu_device *dev, const char *why)
{
	vfu_drop(dev, "%s", why);
}

uint64_t vfu_now(struct vfu_device *dev)
{
	struct timespec ts;

	if (dev->config.now)
		return dev->config.now(dev->config.ctx);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

void *vfu_reply_take(struct vfu_reply *reply, size_t len)
{
	reply->data = calloc(1, len);
	reply->len = reply->data ? len : 0;
	return reply->data;
}

static int check(struct vfu_device *dev)
{
	struct vfu_config *c = &dev->config;

	c->max_maps = c->max_maps ? c->max_maps : VFU_MAX_MAPS;
	c->dma_timeout_ms = c->dma_timeout_ms ? c->dma_timeout_ms : DMA_TIMEOUT_MS;
	if (c->max_maps > MAPS_LIMIT || c->class_code >= CLASS_CODE_LIMIT || c->dma_timeout_ms > INT32_MAX) {
		vfu_log(dev, VFU_LOG_ERROR, "class code, mappings or timeout out of range");
		return -EINVAL;
	}
	if (c->msi_vectors > MAX_MSI || (c->msi_vectors & (c->msi_vectors - 1))) {
		vfu_log(dev, VFU_LOG_ERROR, "MSI: %u vectors are no power of two up to %u", c->msi_vectors,
		        MAX_MSI);
		return -EINVAL;
	}
	return vfu_region_check(dev);
}

int vfu_open(const struct vfu_config *config, struct vfu_device **out)
{
	struct vfu_device *dev = calloc(1, sizeof(*dev));
	int rc;

	if (!dev)
		return -ENOMEM;
	dev->config = *config;
	dev->listen.fd = -1;
	vfu_conn_init(&dev->conn);
	vfu_conn_init(&dev->twin);
	dev->twin_theirs = -1;
	rc = check(dev);
	if (!rc)
		rc = vfu_cfg_init(dev);
	if (!rc)
		rc = vfu_irqs_init(dev);
	if (rc) {
		vfu_irqs_fini(dev);
		free(dev);
		return rc;
	}
	memcpy(dev->cfg_first, dev->cfg, sizeof(dev->cfg));
	*out = dev;
	return 0;
}

static void close_theirs(struct vfu_device *dev)
{
	if (dev->twin_theirs >= 0)
		close(dev->twin_theirs);
	dev->twin_theirs = -1;
}

/* What the client gave ends with it; what the function is stays. */
static void take_down(struct vfu_device *dev)
{
	bool told = dev->conn.told;

	vfu_socket_flush(&dev->conn); /* the error reply that says why, if the client still reads */
	vfu_maps_release(dev);
	vfu_irqs_release(dev);
	vfu_conn_fini(&dev->conn);
	vfu_conn_fini(&dev->twin);
	close_theirs(dev);
	if (told && dev->config.disconnected)
		dev->config.disconnected(dev->config.ctx);
}

void vfu_close(struct vfu_device *dev)
{
	if (!dev)
		return;
	if (dev->conn.fd >= 0) {
		vfu_drop(dev, "the device is closing");
		take_down(dev);
	}
	vfu_listen_fini(dev);
	vfu_irqs_fini(dev);
	free(dev);
}

int vfu_start(struct vfu_device *dev, int fd, bool accepted)
{
	vfu_conn_init(&dev->conn);
	dev->conn.fd = fd;
	dev->conn.accepted = accepted;
	dev->conn.deadline = accepted ? vfu_now(dev) + HANDSHAKE_NS : 0;
	dev->sealed = true;
	return 0;
}

static int check_socket(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) ||
	        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len))
		return -errno;
	return domain == AF_UNIX && type == SOCK_STREAM ? 0 : -EPROTOTYPE;
}

int vfu_attach_fd(struct vfu_device *dev, int fd)
{
	int rc = dev->conn.fd >= 0 ? -EBUSY : check_socket(fd);

	if (rc) {
		close(fd);
		return rc;
	}
	return vfu_start(dev, fd, false);
}

bool vfu_connected(const struct vfu_device *dev)
{
	return dev->conn.fd >= 0 && !dev->conn.dead;
}

int vfu_do_reset(struct vfu_device *dev)
{
	int rc = dev->config.reset ? dev->config.reset(dev->config.ctx) : 0;

	if (rc) {
		vfu_log(dev, VFU_LOG_WARN, "the device refused a reset: %s", strerror(-rc));
		return rc;
	}
	vfu_cfg_reset(dev);
	vfu_irqs_reset(dev);
	vfu_log(dev, VFU_LOG_INFO, "reset");
	return 0;
}

static int answer_version(struct vfu_device *dev, struct vfu_reply *reply, uint16_t minor)
{
	struct vfu_wire_version wire = {.major = VFU_WIRE_MAJOR, .minor = minor};
	char json[VFU_JSON_BYTES];
	uint8_t *body;
	int len = snprintf(json, sizeof(json),
	        "{\"capabilities\":{\"max_msg_fds\":%u,\"max_data_xfer_size\":%u,\"max_dma_maps\":%u,"
	        "\"pgsizes\":%llu%s%s}}",
	        VFU_MAX_MSG_FDS, VFU_MAX_DATA, dev->config.max_maps, (unsigned long long)PAGE_SIZES,
	        dev->conn.version.write_multiple ? ",\"write_multiple\":true" : "",
	        dev->twin.fd >= 0 ? ",\"twin_socket\":{\"supported\":true,\"fd_index\":0}" : "");

	body = vfu_reply_take(reply, sizeof(wire) + (size_t)len + 1);
	if (!body)
		return -ENOMEM;
	memcpy(body, &wire, sizeof(wire));
	memcpy(body + sizeof(wire), json, (size_t)len + 1);
	reply->fd = dev->twin_theirs;
	return 0;
}

/* A second socket for the client that takes one: our commands and their answers then never meet its own. */
static int make_twin(struct vfu_device *dev)
{
	int pair[2];

	if (!dev->conn.version.twin || dev->conn.version.max_fds == 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	dev->twin.fd = pair[0];
	dev->twin_theirs = pair[1];
	return 0;
}

static int serve_version(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	struct vfu_version *version = &dev->conn.version;
	int rc;

	if (dev->conn.negotiated)
		return -EINVAL;
	rc = vfu_parse_version(msg->body, msg->len, version);
	if (!rc && version->major != VFU_WIRE_MAJOR)
		rc = -ENOTSUP;
	if (!rc)
		rc = make_twin(dev);
	if (!rc)
		rc = answer_version(
		        dev, reply, version->minor < VFU_WIRE_MINOR ? version->minor : VFU_WIRE_MINOR);
	if (!rc)
		dev->conn.negotiated = true;
	return rc;
}

static int serve_info(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	struct vfu_wire_device_info info;
	void *body;
	int rc = vfu_parse_device_info(msg->body, msg->len, &info);

	(void)dev;
	if (rc)
		return rc;
	info = (struct vfu_wire_device_info){.argsz = sizeof(info),
	        .flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
	        .regions = VFU_REGIONS,
	        .irqs = VFU_IRQ_INDICES};
	body = vfu_reply_take(reply, sizeof(info));
	if (!body)
		return -ENOMEM;
	memcpy(body, &info, sizeof(info));
	return 0;
}

static int serve_reset(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	(void)reply;
	return msg->len ? -EINVAL : vfu_do_reset(dev);
}

/* Known to the protocol, not to us: migration, dirty pages, features, I/O descriptors. */
static int serve_nothing(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	(void)dev;
	(void)msg;
	(void)reply;
	return -ENOTSUP;
}

struct command {
	int (*serve)(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);
	bool fds; /* may bring descriptors */
};

/* DMA_READ and DMA_WRITE are missing: only a server sends them. */
static const struct command commands[] = {
        [VFU_CMD_VERSION] = {serve_version, false},
        [VFU_CMD_DMA_MAP] = {vfu_maps_add, true},
        [VFU_CMD_DMA_UNMAP] = {vfu_maps_remove, false},
        [VFU_CMD_DEVICE_GET_INFO] = {serve_info, false},
        [VFU_CMD_DEVICE_GET_REGION_INFO] = {vfu_region_info, false},
        [VFU_CMD_DEVICE_GET_REGION_IO_FDS] = {serve_nothing, false},
        [VFU_CMD_DEVICE_GET_IRQ_INFO] = {vfu_irqs_info, false},
        [VFU_CMD_DEVICE_SET_IRQS] = {vfu_irqs_set, true},
        [VFU_CMD_REGION_READ] = {vfu_region_read, false},
        [VFU_CMD_REGION_WRITE] = {vfu_region_write, false},
        [VFU_CMD_DEVICE_RESET] = {serve_reset, false},
        [VFU_CMD_DIRTY_PAGES] = {serve_nothing, false},
        [VFU_CMD_REGION_WRITE_MULTI] = {vfu_region_write_multi, false},
        [VFU_CMD_DEVICE_FEATURE] = {serve_nothing, false},
        [VFU_CMD_MIG_DATA_READ] = {serve_nothing, false},
        [VFU_CMD_MIG_DATA_WRITE] = {serve_nothing, false},
};

static int serve(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	size_t cmd = msg->header.cmd;

	if (cmd >= sizeof(commands) / sizeof(commands[0]) || !commands[cmd].serve)
		return -EINVAL;
	if (!dev->conn.negotiated && cmd != VFU_CMD_VERSION)
		return -EINVAL;
	if (msg->fds_lost || (msg->fd_count && !commands[cmd].fds))
		return -EINVAL;
	return commands[cmd].serve(dev, msg, reply);
}

/* An error reply is a bare header. With No_reply nothing goes out, whatever happened. */
static void answer(struct vfu_device *dev, const struct vfu_msg *msg, const struct vfu_reply *reply, int rc)
{
	struct vfu_wire_header header = {.id = msg->header.id,
	        .cmd = msg->header.cmd,
	        .size = (uint32_t)(sizeof(header) + (rc ? 0 : reply->len)),
	        .flags = VFU_F_REPLY | (rc ? VFU_F_ERROR : 0),
	        .error = rc ? (uint32_t)-rc : 0};

	if (rc)
		vfu_log(dev, VFU_LOG_WARN, "command %u of %zu bytes and %zu descriptors refused: %s",
		        msg->header.cmd, msg->len, msg->fd_count, strerror(-rc));
	if (msg->header.flags & VFU_F_NO_REPLY)
		return;
	rc = vfu_socket_send(
	        &dev->conn, &header, reply->data, rc ? 0 : reply->len, NULL, 0, rc ? -1 : reply->fd);
	if (rc)
		vfu_drop(dev, "sending failed: %s", strerror(-rc));
}

static void handle(struct vfu_device *dev, struct vfu_msg *msg)
{
	struct vfu_reply reply = {.fd = -1};
	int rc;

	/* An answer to a DMA message that was given up. */
	if ((msg->header.flags & VFU_F_TYPE) == VFU_F_REPLY)
		return;
	rc = serve(dev, msg, &reply);
	if (!dev->conn.dead)
		answer(dev, msg, &reply, rc);
	free(reply.data);
	if (!dev->conn.out)
		close_theirs(dev);
	if (!dev->conn.negotiated)
		vfu_drop(dev, "the handshake failed (command %u, version %u.%u)", msg->header.cmd,
		        dev->conn.version.major, dev->conn.version.minor);
	if (!dev->conn.dead && !dev->conn.told) {
		dev->conn.told = true;
		vfu_log(dev, VFU_LOG_INFO, "a client connected");
		if (dev->config.connected)
			dev->config.connected(dev->config.ctx);
	}
}

/*
 * What can be served while the device stands in the middle of a transfer: not what takes memory away or
 * resets. QEMU holds its big lock while it waits for the answer to a request of its own, and needs that
 * lock to answer a DMA message: if its register accesses waited for the transfer, both would wait until one
 * gives up.
 */
static bool harmless(struct vfu_device *dev, const struct vfu_msg *msg)
{
	struct vfu_wire_region_rw rw;
	const uint8_t *data;

	switch (msg->header.cmd) {
	case VFU_CMD_DMA_MAP:
	case VFU_CMD_DEVICE_GET_INFO:
	case VFU_CMD_DEVICE_GET_REGION_INFO:
	case VFU_CMD_DEVICE_GET_IRQ_INFO:
	case VFU_CMD_DEVICE_SET_IRQS:
	case VFU_CMD_REGION_READ:
		return true;
	case VFU_CMD_REGION_WRITE:
		return !vfu_parse_region_write(msg->body, msg->len, &rw, &data) &&
		       (rw.region != VFIO_PCI_CONFIG_REGION_INDEX ||
		               !vfu_cfg_is_reset(dev, rw.offset, data, rw.count));
	default:
		return false;
	}
}

/*
 * Requests keep their order: after one that has to wait, all do. What the client does not read bounds what
 * it can ask.
 */
void vfu_serve_meanwhile(struct vfu_device *dev)
{
	bool was = dev->in_poll;

	dev->in_poll = true;
	while (dev->conn.first && harmless(dev, dev->conn.first) && !dev->conn.dead &&
	        dev->conn.out_bytes <= MEANWHILE_BYTES) {
		struct vfu_msg *msg = vfu_socket_pop(&dev->conn);

		handle(dev, msg);
		vfu_msg_free(msg);
	}
	dev->in_poll = was;
}

static struct vfu_msg *next_message(struct vfu_device *dev)
{
	struct vfu_msg *msg = vfu_socket_pop(&dev->conn);
	char why[VFU_WHY];

	if (!msg && vfu_socket_recv(&dev->conn, &msg, why) < 0)
		vfu_drop(dev, "%s", why);
	return msg;
}

/* While answers wait to go out no request is taken: what the client does not read bounds what it can ask. */
static int serve_client(struct vfu_device *dev)
{
	int did = vfu_socket_flush(&dev->conn);

	if (did < 0) {
		vfu_drop(dev, "sending failed: %s", strerror(-did));
		return 1;
	}
	for (int i = 0; i < MESSAGES_A_POLL && !dev->conn.out && !dev->conn.dead; i++) {
		struct vfu_msg *msg = next_message(dev);

		if (!msg)
			break;
		handle(dev, msg);
		vfu_msg_free(msg);
		did = 1;
	}
	return did;
}

/*
 * Only clients of a path have a next one waiting; a parent that inherited its socket to us may stop in a
 * debugger.
 */
static void keep_time(struct vfu_device *dev, int did)
{
	struct vfu_conn *conn = &dev->conn;

	if (!conn->accepted || conn->dead)
		return;
	if (!conn->negotiated || conn->got || conn->out) {
		if (conn->negotiated && (did || !conn->deadline))
			conn->deadline = vfu_now(dev) + STALL_NS;
		else if (vfu_now(dev) >= conn->deadline)
			vfu_drop(dev,
			        conn->negotiated ? "half a message, or answers that nobody reads, for %llu s"
			                         : "no handshake in %llu s",
			        (unsigned long long)((conn->negotiated ? STALL_NS : HANDSHAKE_NS) /
			                             NS_PER_S));
	} else {
		conn->deadline = 0;
	}
}

int vfu_poll(struct vfu_device *dev)
{
	int did;

	if (dev->in_poll)
		return -EBUSY;
	dev->in_poll = true;
	did = vfu_listen_poll(dev);
	if (dev->conn.fd >= 0) {
		if (!dev->conn.dead)
			did |= vfu_irqs_watch(dev) | serve_client(dev);
		keep_time(dev, did);
	}
	if (dev->conn.fd >= 0 && dev->conn.dead) {
		take_down(dev);
		did = 1;
	}
	dev->in_poll = false;
	return did;
}

static size_t want(struct pollfd *fds, size_t max, size_t count, int fd, short events)
{
	if (fd < 0 || count >= max)
		return count;
	fds[count] = (struct pollfd){.fd = fd, .events = events};
	return count + 1;
}

size_t vfu_fds(struct vfu_device *dev, struct pollfd *fds, size_t max)
{
	size_t count = want(fds, max, 0, dev->listen.fd, POLLIN);

	count = want(fds, max, count, dev->conn.fd, dev->conn.out ? POLLOUT : POLLIN);
	count = want(fds, max, count, dev->irqs.intx_watch[0], POLLIN);
	return want(fds, max, count, dev->irqs.intx_watch[1], POLLIN);
}

int vfu_timeout(struct vfu_device *dev)
{
	const struct vfu_conn *conn = &dev->conn;
	uint64_t now, left;

	if (conn->fd < 0)
		return -1;
	if (conn->dead || (conn->first && !conn->out))
		return 0;
	if (!conn->deadline)
		return -1;
	now = vfu_now(dev);
	left = conn->deadline > now ? conn->deadline - now : 0;
	return (int)((left + NS_PER_MS - 1) / NS_PER_MS);
}
