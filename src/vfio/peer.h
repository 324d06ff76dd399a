/* SPDX-License-Identifier: MIT */
#ifndef RIG_PEER_H
#define RIG_PEER_H

/*
 * A function's BAR for another function of this process, and for others by dma-buf.
 *
 * Threads: any. Errors, beside those of rig_pci.h:
 *	-ENOTSUP	the transport or the kernel has no way; rig_error says what it needs
 *
 * What a function mapped of a peer is the peer's memory on loan. How, and what ends it:
 *
 * vfio-user: the descriptor of the BAR's memory, mapped by the other's device process. Neither a reset nor
 * the end of the peer's process ends it.
 *
 * type1: the IOMMU maps the BAR's addresses. A reset of the peer does not end it; what reaches the BAR while
 * the peer does not answer reads ones. The kernel does not end it either when the function is removed, so
 * unmap what was borrowed of a function that is gone.
 *
 * iommufd: the IOMMU maps a dma-buf of the BAR, which the kernel revokes when the peer is reset through VFIO,
 * removed, or its memory decoding switched off: until it is mapped again the IOMMU refuses the range.
 * rig_pci_reset maps it again, at the same address, before it returns; a reset by who else has the function's
 * descriptor ends it for good.
 *
 * No IOMMU: nothing is mapped; the address is the bus's.
 *
 * Where mapping again fails, and when the peer is closed first, the loan is revoked: the function reaches
 * nothing there, and its address is nobody else's until rig_dma_unmap.
 */

#include <stdbool.h>
#include <stdint.h>

#include "rig_pci.h"

struct rig_pci;

/* Whether f can map BAR `bar` of peer. -ENOTSUP says why not. From what was learned when both were taken:
 * always the same answer, also for functions that are gone. Does not block. */
RIG_API int rig_pci_reaches(const struct rig_pci *f, const struct rig_pci *peer, unsigned bar);

/* Lets f reach [off, off + bytes) of peer's BAR, multiples of f's dma_page, inside one mappable part of it.
 * out->iova is what f uses; out->host is NULL. Undone by rig_dma_unmap. -ENODEV: one of the two is gone. */
RIG_API int rig_pci_map_peer(struct rig_pci *f, struct rig_pci *peer, unsigned bar, uint64_t off,
        uint64_t bytes, unsigned prot, struct rig_dma *out);

/* The same range as a dma-buf, close-on-exec, the caller's. Its bytes are the range's, from 0. The kernel
 * takes it from its importers while the function is reset, and for good when it is closed. */
RIG_API int rig_pci_export(struct rig_pci *f, unsigned bar, uint64_t off, uint64_t bytes, int *fd);

/* Whether others than the caller, whose only reference is fd, have references to this dma-buf: descriptors
 * (duplicates, another process's, in a message), mappings, importers. True also where it cannot be known. */
RIG_API bool rig_dmabuf_is_shared(int fd);

/* The same from the text of its /proc/self/fdinfo. Pure. */
bool rig_dmabuf_text_is_shared(const char *text);

#endif
