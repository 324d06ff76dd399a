/* SPDX-License-Identifier: MIT */
/*
 * Devices of other machines (librig_remote).
 *
 * Concepts
 *   agent    rig-agent, a process on another machine that opens devices there for controllers.
 *   job      this process, its *controller*, and one agent on each of some machines, connected with each
 *            other. Every connection proves the job's key both ways before anything else and is encrypted and
 *            authenticated from then on. This shows that the other
 *            side has the key; it does not show which machine it is, among those that have the key.
 *   machine  named as it is dialled, "HOST:PORT" ("[V6]:PORT").
 *   proxy    a device of this process that stands for one of a machine's: "CPU@HOST:PORT" its memory,
 *            "RVX1:0@HOST:PORT" a board, as its agent names them. It opens there on first use, by an opener
 *            of the usual contract, and answers as any device does: memory, copies, code, launches, waits,
 *            profiles, loss.
 *
 * What differs from a device of this machine
 *   - RIG_DEVICE memory is that machine's. RIG_PINNED memory is this one's: copies move between both;
 *     launches do not reach it, so it has no address. There is no RIG_MAPPED memory.
 *   - Copies between two machines go from agent to agent; the receiving side's proxy makes them.
 *   - A queue waits for other proxies of its machine there; for other producers this process waits before it
 *     hands the work over.
 *   - RIG_FILL parts, which are functions of this process, do not run.
 *   - Times are of that machine's clock, told in this one's: rig_remote_clock says how exactly.
 *   - rig_capability(device, &rig_remote_key) is its record (rig_remote_abi.h).
 *
 * Failure
 *   When a device is lost on its machine, only its proxy is lost. A connection that ends, falls silent or
 *   carries a malformed message ends the whole job: every proxy is lost, and the first cause is the reason
 *   that all of them give. Agents stop the work they run for the job, and calls that wait return. A job does
 *   not reconnect: connect again.
 *
 * Functions return 0 or a negative errno with the reason in rig_error(), and may be called from any thread.
 * A forked child inherits no job: its devices are lost there.
 */
#ifndef RIG_REMOTE_H
#define RIG_REMOTE_H

#include "rig.h"
#include "rig_remote_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rig_remote_job;

/* NULL means all zero. Copied. */
struct rig_remote_options {
	uint32_t version;    /* RIG_EDGE_VERSION */
	uint32_t step_ms;    /* for a connection and the proof of the key; 0: 10,000 */
	uint32_t silence_ms; /* without a sign of life the job fails; at least 50; 0: 10,000 */
	/* For an agent's answer, such as to an open, and for what it has to say of the large copies of a
	   device that it has stopped; then the job fails. 0: 60,000 */
	uint32_t answer_ms;
	/* Of rails and large copies. NULL: "sealed", TCP with bytes encrypted and authenticated.
	   libfabric's "tcp", "verbs" and "shm" are plain, for a network that one trusts: agents need
	   --plain-rails for them. */
	const char *provider;
	const char *node; /* this machine's address for rails; NULL: that of its connection to an agent */
	/* Large copies go over the control connections too, and not over data connections, which are
	   faster. */
	bool no_bulk_rails;
	/* Called once if the job fails, by the thread that notices it: one of the library's, or one of the
	   program's inside a call that sends or asks, such as rig_submit, rig_close or rig_remote_connect,
	   with that call's locks. So it neither waits for a device or another thread's call nor calls
	   rig_remote_close, which waits until it has returned. NULL: nobody. */
	void (*failed)(void *arg, const char *why);
	void *arg;
};

/* Makes a key file, mode 0600. -EEXIST: there is one. rig-agent --make-key does the same. */
RIG_API int rig_remote_make_key(const char *path);

/*
 * Connects to the agents of `n` machines, 1 to 256, with the key of a file that only its owner may read, 64
 * at the same time, and then them to each other, in n / 2 rounds. If something fails, nothing of it is left,
 * and the text names the machine that failed first. -EACCES: another key; -EPERM: the file may be read by
 * others; -ETIMEDOUT, -ECONNREFUSED and others of the network; -ECONNABORTED: what was connected failed
 * meanwhile; -EINVAL: a name or a number; -EREMCHG: a machine's name leads elsewhere from another machine
 * than from here.
 *
 * Blocks for each machine at most step_ms until the key is proven, and as long for each of at most 3 readings
 * of its clock; and for each connection between two machines at most answer_ms, within which the agent that
 * dials has a bound of its own, 10 s. The name service is asked here and there without a bound but its own
 * (resolv.conf(5)): where names may hang, give addresses.
 *
 * Whoever can lead this process's connection for one machine to another one that has the same key is not
 * noticed: the job then uses that one's devices. Machines that must not stand for each other need keys of
 * their own, and so jobs of their own.
 */
RIG_API int rig_remote_connect(const char *const *machines, uint32_t n, const char *key_file,
        const struct rig_remote_options *options, struct rig_remote_job **job);

/* Ends the job: proxies that are still open are lost with the reason "the job was closed", agents stop what
   they have of it. Waits until `failed`, if it is being called, has returned: not to be called in it. Where
   the job has rails, or had large copies, each agent is told first, and has answer_ms. NULL is allowed.
   Openers of the job are gone. */
RIG_API void rig_remote_close(struct rig_remote_job *job);

/* Whether it failed; then *why (if not NULL) is the first cause, until the close. */
RIG_API bool rig_remote_failed(struct rig_remote_job *job, const char **why);

struct rig_remote_listed {
	char name[128]; /* without the machine */
	bool host;      /* the machine's memory */
	bool busy;      /* open, for this or another job */
};

/* Writes what the machine's agent serves, at most `room` devices, and returns their number. Blocks at most
   answer_ms, after which the job fails. -EINVAL: no such machine; -ECONNABORTED: the job is over; -EPROTO:
   the answer is none; -ENOMEM. */
RIG_API int rig_remote_list(
        struct rig_remote_job *job, uint32_t machine, struct rig_remote_listed *listed, uint32_t room);

/* The version of the machine's agent as the last rig_remote_list of it was told, "" before one. -EINVAL,
   -ECONNABORTED. */
RIG_API int rig_remote_agent_version(
        struct rig_remote_job *job, uint32_t machine, char *version, size_t bytes);

/*
 * The opener of "DEVICE@MACHINE", MACHINE as given to connect; *machine (if not NULL) is that text. Both live
 * until the close. The opener's name is DEVICE alone: open it with `machine` in the options, as
 * rig_remote_open does. Nothing is opened. -EINVAL: no such machine in the job.
 */
RIG_API int rig_remote_opener(
        struct rig_remote_job *job, const char *name, const struct rig_opener **opener, const char **machine);

/* Opens "DEVICE@MACHINE". */
static inline int rig_remote_open(struct rig_remote_job *job, const char *name, struct rig_device **device)
{
	struct rig_open_options options;
	const struct rig_opener *opener;
	int err;

	memset(&options, 0, sizeof(options));
	options.version = RIG_EDGE_VERSION;
	err = rig_remote_opener(job, name, &opener, &options.machine);
	return err ? err : rig_open_with(opener, &options, device);
}

/* ---- Rails (rig_remote_abi.h) as programs here use them ---- */

/* Of a direction of a rail that this library makes: more is -E2BIG. */
#define RIG_REMOTE_TRANSFERS 1048576u

/* The count of an end on another machine that a step is about. */
enum rig_remote_step {
	RIG_REMOTE_AWAIT_ARRIVED = 1, /* waits until arrived is at least c, or the job failed */
	RIG_REMOTE_AWAIT_SENT,        /* the same of sent */
	RIG_REMOTE_ADVANCE,           /* calls the end's ready with c */
};

/* A machine's "CPU" proxy runs RIG_WORDS on its queue: steps of so many words. A submission with steps has no
   other parts. So work on a machine follows a rail, and a rail work, with nobody here between. A submit keeps
   the rails that its steps name until the steps are done: the program may put them meanwhile. */
#define RIG_REMOTE_STEP_WORDS 5u

static inline void rig_remote_step(uint32_t words[RIG_REMOTE_STEP_WORDS], enum rig_remote_step step,
        const struct rig_remote_rail *rail, uint64_t c)
{
	words[0] = (uint32_t)step;
	words[1] = (uint32_t)rail->id;
	words[2] = (uint32_t)(rail->id >> 32);
	words[3] = (uint32_t)c;
	words[4] = (uint32_t)(c >> 32);
}

/*
 * Pages that stand for a landing area of the rail's end on `machine`: rig_buffer_of_host of them on a proxy
 * of that machine, whole, is the area as that device's memory, without a host address here. They are not
 * memory: nobody here reads or writes them. Until the job is closed. -ENOENT: the rail has no end there, or
 * no such area.
 */
RIG_API int rig_remote_rail_area(struct rig_remote_job *job, const struct rig_remote_rail *rail,
        uint32_t machine, bool inbound, struct rig_remote_area *area);

/* The same of the end's counts (enum rig_remote_count), where a device there may wait for one or look at it.
   -ENOENT: the rail has no end there. */
RIG_API int rig_remote_rail_counts(struct rig_remote_job *job, const struct rig_remote_rail *rail,
        uint32_t machine, struct rig_remote_area *area);

/* The machine's clock: its nanoseconds less this one's, and by how much that may be off. It asks nothing, and
   answers after the job's failure too. -EINVAL: no such machine; -ECONNABORTED: in a child of fork. */
RIG_API int rig_remote_clock(
        struct rig_remote_job *job, uint32_t machine, int64_t *ahead_ns, uint64_t *error_ns);

struct rig_remote_stats {
	uint64_t sent, received; /* bytes of the control connection */
	uint64_t round_trip_ns;  /* the shortest measured */
};
/* Errors as of rig_remote_clock. */
RIG_API int rig_remote_stats(struct rig_remote_job *job, uint32_t machine, struct rig_remote_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
