/* SPDX-License-Identifier: MIT */
/*
 * A proxy, inside. A value is copied on submit (struct value), sent by whoever finds it ready, and kept until
 * the agent says that it is reached:
 *   queue     values not sent yet, in order; one thread at a time sends them (`sending`): the submitting one
 *             where nothing must be waited for, else the worker
 *   flight    values sent and not reached, in order; the machine's reader places the bytes they bring and
 *             takes them off
 * Large sides go by parcels (rail.h), whose memory is the engine's until they are resolved: a value is done
 * once it is reached there, its parcels are resolved here, and what it followed shows here; stop waits for
 * all parcels.
 * `lock` guards all of it, for a moment, never while anything is sent. The word is raised by the reader, or
 * by who tells of a parcel, after a value's bytes are in place, and by stop.
 */
#ifndef RMT_PROXY_H
#define RMT_PROXY_H

#include "rmt_job.h"
#include "rmt_rails.h"
#include "rmt_request.h"

enum region_kind {
	REGION_REMOTE,  /* memory of the device, or a mapping of it there */
	REGION_LOCAL,   /* of this process */
	REGION_FOREIGN, /* of another proxy, whose bytes are fetched */
	REGION_WORD,
};

struct region {
	enum region_kind kind;
	uint32_t id; /* REMOTE, FOREIGN */
	bool has_address;
	uint64_t address;
	uint8_t *host;
	uint64_t mapped;                 /* LOCAL: bytes of its own mapping; 0: the caller's memory */
	struct rig_rmt_machine *machine; /* FOREIGN */
	uint32_t device;
};

/* A side of a copy in this process. */
struct local {
	uint8_t *at;
	uint64_t pitch, row_bytes, rows;
	bool in; /* a source */
	uint32_t part;
	bool parcel, asked; /* its bytes go by one; the agent has said where to */
};

/* A fetch that a value needs. */
struct foreign {
	struct rig_rmt_machine *machine;
	struct rig_rmt_fetch fetch;
	uint32_t part;
};

struct value {
	struct value *next;
	struct rig_rmt_work work;
	struct rig_wait waits[RIG_RMT_WAITS];
	uint32_t nwaits;
	struct local *locals;
	uint32_t nlocals;
	struct foreign *foreigns;
	uint32_t nforeigns;
	bool pieces; /* parts are pieces of one copy */
	uint64_t local_bytes;
	uint64_t got;     /* of what it brings, up to where messages have come */
	uint32_t parcels; /* of its bytes, not resolved */
	bool aborted;     /* one of them did not come: it is never reached */
	bool reached;     /* there, and here once its parcels have come */
	struct rig_times *times;
	uint64_t handed;
	uint32_t nlaunches;
	bool busy, done;   /* being sent; off the flight */
	uint32_t *numbers; /* after lists and words */
	uint8_t *params;
	struct made **rails; /* that its steps name */
	uint32_t nrails;
};

/* A function that the agent has named: it is asked for once. */
struct known {
	struct known *next;
	struct rig_entry entry;
	char name[];
};

struct image {
	uint32_t id;
	struct known *known; /* with the proxy's lock */
};

/* Measures of a timed value, until they are asked for. */
struct measured {
	struct measured *next;
	uint64_t value;
	uint32_t n;
	uint64_t words[];
};

enum { APPROVED = 1024 };

struct proxy {
	const struct rig_driver *hot; /* first: facts.edge */
	struct rig_rmt_device device; /* as the job knows it */
	struct rig_rmt_machine *m;
	uint32_t id;
	struct rig_rmt_facts facts;
	struct rig_queue queues[RIG_RMT_QUEUES];
	struct rig_counter counters[RIG_RMT_COUNTERS];
	uint32_t row_words; /* of measures */
	struct rig_remote_record record;
	struct region word_region;
	rig_atomic_u64 *word;

	pthread_mutex_t load_lock; /* of a binary on its way */
	pthread_mutex_t lock;
	pthread_cond_t moved; /* sleepers, and the worker */
	pthread_t worker;
	bool sending, quit, stopped;
	struct value *queue, **queue_tail, *flight, **flight_tail;
	struct value *spent; /* values that keep rails, until the worker lets those go */
	uint32_t nvalues;    /* in both */
	uint32_t nparcels;   /* of all values, not resolved */
	uint64_t bytes;      /* of local sides, in both */
	uint64_t submitted;
	_Atomic uint64_t sent; /* the last value sent */
	struct measured *measured;
	bool faulted;
	char reason[RIG_RMT_REASON];
	/* Under the device's turn: hashes of work that the agent said fits, and the most that it staged. */
	uint64_t approved[APPROVED];
	uint64_t staged;
};

/* The proxy that the job knows as `d`. */
static inline struct proxy *rig_rmt_proxy_of(struct rig_rmt_device *d)
{
	return (struct proxy *)((char *)d - offsetof(struct proxy, device));
}

/* rmt_proxy.c */
extern const struct rig_driver_module rig_rmt_module;
int rig_rmt_make(void *opener, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes);

/* rmt_proxy_call.c */
void rig_rmt_proxy_lose(struct proxy *p, const char *reason);
int rig_rmt_proxy_fault(struct proxy *p, const char **fault);
bool rig_rmt_proxy_faulted(struct proxy *p);
/* What a request answered: RIG_FAULT, with the proxy lost, where that is the device's end or the job's. */
int rig_rmt_proxy_judge(struct proxy *p, int err, const char **fault);
/* The request of a device: its number comes first. *payload is malloc's. As judged. */
int rig_rmt_proxy_ask(struct proxy *p, uint8_t kind, const struct rig_rmt_out *body,
        struct rig_rmt_out *payload, const char **fault);
/* An answer was none: ends the job. RIG_FAULT. */
int rig_rmt_proxy_malformed(struct proxy *p, const char **fault);
/* A message without an answer. */
void rig_rmt_proxy_tell(struct proxy *p, uint8_t kind, uint32_t number);

/* rmt_proxy_memory.c, rmt_proxy_code.c: of the module, as rig_edge.h has them */
int rig_rmt_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **fault);
int rig_rmt_free(void *device, void *region, const char **fault);
void rig_rmt_locate(void *device, void *region, struct rig_location *location);
bool rig_rmt_peer(void *device, void *other);
int rig_rmt_map_peer(void *device, void *other, void *region, void **mapped, const char **fault);
int rig_rmt_map_host(void *device, void *host, uint64_t bytes, void **region, const char **fault);
int rig_rmt_dma(void *device, void *region, struct rig_dma_answer *answer, const char **fault);
int rig_rmt_load(void *device, const void *binary, size_t bytes, struct rig_code *code, const char **fault);
int rig_rmt_entry(void *device, void *image, const char *name, struct rig_entry *entry, uint64_t *short_bytes,
        const char **fault);
int rig_rmt_unload(void *device, void *image, const char **fault);

/* rmt_proxy_build.c */
/* NULL: no memory. */
struct value *rig_rmt_value_make(struct proxy *p, uint64_t number, const struct rig_part *parts,
        uint32_t nparts, const struct rig_run *run);
/* Keeps the rails that the steps name. -ENOMEM. */
int rig_rmt_value_keep(struct proxy *p, struct value *v);
/* May ask agents, where it keeps rails. */
void rig_rmt_value_free(struct value *v);
void rig_rmt_values_free(struct value *first);
/* With the lock: the value is over. */
void rig_rmt_value_end(struct proxy *p, struct value *v);
/* How many pieces a copy goes in where its bytes go by parcels; 1: it is none. */
uint32_t rig_rmt_pieces_of(const struct rig_part *parts, uint32_t nparts, const struct rig_run *run);

/* rmt_proxy_room.c */
int rig_rmt_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch);
const struct region *rig_rmt_side_region(const struct rig_run *run, const struct rig_copy_side *side);

/* rmt_proxy_send.c */
int rig_rmt_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure);
void *rig_rmt_worker_run(void *proxy);

/* rmt_proxy_parcel.c */
/* Whether its bytes would go by a parcel. */
bool rig_rmt_local_is_whole(const struct local *l);
bool rig_rmt_locals_overlap(const struct local *a, const struct local *b);
/* Before the value is sent, by who sends it: which of its bytes go by parcels. */
void rig_rmt_value_wrap(struct proxy *p, struct value *v);
/* Whether each part may go in a message of its own. */
bool rig_rmt_value_is_in_pieces(const struct value *v);
/* With the lock: the value in flight, or NULL. */
struct value *rig_rmt_proxy_find(const struct proxy *p, uint64_t number);
/* With the lock: whether the first value is complete but for what it followed, which other proxies show. */
bool rig_rmt_proxy_is_held(const struct proxy *p);
/* With the lock: takes values off that are done. */
void rig_rmt_proxy_advance(struct proxy *p);
/* With the lock, which is given up meanwhile: waits until no memory of the proxy's values is any engine's. An
   agent that does not resolve its tickets within answer_ms fails the job, whose end resolves them. */
void rig_rmt_proxy_await_parcels(struct proxy *p);

/* With the table's lock: where the agent wants a parcel. -EPROTO, -ENOMEM. */
int rig_rmt_proxy_ticket(struct proxy *p, const uint8_t *payload, size_t bytes);

/* rmt_proxy_take.c */
/* struct rig_rmt_device's. */
int rig_rmt_proxy_take(struct rig_rmt_device *d, uint8_t kind, const uint8_t *payload, size_t bytes);
int rig_rmt_measures(void *self, uint64_t value, uint64_t *out, const char **failure);
void rig_rmt_measured_drop(struct proxy *p);

#endif
