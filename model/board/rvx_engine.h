/* SPDX-License-Identifier: MIT */
/*
 * What the two engines have in common: registers that the processor sees, the life of a job, and why it
 * faulted (manual, 5.3).
 */
#ifndef RVX_ENGINE_H
#define RVX_ENGINE_H

#include "rvx1/regs.h"

#include <stdbool.h>
#include <stdint.h>

#define RVX_ENGINE_BYTES 0x100u

/* The first fault of a job. Fields that the code does not name are zero. */
struct rvx_refusal {
	uint32_t code; /* enum rvx1_fault; RVX1_FAULT_NONE: none yet */
	enum rvx1_access access;
	uint64_t address;
	uint64_t pc;
	uint32_t group[3];
	uint32_t thread;
	uint32_t insn;
};

struct rvx_engine {
	uint32_t word[RVX_ENGINE_BYTES / 4]; /* as the processor reads them */
};

/* What a write to CTRL asked for. */
enum rvx_order {
	RVX_ORDER_NONE,
	RVX_ORDER_START, /* the engine is RUNNING now: take the job's registers */
};

void rvx_engine_reset(struct rvx_engine *engine);
uint32_t rvx_engine_state(const struct rvx_engine *engine);

/* Registers by offset in the engine; width 4 or 8, aligned and inside. Others read as zero and ignore
 * writes. */
uint64_t rvx_engine_load(const struct rvx_engine *engine, uint32_t offset, unsigned width);
enum rvx_order rvx_engine_store(struct rvx_engine *engine, uint32_t offset, unsigned width, uint64_t value);

uint64_t rvx_engine_get64(const struct rvx_engine *engine, uint32_t offset);
void rvx_engine_set64(struct rvx_engine *engine, uint32_t offset, uint64_t value);

/* The end of a job. */
void rvx_engine_finish(struct rvx_engine *engine);
void rvx_engine_refuse(struct rvx_engine *engine, const struct rvx_refusal *refusal);

#endif
