/* SPDX-License-Identifier: MIT */
/*
 * Shared by the sources of rail.h.
 *
 * A note, which each write carries to the other side, is the number there of the end it is for (its slot,
 * 16 bits), a bit that says "the last of this end's has been sent", and the lowest 15 bits of a count.
 *
 * How a ready call is not lost, and none waits for the link: it raises the count, puts the half on the
 * link's list of kicked ones unless it is there, and tries the link's lock. Who holds the lock looks at
 * that list once more after giving it back. So the counts of any number of calls meanwhile are seen in one
 * look.
 */
#ifndef RIG_RAIL_PRIVATE_H
#define RIG_RAIL_PRIVATE_H

#include <pthread.h>

#include "fabric.h"
#include "rail.h"
#include "rail_blob.h"
#include "rail_flow.h"

enum {
	/* Writes that one look begins: of a ready call, which is to return at once; and of the link's
	   thread, which sees failures and stops between two. */
	RIG_LOOK_CALL = 16,
	RIG_LOOK_THREAD = 256,
	RIG_NOTE_BITS = 15,       /* of a count */
	RIG_NOTE_END = 1 << 15,   /* the last of the end's has been sent; the bits are its count */
	RIG_NOTE_SLOT = 16,       /* where the slot is */
	RIG_RAIL_SLOTS = 65534,   /* of a link */
	RIG_PARCEL_SLOT = 65535,  /* a note of a parcel: the other bits are its number */
	RIG_RAIL_PARCELS = 32768, /* expected at once on a link */
	RIG_RAIL_TEXT = 512,      /* bytes of a cause */
	RIG_RAIL_MAILBOX = 8,     /* bytes of a mailbox: what notes without bytes write */
};

/* Bytes under way on a link at once: beyond, another rail's small transfer would wait for long. */
#define RIG_RAIL_INFLIGHT ((size_t)8 << 20)

/* Bytes of rooms that nobody uses and a link keeps all the same, about. */
#define RIG_RAIL_KEPT ((size_t)1 << 30)

struct rig_rail_half;
struct rig_parcel;

/*
 * Memory that the other side writes by itself, over plain providers. What it says of being done is no reason
 * to use such memory for anything else: only the end of the connection is. So a room, once lent over a link,
 * is that link's until its connection is closed: parcels land in one and are copied by us, and those of
 * rails that have ended serve later ones of the link.
 */
struct rig_rail_room {
	struct rig_rail_room *next, *all_next;
	void *at;  /* at a page's start */
	bool used; /* what is there is no longer zeros */
	size_t bytes;
	struct rig_fabric_memory memory;
	struct rig_fabric_target target;
};

struct rig_rail_rooms {
	pthread_mutex_t lock; /* a leaf but for the fabric */
	bool closed;          /* nobody else can write there any more */
	struct rig_rail_room *all, *kept;
	size_t kept_bytes;
};

struct rig_rail_op {
	struct rig_conn_op op;      /* first: the connection names it */
	struct rig_rail_half *half; /* NULL: a parcel's, or a note without bytes */
	struct rig_parcel *parcel;
	uint64_t count;
	size_t bytes;
	struct rig_rail_op *next; /* free */
};

/* This side's part of a rail, behind an end. Under the link's lock but for what says otherwise. */
struct rig_rail_half {
	uint64_t references; /* atomic: the record, the link's slot, the list of kicked, each ready call */
	struct rig_rails *rails;
	struct rig_rail_link *link;
	uint64_t id;
	uint32_t slot, peer_slot;
	struct rig_remote_area outbound, inbound, counts; /* constant */
	struct rig_rail_room *room;                       /* where inbound is; NULL: memory of its own */
	struct rig_fabric_memory source, sink;
	struct rig_fabric_target sink_target, target; /* ours and the other side's inbound */
	struct rig_flow out, in;
	uint64_t next; /* the count to send next */
	size_t offset; /* of its bytes already sent */
	uint32_t open; /* writes under way */
	bool unplaced; /* rig_rail_make failed: it is in no list */
	bool joined;
	bool ending;    /* sends no more */
	bool retired;   /* both sides are done with it */
	bool peer_done; /* the other side writes no more here */
	bool sent_end;  /* the other side knows */
	bool got_end;   /* the other side has sent its last, which is count end_low of it */
	uint32_t end_low;
	bool queued; /* in the link's queue */
	struct rig_rail_half *queue_next;
	bool kicked; /* atomic: on the list of kicked */
	struct rig_rail_half *kick_next;
	struct rig_rail_half *ends_next, **ends_at; /* of the engine's held ends, under its lock */
	struct rig_rail_half *registry_next;        /* under the registry's lock */
};

/* What the other side may write, in the table, or what goes there, in the lists. */
struct rig_parcel {
	struct rig_parcel *next;
	const char *from;
	struct rig_rail_room *room; /* where the bytes land on their way to `to`; NULL: they land there */
	void *to;
	struct rig_parcel_ticket ticket;
	struct rig_fabric_memory memory;
	size_t offset; /* of the bytes handed to the provider */
	uint64_t open; /* pieces under way, or still to come */
	rig_rail_told *told;
	void *arg;
	int err;
};

/* A link's parcels; the lock is a leaf, held for a moment. */
struct rig_parcels {
	pthread_mutex_t lock;
	bool closed;                        /* none begins any more */
	struct rig_parcel **expected;       /* by number; NULL: free */
	uint32_t nexpected, size;           /* held; in the table */
	struct rig_parcel *queue, **tail;   /* with pieces to send */
	struct rig_parcel *flying;          /* all handed to the provider, not all done */
	struct rig_parcel *resolved, **end; /* to be told */
	bool passed_over;                   /* one found no room; under the link's lock */
};

struct rig_rail_link {
	struct rig_rails *rails;
	struct rig_rail_link *next; /* of the engine's, under its lock */
	char name[64];
	struct rig_conn *conn;
	bool stands, has_thread;
	bool quit; /* atomic: the thread is to end */
	pthread_t thread;
	struct rig_rail_half *kick; /* atomic: the list of kicked */
	pthread_mutex_t lock;       /* what follows */
	uint8_t mailbox[RIG_RAIL_MAILBOX], letter[RIG_RAIL_MAILBOX];
	struct rig_fabric_memory mailbox_memory, letter_memory;
	struct rig_fabric_target mailbox_target, peer_mailbox;
	struct rig_rail_half **slots;
	uint32_t nslots, slot_hint;
	struct rig_rail_half *queue, **queue_end; /* with something to send, each in its turn */
	struct rig_rail_op *ops, *free_ops;
	size_t open, open_bytes;    /* writes under way */
	uint32_t budget;            /* writes that this look may still begin */
	bool stalled;               /* the provider took no more */
	bool moved;                 /* a count moved since the last callback */
	bool wrote;                 /* since the last ring */
	bool dead;                  /* nothing goes or comes any more */
	char broken[RIG_RAIL_TEXT]; /* why it is to fail; empty: it is not */
	struct rig_parcels parcels; /* with a lock of its own */
	struct rig_rail_rooms rooms;
};

struct rig_rails {
	uint64_t references; /* atomic: the engine and each half */
	pid_t pid;           /* whose it is */
	struct rig_rails_options options;
	char provider[RIG_RAIL_PROVIDER];
	struct rig_fabric *fabric;
	bool failed, stopped;         /* atomic; set under the lock */
	struct rig_rails_stats stats; /* atomic */
	pthread_mutex_t lock;         /* what follows */
	struct rig_rail_link *links;
	struct rig_rail_half *ends; /* whose records are held */
	char why[RIG_RAIL_TEXT];
};

/* ---- Ends and their counts (rail_end.c) ---- */

static inline uint64_t *rig_rail_count(const struct rig_rail_half *half, enum rig_remote_count count)
{
	return (uint64_t *)((char *)half->counts.at + count);
}

/* Raises a count to at least c with release order; never lowers it. */
void rig_rail_raise(uint64_t *count, uint64_t c);

void rig_rail_half_get(struct rig_rail_half *half);
void rig_rail_half_put(struct rig_rail_half *half); /* may free it; with no lock that its freeing takes:
none */

/* For tests: both directions of an end, on both sides before either is used, are as after `count`. */
void rig_rail_renumber(const struct rig_remote_end *end, uint64_t count);

/* ---- Ends by their counts' address (rail_registry.c); a leaf lock ---- */

void rig_registry_add(struct rig_rail_half *half);
void rig_registry_remove(struct rig_rail_half *half);       /* nothing if it is not there */
struct rig_rail_half *rig_registry_get(const void *counts); /* a reference, or NULL */

/* ---- Sending (rail_send.c), under the link's lock ---- */

/* The half has or may have something to send. */
void rig_rail_queue(struct rig_rail_half *half);

/* Looks at the kicked halves, and gives to the provider what it takes. */
void rig_rail_run(struct rig_rail_link *link);

void rig_rail_written(struct rig_rail_link *link, struct rig_rail_op *op);

/* Sends no more, and says so as soon as it can. */
void rig_rail_end_sending(struct rig_rail_half *half);

/* With no lock held: has the link look at the half soon. */
void rig_rail_kick(struct rig_rail_half *half);

/* The lock; giving it back looks at who was kicked meanwhile. */
void rig_rail_link_lock(struct rig_rail_link *link);
void rig_rail_link_unlock(struct rig_rail_link *link);

/* The same, after sending what is queued. */
void rig_rail_link_serve(struct rig_rail_link *link);

/* With no lock held: serves the kicked halves, unless who holds the lock will. */
void rig_rail_look(struct rig_rail_link *link);

/* ---- Receiving (rail_land.c), under the link's lock ---- */

void rig_rail_landed(struct rig_rail_link *link, uint32_t note);

/* Frees what both sides are done with. May put the slot's reference. */
void rig_rail_retire(struct rig_rail_half *half);

/* ---- Parcels (rail_parcel.c) ---- */

void rig_parcels_init(struct rig_parcels *parcels);
void rig_parcels_fini(struct rig_parcels *parcels);

/* Under the link's lock: hands one piece to the provider. Whether there may be more. */
bool rig_parcel_send(struct rig_rail_link *link);
void rig_parcel_written(struct rig_rail_link *link, struct rig_parcel *parcel);
void rig_parcel_landed(struct rig_rail_link *link, uint32_t number);

/* None begins any more; and, once the connection is closed, every one is resolved. */
void rig_parcels_close(struct rig_rail_link *link);
void rig_parcels_abort(struct rig_rail_link *link);
bool rig_parcels_some(struct rig_rail_link *link); /* not resolved */

/* With no lock held: calls who waits for what is resolved. */
void rig_parcels_tell(struct rig_rail_link *link);

/* The answer of rig_conn_write to it; an op is the half's or the parcel's (rail_send.c). */
int rig_rail_write(struct rig_rail_link *link, struct rig_rail_op owner, const void *from,
        const struct rig_fabric_memory *source, const struct rig_fabric_target *to, size_t offset,
        uint32_t note);
bool rig_rail_has_room(const struct rig_rail_link *link);

/* ---- Rooms (rail_room.c) ---- */

void rig_rooms_init(struct rig_rail_rooms *rooms);
void rig_rooms_fini(struct rig_rail_rooms *rooms);
/* One of at least `bytes`, with anything in it if it is `used`. -ENOMEM, -ECONNABORTED. */
int rig_room_take(struct rig_rail_link *link, size_t bytes, struct rig_rail_room **taken);
void rig_room_give(struct rig_rail_link *link, struct rig_rail_room *room); /* NULL is allowed */
/* The connection is closed: what is kept is freed, and what is taken once it is given. */
void rig_rooms_close(struct rig_rail_link *link);

/* ---- Links (rail_link.c) ---- */

/* Marks the link for failure, for the first reason given; under its lock. */
void rig_rail_link_break(struct rig_rail_link *link, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Ends its thread, without waiting. */
void rig_rail_link_quit(struct rig_rail_link *link);

/* The engine has failed: the other side reaches no memory through the link any more. Its own thread's. */
void rig_rail_link_cut(struct rig_rail_link *link);

/* Disconnects: no thread of it is left, and no memory is reached through it afterwards. */
void rig_rail_link_down(struct rig_rail_link *link);
void rig_rail_link_free(struct rig_rail_link *link);

void *rig_rail_thread(void *link); /* rail_thread.c */

/* ---- Engine (rail.c) ---- */

static inline bool rig_rails_over(const struct rig_rails *rails)
{
	return __atomic_load_n(&rails->failed, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&rails->stopped, __ATOMIC_ACQUIRE);
}

/* Whether this is the process that opened it, not a child of fork. */
bool rig_rails_here(const struct rig_rails *rails);

/* 0, or -ECONNABORTED with the cause. */
int rig_rails_check(struct rig_rails *rails);

void rig_rails_get(struct rig_rails *rails);
void rig_rails_put(struct rig_rails *rails);

static inline void rig_rails_add(uint64_t *counter, uint64_t n)
{
	(void)__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

#endif
