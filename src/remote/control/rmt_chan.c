/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <sodium.h>

#include "clock.h"
#include "le.h"
#include "rig_edge.h"
#include "rmt_chan.h"

enum {
	LENGTH = 4,
	KIND = 1,
	OVERHEAD = crypto_secretstream_xchacha20poly1305_ABYTES,
	HEADER = crypto_secretstream_xchacha20poly1305_HEADERBYTES,
	MOST_RECORD = KIND + RIG_RMT_PAYLOAD + OVERHEAD,
	READ_BYTES = 2 * (LENGTH + MOST_RECORD), /* read at once, so that small messages share a call */
	PEER = 96,
};

struct rig_rmt_chan {
	int fd;
	unsigned silence_ms;
	char peer[PEER];
	atomic_bool shut;
	atomic_int broken; /* why a send shut it; 0: none did */
	_Atomic uint64_t sent, received;

	pthread_mutex_t send_lock;
	crypto_secretstream_xchacha20poly1305_state push;
	uint64_t pushed; /* since the last rekeying */
	int send_error;
	uint8_t *plain, *cipher;

	crypto_secretstream_xchacha20poly1305_state pull;
	uint8_t *in, *message;
	size_t from, to; /* of `in` that were read and are not taken */
};

/* ---- Sockets with deadlines ---- */

static int await(int fd, short events, const struct rig_deadline *deadline)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		uint64_t left = rig_deadline_left(deadline);
		int n = poll(&p, 1, (int)((left + RIG_NS_PER_MS - 1) / RIG_NS_PER_MS));

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n && rig_deadline_passed(deadline))
			return -ETIMEDOUT;
	}
}

static struct rig_deadline in_ms(unsigned ms)
{
	return rig_deadline_in(NULL, ms * RIG_NS_PER_MS);
}

static int read_all(int fd, void *to, size_t n, const struct rig_deadline *deadline)
{
	uint8_t *at = to;

	while (n) {
		ssize_t got = recv(fd, at, n, MSG_DONTWAIT);

		if (!got)
			return -ECONNRESET;
		if (got > 0) {
			at += got;
			n -= (size_t)got;
			continue;
		}
		if (errno == EAGAIN || errno == EINTR) {
			int err = await(fd, POLLIN, deadline);

			if (err)
				return err;
		} else {
			return -errno;
		}
	}
	return 0;
}

/* `ms` without a byte that moves fails it. */
static int write_all(int fd, const void *from, size_t n, unsigned ms)
{
	struct rig_deadline deadline = in_ms(ms);
	const uint8_t *at = from;

	while (n) {
		ssize_t put = send(fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (put > 0) {
			at += put;
			n -= (size_t)put;
			deadline = in_ms(ms);
			continue;
		}
		if (errno == EAGAIN || errno == EINTR) {
			int err = await(fd, POLLOUT, &deadline);

			if (err)
				return err;
		} else {
			return errno == EPIPE ? -ECONNRESET : -errno;
		}
	}
	return 0;
}

/* ---- Making ---- */

int rig_rmt_split_name(const char *name, char *host, size_t host_bytes, char *port, size_t port_bytes)
{
	const char *colon = strrchr(name, ':'), *from = name;
	size_t n = colon ? (size_t)(colon - name) : 0;

	if (n >= 2 && name[0] == '[' && name[n - 1] == ']') {
		from++;
		n -= 2;
	}
	/* A number beyond would be taken modulo 65536 by getaddrinfo. */
	if (!n || n >= host_bytes || !colon[1] || strlen(colon + 1) >= port_bytes ||
	        strtoul(colon + 1, NULL, 10) > UINT16_MAX)
		return rig_error_set(-EINVAL, "\"%s\" is no HOST:PORT with a port up to 65535", name);
	memcpy(host, from, n);
	host[n] = 0;
	(void)strcpy(port, colon + 1);
	return 0;
}

static void free_parts(struct rig_rmt_chan *c)
{
	if (c->fd >= 0)
		(void)close(c->fd);
	free(c->plain);
	free(c->cipher);
	free(c->in);
	free(c->message);
	sodium_memzero(c, sizeof(*c));
	free(c);
}

static void name_peer(struct rig_rmt_chan *c)
{
	char host[64] = "?", port[16] = "?";
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);

	if (!getpeername(c->fd, (struct sockaddr *)&at, &n))
		(void)getnameinfo((struct sockaddr *)&at, n, host, sizeof(host), port, sizeof(port),
		        NI_NUMERICHOST | NI_NUMERICSERV);
	(void)snprintf(c->peer, sizeof(c->peer), "%s:%s", host, port);
}

/* Takes the descriptor. */
static struct rig_rmt_chan *make(int fd, unsigned silence_ms)
{
	struct rig_rmt_chan *c = calloc(1, sizeof(*c));
	int one = 1;

	if (!c) {
		(void)close(fd);
		return NULL;
	}
	c->fd = fd;
	c->silence_ms = silence_ms;
	c->plain = malloc(KIND + RIG_RMT_PAYLOAD);
	c->cipher = malloc(LENGTH + MOST_RECORD);
	c->in = malloc(READ_BYTES);
	c->message = malloc(KIND + RIG_RMT_PAYLOAD);
	if (!c->plain || !c->cipher || !c->in || !c->message) {
		free_parts(c);
		return NULL;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)pthread_mutex_init(&c->send_lock, NULL);
	name_peer(c);
	return c;
}

void rig_rmt_chan_free(struct rig_rmt_chan *chan)
{
	if (!chan)
		return;
	(void)pthread_mutex_destroy(&chan->send_lock);
	free_parts(chan);
}

void rig_rmt_chan_set_silence(struct rig_rmt_chan *chan, unsigned silence_ms)
{
	chan->silence_ms = silence_ms;
}

/* ---- The proof ---- */

static int prove_as_dialer(
        struct rig_rmt_chan *c, struct rig_rmt_pake *p, const struct rig_deadline *deadline)
{
	uint8_t hello[RIG_RMT_HELLO], reply[RIG_RMT_REPLY], proof[RIG_RMT_PROOF], tag[RIG_RMT_TAG];
	int err;

	rig_rmt_pake_hello(p, hello);
	err = write_all(c->fd, hello, sizeof(hello), c->silence_ms);
	if (!err)
		err = read_all(c->fd, reply, sizeof(reply), deadline);
	if (!err)
		err = rig_rmt_pake_prove(p, reply, proof);
	if (!err)
		err = write_all(c->fd, proof, sizeof(proof), c->silence_ms);
	if (err)
		return err;
	err = read_all(c->fd, tag, sizeof(tag), deadline);
	/* Who does not believe the proof hangs up. */
	if (err == -ECONNRESET)
		return -EACCES;
	return err ? err : rig_rmt_pake_end(p, tag);
}

static int prove_as_acceptor(
        struct rig_rmt_chan *c, struct rig_rmt_pake *p, const struct rig_deadline *deadline)
{
	uint8_t hello[RIG_RMT_HELLO], reply[RIG_RMT_REPLY], proof[RIG_RMT_PROOF], tag[RIG_RMT_TAG];
	int err = read_all(c->fd, hello, sizeof(hello), deadline);

	if (!err)
		err = rig_rmt_pake_reply(p, hello, reply);
	if (!err)
		err = write_all(c->fd, reply, sizeof(reply), c->silence_ms);
	if (!err)
		err = read_all(c->fd, proof, sizeof(proof), deadline);
	if (!err)
		err = rig_rmt_pake_check(p, proof, tag);
	return err ? err : write_all(c->fd, tag, sizeof(tag), c->silence_ms);
}

static int open_streams(
        struct rig_rmt_chan *c, const struct rig_rmt_pake *p, const struct rig_deadline *deadline)
{
	uint8_t key[32], header[HEADER];
	int err;

	rig_rmt_pake_stream_key(p, p->dialer, key);
	(void)crypto_secretstream_xchacha20poly1305_init_push(&c->push, header, key);
	err = write_all(c->fd, header, sizeof(header), c->silence_ms);
	if (!err)
		err = read_all(c->fd, header, sizeof(header), deadline);
	rig_rmt_pake_stream_key(p, !p->dialer, key);
	if (!err && crypto_secretstream_xchacha20poly1305_init_pull(&c->pull, header, key))
		err = -EPROTO;
	sodium_memzero(key, sizeof(key));
	return err;
}

static int secure(struct rig_rmt_chan *c, bool dialer, const struct rig_rmt_key *key,
        const struct rig_deadline *deadline)
{
	struct rig_rmt_pake pake;
	int err = rig_rmt_pake_init(&pake, dialer, key);

	if (!err)
		err = dialer ? prove_as_dialer(c, &pake, deadline) : prove_as_acceptor(c, &pake, deadline);
	if (!err)
		err = open_streams(c, &pake, deadline);
	rig_rmt_pake_fini(&pake);
	return err;
}

static int say(const char *who, int err)
{
	const char *why = err == -EACCES            ? "the keys differ"
	                  : err == -EPROTO          ? "it speaks something else"
	                  : err == -EPROTONOSUPPORT ? "it speaks another version of the protocol"
	                  : err == -ETIMEDOUT       ? "no answer in time"
	                  : err == -ECONNRESET      ? "it ended the connection"
	                                            : strerror(-err);

	return rig_error_set(err, "%s: %s", who, why);
}

static int connect_one(const struct addrinfo *to, const struct rig_deadline *deadline)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;
	socklen_t n = sizeof(err);

	if (fd < 0)
		return -errno;
	if (connect(fd, to->ai_addr, to->ai_addrlen)) {
		err = errno == EINPROGRESS ? await(fd, POLLOUT, deadline) : -errno;
		if (!err && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n))
			err = -err;
	}
	if (!err)
		return fd;
	(void)close(fd);
	return err;
}

static int connect_any(const char *name, const struct rig_deadline *deadline)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *list = NULL, *a;
	char host[RIG_RMT_HOST], port[RIG_RMT_PORT];
	int err = rig_rmt_split_name(name, host, sizeof(host), port, sizeof(port));
	unsigned left = 0;

	if (err)
		return err;
	err = getaddrinfo(host, port, &hints, &list);
	if (err)
		return rig_error_set(-EHOSTUNREACH, "%s: %s", name, gai_strerror(err));
	for (a = list; a; a = a->ai_next)
		left++;
	err = -EHOSTUNREACH;
	/* Each gets its share of the time that is left: the first may swallow all and answer nothing. */
	for (a = list; a && err < 0; a = a->ai_next, left--) {
		struct rig_deadline share = rig_deadline_in(NULL, rig_deadline_left(deadline) / left);

		err = connect_one(a, &share);
	}
	freeaddrinfo(list);
	return err < 0 ? say(name, err) : err;
}

int rig_rmt_chan_dial(const char *name, const struct rig_rmt_key *key, unsigned ms, unsigned silence_ms,
        struct rig_rmt_chan **chan)
{
	struct rig_deadline deadline = in_ms(ms);
	int fd = connect_any(name, &deadline), err;
	struct rig_rmt_chan *c;

	if (fd < 0)
		return fd;
	c = make(fd, silence_ms);
	if (!c)
		return rig_error_set(-ENOMEM, "no host memory for a connection");
	err = secure(c, true, key, &deadline);
	if (err) {
		rig_rmt_chan_free(c);
		return say(name, err);
	}
	*chan = c;
	return 0;
}

int rig_rmt_chan_accept(
        int fd, const struct rig_rmt_key *key, unsigned ms, unsigned silence_ms, struct rig_rmt_chan **chan)
{
	struct rig_deadline deadline = in_ms(ms);
	struct rig_rmt_chan *c = make(fd, silence_ms);
	int err;

	if (!c)
		return rig_error_set(-ENOMEM, "no host memory for a connection");
	err = secure(c, false, key, &deadline);
	if (err) {
		err = say(c->peer, err);
		rig_rmt_chan_free(c);
		return err;
	}
	*chan = c;
	return 0;
}

/* ---- Messages ---- */

/* With the lock. */
static int push(struct rig_rmt_chan *c, size_t plain_bytes)
{
	uint8_t tag = crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
	size_t record = plain_bytes + OVERHEAD;
	int err;

	c->pushed += plain_bytes;
	if (c->pushed >= RIG_RMT_REKEY) {
		tag = crypto_secretstream_xchacha20poly1305_TAG_REKEY;
		c->pushed = 0;
	}
	rig_put_le32(c->cipher, (uint32_t)record);
	(void)crypto_secretstream_xchacha20poly1305_push(
	        &c->push, c->cipher + LENGTH, NULL, c->plain, plain_bytes, c->cipher, LENGTH, tag);
	err = write_all(c->fd, c->cipher, LENGTH + record, c->silence_ms);
	if (!err)
		atomic_fetch_add_explicit(&c->sent, LENGTH + record, memory_order_relaxed);
	return err;
}

static int send_locked(struct rig_rmt_chan *c, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes)
{
	if (c->send_error)
		return c->send_error;
	c->plain[0] = kind;
	if (head_bytes)
		memcpy(c->plain + KIND, head, head_bytes);
	if (body_bytes)
		memcpy(c->plain + KIND + head_bytes, body, body_bytes);
	c->send_error = push(c, KIND + head_bytes + body_bytes);
	if (c->send_error == -ETIMEDOUT)
		c->send_error = -ETIME;
	if (c->send_error) {
		/* Who receives looks at it once it finds the end that this makes, after what had come before:
		   that may say why the peer takes no more. */
		atomic_store_explicit(&c->broken, c->send_error, memory_order_release);
		(void)shutdown(c->fd, SHUT_RDWR);
	}
	return c->send_error;
}

int rig_rmt_chan_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes)
{
	int err;

	if (head_bytes > RIG_RMT_PAYLOAD || body_bytes > RIG_RMT_PAYLOAD - head_bytes)
		return -EMSGSIZE;
	(void)pthread_mutex_lock(&chan->send_lock);
	err = send_locked(chan, kind, head, head_bytes, body, body_bytes);
	(void)pthread_mutex_unlock(&chan->send_lock);
	return err;
}

/* A stream's socket that polls as writable takes far more than a short message. */
static bool takes_bytes(const struct rig_rmt_chan *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};

	return poll(&p, 1, 0) > 0;
}

bool rig_rmt_chan_try_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes)
{
	bool sent;

	if (pthread_mutex_trylock(&chan->send_lock))
		return false;
	sent = takes_bytes(chan) && !send_locked(chan, kind, head, head_bytes, NULL, 0);
	(void)pthread_mutex_unlock(&chan->send_lock);
	return sent;
}

int rig_rmt_record_bytes(uint32_t length)
{
	if (length < KIND + OVERHEAD || length > MOST_RECORD)
		return -EPROTO;
	return (int)(length - OVERHEAD);
}

/* Of a connection that has ended. What made a send fail comes before what that makes of a receive. */
static int why_ended(struct rig_rmt_chan *c, int err)
{
	int broken = atomic_load_explicit(&c->broken, memory_order_acquire);

	return broken ? broken : err;
}

/* At least n bytes from c->from on. */
static int fill(struct rig_rmt_chan *c, size_t n)
{
	struct rig_deadline deadline = in_ms(c->silence_ms);

	if (READ_BYTES - c->from < n) {
		memmove(c->in, c->in + c->from, c->to - c->from);
		c->to -= c->from;
		c->from = 0;
	}
	while (c->to - c->from < n) {
		ssize_t got = recv(c->fd, c->in + c->to, READ_BYTES - c->to, MSG_DONTWAIT);
		int err;

		if (!got || atomic_load_explicit(&c->shut, memory_order_acquire))
			return why_ended(c, -ECONNRESET);
		if (got > 0) {
			c->to += (size_t)got;
			atomic_fetch_add_explicit(&c->received, (uint64_t)got, memory_order_relaxed);
			deadline = in_ms(c->silence_ms);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return why_ended(c, -errno);
		err = await(c->fd, POLLIN, &deadline);
		if (err)
			return err;
	}
	return 0;
}

int rig_rmt_chan_recv(struct rig_rmt_chan *chan, uint8_t *kind, const uint8_t **payload, size_t *bytes)
{
	uint8_t tag, *record;
	int err = fill(chan, LENGTH), plain;
	uint32_t length;

	if (err)
		return err;
	length = rig_get_le32(chan->in + chan->from);
	plain = rig_rmt_record_bytes(length);
	if (plain < 0)
		return -EBADMSG;
	err = fill(chan, LENGTH + length);
	if (err)
		return err;
	record = chan->in + chan->from;
	if (crypto_secretstream_xchacha20poly1305_pull(
	            &chan->pull, chan->message, NULL, &tag, record + LENGTH, length, record, LENGTH))
		return -EBADMSG;
	chan->from += LENGTH + length;
	if (chan->from == chan->to)
		chan->from = chan->to = 0;
	*kind = chan->message[0];
	*payload = chan->message + KIND;
	*bytes = (size_t)plain - KIND;
	return 0;
}

void rig_rmt_chan_end_text(int err, unsigned silence_ms, char *text, size_t bytes)
{
	if (err == -ETIMEDOUT)
		(void)snprintf(text, bytes, "it was silent for %u ms", silence_ms);
	else if (err == -ETIME)
		(void)snprintf(text, bytes, "it took no byte for %u ms", silence_ms);
	else if (err == -EBADMSG)
		(void)snprintf(text, bytes, "authentication failed: its bytes were changed on their way");
	else
		(void)snprintf(text, bytes, "the connection ended: %s", strerror(-err));
}

void rig_rmt_chan_shut(struct rig_rmt_chan *chan)
{
	atomic_store_explicit(&chan->shut, true, memory_order_release);
	if (chan->fd >= 0)
		(void)shutdown(chan->fd, SHUT_RDWR);
}

void rig_rmt_chan_disown(struct rig_rmt_chan *chan)
{
	int fd = chan->fd;

	chan->fd = -1;
	atomic_store_explicit(&chan->shut, true, memory_order_release);
	if (fd >= 0)
		(void)close(fd);
}

const char *rig_rmt_chan_peer(const struct rig_rmt_chan *chan)
{
	return chan->peer;
}

void rig_rmt_chan_local(const struct rig_rmt_chan *chan, char *host, size_t bytes)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);

	if (getsockname(chan->fd, (struct sockaddr *)&at, &n) ||
	        getnameinfo((struct sockaddr *)&at, n, host, (socklen_t)bytes, NULL, 0, NI_NUMERICHOST))
		(void)snprintf(host, bytes, "127.0.0.1");
}

void rig_rmt_chan_counts(struct rig_rmt_chan *chan, uint64_t *sent, uint64_t *received)
{
	*sent = atomic_load_explicit(&chan->sent, memory_order_relaxed);
	*received = atomic_load_explicit(&chan->received, memory_order_relaxed);
}
