/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_OPS_H
#define RIG_VFIO_OPS_H

/*
 * The one table behind which the transports differ: vfio-user, the kernel's type1, iommufd and no-IOMMU
 * (vfio_kernel.h), and the in-process fake. Private to src/vfio and to tests. rig_pci (pci.c) is the only
 * caller.
 *
 * Members are mandatory except where they say what NULL means. attach comes first and close last, each once;
 * in between any thread may call any member, except that calls of dma_map, dma_unmap and irq_set are never
 * concurrent with each other. Members answer 0 or a negative errno, and leave their reason with rig_vfio_fail
 * (error.h). A transport that finds the function gone tells the sink, answers -ENODEV to everything from then
 * on, and blocks nobody any more.
 */

#include <stdbool.h>
#include <stdint.h>

struct rig_log;
struct rig_ranges;

/* Region indices, as <linux/vfio.h> and vfio-user number them. */
enum {
	RIG_VFIO_BAR0 = 0, /* to 5 */
	RIG_VFIO_BARS = 6,
	RIG_VFIO_ROM = 6,
	RIG_VFIO_CONFIG = 7,
	RIG_VFIO_REGIONS = 8, /* those that are used here */
};

/* The most mappable areas of one region that are used; a region with more is refused: nobody needs them, and
 * every access through a window searches them. */
enum { RIG_VFIO_AREAS = 64 };

struct rig_vfio_area {
	uint64_t offset; /* in the region */
	uint64_t bytes;
};

struct rig_vfio_region {
	uint64_t bytes; /* 0: no such region */
	bool readable, writable;
	int fd; /* to map areas from, owned by the transport until close; -1: nothing can be mapped */
	uint64_t fd_offset; /* of the region's byte 0 */
	unsigned areas;
	struct rig_vfio_area area[RIG_VFIO_AREAS]; /* sorted, disjoint, inside the region */
};

/* How functions of one process reach each other's BARs. */
enum rig_vfio_peers {
	RIG_VFIO_PEERS_NONE,    /* not at all */
	RIG_VFIO_PEERS_FILE,    /* a region's descriptor is plain memory, which the others' far sides map */
	RIG_VFIO_PEERS_MAPPING, /* the IOMMU maps what the process has mapped, BARs too */
	RIG_VFIO_PEERS_DMABUF,  /* the IOMMU maps a dma-buf of the BAR */
	RIG_VFIO_PEERS_BUS,     /* nothing translates: the bus address */
};

#define RIG_VFIO_DMABUF_NEEDS "needs Linux 6.19 or later with CONFIG_VFIO_PCI_DMABUF and CONFIG_PCI_P2PDMA"

struct rig_vfio_device {
	bool resets;
	enum rig_vfio_peers peers;
	uint64_t dma_page;           /* granule of DMA mappings, a power of two */
	uint64_t dma_maps;           /* mappings at once */
	const char *bdf;             /* lives as long as the transport; NULL: none */
	uint64_t bus[RIG_VFIO_BARS]; /* bus addresses of the BARs; 0: unknown, or a function without a bus */
};

struct rig_vfio_map {
	uint64_t iova;
	uint64_t bytes;
	unsigned prot; /* RIG_DMA_* */
	void *host;    /* never NULL */
	int fd;        /* -1: memory without a descriptor */
	uint64_t fd_offset;
};

enum rig_vfio_irq_action {
	RIG_VFIO_IRQ_CONNECT, /* fds[i] to vector first + i; -1 disconnects one */
	RIG_VFIO_IRQ_OFF,     /* the whole kind; first, count and fds are not looked at */
	RIG_VFIO_IRQ_UNMASK,  /* no fds */
};

struct rig_vfio_irq {
	unsigned kind; /* enum rig_irq_kind */
	enum rig_vfio_irq_action action;
	unsigned first, count;
	const int *fds; /* the caller's, read during the call */
};

/* What a transport tells the function, from any thread. Valid from attach until quiet returns. */
struct rig_vfio_sink {
	void *arg;
	const struct rig_log *log;
	/* The function is gone; why is one line, copied. The first reason stays. */
	void (*gone)(void *arg, const char *why);
	/* The device reads or writes len bytes of mapped memory by message: all of it, or nothing and -EFAULT
	 * (not mapped) or -EACCES (not allowed). Counts. */
	int (*dma_read)(void *arg, uint64_t iova, void *buf, uint64_t len);
	int (*dma_write)(void *arg, uint64_t iova, const void *buf, uint64_t len);
};

struct rig_vfio_ops {
	const char *name; /* "vfio-user" */
	bool tells;       /* the far side's end is told at once, by sink->gone: nobody need ask for it */

	/* Starts the transport. sink outlives it. */
	int (*attach)(void *transport, const struct rig_vfio_sink *sink);

	/* After an attach that worked or not, before close: ends the transport's threads, and no sink call
	 * happens after. Waits for one that is under way. Descriptors stay. NULL: there are none. */
	void (*quiet)(void *transport);

	/* Ends it, whatever state it is in, and frees it. Never fails. */
	void (*close)(void *transport);

	/* In a child of fork: closes the transport's descriptors and does nothing else, no lock, no message.
	 * Nothing is called after it. */
	void (*forked)(void *transport);

	/* Facts; asked once, while the function is opened. *out is zeroed before. */
	int (*device)(void *transport, struct rig_vfio_device *out);
	int (*region)(void *transport, unsigned index, struct rig_vfio_region *out);
	int (*irqs)(void *transport, unsigned kind, unsigned *count);

	/* Adds the IOVA ranges that may be mapped to the empty set. Asked again after each attach. */
	int (*iova)(void *transport, struct rig_ranges *out);

	/* Region accesses. 1, 2, 4 or 8 bytes at a multiple of that are one access of that width at the
	 * device. */
	int (*read)(void *transport, unsigned region, uint64_t offset, void *buf, uint64_t len);
	int (*write)(void *transport, unsigned region, uint64_t offset, const void *buf, uint64_t len);

	/* Only where no IOMMU translates, NULL elsewhere: readies the memory and answers the address at which
	 * the device finds all of it; dma_map or dma_unmap with that address follows. -ENOSPC: the memory is
	 * in several pieces. */
	int (*dma_place)(void *transport, const struct rig_vfio_map *map, uint64_t *iova);

	/* -EEXIST: overlaps a mapping. -ENOSPC: out of mappings. unmap takes exactly what map was given. */
	int (*dma_map)(void *transport, const struct rig_vfio_map *map);
	int (*dma_unmap)(void *transport, uint64_t iova, uint64_t bytes);

	/* Part of a region as a dma-buf, the caller's to close; NULL, or -ENOTSUP: it cannot be had. */
	int (*export)(void *transport, unsigned region, uint64_t offset, uint64_t bytes, int *fd);

	int (*irq_set)(void *transport, const struct rig_vfio_irq *irq);

	/* Resets the function; answers within reset_ms. -EBUSY: that would reset functions of others too, or
	 * (unless `ours`) others that this process has open; nothing was done. */
	int (*reset)(void *transport, unsigned reset_ms, bool ours);
	/* -EBUSY if reset would answer that now, else 0; NULL: it never would. */
	int (*reset_check)(void *transport, bool ours);
	/* Whether a reset of this function also resets the one at bdf; true where it cannot be told, bdf NULL
	 * (unknown) included. NULL: resets hit nobody else. */
	bool (*reset_hits)(void *transport, const char *bdf);

	/* Messages or system calls so far. Does not block. */
	uint64_t (*messages)(const void *transport);
};

#endif
