/* SPDX-License-Identifier: MIT */
/*
 * A job's controller, inside. Who may touch what:
 *   job->lock      the reason, the numbers of requests and fetches, openers, references
 *   machine->lock  the requests that wait, the table of proxies; innermost but for a proxy's
 *   proxy->lock    rmt_proxy.h
 * A machine's reader takes each for a moment and waits for nothing but bytes, with none of them held; it
 * sends nothing.
 */
#ifndef RMT_JOB_H
#define RMT_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "rig_remote.h"
#include "rmt_chan.h"
#include "rmt_frames.h"

enum {
	RIG_RMT_MACHINES = 256,
	RIG_RMT_DEVICES = 64, /* that a machine opens for a job over its life */
	RIG_RMT_ANSWER_MS = 60000,
};

struct proxy;
struct made; /* a rail of the job's */

struct rig_rmt_request {
	struct rig_rmt_request *next;
	uint32_t number;
	bool done;
	struct rig_rmt_answer answer;
	struct rig_rmt_out payload;
};

/* The offset of a machine's clock, from the exchange that bounds it best. */
struct rig_rmt_clock {
	int64_t ahead;
	uint64_t error, at; /* of then, in this machine's time; it grows with the time since */
	uint64_t round_trip;
};

struct rig_rmt_machine {
	struct rig_remote_job *job;
	uint32_t index;
	char name[RIG_RMT_NAME];
	struct rig_rmt_chan *chan; /* set once it has joined, under the lock */
	pthread_t reader;
	bool reading;

	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct rig_rmt_request *requests;
	struct proxy *proxies[RIG_RMT_DEVICES];
	char *losses[RIG_RMT_DEVICES]; /* of devices that are lost before their proxy is in the table */
	struct rig_rmt_clock clock;
	bool has_clock;
	atomic_bool tried;  /* to link with it for parcels */
	uint32_t ping;      /* the number of the one under way; 0: none */
	uint64_t ping_sent; /* when */
};

struct rig_rmt_opener {
	struct rig_rmt_opener *next;
	struct rig_opener opener;
	char name[RIG_RMT_NAME];
	struct rig_rmt_machine *machine;
};

struct rig_remote_job {
	struct rig_remote_options options;
	struct rig_rmt_key key;
	uint8_t token[RIG_RMT_TOKEN];
	uint32_t nmachines;
	struct rig_rmt_machine *machines;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t refs; /* the program's, and one a proxy */
	uint32_t next_request, next_fetch;
	struct rig_rmt_opener *openers;
	atomic_bool over;            /* failed or closed; `reason` is written before */
	bool failed, forked;         /* forked: this is a child's copy, which is nobody's */
	bool failing;                /* its failure is being told: the engine of rails stays meanwhile */
	struct rig_remote_job *next; /* of the process's */
	char reason[RIG_RMT_REASON];
	pthread_t beats;
	bool beating;
	struct rig_rmt_rails *rails; /* rmt_rails.c's */
};

/* The first cause is kept. */
void rig_rmt_job_fail(struct rig_remote_job *job, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
static inline bool rig_rmt_job_over(const struct rig_remote_job *job)
{
	return atomic_load_explicit(&job->over, memory_order_acquire);
}
void rig_rmt_job_get(struct rig_remote_job *job);
void rig_rmt_job_put(struct rig_remote_job *job);

/* -ECONNABORTED with the reason. */
int rig_rmt_over_error(const struct rig_remote_job *job);

/* rmt_connect.c: with every machine, and those with each other; and the beats. What failed first is the
   error, in rig_error() too; what was made is the close's. */
int rig_rmt_connect_all(struct rig_remote_job *job);

/* rmt_reader.c: a machine's thread */
void *rig_rmt_reader_run(void *machine);

/* rmt_request.c */
/* The job fails by what its connection to the machine answered. */
void rig_rmt_connection_fail(struct rig_rmt_machine *m, int err);
/* Sends; a failure is the job's. -ECONNABORTED: the job is over. */
int rig_rmt_send(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_out *out, const void *body,
        size_t bytes);
/*
 * Sends a request, `out` without its number, and waits for the answer. `answer_ms` 0: the job's. The answer's
 * status, with its text in rig_error(), or -ECONNABORTED: the job is over, with its reason. *payload (if not
 * NULL) is the caller's to free.
 */
int rig_rmt_request(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_out *out,
        unsigned answer_ms, struct rig_rmt_out *payload);
uint32_t rig_rmt_next_fetch(struct rig_remote_job *job);

/* rmt_fork.c: a child of fork has no job. Listed jobs are over in it, their descriptors closed. */
int rig_rmt_fork_list(struct rig_remote_job *job);
void rig_rmt_fork_unlist(struct rig_remote_job *job);

/* rmt_clock.c */
void rig_rmt_clock_ping(struct rig_rmt_machine *m);
/* An answer came; whether it was the ping's. With the lock. */
bool rig_rmt_clock_answer(struct rig_rmt_machine *m, uint32_t number, const uint8_t *payload, size_t bytes);
int rig_rmt_clock_measure(struct rig_rmt_machine *m);
/* The clock as it stands, its error grown to now. */
struct rig_rmt_clock rig_rmt_clock_now(struct rig_rmt_machine *m);

/* rmt_proxy.c */
extern const struct rig_driver_module rig_rmt_module;
int rig_rmt_make(void *opener, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes);
/* What a reader brings; -EPROTO. */
int rig_rmt_proxy_ticket(struct rig_rmt_machine *m, const uint8_t *payload, size_t bytes);
int rig_rmt_proxy_take(struct rig_rmt_machine *m, uint8_t kind, const uint8_t *payload, size_t bytes);
/* The job is over. */
void rig_rmt_proxy_lose(struct proxy *p, const char *reason);

/* rmt_rails.c */
int rig_rmt_rails_open(struct rig_remote_job *job);
void rig_rmt_rails_fail(struct rig_remote_job *job, const char *why);
/* In the order of a job's end: while agents answer; once its threads are gone; with its last reference. */
void rig_rmt_rails_close(struct rig_remote_job *job);
void rig_rmt_rails_end(struct rig_remote_job *job);
void rig_rmt_rails_free(struct rig_remote_job *job);
/* Whether these are pages that stand for an area of a rail on that machine. */
bool rig_rmt_rails_window(
        struct rig_rmt_machine *m, const void *at, uint64_t bytes, uint64_t *rail, enum rig_rmt_area *area);
/* The rail of that number, of which the ends stay for work under way; NULL: there is none. */
struct made *rig_rmt_rails_keep(struct rig_remote_job *job, uint64_t id);
/* May ask agents: not for readers, nor with a lock. */
void rig_rmt_rails_let(struct made *made);
void rig_rmt_rails_host(struct rig_rmt_machine *m, struct rig_remote_host *host);

/* rmt_parcels.c: any thread, with no lock of a proxy's, as who is told takes it. */
/* Whether parcels go between the machine and here, or between two; the first call makes the link. */
bool rig_rmt_parcels_here(struct rig_rmt_machine *m);
bool rig_rmt_parcels_between(struct rig_rmt_machine *a, struct rig_rmt_machine *b);
typedef void rig_rmt_told(void *arg, int err);
/* As rig_rail_expect, rig_rail_send and rig_rail_unexpect. */
int rig_rmt_parcel_expect(struct rig_rmt_machine *m, void *at, uint64_t bytes, rig_rmt_told *landed,
        void *arg, struct rig_rmt_ticket *ticket);
int rig_rmt_parcel_send(struct rig_rmt_machine *m, const void *from, uint64_t bytes,
        const struct rig_rmt_ticket *ticket, rig_rmt_told *sent, void *arg);
void rig_rmt_parcel_void(struct rig_rmt_machine *m, uint32_t number);

#endif
