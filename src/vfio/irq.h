/* SPDX-License-Identifier: MIT */
#ifndef RIG_IRQ_H
#define RIG_IRQ_H

/*
 * Interrupts of a taken function, delivered by adding to eventfds.
 *
 * Threads: any. The library keeps a duplicate of every descriptor it was given until the interrupt is
 * disabled or the function is closed, so that a reset can arm them again; the caller's descriptors stay the
 * caller's.
 */

struct rig_pci;

enum rig_irq_kind {
	RIG_IRQ_INTX, /* level: the function is masked when it fires, until rig_pci_irq_unmask */
	RIG_IRQ_MSI,
	RIG_IRQ_MSIX,
	RIG_IRQ_ERR, /* the function reported an error it cannot correct */
	RIG_IRQ_REQ, /* someone asks for the function back */
	RIG_IRQ_KINDS,
};

/* Vectors of that kind; 0: none, or no such kind. Does not block. */
unsigned rig_pci_irq_count(const struct rig_pci *f, enum rig_irq_kind kind);

/* From now on vector first + i of count adds 1 to eventfds[i] each time it fires; -1 leaves one
 * unconnected. Vectors of this kind outside the range stay as they are.
 *	-EINVAL	count is 0, or the range is not inside rig_pci_irq_count
 *	-EBUSY	INTx, MSI and MSI-X exclude each other: another of them is enabled
 *	-ENOSPC	the system has not so many vectors left; fewer may do
 */
int rig_pci_irq_enable(
        struct rig_pci *f, enum rig_irq_kind kind, unsigned first, unsigned count, const int *eventfds);

/* No vector of this kind fires any more. Nothing enabled: 0, and no message. */
int rig_pci_irq_disable(struct rig_pci *f, enum rig_irq_kind kind);

/* INTx: lets it fire again. Elsewhere -EINVAL. */
int rig_pci_irq_unmask(struct rig_pci *f, enum rig_irq_kind kind);

#endif
