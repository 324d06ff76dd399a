/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_ABI_H
#define RIG_KERNEL_ABI_H

/*
 * What is used of the kernel's VFIO and iommufd interfaces, in our own words, so that one binary serves
 * kernels whose headers are newer or older than this machine's (Linux 5.15 to 7.3). Numbers and layouts:
 * Linux's Documentation/driver-api/vfio.rst and Documentation/userspace-api/iommufd.rst, and the public
 * headers they name. Every ioctl is a plain _IO(';', n). Private to src/vfio and its tests.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define RIG_KVFIO(n)  _IO(';', 100 + (n))
#define RIG_KIOMMU(n) _IO(';', 0x80 + (n))

/* -- Container and group ("VFIO Usage Example") -- */

#define RIG_KVFIO_GET_API_VERSION       RIG_KVFIO(0)
#define RIG_KVFIO_CHECK_EXTENSION       RIG_KVFIO(1) /* argument: a model below, by value */
#define RIG_KVFIO_SET_IOMMU             RIG_KVFIO(2) /* the same */
#define RIG_KVFIO_GROUP_GET_STATUS      RIG_KVFIO(3)
#define RIG_KVFIO_GROUP_SET_CONTAINER   RIG_KVFIO(4) /* argument: int * */
#define RIG_KVFIO_GROUP_UNSET_CONTAINER RIG_KVFIO(5)
#define RIG_KVFIO_GROUP_GET_DEVICE_FD   RIG_KVFIO(6) /* argument: the function's address, text */

enum { RIG_KVFIO_API_VERSION = 0 };

enum rig_kvfio_model {
	RIG_KVFIO_TYPE1 = 1,
	RIG_KVFIO_TYPE1V2 = 3,
	RIG_KVFIO_NOIOMMU = 8,
};

#define RIG_KVFIO_GROUP_VIABLE        (1u << 0)
#define RIG_KVFIO_GROUP_CONTAINER_SET (1u << 1)

struct rig_kvfio_group_status {
	uint32_t argsz;
	uint32_t flags;
};

/* -- A device -- */

#define RIG_KVFIO_DEVICE_GET_INFO       RIG_KVFIO(7)
#define RIG_KVFIO_DEVICE_GET_REGION     RIG_KVFIO(8)
#define RIG_KVFIO_DEVICE_GET_IRQ        RIG_KVFIO(9)
#define RIG_KVFIO_DEVICE_SET_IRQS       RIG_KVFIO(10)
#define RIG_KVFIO_DEVICE_RESET          RIG_KVFIO(11)
#define RIG_KVFIO_DEVICE_HOT_RESET_INFO RIG_KVFIO(12)
#define RIG_KVFIO_DEVICE_HOT_RESET      RIG_KVFIO(13)
#define RIG_KVFIO_DEVICE_FEATURE        RIG_KVFIO(17)
#define RIG_KVFIO_DEVICE_BIND_IOMMUFD   RIG_KVFIO(18) /* from Linux 6.6 */
#define RIG_KVFIO_DEVICE_ATTACH         RIG_KVFIO(19)
#define RIG_KVFIO_DEVICE_DETACH         RIG_KVFIO(20)

#define RIG_KVFIO_DEVICE_RESETS (1u << 0)
#define RIG_KVFIO_DEVICE_PCI    (1u << 1)

struct rig_kvfio_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t regions;
	uint32_t irqs;
};

/* Chains of capabilities: offsets are from the start of the structure they follow, 0 ends. */
struct rig_kvfio_cap {
	uint16_t id;
	uint16_t version;
	uint32_t next;
};
static_assert(sizeof(struct rig_kvfio_cap) == 8, "a capability's header is 8 bytes");

#define RIG_KVFIO_REGION_READ  (1u << 0)
#define RIG_KVFIO_REGION_WRITE (1u << 1)
#define RIG_KVFIO_REGION_MMAP  (1u << 2)
#define RIG_KVFIO_REGION_CAPS  (1u << 3)

struct rig_kvfio_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t caps;
	uint64_t bytes;
	uint64_t offset; /* in the device's descriptor */
};
static_assert(sizeof(struct rig_kvfio_region_info) == 32, "region information is 32 bytes");

enum {
	RIG_KVFIO_CAP_SPARSE = 1,
	RIG_KVFIO_CAP_MSIX_MAPPABLE = 3,
};

struct rig_kvfio_sparse {
	struct rig_kvfio_cap head;
	uint32_t areas;
	uint32_t reserved;
	/* areas times: uint64_t offset, uint64_t bytes */
};

#define RIG_KVFIO_IRQ_NORESIZE (1u << 3)

struct rig_kvfio_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};

#define RIG_KVFIO_IRQ_NONE    (1u << 0)
#define RIG_KVFIO_IRQ_EVENTFD (1u << 2)
#define RIG_KVFIO_IRQ_UNMASK  (1u << 4)
#define RIG_KVFIO_IRQ_TRIGGER (1u << 5)

struct rig_kvfio_irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
	int32_t fd[];
};
static_assert(sizeof(struct rig_kvfio_irq_set) == 20, "descriptors follow 20 bytes");

#define RIG_KVFIO_HOT_RESET_DEV_ID (1u << 0) /* the entries name iommufd's device ids, not groups */
#define RIG_KVFIO_HOT_RESET_OWNED  (1u << 1) /* with it: all of them are the caller's */

struct rig_kvfio_hot_entry {
	uint32_t group; /* or device id: 0 owned without one, -1 somebody else's */
	uint16_t segment;
	uint8_t bus;
	uint8_t devfn;
};

struct rig_kvfio_hot_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t count;
	struct rig_kvfio_hot_entry entry[];
};

struct rig_kvfio_hot_reset {
	uint32_t argsz;
	uint32_t flags;
	uint32_t count; /* 0: by cdev, from Linux 6.6 */
	int32_t group_fd[];
};

#define RIG_KVFIO_FEATURE_DMA_BUF 11u /* from Linux 6.19 */
#define RIG_KVFIO_FEATURE_GET     (1u << 16)
#define RIG_KVFIO_FEATURE_SET     (1u << 17)
#define RIG_KVFIO_FEATURE_PROBE   (1u << 18)

/* A UUID, its bytes in the order in which they are written. */
enum { RIG_KVFIO_TOKEN_BYTES = 16 };

/* A feature's head and the token that who opens a virtual function of this one must give. */
#define RIG_KVFIO_FEATURE_TOKEN 0u
struct rig_kvfio_token {
	uint32_t argsz;
	uint32_t flags;
	unsigned char uuid[RIG_KVFIO_TOKEN_BYTES];
};
static_assert(sizeof(struct rig_kvfio_token) == 24, "layout");

/* A feature's head and that of DMA_BUF with one range. */
struct rig_kvfio_dma_buf {
	uint32_t argsz;
	uint32_t flags;
	uint32_t region;
	uint32_t open_flags;
	uint32_t reserved;
	uint32_t ranges;
	uint64_t offset;
	uint64_t bytes;
};
static_assert(sizeof(struct rig_kvfio_dma_buf) == 40, "layout");

struct rig_kvfio_bind {
	uint32_t argsz;
	uint32_t flags;
	int32_t iommufd;
	uint32_t out_id;
	uint64_t token; /* the address of RIG_KVFIO_TOKEN_BYTES, with RIG_KVFIO_BIND_TOKEN */
};
static_assert(offsetof(struct rig_kvfio_bind, token) == 16, "the first form of bind is 16 bytes");
#define RIG_KVFIO_BIND_TOKEN 1u /* the second form: in 6.17's header, at work from Linux 6.19 */

struct rig_kvfio_attach {
	uint32_t argsz;
	uint32_t flags;
	uint32_t pt_id; /* in and out */
};

/* -- Type1 -- */

#define RIG_KVFIO_IOMMU_GET_INFO  RIG_KVFIO(12)
#define RIG_KVFIO_IOMMU_MAP_DMA   RIG_KVFIO(13)
#define RIG_KVFIO_IOMMU_UNMAP_DMA RIG_KVFIO(14)

#define RIG_KVFIO_IOMMU_PGSIZES (1u << 0)
#define RIG_KVFIO_IOMMU_CAPS    (1u << 1)

struct rig_kvfio_iommu_info {
	uint32_t argsz;
	uint32_t flags;
	uint64_t pgsizes;
	uint32_t caps;
	uint32_t pad; /* of kernels that have it; argsz includes it either way */
};
static_assert(offsetof(struct rig_kvfio_iommu_info, caps) == 16, "layout");

enum {
	RIG_KVFIO_CAP_IOVA_RANGES = 1,
	RIG_KVFIO_CAP_DMA_AVAIL = 3,
};

struct rig_kvfio_iova_ranges {
	struct rig_kvfio_cap head;
	uint32_t ranges;
	uint32_t reserved;
	/* ranges times: uint64_t first, uint64_t last */
};

struct rig_kvfio_dma_avail {
	struct rig_kvfio_cap head;
	uint32_t avail;
};

#define RIG_KVFIO_DMA_READ  (1u << 0)
#define RIG_KVFIO_DMA_WRITE (1u << 1)

struct rig_kvfio_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t host;
	uint64_t iova;
	uint64_t bytes;
};
static_assert(sizeof(struct rig_kvfio_dma_map) == 32, "a mapping is 32 bytes");

struct rig_kvfio_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t iova;
	uint64_t bytes; /* out: what was unmapped */
};

/* -- iommufd (from Linux 6.2) -- */

#define RIG_KIOMMU_DESTROY     RIG_KIOMMU(0x00)
#define RIG_KIOMMU_IOAS_ALLOC  RIG_KIOMMU(0x01)
#define RIG_KIOMMU_IOVA_RANGES RIG_KIOMMU(0x04)
#define RIG_KIOMMU_MAP         RIG_KIOMMU(0x05)
#define RIG_KIOMMU_UNMAP       RIG_KIOMMU(0x06)
#define RIG_KIOMMU_MAP_FILE    RIG_KIOMMU(0x0f) /* from 6.13 or 6.14 */
#define RIG_KIOMMU_GET_PA      RIG_KIOMMU(0x15) /* no-IOMMU, seen in 7.3 */

struct rig_kiommu_destroy {
	uint32_t size;
	uint32_t id;
};

struct rig_kiommu_ioas_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t out_id;
};

struct rig_kiommu_range {
	uint64_t first;
	uint64_t last;
};

struct rig_kiommu_iova_ranges {
	uint32_t size;
	uint32_t ioas;
	uint32_t count; /* in: room, out: how many there are (EMSGSIZE if that is more) */
	uint32_t reserved;
	uint64_t at; /* of struct rig_kiommu_range */
	uint64_t out_align;
};
static_assert(sizeof(struct rig_kiommu_iova_ranges) == 32, "layout");

#define RIG_KIOMMU_FIXED    (1u << 0)
#define RIG_KIOMMU_WRITABLE (1u << 1)
#define RIG_KIOMMU_READABLE (1u << 2)

struct rig_kiommu_map {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas;
	uint32_t reserved;
	uint64_t host;
	uint64_t bytes;
	uint64_t iova; /* out unless FIXED */
};
static_assert(sizeof(struct rig_kiommu_map) == 40, "layout");

struct rig_kiommu_map_file {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas;
	int32_t fd;
	uint64_t start;
	uint64_t bytes;
	uint64_t iova;
};
static_assert(sizeof(struct rig_kiommu_map_file) == 40, "layout");

struct rig_kiommu_unmap {
	uint32_t size;
	uint32_t ioas;
	uint64_t iova;
	uint64_t bytes; /* out: what was unmapped */
};

struct rig_kiommu_get_pa {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas;
	uint32_t reserved;
	uint64_t iova;
	uint64_t bytes; /* in: most, 0 no limit; out: contiguous from there */
	uint64_t out_pa;
};
static_assert(sizeof(struct rig_kiommu_get_pa) == 40, "layout");

#endif
