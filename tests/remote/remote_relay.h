/* SPDX-License-Identifier: MIT */
#ifndef REMOTE_RELAY_H
#define REMOTE_RELAY_H

/* A network between a job and an agent, since netem is not in every kernel: it passes bytes on, each piece so
   much later. Functions fail the running cmocka test. */

#include <pthread.h>
#include <stdint.h>

enum { RELAY_CONNECTIONS = 64 };

struct relay_connection {
	struct relay *relay;
	int in, out;
	pthread_t thread;
};

struct relay {
	char name[64]; /* HOST:PORT, in the place of the agent's */
	unsigned delay_ms;
	/* Called with a connection's number, from 0, before it is passed on; NULL: nothing. */
	void (*before)(void *arg, unsigned connection);
	void *arg;

	int listener;
	uint16_t to;
	pthread_t thread;
	struct relay_connection connections[RELAY_CONNECTIONS];
	unsigned n;
};

/* Relays to the agent of that name; delay_ms, before and arg are the caller's to set before. */
void relay_start(struct relay *r, const char *to);
/* Once all who use it have ended their connections. */
void relay_end(struct relay *r);

#endif
