/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_USER_CHAN_H
#define RIG_VFIO_USER_CHAN_H

/*
 * A connection to a vfio-user device process: commands with their replies, each with a deadline, and the
 * device's own commands (DMA_READ, DMA_WRITE) served whenever they come. Private to the vfio-user
 * transport.
 *
 * A thread of the connection's own does all receiving: it hands replies to the callers that wait for them
 * and serves DMA through the sink, also while nobody calls. It never waits to send: an answer that does not
 * fit into the socket, or comes while a caller sends, is kept (vfio_user_answer.h), so that a device
 * process which first wants its own bytes received gets that. Any thread may call.
 *
 * Where the device process offers a second socket ("twin_socket", section "VFIO_USER_VERSION"), its
 * commands and their answers go over that one alone, and any number of calls may wait for replies on the
 * first. Where it does not, one call is sent at a time: a process that asks for DMA while it serves a
 * command may take the next message for the answer (libvfio-user does). Against one that asks at any time
 * on one socket, no client can help.
 *
 * The connection ends at the first sign that the two sides no longer agree: the peer hangs up, a deadline
 * passes, or a message is not what the protocol allows. Then the sink is told once, every waiting caller
 * gets -ENODEV, the socket is shut so that the peer learns too, and nothing is sent any more.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vfio_ops.h"
#include "vfio_user_answer.h"
#include "vfio_user_wire.h"

struct rig_vuser_call {
	uint16_t command; /* RIG_VUSER_* */
	const void *head; /* the payload's fixed part */
	size_t head_len;
	const void *data; /* what follows it */
	size_t data_len;
	const int *fds; /* to send along, the caller's */
	unsigned nfds;
	void *reply; /* where the reply's payload goes */
	size_t reply_room;
	bool takes_fd;        /* a reply may bring a descriptor */
	unsigned deadline_ms; /* 0: the connection's */

	size_t reply_len; /* out */
	int reply_fd;     /* out: -1, or the caller's to close */

	/* The connection's: */
	uint16_t id;
	bool done;
	int error; /* of the reply: a positive errno */
	struct rig_vuser_call *next;
};

struct rig_vuser_chan {
	int fd;
	_Atomic int twin; /* the socket of the device's commands; -1: they come over fd */
	unsigned deadline_ms;
	const struct rig_vfio_sink *sink;
	uint64_t max_data; /* data bytes in one message that we take */
	size_t room;       /* of in and of out */
	unsigned char *in, *out;
	pthread_t receiver;
	struct rig_vuser_answers answers; /* the receiver's */

	pthread_mutex_t send_lock; /* one message at a time on the socket */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	struct rig_vuser_call *waiting;
	uint16_t next_id;
	bool ending; /* someone is telling the sink why */
	bool dead;   /* the sink has been told */
	bool many;   /* several calls may wait for replies */

	_Atomic uint64_t messages; /* commands sent */
};

/* Takes over fd (closed by fini, not on failure) and starts the receiver. max_data bounds the data of one
 * message either way. */
int rig_vuser_chan_init(struct rig_vuser_chan *c, int fd, unsigned deadline_ms, uint64_t max_data,
        const struct rig_vfio_sink *sink);

/* What the device process said of a second socket in its answer to VERSION, the first call. NULL, or what
 * is wrong: the descriptor of it did not come, or one came that was not announced. */
const char *rig_vuser_chan_twin(struct rig_vuser_chan *c, bool said);

/* Ends the connection and the receiver; the sink is not told. No other thread is in a call. */
void rig_vuser_chan_quiet(struct rig_vuser_chan *c);

/* After that, or in a child of fork, as the connection is the parent's: closes the sockets, and only that. */
void rig_vuser_chan_close(struct rig_vuser_chan *c);

/* Frees what the caller's memory does not hold. */
void rig_vuser_chan_fini(struct rig_vuser_chan *c);

/* Sends the command and waits for its reply. 0; the errno of the reply's error; -ENODEV once the connection
 * has ended, -ETIMEDOUT from the call whose deadline ended it. The caller words the error; the connection has
 * told the sink why it ended. */
int rig_vuser_call(struct rig_vuser_chan *c, struct rig_vuser_call *call);

/* Ends the connection for a reason that a caller found in a reply: "the device process sent <what>". Answers
 * -EPROTO. */
int rig_vuser_broken(struct rig_vuser_chan *c, const char *what);

/* "REGION_READ", for texts. Never NULL. */
const char *rig_vuser_command_name(unsigned command);

#endif
