/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_USER_H
#define RIG_VFIO_USER_H

/*
 * The vfio-user transport: a device process at the other end of a UNIX socket.
 */

struct rig_pci_taking;
struct rig_vfio_ops;

/* For each message, where 0 is given. */
#define RIG_VUSER_DEADLINE_MS 5000u

extern const struct rig_vfio_ops rig_vuser_ops;

/* A transport for rig_vuser_ops over a connected stream socket, which it owns from the call on, also on
 * failure. deadline_ms is for each message. Sends nothing yet. -ENOMEM. */
int rig_vuser_new(int fd, unsigned deadline_ms, void **transport);

struct rig_vuser_want {
	const char *path; /* of a socket */
	unsigned deadline_ms;
};

/* For begin of struct rig_pci_taking, whose arg is a struct rig_vuser_want: connects to what listens at the
 * path. Refuses (-EACCES) a peer of another user, unless that or this one is root; -ETIMEDOUT: it takes
 * nobody. Else what connect(2) and its like answered. */
int rig_vuser_begin(void *want, struct rig_pci_taking *options);

#endif
