/* SPDX-License-Identifier: MIT */
#include "maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "rig_pci.h"
#include "error.h"

enum { MASK_BITS_LEAST = 12, ROOM_FIRST = 16 };

int rig_maps_init(
        struct rig_maps *maps, struct rig_ranges *ranges, uint64_t page, uint64_t limit, uint64_t base)
{
	*maps = (struct rig_maps){
	        .free = *ranges, .page = page, .limit = limit, .base = base, .mask = UINT64_MAX};
	*ranges = (struct rig_ranges){0};
	pthread_mutex_init(&maps->lock, NULL);
	if (rig_ranges_sub(&maps->free, 0, page - 1) == 0)
		return 0;
	rig_maps_fini(maps);
	return rig_vfio_fail(ENOMEM, NULL, "the list of free IOVAs");
}

void rig_maps_fini(struct rig_maps *maps)
{
	pthread_mutex_destroy(&maps->lock);
	rig_ranges_fini(&maps->free);
	free(maps->at);
	maps->at = NULL;
	maps->count = maps->room = 0;
}

int rig_maps_set_mask(struct rig_maps *maps, unsigned bits)
{
	uint64_t mask = rig_mask64(bits);
	int err = 0;

	if (bits < MASK_BITS_LEAST || bits > RIG_BITS_U64)
		return rig_vfio_fail(EINVAL, NULL, "a DMA mask of %u bits (12 to 64)", bits);
	pthread_mutex_lock(&maps->lock);
	if (maps->count > 0) {
		const struct rig_map *last = &maps->at[maps->count - 1];

		if (last->iova + (last->bytes - 1) > mask)
			err = -EBUSY;
	}
	if (!err)
		maps->mask = mask;
	pthread_mutex_unlock(&maps->lock);
	if (err)
		return rig_vfio_fail(EBUSY, "set the mask before the first mapping",
		        "a DMA mask of %u bits: memory is mapped above it", bits);
	return 0;
}

/* -- The list, with the lock held -- */

/* The first mapping that ends above iova: the one that holds it, if any does. */
static size_t find(const struct rig_maps *maps, uint64_t iova)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct rig_map *m = &maps->at[mid];

		if (m->iova + (m->bytes - 1) < iova)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int make_room(struct rig_maps *maps)
{
	size_t room = maps->room ? maps->room * 2 : ROOM_FIRST;
	struct rig_map *at;

	if (maps->count < maps->room)
		return 0;
	at = reallocarray(maps->at, room, sizeof(*at));
	if (!at)
		return -ENOMEM;
	maps->at = at;
	maps->room = room;
	return 0;
}

static int pick(struct rig_maps *maps, uint64_t bytes, uint64_t align, uint64_t *iova)
{
	struct rig_ranges_want want = {.bytes = bytes,
	        .align = rig_max_u64(align, maps->page),
	        .lower = maps->base,
	        .mask = maps->mask};
	int err = rig_ranges_fit(&maps->free, &want, iova);

	if (err == -ENOSPC) {
		want.lower = maps->page;
		err = rig_ranges_fit(&maps->free, &want, iova);
	}
	return err ? err : rig_ranges_sub(&maps->free, *iova, *iova + (bytes - 1));
}

static void insert(struct rig_maps *maps, const struct rig_map *m)
{
	size_t i = find(maps, m->iova);

	memmove(&maps->at[i + 1], &maps->at[i], (maps->count - i) * sizeof(*m));
	maps->at[i] = *m;
	maps->count++;
	maps->mapped_bytes += m->bytes;
	maps->pinned_bytes += m->pinned ? m->bytes : 0;
}

static void drop(struct rig_maps *maps, size_t i)
{
	const struct rig_map *m = &maps->at[i];

	maps->mapped_bytes -= m->bytes;
	maps->pinned_bytes -= m->pinned ? m->bytes : 0;
	/* Out of memory here, the addresses are lost to this function, and there are plenty. */
	(void)rig_ranges_add(&maps->free, m->iova, m->iova + (m->bytes - 1));
	maps->count--;
	memmove(&maps->at[i], &maps->at[i + 1], (maps->count - i) * sizeof(*m));
}

/* -- */

static int explain(const struct rig_maps *maps, int err, uint64_t bytes)
{
	if (err == -E2BIG)
		return rig_vfio_fail(ENOSPC, "unmap some, or map larger pieces",
		        "%" PRIu64 " mappings exist, which is all that the transport takes", maps->limit);
	if (err == -ENOSPC)
		return rig_vfio_fail(ENOSPC, "unmap some, or widen the DMA mask",
		        "no IOVA range of %#" PRIx64 " bytes is free below %#" PRIx64, bytes, maps->mask);
	return err ? rig_vfio_fail(err, NULL, "listing a mapping of %#" PRIx64 " bytes", bytes) : 0;
}

int rig_maps_add(struct rig_maps *maps, struct rig_map *m, uint64_t align)
{
	int err;

	pthread_mutex_lock(&maps->lock);
	err = maps->count < maps->limit ? make_room(maps) : -E2BIG;
	if (!err)
		err = pick(maps, m->bytes, align, &m->iova);
	if (!err)
		insert(maps, m);
	pthread_mutex_unlock(&maps->lock);
	return explain(maps, err, m->bytes);
}

static int add_at(struct rig_maps *maps, const struct rig_map *m)
{
	uint64_t last = m->iova + (m->bytes - 1);
	size_t i = find(maps, m->iova);
	int err;

	if (last > maps->mask)
		return -EINVAL;
	if (i < maps->count && maps->at[i].iova <= last)
		return -EEXIST;
	err = maps->count < maps->limit ? make_room(maps) : -E2BIG;
	if (!err)
		err = rig_ranges_sub(&maps->free, m->iova, last);
	if (!err)
		insert(maps, m);
	return err;
}

int rig_maps_add_at(struct rig_maps *maps, const struct rig_map *m)
{
	int err;

	pthread_mutex_lock(&maps->lock);
	err = add_at(maps, m);
	pthread_mutex_unlock(&maps->lock);
	if (err == -EINVAL)
		return rig_vfio_fail(EINVAL, "use memory at lower addresses, or an IOMMU",
		        "memory at %#" PRIx64 " is beyond the function's DMA mask %#" PRIx64, m->iova,
		        maps->mask);
	return explain(maps, err, m->bytes);
}

int rig_maps_renew(struct rig_maps *maps, struct rig_ranges *ranges)
{
	int err;

	pthread_mutex_lock(&maps->lock);
	err = rig_ranges_sub(ranges, 0, maps->page - 1);
	for (size_t i = 0; i < maps->count && !err; i++)
		err = rig_ranges_sub(ranges, maps->at[i].iova, maps->at[i].iova + (maps->at[i].bytes - 1));
	if (!err) {
		rig_ranges_fini(&maps->free);
		maps->free = *ranges;
		*ranges = (struct rig_ranges){0};
	}
	pthread_mutex_unlock(&maps->lock);
	return err;
}

int rig_maps_remove(struct rig_maps *maps, uint64_t iova, uint64_t bytes, struct rig_map *was)
{
	int err = -ENOENT;
	size_t i;

	pthread_mutex_lock(&maps->lock);
	i = find(maps, iova);
	if (i < maps->count && maps->at[i].iova == iova && maps->at[i].bytes == bytes) {
		*was = maps->at[i];
		drop(maps, i);
		err = 0;
	}
	pthread_mutex_unlock(&maps->lock);
	return err ? rig_vfio_fail(
	                     err, NULL, "no mapping is exactly [%#" PRIx64 ", +%#" PRIx64 ")", iova, bytes)
	           : 0;
}

void rig_maps_revoke(struct rig_maps *maps, uint64_t iova, uint64_t bytes)
{
	size_t i;

	pthread_mutex_lock(&maps->lock);
	i = find(maps, iova);
	if (i < maps->count && maps->at[i].iova == iova && maps->at[i].bytes == bytes) {
		maps->at[i].prot = 0;
		maps->at[i].host = NULL;
	}
	pthread_mutex_unlock(&maps->lock);
}

bool rig_maps_last(struct rig_maps *maps, struct rig_map *out)
{
	bool any;

	pthread_mutex_lock(&maps->lock);
	any = maps->count > 0;
	if (any)
		*out = maps->at[maps->count - 1];
	pthread_mutex_unlock(&maps->lock);
	return any;
}

/* -- The device's own accesses -- */

static int allowed(const struct rig_maps *maps, size_t i, uint64_t iova, uint64_t len, unsigned prot)
{
	while (len > 0) {
		const struct rig_map *m;
		uint64_t run;

		if (i >= maps->count)
			return -EFAULT;
		m = &maps->at[i];
		if (iova < m->iova)
			return -EFAULT;
		if ((m->prot & prot) == 0)
			return -EACCES;
		run = m->bytes - (iova - m->iova);
		if (len <= run)
			return 0;
		if (!rig_add_u64(iova, run, &iova))
			return -EFAULT;
		len -= run;
		i++;
	}
	return 0;
}

static void copy_in(unsigned char *to, const unsigned char *from, uint64_t len)
{
	uint64_t word;

	if (len != sizeof(word) || !rig_is_aligned((uintptr_t)to, sizeof(word))) {
		memcpy(to, from, len);
		return;
	}
	memcpy(&word, from, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
}

static void copy_out(unsigned char *to, const unsigned char *from, uint64_t len)
{
	uint64_t word;

	if (len != sizeof(word) || !rig_is_aligned((uintptr_t)from, sizeof(word))) {
		memcpy(to, from, len);
		return;
	}
	word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
	memcpy(to, &word, sizeof(word));
}

/* Checked before: [iova, iova + len) is mapped from mapping i on. */
static void copy(
        const struct rig_maps *maps, size_t i, uint64_t iova, unsigned char *buf, uint64_t len, bool in)
{
	while (len > 0) {
		const struct rig_map *m = &maps->at[i++];
		uint64_t off = iova - m->iova, run = rig_min_u64(len, m->bytes - off);

		if (in)
			copy_in(m->host + off, buf, run);
		else
			copy_out(buf, m->host + off, run);
		iova += run;
		buf += run;
		len -= run;
	}
}

/*
 * The accesses are the device's. What orders them with those of the host, and of other devices, passes
 * through the device: a doorbell, a register, a word. Nothing in this process shows that order, so
 * ThreadSanitizer is told not to look.
 */
#if defined(__SANITIZE_THREAD__)
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

static void begin_device_access(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static void end_device_access(void)
{
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static void begin_device_access(void)
{
}

static void end_device_access(void)
{
}
#endif

static int access(struct rig_maps *maps, uint64_t iova, unsigned char *buf, uint64_t len, bool in)
{
	size_t i;
	int err;

	pthread_mutex_lock(&maps->lock);
	i = find(maps, iova);
	err = maps->denied ? -EACCES : allowed(maps, i, iova, len, in ? RIG_DMA_WRITE : RIG_DMA_READ);
	if (!err) {
		begin_device_access();
		copy(maps, i, iova, buf, len, in);
		end_device_access();
	}
	maps->served++;
	maps->refused += err != 0;
	pthread_mutex_unlock(&maps->lock);
	return err;
}

int rig_maps_read(struct rig_maps *maps, uint64_t iova, void *buf, uint64_t len)
{
	return access(maps, iova, buf, len, false);
}

int rig_maps_write(struct rig_maps *maps, uint64_t iova, const void *buf, uint64_t len)
{
	/* Only read from: copy's direction says so. */
	return access(maps, iova, (unsigned char *)(uintptr_t)buf, len, true);
}

void rig_maps_deny(struct rig_maps *maps)
{
	pthread_mutex_lock(&maps->lock);
	maps->denied = true;
	pthread_mutex_unlock(&maps->lock);
}
