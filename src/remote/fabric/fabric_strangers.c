/* SPDX-License-Identifier: MIT */
/*
 * Sockets of the tcp provider of libfabric 1.17, found by their addresses since it does not tell them.
 *
 * Strangers: it accepts whoever connects, waits for their request, and forgets those that never send one
 * when its listener is closed: their descriptors would stay open for ever. Ending their connections before
 * makes it see them off itself. And none of its sockets closes at an exec.
 */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fabric_private.h"

struct address {
	struct sockaddr_storage at;
	socklen_t bytes;
};

static bool same(const struct address *a, const struct address *b)
{
	return a->bytes == b->bytes && !memcmp(&a->at, &b->at, a->bytes);
}

/* The socket's two sides; false: it is none that is connected. */
static bool sides_of(int fd, struct address *local, struct address *remote)
{
	local->bytes = remote->bytes = sizeof(local->at);
	return !getsockname(fd, (struct sockaddr *)&local->at, &local->bytes) &&
	       !getpeername(fd, (struct sockaddr *)&remote->at, &remote->bytes);
}

static struct address name_of(struct fid *fid)
{
	struct address address = {.bytes = 0};
	size_t bytes = sizeof(address.at);

	if (!fi_getname(fid, &address.at, &bytes) && bytes <= sizeof(address.at))
		address.bytes = (socklen_t)bytes;
	return address;
}

static struct address peer_of(const struct rig_conn *conn)
{
	struct address address = {.bytes = 0};
	size_t bytes = sizeof(address.at);

	if (conn->ep && !fi_getpeer(conn->ep, &address.at, &bytes) && bytes <= sizeof(address.at))
		address.bytes = (socklen_t)bytes;
	return address;
}

/* Calls `use` with each connected socket of the process; the sum of what it answers. */
static unsigned each_socket(
        struct rig_conn *conn, unsigned (*use)(struct rig_conn *conn, int fd, const struct address *local,
                                       const struct address *remote))
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		struct address local, remote;
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && sides_of(fd, &local, &remote))
			n += use(conn, fd, &local, &remote);
	}
	if (dir)
		(void)closedir(dir);
	return n;
}

static unsigned end_stranger(
        struct rig_conn *conn, int fd, const struct address *local, const struct address *remote)
{
	struct address listener = name_of(&conn->listener->fid), peer = peer_of(conn);

	return same(local, &listener) && !same(remote, &peer) && !shutdown(fd, SHUT_RDWR);
}

unsigned rig_conn_end_strangers(struct rig_conn *conn)
{
	return each_socket(conn, end_stranger);
}

static unsigned close_at_exec(
        struct rig_conn *conn, int fd, const struct address *local, const struct address *remote)
{
	struct address mine = name_of(&conn->ep->fid), peer = peer_of(conn);

	return same(local, &mine) && same(remote, &peer) && !fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void rig_conn_keep_from_programs(struct rig_conn *conn)
{
	(void)each_socket(conn, close_at_exec);
}
