/* SPDX-License-Identifier: MIT */
/*
 * The device side of vfio-user: a PCI function behind a UNIX socket.
 *
 * One object is one PCI function. The program describes it once (struct vfu_config), gives it a connected
 * socket or a path to listen on, and calls vfu_poll() from its main loop. The library answers the whole
 * protocol, keeps the configuration space, the MSI-X table and the list of the client's memory, and calls
 * back for what only the device knows: accesses to BARs, reset, memory that came or went.
 *
 * Threads: none. Every function of one object is called from one thread, never from a signal handler. The
 * callbacks run on that thread, inside vfu_poll(), inside vfu_dma_read() and vfu_dma_write() (see there), or
 * inside vfu_close(), which says that a client went.
 *
 * Blocking: nothing blocks, except vfu_dma_read() and vfu_dma_write() on memory that the client did not
 * share by file descriptor: those exchange messages and wait for the answer, at most `dma_timeout_ms`.
 *
 * Failure: 0 or a positive count, or a negative errno. The library never prints and never exits: what a
 * person should know goes to the log callback, one line without newline a call.
 *
 * Trust: the client is hostile. Whatever it sends ends in an error reply, or in a disconnect whose reason is
 * logged. What is not defended: a client that shrinks a memfd after it was mapped raises SIGBUS at the next
 * access of the device to those pages. The size is checked when the memory is mapped; a program that serves
 * clients it does not trust with its life handles SIGBUS or runs one process a client.
 */
#ifndef VFU_H
#define VFU_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VFU_BAR_COUNT   6
#define VFU_CONFIG_SIZE 4096 /* PCI Express: 256 bytes that every tool reads, then extended capabilities */

/* Limits announced to the client or enforced on it. */
#define VFU_MAX_DATA                                                                                         \
	(1u << 20) /* bytes a region or DMA message: the protocol's default; QEMU takes up to 64 MiB */
#define VFU_MAX_MSG_FDS 16    /* descriptors a message: QEMU refuses a server that announces more */
#define VFU_MAX_MAPS    32768 /* default: half of the kernel's vm.max_map_count, one mmap each */
#define VFU_MAX_AREAS   64    /* mappable areas a BAR: keeps the region info reply below 2 KiB */
#define VFU_MAX_VECTORS 2048  /* MSI-X: the PCI specification's limit */
#define VFU_MAX_FDS     5     /* struct pollfd that vfu_fds() can need */

/* Protections, of a mapping and of a wish. */
#define VFU_READ  1u /* the device may read the client's memory */
#define VFU_WRITE 2u /* the device may write it */

/* One part of a BAR that the client may mmap: [offset, offset + size), both multiples of 4096. */
struct vfu_area {
	uint64_t offset;
	uint64_t size;
};

/*
 * One BAR. size 0: there is none. Otherwise a power of two of at least 16 bytes (4096 with areas).
 *
 * `read` and `write` serve accesses that come as messages: 0 < len <= VFU_MAX_DATA and [off, off + len)
 * inside the BAR; they are any length and alignment, bytes in memory order, so a 4-byte register access is
 * a call with len 4. They return 0 or a negative errno that the client gets. They are also called for parts
 * that lie in an area: clients may always use messages. A missing callback: where `mem` is given the access
 * goes to mem + off (1, 2, 4 and 8 bytes, naturally aligned: in one access); else it fails with -EIO.
 *
 * areas/area_count/memfd/memfd_offset: byte x of the BAR is byte memfd_offset + x of memfd, for each x in
 * an area. memfd stays the program's and must live as long as the object; the client gets a duplicate with
 * all its rights, so a memfd that should not be resized is sealed by the program (F_SEAL_SHRINK |
 * F_SEAL_GROW). The area that covers the whole BAR is announced without a sparse list.
 */
struct vfu_bar {
	uint64_t size;
	bool mem64;    /* 64-bit BAR: the next BAR's slot is its upper half and must have size 0 */
	bool prefetch; /* prefetchable */
	int (*read)(void *ctx, uint64_t off, void *buf, size_t len);
	int (*write)(void *ctx, uint64_t off, const void *buf, size_t len);
	void *mem;
	int memfd; /* used only where area_count > 0 */
	uint64_t memfd_offset;
	struct vfu_area areas[VFU_MAX_AREAS];
	size_t area_count;
};

/*
 * MSI-X. vectors 0: none. Table (16 bytes a vector) and pending bits (8 bytes for 64 vectors) lie in `bar`
 * at the two offsets, multiples of 8; accesses to them are served by the library and never reach the BAR's
 * callbacks. Neither may lie in a mappable area.
 */
struct vfu_msix {
	unsigned vectors;
	unsigned bar;
	uint32_t table_offset;
	uint32_t pba_offset;
};

enum vfu_log_level {
	VFU_LOG_ERROR, /* the client was disconnected or refused, or memory ran out */
	VFU_LOG_WARN,  /* a request was refused */
	VFU_LOG_INFO,  /* connected, disconnected, reset */
};

/*
 * What the function is. Copied by vfu_open(); ctx, callbacks and memfds must live as long as the object.
 * Every callback is optional.
 */
struct vfu_config {
	uint16_t vendor, device;
	uint16_t subsystem_vendor, subsystem; /* 0: same as vendor and device */
	uint32_t class_code;                  /* 24 bits: base class, subclass, interface */
	uint8_t revision;
	bool intx;            /* has an INTx line (INTA) */
	unsigned msi_vectors; /* 0, or a power of two up to 32 */
	struct vfu_msix msix;
	struct vfu_bar bars[VFU_BAR_COUNT];

	unsigned max_maps;       /* 0: VFU_MAX_MAPS; at most 65535. One more is refused with ENOSPC */
	unsigned dma_timeout_ms; /* 0: 2000, less than QEMU's 5 s for a request of its own */

	void *ctx; /* handed to every callback */

	/*
	 * Reset by message or by function-level reset. The configuration space is put back to its first
	 * state by the library after this returned 0. A negative errno refuses: the client gets it as the
	 * reply to DEVICE_RESET, and a refused function-level reset does nothing, as on a broken card.
	 * Interrupt assignments and DMA mappings are the client's and survive; pending interrupts do not.
	 */
	int (*reset)(void *ctx);

	/*
	 * [iova, iova + len) can be reached with `prot`; host is its address here, or NULL where it is
	 * served by messages. The mapping ends when dma_unmapped() returns: drop every pointer and
	 * translation into it before. Both multiples of 4096. Not called for a refused request. On
	 * disconnect dma_unmapped is called for each mapping.
	 */
	void (*dma_mapped)(void *ctx, uint64_t iova, uint64_t len, void *host, unsigned prot);
	void (*dma_unmapped)(void *ctx, uint64_t iova, uint64_t len, void *host);

	/*
	 * The version handshake succeeded; the client went (after its mappings and interrupts were
	 * dropped).
	 */
	void (*connected)(void *ctx);
	void (*disconnected)(void *ctx);

	/*
	 * Bytes [off, off + len) of the configuration space were written and took effect; look with
	 * vfu_cfg_read().
	 */
	void (*config_written)(void *ctx, uint32_t off, uint32_t len);

	void (*log)(void *ctx, enum vfu_log_level level, const char *text);

	/*
	 * Monotonic nanoseconds for the deadlines; NULL: CLOCK_MONOTONIC. A wait that blocks uses real
	 * time.
	 */
	uint64_t (*now)(void *ctx);
};

struct vfu_device;

/*
 * Makes the function, not yet connected. The configuration space: header with the ids and BARs, then the
 * capabilities power management (D0, D3hot, no soft reset), PCI Express endpoint (function-level reset in
 * Device Control), MSI and MSI-X where asked. Ranges that the client can write are those that PCI lets
 * software write. -EINVAL: a description that breaks a rule above; the log says which. -ENOMEM.
 */
int vfu_open(const struct vfu_config *config, struct vfu_device **out);

/* Disconnects, stops listening, removes the socket's path where it is still ours, frees. NULL is allowed. */
void vfu_close(struct vfu_device *dev);

/*
 * Serves the peer of a connected AF_UNIX stream socket. The descriptor belongs to the object from here on,
 * also on failure. -EBUSY: a client is being served. -ENOTSOCK, -EPROTOTYPE: not such a socket.
 */
int vfu_attach_fd(struct vfu_device *dev, int fd);

/*
 * Listens on `path`, mode 0600. The folder must be owned by this user (or root) and not writable by others.
 * Clients are served one after the other; one that comes while another is served is disconnected at once.
 * Only this user and root may connect. -EADDRINUSE: something is there; the log says whether a live server
 * answers or the file is stale (it is never removed for you). -EPERM: the folder is not private.
 * -ENAMETOOLONG. -EBUSY: listening already.
 */
int vfu_listen(struct vfu_device *dev, const char *path);

/*
 * What to wait for: fills up to max entries (VFU_MAX_FDS always suffice) and returns their number. Valid
 * until the next call of any function of the object. vfu_timeout(): milliseconds until the next deadline,
 * rounded up; 0: work is waiting; -1: none.
 */
size_t vfu_fds(struct vfu_device *dev, struct pollfd *fds, size_t max);
int vfu_timeout(struct vfu_device *dev);

/*
 * Does what can be done without waiting: accepts, reads, answers every complete request (at most 64 a call,
 * so that one client cannot starve the device), sends what is left, enforces deadlines. Returns 1 if
 * anything was done, else 0. Cheap when nothing is: one system call while connected. Must not be called
 * from a callback (-EBUSY).
 */
int vfu_poll(struct vfu_device *dev);

/*
 * A client is attached (perhaps before its handshake). False after vfu_attach_fd()'s peer went: time to
 * exit.
 */
bool vfu_connected(const struct vfu_device *dev);

/* The client goes, with `why` in the log. Nothing happens if there is none. Allowed in callbacks. */
void vfu_disconnect(struct vfu_device *dev, const char *why);

/*
 * The configuration space as the client sees it. Values are little-endian in it, host-endian here; off is a
 * multiple of size, which is 1, 2 or 4. vfu_cfg_set() writes whatever the masks say and has no side effect;
 * before the first client it also sets what a reset returns to. Out of range reads as all ones and writes
 * nothing.
 */
uint32_t vfu_cfg_read(const struct vfu_device *dev, uint32_t off, unsigned size);
void vfu_cfg_set(struct vfu_device *dev, uint32_t off, unsigned size, uint32_t value);

/* Offset of the capability with that id (PCI_CAP_ID_...), 0: none. */
uint32_t vfu_cfg_cap(const struct vfu_device *dev, uint8_t id);

/*
 * Adds a capability: len bytes (2..128) of which the first two are id and next; next is filled in here.
 * Bits of `writable` (len bytes, NULL: none) are the client's to write. Only before the first client.
 * Returns its offset, or -ENOSPC, -EBUSY.
 */
int vfu_cfg_add_cap(struct vfu_device *dev, const uint8_t *bytes, const uint8_t *writable, size_t len);

/*
 * COMMAND.Bus Master is set. While it is not, no DMA goes out: vfu_dma_... answer -EPERM, vfu_dma_ptr NULL.
 */
bool vfu_bus_master(const struct vfu_device *dev);

/*
 * DMA. The pointer is valid until dma_unmapped() of its mapping or the disconnect, whichever is first; NULL
 * unless one mapping with a descriptor covers [iova, iova + len) with all of `prot`. len > 0.
 */
void *vfu_dma_ptr(struct vfu_device *dev, uint64_t iova, uint64_t len, unsigned prot);

/*
 * Copies between buf and the client's memory, across neighbouring mappings, by pointer or by message,
 * whichever each mapping needs. Order: a write is visible to the client before anything the device does
 * after the return. Naturally aligned 4- and 8-byte transfers over mapped memory are one access; writes
 * have release, reads acquire order.
 *
 * While a message waits for its answer, the client's accesses to regions, its questions, new mappings and
 * interrupt assignments are served at once, so BAR callbacks may run inside these two functions, as
 * register accesses reach real hardware in the middle of a transfer (QEMU answers no DMA message while a
 * request of its own waits). What takes memory away or resets, and every request after one that does, is
 * kept for the next vfu_poll(): pointers and translations stay good.
 *
 * From a BAR callback they work only with clients that answer DMA messages while a request of theirs
 * waits, which QEMU does not: record the work there and do it in the main loop.
 *
 * -EFAULT: part of the range is not mapped, or not with that right; nothing was transferred.
 * -EPERM: bus mastering is off.
 * -ENOTCONN: no client, or it went meanwhile.
 * -ETIMEDOUT: no answer in dma_timeout_ms.
 * -EBUSY: called from a callback that runs inside another of these calls, on memory that needs a message.
 * -EPROTO: the answer does not belong to the question. Any other: the client's own errno.
 * After one of the last five part of the range may have been transferred.
 */
int vfu_dma_read(struct vfu_device *dev, uint64_t iova, void *buf, uint64_t len);
int vfu_dma_write(struct vfu_device *dev, uint64_t iova, const void *buf, uint64_t len);

/*
 * Raises an interrupt. With MSI-X in use (the client assigned eventfds and Enable is set) vector `vector`;
 * else with MSI in use that message; else the INTx line is asserted and stays so until vfu_irq_clear().
 * Masked (Function Mask, the vector's mask bit, SET_IRQS mask): pending, delivered at unmask. Assigning an
 * eventfd unmasks the vector, as the kernel does on a real function, because vfio-user clients own
 * eventfds, not the table. 1: an eventfd was signalled. 0: pending, or nobody listens. -EINVAL: no such
 * vector.
 */
int vfu_irq(struct vfu_device *dev, unsigned vector);
void vfu_irq_clear(struct vfu_device *dev);

/* Signals the error (AER) or the request-to-release eventfd. 1 signalled, 0 nobody listens. */
int vfu_irq_err(struct vfu_device *dev);
int vfu_irq_req(struct vfu_device *dev);

#endif
