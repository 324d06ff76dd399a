/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_USER_JSON_H
#define RIG_VFIO_USER_JSON_H

/*
 * The capabilities of the version message, as JSON ("VFIO_USER_VERSION"). The one user of json-c here. Any
 * thread.
 */

#include <stddef.h>

struct rig_vuser_caps;

/* Reads the NUL-terminated text into *caps, which holds the defaults: what the text does not name stays.
 * Unknown names are passed over. -EPROTO with *why: not JSON, a wrong type, or a value that nothing can work
 * with. */
int rig_vuser_json_read(const char *text, struct rig_vuser_caps *caps, const char **why);

/* Writes our own as text with its NUL. Answers its bytes, NUL included, or -ENOSPC. */
int rig_vuser_json_write(const struct rig_vuser_caps *caps, char *text, size_t room);

#endif
