/* SPDX-License-Identifier: MIT */
/*
 * A device under test, used through rig_edge.h as a runtime would, without librig. Every function fails the
 * law when the driver answers what it may not answer there; texts say which call and what it answered.
 */
#ifndef DUT_H
#define DUT_H

#include "conform.h"

enum {
	DUT_REGIONS = 256, /* the most a law holds through dut_alloc */
	DUT_PARTS = 64,
	DUT_WAIT_MS =
	        20000, /* what a device takes at most for the small works of laws, on a loaded machine */
};

struct dut {
	struct conform *c;
	const struct rig_opener *opener;
	const struct rig_driver_module *m;
	const struct rig_driver *hot;
	void *device;
	rig_atomic_u64 *word; /* given to make */
	struct rig_facts facts;
	bool own_word;
	uint64_t base, last;
	uint8_t *scratch; /* for DUT_PARTS parts */
	void *regions[DUT_REGIONS];
	size_t nregions;
	void *image;
	void *image_region;
	bool stopped;
};

/* Words of the process's array for laws: devices from DUT_WORD on, gates from DUT_GATE on. */
#define DUT_WORD 100u
#define DUT_GATE 200u

/* Makes the index-th device and reads its facts. Skips if there is no such device. */
void dut_open(struct conform *c, struct dut *d, unsigned index);
/* Only make, with this word. Its answer; `why` has at least CONFORM_TEXT bytes. */
int dut_make(struct conform *c, struct dut *d, unsigned index, rig_atomic_u64 *word, char *why);
/* Facts of a device made so. */
void dut_read_facts(struct dut *d);
/* Waits for all work, frees what dut_alloc made, stops and releases. */
void dut_close(struct dut *d);
/* Only stop, and then the rest. */
void dut_stop(struct dut *d, const char *reason);
void dut_release(struct dut *d);

/* ---- Memory ---- */

void *dut_alloc(struct dut *d, enum rig_memory kind, uint64_t bytes);
/* NULL if it answers -ENOMEM; then not counted among the device's. */
void *dut_try_alloc(struct dut *d, enum rig_memory kind, uint64_t bytes);
void dut_free(struct dut *d, void *region);
struct rig_location dut_locate(struct dut *d, void *region);
/* The kind of memory that the host and the device's work both address. */
enum rig_memory dut_host_kind(const struct dut *d);
/* A region of that kind, and its bytes. */
void *dut_alloc_host(struct dut *d, uint64_t bytes, uint8_t **host);
/*
 * Memory that launches address, and whose bytes a law has at `host`: one region of that kind or, where
 * launches reach no memory of this process, as those of another machine's device do not, the device's and one
 * here that is copied to and from.
 */
struct dut_cells {
	void *region; /* that launches address */
	uint64_t address, bytes;
	uint8_t *host;
	void *here; /* NULL: it is one region */
};
/* Zeroed. */
struct dut_cells dut_alloc_cells(struct dut *d, uint64_t bytes);
/* What is at `host` is there for work handed over from now on; and what work before wrote is at `host`, once
   that is done. */
void dut_push_cells(struct dut *d, const struct dut_cells *cells);
void dut_pull_cells(struct dut *d, const struct dut_cells *cells);
/* Whether regions of this kind may be asked for. */
bool dut_has_kind(const struct dut *d, enum rig_memory kind);
const char *dut_kind_name(enum rig_memory kind);

/* ---- Work ---- */

/* The first queue that runs the kind; skips if none does. */
uint32_t dut_queue(struct dut *d, enum rig_kind kind);
bool dut_has_queue(const struct dut *d, enum rig_kind kind, uint32_t *queue);
/* A copy of one row on the copy engine; skips where there is none. */
struct rig_part dut_copy(
        struct dut *d, void *dst, uint64_t dst_at, void *src, uint64_t src_at, uint64_t bytes);
struct rig_part dut_fill(struct dut *d, void *dst, uint64_t at, uint64_t bytes, uint8_t byte);

struct dut_work {
	const struct rig_part *parts;
	uint32_t nparts;
	const struct rig_wait *waits;
	uint32_t nwaits;
	const struct rig_run *run; /* NULL: empty */
	struct rig_times *times;
};

/* room's answer, one of enum rig_room. */
int dut_room(struct dut *d, const struct dut_work *work);
/* submit of the next value, after a room that fit, and commit unless it committed itself. The value. */
uint64_t dut_submit_now(struct dut *d, const struct dut_work *work);
/* The same, committed only if `commit`; what submit answered. */
int dut_submit_raw(struct dut *d, const struct dut_work *work, bool commit);
/* Grows the queues for what room answered RIG_GROW to; skips where memory is short. */
void dut_grow(struct dut *d, const struct dut_work *work);
/* Scratch for that many parts, more than DUT_PARTS. */
void dut_more_scratch(struct dut *d, uint32_t parts);
/* Asks room until it fits, grows where it says so; skips the law if the device never runs the work. */
uint64_t dut_submit(struct dut *d, const struct dut_work *work);
/* The same of parts alone. */
uint64_t dut_run(struct dut *d, const struct rig_part *parts, uint32_t nparts);
/* One copy after one wait (NULL: none). */
uint64_t dut_copy_after(struct dut *d, const struct rig_part *copy, const struct rig_wait *wait);

/* What the device shows now. */
uint64_t dut_shown(struct dut *d);
/* Sleeps through the driver until it shows the value. */
void dut_wait(struct dut *d, uint64_t value);
/* The same without any call of the driver (but signaled, of a word of its own). False: it
   stands still for dut_wait_ms. */
bool dut_await(struct dut *d, uint64_t value);

/* A wait for a word of the array that no device has and that the law raises; skips where queues wait for
   nothing. */
struct rig_wait dut_gate(struct dut *d, unsigned index);
void dut_open_gate(const struct rig_wait *gate);

/* ---- Code ---- */

/* Loads the source's code for the device; skips without. */
const struct rig_conform_code *dut_load(struct dut *d);
/* The function's entry. */
struct rig_entry dut_entry(struct dut *d, const char *name);
void dut_unload(struct dut *d);

#define DUT_MOST_PARAMS 64u

/* A launch and the run it needs; lives as long as its work is not yet handed over. */
struct dut_launch {
	struct rig_part part;
	struct rig_run run;
	_Alignas(16) uint8_t args[sizeof(struct rig_block) + DUT_MOST_PARAMS];
};

void dut_launch(struct dut *d, struct dut_launch *l, const char *function, const void *params, uint32_t bytes,
        uint32_t groups, uint32_t threads);
struct rig_block *dut_block(struct dut_launch *l);
uint64_t dut_run_launch(struct dut *d, struct dut_launch *l);

/* ---- The process ---- */

unsigned dut_descriptors(void);
unsigned dut_threads(void);
/* How long a law waits for a word that does not move. */
uint64_t dut_wait_ms(const struct conform *c);
void dut_nap(void); /* a millisecond */
/* Bytes that differ from place to place and from seed to seed, never zero. */
void dut_pattern(uint8_t *bytes, size_t n, uint64_t seed);

#endif
