/* SPDX-License-Identifier: MIT */
#ifndef RIG_PCI_PRIVATE_H
#define RIG_PCI_PRIVATE_H

/*
 * What a taken function is made of. Private to src/vfio.
 *
 * Locks, outermost first: the hold of vfio_fork.c, while a function's descriptors are made or end, so that
 * forks wait; that of peer.c, of what functions of the process mapped of each other; dma_lock, irq_lock and
 * config_lock are held across messages and never together (but reset takes config_lock, then irq_lock, one
 * after the other); that of the list of kernel_select.c, across a reset of a bus; maps.lock, gone.lock and
 * region_lock are leaves. The transport's receiver takes only leaves.
 */

#include <pthread.h>

#include "gone.h"
#include "hugemem.h"
#include "log.h"
#include "maps.h"
#include "pci.h"
#include "peer.h"
#include "vfio_ops.h"

/* Configuration space (PCI 3.0 section 6.1, PCIe 2.0 section 7). */
enum {
	RIG_PCI_VENDOR_ID = 0x00,
	RIG_PCI_DEVICE_ID = 0x02,
	RIG_PCI_COMMAND = 0x04,
	RIG_PCI_REVISION = 0x08, /* and the class code above it */
	RIG_PCI_BAR0 = 0x10,
	RIG_PCI_SUBSYSTEM_VENDOR = 0x2c,
	RIG_PCI_SUBSYSTEM = 0x2e,
	RIG_PCI_CONFIG_BYTES = 4096,
	RIG_PCI_COMMON_CONFIG_BYTES = 256,
};
#define RIG_PCI_COMMAND_MEMORY   0x2u
#define RIG_PCI_COMMAND_MASTER   0x4u
#define RIG_PCI_BAR_IO           0x1u
#define RIG_PCI_BAR_TYPE         0x6u
#define RIG_PCI_BAR_WIDE         0x4u
#define RIG_PCI_BAR_PREFETCHABLE 0x8u
#define RIG_PCI_NO_VENDOR        0xffffu

struct rig_tlsf;

struct rig_region_area {
	uint64_t offset, bytes;
	unsigned char *at;
	bool writable;
};

/* A region with those of its areas that are mapped here. */
struct rig_region {
	struct rig_vfio_region info;
	unsigned mapped;
	struct rig_region_area area[RIG_VFIO_AREAS]; /* sorted */
};

/* Memory that was mapped for the device once and is handed out in pieces. */
struct rig_arena {
	struct rig_arena *next;
	struct rig_hugemem mem;
	uint64_t iova;
	bool alone;              /* of one piece, and no other */
	struct rig_tlsf *pieces; /* in IOVAs */
};

struct rig_arenas {
	struct rig_arena *first; /* the oldest */
	uint64_t step, limit;    /* limit 0: none */
	uint64_t bytes;
	char pages[RIG_HUGEMEM_TEXT_BYTES]; /* what the last one is made of */
};

struct rig_irq_set {
	unsigned count; /* vectors the function has */
	int *fd;        /* duplicates, -1 where not connected; NULL: none of the kind is enabled */
};

struct rig_pci {
	struct rig_pci *next; /* vfio_fork.c's list */
	bool orphan;          /* this process is a child of the one that took it */
	const struct rig_vfio_ops *ops;
	void *transport;
	struct rig_vfio_sink sink;
	struct rig_pci_info info;
	enum rig_vfio_peers peers;
	struct rig_log log;
	void (*ended)(void *arg);
	void *ended_arg;
	unsigned reset_ms;
	struct rig_gone gone;

	pthread_mutex_t region_lock; /* mapping the areas, and blanking them */
	struct rig_region region[RIG_VFIO_REGIONS];
	bool blank; /* ones are behind the areas, as after gone */

	pthread_mutex_t config_lock; /* read-modify-write of COMMAND; reset */

	pthread_mutex_t dma_lock; /* one mapping or unmapping at a time; the arenas */
	struct rig_maps maps;
	struct rig_arenas arenas;

	pthread_mutex_t irq_lock;
	struct rig_irq_set irq[RIG_IRQ_KINDS];
};

/* The function is gone: tells the flag, and puts ones behind the windows. Any thread. */
void rig_pci_lose(struct rig_pci *f, const char *why);

/* -- vfio_fork.c -- */

/*
 * A child of fork owns no function.
 *
 * BARs and DMA memory are not inherited (MADV_DONTFORK). An atfork handler runs in the child, marks every
 * function of the parent gone there and closes the child's copies of its descriptors; the device is told
 * nothing. So a connection ends when the parent ends, whatever its children do. In the child every call on
 * such a function answers -ENODEV, and rig_pci_close does nothing.
 */

/* Between the two, fork() in any thread of the process waits. Hold it from before a function's descriptors
 * are opened until rig_fork_add: a child made in between would inherit them, not know that they are to be
 * closed, and keep the connection alive after this process has ended. Hold it briefly, and call no callback
 * meanwhile: a callback that forks would wait for ever. */
void rig_fork_hold(void);
void rig_fork_release(void);

/* From rig_fork_add to rig_fork_remove a child of fork loses f as described above. -ENOMEM: the handler could
 * not be installed. Any thread. */
int rig_fork_add(struct rig_pci *f);
void rig_fork_remove(struct rig_pci *f);

/* -- region.c -- */

/* Mapped areas stay where they are from rig_region_map to rig_region_unmap; rig_region_blank replaces what is
 * behind them in place, so pointers handed out stay valid. Finding may run beside blanking; the rest is for
 * one thread. */

/* Maps what can be mapped of region->info. An area that cannot is left to the transport, and the log says so:
 * slower, not wrong. Not inherited by children of fork. */
void rig_region_map(struct rig_region *region, const struct rig_log *log);
void rig_region_unmap(struct rig_region *region);

/* Puts memory of all ones behind every mapped area: reads are all ones, writes reach nobody. Where even that
 * finds no memory, the old mapping stays. */
void rig_region_blank(struct rig_region *region);

/* The area that holds off, NULL if off is in none; *run gets how far from off on the answer holds, at most
 * len. */
const struct rig_region_area *rig_region_find(
        const struct rig_region *region, uint64_t off, uint64_t len, uint64_t *run);

/* -- config.c -- */

/* COMMAND with `set` set and `clear` cleared, written only if that changes it; *was (may be NULL) is what it
 * was. Takes config_lock. */
int rig_config_command(struct rig_pci *f, uint32_t set, uint32_t clear, uint32_t *was);

/* Fills in info from configuration space. -ENODEV: all ones. */
int rig_config_identify(struct rig_pci *f);

/* -- irq.c -- */

/* Arms what was enabled again, after a reset. */
int rig_irq_rearm(struct rig_pci *f);
/* Everything off; errors do not stop it. Frees the duplicates. */
void rig_irq_fini(struct rig_pci *f);

/* -- peer.c -- */

/* After a reset of f, or one that failed half way: what the kernel mapped for others through dma-bufs of f is
   mapped again. */
void rig_peer_renew(struct rig_pci *f);
/* Nobody has anything of f's mapped any more, and f nothing of others'. */
void rig_peer_fini(struct rig_pci *f);
/* Undoes what rig_pci_map_peer made, if handle is one's for f; false: it is none. */
bool rig_peer_unmap(struct rig_pci *f, const void *handle, int *err);
/* In a child of fork. */
void rig_peer_forked(void);

/* -- dma.c -- */

/* With dma_lock held: */

/* Maps m (all but iova set) with memory fd (-1: none) from fd_offset on. */
int rig_dma_make(struct rig_pci *f, struct rig_map *m, uint64_t align, int fd, uint64_t fd_offset);
/* Unmaps it at the far side and delists it, in that order. */
int rig_dma_undo(struct rig_pci *f, uint64_t iova, uint64_t bytes);
/* All that is left. */
void rig_dma_fini(struct rig_pci *f);

/* -- arena.c -- */

/*
 * The functions of dma.h stand on arenas, whose pieces a TLSF allocator hands out. Every call with the
 * function's dma_lock held.
 *
 * Arenas grow: the first is a 64th of the step, each next one as large as all before it, up to the step. An
 * allocation asks each at most once, the oldest first, so that the newest become empty. An empty one goes
 * back to the system if another is empty already, or if it is larger than the step: a request above that gets
 * one of its size, as does what is to lie alone.
 */
int rig_arena_alloc(struct rig_pci *f, uint64_t bytes, uint64_t align, struct rig_dma *out);
int rig_arena_alloc_alone(struct rig_pci *f, uint64_t bytes, struct rig_dma *out);
/* spare: its arena may stay, empty, for what is asked next. */
void rig_arena_free(struct rig_pci *f, struct rig_dma *dma, bool spare);
void rig_arenas_fini(struct rig_pci *f);

#endif
