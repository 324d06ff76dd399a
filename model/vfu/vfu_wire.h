/* SPDX-License-Identifier: MIT */
/*
 * What vfio-user looks like on the wire: layouts and numbers, no behaviour. Written from QEMU's
 * docs/interop/vfio-user (protocol 0.x); flags and indices whose meaning the protocol takes from the kernel
 * are those of <linux/vfio.h>. All fields are in the byte order of the host: both ends are on one machine.
 *
 * A message is a header and a body; offsets of bodies count from the end of the header. Descriptors travel
 * as SCM_RIGHTS with any byte of their message.
 */
#ifndef VFU_WIRE_H
#define VFU_WIRE_H

#include <assert.h>
#include <stdint.h>

#define VFU_WIRE_MAJOR 0
#define VFU_WIRE_MINOR 1

enum vfu_cmd {
	VFU_CMD_VERSION = 1,
	VFU_CMD_DMA_MAP = 2,
	VFU_CMD_DMA_UNMAP = 3,
	VFU_CMD_DEVICE_GET_INFO = 4,
	VFU_CMD_DEVICE_GET_REGION_INFO = 5,
	VFU_CMD_DEVICE_GET_REGION_IO_FDS = 6,
	VFU_CMD_DEVICE_GET_IRQ_INFO = 7,
	VFU_CMD_DEVICE_SET_IRQS = 8,
	VFU_CMD_REGION_READ = 9,
	VFU_CMD_REGION_WRITE = 10,
	VFU_CMD_DMA_READ = 11,  /* server to client */
	VFU_CMD_DMA_WRITE = 12, /* server to client */
	VFU_CMD_DEVICE_RESET = 13,
	VFU_CMD_DIRTY_PAGES = 14,
	VFU_CMD_REGION_WRITE_MULTI = 15,
	VFU_CMD_DEVICE_FEATURE = 16,
	VFU_CMD_MIG_DATA_READ = 17,
	VFU_CMD_MIG_DATA_WRITE = 18,
};

/* Header flags. */
#define VFU_F_TYPE     0xfu
#define VFU_F_COMMAND  0x0u
#define VFU_F_REPLY    0x1u
#define VFU_F_NO_REPLY 0x10u
#define VFU_F_ERROR    0x20u

struct vfu_wire_header {
	uint16_t id; /* chosen by the sender of the command, echoed in the reply */
	uint16_t cmd;
	uint32_t size; /* bytes, header included */
	uint32_t flags;
	uint32_t error; /* errno, in replies with VFU_F_ERROR */
};

/* VERSION: followed by a NUL-terminated JSON object, optional in the command. */
struct vfu_wire_version {
	uint16_t major;
	uint16_t minor;
};

/* DMA_MAP, one descriptor or none. flags: VFU_READ, VFU_WRITE. */
struct vfu_wire_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t iova;
	uint64_t size;
};

#define VFU_UNMAP_DIRTY 1u
#define VFU_UNMAP_ALL   2u

struct vfu_wire_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t iova;
	uint64_t size;
};

struct vfu_wire_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t regions;
	uint32_t irqs;
};

struct vfu_wire_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset; /* from the start of this struct */
	uint64_t size;
	uint64_t offset; /* of the region in its descriptor */
};

/* The sparse mmap capability, followed by `count` areas. */
struct vfu_wire_sparse {
	uint16_t id;
	uint16_t version;
	uint32_t next;
	uint32_t count;
	uint32_t reserved;
};

struct vfu_wire_area {
	uint64_t offset;
	uint64_t size;
};

struct vfu_wire_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};

/* SET_IRQS: followed by `count` bytes with the flag for booleans; eventfds come as descriptors. */
struct vfu_wire_irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};

/* REGION_READ and REGION_WRITE, commands and replies; data follows where there is any. */
struct vfu_wire_region_rw {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

/* One of the writes of REGION_WRITE_MULTI, which begins with their number in 8 bytes. */
#define VFU_WRITE_ONE_MAX 8
struct vfu_wire_write_one {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
	uint8_t data[VFU_WRITE_ONE_MAX];
};

/*
 * DMA_READ and DMA_WRITE, commands and replies. QEMU 10.1's client had a 32-bit count here, with the data
 * behind it; later versions follow the specification.
 */
struct vfu_wire_dma_rw {
	uint64_t iova;
	uint64_t count;
};

static_assert(sizeof(struct vfu_wire_header) == 16, "header");
static_assert(sizeof(struct vfu_wire_version) == 4, "version");
static_assert(sizeof(struct vfu_wire_dma_map) == 32, "dma map");
static_assert(sizeof(struct vfu_wire_dma_unmap) == 24, "dma unmap");
static_assert(sizeof(struct vfu_wire_device_info) == 16, "device info");
static_assert(sizeof(struct vfu_wire_region_info) == 32, "region info");
static_assert(sizeof(struct vfu_wire_sparse) == 16, "sparse areas");
static_assert(sizeof(struct vfu_wire_area) == 16, "area");
static_assert(sizeof(struct vfu_wire_irq_info) == 16, "irq info");
static_assert(sizeof(struct vfu_wire_irq_set) == 20, "irq set");
static_assert(sizeof(struct vfu_wire_region_rw) == 16, "region access");
static_assert(sizeof(struct vfu_wire_write_one) == 24, "one write of many");
static_assert(sizeof(struct vfu_wire_dma_rw) == 16, "dma access");

#endif
