/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_H
#define RIG_KERNEL_H

/*
 * A function of this machine, taken through the kernel's VFIO. Private to src/vfio and its tests.
 *
 * Three transports behind one table each: type1 (group and container), iommufd (cdev) and no-IOMMU
 * (physical addresses). Opening decides which, says why in the log, and does everything that can fail for
 * lack of something on this machine; attach only begins to watch for the function's errors and for
 * requests to give it back.
 */

#include <stdbool.h>
#include <stdint.h>

#include "pci.h"

struct rig_kenv;
struct rig_log;
struct rig_vfio_ops;

struct rig_kernel_want {
	const char *bdf;               /* NULL only with fds */
	enum rig_pci_transport which;  /* RIG_PCI_ANY: cdev where it exists and serves, else type1 */
	const struct rig_pci_fds *fds; /* the caller's descriptors; NULL: all are opened here */
	const char *token;             /* rig_pci_options' */
	struct rig_pci_failed *failed; /* rig_pci_options' */
};

/* On success *transport is *ops's. On failure nothing is left, rig_error has the line, and *failed every
 * attempt's. log is used during the call only. */
int rig_kernel_open(const struct rig_kenv *env, const struct rig_kernel_want *want, const struct rig_log *log,
        const struct rig_vfio_ops **ops, void **transport);

#endif
