/* SPDX-License-Identifier: MIT */
/*
 * The tcp provider of libfabric 1.17 accepts whoever connects, waits for their request, and forgets those
 * that never send one when its listener is closed: their descriptors would stay open for ever. Ending their
 * connections before makes it see them off itself.
 */
#include <dirent.h>
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

static bool is_strangers(int fd, const struct address *listener, const struct address *peer)
{
	struct address local = {.bytes = sizeof(local.at)}, remote = {.bytes = sizeof(remote.at)};

	return !getsockname(fd, (struct sockaddr *)&local.at, &local.bytes) && same(&local, listener) &&
	       !getpeername(fd, (struct sockaddr *)&remote.at, &remote.bytes) &&
	       (!peer->bytes || !same(&remote, peer));
}

static struct address listener_of(const struct rig_conn *conn)
{
	struct address address = {.bytes = 0};
	size_t bytes = sizeof(address.at);

	if (!fi_getname(&conn->listener->fid, &address.at, &bytes) && bytes <= sizeof(address.at))
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

unsigned rig_conn_end_strangers(struct rig_conn *conn)
{
	struct address listener = listener_of(conn), peer = peer_of(conn);
	DIR *dir = listener.bytes ? opendir("/proc/self/fd") : NULL;
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && is_strangers(fd, &listener, &peer))
			n += !shutdown(fd, SHUT_RDWR);
	}
	if (dir)
		(void)closedir(dir);
	return n;
}
