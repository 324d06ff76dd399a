/* SPDX-License-Identifier: MIT */
/*
 * The messages of a job: their kinds, and the parsers and writers of those that are more than a few numbers.
 *
 * "C" is the controller, "A" an agent. A request has a number of the controller's choosing that the answer
 * repeats. Devices, regions, images and functions are named by numbers that the agent gave out. Parsers are
 * pure functions of bytes, which answer -EPROTO for what no writer wrote, or -ENOMEM.
 */
#ifndef RMT_FRAMES_H
#define RMT_FRAMES_H

#include "rig_remote_abi.h"
#include "rmt_wire.h"

enum rig_rmt_kind {
	RIG_RMT_JOIN = 1, /* the first of a connection: a role, the job's token; an agent's gets an ANSWER */
	RIG_RMT_BEAT,     /* nothing; shows life */
	RIG_RMT_ANSWER,   /* A: request, status, text, payload */
	RIG_RMT_PING,     /* C: request; the payload of its answer is the agent's clock */
	RIG_RMT_LIST,     /* C: request; payload: names and kinds of what the agent serves, its version */
	RIG_RMT_OPEN,     /* C: request, name; payload: facts */
	RIG_RMT_ALLOC,    /* C: request, device, kind, bytes; payload: region */
	RIG_RMT_FREE,     /* C: device, region */
	RIG_RMT_MAP_PEER, /* C: request, device, other device, its region; payload: region */
	RIG_RMT_CODE,     /* C: device, bytes of the binary of the next LOAD */
	RIG_RMT_LOAD,     /* C: request, device, bytes in all; payload: image */
	RIG_RMT_ENTRY,    /* C: request, device, image, name; payload: entry */
	RIG_RMT_UNLOAD,   /* C: device, image */
	RIG_RMT_CHECK,    /* C: request, then as SUBMIT: would room ever fit it */
	RIG_RMT_SUBMIT,   /* C: work, below */
	RIG_RMT_DATA,     /* C, A: device, value, offset, bytes of the value's local sides */
	RIG_RMT_TICKET,   /* A: device, value, part, ticket: where the bytes of the part's parcel go */
	RIG_RMT_VOID,     /* A: the number of a destination's ticket, for which nothing comes */
	RIG_RMT_REACHED,  /* A: device, value, times, measures */
	RIG_RMT_LOST,     /* A: device, reason */
	RIG_RMT_STOP,     /* C: request, device, whether for a reason, reason: ends the device */
	RIG_RMT_FAILED,   /* C, A: the job failed, because of which machine, reason */
	RIG_RMT_CLOSE,    /* C: the job ends in order */
	RIG_RMT_LINK,     /* C: request, machine, name, ms: an agent connects to another, within so long */
	RIG_RMT_RAIL,     /* C: request, then what rails need, below; payload: a blob */
	RIG_RMT_MAP_RAIL, /* C: request, device, rail, area; payload: region */
	RIG_RMT_FETCH,    /* C: a region's bytes go to an agent, perhaps this one, for a copy there */
	RIG_RMT_FETCHED,  /* between agents: fetch, bytes in all, offset, bytes */
	RIG_RMT_CLAIM,    /* between agents: fetch, bytes, ticket: where its parcel goes; 0: nowhere */
	RIG_RMT_UNCLAIM,  /* between agents: fetch, claimed before: FETCHED with a reason, or bytes */
	RIG_RMT_KINDS,
};

enum rig_rmt_role { RIG_RMT_CONTROLLER = 1, RIG_RMT_AGENT };

enum {
	RIG_RMT_TOKEN = 32,
	RIG_RMT_AGENT_VERSION = 64,     /* bytes of the text */
	RIG_RMT_PARTS = 4096,           /* of a submission */
	RIG_RMT_WAITS = 64,             /* likewise */
	RIG_RMT_DATA_BYTES = 240 << 10, /* of a DATA at most */
	RIG_RMT_PIECE = 8 << 20,       /* of a copy that goes in several SUBMITs, so that the device begins */
	RIG_RMT_PARCEL_FROM = 1 << 19, /* fewer bytes of a part go as DATA */
	RIG_RMT_QUEUES = 64,
	RIG_RMT_COUNTERS = 64,
};

/* The most bytes of local sides in a submission, and of a binary. */
#define RIG_RMT_LOCAL_BYTES  (UINT64_C(256) << 20)
#define RIG_RMT_BINARY_BYTES (UINT64_C(256) << 20)

/* Memory of a rail's end, as MAP_RAIL names it. */
enum rig_rmt_area { RIG_RMT_OUTBOUND, RIG_RMT_INBOUND, RIG_RMT_COUNTS, RIG_RMT_AREAS };

/* The counts are a page of their own. */
enum { RIG_RMT_COUNTS_BYTES = 4096 };

struct rig_rmt_join {
	uint32_t role;
	uint8_t token[RIG_RMT_TOKEN];
	uint32_t silence_ms;
	char machine[RIG_RMT_NAME]; /* its number in the job: CONTROLLER: the agent's; AGENT: the sender's */
	uint32_t to;                /* AGENT: the number of the machine that was dialled */
};
int rig_rmt_join_parse(const uint8_t *bytes, size_t n, struct rig_rmt_join *join);
void rig_rmt_join_put(struct rig_rmt_out *out, const struct rig_rmt_join *join);

/* The head of an answer; its payload is what is left in *in. */
struct rig_rmt_answer {
	uint32_t request;
	int32_t status;
	char text[RIG_RMT_REASON];
};
int rig_rmt_answer_parse(struct rig_rmt_in *in, struct rig_rmt_answer *answer);
void rig_rmt_answer_put(struct rig_rmt_out *out, const struct rig_rmt_answer *answer);

/* ---- Work ---- */

enum rig_rmt_where {
	RIG_RMT_HERE,  /* a region of the device */
	RIG_RMT_LOCAL, /* memory of the controller's: bytes travel as DATA, row after row, part after part */
	RIG_RMT_FOREIGN, /* memory of another device, perhaps of another machine: bytes come as FETCHED */
	RIG_RMT_LOCAL_PARCEL,   /* as LOCAL, by a parcel over the link of rails (rail.h) */
	RIG_RMT_FOREIGN_PARCEL, /* as FOREIGN, of another machine, by a parcel */
	RIG_RMT_WHERES,
};

/* What a parcel's sender is told, but its bytes, which both sides know. */
struct rig_rmt_ticket {
	uint32_t number;
	uint64_t address, key;
};

struct rig_rmt_side {
	uint32_t where;
	uint32_t region;              /* HERE; FOREIGN and its parcel: the fetch's number */
	uint64_t offset, pitch;       /* HERE */
	uint32_t machine;             /* FOREIGN_PARCEL: whose memory it is */
	struct rig_rmt_ticket ticket; /* LOCAL_PARCEL, a destination's */
};

struct rig_rmt_part {
	uint32_t queue, kind;
	uint32_t nafter;
	const uint32_t *after;
	/* RIG_WORDS */
	uint32_t nwords;
	const uint32_t *words;
	/* RIG_COPY */
	struct rig_rmt_side dst, src;
	uint64_t row_bytes, rows;
	bool fill;
	uint8_t byte;
	/* RIG_LAUNCH */
	uint32_t function, nparams;
	struct rig_block block;
	const uint8_t *params;
};

struct rig_rmt_wait {
	uint32_t device;
	uint64_t value;
};

struct rig_rmt_work {
	uint32_t request; /* CHECK */
	uint32_t device;
	uint64_t value;
	bool timed;
	bool partial;   /* more messages of this value follow: nothing is told yet */
	uint32_t first; /* the number in the value of the first part here */
	uint32_t nwaits;
	struct rig_rmt_wait waits[RIG_RMT_WAITS];
	uint32_t nparts;
	struct rig_rmt_part *parts;   /* malloc's, with what they point to */
	uint64_t local_in, local_out; /* bytes of local sources and destinations */
};

/* rig_rmt_work_free ends what it made. */
int rig_rmt_work_parse(const uint8_t *bytes, size_t n, struct rig_rmt_work *work);
void rig_rmt_work_free(struct rig_rmt_work *work);
/* What an agent takes to stage so many bytes: a power of two. */
uint64_t rig_rmt_staging_bytes(uint64_t bytes);
void rig_rmt_work_put(struct rig_rmt_out *out, const struct rig_rmt_work *work);

/* ---- Facts ---- */

enum { RIG_RMT_FACT_TEXT = 64 };

struct rig_rmt_facts {
	uint32_t device;
	bool host; /* the machine's memory */
	char name[RIG_RMT_NAME], arch[RIG_RMT_FACT_TEXT], bus[RIG_RMT_FACT_TEXT];
	uint64_t budget;
	uint32_t nqueues;
	struct {
		char name[RIG_RMT_FACT_TEXT];
		uint32_t runs;
	} queues[RIG_RMT_QUEUES];
	bool has_copy_engine;
	uint32_t copy_engine;
	bool has_hang_ms;
	int64_t hang_ms;
	int64_t alignment;
	bool has_cache_bytes;
	int64_t cache_bytes;
	uint64_t staged; /* bytes that the agent has staging memory for, without being asked */
	uint32_t ncounters;
	struct {
		char name[RIG_RMT_FACT_TEXT];
		uint32_t values;
	} counters[RIG_RMT_COUNTERS];
};
int rig_rmt_facts_parse(struct rig_rmt_in *in, struct rig_rmt_facts *facts);
void rig_rmt_facts_put(struct rig_rmt_out *out, const struct rig_rmt_facts *facts);

/* ---- Regions, entries ---- */

struct rig_rmt_region {
	uint32_t region;
	bool has_address;
	uint64_t address;
};
int rig_rmt_region_parse(struct rig_rmt_in *in, struct rig_rmt_region *region);
void rig_rmt_region_put(struct rig_rmt_out *out, const struct rig_rmt_region *region);

struct rig_rmt_entry {
	uint32_t kind; /* enum rig_entry_kind */
	uint32_t function;
	uint64_t code, short_bytes;
	bool launches, has_params, has_threads;
	uint32_t params, threads;
};
int rig_rmt_entry_parse(struct rig_rmt_in *in, struct rig_rmt_entry *entry);
void rig_rmt_entry_put(struct rig_rmt_out *out, const struct rig_rmt_entry *entry);

/* ---- Reached ---- */

enum { RIG_RMT_MEASURES = 8192 }; /* words of a value's measures in a message */

struct rig_rmt_reached {
	uint32_t device;
	uint64_t value;
	bool timed;
	uint64_t start, end; /* of the agent's clock; both 0: not timed */
	uint32_t nmeasures;
	uint64_t measures[RIG_RMT_MEASURES]; /* as `measures` of struct rig_driver writes them */
};
int rig_rmt_reached_parse(const uint8_t *bytes, size_t n, struct rig_rmt_reached *reached);
void rig_rmt_reached_put(struct rig_rmt_out *out, const struct rig_rmt_reached *reached);

/* ---- Fetches ---- */

struct rig_rmt_fetch {
	uint32_t id, machine; /* to which agent the bytes go */
	uint32_t device, region;
	uint64_t offset, pitch, row_bytes, rows;
	bool parcel; /* that agent names where to */
};
int rig_rmt_fetch_parse(const uint8_t *bytes, size_t n, struct rig_rmt_fetch *fetch);
void rig_rmt_fetch_put(struct rig_rmt_out *out, const struct rig_rmt_fetch *fetch);

/* ---- Tickets ---- */

void rig_rmt_ticket_put(struct rig_rmt_out *out, const struct rig_rmt_ticket *ticket);
/* A number too many is as any that is none. */
struct rig_rmt_ticket rig_rmt_ticket_get(struct rig_rmt_in *in);

struct rig_rmt_want { /* TICKET */
	uint32_t device;
	uint64_t value;
	uint32_t part;
	struct rig_rmt_ticket ticket;
};
int rig_rmt_want_parse(const uint8_t *bytes, size_t n, struct rig_rmt_want *want);
void rig_rmt_want_put(struct rig_rmt_out *out, const struct rig_rmt_want *want);

struct rig_rmt_claim { /* CLAIM */
	uint32_t fetch;
	uint64_t bytes;
	struct rig_rmt_ticket ticket;
};
int rig_rmt_claim_parse(const uint8_t *bytes, size_t n, struct rig_rmt_claim *claim);
void rig_rmt_claim_put(struct rig_rmt_out *out, const struct rig_rmt_claim *claim);

/* VOID and UNCLAIM: one number. */
int rig_rmt_number_parse(const uint8_t *bytes, size_t n, uint32_t *number);

/* ---- Rails ---- */

enum rig_rmt_rail_op {
	RIG_RMT_RAIL_OFFER = 1, /* peer, name, provider; a link to the peer is begun: blob */
	RIG_RMT_RAIL_ACCEPT,    /* the same, and the offer: blob; the link is finished meanwhile */
	RIG_RMT_RAIL_FINISH,    /* peer, and the answer to the offer, or none */
	RIG_RMT_RAIL_MAKE,      /* peer, rail, its transfers or the last of them: blob */
	RIG_RMT_RAIL_MORE,      /* rail, transfers that come before those of MAKE */
	RIG_RMT_RAIL_JOIN,      /* rail, blob */
	RIG_RMT_RAIL_DROP,      /* rail */
	RIG_RMT_RAIL_HALT,      /* rails move nothing any more, and links may end */
	RIG_RMT_RAIL_OPS,
};

enum {
	RIG_RMT_BLOB = 1024,
	RIG_RMT_HERE_PEER = 0xffff,       /* the controller, among machines */
	RIG_RMT_TRANSFERS = 4096,         /* of a direction, in a message */
	RIG_RMT_RAIL_TRANSFERS = 1 << 20, /* in all: RIG_REMOTE_TRANSFERS */
};

struct rig_rmt_rail {
	uint32_t op, peer;
	uint64_t rail;
	char name[RIG_RMT_NAME], provider[RIG_RMT_NAME];
	uint32_t nblob;
	uint8_t blob[RIG_RMT_BLOB];
	uint32_t nsend, nreceive;
	struct rig_remote_transfer *transfers; /* malloc's: those of send, then those of receive */
};

/* free(transfers) ends what it made. */
int rig_rmt_rail_parse(struct rig_rmt_in *in, struct rig_rmt_rail *rail);
void rig_rmt_rail_put(struct rig_rmt_out *out, const struct rig_rmt_rail *rail,
        const struct rig_remote_transfer *send, const struct rig_remote_transfer *receive);

#endif
