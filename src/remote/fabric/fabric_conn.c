/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "fabric_private.h"

enum {
	DEPTH_MOST = 64, /* operations open at once: enough to keep a provider busy between two looks */
	READ_MOST = 32,  /* events of one read */
};

static int open_cq(struct rig_conn *conn)
{
	struct fi_cq_attr attr = {
	        .size = 4 * conn->depth,
	        .format = FI_CQ_FORMAT_DATA,
	        .wait_obj = conn->fabric->connected ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	int code = fi_cq_open(conn->fabric->domain, &attr, &conn->cq, NULL);

	if (!code && conn->fabric->connected)
		code = fi_control(&conn->cq->fid, FI_GETWAIT, &conn->cq_fd);
	return code ? rig_fabric_error(conn->fabric, code, "cannot open a completion queue") : 0;
}

static int open_eq(struct rig_conn *conn)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};
	int code = fi_eq_open(conn->fabric->fabric, &attr, &conn->eq, NULL);

	if (!code)
		code = fi_control(&conn->eq->fid, FI_GETWAIT, &conn->eq_fd);
	return code ? rig_fabric_error(conn->fabric, code, "cannot open an event queue") : 0;
}

static int open_wake(struct rig_conn *conn)
{
	conn->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return conn->wake_fd < 0 ? rig_error_set(-errno, "cannot make an eventfd: %s", strerror(errno)) : 0;
}

int rig_conn_open_queues(struct rig_conn *conn)
{
	int code = open_cq(conn);

	if (code || !conn->fabric->connected)
		return code;
	code = open_eq(conn);
	return code ? code : open_wake(conn);
}

static int post_receive(struct rig_conn *conn)
{
	ssize_t code = fi_recv(conn->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, NULL);

	return code ? rig_fabric_error(conn->fabric, (int)code, "cannot post a receive") : 0;
}

int rig_conn_post_receives(struct rig_conn *conn)
{
	int code = 0;

	for (size_t i = 0; conn->fabric->note_receives && i < conn->depth && !code; i++)
		code = post_receive(conn);
	return code;
}

static int make_conn(struct rig_fabric *fabric, struct rig_conn **made)
{
	struct rig_conn *conn = calloc(1, sizeof(*conn));
	int code;

	if (!conn)
		return rig_error_set(-ENOMEM, "no memory for a connection");
	conn->fabric = fabric;
	conn->wake_fd = conn->cq_fd = conn->eq_fd = -1;
	conn->depth = fabric->info->tx_attr->size < DEPTH_MOST ? fabric->info->tx_attr->size : DEPTH_MOST;
	code = rig_conn_open_queues(conn);
	if (!code && getrandom(conn->token, sizeof(conn->token), 0) != sizeof(conn->token))
		code = rig_error_set(-EIO, "no random bytes for a token: %s", strerror(errno));
	if (code) {
		rig_conn_close(conn);
		return code;
	}
	*made = conn;
	return 0;
}

/* The same of a sealed one, which is made. */
static int wrap(struct rig_fabric *fabric, struct rig_sealed *sealed, struct rig_conn **made)
{
	struct rig_conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		rig_sealed_close(sealed);
		return rig_error_set(-ENOMEM, "no memory for a connection");
	}
	*conn = (struct rig_conn){.fabric = fabric, .sealed = sealed, .depth = DEPTH_MOST};
	*made = conn;
	return 0;
}

static int listen_sealed(struct rig_fabric *fabric, struct rig_conn_address *mine, struct rig_conn **made)
{
	struct rig_sealed *sealed;
	int code = rig_sealed_listen(fabric, mine, &sealed);

	return code ? code : wrap(fabric, sealed, made);
}

static int dial_sealed(struct rig_fabric *fabric, const struct rig_conn_address *peer,
        struct rig_conn_address *mine, struct rig_conn **made)
{
	struct rig_sealed *sealed;
	int code = rig_sealed_dial(fabric, peer, mine, &sealed);

	return code ? code : wrap(fabric, sealed, made);
}

int rig_conn_listen(struct rig_fabric *fabric, struct rig_conn_address *mine, struct rig_conn **made)
{
	if (fabric->sealed)
		return listen_sealed(fabric, mine, made);
	struct rig_conn *conn;
	int code = make_conn(fabric, &conn);

	if (code)
		return code;
	*mine = (struct rig_conn_address){0};
	memcpy(mine->token, conn->token, sizeof(mine->token));
	conn->state = RIG_CONN_LISTENING;
	code = fabric->connected ? rig_conn_link_listen(conn, mine) : rig_conn_meet_listen(conn, mine);
	if (code) {
		rig_conn_close(conn);
		return code;
	}
	*made = conn;
	return 0;
}

int rig_conn_dial(struct rig_fabric *fabric, const struct rig_conn_address *peer,
        struct rig_conn_address *mine, struct rig_conn **made)
{
	if (fabric->sealed)
		return dial_sealed(fabric, peer, mine, made);
	struct rig_conn *conn;
	int code = make_conn(fabric, &conn);

	if (code)
		return code;
	*mine = (struct rig_conn_address){0};
	memcpy(mine->token, conn->token, sizeof(mine->token));
	memcpy(conn->peer_token, peer->token, sizeof(conn->peer_token));
	conn->state = RIG_CONN_DIALLING;
	code = fabric->connected ? rig_conn_link_dial(conn, peer, mine)
	                         : rig_conn_meet_dial(conn, peer, mine);
	if (code) {
		rig_conn_close(conn);
		return code;
	}
	*made = conn;
	return 0;
}

int rig_conn_finish(struct rig_conn *conn, const struct rig_conn_address *peer,
        const struct rig_deadline *deadline, uint64_t *refused)
{
	if (conn->sealed)
		return rig_sealed_finish(conn->sealed, peer, deadline, refused);
	if ((conn->state == RIG_CONN_LISTENING) != (peer != NULL))
		return rig_error_set(-EINVAL, "an answer is for the side that offered, and for no other");
	if (peer)
		memcpy(conn->peer_token, peer->token, sizeof(conn->peer_token));
	if (!conn->fabric->connected)
		return rig_conn_meet_finish(conn, peer, deadline);
	return rig_conn_link_finish(conn, peer, deadline, refused);
}

static void close_fid(struct fid *fid)
{
	(void)fi_close(fid);
}

void rig_conn_cut(struct rig_conn *conn)
{
	if (conn->sealed)
		rig_sealed_cut(conn->sealed);
	if (conn->sealed || !conn->fabric->connected || !conn->ep)
		return;
	if (conn->state == RIG_CONN_STANDS)
		(void)fi_shutdown(conn->ep, 0);
	close_fid(&conn->ep->fid);
	conn->ep = NULL;
	conn->state = RIG_CONN_BROKEN;
}

void rig_conn_close(struct rig_conn *conn)
{
	if (!conn)
		return;
	if (conn->sealed) {
		rig_sealed_close(conn->sealed);
		free(conn);
		return;
	}
	rig_conn_stop_listening(conn);
	rig_conn_cut(conn);
	if (conn->ep)
		close_fid(&conn->ep->fid);
	if (conn->av)
		close_fid(&conn->av->fid);
	if (conn->cq)
		close_fid(&conn->cq->fid);
	if (conn->eq)
		close_fid(&conn->eq->fid);
	if (conn->wake_fd >= 0)
		(void)close(conn->wake_fd);
	rig_bell_close(conn->bell);
	rig_bell_close(conn->peer_bell);
	free(conn);
}

size_t rig_conn_depth(const struct rig_conn *conn)
{
	return conn->depth;
}

static int write_failed(struct rig_conn *conn, ssize_t code)
{
	if (code == -FI_EAGAIN)
		return -EAGAIN;
	conn->state = RIG_CONN_BROKEN;
	return rig_fabric_error(conn->fabric, (int)code, "a write failed");
}

int rig_conn_write(struct rig_conn *conn, const void *from, const struct rig_fabric_memory *source,
        size_t bytes, const struct rig_fabric_target *to, uint64_t offset, uint32_t note,
        struct rig_conn_op *op)
{
	uint64_t at = to->address + offset;
	ssize_t code;

	if (conn->sealed)
		return rig_sealed_write(conn->sealed, from, bytes, to, offset, note);
	/* A provider keeps what was injected until it goes, and tells nothing of it: so between as many
	   there is one that it tells of, of which there are no more than operations. */
	if (bytes <= conn->fabric->info->tx_attr->inject_size && conn->injected < conn->depth) {
		code = fi_inject_writedata(conn->ep, from, bytes, note, conn->peer, at, to->key);
		if (!code)
			conn->injected++;
		return code ? write_failed(conn, code) : 1;
	}
	code = fi_writedata(
	        conn->ep, from, bytes, source->local, note, conn->peer, at, to->key, &op->provider);
	if (!code)
		conn->injected = 0;
	return code ? write_failed(conn, code) : 0;
}

static int read_failure(struct rig_conn *conn, ssize_t code)
{
	struct fi_cq_err_entry entry = {0};

	conn->state = RIG_CONN_BROKEN;
	if (code == -FI_EAVAIL && fi_cq_readerr(conn->cq, &entry, 0) == 1)
		code = -(ssize_t)entry.err;
	return rig_fabric_error(conn->fabric, (int)code, "the data connection failed");
}

static int take(struct rig_conn *conn, const struct fi_cq_data_entry *entry, struct rig_conn_event *event)
{
	if (!(entry->flags & FI_REMOTE_CQ_DATA)) {
		*event = (struct rig_conn_event){.op = entry->op_context};
		return event->op ? 1 : 0;
	}
	*event = (struct rig_conn_event){.note = (uint32_t)entry->data};
	if (conn->fabric->note_receives) {
		int code = post_receive(conn);

		return code ? code : 1;
	}
	return 1;
}

int rig_conn_read(struct rig_conn *conn, struct rig_conn_event *events, size_t room)
{
	if (conn->sealed)
		return rig_sealed_read(conn->sealed, events, room);
	struct fi_cq_data_entry entries[READ_MOST];
	ssize_t n;
	int taken = 0;

	if (conn->has_kept) {
		conn->has_kept = false;
		events[0] = conn->kept;
		return 1;
	}
	n = fi_cq_read(conn->cq, entries, room < READ_MOST ? room : READ_MOST);
	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0)
		return read_failure(conn, n);
	for (ssize_t i = 0; i < n; i++) {
		int code = take(conn, &entries[i], &events[taken]);

		if (code < 0)
			return code;
		taken += code;
	}
	return taken;
}

bool rig_conn_gone(struct rig_conn *conn)
{
	if (conn->sealed)
		return rig_sealed_gone(conn->sealed);
	struct fi_eq_cm_entry entry;
	uint32_t event;
	ssize_t n;

	if (conn->state == RIG_CONN_BROKEN || !conn->eq)
		return conn->state == RIG_CONN_BROKEN;
	n = fi_eq_read(conn->eq, &event, &entry, sizeof(entry), 0);
	if (n == -FI_EAGAIN || (n > 0 && event != FI_SHUTDOWN))
		return false;
	conn->state = RIG_CONN_BROKEN;
	return true;
}

static void sleep_by_fd(struct rig_conn *conn, uint64_t ns)
{
	struct fid *fids[] = {&conn->cq->fid, &conn->eq->fid};
	struct pollfd fds[] = {
	        {conn->cq_fd, POLLIN, 0},
	        {conn->eq_fd, POLLIN, 0},
	        {conn->wake_fd, POLLIN, 0},
	};
	struct timespec time = {(time_t)(ns / RIG_NS_PER_S), (long)(ns % RIG_NS_PER_S)};
	uint64_t count;

	if (fi_trywait(conn->fabric->fabric, fids, sizeof(fids) / sizeof(*fids)))
		return;
	/* What it says is looked up by who sleeps, in any case. */
	(void)ppoll(fds, sizeof(fds) / sizeof(*fds), ns == RIG_CLOCK_NEVER ? NULL : &time, NULL);
	if (fds[2].revents & POLLIN && read(conn->wake_fd, &count, sizeof(count)) < 0)
		return;
}

/* A look on the way to sleep that keeps what it finds: a ring between the caller's last look and the bell's
   being
 * told was heard by nobody. */
static bool has_more(struct rig_conn *conn)
{
	int n = rig_conn_read(conn, &conn->kept, 1);

	conn->has_kept = n > 0;
	return n != 0;
}

static void sleep_by_bell(struct rig_conn *conn, uint64_t ns)
{
	rig_bell_will_sleep(conn->bell);
	if (!__atomic_load_n(&conn->woken, __ATOMIC_SEQ_CST) && !has_more(conn))
		rig_bell_sleep(conn->bell, ns);
	else
		rig_bell_cancel(conn->bell);
	__atomic_store_n(&conn->woken, false, __ATOMIC_SEQ_CST);
}

bool rig_conn_unsent(const struct rig_conn *conn)
{
	return conn->sealed && rig_sealed_unsent(conn->sealed);
}

void rig_conn_sleep(struct rig_conn *conn, uint64_t ns)
{
	if (conn->sealed)
		rig_sealed_sleep(conn->sealed, ns);
	else if (conn->fabric->connected)
		sleep_by_fd(conn, ns);
	else
		sleep_by_bell(conn, ns);
}

void rig_conn_wake(struct rig_conn *conn)
{
	uint64_t one = 1;

	if (conn->sealed) {
		rig_sealed_wake(conn->sealed);
	} else if (!conn->fabric->connected) {
		__atomic_store_n(&conn->woken, true, __ATOMIC_SEQ_CST);
		rig_bell_ring(conn->bell);
	} else if (write(conn->wake_fd, &one, sizeof(one)) < 0) {
		return; /* full: it is awake */
	}
}

bool rig_conn_by_bell(const struct rig_conn *conn)
{
	return conn->bell != NULL;
}

void rig_conn_ring(struct rig_conn *conn)
{
	rig_bell_ring(conn->peer_bell);
}
