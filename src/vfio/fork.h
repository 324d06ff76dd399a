/* SPDX-License-Identifier: MIT */
#ifndef RIG_FORK_H
#define RIG_FORK_H

/*
 * A child of fork owns no function. Private to src/vfio.
 *
 * BARs and DMA memory are not inherited (MADV_DONTFORK). An atfork handler makes every function of the parent
 * gone in the child and closes its descriptors there, without a word to the device: so the end of the parent
 * is the end of the connection, whatever its children do. Every call on such a function answers -ENODEV;
 * rig_pci_close does nothing.
 */

struct rig_pci;

/* Keeps forks of this process waiting, by any thread, until a descriptor that is made meanwhile is a listed
 * function's: a child would hold it for as long as it lives, and so keep the far side from noticing our end.
 * For moments. No fork by a callback of the log meanwhile. */
void rig_fork_hold(void);
void rig_fork_release(void);

/* From here to the removal a fork is minded. -ENOMEM: the handler could not be installed. Any thread. */
int rig_fork_add(struct rig_pci *f);
void rig_fork_remove(struct rig_pci *f);

#endif
