/* SPDX-License-Identifier: MIT */
#ifndef RIG_ENUMERATE_H
#define RIG_ENUMERATE_H

/*
 * The PCI functions of this machine, by libpciaccess, with what sysfs says about who drives them. Reads only;
 * one thread at a time.
 */

#include <stdint.h>

struct rig_pci_found {
	char address[16]; /* "0000:65:00.0" */
	uint16_t vendor, device;
	uint32_t class_code;                   /* 24 bits */
	char vendor_name[64], device_name[96]; /* "" if unknown */
	char driver[32];                       /* the kernel driver bound to it, "" if none */
	int iommu_group;                       /* -1: none */
};

/* Calls `each` for every function in bus order, until it answers other than 0, which is the answer. -ENOSYS:
 * this machine has no PCI bus that libpciaccess can read. */
int rig_pci_enumerate(int (*each)(void *arg, const struct rig_pci_found *found), void *arg);

#endif
