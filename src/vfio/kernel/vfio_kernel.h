/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_KERNEL_H
#define RIG_VFIO_KERNEL_H

/*
 * A function of this machine, taken through the kernel's VFIO.
 *
 * Three transports behind one table each: type1 (group and container), iommufd (cdev) and no-IOMMU
 * (physical addresses). Opening decides which, says why in the log, and does everything that can fail for
 * lack of something on this machine; attach only begins to watch for the function's errors and for
 * requests to give it back.
 */

#include <stdbool.h>
#include <stdint.h>

#include "rig_pci.h"

struct rig_kenv;
struct rig_log;
struct rig_pci_taking;
struct rig_vfio_ops;

/* How. */
enum rig_pci_transport {
	RIG_PCI_ANY,     /* a device node (cdev, iommufd) where it exists and serves, else type1 */
	RIG_PCI_IOMMUFD, /* cdev and iommufd: Linux 6.6 or later */
	RIG_PCI_TYPE1,   /* group and container */
	RIG_PCI_NOIOMMU, /* no protection at all: the device reaches all memory. Huge pages are needed */
};

/* A UUID as text: that a virtual function's user and its physical function's owner agree on. */
enum { RIG_PCI_TOKEN = 36 };

/* Its 16 bytes; false if the text is of another form. */
RIG_API bool rig_pci_token_parse(const char *text, unsigned char *uuid);

/* The step at which an attempt failed. */
enum rig_pci_step {
	RIG_PCI_STEP_OTHER,
	RIG_PCI_STEP_ABSENT,   /* there is no such function */
	RIG_PCI_STEP_DRIVER,   /* it is not with a driver of VFIO's */
	RIG_PCI_STEP_HELD,     /* its lock is another process's */
	RIG_PCI_STEP_GROUP,    /* no IOMMU translates for it */
	RIG_PCI_STEP_NODE,     /* opening a node */
	RIG_PCI_STEP_BACK_END, /* what the way needs of the kernel is not there */
	RIG_PCI_STEP_VIABLE,   /* its group is not viable */
	RIG_PCI_STEP_ATTACH,   /* it does not get into an address space (SET_CONTAINER, SET_IOMMU, ATTACH) */
	RIG_PCI_STEP_DEVICE,   /* its descriptor is refused (GET_DEVICE_FD, BIND) */
	RIG_PCI_STEP_ASLEEP,   /* open, and without power */
	RIG_PCI_STEP_ONES,     /* its configuration space answers all ones */
};

enum { RIG_PCI_ATTEMPTS = 2, RIG_PCI_ATTEMPT_TEXT = 512, RIG_PCI_NODE_TEXT = 64 };

struct rig_pci_attempt {
	enum rig_pci_transport way; /* RIG_PCI_ANY: it failed before one was tried */
	enum rig_pci_step step;
	int err;                         /* a negative errno */
	char node[RIG_PCI_NODE_TEXT];    /* of RIG_PCI_STEP_NODE: its path; else "" */
	char text[RIG_PCI_ATTEMPT_TEXT]; /* rig_error() of it */
};

struct rig_pci_failed {
	unsigned count;
	struct rig_pci_attempt attempt[RIG_PCI_ATTEMPTS]; /* in the order in which they were made */
};

struct rig_kernel_want {
	const char *bdf;               /* NULL only with fds */
	enum rig_pci_transport which;  /* RIG_PCI_ANY: cdev where it exists and serves, else type1 */
	const struct rig_pci_fds *fds; /* the caller's descriptors; NULL: all are opened here */
	/* NULL: none. Of a virtual function whose physical one VFIO gave out: what its owner set. Of a
	 * physical one: sets it. */
	const char *token;
	struct rig_pci_failed *failed; /* the attempts of an open that fails; NULL: unsaid */
};

/* On success *transport is *ops's. On failure nothing is left, rig_error has the line, and *failed every
 * attempt's. log is used during the call only. */
int rig_kernel_open(const struct rig_kenv *env, const struct rig_kernel_want *want, const struct rig_log *log,
        const struct rig_vfio_ops **ops, void **transport);

/* For begin of struct rig_pci_taking, whose arg is a struct rig_kernel_want: a function of this machine. */
int rig_kernel_begin(void *want, struct rig_pci_taking *options);

#endif
