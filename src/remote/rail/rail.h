/* SPDX-License-Identifier: MIT */
/*
 * The rail engine: rails (rig_remote_abi.h) over data connections (fabric.h), one engine for a job in a
 * process.
 *
 * Concepts
 *   engine  this process's part of a job's rails, over one provider.
 *   link    a data connection between two engines of a job, made once, before rails over it. Each side has
 *   a half. end     this machine's end of a rail over a link, with the areas and the counts. Each side
 *   makes its own.
 *
 * The two sides know nothing of each other but what a control channel of the caller's carries: opaque
 * *blobs* of at most RIG_RAIL_BLOB bytes, which name addresses, memory keys and tokens. The channel is
 * authenticated and encrypted, for who reads a blob can write to what it names. A blob is parsed as input
 * from outside all the same.
 *
 * Making a link, sides A and B, each in its own process:
 *     A: rig_rail_link_offer  -> blob -> B: rig_rail_link_accept -> blob -> A: rig_rail_link_finish(blob)
 *                                        B: rig_rail_link_finish(no blob), beside A's
 *   A's endpoint takes one connection, of who presents the offer's token, which is good once; every other is
 *   refused before a byte of it reaches memory, and it listens no longer once it has connected or given up.
 *
 *   What then goes over it is encrypted and authenticated (fabric.h, "sealed"), unless the engine is over a
 *   provider of libfabric's: then neither, the token included; who can read the network reads the bytes, and
 *   who can put packets into a TCP connection changes them.
 *
 * Making a rail, over a finished link, in any order:
 *     A: rig_rail_make(its send and receive)        -> blob -> B: rig_rail_join
 *     B: rig_rail_make(send and receive swapped)    -> blob -> A: rig_rail_join
 *   "send" is what the side that calls sends.
 *   An end may be used, by ready too, as soon as it is made; nothing is sent before the join. The other
 *   side's transfers land from rig_rail_make on.
 *
 * The end of a rail
 *   An end lives by the references of its record. The last put, on either side, ends the rail: the engine
 *   stops sending, tells the other engine over the link, which stops too, and each frees its memory,
 *   but over a plain provider an inbound area, to which the other may still write whatever it says: the link
 *   keeps it for its next rails. The other side's end stays, its ready advances and wakes nothing.
 *   So: a controller's last put and a "drop" on the control channel need no other call than
 *   rig_remote_end_put.
 *
 * Failure
 *   rig_rails_fail raises every count of every end of the engine that is still held to RIG_RAIL_FAILED. The
 *   engine fails itself where a link breaks or its peer breaks the protocol, and tells `failed`; it does
 *   not notice silence, nor, over shm, the end of the other process: the control channel does. An orderly
 *   end is rig_rails_stop on both sides before either's rig_rails_close: from then on a link that breaks is
 *   no failure.
 *
 * Threads
 *   Every function may be called from any thread; those on one link's making one at a time. Each finished
 *   link has a thread ("rail"), which takes no signal of the program's, blocks while nothing moves, and
 *   looks without blocking for `spin_ns` after something did. What ready sends goes out in its caller's
 *   thread if no other thread is at the link, else by who is. Callbacks come from that thread, or from that
 *   of rig_rails_fail, with no lock held.
 *
 * Fork
 *   An engine and its ends are the process's that opened it. In a child the areas are not mapped, calls
 *   that answer refuse, and the others, puts among them, do nothing; what they would have freed stays.
 *
 * Locks, outermost first: engine's `lock`; a link's `lock`; the registry of ends by their counts, a leaf.
 *
 * Answers: 0 or a negative errno with a text in rig_error().
 */
#ifndef RIG_RAIL_H
#define RIG_RAIL_H

#include "clock.h"
#include "log.h"
#include "rig_remote_abi.h"

/* Room for any blob. */
#define RIG_RAIL_BLOB 1024u

struct rig_rail_blob {
	size_t bytes;
	uint8_t at[RIG_RAIL_BLOB];
};

/* What an engine has done since it was opened. */
struct rig_rails_stats {
	uint64_t links, ends; /* now */
	uint64_t writes;      /* one-sided writes given to the provider */
	uint64_t bytes;       /* their bytes */
	uint64_t wakes;       /* times that a ready call had the rail look for what is ready */
	uint64_t sleeps;      /* times that a link's thread blocked */
	uint64_t kept;        /* bytes that nobody uses and others may still write to: plain providers */
	uint64_t refused;     /* connections that presented no token, or a wrong one */
};

#define RIG_RAIL_SEALED "sealed"

struct rig_rails_options {
	/* "sealed"; or plain, of libfabric: "tcp"; "shm", within a machine; "verbs", unverified: no device of
	   it was at hand. NULL: "sealed". */
	const char *provider;
	/* The local address that links listen on and connect from, numeric or a name. NULL: for tcp and
	   verbs, 127.0.0.1. */
	const char *node;
	/* Sealed: links listen at a port of these; 0 and 0: any. */
	uint16_t first_port, last_port;
	/* A link's thread looks without blocking for so long after something moved, unless other threads want
	   its CPU. UINT64_MAX: RIG_RAIL_SPIN_NS. */
	uint64_t spin_ns;
	/* Bytes of one write; a longer transfer goes in several, between which other rails have their turn.
	   0: RIG_RAIL_PIECE. Both sides of a link must say the same, which rig_rail_link_accept checks. */
	size_t piece;
	const struct rig_log *log; /* NULL: none */
	/* Told once if the engine fails, with the first cause, after the counts were raised. NULL: nobody. */
	void (*failed)(void *arg, const char *why);
	/* Told after arrived or sent of some end of the engine moved, maybe once for several. It may call
	   ready. Slow work here is work that the link does not do. NULL: nobody. */
	void (*moved)(void *arg);
	void *arg;
};

#define RIG_RAIL_SPIN_NS (50 * RIG_NS_PER_US)
#define RIG_RAIL_PIECE   ((size_t)1 << 20)

struct rig_rails;
struct rig_rail_link;

/* -ENODEV: the provider is not there, or not with what rails ask of it; -EINVAL: none of that name. */
int rig_rails_open(const struct rig_rails_options *options, struct rig_rails **rails);

/* The job has failed: no transfer starts any more, and every count of every held end is raised. The first
   cause is kept and copied. Nothing after rig_rails_stop. */
void rig_rails_fail(struct rig_rails *rails, const char *why);

/* The job is being closed: no transfer starts any more, and what happens to links is no failure. Counts
   stay. */
void rig_rails_stop(struct rig_rails *rails);

/* Stops, and disconnects all links: blocks until their threads are gone and parcels are resolved, so not from
   a callback. Links stay named until the close. */
void rig_rails_down(struct rig_rails *rails);

/* The same, and frees the engine. Links that were begun are finished or put before. Ends
   stay with whoever holds them, as after a rail's end. */
void rig_rails_close(struct rig_rails *rails);

/* The first cause, a text that lives until close, or NULL while the engine has not failed. */
const char *rig_rails_why(struct rig_rails *rails);

void rig_rails_stats(struct rig_rails *rails, struct rig_rails_stats *stats);

/* ---- Links --------------------------------------------------------------------------------------------- */

/* Begins a link as the side that offers. `name` is the peer's, for texts. */
int rig_rail_link_offer(
        struct rig_rails *rails, const char *name, struct rig_rail_blob *offer, struct rig_rail_link **link);

/* Begins it as the other side. -EPROTO: no offer, or one of another provider, version or piece. */
int rig_rail_link_accept(struct rig_rails *rails, const char *name, const struct rig_rail_blob *offer,
        struct rig_rail_blob *answer, struct rig_rail_link **link);

/* Waits until the link stands; `answer` is NULL on the side that accepted. -ETIMEDOUT after the deadline;
   -EPROTO: no answer to this offer; -ECONNREFUSED and others of the connection. After an error the link is as
   good as never begun, and only rig_rail_link_put remains. */
int rig_rail_link_finish(
        struct rig_rail_link *link, const struct rig_rail_blob *answer, const struct rig_deadline *deadline);

/* Gives back a link that was begun. A finished one stays with its engine until rig_rails_close, and with it
   its rails. NULL is allowed. */
void rig_rail_link_put(struct rig_rail_link *link);

/* ---- Ends ---------------------------------------------------------------------------------------------- */

/*
 * This side's end of rail `id` over `link`: sends `send`, receives `receive` (checked, copied). *end has
 * one reference, the caller's; the blob is for the other side's join. -ENOMEM: no memory or registration
 * for the areas; -ECONNABORTED: the engine has failed or stopped, with the cause; -EMFILE: the link has all
 * the rails it can have (65,534).
 */
int rig_rail_make(struct rig_rail_link *link, uint64_t id, const struct rig_remote_transfer *send,
        size_t nsend, const struct rig_remote_transfer *receive, size_t nreceive, struct rig_rail_blob *blob,
        const struct rig_remote_end **end);

/* Joins an end of rig_rail_make with what the other side made; what is ready starts to move. -EPROTO: no
   blob of an end, of another rail, or its transfers do not match; the end stays unjoined. -EALREADY: joined
   before. */
int rig_rail_join(const struct rig_remote_end *end, const struct rig_rail_blob *blob);

/* Whether the rail of an end that is held has ended: by the other side's last put, or with the engine. */
bool rig_rail_over(const struct rig_remote_end *end);

/* ---- Parcels -------------------------------------------------------------------------------------------
 *
 * Bytes that go once, from any memory of one side of a link to memory that the other names. The side that
 * receives *expects* them, and gets a ticket, which the control channel carries to the side that *sends*.
 *
 * A ticket is always resolved, and its callback called, once: the bytes are there (0); the other side said
 * on the control channel that it will not send, so rig_rail_unexpect was called (-ECANCELED); or the link is
 * at an end, by the engine's failure or rig_rails_down (-ECONNABORTED). Until then the memory is the
 * engine's: the other side may be writing there. So a side that has a ticket either sends or says that it
 * will not. What is sent is likewise the engine's until its callback: all handed on (0) or
 * -ECONNABORTED.
 *
 * Only over providers whose end stops the other side's writes: rig_rails_parcels.
 *
 * Callbacks come with no lock held: from the link's thread, or from that of rig_rail_unexpect or
 * rig_rails_down. Sending is done by the link's thread, between rails' pieces. */

/* Of the control channel; checked by who gets it only in that it is no more than what he would send. */
struct rig_parcel_ticket {
	uint32_t number; /* of the link's, from 0 */
	uint64_t bytes;
	uint64_t address, key; /* the provider's names of the memory */
};

typedef void rig_rail_told(void *arg, int err);

/* Whether the engine's links carry parcels. */
bool rig_rails_parcels(const struct rig_rails *rails);
/* Whether those of an engine over the provider (NULL: tcp) would. */
bool rig_rails_parcels_over(const char *provider);

/* Lets the other side write `bytes`, from 1, at `at`. -ECONNABORTED, -ENOTSUP, -EINVAL: no bytes; -ENOMEM;
   -EMFILE: too many at once (32,768). After an error `landed` is not called. */
int rig_rail_expect(struct rig_rail_link *link, void *at, size_t bytes, rig_rail_told *landed, void *arg,
        struct rig_parcel_ticket *ticket);

/* The other side will not send. -ENOENT: no ticket of that number is open. */
int rig_rail_unexpect(struct rig_rail_link *link, uint32_t number);

/* Sends what a ticket is for, soon. -ECONNABORTED, -ENOTSUP, -EINVAL, -ENOMEM. After an error `sent` is not
   called, and the ticket is resolved by the link's end alone or by telling the other side. */
int rig_rail_send(struct rig_rail_link *link, const void *from, const struct rig_parcel_ticket *ticket,
        rig_rail_told *sent, void *arg);

#endif
