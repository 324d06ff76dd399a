/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_SYS_H
#define RIG_KERNEL_SYS_H

/*
 * The system calls by which the kernel's VFIO is reached, so that tests can script a kernel, and the root
 * below which /sys and /proc are read, so that a captured tree is a fixture. Private to src/vfio and its
 * tests. Members answer like the calls they are named after: -1 and errno.
 */

#include <sys/types.h>

struct rig_ksys {
	int (*open)(const char *path, int flags); /* O_CLOEXEC is added */
	int (*close)(int fd);
	int (*dup)(int fd); /* close-on-exec */
	int (*ioctl)(int fd, unsigned long request, void *arg);
	ssize_t (*pread)(int fd, void *buf, size_t len, off_t off);
	ssize_t (*pwrite)(int fd, const void *buf, size_t len, off_t off);
};

struct rig_kenv {
	const struct rig_ksys *sys;
	const char *root;     /* in front of /sys and /proc; "" for this machine */
	const char *lock_dir; /* where locks are; NULL: as this user may (kernel_lock.h) */
};

/* This machine's. */
extern const struct rig_kenv rig_kenv;

#endif
