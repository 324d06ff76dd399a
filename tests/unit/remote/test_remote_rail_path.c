/* SPDX-License-Identifier: MIT */
/*
 * Somebody on the path of a sealed data connection, who changes, drops, repeats or swaps bytes of it: the
 * job fails with that word, and what had arrived by then is what was sent.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#include "rail_pair.h"
#include "rail_private.h"
#include "sealed.h"

enum { BYTES = 100000, GREETING = RIG_SEALED_HEAD + RIG_SEALED_TAG, ROUNDS = 1000 };

enum deed { NOTHING, FLIP, DROP, REPEAT, SWAP, DEEDS };

/* Bytes go both ways; the deed is done once, to the side that listened, at the byte `at` of that way. */
struct path {
	int listener, near, far;
	struct sockaddr_in to;
	enum deed deed;
	uint64_t at, passed;
	bool done;
	pthread_t thread;
};

static bool send_all(int fd, const uint8_t *bytes, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		bytes += sent;
		n -= (size_t)sent;
	}
	return true;
}

static bool pass_on(struct path *p, uint8_t *bytes, size_t n)
{
	size_t i = (size_t)(p->at - p->passed);
	bool here = !p->done && p->at >= p->passed && i + 2 <= n;

	p->passed += n;
	if (!here || p->deed == NOTHING)
		return send_all(p->far, bytes, n);
	p->done = true;
	if (p->deed == FLIP)
		bytes[i] ^= 0x10;
	if (p->deed == SWAP) {
		uint8_t one = bytes[i];

		bytes[i] = bytes[i + 1];
		bytes[i + 1] = bytes[i] == one ? (uint8_t)~one : one; /* a swap of the same is none */
	}
	if (p->deed == REPEAT && !send_all(p->far, bytes, i + 1))
		return false;
	if (p->deed == DROP)
		return send_all(p->far, bytes, i) && send_all(p->far, bytes + i + 1, n - i - 1);
	return send_all(p->far, bytes + (p->deed == REPEAT ? i : 0), n - (p->deed == REPEAT ? i : 0));
}

static void *run(void *arg)
{
	struct path *p = arg;
	static __thread uint8_t bytes[1 << 16];

	p->near = accept(p->listener, NULL, NULL);
	p->far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->near < 0 || p->far < 0 || connect(p->far, (struct sockaddr *)&p->to, sizeof(p->to)))
		return NULL;
	for (;;) {
		struct pollfd fds[] = {{p->near, POLLIN, 0}, {p->far, POLLIN, 0}};
		ssize_t n;

		(void)poll(fds, 2, -1);
		if (fds[0].revents) {
			n = recv(p->near, bytes, sizeof(bytes), 0);
			if (n <= 0 || !pass_on(p, bytes, (size_t)n))
				break;
		}
		if (fds[1].revents) {
			n = recv(p->far, bytes, sizeof(bytes), 0);
			if (n <= 0 || !send_all(p->near, bytes, (size_t)n))
				break;
		}
	}
	(void)shutdown(p->near, SHUT_RDWR);
	(void)shutdown(p->far, SHUT_RDWR);
	return NULL;
}

/* The offer, leading to the path. */
static void lay(struct path *p, struct rig_rail_blob *offer)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(own);
	struct rig_rail_hello hello;

	assert_int_equal(rig_rail_parse_hello(offer, RIG_BLOB_OFFER, &hello), 0);
	memcpy(&p->to, hello.address.address, sizeof(p->to));
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->listener, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(listen(p->listener, 1), 0);
	assert_int_equal(getsockname(p->listener, (struct sockaddr *)&own, &bytes), 0);
	memcpy(hello.address.address, &own, sizeof(own));
	rig_rail_blob_hello(offer, RIG_BLOB_OFFER, &hello);
	assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
}

struct finishing {
	struct rig_rail_link *link;
	int code;
};

static void *finish(void *arg)
{
	struct finishing *f = arg;
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);

	f->code = rig_rail_link_finish(f->link, NULL, &deadline);
	return NULL;
}

static void open_pair(struct rail_pair *pair, struct path *p)
{
	const struct rig_rails_options options = {.spin_ns = UINT64_MAX};
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	struct rig_rail_blob offer, answer;
	struct finishing f;
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_rails_open(&options, &pair->rails[i]), 0);
	assert_int_equal(rig_rail_link_offer(pair->rails[0], "b", &offer, &pair->link[0]), 0);
	lay(p, &offer);
	assert_int_equal(rig_rail_link_accept(pair->rails[1], "a", &offer, &answer, &pair->link[1]), 0);
	f = (struct finishing){pair->link[1], 0};
	assert_int_equal(pthread_create(&thread, NULL, finish, &f), 0);
	assert_int_equal(rig_rail_link_finish(pair->link[0], &answer, &deadline), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(f.code, 0);
}

static void check_copy(const struct rig_remote_end *end, uint64_t c)
{
	const uint8_t *at = (const uint8_t *)end->inbound.at + (c - 1) % 2 * (end->inbound.bytes / 2);

	for (size_t i = 0; i < BYTES; i++)
		if (at[i] != (uint8_t)(c * 31 + i))
			fail_msg("byte %zu of transfer %llu is wrong", i, (unsigned long long)c);
}

static void fill(const struct rig_remote_end *end, uint64_t c)
{
	uint8_t *at = (uint8_t *)end->outbound.at + (c - 1) % 2 * (end->outbound.bytes / 2);

	for (size_t i = 0; i < BYTES; i++)
		at[i] = (uint8_t)(c * 31 + i);
}

/* Side 1 sends, one transfer ahead: a record whose length was changed is known by what comes after it.
 * Until the engine fails, or all are there. */
static uint64_t carry(struct rail_ends *ends)
{
	uint64_t c;

	fill(ends->end[1], 1);
	rail_ready(ends->end[1], 1);
	for (c = 1; c <= ROUNDS; c++) {
		if (c > 1 && rail_wait(ends->end[1], RIG_REMOTE_SENT, c - 1) == RIG_RAIL_FAILED)
			break;
		fill(ends->end[1], c + 1);
		rail_ready(ends->end[1], c + 1);
		if (rail_wait(ends->end[0], RIG_REMOTE_ARRIVED, c) == RIG_RAIL_FAILED)
			break;
		check_copy(ends->end[0], c);
	}
	return c;
}

static void do_deed(enum deed deed, uint64_t at)
{
	const struct rig_remote_transfer t = {0, 0, BYTES};
	struct path p = {.deed = deed, .at = at};
	struct rail_pair pair;
	struct rail_ends ends;
	uint64_t reached;

	open_pair(&pair, &p);
	assert_int_equal(rail_pair_make(&pair, 1, NULL, 0, &t, 1, &ends), 0);
	reached = carry(&ends);
	if (deed == NOTHING) {
		assert_int_equal(reached, ROUNDS + 1);
		assert_null(rig_rails_why(pair.rails[0]));
	} else {
		assert_true(reached <= ROUNDS);
		assert_non_null(rig_rails_why(pair.rails[0]));
		if (!strstr(rig_rails_why(pair.rails[0]), "authentication failed"))
			fail_msg("deed %d at %llu: %s", deed, (unsigned long long)at,
			        rig_rails_why(pair.rails[0]));
	}
	rail_ends_put(&ends);
	rail_pair_close(&pair);
	assert_int_equal(pthread_join(p.thread, NULL), 0);
	(void)close(p.listener);
	(void)close(p.near);
	(void)close(p.far);
}

static void a_path_that_does_nothing_is_not_noticed(void **state)
{
	(void)state;
	do_deed(NOTHING, 0);
}

/* In a head, a payload and a tag, of the first record after the greeting and of a later one. */
static void whatever_is_done_to_a_byte_fails_the_job_with_that_word(void **state)
{
	static const uint64_t places[] = {GREETING, GREETING + 5, GREETING + 9,
	        GREETING + RIG_SEALED_HEAD + 7, GREETING + RIG_SEALED_HEAD + BYTES + 3, GREETING + 5 * BYTES};

	(void)state;
	for (enum deed deed = FLIP; deed < DEEDS; deed++)
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
			do_deed(deed, places[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_path_that_does_nothing_is_not_noticed),
	        cmocka_unit_test(whatever_is_done_to_a_byte_fails_the_job_with_that_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
