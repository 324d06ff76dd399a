/* SPDX-License-Identifier: MIT */
/*
 * The copy engine: rows of bytes between device-virtual addresses (manual, section 5.3). A job runs in steps,
 * so that nothing it is asked for keeps the board from answering.
 */
#ifndef RVX_COPIER_H
#define RVX_COPIER_H

#include "rvx_engine.h"
#include "rvx_mmu.h"
#include "rvx_space.h"

#define RVX_COPIER_BOUNCE 0x10000u /* bytes a transfer to memory without an address here */

struct rvx_copier_job {
	uint64_t src, dst;
	uint64_t row_bytes, rows;
	uint64_t src_pitch, dst_pitch;
	bool fill;
	uint8_t byte;
	bool astray; /* --fault dma-unmapped: the destination is where no system memory is */
};

struct rvx_copier {
	struct rvx_engine engine;
	const struct rvx_space *space;
	struct rvx_copier_job job;
	uint64_t row, done; /* rows finished, bytes of the present row */
	struct rvx_extent from, to;
	uint8_t bounce[RVX_COPIER_BOUNCE];
};

/* `space` must outlive it. */
void rvx_copier_init(struct rvx_copier *copier, const struct rvx_space *space);
void rvx_copier_reset(struct rvx_copier *copier);

/* Takes the job's registers: after RVX_ORDER_START. A job of nothing is DONE at once. */
void rvx_copier_start(struct rvx_copier *copier);

/* Forgets translations (section 6.2). */
void rvx_copier_forget(struct rvx_copier *copier);

/* Goes on with a RUNNING job for about `budget` bytes; a row costs some on top, so that empty-handed ones end
 * too. */
void rvx_copier_step(struct rvx_copier *copier, uint64_t budget);

#endif
