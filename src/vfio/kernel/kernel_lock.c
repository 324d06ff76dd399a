/* SPDX-License-Identifier: MIT */
#include "kernel_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

enum { HOLDER_BYTES = 96 };

static int open_in(const char *dir, const char *bdf)
{
	char path[PATH_MAX];

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -1;
	if (snprintf(path, sizeof(path), "%s/%s", dir, bdf) >= (int)sizeof(path))
		return -1;
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
}

static int open_file(const char *dir, const char *bdf)
{
	const char *own = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX];

	if (dir)
		return open_in(dir, bdf);
	if (geteuid() == 0)
		return open_in("/run/rig-vfio", bdf);
	if (!own || *own != '/' || snprintf(path, sizeof(path), "%s/rig-vfio", own) >= (int)sizeof(path))
		return -1;
	return open_in(path, bdf);
}

/* "4711 (rigctl)". */
static void sign(int fd)
{
	char text[HOLDER_BYTES];
	int n = snprintf(text, sizeof(text), "%ld (%s)\n", (long)getpid(), program_invocation_short_name);
	ssize_t written;

	if (ftruncate(fd, 0) < 0 || n < 0)
		return;
	written = pwrite(fd, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, 0);
	(void)written; /* a lock without a name still locks */
}

static int refuse(int fd, const char *bdf)
{
	char text[HOLDER_BYTES];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	/* Another user's words: only what prints. */
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	close(fd);
	if (strtol(text, NULL, 10) == (long)getpid())
		return (void)rig_vfio_fail(EBUSY,
		               "use the device that is open, or close it and put all that is left of it",
		               "%s: taken by this process already", bdf),
		       -EALREADY;
	return rig_vfio_fail(EBUSY, NULL, "%s: held by process %s", bdf, *text ? text : "without a name");
}

int rig_klock_take(const char *dir, const char *bdf, int *fd)
{
	int at = open_file(dir, bdf);

	*fd = -1;
	if (at < 0)
		return 0;
	if (flock(at, LOCK_EX | LOCK_NB) < 0)
		return refuse(at, bdf);
	sign(at);
	*fd = at;
	return 0;
}

/* The file stays: removing it would race with who has just opened it. */
void rig_klock_drop(int fd)
{
	int err;

	if (fd < 0)
		return;
	err = ftruncate(fd, 0);
	(void)err;
	/* Closing alone leaves it to the copies of children that have not come to close theirs. */
	(void)flock(fd, LOCK_UN);
	close(fd);
}
