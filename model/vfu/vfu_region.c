/* SPDX-License-Identifier: MIT */
/* Regions: what they are, and accesses that come as messages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vfu_priv.h"

#define BAR_MIN      16u
#define BAR32_MAX    (UINT64_C(1) << 31)
#define TABLE_ENTRY  16u
#define PBA_ENTRY    8u
#define PBA_BITS     64u
#define OFFSET_ALIGN 8u /* the low bits of the capability's registers name the BAR */

/* Who answers for a byte of a BAR. */
enum owner {
	DEVICE,
	TABLE,
	PBA,
};

struct piece {
	enum owner owner;
	uint64_t start; /* of the owner's range in the BAR */
	uint64_t len;   /* bytes from the offset asked for */
};

static uint64_t table_size(const struct vfu_msix *msix)
{
	return (uint64_t)msix->vectors * TABLE_ENTRY;
}

static uint64_t pba_size(const struct vfu_msix *msix)
{
	return (uint64_t)(msix->vectors + PBA_BITS - 1) / PBA_BITS * PBA_ENTRY;
}

static bool meet(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

static bool check_msix(const struct vfu_config *c)
{
	const struct vfu_msix *m = &c->msix;
	const struct vfu_bar *bar;

	if (!m->vectors)
		return true;
	if (m->vectors > VFU_MAX_VECTORS || m->bar >= VFU_BAR_COUNT)
		return false;
	bar = &c->bars[m->bar];
	if ((m->table_offset | m->pba_offset) % OFFSET_ALIGN)
		return false;
	if (m->table_offset + table_size(m) > bar->size || m->pba_offset + pba_size(m) > bar->size)
		return false;
	for (size_t i = 0; i < bar->area_count; i++)
		if (meet(bar->areas[i].offset, bar->areas[i].size, m->table_offset, table_size(m)) ||
		        meet(bar->areas[i].offset, bar->areas[i].size, m->pba_offset, pba_size(m)))
			return false;
	return !meet(m->table_offset, table_size(m), m->pba_offset, pba_size(m));
}

/* Ascending, page-aligned, inside the BAR and inside the file. */
static bool check_areas(const struct vfu_bar *bar)
{
	uint64_t end = 0;
	struct stat st;

	if (bar->area_count > VFU_MAX_AREAS)
		return false;
	for (size_t i = 0; i < bar->area_count; i++) {
		const struct vfu_area *a = &bar->areas[i];

		if (!a->size || (a->offset | a->size) % VFU_PAGE || a->offset < end)
			return false;
		if (a->offset > bar->size || a->size > bar->size - a->offset)
			return false;
		end = a->offset + a->size;
	}
	if (!bar->area_count)
		return true;
	return bar->memfd_offset % VFU_PAGE == 0 && bar->memfd_offset <= INT64_MAX - end &&
	       !fstat(bar->memfd, &st) && (uint64_t)st.st_size >= bar->memfd_offset + end;
}

static bool check_bar(const struct vfu_config *c, unsigned which)
{
	const struct vfu_bar *bar = &c->bars[which];

	if (!bar->size)
		return !bar->area_count;
	if (bar->size < BAR_MIN || bar->size & (bar->size - 1) || bar->size > INT64_MAX)
		return false;
	if (!bar->mem64 && bar->size > BAR32_MAX)
		return false;
	if (bar->mem64 && (which + 1 == VFU_BAR_COUNT || c->bars[which + 1].size))
		return false;
	return check_areas(bar);
}

int vfu_region_check(struct vfu_device *dev)
{
	for (unsigned i = 0; i < VFU_BAR_COUNT; i++)
		if (!check_bar(&dev->config, i)) {
			vfu_log(dev, VFU_LOG_ERROR, "BAR %u: size, areas or memory file break the rules", i);
			return -EINVAL;
		}
	if (!check_msix(&dev->config)) {
		vfu_log(dev, VFU_LOG_ERROR,
		        "MSI-X: vectors or place of table and pending bits break the rules");
		return -EINVAL;
	}
	return 0;
}

static uint64_t region_size(const struct vfu_device *dev, uint32_t index)
{
	if (index < VFU_BAR_COUNT)
		return dev->config.bars[index].size;
	return index == VFIO_PCI_CONFIG_REGION_INDEX ? VFU_CONFIG_SIZE : 0;
}

static bool whole(const struct vfu_bar *bar)
{
	return bar->area_count == 1 && bar->areas[0].size == bar->size;
}

static size_t sparse_size(const struct vfu_bar *bar)
{
	if (whole(bar))
		return 0;
	return sizeof(struct vfu_wire_sparse) + bar->area_count * sizeof(struct vfu_wire_area);
}

static void put_sparse(uint8_t *at, const struct vfu_bar *bar)
{
	struct vfu_wire_sparse head = {
	        .id = VFIO_REGION_INFO_CAP_SPARSE_MMAP, .version = 1, .count = (uint32_t)bar->area_count};

	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	for (size_t i = 0; i < bar->area_count; i++) {
		struct vfu_wire_area area = {.offset = bar->areas[i].offset, .size = bar->areas[i].size};

		memcpy(at + i * sizeof(area), &area, sizeof(area));
	}
}

/*
 * A reply that the client has no room for ends after the fixed part, says in argsz what is needed and
 * carries no descriptor. Its cap_offset is set all the same: QEMU checks it against argsz before it looks
 * whether it must ask again.
 */
static int info_mappable(
        const struct vfu_bar *bar, uint32_t room, struct vfu_wire_region_info *info, struct vfu_reply *reply)
{
	size_t caps = sparse_size(bar);
	uint8_t *body;

	info->flags |= VFIO_REGION_INFO_FLAG_MMAP | (caps ? VFIO_REGION_INFO_FLAG_CAPS : 0u);
	info->argsz += (uint32_t)caps;
	info->offset = bar->memfd_offset;
	info->cap_offset = caps ? sizeof(*info) : 0;
	if (room < info->argsz)
		caps = 0;
	else
		reply->fd = bar->memfd;
	body = vfu_reply_take(reply, sizeof(*info) + caps);
	if (!body)
		return -ENOMEM;
	memcpy(body, info, sizeof(*info));
	if (caps)
		put_sparse(body + sizeof(*info), bar);
	return 0;
}

int vfu_region_info(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	struct vfu_wire_region_info info;
	uint32_t room;
	void *body;
	int rc = vfu_parse_region_info(msg->body, msg->len, &info);

	if (rc)
		return rc;
	room = info.argsz;
	info = (struct vfu_wire_region_info){
	        .argsz = sizeof(info), .index = info.index, .size = region_size(dev, info.index)};
	if (info.size)
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (info.index < VFU_BAR_COUNT && dev->config.bars[info.index].area_count &&
	        dev->conn.version.max_fds)
		return info_mappable(&dev->config.bars[info.index], room, &info, reply);
	body = vfu_reply_take(reply, sizeof(info));
	if (!body)
		return -ENOMEM;
	memcpy(body, &info, sizeof(info));
	return 0;
}

/*
 * Narrows *p to one owner: where [start, start + size) holds off, it is `owner`; where it begins later, *p
 * ends there.
 */
static void narrow(struct piece *p, uint64_t off, enum owner owner, uint64_t start, uint64_t size)
{
	if (off >= start && off - start < size) {
		p->owner = owner;
		p->start = start;
		if (p->len > start + size - off)
			p->len = start + size - off;
	} else if (off < start && p->len > start - off) {
		p->len = start - off;
	}
}

static struct piece piece_at(const struct vfu_device *dev, uint32_t bar, uint64_t off, uint64_t len)
{
	const struct vfu_msix *m = &dev->config.msix;
	struct piece p = {.owner = DEVICE, .len = len};

	if (m->vectors && m->bar == bar) {
		narrow(&p, off, TABLE, m->table_offset, table_size(m));
		narrow(&p, off, PBA, m->pba_offset, pba_size(m));
	}
	return p;
}

static int device_read(struct vfu_device *dev, uint32_t index, uint64_t off, uint8_t *buf, size_t len)
{
	const struct vfu_bar *bar = &dev->config.bars[index];

	if (bar->read)
		return bar->read(dev->config.ctx, off, buf, len);
	if (!bar->mem)
		return -EIO;
	vfu_mem_load(buf, (uint8_t *)bar->mem + off, len);
	return 0;
}

static int device_write(struct vfu_device *dev, uint32_t index, uint64_t off, const uint8_t *buf, size_t len)
{
	const struct vfu_bar *bar = &dev->config.bars[index];

	if (bar->write)
		return bar->write(dev->config.ctx, off, buf, len);
	if (!bar->mem)
		return -EIO;
	vfu_mem_store((uint8_t *)bar->mem + off, buf, len);
	return 0;
}

static int read_piece(struct vfu_device *dev, uint32_t bar, uint64_t off, uint8_t *buf, const struct piece *p)
{
	if (p->owner == DEVICE)
		return device_read(dev, bar, off, buf, p->len);
	if (p->owner == TABLE)
		vfu_msix_table_read(dev, off - p->start, buf, p->len);
	else
		vfu_msix_pba_read(dev, off - p->start, buf, p->len);
	return 0;
}

/* Pending bits are the function's: writes to them are dropped (PCI 3.0, 6.8.2.10). */
static int write_piece(
        struct vfu_device *dev, uint32_t bar, uint64_t off, const uint8_t *buf, const struct piece *p)
{
	if (p->owner == DEVICE)
		return device_write(dev, bar, off, buf, p->len);
	if (p->owner == TABLE)
		vfu_msix_table_write(dev, off - p->start, buf, p->len);
	return 0;
}

static int check_range(const struct vfu_device *dev, const struct vfu_wire_region_rw *rw)
{
	uint64_t size = region_size(dev, rw->region);

	return rw->offset > size || rw->count > size - rw->offset ? -EINVAL : 0;
}

static int read_region(struct vfu_device *dev, const struct vfu_wire_region_rw *rw, uint8_t *buf)
{
	int rc = check_range(dev, rw);

	if (rw->region == VFIO_PCI_CONFIG_REGION_INDEX)
		return vfu_cfg_client_read(dev, rw->offset, buf, rw->count);
	for (uint64_t done = 0; !rc && done < rw->count;) {
		struct piece p = piece_at(dev, rw->region, rw->offset + done, rw->count - done);

		rc = read_piece(dev, rw->region, rw->offset + done, buf + done, &p);
		done += p.len;
	}
	return rc;
}

static int write_region(struct vfu_device *dev, const struct vfu_wire_region_rw *rw, const uint8_t *buf)
{
	int rc = check_range(dev, rw);

	if (rw->region == VFIO_PCI_CONFIG_REGION_INDEX)
		return vfu_cfg_client_write(dev, rw->offset, buf, rw->count);
	for (uint64_t done = 0; !rc && done < rw->count;) {
		struct piece p = piece_at(dev, rw->region, rw->offset + done, rw->count - done);

		rc = write_piece(dev, rw->region, rw->offset + done, buf + done, &p);
		done += p.len;
	}
	return rc;
}

int vfu_region_read(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	struct vfu_wire_region_rw rw;
	uint8_t *body;
	int rc = vfu_parse_region_read(msg->body, msg->len, &rw);

	if (!rc)
		rc = check_range(dev, &rw);
	if (rc)
		return rc;
	body = vfu_reply_take(reply, sizeof(rw) + rw.count);
	if (!body)
		return -ENOMEM;
	memcpy(body, &rw, sizeof(rw));
	return read_region(dev, &rw, body + sizeof(rw));
}

int vfu_region_write(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	struct vfu_wire_region_rw rw;
	const uint8_t *data;
	uint8_t *body;
	int rc = vfu_parse_region_write(msg->body, msg->len, &rw, &data);

	if (rc)
		return rc;
	body = vfu_reply_take(reply, sizeof(rw));
	if (!body)
		return -ENOMEM;
	memcpy(body, &rw, sizeof(rw));
	return write_region(dev, &rw, data);
}

/* Stops at the first write that fails and says how many were done: those before it stay done. */
int vfu_region_write_multi(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	struct vfu_wire_write_one one;
	uint64_t done = 0;
	uint32_t count = 0;
	void *body;
	int rc = vfu_parse_write_multi(msg->body, msg->len, &count);

	while (!rc && done < count) {
		rc = vfu_parse_write_one(msg->body, msg->len, (uint32_t)done, &one);
		if (!rc) {
			struct vfu_wire_region_rw rw = {one.offset, one.region, one.count};

			rc = write_region(dev, &rw, one.data);
		}
		done += !rc;
	}
	if (rc && !done)
		return rc;
	body = vfu_reply_take(reply, sizeof(done));
	if (!body)
		return -ENOMEM;
	memcpy(body, &done, sizeof(done));
	return 0;
}
