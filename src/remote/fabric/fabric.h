/* SPDX-License-Identifier: MIT */
/*
 * Data connections as rails need them: memory that peers may write, connections between two processes, writes
 * that the other side is told of, and waiting without looking. "sealed" is ours (sealed.h):
 * encrypted and authenticated, over TCP; it is what is used unless another is asked for. The others are
 * libfabric's and plain: who can read or change packets, or is the other side and lies, does so to the
 * memory that was lent.
 *
 * Each write carries 32 bits, its *note*, which the other side reads from its queue once the bytes are in
 * memory. No order among writes is relied on, nor among completions: providers promise different ones, and
 * the notes are enough. But a note overtakes, and is overtaken by, fewer than 128 others.
 *
 * Two ways to connect, as libfabric's providers have them. "tcp" and "verbs" have connected endpoints: one
 * side listens, the connection request carries a token, and nothing else is taken. "shm" has none: who knows
 * a memory key can write to that memory, keys are 64 random bits, and the kernel lets only the user's own
 * processes near. A sleeping process is woken by a *bell*, a page of memory which both have.
 *
 * Threads: a fabric's functions from any thread; a connection's by one thread at a time, but rig_conn_wake
 * and rig_conn_sleep: any number of the first beside one of the second. Answers: 0 or a negative errno with
 * a text in rig_error(); -EAGAIN comes without a text.
 */
#ifndef RIG_FABRIC_H
#define RIG_FABRIC_H

#include <rdma/fabric.h>

#include "clock.h"
#include "rig_edge.h"

enum {
	RIG_FABRIC_TOKEN = 32,    /* bytes of a token */
	RIG_FABRIC_ADDRESS = 256, /* bytes of a provider's address, at most */
};

struct rig_fabric;
struct rig_conn;

struct rig_fabric_options {
	const char *provider; /* "sealed", or libfabric's "tcp", "verbs", "shm" */
	const char *node;     /* a local address; NULL: the provider's default */
	/* Ports to listen at, where the provider is told; 0 and 0: any. */
	uint16_t first_port, last_port;
};

int rig_fabric_open(const struct rig_fabric_options *options, struct rig_fabric **fabric);

/* After its connections and memory. NULL is allowed. */
void rig_fabric_close(struct rig_fabric *fabric);

/* Whether it has connections, whose close ends what peers write. */
bool rig_fabric_connects(const struct rig_fabric *fabric);
bool rig_fabric_provider_connects(const char *provider);

/* Whether peers write to registered memory by themselves, also while it is being unregistered, until the
 * connection's close. */
bool rig_fabric_one_sided(const struct rig_fabric *fabric);

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Registered memory. Zeroed: none. */
struct rig_fabric_memory {
	struct fid_mr *mr;
	void *local;                      /* what writes from it need */
	struct rig_sealed_targets *lists; /* sealed: where it is, by its key */
	uint64_t key;
};

/* What a peer needs to write to it. */
struct rig_fabric_target {
	uint64_t address; /* of its first byte */
	uint64_t key;
};

/* For peers' writes, or with `target` NULL as a source of writes. */
int rig_fabric_register(struct rig_fabric *fabric, void *at, size_t bytes, struct rig_fabric_memory *memory,
        struct rig_fabric_target *target);

void rig_fabric_unregister(struct rig_fabric_memory *memory);

/* ---- Connections --------------------------------------------------------------------------------------- */

/* How to reach the side that listens, and what it wants to see; and the same of the answer. */
struct rig_conn_address {
	uint8_t token[RIG_FABRIC_TOKEN];
	uint8_t key[RIG_FABRIC_TOKEN]; /* sealed: the public half of the connection's key pair */
	bool aes;                      /* sealed: the processor has AES */
	uint32_t bytes;                /* of the address */
	uint8_t address[RIG_FABRIC_ADDRESS];
	uint64_t bell_pid, bell_fd; /* shm: where its bell is */
};

/* Begins as the side that listens. *mine is for the other side. */
int rig_conn_listen(struct rig_fabric *fabric, struct rig_conn_address *mine, struct rig_conn **conn);

/* Begins as the other side, to `peer`. *mine is the answer. Blocks on nothing. */
int rig_conn_dial(struct rig_fabric *fabric, const struct rig_conn_address *peer,
        struct rig_conn_address *mine, struct rig_conn **conn);

/* Waits until it stands. `peer` is the answer, NULL on the side that dialled. Adds the requests that it
   refused to
 * *refused. */
int rig_conn_finish(struct rig_conn *conn, const struct rig_conn_address *peer,
        const struct rig_deadline *deadline, uint64_t *refused);

/* Disconnects and frees it. NULL is allowed. */
void rig_conn_close(struct rig_conn *conn);

/* Where connections are: the peer reaches no memory through it any more, and nothing can be written. The rest
   of it stays until the close. Elsewhere nothing. */
void rig_conn_cut(struct rig_conn *conn);

/* The provider's part of an operation, first in what a caller names as `context`. */
struct rig_conn_op {
	struct fi_context2 provider;
};

/* The most operations worth having open at once. */
size_t rig_conn_depth(const struct rig_conn *conn);

/* Starts a write. 0: a completion will name `op`; 1: done, `op` is free and the source too; -EAGAIN: not
   now, the
 * queue of completions has to be read first. */
int rig_conn_write(struct rig_conn *conn, const void *from, const struct rig_fabric_memory *source,
        size_t bytes, const struct rig_fabric_target *to, uint64_t offset, uint32_t note,
        struct rig_conn_op *op);

struct rig_conn_event {
	struct rig_conn_op *op; /* a write of ours is done and its source free; or NULL */
	uint32_t note;          /* without op: a write of the peer's is in memory */
};

/* What has happened, at most `room`; moves data as providers need it. The number, 0 for nothing, or a
   negative errno if
 * the connection is broken. */
int rig_conn_read(struct rig_conn *conn, struct rig_conn_event *events, size_t room);

/* Whether the peer disconnected, seen without moving data. */
bool rig_conn_gone(struct rig_conn *conn);

/* Blocks until something may have happened, rig_conn_wake, or `ns` (RIG_CLOCK_NEVER: none). Returns at once
   where a read is
 * due. */
void rig_conn_sleep(struct rig_conn *conn, uint64_t ns);

/* Ends a sleep, this or the next one. Async-signal-safe and takes no lock. */
void rig_conn_wake(struct rig_conn *conn);

/* Whether bytes of a write that was done wait here for the socket: they go by reads and writes, and a
 * sleep ends when there is room. */
bool rig_conn_unsent(const struct rig_conn *conn);

/* Whether operations move on only while this side reads. */
bool rig_conn_by_bell(const struct rig_conn *conn);

/* After writes: wakes the peer if it sleeps where the provider does not. */
void rig_conn_ring(struct rig_conn *conn);

#endif
