/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_USER_WIRE_H
#define RIG_VFIO_USER_WIRE_H

/*
 * What goes over a vfio-user socket, written down from the protocol's text ("vfio-user Protocol
 * Specification", docs/interop/vfio-user.rst of QEMU 10.1 and docs/vfio-user.rst of libvfio-user, protocol
 * 0.x). Section names of that text stand at each group. Numbers are in the host's byte order (section
 * "Protocol Specification").
 *
 * The structs give the layout of messages. No pointer into a message is cast to one of them, since nothing
 * there is aligned or checked: the parsers of vfio_user_parse.h copy into them, and messages are sent out
 * of them.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* "Commands" */
enum rig_vuser_command {
	RIG_VUSER_VERSION = 1,
	RIG_VUSER_DMA_MAP = 2,
	RIG_VUSER_DMA_UNMAP = 3,
	RIG_VUSER_DEVICE_GET_INFO = 4,
	RIG_VUSER_REGION_INFO = 5,
	RIG_VUSER_REGION_IO_FDS = 6,
	RIG_VUSER_IRQ_INFO = 7,
	RIG_VUSER_SET_IRQS = 8,
	RIG_VUSER_REGION_READ = 9,
	RIG_VUSER_REGION_WRITE = 10,
	RIG_VUSER_DMA_READ = 11,  /* device process to us */
	RIG_VUSER_DMA_WRITE = 12, /* device process to us */
	RIG_VUSER_RESET = 13,
	RIG_VUSER_COMMAND_END, /* one past the last that is used here */
};

/* "Header" */
struct rig_vuser_header {
	uint16_t id;
	uint16_t command;
	uint32_t size; /* header included */
	uint32_t flags;
	uint32_t error;
};
static_assert(sizeof(struct rig_vuser_header) == 16, "the header is 16 bytes");

#define RIG_VUSER_TYPE_MASK    0xfu
#define RIG_VUSER_TYPE_COMMAND 0x0u
#define RIG_VUSER_TYPE_REPLY   0x1u
#define RIG_VUSER_NO_REPLY     0x10u
#define RIG_VUSER_ERROR        0x20u

/* "VFIO_USER_VERSION"; the JSON text with its NUL follows. */
struct rig_vuser_version {
	uint16_t major;
	uint16_t minor;
};
static_assert(sizeof(struct rig_vuser_version) == 4, "the version is 4 bytes");

#define RIG_VUSER_MAJOR 0
#define RIG_VUSER_MINOR 1

/* Defaults of the capabilities, where the peer names none. */
#define RIG_VUSER_DEFAULT_FDS   1u
#define RIG_VUSER_DEFAULT_XFER  (UINT64_C(1) << 20)
#define RIG_VUSER_DEFAULT_MAPS  65535u
#define RIG_VUSER_DEFAULT_PAGES UINT64_C(4096)

/* "VFIO_USER_DMA_MAP" */
struct rig_vuser_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t address;
	uint64_t bytes;
};
static_assert(sizeof(struct rig_vuser_dma_map) == 32, "DMA_MAP is 32 bytes");

#define RIG_VUSER_DMA_READABLE  0x1u
#define RIG_VUSER_DMA_WRITEABLE 0x2u

/* "VFIO_USER_DMA_UNMAP" */
struct rig_vuser_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t address;
	uint64_t bytes;
};
static_assert(sizeof(struct rig_vuser_dma_unmap) == 24, "DMA_UNMAP is 24 bytes");

/* "VFIO_USER_DEVICE_GET_INFO" */
struct rig_vuser_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t regions;
	uint32_t irqs;
};
static_assert(sizeof(struct rig_vuser_device_info) == 16, "DEVICE_GET_INFO is 16 bytes");

#define RIG_VUSER_DEVICE_RESETS 0x1u
#define RIG_VUSER_DEVICE_PCI    0x2u

/* "VFIO_USER_DEVICE_GET_REGION_INFO" */
struct rig_vuser_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t bytes;
	uint64_t offset;
};
static_assert(sizeof(struct rig_vuser_region_info) == 32, "GET_REGION_INFO is 32 bytes");

#define RIG_VUSER_REGION_READABLE 0x1u
#define RIG_VUSER_REGION_WRITABLE 0x2u
#define RIG_VUSER_REGION_MAPPABLE 0x4u
#define RIG_VUSER_REGION_CAPS     0x8u

struct rig_vuser_cap {
	uint16_t id;
	uint16_t version;
	uint32_t next; /* from the start of the region info; 0: the last */
};
static_assert(sizeof(struct rig_vuser_cap) == 8, "a capability header is 8 bytes");

#define RIG_VUSER_CAP_SPARSE 1u

struct rig_vuser_sparse {
	uint32_t areas;
	uint32_t reserved;
};
static_assert(sizeof(struct rig_vuser_sparse) == 8, "the sparse header is 8 bytes");

struct rig_vuser_area {
	uint64_t offset;
	uint64_t bytes;
};
static_assert(sizeof(struct rig_vuser_area) == 16, "an area is 16 bytes");

/* "VFIO_USER_DEVICE_GET_IRQ_INFO" */
struct rig_vuser_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};
static_assert(sizeof(struct rig_vuser_irq_info) == 16, "GET_IRQ_INFO is 16 bytes");

#define RIG_VUSER_IRQ_EVENTFD 0x1u

/* "VFIO_USER_DEVICE_SET_IRQS" */
struct rig_vuser_set_irqs {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};
static_assert(sizeof(struct rig_vuser_set_irqs) == 20, "SET_IRQS is 20 bytes");

#define RIG_VUSER_IRQ_DATA_NONE      0x1u
#define RIG_VUSER_IRQ_DATA_EVENTFD   0x4u
#define RIG_VUSER_IRQ_ACTION_UNMASK  0x10u
#define RIG_VUSER_IRQ_ACTION_TRIGGER 0x20u

/* "VFIO_USER_REGION_READ", "VFIO_USER_REGION_WRITE"; data follows. */
struct rig_vuser_region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};
static_assert(sizeof(struct rig_vuser_region_access) == 16, "REGION_READ is 16 bytes");

/* "VFIO_USER_DMA_READ", "VFIO_USER_DMA_WRITE"; data follows. The text's table gives the count of a DMA_WRITE
 * reply four bytes; every implementation sends eight, and so do we. */
struct rig_vuser_dma_access {
	uint64_t address;
	uint64_t count;
};
static_assert(sizeof(struct rig_vuser_dma_access) == 16, "DMA_READ is 16 bytes");

#endif
