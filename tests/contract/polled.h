/* SPDX-License-Identifier: MIT */
/*
 * A driver of the contract over host memory, for tests of the runtime. Its work runs only when a test asks
 * (polled_run), when the runtime sleeps, or in a thread of its own. It checks what the contract asks of a
 * runtime: every breach is counted and the first one's text is kept (polled_breach).
 */
#ifndef POLLED_H
#define POLLED_H

#include "polled_lies.h"
#include "rig_conform.h"
#include "rig_edge.h"

enum polled_call {
	POLLED_MAKE,
	POLLED_FACTS,
	POLLED_ALLOC,
	POLLED_FREE,
	POLLED_MAP_PEER,
	POLLED_MAP_HOST,
	POLLED_DMA,
	POLLED_LOAD,
	POLLED_PLACE,
	POLLED_ENTRY,
	POLLED_UNLOAD,
	POLLED_GROW,
	POLLED_SIGNALED,
	POLLED_SLEEP,
	POLLED_STOP,
	POLLED_RELEASE,
	POLLED_ROOM,
	POLLED_SUBMIT,
	POLLED_COMMIT,
	POLLED_CALLS,
};

#define POLLED_DESCRIPTORS 2u

enum polled_sleep {
	POLLED_SLEEP_RUNS, /* sleeping runs one value that can run */
	POLLED_SLEEP_IDLE, /* sleeping returns at once */
};

enum polled_failure {
	POLLED_FAULTS,  /* the call faults (submit, commit: RIG_FAILED) */
	POLLED_REFUSES, /* the call answers what the device cannot do now, where it may */
};

struct polled_options {
	const char *name;
	const struct rig_key *key; /* NULL: polled_key */
	enum rig_completion completion;
	struct rig_waits waits;
	bool may_block, maps_host, host_addresses, peers;
	bool own_word;    /* brings a word of its own */
	bool batch;       /* submit answers RIG_OK; of 48 values uncommitted all are committed unasked */
	bool place;       /* load answers RIG_PLACE */
	bool thread;      /* a thread runs the work */
	bool stop_short;  /* stop leaves the word as it is; polled_drain raises it */
	bool pinned_none; /* has no RIG_PINNED */
	bool mapped_none; /* has no RIG_MAPPED */
	bool never_maps;  /* map_host answers RIG_NEVER_MAPS */
	bool has_bus;     /* dma answers RIG_BUS */
	bool no_engine;
	bool always_later;    /* breaks the contract: room answers RIG_LATER while idle */
	bool times;           /* writes times before the word shows the value; no settle */
	bool settle;          /* writes times in settle; measures one counter, "groups" */
	unsigned descriptors; /* make opens as many, at most POLLED_DESCRIPTORS */
	enum polled_lie lie;  /* how it breaks the contract */
	int room_code;        /* room of a RIG_WORDS part answers this errno; 0: as it is */
	int load_code;        /* the same of load */
	enum polled_sleep sleep;
	uint32_t capacity;      /* values on the queues at once; 0: 64 */
	uint32_t parts;         /* parts of a value that fit before growth; 0: 16, the most */
	uint32_t short_entries; /* entry answers RIG_NO_MEMORY so often */
	uint32_t short_grows;
	uint32_t no_room;               /* map_host and map_peer answer RIG_NO_ROOM so often */
	uint64_t memory;                /* bytes alloc has; 0: unlimited */
	uint64_t pinned;                /* the same of RIG_PINNED */
	uint64_t budget;                /* 0: UINT64_MAX / 2 */
	uint64_t base;                  /* make raises the word to this */
	int64_t hang_ms;                /* 0: none */
	const struct rig_queue *queues; /* NULL: COMPUTE:0 and COPY:0 */
	uint32_t nqueues;
	int32_t copy_engine; /* with queues */
};

/* The device on the other side of an opener, through any number of opens. */
struct polled;

extern const struct rig_key polled_key;

struct polled *polled_new(const struct polled_options *options);
/* Breach if a handle is not released or a region, image or mapping is left. */
void polled_free(struct polled *p);
const struct rig_opener *polled_opener(struct polled *p);
/* A change of what the facts say, before an open; also the way to break them. */
void polled_edit_facts(struct polled *p, void (*edit)(struct rig_facts *facts));

/* Runs up to `n` values that are committed and whose waits are reached; how many ran. */
unsigned polled_run(struct polled *p, unsigned n);
/* Values may complete up to this one; UINT64_MAX (the default) for all. */
void polled_gate(struct polled *p, uint64_t value);
/* Raises the word of a short stop to the last submitted value. */
void polled_drain(struct polled *p);

/* The `n`-th call of a kind from now fails so; kind POLLED_CALLS: the n-th of all that can. n from 1. */
void polled_fail(struct polled *p, enum polled_call call, uint64_t n, enum polled_failure failure);
/* Whether that came to pass. */
bool polled_failed(struct polled *p);
/* Called at the start of every driver call, in the caller's thread. */
void polled_hook(struct polled *p, void (*hook)(void *arg, enum polled_call call), void *arg);

unsigned polled_count(struct polled *p, enum polled_call call);
/* Outstanding regions, images and handles. */
unsigned polled_left(struct polled *p);
uint64_t polled_held(struct polled *p); /* bytes of own memory */
uint64_t polled_word(struct polled *p);
/* Makes the word of the driver's own show that, also less than before, which no driver may do. */
void polled_set_word(struct polled *p, uint64_t value);
uint64_t polled_last(struct polled *p);           /* the last value given to submit */
const char *polled_stop_reason(struct polled *p); /* of the last stop; NULL: none given */
/* Of the last submit. */
uint32_t polled_nwaits(struct polled *p);
const struct rig_part *polled_parts(struct polled *p, uint32_t *n);
/* The arguments and slots of the last submit, as the driver kept them. */
void polled_last_run(struct polled *p, struct rig_run *run);
/* Words run so far, the last 256. */
uint32_t polled_words(struct polled *p, uint32_t *words, uint32_t n);
/* How many regions start with what place filled in. */
unsigned polled_check_placed(struct polled *p);
/* NULL, or the first breach of the contract. */
const char *polled_breach(struct polled *p);

/* Options by text, for laws: words separated by ',', of batch, place, times, settle, own_word, store, grows,
   hosts (the host addresses all memory), lie=NAME, and with a number pinned, room_code and load_code. Starts
   from a driver that shows as much as it can and runs by itself. -EINVAL with rig_error(). */
int polled_parse(const char *text, struct polled_options *options);
/* A copy of the state that facts.edge points to, which free() ends it. */
void *polled_copy_of_state(const void *device);
/* The name of a lie, such as "lazy". */
const char *polled_lie_name(enum polled_lie lie);
/* The code of the laws for it. */
const struct rig_conform_code *polled_code(const char *arch);

/* Its binaries: this text, and functions "add" (struct polled_add), "limited" (16 threads, 8 parameter
   bytes), "free" (nothing known), and those of rig_conform.h. */
#define POLLED_BINARY "polled image"

struct polled_add {
	uint64_t dst; /* address: uint32_t [groups x threads] */
	uint32_t add, reserved;
};

#endif
