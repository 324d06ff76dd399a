/* SPDX-License-Identifier: MIT */
#include "rvx_engine.h"

#include <string.h>

#define STATE             (RVX1_ENGINE_STATE / 4)
#define FIRST_JOB_OFFSET  0x08u
#define BEHIND_JOB_OFFSET 0x40u /* both engines: from here on read-only (rvx1/regs.h) */

void rvx_engine_reset(struct rvx_engine *engine)
{
	memset(engine, 0, sizeof(*engine));
}

uint32_t rvx_engine_state(const struct rvx_engine *engine)
{
	return engine->word[STATE];
}

uint64_t rvx_engine_get64(const struct rvx_engine *engine, uint32_t offset)
{
	return engine->word[offset / 4] | (uint64_t)engine->word[offset / 4 + 1] << 32;
}

void rvx_engine_set64(struct rvx_engine *engine, uint32_t offset, uint64_t value)
{
	engine->word[offset / 4] = (uint32_t)value;
	engine->word[offset / 4 + 1] = (uint32_t)(value >> 32);
}

uint64_t rvx_engine_load(const struct rvx_engine *engine, uint32_t offset, unsigned width)
{
	if (width == 8)
		return rvx_engine_get64(engine, offset);
	return width == 4 ? engine->word[offset / 4] : 0;
}

static void refusal_to_registers(struct rvx_engine *engine, const struct rvx_refusal *refusal)
{
	engine->word[RVX1_ENGINE_FAULT / 4] = refusal->code;
	engine->word[RVX1_ENGINE_ACCESS / 4] = refusal->access;
	rvx_engine_set64(engine, RVX1_ENGINE_ADDRESS, refusal->address);
	rvx_engine_set64(engine, RVX1_ENGINE_PC, refusal->pc);
	for (unsigned d = 0; d < 3; d++)
		engine->word[RVX1_ENGINE_GROUP / 4 + d] = refusal->group[d];
	engine->word[RVX1_ENGINE_THREAD / 4] = refusal->thread;
	engine->word[RVX1_ENGINE_INSN / 4] = refusal->insn;
}

static enum rvx_order control(struct rvx_engine *engine, uint32_t value)
{
	uint32_t state = engine->word[STATE];

	if (value == RVX1_ENGINE_START && state == RVX1_ENGINE_IDLE) {
		static const struct rvx_refusal none;
		refusal_to_registers(engine, &none);
		engine->word[STATE] = RVX1_ENGINE_RUNNING;
		return RVX_ORDER_START;
	}
	if (value == RVX1_ENGINE_ACK && (state == RVX1_ENGINE_DONE || state == RVX1_ENGINE_FAULTED))
		engine->word[STATE] = RVX1_ENGINE_IDLE;
	return RVX_ORDER_NONE;
}

enum rvx_order rvx_engine_store(struct rvx_engine *engine, uint32_t offset, unsigned width, uint64_t value)
{
	if (width != 4 && width != 8)
		return RVX_ORDER_NONE;
	if (offset == RVX1_ENGINE_CTRL)
		return control(engine, (uint32_t)value);
	if (offset < FIRST_JOB_OFFSET || offset >= BEHIND_JOB_OFFSET)
		return RVX_ORDER_NONE;
	engine->word[offset / 4] = (uint32_t)value;
	if (width == 8)
		engine->word[offset / 4 + 1] = (uint32_t)(value >> 32);
	return RVX_ORDER_NONE;
}

void rvx_engine_finish(struct rvx_engine *engine)
{
	engine->word[STATE] = RVX1_ENGINE_DONE;
}

void rvx_engine_refuse(struct rvx_engine *engine, const struct rvx_refusal *refusal)
{
	refusal_to_registers(engine, refusal);
	engine->word[STATE] = RVX1_ENGINE_FAULTED;
}
