/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig_edge.h"

#define WORD_BYTES ((size_t)RIG_WORD_COUNT * sizeof(uint64_t))

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static rig_atomic_u64 *words;
static int words_fd = -1;

static void lock_making(void)
{
	(void)pthread_mutex_lock(&making);
}

static void unlock_making(void)
{
	(void)pthread_mutex_unlock(&making);
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

/* In the child: the same addresses hold a copy that neither the parent nor its devices write. */
static void make_private(void)
{
	void *copy;

	if (words) {
		copy = mmap(NULL, WORD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (copy != MAP_FAILED) {
			copy_written(copy, words_fd);
			(void)mremap(
			        copy, WORD_BYTES, WORD_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)words);
		}
		(void)close(words_fd);
		words_fd = -1;
	}
	unlock_making();
}

static int map_words(void)
{
	int fd = memfd_create("rig-words", MFD_CLOEXEC);
	void *at = MAP_FAILED;
	int code;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)WORD_BYTES))
		at = mmap(NULL, WORD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		code = -errno;
		(void)close(fd);
		return code;
	}
	__atomic_store_n(&words, at, __ATOMIC_RELEASE);
	words_fd = fd;
	return 0;
}

static int make_words(void)
{
	int code = map_words();

	if (code)
		return rig_error_set(
		        code, "cannot make the word array of %zu bytes: %s", WORD_BYTES, strerror(-code));
	code = -pthread_atfork(lock_making, unlock_making, make_private);
	if (code) {
		(void)munmap((void *)words, WORD_BYTES);
		(void)close(words_fd);
		__atomic_store_n(&words, NULL, __ATOMIC_RELAXED);
		words_fd = -1;
		return rig_error_set(code, "cannot register the fork handler of the word array");
	}
	return 0;
}

rig_atomic_u64 *rig_words(void)
{
	rig_atomic_u64 *at = __atomic_load_n(&words, __ATOMIC_ACQUIRE);

	if (at)
		return at;
	lock_making();
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
	lock_making();
	fd = words_fd;
	unlock_making();
	return fd;
}
