/* SPDX-License-Identifier: MIT */
#include "kernel_sys.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int do_open(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC);
}

static int do_dup(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static int do_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

static const struct rig_ksys calls = {
        .open = do_open, .close = close, .dup = do_dup, .ioctl = do_ioctl, .pread = pread, .pwrite = pwrite};

/* Nothing else is in this file, so that a test can link its own instead. */
const struct rig_kenv rig_kenv = {.sys = &calls, .root = ""};
