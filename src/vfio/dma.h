/* SPDX-License-Identifier: MIT */
#ifndef RIG_DMA_H
#define RIG_DMA_H

/*
 * Host memory that a taken function reaches: one object carries the pointer, the address the device uses
 * (IOVA) and the length. The library owns every mapping of a function and picks every IOVA: inside what the
 * transport reports, within the function's DMA mask, from the option iova_base upward while there is room.
 *
 * Threads: any. rig_dma_alloc and rig_dma_free take a lock, and make no system call and send no message
 * while an arena has room; the others send one message each.
 *
 * A child of fork inherits none of this memory (MADV_DONTFORK), except what rig_dma_map_host was given.
 *
 * Errors, beside those of pci.h:
 *	-ENOSPC	no IOVA range is left, or a limit was met: rig_error says which (mappings the transport
 *		takes, the option arena_limit, RLIMIT_MEMLOCK) and what raises it
 *	-EEXIST	the transport says that the range is already mapped
 *	-EINVAL	zero, overflowing or unaligned sizes
 */

#include <stddef.h>
#include <stdint.h>

struct rig_pci;

/* What the device may do. */
#define RIG_DMA_READ  1u
#define RIG_DMA_WRITE 2u

struct rig_dma {
	void *host; /* NULL if the caller mapped a descriptor without an address of its own */
	uint64_t iova;
	uint64_t bytes;
	int fd;             /* the memory's descriptor, -1 if it has none; owned by whoever made the memory */
	uint64_t fd_offset; /* of host in fd */
	void *handle;       /* the library's; NULL: nothing to free */
	/* Of rig_dma_alloc: the mapping that it is a piece of. What else must be told of memory, such as a
	   device's own tables, is told of that once. */
	uint64_t arena_iova, arena_bytes;
};

/* Bits of address that the function can put on the bus, 12 to 64; 64 until it is set. Set it before the first
 * mapping. -EBUSY: a mapping that exists would lie outside. Does not block. */
int rig_pci_set_dma_mask(struct rig_pci *f, unsigned bits);

/* Memory of the library's making, reachable by the device for reads and writes. bytes is rounded up to 64;
 * align is a power of two up to 2 MiB, 0 for 64, and holds for host and for iova. Memory that was never
 * handed out is zero; memory that was freed and is handed out again is NOT: it still holds the last owner's
 * bytes. */
int rig_dma_alloc(struct rig_pci *f, uint64_t bytes, uint64_t align, struct rig_dma *out);

/* The same in a mapping of its own, at a page start, which goes with it: for what no table that maps the
 * other memory may reach. */
int rig_dma_alloc_alone(struct rig_pci *f, uint64_t bytes, struct rig_dma *out);

/* Returns it to its arena. The device must be done with it. *dma is cleared; a cleared one is allowed. */
void rig_dma_free(struct rig_pci *f, struct rig_dma *dma);
/* The same of memory that is of no use where it lies: its arena does not stay for it. */
void rig_dma_refuse(struct rig_pci *f, struct rig_dma *dma);

/* Maps bytes of fd from offset on. offset and bytes: multiples of rig_pci_info.dma_page. host is where the
 * caller has mapped the same bytes, kept in out and used if the far side cannot map fd itself; it may be NULL
 * where the far side can. The descriptor stays the caller's, who may close it after the call; out->fd repeats
 * it. */
int rig_dma_map_fd(struct rig_pci *f, int fd, uint64_t offset, uint64_t bytes, void *host, unsigned prot,
        struct rig_dma *out);

/* Pins and maps the caller's own memory. host and bytes: multiples of rig_pci_info.dma_page. The memory must
 * stay mapped in this process until rig_dma_unmap. -EFAULT: part of it is not mapped, or is read-only and
 * prot says RIG_DMA_WRITE. */
int rig_dma_map_host(struct rig_pci *f, void *host, uint64_t bytes, unsigned prot, struct rig_dma *out);

/* Undoes either. When it returns 0 the device can no longer reach the memory. On failure the function is
 * gone, and the mapping counts as undone (-ENODEV: the far side can no longer be asked). *dma is cleared in
 * any case. */
int rig_dma_unmap(struct rig_pci *f, struct rig_dma *dma);

/* For the end of a function's work: when it returns, what the device asks of memory by message is refused,
 * for good. A message that it sent before it was reset, or before it left, may come after that, and memory is
 * given back then. */
void rig_dma_deny(struct rig_pci *f);

/* Stores into mapped memory as the function's own DMA would: all of it, or nothing and -EFAULT (not mapped)
 * or -EACCES. For drivers that do a part of a function's work on the host. Does not block. */
int rig_dma_write(struct rig_pci *f, uint64_t iova, const void *bytes, uint64_t count);

/* Where the arenas' memory comes from, for people: "2 MiB pages of /dev/hugepages", "4 KiB pages (memfd)".
 * Lives as long as f. Does not block. */
const char *rig_dma_pages(const struct rig_pci *f);

#endif
