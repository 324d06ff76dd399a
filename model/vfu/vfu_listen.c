/* SPDX-License-Identifier: MIT */
/* A path that clients connect to, one after the other. */
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfu_priv.h"

#define BACKLOG     4    /* who comes meanwhile is accepted and refused at the next poll */
#define SOCKET_MASK 0177 /* leaves mode 0600 */

/* Only this user (or root) can have put the folder's content there. */
static int check_folder(struct vfu_device *dev, const char *path)
{
	char copy[sizeof(dev->listen.address.sun_path)];
	const char *folder;
	struct stat st;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	if (stat(folder, &st)) {
		int rc = -errno;

		vfu_log(dev, VFU_LOG_ERROR, "%s: %s", folder, strerror(-rc));
		return rc;
	}
	if ((st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	vfu_log(dev, VFU_LOG_ERROR,
	        "%s: not private: it must belong to this user and be writable by nobody else", folder);
	return -EPERM;
}

/* Says who sits on the path. Connecting tells a live server from what a dead one left. */
static void explain(struct vfu_device *dev, const struct sockaddr_un *address)
{
	const char *path = address->sun_path;
	struct stat st;
	int fd, rc;

	if (lstat(path, &st) || !S_ISSOCK(st.st_mode)) {
		vfu_log(dev, VFU_LOG_ERROR, "%s: exists and is no socket", path);
		return;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? 0 : connect(fd, (const struct sockaddr *)address, sizeof(*address));
	if (rc && errno == ECONNREFUSED)
		vfu_log(dev, VFU_LOG_ERROR,
		        "%s: a socket that no server answers, left by one that died: remove it", path);
	else
		vfu_log(dev, VFU_LOG_ERROR, "%s: another server is listening there", path);
	if (fd >= 0)
		close(fd);
}

/* The mode must be right from the first moment, so it comes from the mask. */
static int bind_private(int fd, const struct sockaddr_un *address)
{
	mode_t before = umask(SOCKET_MASK);
	int rc = bind(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;

	umask(before);
	return rc;
}

static int take_path(struct vfu_device *dev, int fd, struct sockaddr_un *address)
{
	struct stat st;
	int rc = bind_private(fd, address);

	if (rc == -EADDRINUSE)
		explain(dev, address);
	else if (rc)
		vfu_log(dev, VFU_LOG_ERROR, "%s: %s", address->sun_path, strerror(-rc));
	if (rc)
		return rc;
	if (listen(fd, BACKLOG) || lstat(address->sun_path, &st)) {
		rc = -errno;
		unlink(address->sun_path);
		return rc;
	}
	dev->listen = (struct vfu_listen){.fd = fd, .address = *address, .dev = st.st_dev, .ino = st.st_ino};
	return 0;
}

int vfu_listen(struct vfu_device *dev, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	if (dev->listen.fd >= 0)
		return -EBUSY;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	rc = check_folder(dev, path);
	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = take_path(dev, fd, &address);
	if (rc)
		close(fd);
	return rc;
}

static bool may_connect(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

static void meet_client(struct vfu_device *dev, int fd)
{
	if (dev->conn.fd >= 0) {
		vfu_log(dev, VFU_LOG_WARN, "a second client was refused: one is being served");
		close(fd);
	} else if (!may_connect(fd)) {
		vfu_log(dev, VFU_LOG_WARN, "a client of another user was refused");
		close(fd);
	} else {
		vfu_start(dev, fd, true);
	}
}

/* The client is gone, or going, although its last messages may still be here. Who comes next was right to
 * come. */
static bool is_leaving(const struct vfu_device *dev)
{
	struct pollfd client = {.fd = dev->conn.fd, .events = POLLRDHUP};

	if (dev->conn.fd < 0)
		return false;
	return dev->conn.dead ||
	       (poll(&client, 1, 0) > 0 && (client.revents & (POLLRDHUP | POLLHUP | POLLERR)));
}

int vfu_listen_poll(struct vfu_device *dev)
{
	int did = 0;

	while (dev->listen.fd >= 0 && !is_leaving(dev)) {
		int fd = accept4(dev->listen.fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			break;
		meet_client(dev, fd);
		did = 1;
	}
	return did;
}

void vfu_listen_fini(struct vfu_device *dev)
{
	const struct vfu_listen *l = &dev->listen;
	struct stat st;

	if (l->fd < 0)
		return;
	if (!lstat(l->address.sun_path, &st) && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->address.sun_path);
	close(l->fd);
	dev->listen.fd = -1;
}
