/* SPDX-License-Identifier: MIT */
#include "vfu_parse.h"

#include <errno.h>
#include <linux/vfio.h>
#include <string.h>

#include "vfu.h"

#define MAX_ERRNO 4095u /* the kernel's: a larger number is no errno */
#define IRQ_FLAGS ((uint32_t)(VFIO_IRQ_SET_DATA_TYPE_MASK | VFIO_IRQ_SET_ACTION_TYPE_MASK))

/* Copies the fixed part of a body. */
static int take(const void *bytes, size_t len, void *out, size_t want)
{
	if (len < want)
		return -EINVAL;
	memcpy(out, bytes, want);
	return 0;
}

/* [start, start + size) is not empty and its last byte is not above `last`. */
static bool fits(uint64_t start, uint64_t size, uint64_t last)
{
	return size != 0 && start <= last && size - 1 <= last - start;
}

int vfu_parse_header(const void *bytes, size_t len, struct vfu_wire_header *out)
{
	uint32_t type;

	if (len != sizeof(*out))
		return -EPROTO;
	memcpy(out, bytes, sizeof(*out));
	type = out->flags & VFU_F_TYPE;
	if (type != VFU_F_COMMAND && type != VFU_F_REPLY)
		return -EPROTO;
	if (out->size < sizeof(*out) || out->size > VFU_MAX_MSG)
		return -EPROTO;
	return 0;
}

int vfu_parse_dma_map(const void *bytes, size_t len, struct vfu_wire_dma_map *out)
{
	int rc = take(bytes, len, out, sizeof(*out));

	if (rc)
		return rc;
	if (len != sizeof(*out) || out->argsz < sizeof(*out))
		return -EINVAL;
	if (!out->flags || (out->flags & ~(VFU_READ | VFU_WRITE)))
		return -EINVAL;
	if ((out->iova | out->size | out->offset) % VFU_PAGE)
		return -EINVAL;
	if (!fits(out->iova, out->size, UINT64_MAX) || !fits(out->offset, out->size, INT64_MAX))
		return -EINVAL;
	return 0;
}

int vfu_parse_dma_unmap(const void *bytes, size_t len, struct vfu_wire_dma_unmap *out)
{
	int rc = take(bytes, len, out, sizeof(*out));

	if (rc)
		return rc;
	if (out->flags & VFU_UNMAP_DIRTY)
		return -ENOTSUP;
	if (len != sizeof(*out) || out->argsz < sizeof(*out) || (out->flags & ~VFU_UNMAP_ALL))
		return -EINVAL;
	if (out->flags & VFU_UNMAP_ALL)
		return 0;
	if ((out->iova | out->size) % VFU_PAGE || !fits(out->iova, out->size, UINT64_MAX))
		return -EINVAL;
	return 0;
}

int vfu_parse_device_info(const void *bytes, size_t len, struct vfu_wire_device_info *out)
{
	int rc = take(bytes, len, out, sizeof(*out));

	return rc ? rc : out->argsz < sizeof(*out) ? -EINVAL : 0;
}

int vfu_parse_region_info(const void *bytes, size_t len, struct vfu_wire_region_info *out)
{
	int rc = take(bytes, len, out, sizeof(*out));

	return rc ? rc : out->argsz < sizeof(*out) || out->index >= VFU_REGIONS ? -EINVAL : 0;
}

int vfu_parse_irq_info(const void *bytes, size_t len, struct vfu_wire_irq_info *out)
{
	int rc = take(bytes, len, out, sizeof(*out));

	return rc ? rc : out->argsz < sizeof(*out) || out->index >= VFU_IRQ_INDICES ? -EINVAL : 0;
}

static int take_action(uint32_t flags, enum vfu_irq_action *out)
{
	switch (flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) {
	case VFIO_IRQ_SET_ACTION_MASK:
		*out = VFU_IRQ_MASK;
		return 0;
	case VFIO_IRQ_SET_ACTION_UNMASK:
		*out = VFU_IRQ_UNMASK;
		return 0;
	case VFIO_IRQ_SET_ACTION_TRIGGER:
		*out = VFU_IRQ_TRIGGER;
		return 0;
	default:
		return -EINVAL;
	}
}

/* What follows the fixed part must be what the data flag says. */
static int take_irq_data(const void *bytes, size_t len, uint32_t data, size_t fds, struct vfu_irq_set *out)
{
	size_t rest = len - sizeof(struct vfu_wire_irq_set);

	switch (data) {
	case VFIO_IRQ_SET_DATA_NONE:
		out->disable = out->count == 0 && out->start == 0 && out->action == VFU_IRQ_TRIGGER;
		return fds || rest || (out->count == 0 && !out->disable) ? -EINVAL : 0;
	case VFIO_IRQ_SET_DATA_BOOL:
		out->bools = (const uint8_t *)bytes + sizeof(struct vfu_wire_irq_set);
		return fds || out->count == 0 || rest != out->count ? -EINVAL : 0;
	case VFIO_IRQ_SET_DATA_EVENTFD:
		/*
		 * The kernel's form carries numbers of descriptors here; they mean nothing to another
		 * process.
		 */
		out->eventfds = true;
		if (rest && rest != (uint64_t)out->count * sizeof(int32_t))
			return -EINVAL;
		return out->count == 0 || (fds && fds != out->count) ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

int vfu_parse_irq_set(const void *bytes, size_t len, const uint32_t counts[VFU_IRQ_INDICES], size_t fds,
        struct vfu_irq_set *out)
{
	struct vfu_wire_irq_set wire;
	int rc = take(bytes, len, &wire, sizeof(wire));

	if (rc)
		return rc;
	if (wire.argsz < sizeof(wire) || wire.index >= VFU_IRQ_INDICES)
		return -EINVAL;
	if (wire.flags & ~IRQ_FLAGS)
		return -EINVAL;
	*out = (struct vfu_irq_set){.index = wire.index, .start = wire.start, .count = wire.count};
	if (wire.start > counts[wire.index] || wire.count > counts[wire.index] - wire.start)
		return -EINVAL;
	rc = take_action(wire.flags, &out->action);
	if (rc)
		return rc;
	return take_irq_data(bytes, len, wire.flags & VFIO_IRQ_SET_DATA_TYPE_MASK, fds, out);
}

static int take_access(const void *bytes, size_t len, struct vfu_wire_region_rw *out)
{
	int rc = take(bytes, len, out, sizeof(*out));

	if (rc)
		return rc;
	if (out->region >= VFU_REGIONS || out->count == 0 || out->count > VFU_MAX_DATA)
		return -EINVAL;
	return fits(out->offset, out->count, INT64_MAX) ? 0 : -EINVAL;
}

int vfu_parse_region_read(const void *bytes, size_t len, struct vfu_wire_region_rw *out)
{
	int rc = take_access(bytes, len, out);

	return rc ? rc : len != sizeof(*out) ? -EINVAL : 0;
}

int vfu_parse_region_write(
        const void *bytes, size_t len, struct vfu_wire_region_rw *out, const uint8_t **data)
{
	int rc = take_access(bytes, len, out);

	if (rc)
		return rc;
	*data = (const uint8_t *)bytes + sizeof(*out);
	return len - sizeof(*out) != out->count ? -EINVAL : 0;
}

int vfu_parse_write_multi(const void *bytes, size_t len, uint32_t *count)
{
	uint64_t writes;
	int rc = take(bytes, len, &writes, sizeof(writes));

	if (rc)
		return rc;
	if (writes == 0 || writes > VFU_MULTI_MAX)
		return -EINVAL;
	if (len - sizeof(writes) != writes * sizeof(struct vfu_wire_write_one))
		return -EINVAL;
	*count = (uint32_t)writes;
	return 0;
}

int vfu_parse_write_one(const void *bytes, size_t len, uint32_t which, struct vfu_wire_write_one *out)
{
	size_t at = sizeof(uint64_t) + (size_t)which * sizeof(*out);

	if (at > len || len - at < sizeof(*out))
		return -EINVAL;
	memcpy(out, (const uint8_t *)bytes + at, sizeof(*out));
	if (out->region >= VFU_REGIONS || out->count == 0 || out->count > VFU_WRITE_ONE_MAX)
		return -EINVAL;
	return fits(out->offset, out->count, INT64_MAX) ? 0 : -EINVAL;
}

int vfu_parse_dma_data(const void *bytes, size_t len, uint64_t iova, uint64_t count, const uint8_t **data)
{
	struct vfu_wire_dma_rw wire;

	if (len < sizeof(wire))
		return -EPROTO;
	memcpy(&wire, bytes, sizeof(wire));
	if (wire.iova != iova || wire.count != count || len - sizeof(wire) != count)
		return -EPROTO;
	*data = (const uint8_t *)bytes + sizeof(wire);
	return 0;
}

int vfu_parse_error(const struct vfu_wire_header *header)
{
	return header->error == 0 || header->error > MAX_ERRNO ? -EIO : -(int)header->error;
}
