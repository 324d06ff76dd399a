/* SPDX-License-Identifier: MIT */
/* The client's memory: the list of its mappings, and transfers by pointer or by message. */
#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "vfu_priv.h"

/*
 * Bytes a DMA message. QEMU (11.1) takes a short write of a long reply for a whole one and loses the rest, so
 * replies must fit into an empty socket buffer, 208 KiB by default.
 */
#define CHUNK (64u << 10)

/* What a client leaves unread, beyond what its socket holds, before it gets no more DMA messages. */
#define UNREAD_BYTES (4 * CHUNK)

#define FIRST_ROOM 64
#define MS_PER_S   1000
#define NS_PER_MS  1000000

static uint64_t last_of(const struct vfu_map *map)
{
	return map->iova + (map->size - 1);
}

/* Index of the first mapping that ends at or after iova; count if there is none. */
static size_t find(const struct vfu_maps *maps, uint64_t iova)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (last_of(&maps->list[mid]) < iova)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The mapping that holds iova, or NULL. */
static struct vfu_map *holder(const struct vfu_maps *maps, uint64_t iova)
{
	size_t at = find(maps, iova);

	return at < maps->count && maps->list[at].iova <= iova ? &maps->list[at] : NULL;
}

/* What the file's pages are: hugetlbfs maps in whole huge pages only. */
static uint64_t file_page(int fd)
{
	struct statfs st;

	if (!fstatfs(fd, &st) && (uint64_t)st.f_type == HUGETLBFS_MAGIC)
		return (uint64_t)st.f_bsize;
	return VFU_PAGE;
}

static int map_fd(struct vfu_map *map, int fd, uint64_t offset)
{
	uint64_t page = file_page(fd);
	uint64_t slack = offset & (page - 1);
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	/* Beyond the end of the file every access would be SIGBUS. */
	if (st.st_size < 0 || (uint64_t)st.st_size < offset + map->size)
		return -EINVAL;
	map->base_size = (map->size + slack + page - 1) & ~(page - 1);
	map->base = mmap(NULL, map->base_size, PROT_READ | (map->prot & VFU_WRITE ? PROT_WRITE : 0),
	        MAP_SHARED, fd, (off_t)(offset - slack));
	if (map->base == MAP_FAILED)
		return -errno;
	map->host = (uint8_t *)map->base + slack;
	return 0;
}

static int make_room(struct vfu_maps *maps)
{
	size_t room = maps->room ? maps->room * 2 : FIRST_ROOM;
	struct vfu_map *list;

	if (maps->count < maps->room)
		return 0;
	list = realloc(maps->list, room * sizeof(*list));
	if (!list)
		return -ENOMEM;
	maps->list = list;
	maps->room = room;
	return 0;
}

static void insert(struct vfu_maps *maps, size_t at, const struct vfu_map *map)
{
	memmove(&maps->list[at + 1], &maps->list[at], (maps->count - at) * sizeof(*map));
	maps->list[at] = *map;
	maps->count++;
}

int vfu_maps_add(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	struct vfu_maps *maps = &dev->maps;
	struct vfu_wire_dma_map wire;
	struct vfu_map map;
	size_t at;
	int rc = vfu_parse_dma_map(msg->body, msg->len, &wire);

	(void)reply;
	if (rc)
		return rc;
	if (msg->fd_count > 1)
		return -EINVAL;
	map = (struct vfu_map){.iova = wire.iova, .size = wire.size, .prot = wire.flags};
	at = find(maps, wire.iova);
	if (at < maps->count && maps->list[at].iova <= last_of(&map))
		return -EEXIST;
	if (maps->count >= dev->config.max_maps)
		return -ENOSPC;
	rc = make_room(maps);
	if (!rc && msg->fd_count)
		rc = map_fd(&map, msg->fds[0], wire.offset);
	if (rc)
		return rc;
	insert(maps, at, &map);
	if (dev->config.dma_mapped)
		dev->config.dma_mapped(dev->config.ctx, map.iova, map.size, map.host, map.prot);
	return 0;
}

/* The callback still finds the mapping in the list; afterwards nothing of it is left. */
static void remove_at(struct vfu_device *dev, size_t at)
{
	struct vfu_maps *maps = &dev->maps;
	struct vfu_map map = maps->list[at];

	if (dev->config.dma_unmapped)
		dev->config.dma_unmapped(dev->config.ctx, map.iova, map.size, map.host);
	maps->count--;
	memmove(&maps->list[at], &maps->list[at + 1], (maps->count - at) * sizeof(map));
	if (map.base)
		munmap(map.base, map.base_size);
}

void vfu_maps_release(struct vfu_device *dev)
{
	while (dev->maps.count)
		remove_at(dev, dev->maps.count - 1);
	free(dev->maps.list);
	dev->maps = (struct vfu_maps){0};
}

/*
 * Removes the mappings inside [iova, last]; -EINVAL if one is only partly inside. Adds up what they
 * covered.
 */
static int remove_range(struct vfu_device *dev, uint64_t iova, uint64_t last, uint64_t *covered)
{
	struct vfu_maps *maps = &dev->maps;
	size_t first = find(maps, iova), end = first;

	while (end < maps->count && maps->list[end].iova <= last)
		end++;
	if (end > first && (maps->list[first].iova < iova || last_of(&maps->list[end - 1]) > last))
		return -EINVAL;
	while (end-- > first) {
		*covered += maps->list[end].size;
		remove_at(dev, end);
	}
	return 0;
}

/*
 * As the kernel's type1: a range that holds several whole mappings removes them all, one that holds none is
 * no error (QEMU sends both while a guest sets up its IOMMU), and the reply's size says how much was
 * removed.
 */
int vfu_maps_remove(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	struct vfu_wire_dma_unmap wire;
	uint64_t covered = 0;
	void *body;
	int rc = vfu_parse_dma_unmap(msg->body, msg->len, &wire);

	if (rc)
		return rc;
	body = vfu_reply_take(reply, sizeof(wire));
	if (!body)
		return -ENOMEM;
	if (wire.flags & VFU_UNMAP_ALL)
		rc = remove_range(dev, 0, UINT64_MAX, &covered);
	else
		rc = remove_range(dev, wire.iova, wire.iova + (wire.size - 1), &covered);
	wire.argsz = sizeof(wire);
	wire.size = covered;
	memcpy(body, &wire, sizeof(wire));
	return rc;
}

static bool aligned(const void *mem, size_t len)
{
	return ((uintptr_t)mem & (len - 1)) == 0;
}

void vfu_mem_load(void *buf, const void *mem, size_t len)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	if (len == 8 && aligned(mem, len)) {
		v8 = __atomic_load_n((const uint64_t *)mem, __ATOMIC_ACQUIRE);
		memcpy(buf, &v8, len);
	} else if (len == 4 && aligned(mem, len)) {
		v4 = __atomic_load_n((const uint32_t *)mem, __ATOMIC_ACQUIRE);
		memcpy(buf, &v4, len);
	} else if (len == 2 && aligned(mem, len)) {
		v2 = __atomic_load_n((const uint16_t *)mem, __ATOMIC_ACQUIRE);
		memcpy(buf, &v2, len);
	} else {
		memcpy(buf, mem, len);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	}
}

void vfu_mem_store(void *mem, const void *buf, size_t len)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	if (len == 8 && aligned(mem, len)) {
		memcpy(&v8, buf, len);
		__atomic_store_n((uint64_t *)mem, v8, __ATOMIC_RELEASE);
	} else if (len == 4 && aligned(mem, len)) {
		memcpy(&v4, buf, len);
		__atomic_store_n((uint32_t *)mem, v4, __ATOMIC_RELEASE);
	} else if (len == 2 && aligned(mem, len)) {
		memcpy(&v2, buf, len);
		__atomic_store_n((uint16_t *)mem, v2, __ATOMIC_RELEASE);
	} else {
		/* Earlier stores before these, because the client may take these as the news of them. */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		memcpy(mem, buf, len);
	}
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * MS_PER_S + (uint64_t)ts.tv_nsec / NS_PER_MS;
}

/* Where our commands go, and their answers come from. */
static struct vfu_conn *own_line(struct vfu_device *dev)
{
	return dev->twin.fd >= 0 ? &dev->twin : &dev->conn;
}

static struct pollfd wanted(const struct vfu_conn *conn)
{
	return (struct pollfd){.fd = conn->fd, .events = (short)(POLLIN | (conn->out ? POLLOUT : 0))};
}

/* Waits until a socket can be read, or written where something waits to go out. */
static int wait_sockets(struct vfu_device *dev, uint64_t until)
{
	struct pollfd fds[] = {wanted(&dev->conn), wanted(&dev->twin)}; /* poll passes over -1 */
	uint64_t now = now_ms();
	int rc;

	if (now >= until)
		return -ETIMEDOUT;
	rc = poll(fds, 2, (int)(until - now));
	return rc < 0 && errno != EINTR ? -errno : 0;
}

static bool answers(const struct vfu_msg *msg, const struct vfu_wire_header *asked)
{
	return msg->header.id == asked->id && msg->header.cmd == asked->cmd;
}

/* A request that came while a DMA message waits for its answer. */
static int take_request(struct vfu_device *dev, struct vfu_msg *msg)
{
	if (vfu_socket_push(&dev->conn, msg)) {
		vfu_msg_free(msg);
		vfu_drop(dev, "too many requests while a DMA message waits for its answer");
	} else {
		vfu_serve_meanwhile(dev);
	}
	return dev->conn.dead ? -ENOTCONN : 0;
}

/* Takes what came there: 1 and *out if it is the answer. Late answers to earlier messages are dropped. */
static int take_answer(struct vfu_device *dev, struct vfu_conn *conn, const struct vfu_wire_header *asked,
        struct vfu_msg **out)
{
	char why[VFU_WHY];
	struct vfu_msg *msg;
	int rc;

	while ((rc = vfu_socket_recv(conn, &msg, why)) > 0) {
		if ((msg->header.flags & VFU_F_TYPE) != VFU_F_REPLY && conn == &dev->twin) {
			vfu_msg_free(msg);
			vfu_drop(dev, "a command on the socket for ours");
			return -ENOTCONN;
		} else if ((msg->header.flags & VFU_F_TYPE) != VFU_F_REPLY) {
			rc = take_request(dev, msg);
			if (rc)
				return rc;
		} else if (conn == own_line(dev) && answers(msg, asked)) {
			*out = msg;
			return 1;
		} else {
			vfu_msg_free(msg);
		}
	}
	if (rc < 0) {
		vfu_drop(dev, "%s", why);
		return -ENOTCONN;
	}
	return 0;
}

/* Sends one DMA message and waits for the answer, which the caller frees. */
static int exchange(struct vfu_device *dev, const struct vfu_wire_header *header,
        const struct vfu_wire_dma_rw *rw, const void *data, size_t len, struct vfu_msg **out)
{
	uint64_t until = now_ms() + dev->config.dma_timeout_ms;
	int rc = vfu_socket_flush(own_line(dev));

	if (rc >= 0)
		rc = own_line(dev)->out_bytes > UNREAD_BYTES
		             ? -ETIMEDOUT
		             : vfu_socket_send(own_line(dev), header, rw, sizeof(*rw), data, len, -1);
	while (rc >= 0) {
		rc = take_answer(dev, &dev->conn, header, out);
		if (rc == 0 && dev->twin.fd >= 0)
			rc = take_answer(dev, &dev->twin, header, out);
		if (rc > 0)
			return 0;
		if (rc == 0 && (vfu_socket_flush(&dev->conn) < 0 || vfu_socket_flush(own_line(dev)) < 0))
			rc = -ENOTCONN;
		if (rc == 0) {
			vfu_serve_meanwhile(dev);
			rc = dev->conn.dead ? -ENOTCONN : wait_sockets(dev, until);
		}
	}
	if (rc == -ETIMEDOUT)
		vfu_log(dev, VFU_LOG_WARN, "no answer to a DMA message for 0x%llx in %u ms",
		        (unsigned long long)rw->iova, dev->config.dma_timeout_ms);
	else if (rc != -ENOTCONN)
		vfu_drop(dev, "a DMA message failed: %s", strerror(-rc));
	return rc == -ETIMEDOUT ? rc : -ENOTCONN;
}

/* The answer to one message is looked at: data for a read. QEMU answers a write with a header alone. */
static int take_data(struct vfu_device *dev, struct vfu_msg *msg, const struct vfu_wire_dma_rw *rw, void *buf)
{
	const uint8_t *data;
	int rc = 0;

	if (msg->header.flags & VFU_F_ERROR)
		return vfu_parse_error(&msg->header);
	if (buf)
		rc = vfu_parse_dma_data(msg->body, msg->len, rw->iova, rw->count, &data);
	if (rc)
		vfu_log(dev, VFU_LOG_WARN,
		        "an answer to DMA_READ of another size or place (QEMU 10.1 does that)");
	else if (buf)
		memcpy(buf, data, rw->count);
	return rc;
}

/* Exactly one of in and out is given. */
static int by_message(struct vfu_device *dev, uint64_t iova, void *in, const void *out, uint64_t len)
{
	uint16_t cmd = in ? VFU_CMD_DMA_READ : VFU_CMD_DMA_WRITE;

	while (len) {
		uint64_t most = dev->conn.version.max_data < CHUNK ? dev->conn.version.max_data : CHUNK;
		uint64_t n = len < most ? len : most;
		struct vfu_wire_dma_rw rw = {.iova = iova, .count = n};
		struct vfu_wire_header header = {.id = dev->conn.next_id++,
		        .cmd = cmd,
		        .size = (uint32_t)(sizeof(header) + sizeof(rw) + (in ? 0 : n))};
		struct vfu_msg *msg = NULL;
		int rc;

		if (dev->conn.waiting) /* in a callback that was served meanwhile */
			return -EBUSY;
		dev->conn.waiting = true;
		rc = exchange(dev, &header, &rw, out, in ? 0 : n, &msg);
		dev->conn.waiting = false;
		if (!msg)
			return rc;
		rc = take_data(dev, msg, &rw, in);
		vfu_msg_free(msg);
		if (rc)
			return rc;
		iova += n;
		len -= n;
		in = in ? (uint8_t *)in + n : NULL;
		out = out ? (const uint8_t *)out + n : NULL;
	}
	return 0;
}

/* All of [iova, iova + len) is mapped with prot. len > 0. */
static bool covered(const struct vfu_maps *maps, uint64_t iova, uint64_t len, unsigned prot)
{
	uint64_t last = iova + (len - 1);

	if (last < iova)
		return false;
	for (;;) {
		const struct vfu_map *map = holder(maps, iova);

		if (!map || (map->prot & prot) != prot)
			return false;
		if (last_of(map) >= last)
			return true;
		iova = last_of(map) + 1;
	}
}

/* Said once a client: a device in a loop would fill the log. */
static int refuse(struct vfu_device *dev, int rc, uint64_t iova, uint64_t len, const char *what)
{
	if (!dev->conn.silenced)
		vfu_log(dev, VFU_LOG_WARN, "DMA %s of %llu bytes at 0x%llx refused: %s", what,
		        (unsigned long long)len, (unsigned long long)iova,
		        rc == -EPERM ? "bus mastering is off" : "not mapped for that");
	dev->conn.silenced = true;
	return rc;
}

static int allowed(struct vfu_device *dev, uint64_t iova, uint64_t len, unsigned prot)
{
	const char *what = prot == VFU_WRITE ? "write" : "read";

	if (dev->conn.fd < 0 || dev->conn.dead)
		return -ENOTCONN;
	if (!vfu_bus_master(dev))
		return refuse(dev, -EPERM, iova, len, what);
	if (!covered(&dev->maps, iova, len, prot))
		return refuse(dev, -EFAULT, iova, len, what);
	return 0;
}

void *vfu_dma_ptr(struct vfu_device *dev, uint64_t iova, uint64_t len, unsigned prot)
{
	const struct vfu_map *map = holder(&dev->maps, iova);

	if (!map || !map->host || !len || (map->prot & prot) != prot || !vfu_bus_master(dev) ||
	        dev->conn.dead)
		return NULL;
	if (len - 1 > last_of(map) - iova)
		return NULL;
	return map->host + (iova - map->iova);
}

/*
 * Exactly one of in and out is given. Piece by piece, because neighbours may differ in how they are
 * reached.
 */
static int transfer(struct vfu_device *dev, uint64_t iova, void *in, const void *out, uint64_t len)
{
	int rc = allowed(dev, iova, len, in ? VFU_READ : VFU_WRITE);

	while (!rc && len) {
		const struct vfu_map *map = holder(&dev->maps, iova);
		uint64_t rest = last_of(map) - iova + 1, n = len < rest ? len : rest;

		if (!map->host)
			rc = by_message(dev, iova, in, out, n);
		else if (in)
			vfu_mem_load(in, map->host + (iova - map->iova), n);
		else if (out)
			vfu_mem_store(map->host + (iova - map->iova), out, n);
		iova += n;
		len -= n;
		in = in ? (uint8_t *)in + n : NULL;
		out = out ? (const uint8_t *)out + n : NULL;
	}
	return rc;
}

int vfu_dma_read(struct vfu_device *dev, uint64_t iova, void *buf, uint64_t len)
{
	return len ? transfer(dev, iova, buf, NULL, len) : 0;
}

int vfu_dma_write(struct vfu_device *dev, uint64_t iova, const void *buf, uint64_t len)
{
	return len ? transfer(dev, iova, NULL, buf, len) : 0;
}
