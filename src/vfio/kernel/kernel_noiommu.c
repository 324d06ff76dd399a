/* SPDX-License-Identifier: MIT */
/*
 * No IOMMU: the device uses physical addresses and reaches all memory. Only on request.
 *
 * Two ways to learn an address. A kernel with IOMMU_IOAS_NOIOMMU_GET_PA pins the memory in an iommufd and
 * tells. Before, /proc/self/pagemap tells, and nothing pins: then only huge pages are taken, which the
 * kernel does not move.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "bits.h"
#include "error.h"
#include "kernel_abi.h"
#include "kernel_private.h"
#include "kernel_space.h"
#include "range.h"

#define CONTAINER "/dev/vfio/vfio"

enum { NODE_BYTES = 64, CHUNK = 512 };

/* Documentation/admin-guide/mm/pagemap.rst. */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_PFN     ((UINT64_C(1) << 55) - 1)
#define KPAGEFLAGS_HUGE (UINT64_C(1) << 17)

static bool tells(const struct rig_kernel *k)
{
	return k->space->kind == RIG_KSPACE_IOMMUFD;
}

/* -- Opening -- */

static int open_by_node(struct rig_kernel *k, const struct rig_pci_fds *fds)
{
	struct rig_kiommu_get_pa probe = {.size = sizeof(probe)};
	int err = rig_kiommufd_space(k, fds, -1);

	if (err)
		return err;
	probe.ioas = k->space->ioas;
	if (rig_kernel_ioctl(k, k->space->fd, RIG_KIOMMU_GET_PA, &probe) == -ENOTTY)
		err = rig_vfio_fail(ENOTSUP, NULL, "iommufd of this kernel does not tell physical addresses");
	else
		err = rig_kiommufd_device(k, fds);
	if (err)
		rig_kernel_leave(k);
	return err;
}

static int join_container(struct rig_kernel *k, int container, int group)
{
	int err = rig_kernel_ioctl(k, group, RIG_KVFIO_GROUP_SET_CONTAINER, &container);

	if (!err)
		err = rig_kernel_ioctl(k, container, RIG_KVFIO_SET_IOMMU, (void *)RIG_KVFIO_NOIOMMU);
	return err < 0 ? rig_kernel_fail_device(k, err, "setting no-IOMMU") : 0;
}

static int open_nodes(struct rig_kernel *k, int *container, int *group)
{
	char node[NODE_BYTES];

	snprintf(node, sizeof(node), "/dev/vfio/noiommu-%d", k->sysfs.group);
	*group = -1;
	*container = k->env->sys->open(CONTAINER, O_RDWR);
	if (*container < 0)
		return rig_kernel_fail_node(k, errno, CONTAINER);
	*group = k->env->sys->open(node, O_RDWR);
	return *group < 0 ? rig_kernel_fail_node(k, errno, node) : 0;
}

static int open_by_group(struct rig_kernel *k)
{
	const struct rig_ksys *sys = k->env->sys;
	int container, group, err = open_nodes(k, &container, &group);
	char name[RIG_KERNEL_NAME];

	if (!err)
		err = join_container(k, container, group);
	if (!err) {
		k->fd = rig_kernel_ioctl(k, group, RIG_KVFIO_GROUP_GET_DEVICE_FD, rig_kernel_name(k, name));
		err = k->fd < 0 ? rig_kernel_fail_device(k, k->fd, "VFIO_GROUP_GET_DEVICE_FD") : 0;
	}
	if (!err) {
		rig_kspace_lock();
		k->space = rig_kspace_add(RIG_KSPACE_TYPE1, -1, container, group);
		rig_kspace_unlock();
		if (k->space)
			return 0;
		err = rig_vfio_fail(ENOMEM, NULL, "a list of mappings");
		sys->close(k->fd);
	}
	k->fd = -1;
	if (group >= 0)
		sys->close(group);
	if (container >= 0)
		sys->close(container);
	return err;
}

static int open_noiommu(struct rig_kernel *k, const struct rig_pci_fds *fds)
{
	int err;

	if (k->sysfs.group >= 0 && !k->sysfs.noiommu)
		return rig_vfio_fail(EINVAL, "leave transport=noiommu out",
		        "%s: it is behind an IOMMU, so its addresses are not physical ones", k->sysfs.bdf);
	if ((k->sysfs.group < 0 && !*k->sysfs.cdev && !fds))
		return rig_vfio_fail(ENODEV,
		        "as root: echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode, then "
		        "rigctl bind",
		        "%s: no no-IOMMU node", k->sysfs.bdf);
	err = -ENOTSUP;
	if (*k->sysfs.cdev || (fds && fds->iommufd >= 0))
		err = open_by_node(k, fds);
	return err && k->sysfs.group >= 0 && !fds ? open_by_group(k) : err;
}

/* -- Facts -- */

static int device(void *transport, struct rig_vfio_device *out)
{
	struct rig_kernel *k = transport;

	rig_kernel_facts(k, out);
	out->peers = RIG_VFIO_PEERS_BUS;
	out->dma_page = 0;
	out->dma_maps = UINT64_MAX;
	return 0;
}

static int iova(void *transport, struct rig_ranges *out)
{
	(void)transport;
	return rig_ranges_add(out, 0, UINT64_MAX);
}

/* -- Addresses -- */

static int scattered(const struct rig_vfio_map *map)
{
	return rig_vfio_fail(ENOSPC,
	        "use memory within one huge page; reserve some: echo 16 > /proc/sys/vm/nr_hugepages",
	        "%#" PRIx64 " bytes at %p lie in several pieces of physical memory, and no IOMMU joins them",
	        map->bytes, map->host);
}

/* Pinned at cookie: where. The kernel may report neighbours as separate pieces. */
static int ask_kernel(struct rig_kernel *k, const struct rig_vfio_map *map, uint64_t cookie, uint64_t *pa)
{
	for (uint64_t off = 0; off < map->bytes;) {
		struct rig_kiommu_get_pa get = {.size = sizeof(get),
		        .ioas = k->space->ioas,
		        .iova = cookie + off,
		        .bytes = map->bytes - off};
		int err = rig_kernel_ioctl(k, k->space->fd, RIG_KIOMMU_GET_PA, &get);

		if (err < 0 || get.bytes == 0)
			return rig_vfio_fail(err < 0 ? err : -EIO, NULL, "IOMMU_IOAS_NOIOMMU_GET_PA");
		if (off == 0)
			*pa = get.out_pa;
		if (get.out_pa != *pa + off)
			return scattered(map);
		off += rig_min_u64(get.bytes, map->bytes - off);
	}
	return 0;
}

static int pin(struct rig_kernel *k, const struct rig_vfio_map *map, uint64_t *pa)
{
	uint64_t cookie, bytes = map->bytes;
	int err = rig_kiommufd_map(k, map, false, &cookie);

	if (err)
		return rig_kernel_fail_map(k, -err, map);
	err = ask_kernel(k, map, cookie, pa);
	if (!err) {
		err = rig_kspace_note(k->space, *pa, map->bytes, k);
		if (err)
			err = rig_kernel_fail_map(k, -err, map);
	}
	if (err) {
		(void)rig_kiommufd_unmap(k, cookie, &bytes);
		return err;
	}
	rig_kspace_find(k->space, *pa, map->bytes, k)->cookie = cookie;
	return 0;
}

static int read_entries(struct rig_kernel *k, const char *path, uint64_t at, uint64_t *entry, size_t n)
{
	int fd = k->env->sys->open(path, O_RDONLY);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = k->env->sys->pread(fd, entry, n * sizeof(*entry), (off_t)(at * sizeof(*entry)));
	k->env->sys->close(fd);
	return got == (ssize_t)(n * sizeof(*entry)) ? 0 : -EIO;
}

static int no_rights(void)
{
	return rig_vfio_fail(EPERM, "run it as root (CAP_SYS_ADMIN), or use an IOMMU",
	        "no-IOMMU: the system does not tell this process physical addresses");
}

/* Pages that the kernel might move are not taken. */
static int check_huge(struct rig_kernel *k, uint64_t frame)
{
	uint64_t flags;

	if (read_entries(k, "/proc/kpageflags", frame, &flags, 1))
		return no_rights();
	return (flags & KPAGEFLAGS_HUGE)
	               ? 0
	               : rig_vfio_fail(ENOSPC, "reserve huge pages: echo 16 > /proc/sys/vm/nr_hugepages",
	                         "no-IOMMU on this kernel: the memory is not made of huge pages, and could "
	                         "move");
}

static int ask_pagemap(struct rig_kernel *k, const struct rig_vfio_map *map, uint64_t *pa)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), entry[CHUNK];
	uint64_t first = (uintptr_t)map->host / page, pages = map->bytes / page;
	int err = 0;

	for (uint64_t i = 0; i < pages && !err; i++) {
		uint64_t in = i % CHUNK;

		if (in == 0)
			err = read_entries(
			        k, "/proc/self/pagemap", first + i, entry, rig_min_u64(CHUNK, pages - i));
		if (err || !(entry[in] & PAGEMAP_PRESENT) || !(entry[in] & PAGEMAP_PFN))
			return no_rights();
		if (i == 0) {
			*pa = (entry[in] & PAGEMAP_PFN) * page;
			err = check_huge(k, entry[in] & PAGEMAP_PFN);
		} else if ((entry[in] & PAGEMAP_PFN) * page != *pa + i * page) {
			err = scattered(map);
		}
	}
	return err;
}

static int place_locked(struct rig_kernel *k, const struct rig_vfio_map *map, uint64_t *pa)
{
	int err;

	if (tells(k))
		return pin(k, map, pa);
	err = ask_pagemap(k, map, pa);
	if (!err) {
		err = rig_kspace_note(k->space, *pa, map->bytes, k);
		if (err)
			err = rig_kernel_fail_map(k, -err, map);
	}
	return err;
}

static int dma_place(void *transport, const struct rig_vfio_map *map, uint64_t *pa)
{
	struct rig_kernel *k = transport;
	int err;

	pthread_mutex_lock(&k->space->lock);
	err = place_locked(k, map, pa);
	pthread_mutex_unlock(&k->space->lock);
	return err;
}

/* Placing was all there is to do. */
static int dma_map(void *transport, const struct rig_vfio_map *map)
{
	(void)transport;
	(void)map;
	return 0;
}

static int unmap(struct rig_kernel *k, uint64_t at, uint64_t *bytes)
{
	const struct rig_kspace_map *m = rig_kspace_find(k->space, at, *bytes, k);

	if (!m)
		return -ENOENT;
	return tells(k) ? rig_kiommufd_unmap(k, m->cookie, bytes) : 0;
}

const struct rig_kmodel rig_knoiommu_model = {
        .ops =
                {
                        .name = "noiommu",
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
                        .dma_place = dma_place,
                        .dma_map = dma_map,
                        .dma_unmap = rig_kernel_dma_unmap,
                        .export = rig_kernel_export,
                        .irq_set = rig_kernel_irq_set,
                        .reset = rig_kernel_reset,
                        .reset_check = rig_kernel_reset_check,
                        .reset_hits = rig_kernel_reset_hits,
                        .messages = rig_kernel_messages,
                },
        .open = open_noiommu,
        .detach = rig_kernel_leave,
        .unmap = unmap,
};
