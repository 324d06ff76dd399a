/* SPDX-License-Identifier: MIT */
#ifndef REMOTE_RELAY_H
#define REMOTE_RELAY_H

/* A network between a job and an agent, since netem is not in every kernel: it passes bytes on, each piece so
   much later, or other ones. Functions fail the running cmocka test. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RELAY_CONNECTIONS = 64, RELAY_PIECE = 5000 };

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
	/* What was read of it, back: of who was dialled, before it is passed on, to change; room for twice
	   RELAY_PIECE. One thread for each of a connection's ways. NULL: nothing. */
	void (*edit)(void *arg, unsigned connection, bool back, uint8_t *bytes, size_t *n);
	void *arg;

	int listener;
	uint16_t to;
	pthread_t thread;
	struct relay_connection connections[RELAY_CONNECTIONS];
	unsigned n;
};

/* Relays to the agent of that name; delay_ms, before, edit and arg are the caller's to set before. */
void relay_start(struct relay *r, const char *to);
/* Once all who use it have ended their connections. */
void relay_end(struct relay *r);

#endif
