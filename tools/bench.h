/* SPDX-License-Identifier: MIT */
/*
 * rigctl bench: rows and how they are measured.
 *
 * A *row* is one operation of the library (ours) and up to BENCH_FLOORS things that do the same with less:
 * its floors. A *sample* is row->batch operations timed together. Samples of ours and of the floors are taken
 * in turns, a block each, so that what else the machine does meets all of them alike; the samples that open a
 * block do not count.
 *
 * One thread. Errors: 0 or a negative errno with the text in rig_error(). -ENOMEM and -ENOTSUP from `prepare`
 * or ours mean that the device has no room for the row, or does not do it: the row is skipped and says why. A
 * floor that fails is not measured and says why.
 */
#ifndef RIGCTL_BENCH_H
#define RIGCTL_BENCH_H

#include <stdbool.h>

#include "bench_stat.h"
#include "rig.h"
#include "rig_vfio.h"

#define BENCH_FLOORS 2u
#define BENCH_TEXT   200u /* of a reason */

struct bench_hand;
struct bench_row;

/* What rows use. While rows are measured that open a device of their own, device, record and hand are
 * NULL. */
struct bench {
	const char *device_text;
	int cpu; /* that the measuring thread has for itself; -1: none */
	struct rig_device *device;
	const struct rig_vfio_record *record;
	struct bench_hand *hand; /* NULL: hand_why says why there is none */
	char hand_why[BENCH_TEXT];

	/* Of the row that is measured: made by its prepare, given back by bench_clear. */
	struct rig_image *image;
	struct rig_submission *submission;
	struct rig_run_args *run;
	struct rig_buffer *a, *b;
	struct rig_point point;
	uint8_t *host, *host2; /* host memory of row->bytes, page-aligned */

	uint64_t open_messages; /* sent by devices that rows opened */
};

/* Takes one sample: *ns is what row->batch operations took. */
typedef int bench_sample(struct bench *bench, const struct bench_row *row, uint64_t *ns);

struct bench_floor {
	const char *what; /* NULL: none */
	bench_sample *sample;
	bool by_hand; /* needs bench->hand */
};

enum bench_group { BENCH_TRIPS, BENCH_BULK, BENCH_MEMORY, BENCH_LIFE, BENCH_GROUPS };

struct bench_row {
	const char *name;
	enum bench_group group;
	const char *unit; /* what an operation is */
	uint32_t batch;   /* operations a sample; 0: 1 */
	uint32_t warm;    /* samples before each block that do not count */
	uint32_t patient; /* times the usual time; 0: 1 */
	uint64_t bytes;   /* that an operation moves, allocates or maps; 0: none */
	enum rig_memory kind;
	bool trimmed;   /* the library's cache is emptied after each operation */
	bool silent;    /* ours must send no message where doorbells and status are mapped */
	bool opens;     /* opens a device of its own, after bench->device was closed */
	bool uncounted; /* its messages cannot be counted */
	int (*prepare)(struct bench *bench, const struct bench_row *row); /* NULL: nothing to make */
	bench_sample *ours;
	struct bench_floor floor[BENCH_FLOORS];
};

/* The rows, ending with a NULL name. */
extern const struct bench_row bench_trips[], bench_copies[], bench_memory[], bench_life[];

struct bench_result {
	const struct bench_row *row;
	char skipped[BENCH_TEXT];                     /* why there is no number; "" if there is */
	struct bench_times ours, floor[BENCH_FLOORS]; /* samples 0: not measured */
	char floor_why[BENCH_FLOORS][BENCH_TEXT];     /* why not */
	double messages;                              /* an operation; negative: not counted */
};

/* Measures one row, about `ms` milliseconds for ours and each floor, more where one operation takes longer. A
   row that is skipped is a result. Negative errno: the device was lost, or ours failed. */
int bench_measure(struct bench *bench, const struct bench_row *row, unsigned ms, struct bench_result *result);

/* Gives back what a row's prepare made. */
void bench_clear(struct bench *bench);

/* Host memory of row->bytes for `host` or `host2`, touched. -ENOMEM. */
int bench_host_memory(const struct bench_row *row, uint8_t **memory);

/* Opens a device of the same text, under a name of its own. */
int bench_open(const struct bench *bench, struct rig_device **device);

/* The table: its head, then each row as it is measured. */
void bench_print_head(const struct bench *bench);
void bench_print_row(const struct bench_result *result);
void bench_print_json(const struct bench_result *results, unsigned count);

/* Opens the device of that string a few times, from nothing to the first completed launch, and prints a line
 * a phase. An exit status; failures have been said. */
int bench_open_phases(const char *text);

#endif
