/* SPDX-License-Identifier: MIT */
/* What the command processor sees through its bus (manual, section 5.2). */
#include "rvx_state.h"

#include <stdlib.h>
#include <unistd.h>

#define REGS_BYTES     RVX1_BAR_REGS_BYTES
#define ENGINES_BYTES  0x10000u
#define DOORBELL_BYTES (RVX1_MAX_QUEUES * RVX1_DOORBELL_PITCH)
#define DIED           1

static bool in(uint64_t va, uint64_t from, uint64_t bytes)
{
	return va - from < bytes;
}

static bool is_system(uint64_t va)
{
	return (va & ~RVX1_BUS_MASK) == RVX1_SYSTEM;
}

static enum rv_map map_system(struct rvx_board *board, uint64_t page_va, enum rv_access access, void **host)
{
	const struct rvx_dma *dma = &board->dma;

	*host = dma->at(dma->ctx, page_va & RVX1_BUS_MASK, RV_PAGE_SIZE, true, access == RV_STORE);
	return *host ? RV_MAP_HOST : RV_MAP_MMIO;
}

static enum rv_map translate(void *ctx, uint64_t page_va, enum rv_access access, void **host)
{
	struct rvx_board *board = ctx;

	*host = rvx_memory_at(&board->memory, page_va, RV_PAGE_SIZE);
	if (*host)
		return RV_MAP_HOST;
	if (access == RV_FETCH)
		return RV_MAP_FAULT;
	if (is_system(page_va))
		return map_system(board, page_va, access, host);
	if (in(page_va, RVX1_CP_DOORBELLS, DOORBELL_BYTES)) {
		*host = board->doorbells.host + (page_va - RVX1_CP_DOORBELLS);
		return RV_MAP_HOST;
	}
	return in(page_va, RVX1_CP_REGS, REGS_BYTES + ENGINES_BYTES) ? RV_MAP_MMIO : RV_MAP_FAULT;
}

/* ---- system memory by transfers, section 5.4 ---- */

static void keep_error(struct rvx_board *board, uint64_t va, enum rvx1_access access)
{
	if (board->cp.bus_error)
		return;
	board->cp.bus_error = access;
	board->cp.bus_address = va;
}

static uint64_t load_system(struct rvx_board *board, uint64_t va, unsigned width)
{
	const struct rvx_dma *dma = &board->dma;
	uint64_t value = 0;

	board->cp.transfers++;
	if (dma->read(dma->ctx, va & RVX1_BUS_MASK, &value, width) == 0)
		return value;
	keep_error(board, va, RVX1_ACCESS_READ);
	return UINT64_MAX;
}

static void store_system(struct rvx_board *board, uint64_t va, unsigned width, uint64_t value)
{
	const struct rvx_dma *dma = &board->dma;

	board->cp.transfers++;
	if (dma->write(dma->ctx, va & RVX1_BUS_MASK, &value, width) < 0)
		keep_error(board, va, RVX1_ACCESS_WRITE);
}

/* ---- engine registers, section 5.3 ---- */

static uint64_t load_stamp(struct rvx_board *board)
{
	struct rvx_mischief *mischief = &board->mischief;
	uint64_t clock = rvx_clock_read(&board->clock);

	if (!rvx_mischief_due(&mischief->stamps, mischief->plan.stamp))
		return clock;
	rvx_log(board, RVX_LOG_INFO, "fault corrupt-stamp");
	return ~clock;
}

static uint64_t load_engine(struct rvx_board *board, uint32_t offset, unsigned width)
{
	if (offset < RVX1_COPIER)
		return rvx_engine_load(&board->compute.engine, offset, width);
	if (offset < RVX1_BUS_ERROR)
		return rvx_engine_load(&board->copier.engine, offset - RVX1_COPIER, width);
	if (offset == RVX1_BUS_ERROR && width >= 4)
		return board->cp.bus_error;
	if (offset == RVX1_BUS_ADDRESS && width >= 4)
		return board->cp.bus_address;
	if (offset == RVX1_BUS_ADDRESS + 4 && width == 4)
		return board->cp.bus_address >> 32;
	if (offset == RVX1_STAMP && width == 8)
		return load_stamp(board);
	return 0;
}

static void die_if_due(struct rvx_board *board)
{
	struct rvx_mischief *mischief = &board->mischief;

	if (!rvx_mischief_due(&mischief->deaths, mischief->plan.die))
		return;
	rvx_log(board, RVX_LOG_INFO, "fault die");
	_exit(DIED);
}

static void start_launch(struct rvx_board *board)
{
	struct rvx_mischief *mischief = &board->mischief;

	die_if_due(board);
	rvx_compute_start(&board->compute);
	board->compute.hung = rvx_mischief_due(&mischief->launches, mischief->plan.hang);
	if (board->compute.hung)
		rvx_log(board, RVX_LOG_INFO, "fault hang: this launch does not end");
}

static void start_copy(struct rvx_board *board)
{
	struct rvx_mischief *mischief = &board->mischief;
	struct rvx_refusal refusal = {.code = RVX1_FAULT_BUS, .access = RVX1_ACCESS_WRITE};

	rvx_copier_start(&board->copier);
	board->copier.job.astray = rvx_mischief_due(&mischief->astray, mischief->plan.unmapped);
	if (board->copier.job.astray)
		rvx_log(board, RVX_LOG_INFO, "fault dma-unmapped: this copy writes nowhere");
	if (!rvx_mischief_due(&mischief->copies, mischief->plan.bus))
		return;
	rvx_log(board, RVX_LOG_INFO, "fault bus: this copy finds nobody");
	refusal.address = board->copier.job.dst;
	rvx_engine_refuse(&board->copier.engine, &refusal);
}

static void store_engine(struct rvx_board *board, uint32_t offset, unsigned width, uint64_t value)
{
	board->stirred |= offset % RVX1_COPIER == RVX1_ENGINE_CTRL;
	if (offset < RVX1_COPIER) {
		if (rvx_engine_store(&board->compute.engine, offset, width, value) == RVX_ORDER_START)
			start_launch(board);
	} else if (offset < RVX1_BUS_ERROR) {
		if (rvx_engine_store(&board->copier.engine, offset - RVX1_COPIER, width, value) ==
		        RVX_ORDER_START)
			start_copy(board);
	} else if (offset == RVX1_BUS_ERROR && width >= 4 && !(uint32_t)value) {
		board->cp.bus_error = RVX1_ACCESS_NONE;
		board->cp.bus_address = 0;
	}
}

/* ---- BAR0 ---- */

/* A RELEASE. False: the processor halts instead (--fault halt). */
static bool release(struct rvx_board *board, uint64_t value)
{
	struct rvx_mischief *mischief = &board->mischief;

	die_if_due(board);
	if (rvx_mischief_due(&mischief->releases, mischief->plan.halt)) {
		board->cp.halting = true;
		return false;
	}
	rvx_value_release(board, value);
	return true;
}

static bool store_status(struct rvx_board *board, uint32_t offset, unsigned width, uint64_t value)
{
	uint8_t *at = rvx_status(board) + offset;
	uint64_t old = 0;

	if (offset == RVX1_STATUS_VALUE && width == 8)
		return value == board->value || release(board, value);
	rvx_memory_get(&old, at, width);
	rvx_memory_put(at, &value, width);
	/* A packet was completed: there may be more. The clock says nothing. */
	board->stirred |= offset >= RVX1_STATUS_QUEUE && old != value;
	return true;
}

static uint64_t load_status(const struct rvx_board *board, uint32_t offset, unsigned width)
{
	uint64_t value = 0;

	if (offset == RVX1_STATUS_VALUE && width == 8)
		return board->value; /* the processor's own view, whatever is still late or scribbled over */
	rvx_memory_get(&value, rvx_status(board) + offset, width);
	return value;
}

static bool load(void *ctx, uint64_t va, unsigned width, uint64_t *value)
{
	struct rvx_board *board = ctx;

	if (is_system(va))
		*value = load_system(board, va, width);
	else if (in(va, RVX1_CP_ENGINES, ENGINES_BYTES))
		*value = load_engine(board, (uint32_t)(va - RVX1_CP_ENGINES), width);
	else if (in(va, RVX1_CP_REGS + RVX1_STATUS, RVX1_STATUS_BYTES))
		*value = load_status(board, (uint32_t)(va - RVX1_CP_REGS - RVX1_STATUS), width);
	else
		*value = rvx_regs_load(board, (uint32_t)(va - RVX1_CP_REGS), width);
	if (width < sizeof(*value))
		*value &= (1ull << (8 * width)) - 1;
	return true;
}

static bool store(void *ctx, uint64_t va, unsigned width, uint64_t value)
{
	struct rvx_board *board = ctx;

	if (is_system(va))
		store_system(board, va, width, value);
	else if (in(va, RVX1_CP_ENGINES, ENGINES_BYTES))
		store_engine(board, (uint32_t)(va - RVX1_CP_ENGINES), width, value);
	else if (in(va, RVX1_CP_REGS + RVX1_STATUS, RVX1_STATUS_BYTES))
		return store_status(board, (uint32_t)(va - RVX1_CP_REGS - RVX1_STATUS), width, value);
	else
		rvx_regs_store(board, (uint32_t)(va - RVX1_CP_REGS), width, value, RVX_CP);
	return true;
}

const struct rv_bus_ops rvx_map_ops = {
        .translate = translate,
        .load = load,
        .store = store,
};
