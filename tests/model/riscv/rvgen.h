/* SPDX-License-Identifier: MIT */
/*
 * Random guest programs in which every instruction of the interpreter's table is tried, each followed by a
 * record of all registers in the log: what the program writes out is the log and then the data area.
 *
 * Two x registers, other ones in every program, belong to the harness: one walks through the log, one is the
 * link to the code that stores a record. Instructions under test may read them, not write them.
 */
#ifndef RVGEN_H
#define RVGEN_H

#include "rvprogram.h"

#define RVGEN_STEPS  1024u
#define RVGEN_RECORD 512u /* bytes: fcsr, x1 to x31, f0 to f31 */
#define RVGEN_F0     256u /* where f0 is in a record */

/* One instruction under test. */
struct rvgen_step {
	const char *name;
	uint64_t pc;
	uint32_t bits;
};

struct rvgen {
	struct rvprogram *program;
	struct rvgen_step steps[RVGEN_STEPS]; /* step i left record i + 1; record 0 is the start */
	unsigned count;
};

/* Rows of both instruction tables together: [0, rvgen_rows()). */
unsigned rvgen_rows(void);
const char *rvgen_row_name(unsigned row);
/* What cannot be a step because it ends the program; the trap test has them. */
bool rvgen_row_traps(unsigned row);

/* Each row of the table is a step at least once unless the registers of the harness forbid it. The caller
 * frees gen->program. */
void rvgen_make(struct rvgen *gen, uint64_t seed);

#endif
