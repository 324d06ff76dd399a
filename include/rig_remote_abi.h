/* SPDX-License-Identifier: MIT */
/*
 * What compiled code needs from another machine's devices.
 *
 * A *proxy* is a device of this process that stands for a device which an *agent*, a process on another
 * machine, opened there. Code for a proxy is compiled here, then loaded and run on that machine, so what it
 * needs is plain data: the device's id on its machine, and from the machine's host a function that makes
 * rails. Each proxy declares one record: the machine's host a RIG_REMOTE_HOST, every other device a
 * RIG_REMOTE_DEVICE. rig_capability(device, &rig_remote_key) finds it, and NULL for a device that is no
 * proxy.
 *
 * Rails
 *   A *rail* carries a fixed set of transfers between host memory of two machines, again and again, without
 *   relaying them through the controller. In each direction it has a fixed array of them, carried once a run.
 *   Each machine has one *end*, in host memory that its devices may borrow, each area starting on a page: two
 *   landing areas, outbound and inbound, each in two copies, and three counts: ready and sent for what it
 *   sends, arrived for what it receives.
 *
 *   In a direction of n transfers, the count c, 1 <= c < RIG_RAIL_FAILED, names run r = (c - 1) / n and
 *   transfer j = (c - 1) % n; the run uses copy k = r % 2 of each landing area. For each c in order:
 *     1. the sender's work places transfer j's bytes at its src in copy k of outbound, then advances ready to
 *        c through its end's ready function, which stores it with release order and wakes the rail;
 *     2. the rail sees ready >= c, moves the bytes to dst in copy k of the receiver's inbound, then stores
 *        arrived = c there with release order: who reads it with acquire order and finds c sees the bytes;
 *     3. the rail stores sent = c at the sender with release order once the source may be written again.
 *
 *   What the user of an end keeps to
 *     - ready advances only through the function. A store to the count alone may never be seen. For work that
 *       cannot call it, host code waits for the work's point and then calls it.
 *     - Counts only grow, and only the rail writes sent and arrived.
 *     - A transfer's bytes are read only after arrived >= c; copy k of outbound is written again only after
 *       sent reached the count of the last transfer that read it.
 *     - A transfer may land in an inbound copy that work still reads. The user orders that, for example by
 *       waiting for the receiver's reads of run r before the sender starts run r + 2.
 *     - Fields of ends and rails are read, never written.
 *
 *   Failure
 *     If the job fails, every count of every end still in use on a machine still running is raised to
 *     RIG_RAIL_FAILED and stays there, so that no wait for one blocks. What the areas hold is then
 *     unspecified: a waiter looks for that value before it reads. Nothing else stores it.
 *
 * References
 *   Reachability, in C, is a count: _get takes a reference, _put returns it. A rail holds its local end.
 *   The rail or the local end keeps both ends; when neither is held, new programs cannot name the rail, and
 *   each end lives while a program already loaded on its machine holds it. Closing or failing the job stops
 *   transfers; an end's memory lives while the end is held. A submission whose work uses an end keeps it
 *   (rig_submission_keep, with a function that puts it), or it may be freed under its work.
 *
 * Answers are 0 or a negative errno whose text is in rig_error(); -EINVAL is misuse. Every function may be
 * called from any thread. librig_remote_abi depends on librig_edge alone.
 */
#ifndef RIG_REMOTE_ABI_H
#define RIG_REMOTE_ABI_H

#include "rig_edge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the records and tables of this header, their first member where passed singly. */
#define RIG_REMOTE_ABI_VERSION 1u

/* Reserved for failure: what every count of an end of a failed job holds. */
#define RIG_RAIL_FAILED UINT64_C(0x7fffffffffffffff)

/* A transfer's end in a copy is at most this. */
#define RIG_REMOTE_REACH (INT64_C(1) << 60)

/* A copy's bytes are a multiple of this. */
#define RIG_REMOTE_COPY_ALIGN 256u

/* Where the counts are in an end's counts area, 64-bit unsigned integers in the host's byte order, each
   alone in its cache line; and the least size of that area. They start at 0. */
enum rig_remote_count {
	RIG_REMOTE_READY = 0,
	RIG_REMOTE_SENT = 128,
	RIG_REMOTE_ARRIVED = 256,
};
#define RIG_REMOTE_COUNTS_BYTES 384u

/* The host memory of an end. */
struct rig_remote_area {
	void *at;     /* on a page; NULL for an empty area */
	size_t bytes; /* 0: empty */
};

/* The same bytes at the same places in every run. */
struct rig_remote_transfer {
	int64_t src;    /* its first byte in a copy of the sender's outbound */
	int64_t dst;    /* its first byte in a copy of the receiver's inbound */
	int64_t length; /* its bytes, at least 1 */
};

/*
 * Whether a rail can carry them: not both empty, each length at least 1, no src or dst negative, src + length
 * and dst + length at most RIG_REMOTE_REACH. 0, or -EINVAL with a text that names the transfer as its
 * direction and index, such as "receive[3]". An empty array may be NULL.
 */
RIG_API int rig_remote_check_transfers(const struct rig_remote_transfer *send, size_t nsend,
        const struct rig_remote_transfer *receive, size_t nreceive);

/* The bytes of one copy of a landing area for checked transfers: the largest src + length (`inbound` false)
   or dst + length (true), rounded up to a multiple of RIG_REMOTE_COPY_ALIGN; 0 for none. */
RIG_API size_t rig_remote_copy_bytes(const struct rig_remote_transfer *transfers, size_t n, bool inbound);

/* ---- Ends and rails ------------------------------------------------------------------------------------ */

/* Advances the ready count at `counts`, the address of an end's counts, as `ready` of struct
   rig_remote_end. */
typedef void (*rig_remote_ready_fn)(void *counts, uint64_t c);

/* One machine's end of a rail. Constant; lives while it is held. */
struct rig_remote_end {
	/* Two copies, one after the other, of the bytes this machine sends; empty if it sends nothing. */
	struct rig_remote_area outbound;
	/* Two copies of the bytes this machine receives; empty if it receives nothing. */
	struct rig_remote_area inbound;
	/* enum rig_remote_count */
	struct rig_remote_area counts;
	/* ready(ready_arg, c) advances ready to at least c with release order and wakes the rail. 0 and
	   values from RIG_RAIL_FAILED on are ignored, and a failed job's count stays at RIG_RAIL_FAILED.
	   From any thread, until the rail ends. */
	void (*ready)(void *ready_arg, uint64_t c);
	void *ready_arg;
	/* The C function that does the same when called with counts.at, for compiled host code, such as a
	   launch on the host whose parameters name the counts. Once the rail has ended it still advances
	   ready, and wakes nothing. It calls nothing of a runtime and blocks only on locks that protect
	   live rails and the connection. */
	rig_remote_ready_fn ready_fn;
};

struct rig_remote_rail {
	uint64_t id; /* among the job's rails, by which a machine's compiled code finds its end there */
	const struct rig_remote_end *local; /* on this process's machine; NULL: the rail has none there */
};

/* One of the counts of an end, with acquire order. */
static inline uint64_t rig_remote_load(const struct rig_remote_end *end, enum rig_remote_count count)
{
	return __atomic_load_n((const uint64_t *)((const char *)end->counts.at + count), __ATOMIC_ACQUIRE);
}

/* A reference more, returned; one less. NULL is allowed and does nothing. The last put of a rail may
   block while its provider tells the machines of its ends, as long as each may take to answer. */
RIG_API const struct rig_remote_end *rig_remote_end_get(const struct rig_remote_end *end);
RIG_API void rig_remote_end_put(const struct rig_remote_end *end);
RIG_API const struct rig_remote_rail *rig_remote_rail_get(const struct rig_remote_rail *rail);
RIG_API void rig_remote_rail_put(const struct rig_remote_rail *rail);

/* ---- For providers ------------------------------------------------------------------------------------- */

/*
 * What a provider is told when the last reference to an end or a rail has gone, by the thread of that put.
 * The record is gone when it is called. The constructors below register nothing else: no clean-up at exit,
 * none of the areas, which the provider owns as it does the transport.
 */
typedef void (*rig_remote_released_fn)(void *owner);

/* A new end with these fields, copied from *fields, and one reference, the caller's. `released` may be NULL.
   Never made from the fields of an existing end. -ENOMEM; -EINVAL: no counts area, ready or ready_fn. */
RIG_API int rig_remote_end_make(const struct rig_remote_end *fields, rig_remote_released_fn released,
        void *owner, const struct rig_remote_end **end);

/* A new rail and one reference, the caller's; it takes a reference of its own to `local`, which may be NULL,
   and returns that before `released` is called. Never made from the fields of an existing rail. -ENOMEM. */
RIG_API int rig_remote_rail_make(uint64_t id, const struct rig_remote_end *local,
        rig_remote_released_fn released, void *owner, const struct rig_remote_rail **rail);

/* ---- Records of proxies -------------------------------------------------------------------------------- */

/* The record of another machine's host. */
struct rig_remote_host {
	const char *machine; /* the machine's name, as its devices' names end */
	void *self;          /* the provider's, first argument of what follows */

	/*
	 * Makes a rail between this host's machine and `peer`'s, or this process's machine for NULL, that
	 * carries `send` from this host's machine and `receive` to it; both are copied. *rail has one
	 * reference, the caller's. A negative errno and a text that names the cause if the job has failed
	 * (-ECONNABORTED) or `peer` is of another job (-EXDEV). -EINVAL: `peer` is this host, or
	 * rig_remote_check_transfers refuses. Any thread; it blocks while the machines are asked, and linked
	 * with each other for their first rail, as long as each may take to answer.
	 */
	int (*rail)(void *self, const struct rig_remote_host *peer, const struct rig_remote_transfer *send,
	        size_t nsend, const struct rig_remote_transfer *receive, size_t nreceive,
	        const struct rig_remote_rail **rail);

	/*
	 * What the machine's agent stated when it loaded the program whose function "run" the machine's host
	 * names `program` (rig_entry.code): for each launch, in the order of its steps with a loop's body in
	 * place, the most threads a group may have, or -1 where none is known. Writes at most `room` of
	 * them to `threads` and returns their number; 0 for no such program. Any thread.
	 */
	size_t (*threads)(void *self, uint64_t program, int64_t *threads, size_t room);
};

/* The record of another machine's device. */
struct rig_remote_device {
	uint64_t id; /* the device's id on its machine, which code names it by */
};

enum rig_remote_kind {
	RIG_REMOTE_HOST = 1, /* the machine's host */
	RIG_REMOTE_DEVICE,   /* any other device of the machine */
};

struct rig_remote_record {
	uint32_t version; /* RIG_REMOTE_ABI_VERSION */
	enum rig_remote_kind kind;
	union {
		struct rig_remote_host host;
		struct rig_remote_device device;
	} u;
};

/* The key of a proxy's record, a struct rig_remote_record. */
RIG_API extern const struct rig_key rig_remote_key;

/* The record under the key, as the facts of a proxy carry it (rig_facts.capability). It lives as long as
   facts ask of a record: until the proxy's `release`. */
RIG_API struct rig_capability rig_remote_declare(const struct rig_remote_record *record);

#ifdef __cplusplus
}
#endif

#endif
