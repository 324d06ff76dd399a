/* SPDX-License-Identifier: MIT */
/*
 * A crowd: threads that call every function of rig.h in random order on devices that they share, against a
 * model of what must come of it. The test of a crowd is test_rig_crowd.c.
 *
 * Devices stand at seats of a world. Those at CROWD_LOST and CROWD_HOST are lost and opened again while the
 * threads use them; each opening has a record, which says from before on that its loss may come. Cells are
 * buffers with the bytes that they must hold; a cell is one thread's.
 */
#ifndef CROWD_H
#define CROWD_H

#include <pthread.h>
#include <stdatomic.h>

#include "rig_help.h"

enum crowd_seat {
	/* These two stay. */
	CROWD_PLAIN, /* its work is completed by a thread of the test; times in settle */
	CROWD_BLOCK, /* may block, batches, completes by itself */
	CROWD_LOST,  /* faults or is closed now and then */
	CROWD_HOST,  /* host memory; closed now and then */
	CROWD_IO,
	CROWD_SEATS,
};

#define CROWD_BYTES  256u
#define CROWD_CELLS  6u
#define CROWD_MARKS  24u
#define CROWD_DEPS   8u
#define CROWD_VALUES 4096u
#define CROWD_PAGE   4096u
#define CROWD_MOST   6u

struct opening {
	struct opening *next;
	enum crowd_seat seat;
	struct rig_device *d;     /* the world's reference; threads take theirs by crowd_take */
	atomic_bool ending;       /* from here on it may be lost */
	atomic_bool ended;        /* its close returned */
	_Atomic uint64_t latest;  /* the greatest value that a submit answered */
	_Atomic uint64_t *values; /* the last CROWD_VALUES that were answered */
};

struct cell {
	struct rig_buffer *buffer;        /* NULL: none */
	struct opening *deps[CROWD_DEPS]; /* whose loss may lose it; first the device's own */
	unsigned ndeps;
	uint8_t bytes[CROWD_BYTES];
};

/* A point and what is known of it. */
struct mark {
	struct rig_point point;
	struct opening *deps[CROWD_DEPS];
	unsigned ndeps;
	int state; /* 0: open, 1: reached, RIG_LOST */
};

struct crowd;

struct world {
	uint64_t seed;
	pthread_mutex_t lock; /* seats */
	struct opening *seats[CROWD_SEATS], *openings;
	struct polled *polled[CROWD_LOST + 1], *common, *own[CROWD_MOST];
	struct rig_io_opener io;
	struct rig_key other_key;
	char host_names[CROWD_MOST][16], binary[64], trace[64];
	atomic_bool over, failed;
	atomic_uint kept, unkept;
	/* All add to it, in the order of the device; the sum is known at the end. */
	struct rig_buffer *sum;
	struct rig_image *adder;
	struct rig_submission *add;
	_Atomic uint32_t expected;
	/* Shared under a lock: every byte of it is `byte`. */
	pthread_mutex_t baton_lock;
	struct rig_buffer *baton, *baton_borrowed;
	uint8_t byte;
	bool fails; /* rig_fail may come: the library answers so */
};

struct crowd {
	struct world *w;
	unsigned index, step, steps;
	uint64_t random;
	const char *op;
	struct cell cells[CROWD_CELLS];
	struct mark marks[CROWD_MARKS];
	unsigned nmarks;
	uint8_t *page; /* host memory of its own */
	bool wrong;
	char text[512];
};

/* ---- crowd.c: the world ---- */

void crowd_world_init(struct world *w, uint64_t seed, bool fails);
/* Opens what stands at a seat; false with a failure of `t`. */
bool crowd_seat_open(struct world *w, struct crowd *t, enum crowd_seat seat);
/* Closes what stands there after `faults` may have ended it. */
void crowd_seat_close(struct world *w, enum crowd_seat seat, bool faults);
/* Everything is given back; NULL or what is not. */
const char *crowd_world_fini(struct world *w);

/* ---- crowd_check.c ---- */

/* Below n. */
uint32_t crowd_random(struct crowd *t, uint32_t n);
void crowd_bytes(struct crowd *t, uint8_t *bytes, uint32_t n);
/* The first counts: says it with the seed, and ends the run. Answers false. */
bool crowd_wrong(struct crowd *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What stands at the seat, with a reference of the caller's in *d. */
struct opening *crowd_take(struct crowd *t, enum crowd_seat seat, struct rig_device **d);
/* True: the call answered 0 (or more). False: it answered RIG_LOST, as it may after the loss of one of
   `deps`; anything else is wrong. */
bool crowd_ok(struct crowd *t, int code, const char *what, struct opening *const *deps, unsigned n);
/* The same of one opening, also wrong if it was over before the call. */
bool crowd_live(struct crowd *t, int code, const char *what, struct opening *o, bool was_over);
/* Notes a point of `o` that a submit answered, which `before` was the latest before; false if it is wrong. */
bool crowd_value(struct crowd *t, struct opening *o, uint64_t before, struct rig_point point);
void crowd_mark(struct crowd *t, struct rig_point point, struct opening *const *deps, unsigned n);
/* Asks or waits for a mark: what was reached stays so, what was lost too. */
void crowd_look(struct crowd *t, struct mark *mark, bool waits);

/* A cell that has a buffer, of one of the seats of `seats` (bits), made if need be; NULL: lost meanwhile. */
struct cell *crowd_cell(struct crowd *t, unsigned seats);
void crowd_cell_drop(struct cell *cell);
/* `cell` comes to depend on what `other` does. */
bool crowd_depend(struct crowd *t, struct cell *cell, struct opening *const *deps, unsigned n);
bool crowd_cell_ok(struct crowd *t, struct cell *cell, int code, const char *what);
void crowd_compare(struct crowd *t, struct cell *cell, const uint8_t *got, uint32_t from, uint32_t n);

/* ---- What a thread does ---- */

typedef void crowd_op(struct crowd *t);
struct crowd_named {
	const char *name;
	crowd_op *op;
};

extern const struct crowd_named crowd_memory_ops[], crowd_work_ops[], crowd_life_ops[];
extern const unsigned crowd_memory_nops, crowd_work_nops, crowd_life_nops;

/* A profile of some devices, from start to put (crowd_life.c). */
void crowd_profile(struct crowd *t);

#endif
