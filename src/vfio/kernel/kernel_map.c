/* SPDX-License-Identifier: MIT */
/* Memory of a function in its address space: what the three have in common, around the model's calls. */
#include <errno.h>
#include <inttypes.h>

#include "error.h"
#include "kernel_private.h"
#include "kernel_space.h"

int rig_kernel_fail_map(const struct rig_kernel *k, int err, const struct rig_vfio_map *map)
{
	switch (err) {
	case ENOMEM:
		return rig_vfio_fail(ENOMEM, "RLIMIT_MEMLOCK (ulimit -l) forbids it, or memory is short",
		        "pinning %" PRIu64 " KiB", map->bytes >> 10);
	case ENOSPC:
		return rig_vfio_fail(ENOSPC,
		        "its limit is /sys/module/vfio_iommu_type1/parameters/dma_entry_limit",
		        "mapping %" PRIu64 " KiB: the address space has %" PRIu64 " mappings",
		        map->bytes >> 10, k->space->count);
	case EEXIST:
		return rig_vfio_fail(EEXIST, NULL,
		        "[%#" PRIx64 ", +%#" PRIx64 ") is mapped already in the address space", map->iova,
		        map->bytes);
	case EFAULT:
		return rig_vfio_fail(EFAULT, "map memory that is there and allows it",
		        "pinning %#" PRIx64 " bytes at %p", map->bytes, map->host);
	case EINVAL:
		return rig_vfio_fail(EINVAL, NULL,
		        "mapping [%#" PRIx64 ", +%#" PRIx64 "): outside what the IOMMU takes", map->iova,
		        map->bytes);
	default:
		return rig_vfio_fail(
		        err, NULL, "mapping [%#" PRIx64 ", +%#" PRIx64 ")", map->iova, map->bytes);
	}
}

static int map_locked(struct rig_kernel *k, const struct rig_vfio_map *map)
{
	int err = rig_kspace_note(k->space, map->iova, map->bytes, k);
	if (err == -EEXIST)
		return rig_kernel_fail_map(k, EEXIST, map);
	if (err)
		return rig_vfio_fail(err, NULL, "listing a mapping");
	err = k->model->map(k, map);
	if (err) {
		(void)rig_kspace_forget(k->space, map->iova, map->bytes, k);
		return rig_kernel_fail_map(k, -err, map);
	}
	return 0;
}

int rig_kernel_dma_map(void *transport, const struct rig_vfio_map *map)
{
	struct rig_kernel *k = transport;
	int err;

	pthread_mutex_lock(&k->space->lock);
	err = map_locked(k, map);
	pthread_mutex_unlock(&k->space->lock);
	return err;
}

static int unmap(struct rig_kernel *k, uint64_t iova, uint64_t bytes)
{
	uint64_t undone = bytes;
	int err = k->model->unmap(k, iova, &undone);

	if (err)
		return rig_vfio_fail(err, NULL, "%s: unmapping [%#" PRIx64 ", +%#" PRIx64 ")",
		        k->model->ops.name, iova, bytes);
	if (undone != bytes)
		return rig_vfio_fail(EIO, "the kernel and this library disagree about what is mapped",
		        "%s: unmapping [%#" PRIx64 ", +%#" PRIx64 ") undid %#" PRIx64 " bytes",
		        k->model->ops.name, iova, bytes, undone);
	return 0;
}

int rig_kernel_dma_unmap(void *transport, uint64_t iova, uint64_t bytes)
{
	struct rig_kernel *k = transport;
	int err;

	pthread_mutex_lock(&k->space->lock);
	err = unmap(k, iova, bytes);
	if (!err)
		(void)rig_kspace_forget(k->space, iova, bytes, k);
	pthread_mutex_unlock(&k->space->lock);
	return err;
}

int rig_kernel_others(struct rig_kernel *k, struct rig_ranges *free)
{
	int err;

	pthread_mutex_lock(&k->space->lock);
	err = rig_kspace_others(k->space, k, free);
	pthread_mutex_unlock(&k->space->lock);
	return err;
}

void rig_kernel_leave(struct rig_kernel *k)
{
	if (k->fd >= 0)
		k->env->sys->close(k->fd);
	k->fd = -1;
	rig_kspace_leave(k->space, k, unmap);
	k->space = NULL;
}
