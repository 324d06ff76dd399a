/* SPDX-License-Identifier: MIT */
/* rig_pci_list over a captured tree. */
#ifndef RIG_PCI_MACHINE_H
#define RIG_PCI_MACHINE_H

#include "kernel_sysfs.h"

/* Calls each for every function below root ("" for this machine), by address, as rig_pci_list. */
int rig_machine_list(const char *root, int (*each)(void *arg, const struct rig_ksysfs *function), void *arg);

#endif
