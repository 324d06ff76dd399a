/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_USER_H
#define RIG_VFIO_USER_H

/*
 * The vfio-user transport: a device process at the other end of a UNIX socket. Private to src/vfio.
 */

struct rig_vfio_ops;

extern const struct rig_vfio_ops rig_vuser_ops;

/* A transport for rig_vuser_ops over a connected stream socket, which it owns from the call on, also on
 * failure. deadline_ms is for each message. Sends nothing yet. -ENOMEM. */
int rig_vuser_new(int fd, unsigned deadline_ms, void **transport);

#endif
