/* SPDX-License-Identifier: MIT */
/*
 * rig-agent: a process that opens this machine's devices for controllers elsewhere.
 *
 * Here is what it serves, and to how many. Beside it, from the outside in: agent_session.h; agent_peer.h,
 * agent_parcel.h and agent_rails.h, what a session has with other machines; agent_device.h, and of a device
 * agent_memory.h and, for its hot and its cold thread alone, agent_hot.h and agent_cold.h; agent_queue.h.
 * Threads of a session:
 *   reader    takes messages off the connection and puts each on a queue; waits for nothing else
 *   control   answers what concerns no device, and beats
 *   of each device
 *     hot     the work, in the order of the messages; may wait for other devices and for room
 *     cold    memory, code, the device's open and end
 *     done    waits for the device, sends what values bring back, and says that they are reached
 * The driver's functions are called here as rig_edge.h has it, without librig's order: that is kept by the
 * controller. The device's values are not the controller's, for copies of the agent's own take values
 * between; struct pending pairs them.
 */
#ifndef AGENT_H
#define AGENT_H

#include "agent_session.h"
#include "rig_vfio.h"

enum {
	AGENT_SESSIONS = 16, /* at a time */
	/* Connections whose proof is not done: beyond, the one that waits longest is ended. Who has the
	   key needs a moment. */
	AGENT_STRANGERS = 64,
	AGENT_STRANGERS_OF_ONE = 8, /* from one address */
};

struct served {
	char *name;
	const struct rig_opener *opener;
	bool host;              /* the machine's own memory */
	struct session *holder; /* that has it open; under the agent's lock */
	bool stuck;             /* its work may run for ever: nobody gets it any more */
	bool fresh;             /* each open makes its memory anew, without a byte of an earlier one */
	bool known;             /* whose its memory's bytes are: the holder's to change */
	uint8_t job[RIG_RMT_TOKEN];
};

struct agent {
	const struct rig_rmt_key *key;
	struct served served[AGENT_DEVICES];
	uint32_t nserved;
	bool verbose;
	const char *version;            /* of the program, for who lists what it serves; NULL: none */
	bool keep_memory;               /* one job may find what another left in a device's memory */
	const char *node;               /* of rails; NULL: the address that the controller reached */
	bool plain_rails;               /* rails of libfabric's providers too */
	uint16_t first_port, last_port; /* of data connections; 0 and 0: any */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a session ended */
	struct session *sessions;
	unsigned nsessions;         /* connections of agents are their sessions', each of which bounds them */
	struct stranger *strangers; /* the longest first */
	unsigned nthreads;          /* of connections whose proof is not done, those that were ended too */
	bool ending;                /* nobody is admitted any more */
	uint64_t last_stranger;     /* its number */
	bool words[AGENT_DEVICES * AGENT_SESSIONS]; /* slots of the word array in use */
};

/* agent_served.c */
void agent_init(struct agent *agent);
/* Under its name; the opener is kept, not copied. -ENOSPC, -EEXIST, -ENOMEM, with rig_error(). */
int agent_serve(struct agent *agent, const struct rig_opener *opener, bool host);
void agent_log(const struct agent *agent, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A free slot of the word array, never 0; 0: none. */
uint32_t agent_take_word(struct agent *agent);
void agent_give_word(struct agent *agent, uint32_t slot);
/* Takes the device of that name for a session, waiting for the stop of one whose session has ended: -ENOENT,
   -EBUSY. */
int agent_take(struct session *session, const char *name, struct served **served);
void agent_give(struct session *session, const char *name);
/* Of what the session has taken: whether its memory may hold what is another job's; from now on it is the
   session's. */
bool agent_is_anothers(const struct session *session, const struct served *served);
void agent_mark(struct session *session, struct served *served);
/* The same where it could not be stopped: it stays taken. */
void agent_keep(struct session *session, const char *name);

/* agent_node.c: whether rails can be offered there. -EINVAL, -EADDRNOTAVAIL, with rig_error(), which names
   the addresses that can. */
int agent_check_node(const char *node);

/* agent_listen.c */
/* The proof is done, or has failed: from now on the thread is no stranger's. */
void agent_know(struct agent *agent, uint64_t stranger);
/* A listening socket, or a negative errno with rig_error(). */
int agent_listen(const char *name);
/* HOST:PORT of it, as numbers. */
int agent_where(int listener, char *name, size_t bytes);
/* Serves who connects, until `ending` can be read. */
void agent_accept(struct agent *agent, int listener, int ending);
/* Ends all sessions and waits for that; false: a device could not be stopped, within the time or before. */
bool agent_end(struct agent *agent, unsigned seconds);

#endif
