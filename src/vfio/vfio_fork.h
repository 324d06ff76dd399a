/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_FORK_H
#define RIG_VFIO_FORK_H

/*
 * A child of fork owns no function. Private to src/vfio.
 *
 * BARs and DMA memory are not inherited (MADV_DONTFORK). An atfork handler runs in the child, marks every
 * function of the parent gone there and closes the child's copies of its descriptors; the device is told
 * nothing. So a connection ends when the parent ends, whatever its children do. In the child every call on
 * such a function answers -ENODEV, and rig_pci_close does nothing.
 */

struct rig_pci;

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

#endif
