/* SPDX-License-Identifier: MIT */
/* Type1: a group in a container. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "bits.h"
#include "clock.h"
#include "rig_pci.h"
#include "error.h"
#include "kernel_abi.h"
#include "kernel_parse.h"
#include "kernel_private.h"
#include "kernel_space.h"
#include "range.h"

#define CONTAINER "/dev/vfio/vfio"

enum { NODE_BYTES = 48, INFO_BYTES = 4096 };

/* -- Opening -- */

/* Type1 version 2: unmaps are of exactly what was mapped. */
static int check_container(struct rig_kernel *k, int fd)
{
	int version = rig_kernel_ioctl(k, fd, RIG_KVFIO_GET_API_VERSION, NULL);

	if (version < 0)
		return rig_vfio_fail(version, NULL, CONTAINER ": asking for its version");
	if (version != RIG_KVFIO_API_VERSION)
		return rig_vfio_fail(EPROTO, "this library speaks version 0",
		        CONTAINER " speaks version %d of VFIO", version);
	if (rig_kernel_ioctl(k, fd, RIG_KVFIO_CHECK_EXTENSION, (void *)RIG_KVFIO_TYPE1V2) <= 0)
		return rig_kernel_fail(
		        k, RIG_PCI_STEP_BACK_END, ENOTSUP, CONTAINER " has no type1 (version 2) model");
	return 0;
}

static int open_container(struct rig_kernel *k, int *fd)
{
	int err;

	*fd = k->env->sys->open(CONTAINER, O_RDWR);
	if (*fd < 0)
		return rig_kernel_fail_node(k, errno, CONTAINER);
	err = check_container(k, *fd);
	if (err)
		k->env->sys->close(*fd);
	return err;
}

static int check_group(struct rig_kernel *k, int fd)
{
	struct rig_kvfio_group_status status = {.argsz = sizeof(status)};
	int err = rig_kernel_ioctl(k, fd, RIG_KVFIO_GROUP_GET_STATUS, &status);

	if (err < 0)
		return rig_vfio_fail(err, NULL, "asking group %d for its state", k->sysfs.group);
	if (!(status.flags & RIG_KVFIO_GROUP_VIABLE))
		return rig_kernel_fail(
		        k, RIG_PCI_STEP_VIABLE, EBUSY, "group %d is not viable", k->sysfs.group);
	return 0;
}

/* -EAGAIN, without a text: it is somebody's, and the caller has time. */
static int open_group(struct rig_kernel *k, bool waits, int *fd)
{
	char node[NODE_BYTES];
	int err;

	if (k->sysfs.group < 0 || k->sysfs.noiommu)
		return rig_kernel_fail(k, RIG_PCI_STEP_GROUP, ENODEV, "no IOMMU group");
	snprintf(node, sizeof(node), "/dev/vfio/%d", k->sysfs.group);
	*fd = k->env->sys->open(node, O_RDWR);
	if (*fd < 0 && errno == EBUSY && waits)
		return -EAGAIN;
	if (*fd < 0)
		return rig_kernel_fail_node(k, errno, node);
	err = check_group(k, *fd);
	if (err)
		k->env->sys->close(*fd);
	return err;
}

static int join_container(struct rig_kernel *k, int container, int group)
{
	int err = rig_kernel_ioctl(k, group, RIG_KVFIO_GROUP_SET_CONTAINER, &container);

	if (err < 0)
		return rig_kernel_fail(
		        k, RIG_PCI_STEP_ATTACH, err, "group %d: joining a container", k->sysfs.group);
	err = rig_kernel_ioctl(k, container, RIG_KVFIO_SET_IOMMU, (void *)RIG_KVFIO_TYPE1V2);
	return err < 0 ? rig_kernel_fail(
	                         k, RIG_PCI_STEP_ATTACH, err, "group %d: setting type1", k->sysfs.group)
	               : 0;
}

/* A container of its own for the group. With rig_kspace_lock held. */
static int make_space(struct rig_kernel *k, bool waits, struct rig_kspace **out)
{
	const struct rig_ksys *sys = k->env->sys;
	int container, group = -1, err = open_container(k, &container);

	if (err)
		return err;
	err = open_group(k, waits, &group);
	if (err)
		goto close_container;
	err = join_container(k, container, group);
	if (err)
		goto close_group;
	*out = rig_kspace_add(RIG_KSPACE_TYPE1, k->sysfs.group, container, group);
	if (*out)
		return 0;
	err = rig_vfio_fail(ENOMEM, NULL, "an address space");
close_group:
	sys->close(group);
close_container:
	sys->close(container);
	return err;
}

/* The caller's container and group, which may be joined already and may have their model. */
static int take_space(struct rig_kernel *k, const struct rig_pci_fds *fds, struct rig_kspace **out)
{
	struct rig_kvfio_group_status status = {.argsz = sizeof(status)};
	int container = k->env->sys->dup(fds->container), group = k->env->sys->dup(fds->group);
	int err = container < 0 || group < 0
	                  ? rig_vfio_fail(EBADF, NULL, "copying the container's and the group's descriptors")
	                  : check_group(k, group);

	if (!err)
		err = rig_kernel_ioctl(k, group, RIG_KVFIO_GROUP_GET_STATUS, &status);
	if (!err && !(status.flags & RIG_KVFIO_GROUP_CONTAINER_SET))
		err = join_container(k, container, group);
	if (!err)
		*out = rig_kspace_add(RIG_KSPACE_TYPE1, -1, container, group);
	if (!err && *out)
		return 0;
	if (container >= 0)
		k->env->sys->close(container);
	if (group >= 0)
		k->env->sys->close(group);
	return err ? err : rig_vfio_fail(ENOMEM, NULL, "an address space");
}

static int try_space(struct rig_kernel *k, const struct rig_pci_fds *fds, bool waits)
{
	int err = 0;

	rig_kspace_lock();
	if (fds && fds->container >= 0 && fds->group >= 0) {
		err = take_space(k, fds, &k->space);
	} else {
		k->space = rig_kspace_join(RIG_KSPACE_TYPE1, k->sysfs.group);
		if (!k->space)
			err = make_space(k, waits, &k->space);
	}
	rig_kspace_unlock();
	return err;
}

static int find_space(struct rig_kernel *k, const struct rig_pci_fds *fds)
{
	struct rig_deadline until = rig_deadline_in(NULL, RIG_KERNEL_HELD_NS);
	int err;

	/* Without the lock between two looks: who lets go may need it. */
	while ((err = try_space(k, fds, !rig_deadline_passed(&until))) == -EAGAIN)
		rig_deadline_sleep(&until, RIG_KERNEL_LOOK_NS);
	return err;
}

static int open_device(struct rig_kernel *k, const struct rig_pci_fds *fds)
{
	char name[RIG_KERNEL_NAME];

	if (fds && fds->device >= 0)
		k->fd = k->env->sys->dup(fds->device);
	else
		k->fd = rig_kernel_ioctl(
		        k, k->space->group_fd, RIG_KVFIO_GROUP_GET_DEVICE_FD, rig_kernel_name(k, name));
	if (k->fd >= 0)
		return 0;
	return rig_kernel_fail_device(
	        k, fds && fds->device >= 0 ? errno : -k->fd, "VFIO_GROUP_GET_DEVICE_FD");
}

static int open_type1(struct rig_kernel *k, const struct rig_pci_fds *fds)
{
	int err = find_space(k, fds);

	if (err)
		return err;
	err = open_device(k, fds);
	if (err)
		rig_kernel_leave(k);
	return err;
}

/* -- Facts -- */

static int get_info(struct rig_kernel *k, struct rig_ktype1_info *info, struct rig_ranges *ranges)
{
	struct rig_ranges unused = {0};
	union {
		struct rig_kvfio_iommu_info head;
		unsigned char bytes[INFO_BYTES]; /* 250 ranges: several times what any machine has */
	} answer = {.head = {.argsz = sizeof(answer)}};
	int err = rig_kernel_ioctl(k, k->space->fd, RIG_KVFIO_IOMMU_GET_INFO, &answer);

	if (err < 0)
		return rig_vfio_fail(err, NULL, "type1: asking for its limits");
	err = rig_kparse_type1(
	        &answer, rig_min_u64(answer.head.argsz, sizeof(answer)), info, ranges ? ranges : &unused);
	rig_ranges_fini(&unused);
	return err ? rig_vfio_fail(err, NULL, "type1: its limits") : 0;
}

static int device(void *transport, struct rig_vfio_device *out)
{
	struct rig_kernel *k = transport;
	struct rig_ktype1_info info;
	int err = get_info(k, &info, NULL);

	if (err)
		return err;
	rig_kernel_facts(k, out);
	out->peers = RIG_VFIO_PEERS_MAPPING;
	out->dma_page = info.pgsizes ? UINT64_C(1) << rig_lowest_bit(info.pgsizes) : 0;
	/* What is available is the container's, which other functions share: the kernel counts, and refuses
	 * in its words. */
	out->dma_maps = UINT64_MAX;
	return 0;
}

static int iova(void *transport, struct rig_ranges *out)
{
	struct rig_kernel *k = transport;
	struct rig_ktype1_info info;
	int err = get_info(k, &info, out);

	return err ? err : rig_kernel_others(k, out);
}

/* -- Mapping -- */

static int map(struct rig_kernel *k, const struct rig_vfio_map *wanted)
{
	struct rig_kvfio_dma_map m = {
	        .argsz = sizeof(m),
	        .flags = ((wanted->prot & RIG_DMA_READ) ? RIG_KVFIO_DMA_READ : 0) |
	                 ((wanted->prot & RIG_DMA_WRITE) ? RIG_KVFIO_DMA_WRITE : 0),
	        .host = (uintptr_t)wanted->host,
	        .iova = wanted->iova,
	        .bytes = wanted->bytes,
	};
	int err = rig_kernel_ioctl(k, k->space->fd, RIG_KVFIO_IOMMU_MAP_DMA, &m);

	return err < 0 ? err : 0;
}

static int unmap(struct rig_kernel *k, uint64_t at, uint64_t *bytes)
{
	struct rig_kvfio_dma_unmap m = {.argsz = sizeof(m), .iova = at, .bytes = *bytes};
	int err = rig_kernel_ioctl(k, k->space->fd, RIG_KVFIO_IOMMU_UNMAP_DMA, &m);

	*bytes = m.bytes;
	return err < 0 ? err : 0;
}

/* The device's descriptor goes before the group, which stays open as long as it is. */
const struct rig_kmodel rig_ktype1_model = {
        .ops =
                {
                        .name = "type1",
                        .attach = rig_kernel_attach,
                        .quiet = rig_kernel_quiet,
                        .close = rig_kernel_close,
                        .forked = rig_kernel_forked,
                        .device = device,
                        .region = rig_kernel_region,
                        .irqs = rig_kernel_irqs,
                        .iova = iova,
                        .read = rig_kernel_read,
                        .write = rig_kernel_write,
                        .dma_map = rig_kernel_dma_map,
                        .dma_unmap = rig_kernel_dma_unmap,
                        .export = rig_kernel_export,
                        .irq_set = rig_kernel_irq_set,
                        .reset = rig_kernel_reset,
                        .reset_check = rig_kernel_reset_check,
                        .reset_hits = rig_kernel_reset_hits,
                        .messages = rig_kernel_messages,
                },
        .open = open_type1,
        .detach = rig_kernel_leave,
        .map = map,
        .unmap = unmap,
};
