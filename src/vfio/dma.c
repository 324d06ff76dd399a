/* SPDX-License-Identifier: MIT */
#include "rig_pci.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "bits.h"
#include "error.h"
#include "pci_private.h"

/* From this size on a mapping gets an IOVA on this boundary, so that an IOMMU can use its larger pages. */
#define LARGE (UINT64_C(2) << 20)

unsigned rig_pci_iovas(struct rig_pci *f, struct rig_pci_iova *ranges, unsigned room)
{
	unsigned count = 0;

	pthread_mutex_lock(&f->maps.lock);
	for (size_t i = 0; i < f->maps.free.count && f->maps.free.at[i].first <= f->maps.mask; i++, count++)
		if (count < room)
			ranges[count] = (struct rig_pci_iova){
			        f->maps.free.at[i].first, rig_min_u64(f->maps.free.at[i].last, f->maps.mask)};
	pthread_mutex_unlock(&f->maps.lock);
	return count;
}

int rig_pci_set_dma_mask(struct rig_pci *f, unsigned bits)
{
	return rig_maps_set_mask(&f->maps, bits);
}

/* -- Mapping and unmapping, with dma_lock held -- */

/* The library picks the address. Functions of one group share an address space: if another of this process
 * took the addresses meanwhile, the ranges are read again, once for each of a few tries. */
enum { TRIES = 8 };

static int renew(struct rig_pci *f)
{
	struct rig_ranges ranges = {0};
	int err = f->ops->iova(f->transport, &ranges);

	if (!err)
		err = rig_maps_renew(&f->maps, &ranges);
	rig_ranges_fini(&ranges);
	return err;
}

static int map_anywhere(struct rig_pci *f, struct rig_map *m, uint64_t align, struct rig_vfio_map *map)
{
	struct rig_map was;
	int err = -EEXIST;

	for (unsigned n = 0; n < TRIES && err == -EEXIST; n++) {
		err = n ? renew(f) : 0;
		if (!err)
			err = rig_maps_add(&f->maps, m, align);
		if (err)
			return err;
		map->iova = m->iova;
		err = f->ops->dma_map(f->transport, map);
		if (err)
			(void)rig_maps_remove(&f->maps, m->iova, m->bytes, &was);
	}
	return err;
}

/* The address is where the memory is. */
static int map_there(struct rig_pci *f, struct rig_map *m, struct rig_vfio_map *map)
{
	struct rig_map was;
	int err = f->ops->dma_place(f->transport, map, &map->iova);

	if (err)
		return err;
	m->iova = map->iova;
	err = rig_maps_add_at(&f->maps, m);
	if (err) {
		(void)f->ops->dma_unmap(f->transport, m->iova, m->bytes);
		return err;
	}
	err = f->ops->dma_map(f->transport, map);
	if (err)
		(void)rig_maps_remove(&f->maps, m->iova, m->bytes, &was);
	return err;
}

int rig_dma_make(struct rig_pci *f, struct rig_map *m, uint64_t align, int fd, uint64_t fd_offset)
{
	struct rig_vfio_map map = {
	        .bytes = m->bytes, .prot = m->prot, .host = m->host, .fd = fd, .fd_offset = fd_offset};
	int err;

	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	err = f->ops->dma_place ? map_there(f, m, &map) : map_anywhere(f, m, align, &map);
	return rig_gone_settle(&f->gone, err);
}

int rig_dma_undo(struct rig_pci *f, uint64_t iova, uint64_t bytes)
{
	struct rig_map was;
	int err = 0;

	if (rig_gone_is(&f->gone))
		err = rig_gone_fail(&f->gone);
	else
		err = rig_gone_settle(&f->gone, f->ops->dma_unmap(f->transport, iova, bytes));
	/* A device that may still reach memory that its owner takes back is not to be used any more. */
	if (err)
		rig_pci_lose(f, "a DMA mapping could not be undone");
	if (rig_maps_remove(&f->maps, iova, bytes, &was) == 0 && was.ours)
		munmap(was.host, was.bytes);
	return err;
}

void rig_dma_fini(struct rig_pci *f)
{
	struct rig_map m;

	pthread_mutex_lock(&f->dma_lock);
	rig_arenas_fini(f);
	while (rig_maps_last(&f->maps, &m))
		(void)rig_dma_undo(f, m.iova, m.bytes);
	pthread_mutex_unlock(&f->dma_lock);
}

/* -- Arenas -- */

int rig_dma_alloc(struct rig_pci *f, uint64_t bytes, uint64_t align, struct rig_dma *out)
{
	int err;

	*out = (struct rig_dma){.fd = -1};
	if (bytes == 0 || (align != 0 && !rig_is_pow2(align)) || align > RIG_HUGEMEM_ALIGN)
		return rig_vfio_fail(EINVAL, NULL,
		        "DMA memory of %" PRIu64 " bytes at a multiple of %" PRIu64, bytes, align);
	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	pthread_mutex_lock(&f->dma_lock);
	err = rig_arena_alloc(f, bytes, align, out);
	pthread_mutex_unlock(&f->dma_lock);
	return err;
}

int rig_dma_alloc_alone(struct rig_pci *f, uint64_t bytes, struct rig_dma *out)
{
	int err;

	*out = (struct rig_dma){.fd = -1};
	if (bytes == 0)
		return rig_vfio_fail(EINVAL, NULL, "DMA memory of 0 bytes");
	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	pthread_mutex_lock(&f->dma_lock);
	err = rig_arena_alloc_alone(f, bytes, out);
	pthread_mutex_unlock(&f->dma_lock);
	return err;
}

static void give(struct rig_pci *f, struct rig_dma *dma, bool spare)
{
	if (!dma || !dma->handle)
		return;
	if (!f->orphan) {
		pthread_mutex_lock(&f->dma_lock);
		rig_arena_free(f, dma, spare);
		pthread_mutex_unlock(&f->dma_lock);
	}
	*dma = (struct rig_dma){.fd = -1};
}

void rig_dma_free(struct rig_pci *f, struct rig_dma *dma)
{
	give(f, dma, true);
}

void rig_dma_refuse(struct rig_pci *f, struct rig_dma *dma)
{
	give(f, dma, false);
}

const char *rig_dma_pages(const struct rig_pci *f)
{
	return f->arenas.pages;
}

/* -- The caller's memory -- */

static int check(const struct rig_pci *f, uint64_t at, uint64_t bytes, unsigned prot)
{
	uint64_t end;

	if (bytes == 0 || !rig_is_aligned(at | bytes, f->info.dma_page) || !rig_add_u64(at, bytes, &end))
		return rig_vfio_fail(EINVAL, "use whole pages",
		        "mapping %#" PRIx64 " bytes at %#" PRIx64 " in pages of %#" PRIx64, bytes, at,
		        f->info.dma_page);
	if (prot == 0 || (prot & ~(RIG_DMA_READ | RIG_DMA_WRITE)))
		return rig_vfio_fail(EINVAL, NULL, "mapping with protection %#x", prot);
	return 0;
}

/* The handle of every rig_dma that is a mapping of its own; arenas' pieces have their arena. */
static void *own_handle(struct rig_pci *f)
{
	return &f->maps;
}

static int make(struct rig_pci *f, struct rig_map *m, int fd, uint64_t fd_offset, struct rig_dma *out)
{
	int err;

	pthread_mutex_lock(&f->dma_lock);
	err = rig_dma_make(f, m, m->bytes >= LARGE ? LARGE : 0, fd, fd_offset);
	pthread_mutex_unlock(&f->dma_lock);
	if (err)
		return err;
	*out = (struct rig_dma){
	        .host = m->host,
	        .iova = m->iova,
	        .bytes = m->bytes,
	        .fd = fd,
	        .fd_offset = fd_offset,
	        .handle = own_handle(f),
	};
	return 0;
}

/* For the accesses that the far side makes by message although it was given the descriptor. */
static int map_here(struct rig_map *m, int fd, uint64_t offset)
{
	int prot = ((m->prot & RIG_DMA_READ) ? PROT_READ : 0) | ((m->prot & RIG_DMA_WRITE) ? PROT_WRITE : 0);
	void *p = mmap(NULL, m->bytes, prot, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return rig_vfio_fail(
		        errno, NULL, "mapping %#" PRIx64 " bytes of descriptor %d", m->bytes, fd);
	(void)madvise(p, m->bytes, MADV_DONTFORK);
	m->host = p;
	m->ours = true;
	return 0;
}

int rig_dma_map_fd(struct rig_pci *f, int fd, uint64_t offset, uint64_t bytes, void *host, unsigned prot,
        struct rig_dma *out)
{
	struct rig_map m = {.bytes = bytes, .prot = prot, .host = host};
	int err = check(f, offset, bytes, prot);

	*out = (struct rig_dma){.fd = -1};
	if (!err && fd < 0)
		err = rig_vfio_fail(EBADF, NULL, "mapping descriptor %d", fd);
	if (!err && !host)
		err = map_here(&m, fd, offset);
	if (err)
		return err;
	err = make(f, &m, fd, offset, out);
	if (err && m.ours)
		munmap(m.host, bytes);
	return err;
}

/* Whether every page is there and allows what the device may do; afterwards they are, for a device cannot
 * fault them in. */
static int populate(void *host, uint64_t bytes, unsigned prot)
{
	int advice = (prot & RIG_DMA_WRITE) ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (madvise(host, bytes, advice) == 0)
		return 0;
	/* EINVAL: pages that do not allow it, or Linux before 5.14, which does not know the advice at all,
	 * not even for nothing; there an unmapped page is found, a read-only one is not. */
	if (errno == EINVAL && madvise(NULL, 0, advice) < 0)
		return madvise(host, bytes, MADV_WILLNEED) < 0 && errno == ENOMEM ? -EFAULT : 0;
	return -EFAULT;
}

int rig_dma_map_host(struct rig_pci *f, void *host, uint64_t bytes, unsigned prot, struct rig_dma *out)
{
	struct rig_map m = {.bytes = bytes, .prot = prot, .host = host, .pinned = true};
	int err = check(f, (uintptr_t)host, bytes, prot);

	*out = (struct rig_dma){.fd = -1};
	if (err)
		return err;
	if (!host || populate(host, bytes, prot) < 0)
		return rig_vfio_fail(EFAULT, "map memory that is there and allows it",
		        "pinning %#" PRIx64 " bytes at %p: unmapped or read-only pages, or a device's", bytes,
		        host);
	return make(f, &m, -1, 0, out);
}

int rig_dma_unmap(struct rig_pci *f, struct rig_dma *dma)
{
	int err;

	if (!dma)
		return 0;
	if (!dma->handle) {
		*dma = (struct rig_dma){.fd = -1};
		return 0;
	}
	if (f->orphan) {
		err = rig_gone_fail(&f->gone);
	} else if (dma->handle != own_handle(f)) {
		if (!rig_peer_unmap(f, dma->handle, &err))
			return rig_vfio_fail(EINVAL, "use rig_dma_free", "unmapping memory of rig_dma_alloc");
	} else {
		pthread_mutex_lock(&f->dma_lock);
		err = rig_dma_undo(f, dma->iova, dma->bytes);
		pthread_mutex_unlock(&f->dma_lock);
	}
	*dma = (struct rig_dma){.fd = -1};
	return err;
}

/* -- For the far side -- */

int rig_dma_write(struct rig_pci *f, uint64_t iova, const void *bytes, uint64_t count)
{
	return rig_maps_write(&f->maps, iova, bytes, count);
}

void rig_dma_deny(struct rig_pci *f)
{
	if (!f->orphan)
		rig_maps_deny(&f->maps);
}
