/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_ERROR_H
#define RIG_VFIO_ERROR_H

/* The text behind rig_pci_error (pci.h): one a thread. For src/vfio, and for the driver where a step of its
 * own fails among these. */

enum { RIG_VFIO_ERROR_BYTES = 1024 };

/* Keeps "what: ERRNO (text); remedy" as the calling thread's text and answers the negative errno, for
 * `return rig_vfio_fail(...)`. err may have either sign; remedy may be NULL. */
int rig_vfio_fail(int err, const char *remedy, const char *what, ...) __attribute__((format(printf, 3, 4)));

/* Appends "; text" to the calling thread's text, for a second attempt that says what the first one lacked. */
void rig_vfio_also(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* Takes an earlier text of rig_pci_error's, copied, again: what was tried since is not what to tell. */
void rig_vfio_restore(const char *text);

#endif
