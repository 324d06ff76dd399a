/* SPDX-License-Identifier: MIT */
/*
 * From bytes to requests. Each function is pure: it looks at (bytes, len) and writes *out, copies every
 * field before it checks it, and needs no device. `bytes` has no alignment. 0, or the negative errno that
 * the client is to get; *out is meaningful only after 0.
 */
#ifndef VFU_PARSE_H
#define VFU_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vfu_wire.h"

#define VFU_PAGE 4096u /* the smallest page of a DMA mapping and of a mappable area */

#define VFU_MAX_JSON    4096 /* bytes of version data: QEMU sends about 250, libvfio-user less */
#define VFU_JSON_DEPTH  8    /* nesting: the protocol uses 3 */
#define VFU_MULTI_MAX   200  /* writes in one REGION_WRITE_MULTI: QEMU's own limit */
#define VFU_DATA_MIN    8    /* smallest max_data_xfer_size taken: an aligned 8-byte store is one message */
#define VFU_IRQ_INDICES 5    /* INTx, MSI, MSI-X, error, request */
#define VFU_REGIONS     9    /* six BARs, ROM, configuration space, VGA */

/* The largest message: data, the fixed part that precedes it, and the header. */
#define VFU_MAX_MSG (VFU_MAX_DATA + sizeof(struct vfu_wire_region_rw) + sizeof(struct vfu_wire_header))

/* len is exactly sizeof(struct vfu_wire_header). -EPROTO: no message begins like this; the stream is lost. */
int vfu_parse_header(const void *bytes, size_t len, struct vfu_wire_header *out);

struct vfu_version {
	uint16_t major, minor;
	uint32_t max_fds;    /* descriptors the client takes in a message */
	uint32_t max_data;   /* bytes of data the client takes in a message, at most VFU_MAX_DATA */
	bool write_multiple; /* the client may send REGION_WRITE_MULTI */
	bool twin;           /* it takes a second socket, for our commands */
};

int vfu_parse_version(const void *bytes, size_t len, struct vfu_version *out);

/* Page-aligned, not empty, no wrap-around of iova or file offset, readable or writable or both. */
int vfu_parse_dma_map(const void *bytes, size_t len, struct vfu_wire_dma_map *out);

/* With VFU_UNMAP_ALL range and size are ignored. -ENOTSUP: dirty bitmap. */
int vfu_parse_dma_unmap(const void *bytes, size_t len, struct vfu_wire_dma_unmap *out);

int vfu_parse_device_info(const void *bytes, size_t len, struct vfu_wire_device_info *out);
int vfu_parse_region_info(const void *bytes, size_t len, struct vfu_wire_region_info *out);
int vfu_parse_irq_info(const void *bytes, size_t len, struct vfu_wire_irq_info *out);

enum vfu_irq_action {
	VFU_IRQ_MASK,
	VFU_IRQ_UNMASK,
	VFU_IRQ_TRIGGER,
};

/*
 * One SET_IRQS. Exactly one of: `disable` (the whole index); `eventfds` (the descriptors of the message,
 * one for each of [start, start + count), or none of them to take assignments back); else the action on
 * each of the range, or where bools is given (count bytes inside the message) on each whose byte is not 0.
 */
struct vfu_irq_set {
	enum vfu_irq_action action;
	uint32_t index, start, count;
	bool disable;
	bool eventfds;
	const uint8_t *bools;
};

/* counts[i]: interrupts of index i, fds: descriptors that came with the message. */
int vfu_parse_irq_set(const void *bytes, size_t len, const uint32_t counts[VFU_IRQ_INDICES], size_t fds,
        struct vfu_irq_set *out);

/*
 * The body of REGION_READ, or of REGION_WRITE with *data its `count` bytes inside the message. 0 < count <=
 * VFU_MAX_DATA.
 */
int vfu_parse_region_read(const void *bytes, size_t len, struct vfu_wire_region_rw *out);
int vfu_parse_region_write(
        const void *bytes, size_t len, struct vfu_wire_region_rw *out, const uint8_t **data);

/* REGION_WRITE_MULTI: *count writes, each of which vfu_parse_write_one() takes out of the same message. */
int vfu_parse_write_multi(const void *bytes, size_t len, uint32_t *count);
int vfu_parse_write_one(const void *bytes, size_t len, uint32_t which, struct vfu_wire_write_one *out);

/*
 * The reply to a DMA_READ of [iova, iova + count): *data points at its count bytes. -EPROTO: it answers
 * something else.
 */
int vfu_parse_dma_data(const void *bytes, size_t len, uint64_t iova, uint64_t count, const uint8_t **data);

/* The errno of an error reply: negative, -EIO where the client's number is none. */
int vfu_parse_error(const struct vfu_wire_header *header);

#endif
