/* SPDX-License-Identifier: MIT */
/* Messages over a stream socket: whole ones in, whole ones out, never blocking. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vfu_priv.h"

/* What a client may send while a DMA message waits for its answer: more than QEMU's whole outgoing queue. */
#define MAX_QUEUED       1024
#define MAX_QUEUED_BYTES (8u << 20)

void vfu_conn_init(struct vfu_conn *conn)
{
	*conn = (struct vfu_conn){.fd = -1};
	conn->last = &conn->first;
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void vfu_msg_free(struct vfu_msg *msg)
{
	if (!msg)
		return;
	close_all(msg->fds, msg->fd_count);
	free(msg);
}

void vfu_conn_fini(struct vfu_conn *conn)
{
	struct vfu_msg *msg;
	struct vfu_out *out;

	while ((msg = vfu_socket_pop(conn)))
		vfu_msg_free(msg);
	while ((out = conn->out)) {
		conn->out = out->next;
		free(out);
	}
	free(conn->rx);
	close_all(conn->fds, conn->fd_count);
	if (conn->fd >= 0)
		close(conn->fd);
	vfu_conn_init(conn);
}

int vfu_socket_push(struct vfu_conn *conn, struct vfu_msg *msg)
{
	if (conn->queued >= MAX_QUEUED || conn->queued_bytes + msg->len > MAX_QUEUED_BYTES)
		return -ENOBUFS;
	conn->queued++;
	conn->queued_bytes += msg->len;
	msg->next = NULL;
	*conn->last = msg;
	conn->last = &msg->next;
	return 0;
}

struct vfu_msg *vfu_socket_pop(struct vfu_conn *conn)
{
	struct vfu_msg *msg = conn->first;

	if (!msg)
		return NULL;
	conn->first = msg->next;
	if (!conn->first)
		conn->last = &conn->first;
	conn->queued--;
	conn->queued_bytes -= msg->len;
	return msg;
}

/* Descriptors of one control message join those of the message in work; what is too many is closed. */
static void keep_fds(struct vfu_conn *conn, struct cmsghdr *control)
{
	size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < count; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(control) + i * sizeof(fd), sizeof(fd));
		if (conn->fd_count < VFU_MAX_MSG_FDS) {
			conn->fds[conn->fd_count++] = fd;
		} else {
			conn->fds_lost = true;
			close(fd);
		}
	}
}

/* One recvmsg of at most len bytes. Positive: bytes; 0: would block; -ENOTCONN: end of the stream. */
static ssize_t receive(struct vfu_conn *conn, void *buf, size_t len)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * VFU_MAX_MSG_FDS)];
	} control;
	struct iovec part = {.iov_base = buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part,
	        .msg_iovlen = 1,
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};
	ssize_t got;

	do
		got = recvmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			keep_fds(conn, c);
	if (msg.msg_flags & MSG_CTRUNC)
		conn->fds_lost = true;
	return got ? got : -ENOTCONN;
}

/* The header is whole: makes room for the message. */
static int begin(struct vfu_conn *conn, char why[VFU_WHY])
{
	struct vfu_wire_header header;

	if (vfu_parse_header(conn->head, sizeof(conn->head), &header)) {
		snprintf(why, VFU_WHY, "a message of %u bytes with flags 0x%x cannot be", header.size,
		        header.flags);
		return -EPROTO;
	}
	conn->rx = malloc(sizeof(*conn->rx) + header.size - sizeof(header));
	if (!conn->rx) {
		snprintf(why, VFU_WHY, "no memory for a message of %u bytes", header.size);
		return -ENOMEM;
	}
	*conn->rx = (struct vfu_msg){.header = header, .len = header.size - sizeof(header)};
	return 0;
}

static struct vfu_msg *finish(struct vfu_conn *conn)
{
	struct vfu_msg *msg = conn->rx;

	memcpy(msg->fds, conn->fds, sizeof(msg->fds));
	msg->fd_count = conn->fd_count;
	msg->fds_lost = conn->fds_lost;
	conn->rx = NULL;
	conn->got = 0;
	conn->fd_count = 0;
	conn->fds_lost = false;
	return msg;
}

static int ended(const struct vfu_conn *conn, int rc, char why[VFU_WHY])
{
	if (rc == -ENOTCONN || rc == -ECONNRESET)
		snprintf(why, VFU_WHY, "the client went%s", conn->got ? " in the middle of a message" : "");
	else
		snprintf(why, VFU_WHY, "receiving failed: %s", strerror(-rc));
	return rc;
}

int vfu_socket_recv(struct vfu_conn *conn, struct vfu_msg **out, char why[VFU_WHY])
{
	const size_t head = sizeof(conn->head);

	for (;;) {
		ssize_t n;
		int rc;

		if (conn->rx && conn->got == head + conn->rx->len) {
			*out = finish(conn);
			return 1;
		}
		if (conn->rx)
			n = receive(
			        conn, conn->rx->body + conn->got - head, head + conn->rx->len - conn->got);
		else
			n = receive(conn, conn->head + conn->got, head - conn->got);
		if (n <= 0)
			return n ? ended(conn, (int)n, why) : 0;
		conn->got += (size_t)n;
		if (!conn->rx && conn->got == head && (rc = begin(conn, why)))
			return rc;
	}
}

/* 0 or more bytes that went out; negative errno. */
static ssize_t transmit(struct vfu_conn *conn, struct iovec *parts, size_t count, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t sent;

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	do
		sent = sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	return sent;
}

/* Keeps the bytes of parts after the first `done` for later. */
static int keep_rest(struct vfu_conn *conn, const struct iovec *parts, size_t count, size_t done, int fd)
{
	struct vfu_out *out, **tail = &conn->out;
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += parts[i].iov_len;
	if (done == total)
		return 0;
	out = malloc(sizeof(*out) + total);
	if (!out)
		return -ENOMEM;
	*out = (struct vfu_out){.len = total, .done = done, .fd = done ? -1 : fd};
	total = 0;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].iov_len)
			memcpy(out->bytes + total, parts[i].iov_base, parts[i].iov_len);
		total += parts[i].iov_len;
	}
	while (*tail)
		tail = &(*tail)->next;
	*tail = out;
	conn->out_bytes += out->len;
	return 0;
}

int vfu_socket_send(struct vfu_conn *conn, const struct vfu_wire_header *header, const void *fixed,
        size_t fixed_len, const void *data, size_t len, int fd)
{
	struct iovec parts[3] = {
	        {.iov_base = (void *)(uintptr_t)header, .iov_len = sizeof(*header)},
	        {.iov_base = (void *)(uintptr_t)fixed, .iov_len = fixed_len},
	        {.iov_base = (void *)(uintptr_t)data, .iov_len = len},
	};
	ssize_t sent = 0;

	if (!conn->out)
		sent = transmit(conn, parts, 3, fd);
	if (sent < 0)
		return (int)sent;
	return keep_rest(conn, parts, 3, (size_t)sent, fd);
}

/* Sends what waits. 1: something went out, 0: nothing did. */
int vfu_socket_flush(struct vfu_conn *conn)
{
	int did = 0;

	while (conn->out) {
		struct vfu_out *out = conn->out;
		struct iovec part = {.iov_base = out->bytes + out->done, .iov_len = out->len - out->done};
		ssize_t sent = transmit(conn, &part, 1, out->done ? -1 : out->fd);

		if (sent < 0)
			return (int)sent;
		if (sent == 0)
			return did;
		did = 1;
		out->done += (size_t)sent;
		if (out->done < out->len)
			continue;
		conn->out = out->next;
		conn->out_bytes -= out->len;
		free(out);
	}
	return did;
}
