/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fabric_bell.h"
#include "rig_barrier.h"
#include "rig_edge.h"

enum { BELL_BYTES = 4096, BELL_MARK = 0x6c6c6562 };
#define BELL_NAME   "rig-bell"
#define BELL_CALLED "/memfd:" BELL_NAME " (deleted)" /* by the kernel */

/* What the futex is: 0 nobody sleeps, 1 somebody does or is about to. */
struct page {
	uint32_t mark;
	uint32_t sleeper;
};

struct rig_bell {
	struct page *page;
	int fd;
};

static int map_page(struct rig_bell *bell)
{
	void *at = mmap(NULL, BELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, bell->fd, 0);

	if (at == MAP_FAILED)
		return rig_error_set(-errno, "cannot map a bell: %s", strerror(errno));
	(void)madvise(at, BELL_BYTES, MADV_DONTFORK);
	bell->page = at;
	return 0;
}

static int new_bell(int fd, struct rig_bell **bell)
{
	struct rig_bell *made = calloc(1, sizeof(*made));
	int code = made ? 0 : rig_error_set(-ENOMEM, "no memory for a bell");

	if (made) {
		made->fd = fd;
		code = map_page(made);
	}
	if (code) {
		free(made);
		(void)close(fd);
		return code;
	}
	*bell = made;
	return 0;
}

int rig_bell_make(struct rig_bell **bell, int *fd)
{
	int code;

	*fd = memfd_create(BELL_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return rig_error_set(-errno, "cannot make a bell: %s", strerror(errno));
	/* Nobody can shrink it under who has it mapped. */
	if (ftruncate(*fd, BELL_BYTES) || fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)) {
		code = rig_error_set(-errno, "cannot size a bell: %s", strerror(errno));
		(void)close(*fd);
		return code;
	}
	code = new_bell(*fd, bell);
	if (!code)
		__atomic_store_n(&(*bell)->page->mark, BELL_MARK, __ATOMIC_RELEASE);
	return code;
}

/* The file is what another process said: it must be of a bell's kind and size and not shrink under us. */
static bool is_bell(int fd)
{
	struct stat stat;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstat(fd, &stat) && stat.st_size == BELL_BYTES;
}

/* What a descriptor that was opened for its path alone is called, and how to open it in earnest. */
static bool is_called_bell(int fd, char link[64])
{
	char name[sizeof(BELL_CALLED)];

	(void)snprintf(link, 64, "/proc/self/fd/%d", fd);
	return readlink(link, name, sizeof(name)) == sizeof(name) - 1 &&
	       !memcmp(name, BELL_CALLED, sizeof(name) - 1);
}

/* Opening alone may do something, to a device or a pipe of that process: so the path first, which does
   nothing, and what has a bell's name then. */
static int open_bell(const char *path)
{
	char link[64];
	int fd, at = open(path, O_PATH | O_CLOEXEC);

	if (at < 0)
		return rig_error_set(-errno, "cannot open the bell %s: %s", path, strerror(errno));
	if (!is_called_bell(at, link))
		fd = rig_error_set(-ESTALE, "%s is no bell", path);
	else if ((fd = open(link, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0)
		fd = rig_error_set(-errno, "cannot open the bell %s: %s", path, strerror(errno));
	(void)close(at);
	return fd;
}

int rig_bell_open(uint64_t pid, uint64_t number, struct rig_bell **bell)
{
	char path[64];
	int fd, code;

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu64 "/fd/%" PRIu64, pid, number);
	fd = open_bell(path);
	if (fd < 0)
		return fd;
	if (!is_bell(fd)) {
		(void)close(fd);
		return rig_error_set(-ESTALE, "%s is no bell", path);
	}
	code = new_bell(fd, bell);
	if (!code && __atomic_load_n(&(*bell)->page->mark, __ATOMIC_ACQUIRE) != BELL_MARK) {
		rig_bell_close(*bell);
		code = rig_error_set(-ESTALE, "%s is no bell", path);
	}
	return code;
}

void rig_bell_close(struct rig_bell *bell)
{
	if (!bell)
		return;
	(void)munmap(bell->page, BELL_BYTES);
	(void)close(bell->fd);
	free(bell);
}

void rig_bell_will_sleep(struct rig_bell *bell)
{
	/* Before the caller's last look, and the ringer's write before its load: one of the two sees the
	   other. */
	__atomic_store_n(&bell->page->sleeper, 1, __ATOMIC_SEQ_CST);
	rig_full();
}

void rig_bell_cancel(struct rig_bell *bell)
{
	__atomic_store_n(&bell->page->sleeper, 0, __ATOMIC_RELAXED);
}

void rig_bell_sleep(struct rig_bell *bell, uint64_t ns)
{
	struct timespec time = {(time_t)(ns / RIG_NS_PER_S), (long)(ns % RIG_NS_PER_S)};

	/* The answers do not matter: who sleeps looks again whatever ended it. */
	(void)syscall(SYS_futex, &bell->page->sleeper, FUTEX_WAIT, 1, ns == RIG_CLOCK_NEVER ? NULL : &time,
	        NULL, 0);
	rig_bell_cancel(bell);
}

void rig_bell_ring(struct rig_bell *bell)
{
	if (!bell)
		return;
	rig_full();
	if (__atomic_load_n(&bell->page->sleeper, __ATOMIC_RELAXED) &&
	        __atomic_exchange_n(&bell->page->sleeper, 0, __ATOMIC_SEQ_CST))
		(void)syscall(SYS_futex, &bell->page->sleeper, FUTEX_WAKE, 1, NULL, NULL, 0);
}
