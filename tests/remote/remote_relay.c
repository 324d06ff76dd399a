/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote_relay.h"
#include "remote_support.h"

static bool pass(const struct relay_connection *c, bool back)
{
	const struct relay *r = c->relay;
	int from = back ? c->out : c->in, to = back ? c->in : c->out;
	uint8_t bytes[2 * RELAY_PIECE];
	ssize_t got = read(from, bytes, RELAY_PIECE), at = 0, put;
	size_t n = (size_t)got;

	if (got <= 0)
		return false;
	if (r->edit)
		r->edit(r->arg, (unsigned)(c - r->connections), back, bytes, &n);
	if (r->delay_ms)
		(void)usleep(r->delay_ms * 1000);
	for (; at < (ssize_t)n; at += put) {
		put = send(to, bytes + at, n - (size_t)at, MSG_NOSIGNAL);
		if (put <= 0)
			return false;
	}
	return true;
}

static void *pass_back(void *arg)
{
	struct relay_connection *c = arg;

	while (pass(c, true))
		;
	(void)shutdown(c->in, SHUT_RDWR);
	return NULL;
}

static void *connection_run(void *arg)
{
	struct relay_connection *c = arg;
	struct relay *r = c->relay;
	struct sockaddr_in at = {
	        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(r->to)};
	pthread_t back;

	if (r->before)
		r->before(r->arg, (unsigned)(c - r->connections));
	c->out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!connect(c->out, (struct sockaddr *)&at, sizeof(at)) &&
	        !pthread_create(&back, NULL, pass_back, c)) {
		while (pass(c, false))
			;
		(void)shutdown(c->out, SHUT_RDWR);
		(void)pthread_join(back, NULL);
	}
	(void)close(c->in);
	(void)close(c->out);
	return NULL;
}

static void *relay_run(void *arg)
{
	struct relay *r = arg;

	for (; r->n < RELAY_CONNECTIONS; r->n++) {
		struct relay_connection *c = &r->connections[r->n];

		c->relay = r;
		c->in = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
		if (c->in < 0 || pthread_create(&c->thread, NULL, connection_run, c))
			break;
	}
	return NULL;
}

void relay_start(struct relay *r, const char *to)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);

	r->n = 0;
	r->to = (uint16_t)atoi(strchr(to, ':') + 1);
	r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(r->listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(r->listener, RELAY_CONNECTIONS), 0);
	assert_int_equal(getsockname(r->listener, (struct sockaddr *)&at, &n), 0);
	snprintf(r->name, sizeof(r->name), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&r->thread, NULL, relay_run, r), 0);
}

void relay_end(struct relay *r)
{
	unsigned i;

	(void)shutdown(r->listener, SHUT_RDWR);
	(void)pthread_join(r->thread, NULL);
	for (i = 0; i < r->n; i++)
		(void)pthread_join(r->connections[i].thread, NULL);
	(void)close(r->listener);
}
