/* SPDX-License-Identifier: MIT */
/* Sealed connections: sockets, and records in and out of them. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "fabric_private.h"
#include "sealed.h"

enum {
	BACKLOG = 16,
	CALLERS = 16,                                /* who connected and has not greeted */
	GREETING = RIG_SEALED_HEAD + RIG_SEALED_TAG, /* bytes */
	AHEAD = 16 << 10,                            /* read beyond the record that is due */
	RECORD_MOST = RIG_SEALED_HEAD + RIG_SEALED_MOST + RIG_SEALED_TAG,
	LOOK_MOST = 1 << 20, /* bytes of a look, with the link's lock */
	DIALS = 10,          /* of one who is not heard */
};

#define REDIAL_NS (20 * RIG_NS_PER_MS)

/* A connection to the listener whose greeting is not whole. */
struct caller {
	int fd;
	size_t got;
	uint8_t greeting[GREETING];
};

struct rig_sealed {
	struct rig_fabric *fabric;
	int listener, fd, wake_fd;
	bool dialler, stands, broken;
	struct rig_conn_address mine, theirs;
	struct rig_sealed_keys keys;
	struct rig_sealed_way out, in;
	uint8_t greeting[GREETING];
	struct caller callers[CALLERS];
	unsigned ncallers;
	uint8_t *sending; /* sealed and not sent: [sent, sealed) */
	size_t sent, sealed, room;
	bool unsent; /* atomic: there is some */
	uint8_t receiving[RECORD_MOST + AHEAD];
	size_t received;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static int broken(struct rig_sealed *s, int err, const char *what)
{
	s->broken = true;
	return rig_error_set(err, "%s", what);
}

static int not_authentic(struct rig_sealed *s)
{
	return broken(s, -EBADMSG,
	        "authentication failed: bytes on the data connection were changed, or are another's");
}

static int failed(struct rig_sealed *s, int err)
{
	return broken(s, -err,
	        err == ECONNRESET || err == EPIPE ? "the other side closed the data connection"
	                                          : strerror(err));
}

/* ---- Making ---- */

static int make(struct rig_fabric *fabric, bool dialler, struct rig_sealed **made)
{
	struct rig_sealed *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return rig_error_set(-ENOMEM, "no memory for a data connection");
	s->fabric = fabric;
	s->dialler = dialler;
	s->listener = s->fd = -1;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->wake_fd < 0 ? rig_error_set(-errno, "cannot make an eventfd: %s", strerror(errno))
	                     : rig_sealed_keys_make(&s->keys);
	if (err) {
		rig_sealed_close(s);
		return err;
	}
	randombytes_buf(s->mine.token, sizeof(s->mine.token));
	memcpy(s->mine.key, s->keys.public_key, sizeof(s->mine.key));
	s->mine.aes = rig_sealed_has_aes();
	*made = s;
	return 0;
}

/* A socket bound to the fabric's address at the port, which 0 leaves to the kernel. */
static int bound_socket(const struct rig_fabric *fabric, unsigned port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list;
	char service[8];
	int fd, one = 1, err;

	(void)snprintf(service, sizeof(service), "%u", port);
	err = getaddrinfo(fabric->node, service, &hints, &list);
	if (err)
		return rig_error_set(-EINVAL, "%s: %s", fabric->node, gai_strerror(err));
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = fd < 0 ? errno : 0;
	if (!err && port)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!err && bind(fd, list->ai_addr, list->ai_addrlen))
		err = errno;
	freeaddrinfo(list);
	if (!err)
		return fd;
	close_fd(&fd);
	return rig_error_set(
	        -err, "a data connection at %s, port %s: %s", fabric->node, service, strerror(err));
}

/* At the first port of the range that is free. */
static int listen_somewhere(struct rig_sealed *s)
{
	const struct rig_fabric *fabric = s->fabric;
	int err = -EADDRINUSE;

	for (unsigned port = fabric->first_port; err == -EADDRINUSE && port <= fabric->last_port; port++) {
		s->listener = bound_socket(fabric, port);
		err = s->listener < 0 ? s->listener : listen(s->listener, BACKLOG) ? -errno : 0;
		if (err)
			close_fd(&s->listener);
	}
	if (err == -EADDRINUSE)
		return rig_error_set(err, "no port from %u to %u of %s is free for a data connection",
		        fabric->first_port, fabric->last_port, fabric->node);
	return err;
}

int rig_sealed_listen(struct rig_fabric *fabric, struct rig_conn_address *mine, struct rig_sealed **made)
{
	struct rig_sealed *s;
	socklen_t bytes = sizeof(mine->address);
	int err = make(fabric, false, &s);

	if (err)
		return err;
	err = listen_somewhere(s);
	if (!err && getsockname(s->listener, (struct sockaddr *)(void *)s->mine.address, &bytes))
		err = rig_error_set(-errno, "the address of a data connection: %s", strerror(errno));
	if (err) {
		rig_sealed_close(s);
		return err;
	}
	s->mine.bytes = bytes;
	*mine = s->mine;
	*made = s;
	return 0;
}

static void set_up(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Begins to connect, and greets at once where that is enough. */
static int dial(struct rig_sealed *s)
{
	struct sockaddr_storage to;

	memset(&to, 0, sizeof(to));
	memcpy(&to, s->theirs.address, s->theirs.bytes);
	s->fd = bound_socket(s->fabric, 0);
	if (s->fd < 0)
		return s->fd;
	if (connect(s->fd, (struct sockaddr *)&to, s->theirs.bytes) && errno != EINPROGRESS)
		return rig_error_set(-errno, "cannot connect: %s", strerror(errno));
	set_up(s->fd);
	return 0;
}

/* A greeting is the same at each dial: the first record of the direction. */
static int make_greeting(struct rig_sealed *s)
{
	const struct rig_sealed_head none = {.last = true};

	return rig_sealed_seal(&s->out, &none, NULL, s->greeting);
}

int rig_sealed_dial(struct rig_fabric *fabric, const struct rig_conn_address *peer,
        struct rig_conn_address *mine, struct rig_sealed **made)
{
	struct rig_sealed *s;
	int err;

	if (!rig_conn_is_socket_address(peer))
		return rig_error_set(-EPROTO, "the offer names no address");
	err = make(fabric, true, &s);
	if (err)
		return err;
	*mine = s->mine;
	s->theirs = *peer;
	err = rig_sealed_ways(&s->keys, true, &s->mine, peer, &s->out, &s->in);
	if (!err)
		err = make_greeting(s);
	if (!err)
		err = dial(s);
	if (err) {
		rig_sealed_close(s);
		return err;
	}
	*made = s;
	return 0;
}

/* ---- Greeting ---- */

static int greet(struct rig_sealed *s)
{
	/* The first bytes of a connection: its buffer is empty. */
	if (send(s->fd, s->greeting, sizeof(s->greeting), MSG_NOSIGNAL) != (ssize_t)sizeof(s->greeting))
		return errno == EPIPE || errno == ECONNRESET ? -ECONNRESET : failed(s, errno);
	return 0;
}

/* 1: whole and right; 0: not whole yet; else it is not the peer's. */
static int look_at_greeting(struct rig_sealed *s, int fd, uint8_t *greeting, size_t *got)
{
	ssize_t n = recv(fd, greeting + *got, GREETING - *got, MSG_DONTWAIT);
	uint8_t nothing;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -ECONNRESET;
	*got += (size_t)n;
	if (*got < GREETING)
		return 0;
	return rig_sealed_record_bytes(greeting) == GREETING && !rig_sealed_open(&s->in, greeting, &nothing)
	               ? 1
	               : -EPROTO;
}

static void drop_caller(struct rig_sealed *s, unsigned i)
{
	close_fd(&s->callers[i].fd);
	s->callers[i] = s->callers[--s->ncallers];
}

/* The one that waits longest makes room: the peer greets at once. */
static void take_caller(struct rig_sealed *s, uint64_t *refused)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (s->ncallers == CALLERS) {
		close_fd(&s->callers[0].fd);
		memmove(&s->callers[0], &s->callers[1], (CALLERS - 1) * sizeof(s->callers[0]));
		s->ncallers--;
		++*refused;
	}
	s->callers[s->ncallers++] = (struct caller){.fd = fd};
}

/* Whether one of them is the peer. */
static bool hear_callers(struct rig_sealed *s, uint64_t *refused)
{
	for (unsigned i = 0; i < s->ncallers;) {
		struct caller *caller = &s->callers[i];
		int heard = look_at_greeting(s, caller->fd, caller->greeting, &caller->got);

		if (heard > 0) {
			s->fd = caller->fd;
			caller->fd = -1;
			return true;
		}
		if (heard < 0) {
			drop_caller(s, i);
			++*refused;
		} else {
			i++;
		}
	}
	return false;
}

static void stop_listening(struct rig_sealed *s)
{
	while (s->ncallers)
		drop_caller(s, s->ncallers - 1);
	close_fd(&s->listener);
}

static int timed_out(void)
{
	return rig_error_set(-ETIMEDOUT, "no data connection within its time");
}

static int wait_ms(const struct rig_deadline *deadline)
{
	uint64_t ms = rig_deadline_left(deadline) / RIG_NS_PER_MS;

	return ms < INT32_MAX ? (int)ms + 1 : INT32_MAX;
}

static int await_peer(struct rig_sealed *s, const struct rig_deadline *deadline, uint64_t *refused)
{
	int err;

	while (!rig_deadline_passed(deadline)) {
		struct pollfd fds[1 + CALLERS] = {{s->listener, POLLIN, 0}};

		for (unsigned i = 0; i < s->ncallers; i++)
			fds[1 + i] = (struct pollfd){s->callers[i].fd, POLLIN, 0};
		if (poll(fds, 1 + s->ncallers, wait_ms(deadline)) < 0 && errno != EINTR)
			return rig_error_set(-errno, "waiting for a data connection: %s", strerror(errno));
		if (fds[0].revents)
			take_caller(s, refused);
		if (hear_callers(s, refused)) {
			stop_listening(s);
			set_up(s->fd);
			err = make_greeting(s);
			return err ? err : greet(s);
		}
	}
	return timed_out();
}

static int await_connect(struct rig_sealed *s, const struct rig_deadline *deadline)
{
	struct pollfd fd = {s->fd, POLLOUT, 0};
	socklen_t bytes = sizeof(int);
	int err = 0;

	while (poll(&fd, 1, wait_ms(deadline)) <= 0)
		if (rig_deadline_passed(deadline))
			return timed_out();
	(void)getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &bytes);
	return err ? rig_error_set(-err, "the data connection was not made: %s", strerror(err)) : greet(s);
}

static int await_greeting(struct rig_sealed *s, const struct rig_deadline *deadline)
{
	struct pollfd fd = {s->fd, POLLIN, 0};
	uint8_t greeting[GREETING];
	size_t got = 0;
	int heard = 0;

	while (!heard) {
		if (rig_deadline_passed(deadline))
			return timed_out();
		if (poll(&fd, 1, wait_ms(deadline)) > 0)
			heard = look_at_greeting(s, s->fd, greeting, &got);
	}
	if (heard == -ECONNRESET)
		return heard;
	return heard < 0 ? rig_error_set(heard, "who accepted the data connection does not have its key") : 0;
}

/* A listener among many strangers may have ended the connection before it heard the greeting: it is
 * dialled again. */
static int await_listener(struct rig_sealed *s, const struct rig_deadline *deadline)
{
	int err = -ECONNRESET;

	for (unsigned dials = 1; err == -ECONNRESET; dials++) {
		err = await_connect(s, deadline);
		if (!err)
			err = await_greeting(s, deadline);
		if (err != -ECONNRESET)
			break;
		if (dials == DIALS)
			return rig_error_set(
			        -ECONNREFUSED, "the data connection was closed by the other side");
		rig_deadline_sleep(deadline, REDIAL_NS);
		close_fd(&s->fd);
		err = dial(s);
		if (!err)
			err = -ECONNRESET;
	}
	return err;
}

int rig_sealed_finish(struct rig_sealed *s, const struct rig_conn_address *peer,
        const struct rig_deadline *deadline, uint64_t *refused)
{
	int err;

	if (s->dialler != !peer)
		return rig_error_set(-EINVAL, "an answer is for the side that offered, and for no other");
	if (s->dialler) {
		err = await_listener(s, deadline);
	} else {
		err = rig_sealed_ways(&s->keys, false, &s->mine, peer, &s->out, &s->in);
		if (!err)
			err = await_peer(s, deadline, refused);
	}
	s->stands = !err;
	return err;
}

void rig_sealed_cut(struct rig_sealed *s)
{
	if (s->fd >= 0)
		(void)shutdown(s->fd, SHUT_RDWR);
	close_fd(&s->fd);
	s->broken = true;
}

void rig_sealed_close(struct rig_sealed *s)
{
	stop_listening(s);
	rig_sealed_cut(s);
	close_fd(&s->wake_fd);
	free(s->sending);
	rig_sealed_wipe(&s->out);
	rig_sealed_wipe(&s->in);
	sodium_memzero(&s->keys, sizeof(s->keys));
	free(s);
}

/* ---- Sending ---- */

/* What was sealed goes as far as the socket takes it. */
static int flush(struct rig_sealed *s)
{
	while (s->sent < s->sealed) {
		ssize_t n =
		        send(s->fd, s->sending + s->sent, s->sealed - s->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return failed(s, errno);
		s->sent += (size_t)n;
	}
	if (s->sent == s->sealed)
		s->sent = s->sealed = 0;
	__atomic_store_n(&s->unsent, s->sealed > 0, __ATOMIC_RELEASE);
	return 0;
}

static int make_room(struct rig_sealed *s, size_t bytes)
{
	size_t room = bytes + (bytes / RIG_SEALED_MOST + 1) * (RIG_SEALED_HEAD + RIG_SEALED_TAG);
	uint8_t *more;

	if (room <= s->room)
		return 0;
	more = realloc(s->sending, room);
	if (!more)
		return broken(s, -ENOMEM, "no memory for what is to be sent");
	s->sending = more;
	s->room = room;
	return 0;
}

/* Nothing is held back but the rest of one write, so that memory is bounded by a piece. Each record goes
 * out as soon as it is sealed, while it is in the cache. */
int rig_sealed_write(struct rig_sealed *s, const void *from, size_t bytes, const struct rig_fabric_target *to,
        uint64_t offset, uint32_t note)
{
	const unsigned char *at = from;
	int err = s->broken ? failed(s, EPIPE) : flush(s);

	if (!err && s->sealed)
		return -EAGAIN;
	if (!err)
		err = make_room(s, bytes);
	while (!err && bytes) {
		struct rig_sealed_head head = {
		        .bytes = (uint32_t)(bytes < RIG_SEALED_MOST ? bytes : RIG_SEALED_MOST),
		        .note = note,
		        .key = to->key,
		        .offset = to->address + offset};

		head.last = head.bytes == bytes;
		err = rig_sealed_seal(&s->out, &head, at, s->sending + s->sealed);
		if (err)
			break;
		s->sealed += RIG_SEALED_HEAD + head.bytes + RIG_SEALED_TAG;
		at += head.bytes;
		offset += head.bytes;
		bytes -= head.bytes;
		err = flush(s);
	}
	return err ? err : 1;
}

bool rig_sealed_unsent(const struct rig_sealed *s)
{
	return __atomic_load_n(&s->unsent, __ATOMIC_ACQUIRE);
}

/* ---- Receiving ---- */

/* Bytes of the record that is due, as far as its head is known. */
static size_t due(const struct rig_sealed *s)
{
	return s->received < RIG_SEALED_HEAD ? RIG_SEALED_HEAD : rig_sealed_record_bytes(s->receiving);
}

static bool is_whole(const struct rig_sealed *s)
{
	size_t bytes = due(s);

	return s->received >= RIG_SEALED_HEAD && s->received >= bytes;
}

/* 1: some came; 0: none is there. */
static int receive(struct rig_sealed *s)
{
	ssize_t n = recv(s->fd, s->receiving + s->received, due(s) + AHEAD - s->received, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return failed(s, n ? errno : ECONNRESET);
	s->received += (size_t)n;
	return 1;
}

/* Opens the whole record that was received first into its target. One for no target is opened in its
 * place, to know whose lie it is. */
static int open_record(struct rig_sealed *s, struct rig_sealed_head *head)
{
	struct rig_sealed_targets *targets = &s->fabric->targets;
	size_t bytes = rig_sealed_record_bytes(s->receiving);
	unsigned char *to;
	int err;

	if (!bytes)
		return not_authentic(s);
	rig_sealed_parse(s->receiving, head);
	(void)pthread_rwlock_rdlock(&targets->lock);
	to = rig_sealed_target_find(targets, head->key, head->offset, head->bytes);
	err = rig_sealed_open(&s->in, s->receiving, to ? to : s->receiving + RIG_SEALED_HEAD);
	(void)pthread_rwlock_unlock(&targets->lock);
	if (err == -EBADMSG)
		return not_authentic(s);
	if (err)
		return broken(s, err, "libcrypto opens no record");
	if (!to)
		return broken(s, -EPROTO, "the other side writes to memory that is not lent to it");
	s->received -= bytes;
	memmove(s->receiving, s->receiving + bytes, s->received);
	return 0;
}

int rig_sealed_read(struct rig_sealed *s, struct rig_conn_event *events, size_t room)
{
	size_t taken = 0, looked = 0;
	int err = s->broken ? failed(s, EPIPE) : flush(s);

	while (!err && taken < room && looked < LOOK_MOST) {
		struct rig_sealed_head head;

		if (!is_whole(s)) {
			err = receive(s);
			if (err <= 0)
				break;
			err = 0;
			continue;
		}
		err = open_record(s, &head);
		looked += RIG_SEALED_HEAD + head.bytes;
		if (!err && head.last)
			events[taken++] = (struct rig_conn_event){.note = head.note};
	}
	return err < 0 ? err : (int)taken;
}

bool rig_sealed_gone(struct rig_sealed *s)
{
	uint8_t byte;
	ssize_t n = s->broken ? 0 : recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		s->broken = true;
	return s->broken;
}

void rig_sealed_sleep(struct rig_sealed *s, uint64_t ns)
{
	struct pollfd fds[] = {
	        {s->fd, (short)(POLLIN | (rig_sealed_unsent(s) ? POLLOUT : 0)), 0}, {s->wake_fd, POLLIN, 0}};
	struct timespec time = {(time_t)(ns / RIG_NS_PER_S), (long)(ns % RIG_NS_PER_S)};
	uint64_t count;

	if (is_whole(s))
		return;
	(void)ppoll(fds, sizeof(fds) / sizeof(*fds), ns == RIG_CLOCK_NEVER ? NULL : &time, NULL);
	if (fds[1].revents & POLLIN && read(s->wake_fd, &count, sizeof(count)) < 0)
		return;
}

void rig_sealed_wake(struct rig_sealed *s)
{
	uint64_t one = 1;

	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		return; /* full: it is awake */
}
