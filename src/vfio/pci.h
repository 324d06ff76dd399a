/* SPDX-License-Identifier: MIT */
#ifndef RIG_PCI_H
#define RIG_PCI_H

/*
 * A taken function: one PCI function that this process drives, over one of several transports that all behave
 * the same. Here: taking and giving back, facts, configuration space, windows, reset, and being gone.
 * DMA memory is in dma.h, interrupts in irq.h.
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
 *
 * A child of fork owns nothing: there every function is gone, its descriptors are closed, BARs and DMA
 * memory are not mapped, and rig_pci_close does nothing. The device is not told.
 *
 * Who wants the text of a failure asks rig_error: what was attempted, the errno, a remedy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rig_edge.h"
#include "rig_win.h"

struct rig_log;
struct rig_pci;
struct rig_vfio_ops;

struct rig_pci_options {
	/* Called first, while forks of this process wait, so that no child holds what it makes: sets ops and
	 * transport. Its negative errno is the open's. Sends nothing, and logs, if at all, by options->log,
	 * which keeps lines until forks may go on. A transport's header has one (vfio_kernel.h, vfio_user.h).
	 * NULL: they are there. */
	int (*begin)(void *arg, struct rig_pci_options *options);
	void *arg;
	const struct rig_vfio_ops *ops;
	void *transport;           /* closed by ops->close, which open calls also if it fails */
	const char *name;          /* errors begin with it; NULL: with nothing. Read during the call only */
	unsigned reset_ms;         /* for a reset, until the function is ready again; 0: RIG_PCI_RESET_MS */
	uint64_t iova_base;        /* IOVAs are placed from here upward first; 0: RIG_PCI_IOVA_BASE */
	uint64_t arena_step;       /* bytes a DMA arena grows by; 0: RIG_PCI_ARENA_STEP */
	uint64_t arena_limit;      /* bytes of all DMA arenas; 0: no limit of ours */
	const struct rig_log *log; /* NULL: silence. Copied */
	bool guard; /* survive mapped windows that vanish (SIGBUS): a process-wide handler, chained */
};

#define RIG_PCI_RESET_MS   10000u
#define RIG_PCI_IOVA_BASE  (UINT64_C(4) << 30)
#define RIG_PCI_ARENA_STEP (UINT64_C(64) << 20)

/* Takes the function. On failure nothing is left behind, *out is NULL, and rig_error() is one line: what was
 * to be opened, the attempt, the errno. Errors:
 *	-ENOTSUP	the device is not a PCI function
 *	-ENODEV		the far side hung up, or configuration space reads all ones
 *	-EPROTO		the far side broke the protocol, or speaks another major version
 *	-ETIMEDOUT	no answer within the deadline
 *	other		what connect(2) and its like answered
 */
int rig_pci_open(struct rig_pci **out, const struct rig_pci_options *options);

/* Gives the function back: interrupts off, bus mastering off, DMA memory and mappings gone, descriptors
 * closed. Windows and rig_dma objects of it are dead when this returns; no other thread may be in a call.
 * NULL is allowed. */
void rig_pci_close(struct rig_pci *f);

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
const struct rig_pci_info *rig_pci_info(const struct rig_pci *f);

/* -- Configuration space -- */

/* One access of width 1, 2 or 4 at off, a multiple of width; little-endian registers, host values. On failure
 * *value is all ones. -EINVAL: width, alignment or off + width > 4096. */
int rig_pci_config_read(struct rig_pci *f, unsigned off, unsigned width, uint32_t *value);
int rig_pci_config_write(struct rig_pci *f, unsigned off, unsigned width, uint32_t value);

/* Allows or forbids the function to send DMA and message interrupts (COMMAND.BME). Never set unasked. */
int rig_pci_bus_master(struct rig_pci *f, bool on);

/* Makes the function answer in its memory BARs or not (COMMAND.MSE). rig_pci_window does it when needed. */
int rig_pci_memory_decode(struct rig_pci *f, bool on);

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
int rig_pci_reset(struct rig_pci *f);
/* The same, also where it resets functions that this process has open, which then count as reset from
 * outside. */
int rig_pci_reset_bus(struct rig_pci *f);

/* -- Gone -- */

/* Whether the function has left: the device process died, a message went unanswered, the protocol was broken,
 * or its vendor id is no longer there. Sticky. *why (may be NULL) gets one line that lives as long as f, NULL
 * if not gone. Does not block; cheap enough for a loop. The flag comes before the ones: who reads ones from a
 * mapped window because the function left finds it set; the last values may show for a moment after that. */
bool rig_pci_gone(const struct rig_pci *f, const char **why);

/* Reads the vendor id and declares the function gone if it is not the one that was taken. 0: it is there. */
int rig_pci_check(struct rig_pci *f);

/* A descriptor that becomes readable when the function is gone and stays so, for poll(2). Owned by f; never
 * read from it. Does not block. */
int rig_pci_gone_fd(const struct rig_pci *f);

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
void rig_pci_stats(struct rig_pci *f, struct rig_pci_stats *out);

/* stats.messages alone, for tests that assert that a path sends none. Does not block. */
uint64_t rig_pci_messages(const struct rig_pci *f);

/* -- Windows -- */

/* A window of len bytes at off in a BAR; len 0 means to the BAR's end. flags: RIG_WIN_*. Mapped when one
 * mappable area covers all of it, else through the transport, which goes to memory for the parts that are
 * mapped.
 *	-EINVAL	no such BAR, or the range is not inside it
 *	-EACCES	the BAR can be neither read nor written
 */
int rig_pci_window(
        struct rig_pci *f, unsigned bar, uint64_t off, uint64_t len, unsigned flags, struct rig_win *out);

#endif
