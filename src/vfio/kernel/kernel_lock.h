/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_LOCK_H
#define RIG_KERNEL_LOCK_H

/*
 * One lock a function, on this machine, that names who holds it: a file locked by flock(2), so that the
 * end of a process ends it. Private to src/vfio. Any thread.
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
