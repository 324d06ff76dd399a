/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_SYS_H
#define RIG_KERNEL_SYS_H

/*
 * What the kernel transports need of the machine: the system calls by which the kernel's VFIO is reached, so
 * that tests can script a kernel; the root below which /sys and /proc are read, so that a captured tree is a
 * fixture; and a lock a function. Private to src/vfio and its tests. Any thread.
 */

#include <sys/types.h>

/* Members answer like the calls they are named after: -1 and errno. */
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
	const char *lock_dir; /* where locks are; NULL: as this user may (kernel_lock.c) */
};

/* This machine's. */
extern const struct rig_kenv rig_kenv;

/* -- kernel_lock.c -- */

/*
 * One lock a function, on this machine, that names who holds it: a file locked by flock(2), so that the
 * end of a process ends it.
 *
 * In /run/rig-vfio for root, in $XDG_RUNTIME_DIR/rig-vfio for others: what the kernel refuses anyway is
 * refused here with a name. Where neither can be had there is no lock, and *fd is -1.
 */

/* dir NULL: as above. -EBUSY: held, and rig_vfio_fail's text names the holder. -EALREADY: by this process,
 * and the text is of -EBUSY. */
int rig_klock_take(const char *dir, const char *bdf, int *fd);
/* -1 is allowed. */
void rig_klock_drop(int fd);

#endif
