/* SPDX-License-Identifier: MIT */
#ifndef AGENT_INSIDE_H
#define AGENT_INSIDE_H

/*
 * An agent in this process that serves test drivers (polled.h), and controllers that speak to it message by
 * message, also what no controller of the library says. A driver's hook holds an agent's thread where a test
 * wants it.
 * Functions fail the running cmocka test; waits end it after INSIDE_SECONDS.
 */

#include "test.h"

#include <semaphore.h>

#include "agent.h"
#include "polled.h"

enum {
	INSIDE_DRIVERS = 2,
	INSIDE_SECONDS = 120,
	INSIDE_NUMBERS = 64, /* requests of a controller */
	INSIDE_VALUES = 64,
};

/* The next thread that makes the call stands still in the driver. */
struct stop {
	atomic_int call; /* enum polled_call; POLLED_CALLS: none */
	sem_t came, go;
};

struct inside {
	struct rig_rmt_key key;
	struct agent agent;
	struct polled *drivers[INSIDE_DRIVERS];
	struct stop stops[INSIDE_DRIVERS];
	char names[INSIDE_DRIVERS][16]; /* "P0", "P1" */
	char name[RIG_RMT_NAME];        /* HOST:PORT */
	int listener, ending;
	pthread_t thread;
};

/* Each driver's options as polled_parse takes them. `edit`, if not NULL, gives the opener that is served.
   What failed stays, until the program ends. */
struct inside *inside_start(const char *const *options, const struct rig_opener *(*edit)(struct polled *p));
/* Ends it: all is stopped, given back, and no driver saw a breach of the contract. */
void inside_end(struct inside *in);
/* The same where a device could not be stopped, of which the agent says so: what it has stays. */
void inside_end_stuck(struct inside *in);
/* Waits until the driver has got so many calls. */
void inside_await(struct inside *in, unsigned driver, enum polled_call call, unsigned n);
/* Looks for a while whether it gets another one: a fault would soon show. */
void inside_assert_none(struct inside *in, unsigned driver, enum polled_call call, unsigned n);

/* Holds the next thread that makes the call; await it; let it go on. */
void inside_stop(struct inside *in, unsigned driver, enum polled_call call);
void inside_await_stopped(struct inside *in, unsigned driver);
void inside_go(struct inside *in, unsigned driver);

/* ---- A controller, or another agent ---- */

struct talk {
	struct rig_rmt_chan *chan;
	uint32_t next;
	bool done[INSIDE_NUMBERS];
	struct rig_rmt_answer answers[INSIDE_NUMBERS];
	struct rig_rmt_out payloads[INSIDE_NUMBERS];
	uint64_t reached[INSIDE_DRIVERS]; /* by the number of the device */
	bool lost[INSIDE_DRIVERS];
	char reason[RIG_RMT_REASON]; /* of the last loss or failure */
	bool failed;                 /* the job */
	bool over;                   /* the connection ended */
};

/* Connects and joins as the controller of a job: the token's first byte; the agent is machine 0 of it. */
void talk_begin(struct talk *t, struct inside *in, uint8_t token);
/* The same, any way. */
void talk_join(struct talk *t, struct inside *in, const struct rig_rmt_join *join);
void talk_end(struct talk *t);

/* Sends what `out` has, and frees it. */
void talk_send(struct talk *t, uint8_t kind, struct rig_rmt_out *out);
/* A request: its number comes first. */
uint32_t talk_ask(struct talk *t, uint8_t kind, struct rig_rmt_out *out);
/* The answer's status; the payload is in `payloads`. */
int talk_await(struct talk *t, uint32_t request);
/* The first number of an answer's payload. */
uint32_t talk_number(struct talk *t, uint32_t request);
/* Takes messages until the value is reached. */
void talk_await_value(struct talk *t, uint32_t device, uint64_t value);
/* Until it is, or the device is lost or the job over. */
void talk_await_end(struct talk *t, uint32_t device, uint64_t value);
void talk_await_lost(struct talk *t, uint32_t device);
void talk_await_failed(struct talk *t);
void talk_await_over(struct talk *t);

/* Waits until the job is served. */
void talk_ping(struct talk *t);
/* Devices and what they have, as a controller asks for them; each succeeds. */
void talk_open(struct talk *t, const char *name);
uint32_t talk_alloc(struct talk *t, uint32_t device, uint64_t bytes);
void talk_free(struct talk *t, uint32_t device, uint32_t region);
uint32_t talk_map(struct talk *t, uint32_t device, uint32_t other, uint32_t region);
uint32_t talk_stop(struct talk *t, uint32_t device); /* the request */
uint32_t talk_load(struct talk *t, uint32_t device); /* the drivers' binary */
struct rig_rmt_entry talk_entry(struct talk *t, uint32_t device, uint32_t image, const char *name);
void talk_unload(struct talk *t, uint32_t device, uint32_t image);
/* One value with one part. */
void talk_copy(struct talk *t, uint32_t device, uint64_t value, uint32_t dst, uint32_t src, uint64_t bytes);
void talk_launch(struct talk *t, uint32_t device, uint64_t value, uint32_t function);
void talk_empty(struct talk *t, uint32_t device, uint64_t value);
/* One that waits for another device's. */
void talk_follow(struct talk *t, uint32_t device, uint64_t value, uint32_t other, uint64_t awaited);
/* The region's bytes, for a copy of this machine's. */
void talk_fetch(struct talk *t, uint32_t id, uint32_t device, uint32_t region, uint64_t bytes);

#endif
