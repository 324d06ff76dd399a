/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig_file.h"

static const struct rig_key key = {"file"};

/* New files are the owner's to write and everyone's to read, less what the umask takes. */
#define NEW_FILE_MODE 0644

/* Files are on disks, which are larger than any budget of memory. */
#define BUDGET (UINT64_MAX / 2)

/* A file that is a buffer. */
struct file {
	int fd;
	bool writable;
	uint64_t bytes;
	pthread_mutex_t lock; /* of pages */
	void *pages;          /* NULL: not mapped yet */
};

/* ---- What rig calls ---- */

static uint64_t file_budget(void *device)
{
	(void)device;
	return BUDGET;
}

static int file_alloc(void *device, uint64_t bytes, void **region, const char **fault)
{
	(void)device;
	(void)bytes;
	(void)region;
	(void)fault;
	return rig_error_set(
	        -EINVAL, "a file device makes no memory: rig_file_buffer and rig_file_create open files");
}

static int file_free(void *device, void *region, const char **fault)
{
	struct file *f = region;

	(void)device;
	(void)fault;
	if (f->pages)
		(void)munmap(f->pages, f->bytes);
	(void)close(f->fd);
	(void)pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}

static int cut_short(const struct file *f, uint64_t at)
{
	return rig_error_set(-EIO, "the file ends at byte %llu, before its buffer's %llu",
	        (unsigned long long)at, (unsigned long long)f->bytes);
}

static int failed(const char *what, uint64_t at)
{
	int code = -errno;

	return rig_error_set(code, "%s at byte %llu: %s", what, (unsigned long long)at, strerror(-code));
}

static int file_read(void *device, void *region, uint64_t at, void *dst, uint64_t bytes, const char **fault)
{
	struct file *f = region;
	uint64_t done = 0;
	ssize_t n;

	(void)device;
	(void)fault;
	while (done < bytes) {
		n = pread(f->fd, (char *)dst + done, bytes - done, (off_t)(at + done));
		if (n == 0)
			return cut_short(f, at + done);
		if (n < 0 && errno != EINTR)
			return failed("read", at + done);
		done += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

/* Never past the buffer's end, so a file that was cut short is not made longer with a hole: it is refused. */
static int check_size(const struct file *f)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return failed("stat", 0);
	return (uint64_t)st.st_size < f->bytes ? cut_short(f, (uint64_t)st.st_size) : 0;
}

static int file_write(
        void *device, void *region, uint64_t at, const void *src, uint64_t bytes, const char **fault)
{
	struct file *f = region;
	uint64_t done = 0;
	ssize_t n;
	int code;

	(void)device;
	(void)fault;
	if (!f->writable)
		return rig_error_set(-EBADF, "the file was opened to be read");
	code = check_size(f);
	while (!code && done < bytes) {
		n = pwrite(f->fd, (const char *)src + done, bytes - done, (off_t)(at + done));
		if (n < 0 && errno != EINTR)
			code = failed("write", at + done);
		done += n > 0 ? (uint64_t)n : 0;
	}
	return code;
}

/* Devices map pages to write them, also those that they only read: a file that must not change is mapped
   privately. */
static int map(struct file *f)
{
	void *pages = mmap(
	        NULL, f->bytes, PROT_READ | PROT_WRITE, f->writable ? MAP_SHARED : MAP_PRIVATE, f->fd, 0);

	if (pages == MAP_FAILED)
		return failed("map", 0);
	f->pages = pages;
	return 0;
}

static int file_pages(void *device, void *region, void **pages, const char **fault)
{
	struct file *f = region;
	int code = 0;

	(void)device;
	(void)fault;
	(void)pthread_mutex_lock(&f->lock);
	if (!f->pages)
		code = map(f);
	*pages = f->pages;
	(void)pthread_mutex_unlock(&f->lock);
	return code;
}

static void file_prefetch(void *device, void *region, uint64_t at, uint64_t bytes)
{
	struct file *f = region;

	(void)device;
	(void)posix_fadvise(f->fd, (off_t)at, (off_t)bytes, POSIX_FADV_WILLNEED);
}

static void file_stop(void *device)
{
	(void)device;
}

static void file_release(void *device)
{
	free(device);
}

static const struct rig_io_module module = {
        .version = RIG_EDGE_VERSION,
        .key = &key,
        .budget = file_budget,
        .alloc = file_alloc,
        .free = file_free,
        .read = file_read,
        .write = file_write,
        .pages = file_pages,
        .prefetch = file_prefetch,
        .stop = file_stop,
        .release = file_release,
};

/* A handle has no state of its own, but is one. */
static int make(void *arg, void **device, char *why, size_t why_bytes)
{
	(void)arg;
	*device = malloc(1);
	if (*device)
		return 0;
	(void)snprintf(why, why_bytes, "no host memory for a device");
	return -ENOMEM;
}

/* ---- What programs call ---- */

void rig_file_opener(const char *name, struct rig_io_opener *opener)
{
	memset(opener, 0, sizeof(*opener));
	opener->version = RIG_EDGE_VERSION;
	opener->name = name;
	opener->module = &module;
	opener->make = make;
}

/* Takes over the descriptor. */
static int make_buffer(
        struct rig_device *device, const char *path, int fd, bool writable, struct rig_buffer **buffer)
{
	struct stat st = {0};
	struct file *f;
	int code = 0;

	if (fstat(fd, &st))
		code = -errno;
	else if (!S_ISREG(st.st_mode) || !st.st_size)
		code = -EINVAL;
	f = code ? NULL : calloc(1, sizeof(*f));
	if (!f) {
		(void)close(fd);
		return rig_error_set(code ? code : -ENOMEM, "%s: %s", path,
		        code == -EINVAL ? S_ISREG(st.st_mode) ? "the file is empty" : "no regular file"
		                        : strerror(code ? -code : ENOMEM));
	}
	f->fd = fd;
	f->writable = writable;
	f->bytes = (uint64_t)st.st_size;
	(void)pthread_mutex_init(&f->lock, NULL);
	code = rig_buffer_of_io(device, &key, f, f->bytes, buffer);
	if (code)
		(void)file_free(NULL, f, NULL);
	return code;
}

static int check(struct rig_device *device, const char *path, struct rig_buffer **buffer)
{
	if (device && path && buffer)
		return 0;
	return rig_error_set(-EINVAL, "%s is NULL", !device ? "device" : !path ? "path" : "buffer");
}

int rig_file_buffer(
        struct rig_device *device, const char *path, enum rig_access access, struct rig_buffer **buffer)
{
	/* A pipe that nobody writes is refused, not waited for. */
	int flags = O_CLOEXEC | O_NONBLOCK | (access == RIG_WRITE ? O_RDWR : O_RDONLY);
	int code = check(device, path, buffer), fd;

	if (code)
		return code;
	fd = open(path, flags);
	if (fd < 0)
		return rig_error_set(-errno, "%s: %s", path, strerror(errno));
	return make_buffer(device, path, fd, access == RIG_WRITE, buffer);
}

int rig_file_create(struct rig_device *device, const char *path, uint64_t bytes, struct rig_buffer **buffer)
{
	int code = check(device, path, buffer), fd;

	if (code)
		return code;
	if (!bytes || bytes > INT64_MAX)
		return rig_error_set(-EINVAL, "%s: a file of %llu bytes", path, (unsigned long long)bytes);
	fd = open(path, O_CLOEXEC | O_RDWR | O_CREAT | O_EXCL, NEW_FILE_MODE);
	if (fd < 0)
		return rig_error_set(-errno, "%s: %s", path, strerror(errno));
	if (ftruncate(fd, (off_t)bytes)) {
		code = rig_error_set(
		        -errno, "%s: %llu bytes: %s", path, (unsigned long long)bytes, strerror(errno));
		(void)close(fd);
	} else {
		code = make_buffer(device, path, fd, true, buffer);
	}
	if (code)
		(void)unlink(path);
	return code;
}

int rig_file_sync(struct rig_buffer *buffer)
{
	struct file *f = rig_buffer_io_region(buffer, &key);

	if (!f)
		return rig_error_set(-EINVAL, "the buffer is no file's");
	return fdatasync(f->fd) ? failed("sync", 0) : 0;
}
