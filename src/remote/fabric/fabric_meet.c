/* SPDX-License-Identifier: MIT */
/* Providers without connections (shm): each side names its endpoint, and greets the other with the token. */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric_private.h"

static int make_av(struct rig_conn *conn)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .count = 1};
	int code = fi_av_open(conn->fabric->domain, &attr, &conn->av, NULL);

	return code ? rig_fabric_error(conn->fabric, code, "cannot open an address table") : 0;
}

static int make_endpoint(struct rig_conn *conn)
{
	/* The provider handles signals to clean up after a crash; here nothing is left to clean
	   (forget_name). */
	struct rig_fabric_signals *saved = rig_fabric_signals_save();
	int code = fi_endpoint(conn->fabric->domain, conn->fabric->info, &conn->ep, NULL);

	rig_fabric_signals_restore(saved);
	if (!code)
		code = fi_ep_bind(conn->ep, &conn->av->fid, 0);
	if (!code)
		code = fi_ep_bind(conn->ep, &conn->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!code)
		code = fi_enable(conn->ep);
	if (!code)
		code = (int)fi_recv(conn->ep, conn->greeting, sizeof(conn->greeting), NULL, FI_ADDR_UNSPEC,
		        conn->greeting);
	return code ? rig_fabric_error(conn->fabric, code, "cannot make an endpoint") : 0;
}

int rig_conn_meet_listen(struct rig_conn *conn, struct rig_conn_address *mine)
{
	size_t bytes = sizeof(mine->address);
	int fd, code = make_av(conn);

	if (!code)
		code = make_endpoint(conn);
	if (code)
		return code;
	code = fi_getname(&conn->ep->fid, mine->address, &bytes);
	if (code)
		return rig_fabric_error(conn->fabric, code, "cannot name an endpoint");
	mine->bytes = (uint32_t)bytes;
	code = rig_bell_make(&conn->bell, &fd);
	if (code)
		return code;
	mine->bell_pid = (uint64_t)getpid();
	mine->bell_fd = (uint64_t)fd;
	return 0;
}

/* A text with its end within the bytes. */
static bool is_address(const struct rig_conn_address *peer)
{
	return peer->bytes > 0 && peer->bytes <= sizeof(peer->address) && peer->address[0] &&
	       memchr(peer->address, 0, peer->bytes);
}

static int know_peer(struct rig_conn *conn, const struct rig_conn_address *peer)
{
	int code;

	if (!is_address(peer))
		return rig_error_set(-EPROTO, "the other side names no address");
	code = fi_av_insert(conn->av, peer->address, 1, &conn->peer, 0, NULL);
	if (code != 1)
		return rig_fabric_error(conn->fabric, code < 0 ? code : -EIO, "cannot reach the other side");
	return rig_bell_open(peer->bell_pid, peer->bell_fd, &conn->peer_bell);
}

int rig_conn_meet_dial(
        struct rig_conn *conn, const struct rig_conn_address *peer, struct rig_conn_address *mine)
{
	int code = rig_conn_meet_listen(conn, mine);

	return code ? code : know_peer(conn, peer);
}

/* Both sides have it mapped: without its name it is gone with the processes, however they end. */
static void forget_name(struct rig_conn *conn)
{
	char name[RIG_FABRIC_ADDRESS] = "";
	size_t bytes = sizeof(name) - 1;
	const char *at;

	if (fi_getname(&conn->ep->fid, name, &bytes))
		return;
	at = strstr(name, "://");
	(void)shm_unlink(at ? at + 3 : name);
}

/* 1: the greeting is there and right, 0: not yet. */
static int look_for_greeting(struct rig_conn *conn)
{
	struct fi_cq_data_entry entry;
	ssize_t n = fi_cq_read(conn->cq, &entry, 1);

	if (n == -FI_EAGAIN)
		return 0;
	if (n != 1)
		return rig_fabric_error(conn->fabric, n < 0 ? (int)n : -EIO, "waiting for the other side");
	if (entry.op_context != conn->greeting || entry.len != sizeof(conn->greeting) ||
	        !rig_conn_same_token(conn->greeting, conn->token))
		return rig_error_set(-EPROTO, "who came to the endpoint does not have the token");
	return 1;
}

static int greet(struct rig_conn *conn)
{
	ssize_t code = fi_inject(conn->ep, conn->peer_token, sizeof(conn->peer_token), conn->peer);

	if (code == -FI_EAGAIN)
		return 0;
	return code ? rig_fabric_error(conn->fabric, (int)code, "cannot greet the other side") : 1;
}

static int meet(struct rig_conn *conn, const struct rig_deadline *deadline)
{
	int went = 0, came = 0;

	while (went < 1 || came < 1) {
		if (!went)
			went = greet(conn);
		if (!came)
			came = look_for_greeting(conn);
		if (went < 0 || came < 0)
			return went < 0 ? went : came;
		if ((!went || !came) && rig_deadline_passed(deadline))
			return rig_error_set(-ETIMEDOUT, "the other side did not come within its time");
		if (!went || !came)
			rig_deadline_sleep(deadline, 100 * RIG_NS_PER_US);
	}
	return 0;
}

int rig_conn_meet_finish(
        struct rig_conn *conn, const struct rig_conn_address *peer, const struct rig_deadline *deadline)
{
	int code = peer ? know_peer(conn, peer) : 0;

	if (!code)
		code = meet(conn, deadline);
	if (code)
		return code;
	forget_name(conn);
	conn->state = RIG_CONN_STANDS;
	return 0;
}
