/* SPDX-License-Identifier: MIT */
/* iommufd: a device node (cdev), bound to /dev/iommu and attached to one of its address spaces. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "bits.h"
#include "clock.h"
#include "rig_pci.h"
#include "error.h"
#include "kernel_abi.h"
#include "kernel_private.h"
#include "kernel_space.h"
#include "range.h"

#define IOMMU "/dev/iommu"

enum { NODE_BYTES = 64, RANGES_MOST = 1024 };

/* -- Opening -- */

/* With rig_kspace_lock held. Owns fd. */
static int add_space(struct rig_kernel *k, int fd, int group, struct rig_kspace **out)
{
	struct rig_kiommu_ioas_alloc alloc = {.size = sizeof(alloc)};
	int err = rig_kernel_ioctl(k, fd, RIG_KIOMMU_IOAS_ALLOC, &alloc);

	if (err < 0) {
		k->env->sys->close(fd);
		return rig_vfio_fail(err, NULL, IOMMU ": making an address space");
	}
	*out = rig_kspace_add(RIG_KSPACE_IOMMUFD, group, fd, -1);
	if (!*out) {
		k->env->sys->close(fd);
		return rig_vfio_fail(ENOMEM, NULL, "an address space");
	}
	(*out)->ioas = alloc.out_id;
	(*out)->file_maps = true;
	return 0;
}

int rig_kiommufd_space(struct rig_kernel *k, const struct rig_pci_fds *fds, int group)
{
	bool given = fds && fds->iommufd >= 0;
	int fd, err = 0;

	rig_kspace_lock();
	k->space = given ? NULL : rig_kspace_join(RIG_KSPACE_IOMMUFD, group);
	if (!k->space) {
		fd = given ? k->env->sys->dup(fds->iommufd) : k->env->sys->open(IOMMU, O_RDWR);
		err = fd < 0 ? rig_kernel_fail_node(k, errno, IOMMU)
		             : add_space(k, fd, given ? -1 : group, &k->space);
	}
	rig_kspace_unlock();
	return err;
}

/* Without a token in the first form, which kernels before Linux 6.19 know. */
static int bind_device(struct rig_kernel *k)
{
	struct rig_kvfio_bind bind = {
	        .argsz = offsetof(struct rig_kvfio_bind, token), .iommufd = k->space->fd};
	unsigned char uuid[RIG_KVFIO_TOKEN_BYTES];

	if (rig_kernel_token(k, uuid)) {
		bind.argsz = sizeof(bind);
		bind.flags = RIG_KVFIO_BIND_TOKEN;
		bind.token = (uintptr_t)uuid;
	}
	return rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_BIND_IOMMUFD, &bind);
}

/* -EINVAL is what the kernel says of a second binding. */
static int bind_patiently(struct rig_kernel *k)
{
	struct rig_deadline until = rig_deadline_in(NULL, RIG_KERNEL_HELD_NS);
	int err;

	while ((err = bind_device(k)) == -EINVAL && !*k->token && !rig_deadline_passed(&until))
		rig_deadline_sleep(&until, RIG_KERNEL_LOOK_NS);
	return err;
}

static int open_node(struct rig_kernel *k)
{
	char node[NODE_BYTES];
	int err;

	snprintf(node, sizeof(node), "/dev/vfio/devices/%s", k->sysfs.cdev);
	k->fd = k->env->sys->open(node, O_RDWR);
	if (k->fd < 0)
		return rig_kernel_fail_node(k, errno, node);
	err = bind_patiently(k);
	if (err == -EINVAL && *k->token)
		return rig_vfio_fail(ENOTSUP, "Linux 6.19 or later takes one; else transport=type1",
		        "%s: this kernel takes no token for its node (or the node is another process's)",
		        k->sysfs.bdf);
	if (err == -EINVAL)
		return rig_kernel_fail_node(k, EBUSY, node);
	return err < 0 ? rig_kernel_fail_device(k, err, "VFIO_DEVICE_BIND_IOMMUFD") : 0;
}

static int attach_device(struct rig_kernel *k)
{
	struct rig_kvfio_attach attach = {.argsz = sizeof(attach), .pt_id = k->space->ioas};
	int err = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_ATTACH, &attach);

	return err < 0 ? rig_kernel_fail(k, RIG_PCI_STEP_ATTACH, err,
	                         "group %d: VFIO_DEVICE_ATTACH_IOMMUFD_PT", k->sysfs.group)
	               : 0;
}

int rig_kiommufd_device(struct rig_kernel *k, const struct rig_pci_fds *fds)
{
	int err;

	if (fds && fds->device >= 0) {
		k->fd = k->env->sys->dup(fds->device);
		err = k->fd < 0 ? rig_vfio_fail(errno, NULL, "copying the device's descriptor") : 0;
	} else {
		err = open_node(k);
	}
	if (!err)
		err = attach_device(k);
	if (err && k->fd >= 0) {
		k->env->sys->close(k->fd);
		k->fd = -1;
	}
	return err;
}

static int open_iommufd(struct rig_kernel *k, const struct rig_pci_fds *fds)
{
	int err;

	if (!*k->sysfs.cdev && !(fds && fds->device >= 0))
		return rig_kernel_fail(k, RIG_PCI_STEP_BACK_END, ENOTSUP, "no node below /dev/vfio/devices");
	if (k->sysfs.noiommu)
		return rig_kernel_fail(k, RIG_PCI_STEP_GROUP, ENODEV, "no IOMMU group");
	err = rig_kiommufd_space(k, fds, k->sysfs.group);
	if (err)
		return err;
	err = rig_kiommufd_device(k, fds);
	if (err)
		rig_kernel_leave(k);
	return err;
}

/* Closing detaches and unbinds; then the space may go. A descriptor of the caller's keeps the device
 * bound, so it is detached by name. */
static void detach(struct rig_kernel *k)
{
	struct rig_kvfio_attach d = {.argsz = offsetof(struct rig_kvfio_attach, pt_id)};

	(void)rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_DETACH, &d);
	rig_kernel_leave(k);
}

/* -- Facts -- */

static int get_ranges(struct rig_kernel *k, struct rig_kiommu_range *at, struct rig_kiommu_iova_ranges *r)
{
	int err;

	*r = (struct rig_kiommu_iova_ranges){
	        .size = sizeof(*r), .ioas = k->space->ioas, .count = RANGES_MOST, .at = (uintptr_t)at};
	err = rig_kernel_ioctl(k, k->space->fd, RIG_KIOMMU_IOVA_RANGES, r);
	if (err < 0 || r->count > RANGES_MOST)
		return rig_vfio_fail(err < 0 ? err : -E2BIG, NULL, "iommufd: asking for the ranges of IOVAs");
	return 0;
}

static int ask(struct rig_kernel *k, uint64_t *align, struct rig_ranges *out)
{
	struct rig_kiommu_range *at = calloc(RANGES_MOST, sizeof(*at));
	struct rig_kiommu_iova_ranges r;
	int err;

	if (!at)
		return rig_vfio_fail(ENOMEM, NULL, "iommufd: ranges");
	err = get_ranges(k, at, &r);
	for (uint32_t i = 0; !err && out && i < r.count; i++)
		err = rig_ranges_add(out, at[i].first, at[i].last);
	if (!err)
		*align = r.out_align;
	free(at);
	return err;
}

static int device(void *transport, struct rig_vfio_device *out)
{
	struct rig_kernel *k = transport;
	uint64_t align;
	int err = ask(k, &align, NULL);

	if (err)
		return err;
	rig_kernel_facts(k, out);
	out->peers = rig_kernel_exports(k) ? RIG_VFIO_PEERS_DMABUF : RIG_VFIO_PEERS_NONE;
	out->dma_page = rig_is_pow2(align) ? align : 0;
	out->dma_maps = UINT64_MAX;
	return 0;
}

static int iova(void *transport, struct rig_ranges *out)
{
	struct rig_kernel *k = transport;
	uint64_t align;
	int err = ask(k, &align, out);

	return err ? err : rig_kernel_others(k, out);
}

/* -- Mapping -- */

static uint32_t map_flags(const struct rig_vfio_map *map, uint32_t flags)
{
	return flags | ((map->prot & RIG_DMA_READ) ? RIG_KIOMMU_READABLE : 0) |
	       ((map->prot & RIG_DMA_WRITE) ? RIG_KIOMMU_WRITABLE : 0);
}

/* By descriptor the pages stay the file's, whatever becomes of our mapping of it. */
static int map_file(struct rig_kernel *k, const struct rig_vfio_map *map)
{
	struct rig_kiommu_map_file m = {
	        .size = sizeof(m),
	        .flags = map_flags(map, RIG_KIOMMU_FIXED),
	        .ioas = k->space->ioas,
	        .fd = map->fd,
	        .start = map->fd_offset,
	        .bytes = map->bytes,
	        .iova = map->iova,
	};
	int err;

	if (map->fd < 0 || !k->space->file_maps)
		return -ENOTTY;
	err = rig_kernel_ioctl(k, k->space->fd, RIG_KIOMMU_MAP_FILE, &m);
	if (err == -ENOTTY)
		k->space->file_maps = false;
	return err;
}

int rig_kiommufd_map(struct rig_kernel *k, const struct rig_vfio_map *map, bool fixed, uint64_t *iova_out)
{
	struct rig_kiommu_map m = {
	        .size = sizeof(m),
	        .flags = map_flags(map, fixed ? RIG_KIOMMU_FIXED : 0),
	        .ioas = k->space->ioas,
	        .host = (uintptr_t)map->host,
	        .bytes = map->bytes,
	        .iova = fixed ? map->iova : 0,
	};
	int err = rig_kernel_ioctl(k, k->space->fd, RIG_KIOMMU_MAP, &m);

	*iova_out = m.iova;
	return err < 0 ? err : 0;
}

int rig_kiommufd_unmap(struct rig_kernel *k, uint64_t at, uint64_t *bytes)
{
	struct rig_kiommu_unmap m = {.size = sizeof(m), .ioas = k->space->ioas, .iova = at, .bytes = *bytes};
	int err = rig_kernel_ioctl(k, k->space->fd, RIG_KIOMMU_UNMAP, &m);

	*bytes = m.bytes;
	return err < 0 ? err : 0;
}

/* A dma-buf of registers is no memory of the user's. */
static bool is_charged(const struct rig_vfio_map *map)
{
	struct stat st;

	return map->fd < 0 || (fstat(map->fd, &st) == 0 && S_ISREG(st.st_mode));
}

/* Files that cannot be mapped so are mapped by address. */
static int map(struct rig_kernel *k, const struct rig_vfio_map *wanted)
{
	uint64_t at;
	int err = map_file(k, wanted);

	if (err < 0)
		err = rig_kiommufd_map(k, wanted, true, &at);
	if (!err && is_charged(wanted))
		rig_kspace_pinned(k->space, wanted->iova, wanted->bytes, k);
	return err;
}

const struct rig_kmodel rig_kiommufd_model = {
        .ops =
                {
                        .name = "iommufd",
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
        .open = open_iommufd,
        .detach = detach,
        .map = map,
        .unmap = rig_kiommufd_unmap,
};
