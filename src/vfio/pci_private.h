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

#include "arena.h"
#include "gone.h"
#include "irq.h"
#include "log.h"
#include "maps.h"
#include "pci.h"
#include "peer.h"
#include "region.h"
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

#endif
