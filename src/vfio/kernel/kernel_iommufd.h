/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_IOMMUFD_H
#define RIG_KERNEL_IOMMUFD_H

/* Of iommufd, what no-IOMMU uses too. Private to kernel_*.c. */

#include <stdbool.h>
#include <stdint.h>

struct rig_kernel;
struct rig_pci_fds;
struct rig_vfio_map;

/* k->space: the group's, or a new one in /dev/iommu. */
int rig_kiommufd_space(struct rig_kernel *k, const struct rig_pci_fds *fds, int group);
/* k->fd: the device's node, bound and attached. On failure k->fd is -1, and the space stays. */
int rig_kiommufd_device(struct rig_kernel *k, const struct rig_pci_fds *fds);
/* Maps by host address, at map->iova or where the kernel likes. With the space's lock held. The plain
 * errno: rig_kernel_fail_map has the words. */
int rig_kiommufd_map(struct rig_kernel *k, const struct rig_vfio_map *map, bool fixed, uint64_t *iova);
/* Unmaps: as rig_kmodel's. */
int rig_kiommufd_unmap(struct rig_kernel *k, uint64_t at, uint64_t *bytes);

#endif
