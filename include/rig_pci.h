/* SPDX-License-Identifier: MIT */
#ifndef RIG_PCI_H
#define RIG_PCI_H

/*
 * librig_pci: one PCI function that this process drives, with no board, no driver of the contract and no
 * runtime above it. Four transports behave the same: iommufd, type1 and no-IOMMU of the kernel's VFIO, and
 * vfio-user. librig_vfio's driver stands on this.
 *
 *	struct rig_pci *f;
 *	struct rig_win regs;
 *	struct rig_dma buffer;
 *	if (rig_pci_open("0000:65:00.0", NULL, &f) || rig_pci_window(f, 0, 0, 0, 0, &regs) ||
 *	        rig_pci_bus_master(f, true) || rig_dma_alloc(f, 4096, 0, &buffer))
 *		die(rig_error());
 *	rig_win_store64(&regs, ADDRESS, buffer.iova);
 *
 * Taking changes nothing on the function; memory decoding is switched on by the first window and bus
 * mastering only by rig_pci_bus_master. Every call but open and close may come from any thread, and may
 * block up to the message deadline, except where it says that it does not.
 *
 * Errors are negative errnos. Common ones, not repeated below:
 *	-ENODEV	the function is gone (see rig_pci_gone for why; sticky, nothing undoes it)
 *	-ENOMEM	the process is out of memory or of mappings
 * A transport whose message is not answered within its deadline, or whose peer dies or breaks the protocol,
 * makes the function gone: what the device did with the message cannot be known.
 * rig_error() (rig_edge.h) has the text: what was attempted, the errno, a remedy.
 *
 * A child of fork owns nothing: there every function is gone, its descriptors are closed, BARs and DMA
 * memory are not mapped, and rig_pci_close does nothing. The device is not told.
 *
 * Sources: PCI Local Bus Specification 3.0, chapter 6 (configuration space, BARs); PCI Express Base
 * Specification 5.0, 7.5 to 7.9 (capabilities); Linux Documentation/driver-api/vfio.rst; the vfio-user
 * protocol, version 0.1.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rig_edge.h"
#include "rig_win.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rig_pci;

/* ---- Taking ---- */

/* A function's descriptors, opened by a process with more rights; -1: none. `device` must be there, and with
 * it either group and container, or iommufd (with the device bound to it, and not attached). They are
 * duplicated and stay the caller's, who sees to it that nobody else drives the function. */
struct rig_pci_fds {
	int device;
	int group, container;
	int iommufd;
};

/* NULL means all zero. Copied. */
struct rig_pci_options {
	uint32_t version;     /* RIG_EDGE_VERSION */
	bool guard;           /* survive mapped windows that vanish: a process-wide SIGBUS handler, chained */
	unsigned reset_ms;    /* for a reset, until the function is ready again; 0: 10,000 */
	uint64_t iova_base;   /* IOVAs are placed from here upward first; 0: 4 GiB */
	uint64_t arena_limit; /* bytes of all DMA arenas; 0: no limit of ours */
	/* One line of text, from any thread. level 0 is an error, 3 debugging. */
	void (*log)(void *arg, int level, const char *text);
	void *log_arg;
	const struct rig_pci_fds *fds; /* of a PCI address; NULL: what is needed is opened */
	const char *vf_token;          /* a UUID, of a virtual function or its physical one; NULL: none */
};

/* Takes the function that a device string names: "0000:65:00.0", "0000:65:00.0,transport=type1",
 * "vfio-user:PATH", or "sim" (rig_vfio.h has the forms; options of drivers are refused). On failure nothing
 * is left behind, *out is NULL, and rig_error() is one line: what was to be opened, the attempt, the errno,
 * and what the doctor finds of it.
 *	-EINVAL		the string or an option: the text names what it takes
 *	-EBUSY		another process has it
 *	-ENODEV		there is no such function, the far side hung up, or configuration space reads all ones
 *	-EACCES		the node's owner or mode
 *	-EPROTO		the far side broke the protocol, or speaks another major version
 *	-ETIMEDOUT	no answer within the deadline
 *	other		what the step that failed answered
 */
RIG_API int rig_pci_open(const char *device, const struct rig_pci_options *options, struct rig_pci **out);

/* Gives the function back: interrupts off, bus mastering off, DMA memory and mappings gone, descriptors
 * closed. Windows and rig_dma objects of it are dead when this returns; no other thread may be in a call.
 * NULL is allowed. */
RIG_API void rig_pci_close(struct rig_pci *f);

enum { RIG_PCI_BARS = 6 };

struct rig_pci_bar {
	uint64_t bytes; /* 0: the function has no such BAR */
	bool readable, writable;
	bool mappable; /* all or some of it: windows inside those parts are plain memory accesses */
	bool wide;     /* a 64-bit BAR */
	bool prefetchable;
	uint64_t bus; /* its address on the bus, as peers without an IOMMU reach it; 0: unknown, or no bus */
};

struct rig_pci_info {
	uint16_t vendor, device, subsystem_vendor, subsystem;
	uint32_t class_code; /* 24 bits: base class, sub-class, interface */
	uint8_t revision;
	const char *bdf;       /* "0000:65:00.0"; NULL where the function has no address on this machine */
	const char *transport; /* "vfio-user", "fake", ... */
	struct rig_pci_bar bar[RIG_PCI_BARS];
	bool physical; /* no IOMMU: IOVAs are physical addresses, only memory in one piece can be mapped */
	bool resets;   /* rig_pci_reset can work */
	bool tells;    /* an end of the function is told at once (rig_pci_gone); else who waits must ask */
	uint64_t dma_page; /* granule of DMA mappings: addresses and sizes are multiples of it; a power of two
	                    */
	uint64_t dma_maps; /* mappings the transport takes at once */
};

/* What was read when the function was taken. Lives as long as f. Does not block. */
RIG_API const struct rig_pci_info *rig_pci_info(const struct rig_pci *f);

/* ---- Configuration space ---- */

/* One access of width 1, 2 or 4 at off, a multiple of width; little-endian registers, host values. On
 * failure *value is all ones. -EINVAL: width, alignment or off + width > 4096. */
RIG_API int rig_pci_config_read(struct rig_pci *f, unsigned off, unsigned width, uint32_t *value);
RIG_API int rig_pci_config_write(struct rig_pci *f, unsigned off, unsigned width, uint32_t value);

/* The offset of the capability with that id in the list that starts at 0x34, or of the extended one in the
 * list that starts at 0x100; the first of them, or with `after` (an offset that such a call answered) the
 * next. 0: there is none. A list that loops ends. */
RIG_API unsigned rig_pci_capability(struct rig_pci *f, uint8_t id, unsigned after);
RIG_API unsigned rig_pci_extended_capability(struct rig_pci *f, uint16_t id, unsigned after);

/* Allows or forbids the function to send DMA and message interrupts (COMMAND.BME). Never set unasked. */
RIG_API int rig_pci_bus_master(struct rig_pci *f, bool on);

/* Makes the function answer in its memory BARs or not (COMMAND.MSE). rig_pci_window does it when needed. */
RIG_API int rig_pci_memory_decode(struct rig_pci *f, bool on);

/* Forbids DMA, resets the function, waits until it answers with its vendor id within reset_ms, restores
 * COMMAND as it was before (bus mastering included) and arms again every interrupt that was enabled.
 * Windows and DMA mappings stay valid. The caller sees to it that no other thread expects the device to
 * work meanwhile.
 *	-ENOTSUP	the function offers no reset
 *	-EBUSY		its only reset is one of the whole bus, which would also hit functions that are not
 *			this process's, or that it has open: the text names them, nothing was touched
 *	-ETIMEDOUT	not ready in time; the function is gone
 *	other		what the far side answered; the function was not reset, DMA stays forbidden
 */
RIG_API int rig_pci_reset(struct rig_pci *f);
/* The same, also where it resets functions that this process has open, which then count as reset from
 * outside. */
RIG_API int rig_pci_reset_bus(struct rig_pci *f);

/* ---- Gone ---- */

/* Whether the function has left: the device process died, a message went unanswered, the protocol was
 * broken, or its vendor id is no longer there. Sticky. *why (may be NULL) gets one line that lives as long
 * as f, NULL if not gone. Does not block; cheap enough for a loop. The flag comes before the ones: who
 * reads ones from a mapped window because the function left finds it set; the last values may show for a
 * moment after that. */
RIG_API bool rig_pci_gone(const struct rig_pci *f, const char **why);

/* Reads the vendor id and declares the function gone if it is not the one that was taken. 0: it is there. */
RIG_API int rig_pci_check(struct rig_pci *f);

/* A descriptor that becomes readable when the function is gone and stays so, for poll(2). Owned by f; never
 * read from it. Does not block. */
RIG_API int rig_pci_gone_fd(const struct rig_pci *f);

/* Counts since the function was taken. Waits for a mapping in progress. */
struct rig_pci_stats {
	uint64_t messages;     /* sent to the far side, replies to it not counted (kernel transports: system
	                          calls) */
	uint64_t served;       /* DMA accesses done here for the far side */
	uint64_t refused;      /* of these, answered with an error */
	uint64_t maps;         /* DMA mappings that exist now */
	uint64_t mapped_bytes; /* bytes of them */
	uint64_t pinned_bytes; /* bytes of callers' own memory among them */
	uint64_t arena_bytes;  /* bytes of DMA arenas */
};
RIG_API void rig_pci_stats(struct rig_pci *f, struct rig_pci_stats *out);

/* stats.messages alone, for tests that assert that a path sends none. Does not block. */
RIG_API uint64_t rig_pci_messages(const struct rig_pci *f);

/* ---- Windows ---- */

/* A window of len bytes at off in a BAR; len 0 means to the BAR's end. flags: RIG_WIN_*. Mapped when one
 * mappable area covers all of it, else through the transport, which goes to memory for the parts that are
 * mapped.
 *	-EINVAL	no such BAR, or the range is not inside it
 *	-EACCES	the BAR can be neither read nor written
 */
RIG_API int rig_pci_window(
        struct rig_pci *f, unsigned bar, uint64_t off, uint64_t len, unsigned flags, struct rig_win *out);

/* A part of a BAR that can be mapped (sparse areas; where there are none, all of it). */
struct rig_pci_area {
	uint64_t offset, bytes;
};

/* Writes at most room of a BAR's areas, in their order, and answers how many there are. Does not block. */
RIG_API unsigned rig_pci_areas(
        const struct rig_pci *f, unsigned bar, struct rig_pci_area *areas, unsigned room);

/* One access of 1, 2, 4 or 8 bytes, as the functions of rig_win.h, for who cannot use those (other
 * languages). -EINVAL: off and width are not inside the window, or not aligned. */
RIG_API int rig_win_load(const struct rig_win *win, uint64_t off, unsigned width, uint64_t *value);
RIG_API int rig_win_store(const struct rig_win *win, uint64_t off, unsigned width, uint64_t value);

/* ---- DMA memory ----
 *
 * Host memory that the function reaches: one object carries the pointer, the address the device uses
 * (IOVA) and the length. The library owns every mapping of a function and picks every IOVA: inside what the
 * transport reports, within the function's DMA mask, from the option iova_base upward while there is room.
 *
 * rig_dma_alloc and rig_dma_free take a lock, and make no system call and send no message while an arena
 * has room; the others send one message each. A child of fork inherits none of this memory (MADV_DONTFORK),
 * except what rig_dma_map_host was given.
 *
 * Errors:
 *	-ENOSPC	no IOVA range is left, or a limit was met: rig_error says which (mappings the transport
 *		takes, the option arena_limit, RLIMIT_MEMLOCK) and what raises it
 *	-EEXIST	the transport says that the range is already mapped
 *	-EINVAL	zero, overflowing or unaligned sizes
 */

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

/* Bits of address that the function can put on the bus, 12 to 64; 64 until it is set. Set it before the
 * first mapping. -EBUSY: a mapping that exists would lie outside. Does not block. */
RIG_API int rig_pci_set_dma_mask(struct rig_pci *f, unsigned bits);

/* Memory of the library's making, reachable by the device for reads and writes. bytes is rounded up to 64;
 * align is a power of two up to 2 MiB, 0 for 64, and holds for host and for iova. Memory that was never
 * handed out is zero; memory that was freed and is handed out again is NOT: it still holds the last owner's
 * bytes. */
RIG_API int rig_dma_alloc(struct rig_pci *f, uint64_t bytes, uint64_t align, struct rig_dma *out);

/* Returns it to its arena. The device must be done with it. *dma is cleared; a cleared one is allowed. */
RIG_API void rig_dma_free(struct rig_pci *f, struct rig_dma *dma);
/* Maps bytes of fd from offset on. offset and bytes: multiples of rig_pci_info.dma_page. host is where the
 * caller has mapped the same bytes, kept in out and used if the far side cannot map fd itself; it may be
 * NULL where the far side can. The descriptor stays the caller's, who may close it after the call; out->fd
 * repeats it. */
RIG_API int rig_dma_map_fd(struct rig_pci *f, int fd, uint64_t offset, uint64_t bytes, void *host,
        unsigned prot, struct rig_dma *out);

/* Pins and maps the caller's own memory. host and bytes: multiples of rig_pci_info.dma_page. The memory must
 * stay mapped in this process until rig_dma_unmap. -EFAULT: part of it is not mapped, or is read-only and
 * prot says RIG_DMA_WRITE. */
RIG_API int rig_dma_map_host(
        struct rig_pci *f, void *host, uint64_t bytes, unsigned prot, struct rig_dma *out);

/* Undoes either. When it returns 0 the device can no longer reach the memory. On failure the function is
 * gone, and the mapping counts as undone (-ENODEV: the far side can no longer be asked). *dma is cleared in
 * any case. */
RIG_API int rig_dma_unmap(struct rig_pci *f, struct rig_dma *dma);

/* Stores into mapped memory as the function's own DMA would: all of it, or nothing and -EFAULT (not mapped)
 * or -EACCES. For drivers that do a part of a function's work on the host. Does not block. */
RIG_API int rig_dma_write(struct rig_pci *f, uint64_t iova, const void *bytes, uint64_t count);

/* Where the arenas' memory comes from, for people: "2 MiB pages of /dev/hugepages", "4 KiB pages (memfd)".
 * Lives as long as f. Does not block. */
RIG_API const char *rig_dma_pages(const struct rig_pci *f);

/* IOVAs from first to last, both included. */
struct rig_pci_iova {
	uint64_t first, last;
};

/* Writes at most room of the ranges that are free for mappings, within the mask, and answers how many
 * there are. Does not block. */
RIG_API unsigned rig_pci_iovas(struct rig_pci *f, struct rig_pci_iova *ranges, unsigned room);

/* ---- Interrupts ----
 *
 * Delivered by adding to eventfds. The library keeps a duplicate of every descriptor it was given until the
 * interrupt is disabled or the function is closed, so that a reset can arm them again; the caller's
 * descriptors stay the caller's. */

enum rig_irq_kind {
	RIG_IRQ_INTX, /* level: the function is masked when it fires, until rig_pci_irq_unmask */
	RIG_IRQ_MSI,
	RIG_IRQ_MSIX,
	RIG_IRQ_ERR, /* the function reported an error it cannot correct */
	RIG_IRQ_REQ, /* someone asks for the function back */
	RIG_IRQ_KINDS,
};

/* Vectors of that kind; 0: none, or no such kind. Does not block. */
RIG_API unsigned rig_pci_irq_count(const struct rig_pci *f, enum rig_irq_kind kind);

/* From now on vector first + i of count adds 1 to eventfds[i] each time it fires; -1 leaves one
 * unconnected. Vectors of this kind outside the range stay as they are.
 *	-EINVAL	count is 0, or the range is not inside rig_pci_irq_count
 *	-EBUSY	INTx, MSI and MSI-X exclude each other: another of them is enabled
 *	-ENOSPC	the system has not so many vectors left; fewer may do
 */
RIG_API int rig_pci_irq_enable(
        struct rig_pci *f, enum rig_irq_kind kind, unsigned first, unsigned count, const int *eventfds);

/* No vector of this kind fires any more. Nothing enabled: 0, and no message. */
RIG_API int rig_pci_irq_disable(struct rig_pci *f, enum rig_irq_kind kind);

/* INTx: lets it fire again. Elsewhere -EINVAL. */
RIG_API int rig_pci_irq_unmask(struct rig_pci *f, enum rig_irq_kind kind);

/* ---- The machine ---- */

struct rig_pci_listed {
	char address[24]; /* "0000:65:00.0" */
	uint16_t vendor, device;
	uint32_t class_code;
	char driver[64]; /* the kernel's, "" for none */
	int group;       /* its IOMMU group, -1 for none */
};

/* Calls each for every PCI function of this machine, by address, until it answers other than 0, which is the
 * answer. -ENOENT: the machine shows no PCI bus. */
RIG_API int rig_pci_list(int (*each)(void *arg, const struct rig_pci_listed *listed), void *arg);

enum rig_pci_severity {
	RIG_PCI_NOTE, /* to know; nothing to do */
	RIG_PCI_FIX,  /* in the way, and the command removes it */
	RIG_PCI_STOP, /* in the way, and nothing that can be typed on this machine removes it */
};

/* What stands between a function and a program that drives it: docs/doctor.md lists the ids, which do not
 * change. The texts live during the call. */
struct rig_pci_finding {
	const char *id;
	enum rig_pci_severity severity;
	const char *text; /* what is the matter */
	const char *file; /* the evidence, and what it says */
	const char *content;
	const char *command; /* "" if there is none; several are separated by newlines */
};

/* Calls each for every finding about the function at a PCI address, or with NULL about the machine alone,
 * until it answers other than 0, which is the answer. Files are read, nothing is opened that does
 * anything. -EINVAL: no address. */
RIG_API int rig_pci_doctor(
        const char *address, int (*each)(void *arg, const struct rig_pci_finding *finding), void *arg);

#ifdef __cplusplus
}
#endif

#endif
