/* SPDX-License-Identifier: MIT */
/*
 * Files as buffers: an Io device (rig.h) whose memory is what files hold.
 *
 * Each file opened is a buffer of the whole file, as large as the file is then. rig_buffer_read,
 * rig_buffer_write and rig_buffer_copy reach its bytes in the calling thread; a copy to or from a board's
 * memory goes through the board's staging memory, one half read or written by the system while the other is
 * the board's. A borrow (rig_buffer_borrow) on a device that maps host memory is the file's pages: of a
 * file that may be written the shared ones, of another a private copy of those that are stored to, so that
 * nothing reaches the file.
 *
 * The device is never lost by what a file does: a call answers the system's errno, with bytes that are
 * unspecified from where it failed. A descriptor is held for each buffer until its last put. Who cuts a file
 * short meanwhile gets -EIO from calls, and stores and loads of a borrow's pages past the end raise SIGBUS.
 * Writes are in the file for every later reader of it when they return; on the disk after rig_file_sync.
 */
#ifndef RIG_FILE_H
#define RIG_FILE_H

#include "rig.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *opener, for rig_open_io, with one of that name, which must live until rig_open_io returned. Any
   number of such devices may be open, a name once. */
RIG_API void rig_file_opener(const char *name, struct rig_io_opener *opener);

/* A buffer of the file at `path`: with RIG_READ writes answer -EBADF. -EINVAL: no regular file, an empty
   one, or `device` is no file device; else the errno of the open. */
RIG_API int rig_file_buffer(
        struct rig_device *device, const char *path, enum rig_access access, struct rig_buffer **buffer);

/* The same of a new file of `bytes` zeroes. -EEXIST: never over what is there. On failure nothing is left. */
RIG_API int rig_file_create(
        struct rig_device *device, const char *path, uint64_t bytes, struct rig_buffer **buffer);

/* Returns once what was written by calls before is on the disk. What work wrote through a
   borrow is among it once the work was waited for and the borrow was put. */
RIG_API int rig_file_sync(struct rig_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
