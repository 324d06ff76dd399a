/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_USER_SOCK_H
#define RIG_VFIO_USER_SOCK_H

/*
 * Bytes and descriptors over a UNIX stream socket. Private to the vfio-user transport. One thread receives;
 * senders exclude each other.
 */

#include <stddef.h>
#include <sys/uio.h>

struct rig_deadline;

/* The most descriptors taken in one message; more than the protocol ever sends us. */
enum { RIG_VUSER_FDS_IN = 8 };

struct rig_vuser_fds {
	int fd[RIG_VUSER_FDS_IN]; /* close-on-exec, the holder's to close */
	unsigned count;
};

void rig_vuser_fds_close(struct rig_vuser_fds *fds);

/* Sends all of iov (which it changes) with nfds descriptors at its first byte. Never a signal. -ETIMEDOUT, or
 * what sendmsg(2) said; either may have sent part of it. */
int rig_vuser_send(
        int fd, struct iovec *iov, int n, const int *fds, unsigned nfds, const struct rig_deadline *end);

/* Receives exactly len bytes, however they are cut, adding descriptors that come along to *fds. Blocks
 * without limit: shutdown(2) ends it. -ENODEV: the peer hung up before the first byte; -EPROTO: after it, or
 * with more descriptors than fit (all are kept for the caller to close). */
int rig_vuser_recv(int fd, void *buf, size_t len, struct rig_vuser_fds *fds);

#endif
