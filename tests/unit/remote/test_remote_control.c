/* SPDX-License-Identifier: MIT */
/* The proof of a key and the encrypted connection, without an agent. */
#include <netinet/in.h>
#include <netdb.h>
#include <errno.h>
#include "test.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "le.h"
#include "rmt_draft.h"
#include "rmt_post.h"

enum { MS = 20000 };

static const struct rig_rmt_key key = {{1, 2, 3}}, other_key = {{1, 2, 4}};

/* ---- The proof ---- */

struct exchange {
	struct rig_rmt_pake dialer, acceptor;
	uint8_t hello[RIG_RMT_HELLO], reply[RIG_RMT_REPLY], proof[RIG_RMT_PROOF], tag[RIG_RMT_TAG];
};

/* As far as the acceptor's check, whose answer it is. */
static int exchange(struct exchange *x, const struct rig_rmt_key *dialers)
{
	assert_int_equal(rig_rmt_pake_init(&x->dialer, true, dialers), 0);
	assert_int_equal(rig_rmt_pake_init(&x->acceptor, false, &key), 0);
	rig_rmt_pake_hello(&x->dialer, x->hello);
	assert_int_equal(rig_rmt_pake_reply(&x->acceptor, x->hello, x->reply), 0);
	assert_int_equal(rig_rmt_pake_prove(&x->dialer, x->reply, x->proof), 0);
	return rig_rmt_pake_check(&x->acceptor, x->proof, x->tag);
}

static void sides_with_one_key_believe_each_other_and_have_the_same_stream_keys(void **state)
{
	struct exchange x, again;
	uint8_t a[32], b[32], c[32], d[32];

	(void)state;
	assert_int_equal(exchange(&x, &key), 0);
	assert_int_equal(rig_rmt_pake_end(&x.dialer, x.tag), 0);
	rig_rmt_pake_stream_key(&x.dialer, true, a);
	rig_rmt_pake_stream_key(&x.acceptor, true, b);
	rig_rmt_pake_stream_key(&x.dialer, false, c);
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
	/* Of this connection alone. */
	assert_int_equal(exchange(&again, &key), 0);
	rig_rmt_pake_stream_key(&again.dialer, true, d);
	assert_memory_not_equal(a, d, sizeof(a));
}

static void another_key_is_believed_by_neither_side(void **state)
{
	struct exchange x;
	uint8_t tag[RIG_RMT_TAG] = {0};

	(void)state;
	assert_int_equal(exchange(&x, &other_key), -EACCES);
	assert_int_equal(rig_rmt_pake_end(&x.dialer, tag), -EACCES);
	/* Nor is one's own proof, sent back. */
	assert_int_equal(rig_rmt_pake_end(&x.dialer, x.proof + RIG_RMT_POINT), -EACCES);
}

static void a_proof_with_any_bit_changed_is_refused(void **state)
{
	struct exchange x;
	unsigned i;

	(void)state;
	for (i = 0; i < 8 * RIG_RMT_PROOF; i += 7) {
		uint8_t changed[RIG_RMT_PROOF];

		assert_int_equal(exchange(&x, &key), 0);
		memcpy(changed, x.proof, sizeof(changed));
		changed[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_int_equal(rig_rmt_pake_check(&x.acceptor, changed, x.tag), -EACCES);
	}
}

static void a_point_that_gives_the_secret_away_is_refused(void **state)
{
	struct exchange x;

	(void)state;
	(void)exchange(&x, &key);
	/* The neutral element: whatever the key, the secret would be it. */
	memset(x.reply + RIG_RMT_HELLO, 0, RIG_RMT_POINT);
	assert_int_equal(rig_rmt_pake_prove(&x.dialer, x.reply, x.proof), -EACCES);
	memset(x.proof, 0, RIG_RMT_POINT);
	assert_int_equal(rig_rmt_pake_check(&x.acceptor, x.proof, x.tag), -EACCES);
	memset(x.proof, 0xff, RIG_RMT_POINT);
	assert_int_equal(rig_rmt_pake_check(&x.acceptor, x.proof, x.tag), -EACCES);
}

static void another_protocol_and_another_version_are_told_apart(void **state)
{
	struct exchange x;

	(void)state;
	(void)exchange(&x, &key);
	x.hello[4]++;
	assert_int_equal(rig_rmt_pake_reply(&x.acceptor, x.hello, x.reply), -EPROTONOSUPPORT);
	x.hello[0] = 'X';
	assert_int_equal(rig_rmt_pake_reply(&x.acceptor, x.hello, x.reply), -EPROTO);
}

static void only_a_key_files_line_is_a_key(void **state)
{
	char line[] = "rig-key-1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
	struct rig_rmt_key parsed;
	size_t n = sizeof(line) - 1;

	(void)state;
	assert_int_equal(rig_rmt_key_parse(line, n, &parsed), 0);
	assert_int_equal(rig_rmt_key_parse(line, n - 1, &parsed), 0);
	assert_int_equal(rig_rmt_key_parse(line, n - 2, &parsed), -EINVAL);
	line[20] = 'g';
	assert_int_equal(rig_rmt_key_parse(line, n, &parsed), -EINVAL);
	assert_int_equal(rig_rmt_key_parse("", 0, &parsed), -EINVAL);
}

/* ---- The connection ---- */

/* Two channels with a relay between, which may change what passes. */
struct relay {
	pthread_t thread, acceptor;
	int listener, accepted, to_dialer, to_acceptor;
	char name[32];
	uint64_t flip; /* the byte from the dialer to change; UINT64_MAX: none */
	uint64_t passed;
	struct rig_rmt_chan *accepted_chan;
	int accept_answer;
	pthread_mutex_t held; /* while it passes bytes */
};

static void *accept_run(void *arg)
{
	struct relay *r = arg;

	r->accept_answer = rig_rmt_chan_accept(r->accepted, &key, MS, MS, &r->accepted_chan);
	return NULL;
}

static bool pass(struct relay *r, int from, int to, bool counted)
{
	uint8_t bytes[65536];
	ssize_t n = read(from, bytes, sizeof(bytes)), at = 0, put;

	if (n <= 0)
		return false;
	if (counted && r->flip >= r->passed && r->flip < r->passed + (uint64_t)n)
		bytes[r->flip - r->passed] ^= 1;
	if (counted)
		r->passed += (uint64_t)n;
	for (; at < n; at += put) {
		put = write(to, bytes + at, (size_t)(n - at));
		if (put <= 0)
			return false;
	}
	return true;
}

static void *relay_run(void *arg)
{
	struct relay *r = arg;
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLIN}};
	bool passes = true;

	r->to_dialer = accept(r->listener, NULL, NULL);
	p[0].fd = r->to_dialer;
	p[1].fd = r->to_acceptor;
	while (passes && poll(p, 2, -1) > 0) {
		(void)pthread_mutex_lock(&r->held);
		passes = (!p[0].revents || pass(r, p[0].fd, p[1].fd, true)) &&
		         (!p[1].revents || pass(r, p[1].fd, p[0].fd, false));
		(void)pthread_mutex_unlock(&r->held);
	}
	(void)shutdown(r->to_acceptor, SHUT_RDWR);
	(void)shutdown(r->to_dialer, SHUT_RDWR);
	return NULL;
}

static void relay_start(struct relay *r, uint64_t flip)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int pair[2];

	memset(r, 0, sizeof(*r));
	r->flip = flip;
	(void)pthread_mutex_init(&r->held, NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	r->accepted = pair[0];
	r->to_acceptor = pair[1];
	r->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(r->listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(r->listener, 1), 0);
	assert_int_equal(getsockname(r->listener, (struct sockaddr *)&at, &n), 0);
	snprintf(r->name, sizeof(r->name), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&r->thread, NULL, relay_run, r), 0);
	assert_int_equal(pthread_create(&r->acceptor, NULL, accept_run, r), 0);
}

static void relay_end(struct relay *r)
{
	rig_rmt_chan_free(r->accepted_chan);
	(void)shutdown(r->to_acceptor, SHUT_RDWR);
	(void)pthread_join(r->thread, NULL);
	(void)close(r->to_acceptor);
	(void)close(r->to_dialer);
	(void)close(r->listener);
}

static void messages_arrive_whole_and_in_order(void **state)
{
	static uint8_t body[RIG_RMT_PAYLOAD];
	struct rig_rmt_chan *chan;
	const uint8_t *payload;
	struct relay r;
	uint8_t kind;
	uint32_t i;
	size_t n;

	(void)state;
	relay_start(&r, UINT64_MAX);
	assert_int_equal(rig_rmt_chan_dial(r.name, &key, MS, MS, &chan), 0);
	(void)pthread_join(r.acceptor, NULL);
	assert_int_equal(r.accept_answer, 0);
	for (i = 0; i < 40; i++) {
		size_t bytes = i == 39 ? RIG_RMT_PAYLOAD - 4 : i * 1000;
		uint8_t head[4];

		memset(body, (int)i, bytes);
		rig_put_le32(head, i);
		assert_int_equal(rig_rmt_chan_send(chan, (uint8_t)(i + 1), head, 4, body, bytes), 0);
		assert_int_equal(rig_rmt_chan_recv(r.accepted_chan, &kind, &payload, &n), 0);
		assert_int_equal(kind, i + 1);
		assert_int_equal(n, bytes + 4);
		assert_int_equal(rig_get_le32(payload), i);
		assert_memory_equal(payload + 4, body, bytes);
	}
	assert_int_equal(rig_rmt_chan_send(chan, 1, body, 1, body, RIG_RMT_PAYLOAD), -EMSGSIZE);
	rig_rmt_chan_free(chan);
	assert_int_equal(rig_rmt_chan_recv(r.accepted_chan, &kind, &payload, &n), -ECONNRESET);
	relay_end(&r);
}

/* Where the dialer's first record starts: after hello, proof and the stream's header. */
enum { FIRST = RIG_RMT_HELLO + RIG_RMT_PROOF + 24, RECORD = 4 + 1 + 100 + 17 };

static void a_changed_byte_is_noticed_wherever_it_is(void **state)
{
	static const uint64_t places[] = {
	        FIRST, FIRST + 3, FIRST + 4, FIRST + 50, FIRST + RECORD - 1, FIRST + RECORD + 9};
	static const uint8_t body[100] = {7};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct rig_rmt_chan *chan;
		const uint8_t *payload;
		struct relay r;
		uint8_t kind;
		size_t n;
		int err;

		relay_start(&r, places[i]);
		assert_int_equal(rig_rmt_chan_dial(r.name, &key, MS, MS, &chan), 0);
		(void)pthread_join(r.acceptor, NULL);
		(void)rig_rmt_chan_send(chan, 1, NULL, 0, body, sizeof(body));
		(void)rig_rmt_chan_send(chan, 2, NULL, 0, body, sizeof(body));
		rig_rmt_chan_shut(chan);
		do {
			err = rig_rmt_chan_recv(r.accepted_chan, &kind, &payload, &n);
			/* What comes before the change is believed, nothing after. */
			assert_true(err || (kind == 1 && places[i] >= FIRST + RECORD));
		} while (!err);
		assert_true(err == -EBADMSG || err == -ECONNRESET);
		rig_rmt_chan_free(chan);
		relay_end(&r);
	}
}

static void a_changed_byte_of_the_proof_ends_it(void **state)
{
	static const uint64_t places[] = {0, 4, 8, RIG_RMT_HELLO, RIG_RMT_HELLO + 40};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct rig_rmt_chan *chan;
		struct relay r;

		relay_start(&r, places[i]);
		assert_true(rig_rmt_chan_dial(r.name, &key, MS, MS, &chan) < 0);
		(void)pthread_join(r.acceptor, NULL);
		assert_true(r.accept_answer < 0);
		relay_end(&r);
	}
}

static void connect_over(struct relay *r, struct rig_rmt_chan **chan)
{
	relay_start(r, UINT64_MAX);
	assert_int_equal(rig_rmt_chan_dial(r->name, &key, MS, MS, chan), 0);
	(void)pthread_join(r->acceptor, NULL);
	assert_int_equal(r->accept_answer, 0);
}

/* The accepted side's socket takes no byte more, until the relay is let go. */
static void stop_up(struct relay *r)
{
	static const uint8_t bytes[4096];

	(void)pthread_mutex_lock(&r->held);
	while (send(r->accepted, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* Else the beats of others would wait with it. */
static void a_message_that_need_not_go_waits_for_no_peer_that_takes_no_bytes(void **state)
{
	static const uint8_t bytes[100];
	struct rig_rmt_chan *chan;
	struct relay r;

	(void)state;
	connect_over(&r, &chan);
	stop_up(&r);
	rig_rmt_chan_try_send(r.accepted_chan, 1, bytes, sizeof(bytes));
	(void)pthread_mutex_unlock(&r.held);
	/* What had waited in vain would have ended the connection. */
	assert_int_equal(rig_rmt_chan_send(r.accepted_chan, 1, bytes, sizeof(bytes), NULL, 0), 0);
	rig_rmt_chan_free(chan);
	relay_end(&r);
}

static void posts_arrive_in_their_order(void **state)
{
	struct rig_rmt_chan *chan;
	struct rig_rmt_post post;
	const uint8_t *payload;
	struct relay r;
	uint8_t kind, bytes[4];
	uint32_t i;
	size_t n;

	(void)state;
	connect_over(&r, &chan);
	rig_rmt_post_init(&post);
	for (i = 0; i < 500; i++) {
		rig_put_le32(bytes, i);
		assert_int_equal(rig_rmt_post_send(&post, r.accepted_chan, 9, bytes, i % 5), 0);
	}
	for (i = 0; i < 500; i++) {
		rig_put_le32(bytes, i);
		assert_int_equal(rig_rmt_chan_recv(chan, &kind, &payload, &n), 0);
		assert_int_equal(kind, 9);
		assert_int_equal(n, i % 5);
		assert_memory_equal(payload, bytes, n);
	}
	rig_rmt_chan_shut(r.accepted_chan);
	rig_rmt_post_fini(&post);
	rig_rmt_chan_free(chan);
	relay_end(&r);
}

/* Two readers that both waited for their connection to take bytes would do so for ever. */
static void posts_wait_for_no_peer_that_takes_no_bytes(void **state)
{
	static const uint8_t bytes[100];
	struct rig_rmt_chan *chan;
	struct rig_rmt_post post;
	struct relay r;
	uint32_t n = 0;
	int err;

	(void)state;
	connect_over(&r, &chan);
	rig_rmt_post_init(&post);
	stop_up(&r);
	do
		err = rig_rmt_post_send(&post, r.accepted_chan, 9, bytes, sizeof(bytes));
	while (!err && ++n <= RIG_RMT_POSTED + 1);
	/* One may be with the thread. */
	assert_int_equal(err, -ENOBUFS);
	assert_in_range(n, RIG_RMT_POSTED, RIG_RMT_POSTED + 1);
	rig_rmt_chan_shut(r.accepted_chan);
	rig_rmt_post_fini(&post);
	(void)pthread_mutex_unlock(&r.held);
	rig_rmt_chan_free(chan);
	relay_end(&r);
}

static void transfers_of_a_rail_come_in_parts_and_no_more_than_it_may_have(void **state)
{
	static struct rig_remote_transfer transfers[RIG_RMT_TRANSFERS];
	struct rig_rmt_rail part = {.rail = 1, .nsend = 2, .nreceive = 1, .transfers = transfers};
	struct rig_rmt_draft draft = {0};
	size_t n;

	(void)state;
	transfers[0].src = 10;
	transfers[1].src = 11;
	transfers[2].src = 12;
	assert_int_equal(rig_rmt_draft_add(&draft, &part), 0);
	assert_int_equal(rig_rmt_draft_add(&draft, &part), 0);
	assert_int_equal(draft.send.n, 4);
	assert_int_equal(draft.receive.n, 2);
	assert_int_equal(draft.send.at[3].src, 11);
	assert_int_equal(draft.receive.at[1].src, 12);
	part.rail = 2;
	part.nsend = RIG_RMT_TRANSFERS;
	part.nreceive = 0;
	for (n = 0; n < RIG_RMT_RAIL_TRANSFERS; n += RIG_RMT_TRANSFERS)
		assert_int_equal(rig_rmt_draft_add(&draft, &part), 0);
	assert_int_equal(draft.send.n, RIG_RMT_RAIL_TRANSFERS);
	assert_int_equal(draft.receive.n, 0);
	part.nsend = 1;
	assert_int_equal(rig_rmt_draft_add(&draft, &part), -E2BIG);
	part.nsend = 0;
	part.nreceive = 1;
	assert_int_equal(rig_rmt_draft_add(&draft, &part), 0);
	rig_rmt_draft_drop(&draft);
}

/* And not that the connection was reset, which it does itself. */
static void a_peer_that_takes_no_bytes_is_said_to_by_who_sends_and_who_receives(void **state)
{
	static const uint8_t bytes[RIG_RMT_PAYLOAD];
	struct rig_rmt_chan *chan;
	const uint8_t *payload;
	char text[80];
	struct relay r;
	uint8_t kind;
	size_t n;
	int err;

	(void)state;
	relay_start(&r, UINT64_MAX);
	assert_int_equal(rig_rmt_chan_dial(r.name, &key, MS, MS, &chan), 0);
	(void)pthread_join(r.acceptor, NULL);
	assert_int_equal(r.accept_answer, 0);
	rig_rmt_chan_set_silence(r.accepted_chan, 50);
	(void)pthread_mutex_lock(&r.held);
	do
		err = rig_rmt_chan_send(r.accepted_chan, 1, bytes, sizeof(bytes), NULL, 0);
	while (!err);
	assert_int_equal(err, -ETIME);
	assert_int_equal(rig_rmt_chan_send(r.accepted_chan, 1, bytes, 1, NULL, 0), -ETIME);
	assert_int_equal(rig_rmt_chan_recv(r.accepted_chan, &kind, &payload, &n), -ETIME);
	rig_rmt_chan_end_text(err, 50, text, sizeof(text));
	assert_string_equal(text, "it took no byte for 50 ms");
	(void)pthread_mutex_unlock(&r.held);
	rig_rmt_chan_free(chan);
	relay_end(&r);
}

static void lengths_that_no_record_has_are_refused(void **state)
{
	(void)state;
	assert_int_equal(rig_rmt_record_bytes(0), -EPROTO);
	assert_int_equal(rig_rmt_record_bytes(17), -EPROTO);
	assert_int_equal(rig_rmt_record_bytes(18), 1);
	assert_int_equal(rig_rmt_record_bytes(18 + RIG_RMT_PAYLOAD), 1 + RIG_RMT_PAYLOAD);
	assert_int_equal(rig_rmt_record_bytes(19 + RIG_RMT_PAYLOAD), -EPROTO);
	assert_int_equal(rig_rmt_record_bytes(UINT32_MAX), -EPROTO);
}

static void names_are_split_at_their_last_colon(void **state)
{
	char host[RIG_RMT_HOST], port[RIG_RMT_PORT];

	(void)state;
	assert_int_equal(rig_rmt_split_name("[::1]:80", host, sizeof(host), port, sizeof(port)), 0);
	assert_string_equal(host, "::1");
	assert_string_equal(port, "80");
	assert_int_equal(rig_rmt_split_name("here", host, sizeof(host), port, sizeof(port)), -EINVAL);
	assert_int_equal(rig_rmt_split_name(":80", host, sizeof(host), port, sizeof(port)), -EINVAL);
	assert_int_equal(rig_rmt_split_name("here:", host, sizeof(host), port, sizeof(port)), -EINVAL);
	assert_int_equal(rig_rmt_split_name("here:65535", host, sizeof(host), port, sizeof(port)), 0);
	assert_int_equal(rig_rmt_split_name("here:65536", host, sizeof(host), port, sizeof(port)), -EINVAL);
}

/* ---- Messages ---- */

static int parse_want(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_want want;

	return rig_rmt_want_parse(bytes, n, &want);
}

static int parse_claim(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_claim claim;

	return rig_rmt_claim_parse(bytes, n, &claim);
}

static int parse_number(const uint8_t *bytes, size_t n)
{
	uint32_t number;

	return rig_rmt_number_parse(bytes, n, &number);
}

static int parse_fetch(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_fetch fetch;

	return rig_rmt_fetch_parse(bytes, n, &fetch);
}

static int parse_work(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_work work;
	int err = rig_rmt_work_parse(bytes, n, &work);

	if (!err)
		rig_rmt_work_free(&work);
	return err;
}

/* Whole it is read; with any byte less, or one more, it is none. */
static void assert_exact(struct rig_rmt_out *out, int (*parse)(const uint8_t *, size_t))
{
	size_t whole = out->used, n;

	assert_int_equal(parse(out->at, whole), 0);
	rig_rmt_put8(out, 0);
	assert_int_equal(parse(out->at, whole + 1), -EPROTO);
	for (n = 0; n < whole; n++) {
		/* Its own memory, so that a sanitizer sees a read past it. */
		uint8_t *cut = malloc(n + !n);

		assert_non_null(cut);
		memcpy(cut, out->at, n);
		assert_int_equal(parse(cut, n), -EPROTO);
		free(cut);
	}
	rig_rmt_out_free(out);
}

static const struct rig_rmt_ticket ticket = {0x01020304, 0x1112131415161718, 0x2122232425262728};

static void messages_of_parcels_are_read_as_they_were_written_and_no_byte_may_lack(void **state)
{
	const struct rig_rmt_want want = {.device = 3, .value = UINT64_MAX - 1, .part = 7, .ticket = ticket};
	const struct rig_rmt_claim claim = {.fetch = UINT32_MAX, .bytes = 1 << 20, .ticket = ticket};
	const struct rig_rmt_fetch fetch = {
	        .id = 1, .machine = 2, .device = 3, .region = 4, .row_bytes = 5, .rows = 6, .parcel = true};
	struct rig_rmt_out out = {0};
	struct rig_rmt_fetch fetch_read;
	struct rig_rmt_claim claim_read;
	struct rig_rmt_want want_read;
	uint32_t number;

	(void)state;
	rig_rmt_want_put(&out, &want);
	assert_int_equal(rig_rmt_want_parse(out.at, out.used, &want_read), 0);
	assert_true(want_read.device == 3 && want_read.value == want.value && want_read.part == 7);
	assert_memory_equal(&want_read.ticket.address, &ticket.address, 16);
	assert_int_equal(want_read.ticket.number, ticket.number);
	assert_exact(&out, parse_want);
	rig_rmt_claim_put(&out, &claim);
	assert_int_equal(rig_rmt_claim_parse(out.at, out.used, &claim_read), 0);
	assert_true(claim_read.fetch == UINT32_MAX && claim_read.bytes == claim.bytes);
	assert_memory_equal(&claim_read.ticket.address, &ticket.address, 16);
	assert_exact(&out, parse_claim);
	rig_rmt_put32(&out, 0x05060708);
	assert_int_equal(rig_rmt_number_parse(out.at, out.used, &number), 0);
	assert_int_equal(number, 0x05060708);
	assert_exact(&out, parse_number);
	rig_rmt_fetch_put(&out, &fetch);
	assert_int_equal(rig_rmt_fetch_parse(out.at, out.used, &fetch_read), 0);
	assert_true(fetch_read.parcel && fetch_read.rows == 6);
	assert_exact(&out, parse_fetch);
}

static void sides_of_work_by_parcels_are_read_as_they_were_written_and_no_byte_may_lack(void **state)
{
	struct rig_rmt_part parts[2] = {
	        {.kind = RIG_COPY,
	                .row_bytes = 100,
	                .rows = 2,
	                .dst = {.where = RIG_RMT_LOCAL_PARCEL, .ticket = ticket},
	                .src = {.where = RIG_RMT_FOREIGN_PARCEL, .machine = 9, .region = 8}},
	        {.kind = RIG_COPY,
	                .row_bytes = 50,
	                .rows = 1,
	                .dst = {.where = RIG_RMT_HERE, .region = 1},
	                .src = {.where = RIG_RMT_LOCAL_PARCEL}},
	};
	struct rig_rmt_work work = {.value = 5, .nparts = 2, .parts = parts}, read;
	struct rig_rmt_out out = {0};

	(void)state;
	rig_rmt_work_put(&out, &work);
	assert_int_equal(rig_rmt_work_parse(out.at, out.used, &read), 0);
	assert_int_equal(read.parts[0].dst.where, RIG_RMT_LOCAL_PARCEL);
	assert_int_equal(read.parts[0].dst.ticket.number, ticket.number);
	assert_memory_equal(&read.parts[0].dst.ticket.address, &ticket.address, 16);
	assert_true(read.parts[0].src.machine == 9 && read.parts[0].src.region == 8);
	assert_int_equal(read.parts[1].src.where, RIG_RMT_LOCAL_PARCEL);
	assert_true(read.local_in == 250 && read.local_out == 200);
	rig_rmt_work_free(&read);
	assert_exact(&out, parse_work);
	/* Nobody fetches for a place elsewhere. */
	parts[0].dst.where = RIG_RMT_FOREIGN_PARCEL;
	rig_rmt_work_put(&out, &work);
	assert_int_equal(parse_work(out.at, out.used), -EPROTO);
	rig_rmt_out_free(&out);
}

/* By the flags of its mapping (proc(5), smaps): locked unless this user may lock nothing, and not dumped. */
static void a_key_is_kept_out_of_swap_and_core_files(void **state)
{
	struct rig_rmt_key *kept = rig_rmt_key_alloc();
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	bool here = false, found = false;
	char line[512];

	(void)state;
	assert_non_null(kept);
	assert_non_null(maps);
	memset(kept, 1, sizeof(*kept));
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)kept >= from && (uintptr_t)kept < to;
		if (here && !strncmp(line, "VmFlags:", 8)) {
			found = true;
			assert_non_null(strstr(line, " dd"));
		}
	}
	(void)fclose(maps);
	assert_true(found);
	rig_rmt_key_free(kept);
	rig_rmt_key_free(NULL);
}

/* ---- Names with several addresses ---- */

static struct sockaddr_in addresses[2];
int __real_getaddrinfo(
        const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(
        const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list);
void __real_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list);

static struct addrinfo named[2];

int __wrap_getaddrinfo(
        const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list)
{
	if (strcmp(host, "two.addresses") != 0)
		return __real_getaddrinfo(host, port, hints, list);
	for (int i = 0; i < 2; i++)
		named[i] = (struct addrinfo){.ai_family = AF_INET,
		        .ai_socktype = SOCK_STREAM,
		        .ai_addr = (struct sockaddr *)&addresses[i],
		        .ai_addrlen = sizeof(addresses[i]),
		        .ai_next = i ? NULL : &named[1]};
	*list = named;
	return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	if (list != named)
		__real_freeaddrinfo(list);
}

/* The longest wait for a connection to come about. */
static atomic_int longest;
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (n == 1 && fds->events == POLLOUT && ms > atomic_load(&longest))
		atomic_store(&longest, ms);
	return __real_poll(fds, n, ms);
}

static int listen_at(struct sockaddr_in *at)
{
	socklen_t n = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &n), 0);
	return fd;
}

enum { DIAL_MS = 2000 };

static void *dial_two(void *arg)
{
	const struct rig_rmt_key any = {{1}};
	struct rig_rmt_chan *chan;

	*(int *)arg = rig_rmt_chan_dial("two.addresses:1", &any, DIAL_MS, DIAL_MS, &chan);
	return NULL;
}

/* Whose queue of connections is full answers nothing. */
static void an_address_that_swallows_leaves_the_next_its_share_of_the_time(void **state)
{
	enum { CALLERS = 4 };
	int deaf = listen_at(&addresses[0]), hears = listen_at(&addresses[1]), callers[CALLERS];
	struct pollfd came = {.fd = hears, .events = POLLIN};
	pthread_t thread;
	int err = 0;

	(void)state;
	atomic_store(&longest, 0);
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(callers[i], (struct sockaddr *)&addresses[0], sizeof(addresses[0]));
	}
	assert_int_equal(pthread_create(&thread, NULL, dial_two, &err), 0);
	assert_int_equal(poll(&came, 1, 120000), 1);
	(void)close(accept(hears, NULL, NULL));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(err < 0);
	assert_in_range(atomic_load(&longest), 1, DIAL_MS / 2 + 1);
	for (int i = 0; i < CALLERS; i++)
		(void)close(callers[i]);
	(void)close(deaf);
	(void)close(hears);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_address_that_swallows_leaves_the_next_its_share_of_the_time),
	        cmocka_unit_test(a_key_is_kept_out_of_swap_and_core_files),
	        cmocka_unit_test(sides_with_one_key_believe_each_other_and_have_the_same_stream_keys),
	        cmocka_unit_test(another_key_is_believed_by_neither_side),
	        cmocka_unit_test(a_proof_with_any_bit_changed_is_refused),
	        cmocka_unit_test(a_point_that_gives_the_secret_away_is_refused),
	        cmocka_unit_test(another_protocol_and_another_version_are_told_apart),
	        cmocka_unit_test(only_a_key_files_line_is_a_key),
	        cmocka_unit_test(messages_arrive_whole_and_in_order),
	        cmocka_unit_test(a_changed_byte_is_noticed_wherever_it_is),
	        cmocka_unit_test(a_changed_byte_of_the_proof_ends_it),
	        cmocka_unit_test(a_message_that_need_not_go_waits_for_no_peer_that_takes_no_bytes),
	        cmocka_unit_test(posts_arrive_in_their_order),
	        cmocka_unit_test(posts_wait_for_no_peer_that_takes_no_bytes),
	        cmocka_unit_test(transfers_of_a_rail_come_in_parts_and_no_more_than_it_may_have),
	        cmocka_unit_test(a_peer_that_takes_no_bytes_is_said_to_by_who_sends_and_who_receives),
	        cmocka_unit_test(lengths_that_no_record_has_are_refused),
	        cmocka_unit_test(names_are_split_at_their_last_colon),
	        cmocka_unit_test(messages_of_parcels_are_read_as_they_were_written_and_no_byte_may_lack),
	        cmocka_unit_test(sides_of_work_by_parcels_are_read_as_they_were_written_and_no_byte_may_lack),
	};

	/* Relays and strangers write to connections that are ended. */
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
