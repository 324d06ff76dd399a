/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_ERROR_H
#define RIG_VFIO_ERROR_H

/* How failures are worded in src/vfio, and in the driver where a step of its own fails among these. */

#include "rig_edge.h"

enum { RIG_VFIO_ERROR_BYTES = 1024 };

/* Sets rig_error() to "what: ERRNO (text); remedy" and answers the negative errno, for
 * `return rig_vfio_fail(...)`. err may have either sign; remedy may be NULL. */
RIG_API int rig_vfio_fail(int err, const char *remedy, const char *what, ...)
        __attribute__((format(printf, 3, 4)));

#endif
