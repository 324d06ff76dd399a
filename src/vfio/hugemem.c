/* SPDX-License-Identifier: MIT */
#include "hugemem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h> /* hugetlbfs.h of 2.23 does not include it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <hugetlbfs.h>

#include "bits.h"
#include "error.h"

/* Page sizes of one machine: x86-64 has two huge ones, arm64 four. */
enum { SIZES_MOST = 8 };

/* The lines of /proc/meminfo that are looked at: the first few. */
enum { MEMINFO_BYTES = 1024 };

/* Looks for room; another thread may take what was found. */
enum { ROOM_TRIES = 64 };

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MFD_HUGE_SHIFT
#define MFD_HUGE_SHIFT 26
#endif

/* What the system can give without ending a process for it: populating more than that is not refused, it
 * kills. */
static uint64_t available(void)
{
	static const char key[] = "MemAvailable:";
	char text[MEMINFO_BYTES];
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *at;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, key);
	if (at)
		return strtoull(at + sizeof(key) - 1, NULL, 10) << 10;
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Where a mapping of so many bytes would have room at a multiple of align, when this looked. */
static void *find_room(uint64_t bytes, uint64_t align)
{
	uint64_t span;
	void *p;

	if (!rig_add_u64(bytes, align, &span))
		return MAP_FAILED;
	p = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return p;
	munmap(p, span);
	return (void *)(uintptr_t)rig_align_down((uintptr_t)p + align - 1, align);
}

/* Never over anything, not even a reservation: a mapping in place of another may fail with both gone, and
 * what another thread then maps there would be taken for ours. */
static void *map_aligned(int fd, uint64_t bytes, uint64_t align)
{
	for (int i = 0; i < ROOM_TRIES; i++) {
		void *at = find_room(bytes, align), *p;

		if (at == MAP_FAILED)
			return at;
		p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
		if (p == at || (p == MAP_FAILED && errno != EEXIST))
			return p;
		if (p != MAP_FAILED)
			munmap(p, bytes); /* Linux before 4.17 takes the address for a wish */
	}
	errno = ENOMEM;
	return MAP_FAILED;
}

/* Every page there now: a device's first access must not find none, nor the first store of a hot path. */
static int populate(void *host, uint64_t bytes, uint64_t page)
{
	if (madvise(host, bytes, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	for (uint64_t off = 0; off < bytes; off += page) /* Linux before 5.14 */
		__atomic_store_n((unsigned char *)host + off, 0, __ATOMIC_RELAXED);
	return 0;
}

/* Takes fd in any case. */
static int map(struct rig_hugemem *m, int fd, uint64_t bytes, uint64_t page)
{
	void *p;
	int err;

	if (ftruncate(fd, (off_t)bytes) < 0) {
		err = -errno;
		goto close_fd;
	}
	/* Where the pages cannot be had, this fails, or populating does. */
	p = map_aligned(fd, bytes, rig_max_u64(page, RIG_HUGEMEM_ALIGN));
	if (p == MAP_FAILED) {
		err = -errno;
		goto close_fd;
	}
	(void)madvise(p, bytes, MADV_HUGEPAGE); /* where the system gives them to shared memory */
	err = populate(p, bytes, page);
	if (err)
		goto unmap;
	(void)madvise(p, bytes, MADV_DONTFORK);
	*m = (struct rig_hugemem){.host = p, .bytes = bytes, .page = page, .fd = fd};
	return 0;
unmap:
	munmap(p, bytes);
close_fd:
	close(fd);
	return err;
}

static void say(struct rig_hugemem *m, const char *from)
{
	bool large = m->page >= UINT64_C(1) << 20;

	snprintf(m->text, sizeof(m->text), "%" PRIu64 " %s pages (%s)", m->page >> (large ? 20 : 10),
	        large ? "MiB" : "KiB", from);
}

static int try_size(struct rig_hugemem *m, uint64_t bytes, uint64_t page)
{
	int fd;

	if (!rig_align_up(bytes, page, &bytes))
		return -ENOMEM;
	fd = hugetlbfs_unlinked_fd_for_size((long)page);
	if (fd >= 0) {
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
		if (map(m, fd, bytes, page) == 0) {
			say(m, "hugetlbfs");
			return 0;
		}
	}
	fd = memfd_create("rig-dma", MFD_CLOEXEC | MFD_HUGETLB | rig_ilog2(page) << MFD_HUGE_SHIFT);
	if (fd < 0 || map(m, fd, bytes, page) != 0)
		return -ENOMEM;
	say(m, "memfd, huge");
	return 0;
}

/* The machine's huge page sizes that bytes fills, the largest first; the ordinary huge page also for less. */
static int sizes(uint64_t bytes, long *size)
{
	int n = gethugepagesizes(size, SIZES_MOST), kept = 0;

	for (int i = 0; i < n; i++) {
		if (size[i] > 0 && rig_is_pow2((uint64_t)size[i]) &&
		        (uint64_t)size[i] <= rig_max_u64(bytes, RIG_HUGEMEM_ALIGN))
			size[kept++] = size[i];
	}
	for (int i = 1; i < kept; i++) {
		for (int k = i; k > 0 && size[k] > size[k - 1]; k--) {
			long t = size[k];

			size[k] = size[k - 1];
			size[k - 1] = t;
		}
	}
	return kept;
}

/* Ordinary pages. */
static int try_pages(struct rig_hugemem *m, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int fd, err;

	if (!rig_align_up(bytes, page, &bytes) || bytes > available())
		return rig_vfio_fail(ENOMEM, "free memory, or ask for less",
		        "%#" PRIx64 " bytes for DMA are more than the system has", bytes);
	fd = memfd_create("rig-dma", MFD_CLOEXEC);
	if (fd < 0)
		return rig_vfio_fail(errno, "raise the limit on open files (ulimit -n)", "memfd_create");
	err = map(m, fd, bytes, page);
	if (err)
		return rig_vfio_fail(
		        err, "free memory, or ask for less", "mapping %#" PRIx64 " bytes for DMA", bytes);
	say(m, "memfd");
	return 0;
}

int rig_hugemem_open(struct rig_hugemem *m, uint64_t bytes)
{
	long size[SIZES_MOST];
	int n = sizes(bytes, size);

	for (int i = 0; i < n; i++) {
		if (try_size(m, bytes, (uint64_t)size[i]) == 0)
			return 0;
	}
	/* Whatever the system says of memory of the host's own, there is none now; the text has its words. */
	return try_pages(m, bytes) ? -ENOMEM : 0;
}

void rig_hugemem_close(struct rig_hugemem *m)
{
	if (!m->host)
		return;
	munmap(m->host, m->bytes);
	close(m->fd);
	*m = (struct rig_hugemem){.fd = -1};
}
