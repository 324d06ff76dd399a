/* SPDX-License-Identifier: MIT */
#ifndef RIG_PEER_H
#define RIG_PEER_H

/*
 * A function's BAR for another function of this process, and for others by dma-buf. Kernel transports only.
 *
 * Threads: any. Errors, beside those of pci.h and dma.h:
 *	-ENOTSUP	the transport or the kernel has no way
 */

#include <stdint.h>

#include "dma.h"

struct rig_pci;

/* Lets f reach [off, off + bytes) of peer's BAR, multiples of f's dma_page, inside one mappable part of it.
 * How: type1 maps the BAR's mapping, iommufd a dma-buf of it, and without an IOMMU the address is the bus's.
 * out->iova is what f uses; out->host is NULL. Undone by rig_dma_unmap, before peer is closed.
 *
 * A reset of peer, and switching its memory decoding off, ends what the kernel mapped through a dma-buf:
 * unmap and map again after it. */
int rig_pci_map_peer(struct rig_pci *f, struct rig_pci *peer, unsigned bar, uint64_t off, uint64_t bytes,
        unsigned prot, struct rig_dma *out);

/* The same range as a dma-buf, close-on-exec, the caller's. The kernel revokes it when the function is reset
 * or closed. */
int rig_pci_export(struct rig_pci *f, unsigned bar, uint64_t off, uint64_t bytes, int *fd);

#endif
