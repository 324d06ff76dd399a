/* SPDX-License-Identifier: MIT */
#include "vfio_user_sock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "pci.h"
#include "vfio_user.h"

/* The kernel's limit on descriptors in one message (SCM_MAX_FD). */
enum { FDS_OUT = 253 };

void rig_vuser_fds_close(struct rig_vuser_fds *fds)
{
	for (unsigned i = 0; i < fds->count; i++)
		close(fds->fd[i]);
	fds->count = 0;
}

/* Root may drive anybody's device process, and anybody root's. */
static int check_peer(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return rig_vfio_fail(errno, NULL, "asking who serves it");
	if (peer.uid != geteuid() && peer.uid != 0 && geteuid() != 0)
		return rig_vfio_fail(EACCES, "run it and this program as the same user",
		        "its device process is user %u's", (unsigned)peer.uid);
	return 0;
}

/* connect(2) to a server whose backlog is full waits without limit, unless sends have one. 0 or an errno. */
static int reach(int fd, const struct sockaddr_un *addr, unsigned ms)
{
	struct rig_deadline until = rig_deadline_in(NULL, ms * RIG_NS_PER_MS);

	do {
		uint64_t left = rig_deadline_left(&until);
		struct timeval limit = {.tv_sec = (time_t)(left / RIG_NS_PER_S),
		        .tv_usec = (suseconds_t)(left % RIG_NS_PER_S / RIG_NS_PER_US)};

		/* Without a microsecond left there is one: none would be no limit. */
		limit.tv_usec += limit.tv_sec == 0 && limit.tv_usec == 0;
		if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
			return errno;
		if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
			return 0;
	} while (errno == EINTR && !rig_deadline_passed(&until));
	return errno == EAGAIN || errno == EINTR ? ETIMEDOUT : errno;
}

/* -ETIMEDOUT: it listens, and took none of the clients before this one within ms. The caller owns *out. */
static int connect_to(const char *path, unsigned ms, int *out)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return rig_vfio_fail(ENAMETOOLONG, "use a shorter path", "the path has more than %zu bytes",
		        sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return rig_vfio_fail(errno, NULL, "socket");
	err = reach(fd, &addr, ms);
	if (err)
		err = rig_vfio_fail(err, "is the device process running, and this its socket?", "connecting");
	else
		err = check_peer(fd);
	if (err)
		close(fd);
	else
		*out = fd;
	return err;
}

static int wait_writable(int fd, const struct rig_deadline *end)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	uint64_t left = rig_deadline_left(end);
	struct timespec ts = {(time_t)(left / RIG_NS_PER_S), (long)(left % RIG_NS_PER_S)};
	int n = ppoll(&p, 1, left == RIG_CLOCK_NEVER ? NULL : &ts, NULL);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n == 0 && rig_deadline_passed(end) ? -ETIMEDOUT : 0;
}

static void advance(struct msghdr *msg, size_t sent)
{
	while (sent > 0) {
		size_t step = sent < msg->msg_iov->iov_len ? sent : msg->msg_iov->iov_len;

		msg->msg_iov->iov_base = (char *)msg->msg_iov->iov_base + step;
		msg->msg_iov->iov_len -= step;
		sent -= step;
		if (msg->msg_iov->iov_len == 0) {
			msg->msg_iov++;
			msg->msg_iovlen--;
		}
	}
	/* The kernel has taken the descriptors with the first byte. */
	msg->msg_control = NULL;
	msg->msg_controllen = 0;
}

static int send_all(int fd, struct msghdr *msg, size_t left, const struct rig_deadline *end)
{
	while (left > 0) {
		ssize_t n = sendmsg(fd, msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		int err = 0;

		if (n > 0) {
			left -= (size_t)n;
			advance(msg, (size_t)n);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			err = wait_writable(fd, end);
		} else if (errno != EINTR) {
			err = -errno;
		}
		if (err)
			return err;
	}
	return 0;
}

int rig_vuser_send(
        int fd, struct iovec *iov, int n, const int *fds, unsigned nfds, const struct rig_deadline *end)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDS_OUT * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	size_t left = 0;

	if (nfds > FDS_OUT)
		return -EINVAL;
	for (int i = 0; i < n; i++)
		left += iov[i].iov_len;
	if (nfds > 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	return send_all(fd, &msg, left, end);
}

/* Every descriptor the kernel has made is kept or closed; false if one had to be closed. */
static bool collect(struct msghdr *msg, struct rig_vuser_fds *fds)
{
	bool fit = true;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (fds->count < RIG_VUSER_FDS_IN) {
				fds->fd[fds->count++] = fd;
			} else {
				close(fd);
				fit = false;
			}
		}
	}
	return fit && !(msg->msg_flags & MSG_CTRUNC);
}

int rig_vuser_recv(int fd, void *buf, size_t len, struct rig_vuser_fds *fds)
{
	size_t got = 0;

	while (got < len) {
		union {
			struct cmsghdr align;
			char bytes[CMSG_SPACE(RIG_VUSER_FDS_IN * sizeof(int))];
		} control;
		struct iovec iov = {(char *)buf + got, len - got};
		struct msghdr msg = {.msg_iov = &iov,
		        .msg_iovlen = 1,
		        .msg_control = control.bytes,
		        .msg_controllen = sizeof(control.bytes)};
		ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ECONNRESET ? -ENODEV : -errno;
		if (n == 0)
			return got == 0 ? -ENODEV : -EPROTO;
		got += (size_t)n;
		if (!collect(&msg, fds))
			return -EPROTO;
	}
	return 0;
}

int rig_vuser_begin(void *arg, struct rig_pci_taking *options)
{
	const struct rig_vuser_want *want = arg;
	unsigned ms = want->deadline_ms ? want->deadline_ms : RIG_VUSER_DEADLINE_MS;
	int fd = -1, err = connect_to(want->path, ms, &fd);

	if (err)
		return err;
	options->ops = &rig_vuser_ops;
	return rig_vuser_new(fd, ms, &options->transport);
}
