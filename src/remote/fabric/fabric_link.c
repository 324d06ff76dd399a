/* SPDX-License-Identifier: MIT */
/* Connections of providers that have them. The request carries the token; all before it is refused. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "fabric_private.h"

enum {
	LOOK_MS = 100, /* a wait for an event of the connection looks at its deadline so often, at least */
	ROUNDS_MOST = 256, /* for strangers who keep coming while a listener ends */
};

/* An event of a connection with what came with it. */
struct event {
	uint32_t kind;
	struct fid *fid;
	struct fi_info *info;
	int error; /* the event is a failure */
	size_t bytes;
	uint8_t data[RIG_FABRIC_ADDRESS];
};

bool rig_conn_same_token(const uint8_t *a, const uint8_t *b)
{
	uint8_t differ = 0;

	for (size_t i = 0; i < RIG_FABRIC_TOKEN; i++)
		differ |= (uint8_t)(a[i] ^ b[i]);
	return !differ;
}

/* 1: an event, 0: none within a while, or a negative errno. */
static int next_event(struct rig_conn *conn, struct event *event)
{
	_Alignas(struct fi_eq_cm_entry) uint8_t raw[sizeof(struct fi_eq_cm_entry) + RIG_FABRIC_ADDRESS];
	struct fi_eq_cm_entry entry;
	struct fi_eq_err_entry failure = {0};
	ssize_t n = fi_eq_sread(conn->eq, &event->kind, raw, sizeof(raw), LOOK_MS, 0);

	event->error = 0;
	if (n == -FI_EAGAIN || n == -FI_EINTR)
		return 0;
	if (n == -FI_EAVAIL && fi_eq_readerr(conn->eq, &failure, 0) > 0) {
		event->fid = failure.fid;
		event->error = failure.err ? failure.err : EIO;
		return 1;
	}
	if (n < (ssize_t)sizeof(entry))
		return rig_fabric_error(conn->fabric, n < 0 ? (int)n : -EIO, "waiting for a connection");
	memcpy(&entry, raw, sizeof(entry));
	event->fid = entry.fid;
	event->info = entry.info;
	event->bytes = (size_t)n - sizeof(entry);
	memcpy(event->data, raw + sizeof(entry), event->bytes);
	return 1;
}

static bool shows_token(const struct event *event, const uint8_t *token)
{
	return event->bytes >= RIG_FABRIC_TOKEN && rig_conn_same_token(event->data, token);
}

static int make_endpoint(struct rig_conn *conn, struct fi_info *info)
{
	int code = fi_endpoint(conn->fabric->domain, info, &conn->ep, NULL);

	if (!code)
		code = fi_ep_bind(conn->ep, &conn->eq->fid, 0);
	if (!code)
		code = fi_ep_bind(conn->ep, &conn->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!code)
		code = fi_enable(conn->ep);
	if (code)
		return rig_fabric_error(conn->fabric, code, "cannot make an endpoint");
	return rig_conn_post_receives(conn);
}

int rig_conn_link_listen(struct rig_conn *conn, struct rig_conn_address *mine)
{
	size_t bytes = sizeof(mine->address);
	int code = fi_passive_ep(conn->fabric->fabric, conn->fabric->info, &conn->listener, NULL);

	if (!code)
		code = fi_pep_bind(conn->listener, &conn->eq->fid, 0);
	if (!code)
		code = fi_listen(conn->listener);
	if (!code)
		code = fi_getname(&conn->listener->fid, mine->address, &bytes);
	if (code)
		return rig_fabric_error(conn->fabric, code, "cannot listen for a data connection");
	mine->bytes = (uint32_t)bytes;
	return 0;
}

bool rig_conn_is_socket_address(const struct rig_conn_address *peer)
{
	struct sockaddr head;

	if (peer->bytes < sizeof(head))
		return false;
	memcpy(&head, peer->address, sizeof(head));
	return (head.sa_family == AF_INET && peer->bytes == sizeof(struct sockaddr_in)) ||
	       (head.sa_family == AF_INET6 && peer->bytes == sizeof(struct sockaddr_in6));
}

static int connect_to(struct rig_conn *conn, struct fi_info *info, const struct rig_conn_address *peer)
{
	int code;

	info->dest_addr = malloc(peer->bytes);
	if (!info->dest_addr)
		return rig_error_set(-ENOMEM, "no memory for an address");
	memcpy(info->dest_addr, peer->address, peer->bytes);
	info->dest_addrlen = peer->bytes;
	code = make_endpoint(conn, info);
	if (code)
		return code;
	code = fi_connect(conn->ep, info->dest_addr, conn->peer_token, sizeof(conn->peer_token));
	return code ? rig_fabric_error(conn->fabric, code, "cannot connect") : 0;
}

int rig_conn_link_dial(
        struct rig_conn *conn, const struct rig_conn_address *peer, struct rig_conn_address *mine)
{
	struct fi_info *info;
	int code;

	(void)mine; /* its token is all of the answer */
	if (!rig_conn_is_socket_address(peer))
		return rig_error_set(-EPROTO, "the offer names no address");
	info = conn->fabric->calls->dupinfo(conn->fabric->info);
	if (!info)
		return rig_error_set(-ENOMEM, "no memory for a connection");
	code = connect_to(conn, info, peer);
	conn->fabric->calls->freeinfo(info);
	return code;
}

static int accept_request(struct rig_conn *conn, struct fi_info *info)
{
	int code = make_endpoint(conn, info);

	if (code)
		return code;
	code = fi_accept(conn->ep, conn->peer_token, sizeof(conn->peer_token));
	return code ? rig_fabric_error(conn->fabric, code, "cannot accept a data connection") : 0;
}

static int take_request(struct rig_conn *conn, const struct event *event, uint64_t *refused)
{
	int code = 0;

	if (!conn->ep && shows_token(event, conn->token)) {
		code = accept_request(conn, event->info);
	} else {
		(void)fi_reject(conn->listener, event->info->handle, NULL, 0);
		(*refused)++;
	}
	conn->fabric->calls->freeinfo(event->info);
	return code;
}

/* One event of a listener that is about to be closed. Whether there may be more. */
static bool refuse_next(struct rig_conn *conn)
{
	struct fi_eq_err_entry failure = {0};
	struct fi_eq_cm_entry entry;
	uint32_t kind;
	ssize_t n = fi_eq_read(conn->eq, &kind, &entry, sizeof(entry), 0);

	if (n == -FI_EAVAIL)
		return fi_eq_readerr(conn->eq, &failure, 0) > 0;
	if (n < (ssize_t)sizeof(entry))
		return false;
	if (kind == FI_CONNREQ) {
		(void)fi_reject(conn->listener, entry.info->handle, NULL, 0);
		conn->fabric->calls->freeinfo(entry.info);
	} else if (kind == FI_SHUTDOWN) {
		conn->state = RIG_CONN_BROKEN;
	}
	return true;
}

/* A look may take one more off the kernel's queue, which has no event before it says something: so it is
 * looked for strangers until the looks of a round have brought none. */
void rig_conn_stop_listening(struct rig_conn *conn)
{
	unsigned strangers, rounds = 0;

	if (!conn->listener)
		return;
	do {
		unsigned looks = strangers = rig_conn_end_strangers(conn);

		/* A look for each of them, which need not give an event, and for those that have sent a
		   request. */
		while (refuse_next(conn) || looks-- > 0)
			;
	} while (++rounds == 1 || (strangers && rounds < ROUNDS_MOST));
	(void)fi_close(&conn->listener->fid);
	conn->listener = NULL;
}

/* The side that listened has seen the dialler's token by then, and the dialler has yet to see the
   listener's. */
static int take_connected(struct rig_conn *conn, const struct event *event)
{
	if (!conn->listener && !shows_token(event, conn->token))
		return rig_error_set(-EPROTO, "who accepted the data connection does not have the token");
	conn->state = RIG_CONN_STANDS;
	rig_conn_stop_listening(conn);
	return 0;
}

static int take_event(struct rig_conn *conn, const struct event *event, uint64_t *refused)
{
	if (event->error) {
		/* A stranger's request that came to nothing is none of ours. */
		if (!conn->ep || event->fid != &conn->ep->fid)
			return 0;
		return rig_fabric_error(conn->fabric, -event->error, "the data connection was not made");
	}
	if (event->kind == FI_CONNREQ)
		return take_request(conn, event, refused);
	if (event->kind == FI_CONNECTED)
		return take_connected(conn, event);
	if (event->kind == FI_SHUTDOWN)
		return rig_error_set(-ECONNREFUSED, "the data connection was closed by the other side");
	return 0;
}

int rig_conn_link_finish(struct rig_conn *conn, const struct rig_conn_address *peer,
        const struct rig_deadline *deadline, uint64_t *refused)
{
	(void)peer;
	while (conn->state != RIG_CONN_STANDS && conn->state != RIG_CONN_BROKEN) {
		struct event event;
		int code = next_event(conn, &event);

		if (code > 0)
			code = take_event(conn, &event, refused);
		if (code)
			return code;
		if (conn->state < RIG_CONN_STANDS && rig_deadline_passed(deadline))
			return rig_error_set(-ETIMEDOUT, "no data connection within its time");
	}
	rig_conn_keep_from_programs(conn);
	return 0;
}
