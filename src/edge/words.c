/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig_edge.h"

#define WORD_BYTES ((size_t)RIG_WORD_COUNT * sizeof(uint64_t))

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static rig_atomic_u64 *words;
static int words_fd = -1;

static int child_fd = -1; /* during a fork: what the child's copy will be of */

/* Memory for an array. A negative errno. */
static int make_memory(void)
{
	int fd = memfd_create("rig-words", MFD_CLOEXEC), code;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)WORD_BYTES))
		return fd;
	code = -errno;
	(void)close(fd);
	return code;
}

static void unlock_making(void)
{
	(void)pthread_mutex_unlock(&making);
}

/* Made before the child is: the child gets the descriptors of one moment and the memory of a later one, so
   that a descriptor made in the child could have the number of another in its memory, which is closed
   there. */
static void prepare(void)
{
	(void)pthread_mutex_lock(&making);
	if (words_fd >= 0)
		child_fd = make_memory();
}

static void parent(void)
{
	if (child_fd >= 0)
		(void)close(child_fd);
	child_fd = -1;
	unlock_making();
}

/* Only what was ever written is read: reading holes of the mapping would give them memory. */
static void copy_written(void *dst, int fd)
{
	off_t at = 0, end;

	while (at < (off_t)WORD_BYTES) {
		at = lseek(fd, at, SEEK_DATA);
		if (at < 0)
			return;
		end = lseek(fd, at, SEEK_HOLE);
		while (at < end) {
			ssize_t n = pread(fd, (char *)dst + at, (size_t)(end - at), at);

			if (n <= 0)
				return;
			at += n;
		}
	}
}

static void *map_array(int fd)
{
	return mmap(NULL, WORD_BYTES, PROT_READ | PROT_WRITE,
	        fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
}

/* The same addresses hold a copy that neither the parent nor its devices write. */
static bool put_copy(void)
{
	void *copy = map_array(child_fd);

	if (copy == MAP_FAILED)
		return false;
	copy_written(copy, words_fd);
	if (mremap(copy, WORD_BYTES, WORD_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)words) != MAP_FAILED)
		return true;
	(void)munmap(copy, WORD_BYTES);
	return false;
}

/* Without room for a copy the child sees on what the parent writes, but never writes it, and has no
   descriptor to show. */
static void keep_without_copy(void)
{
	(void)mmap((void *)words, WORD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, words_fd, 0);
	if (child_fd >= 0)
		(void)close(child_fd);
	child_fd = -1;
}

/* The child's own devices are shown the copy by its descriptor; where there is none the words are still those
   that were. Words without a descriptor are private to a process already: fork copies them. */
static void child(void)
{
	if (words_fd >= 0) {
		if (!put_copy())
			keep_without_copy();
		(void)close(words_fd);
		words_fd = child_fd;
		child_fd = -1;
	}
	unlock_making();
}

/* Once, whether an array comes of it or not. */
static int register_handlers(void)
{
	static bool registered;
	int code = registered ? 0 : -pthread_atfork(prepare, parent, child);

	registered = !code;
	return code ? rig_error_set(code, "cannot register the fork handler of the word array") : 0;
}

static int map_words(void)
{
	int fd = make_memory(), code;
	void *at;

	if (fd < 0)
		return fd;
	at = map_array(fd);
	if (at == MAP_FAILED) {
		code = -errno;
		(void)close(fd);
		return code;
	}
	words_fd = fd;
	__atomic_store_n(&words, at, __ATOMIC_RELEASE);
	return 0;
}

/* Forks are minded before the array is there: who sees it does so without the lock, and keeps it for good. */
static int make_words(void)
{
	int code = register_handlers();

	if (code)
		return code;
	code = map_words();
	return code ? rig_error_set(code, "cannot make the word array of %zu bytes: %s", WORD_BYTES,
	                      strerror(-code))
	            : 0;
}

rig_atomic_u64 *rig_words(void)
{
	rig_atomic_u64 *at = __atomic_load_n(&words, __ATOMIC_ACQUIRE);

	if (at)
		return at;
	(void)pthread_mutex_lock(&making);
	if (!words)
		(void)make_words();
	at = words;
	unlock_making();
	return at;
}

int rig_words_fd(void)
{
	int fd;

	if (!rig_words())
		return -1;
	(void)pthread_mutex_lock(&making);
	fd = words_fd;
	unlock_making();
	return fd;
}
