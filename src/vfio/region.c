/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bits.h"
#include "log.h"
#include "pci_private.h"

static unsigned char *map_area(const struct rig_vfio_region *r, const struct rig_vfio_area *a, bool *writable)
{
	off_t at = (off_t)(r->fd_offset + a->offset);
	void *p = MAP_FAILED;

	*writable = r->readable && r->writable;
	if (*writable)
		p = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, at);
	if (p == MAP_FAILED && r->readable) {
		/* A descriptor that allows only reading: a status page. */
		*writable = false;
		p = mmap(NULL, a->bytes, PROT_READ, MAP_SHARED, r->fd, at);
	}
	return p == MAP_FAILED ? NULL : p;
}

void rig_region_map(struct rig_region *region, const struct rig_log *log)
{
	const struct rig_vfio_region *r = &region->info;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	region->mapped = 0;
	for (unsigned i = 0; i < r->areas; i++) {
		const struct rig_vfio_area *a = &r->area[i];
		struct rig_region_area *m = &region->area[region->mapped];

		if (!rig_is_aligned((r->fd_offset + a->offset) | a->bytes, page)) {
			rig_logf(log, RIG_LOG_WARN,
			        "a mappable area at %#llx is not made of pages: not mapped",
			        (unsigned long long)a->offset);
			continue;
		}
		*m = (struct rig_region_area){.offset = a->offset, .bytes = a->bytes};
		m->at = map_area(r, a, &m->writable);
		if (!m->at) {
			rig_logf(log, RIG_LOG_WARN,
			        "mapping an area at %#llx: %s: accesses go through the transport",
			        (unsigned long long)a->offset, strerrordesc_np(errno));
			continue;
		}
		(void)madvise(m->at, m->bytes, MADV_DONTFORK);
		region->mapped++;
	}
}

void rig_region_unmap(struct rig_region *region)
{
	for (unsigned i = 0; i < region->mapped; i++) {
		rig_guard_remove(region->area[i].at);
		munmap(region->area[i].at, region->area[i].bytes);
	}
	region->mapped = 0;
}

/* One piece of memory of ones repeated over the area: small enough that a gone function costs little, large
 * enough that a large area takes few mappings (the kernel allows 65,530 a process). */
enum { BLANK_LEAST = 1 << 21, BLANK_PIECES = 256 };

static int ones(uint64_t bytes)
{
	int fd = memfd_create("rig-gone", MFD_CLOEXEC);
	void *p;

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)bytes) < 0) {
		close(fd);
		return -1;
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		close(fd);
		return -1;
	}
	memset(p, 0xff, bytes);
	munmap(p, bytes);
	return fd;
}

/* Made aside and put in place in one step: what fails leaves the device's memory, and never a hole. Private,
 * so that a write is the writer's own affair. */
static void blank_piece(void *at, uint64_t bytes, int prot, int fd)
{
	void *p = mmap(NULL, bytes, prot, MAP_PRIVATE, fd, 0);

	if (p != MAP_FAILED && mremap(p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
		munmap(p, bytes);
}

static void blank_area(struct rig_region_area *m)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t piece = rig_max_u64(rig_align_down(m->bytes / BLANK_PIECES, page), BLANK_LEAST);
	int prot = PROT_READ | (m->writable ? PROT_WRITE : 0);
	int fd;

	piece = rig_min_u64(piece, m->bytes);
	fd = ones(piece);
	if (fd < 0)
		return;
	for (uint64_t off = 0; off < m->bytes; off += piece)
		blank_piece(m->at + off, rig_min_u64(piece, m->bytes - off), prot, fd);
	(void)madvise(m->at, m->bytes, MADV_DONTFORK);
	close(fd);
}

void rig_region_blank(struct rig_region *region)
{
	for (unsigned i = 0; i < region->mapped; i++)
		blank_area(&region->area[i]);
}

const struct rig_region_area *rig_region_find(
        const struct rig_region *region, uint64_t off, uint64_t len, uint64_t *run)
{
	*run = len;
	for (unsigned i = 0; i < region->mapped; i++) {
		const struct rig_region_area *m = &region->area[i];

		if (off < m->offset) {
			*run = rig_min_u64(len, m->offset - off);
			return NULL;
		}
		if (off - m->offset < m->bytes) {
			*run = rig_min_u64(len, m->bytes - (off - m->offset));
			return m;
		}
	}
	return NULL;
}
