/* SPDX-License-Identifier: MIT */
/* BAR0's control page (manual, section 3): words, of which few do something. */
#include "rvx_state.h"

#include <string.h>

#define QUEUE_BYTES 0x18u /* of a queue's block that are registers */

/* [first, behind): may be written by. */
static const struct {
	uint32_t first, behind;
	enum rvx_who who;
} writable[] = {
        {RVX1_CP_CTRL, RVX1_CP_CTRL + 4, RVX_HOST},
        {RVX1_CP_ENTRY, RVX1_CP_ENTRY + 8, RVX_HOST},
        {RVX1_WINDOW_ADDRESS, RVX1_WINDOW_ADDRESS + 8, RVX_HOST},
        {RVX1_PT_ROOT, RVX1_INV_REQUEST + 4, RVX_HOST},
        {RVX1_VALUE_SET, RVX1_VALUE_SET + 8, RVX_HOST},
        {RVX1_FW_STATE, RVX1_FW_HEARTBEAT + 4, RVX_CP},
        {RVX1_FAULT_CODE, RVX1_FAULT_ACCESS + 4, RVX_CP},
        {RVX1_FAULT_PC, RVX1_FAULT_OPCODE + 4, RVX_CP},
};

static bool is_writable(const struct rvx_board *board, uint32_t offset, enum rvx_who who)
{
	uint32_t queues = board->config.queues * RVX1_QUEUE_PITCH;

	for (unsigned i = 0; i < sizeof(writable) / sizeof(writable[0]); i++)
		if (offset >= writable[i].first && offset < writable[i].behind)
			return writable[i].who == who;
	return who == RVX_HOST && offset >= RVX1_QUEUE_BASE && offset - RVX1_QUEUE_BASE < queues &&
	       (offset - RVX1_QUEUE_BASE) % RVX1_QUEUE_PITCH < QUEUE_BYTES;
}

static bool covers(uint32_t offset, unsigned width, uint32_t reg)
{
	return reg >= offset && reg - offset < width;
}

static bool in_window(uint32_t offset)
{
	return offset - RVX1_WINDOW < RVX1_WINDOW_BYTES;
}

static bool is_access(uint32_t offset, unsigned width)
{
	return (width == 4 || width == 8) && offset % width == 0 && offset < RVX_CONTROL_BYTES;
}

uint64_t rvx_regs_get64(const struct rvx_board *board, uint32_t offset)
{
	return board->control[offset / 4] | (uint64_t)board->control[offset / 4 + 1] << 32;
}

void rvx_regs_set64(struct rvx_board *board, uint32_t offset, uint64_t value)
{
	board->control[offset / 4] = (uint32_t)value;
	board->control[offset / 4 + 1] = (uint32_t)(value >> 32);
}

/* Section 4: board memory behind the window, NULL outside it. */
static uint8_t *window_at(const struct rvx_board *board, uint32_t offset)
{
	uint64_t block = rvx_regs_get64(board, RVX1_WINDOW_ADDRESS) & ~(uint64_t)(RVX1_WINDOW_BYTES - 1);
	uint8_t *host = rvx_memory_at(&board->memory, block, RVX1_WINDOW_BYTES);

	return host ? host + (offset - RVX1_WINDOW) : NULL;
}

static uint64_t load_window(const struct rvx_board *board, uint32_t offset, unsigned width)
{
	const uint8_t *at = window_at(board, offset);
	uint64_t value = UINT64_MAX;

	if (at)
		value = width == 8 ? rvx_load64(at) : rvx_load32(at);
	return value;
}

static void store_window(const struct rvx_board *board, uint32_t offset, unsigned width, uint64_t value)
{
	uint8_t *at = window_at(board, offset);

	if (at && width == 8)
		rvx_store64(at, value);
	else if (at)
		rvx_store32(at, (uint32_t)value);
}

uint64_t rvx_regs_load(struct rvx_board *board, uint32_t offset, unsigned width)
{
	uint64_t value;

	if (!is_access(offset, width))
		return 0;
	if (in_window(offset))
		return load_window(board, offset, width);
	if ((offset & ~4u) == RVX1_CLOCK)
		rvx_regs_set64(board, RVX1_CLOCK, rvx_clock_read(&board->clock));
	value = board->control[offset / 4];
	if (width == 8)
		value = rvx_regs_get64(board, offset);
	return value;
}

/* Section 6.2. The board does one thing at a time, so what was cached is gone on return. */
static void invalidate(struct rvx_board *board)
{
	uint64_t va = rvx_regs_get64(board, RVX1_INV_ADDRESS);
	uint64_t bytes = rvx_regs_get64(board, RVX1_INV_BYTES);

	rvx_compute_forget(&board->compute, va, bytes);
	rvx_copier_forget(&board->copier);
	board->control[RVX1_INV_ACK / 4] = board->control[RVX1_INV_REQUEST / 4];
}

bool rvx_any_queue_enabled(const struct rvx_board *board)
{
	for (uint32_t q = 0; q < board->config.queues; q++) {
		uint32_t ctrl = RVX1_QUEUE_BASE + q * RVX1_QUEUE_PITCH + RVX1_QUEUE_CTRL;
		if (board->control[ctrl / 4] & RVX1_QUEUE_ENABLE)
			return true;
	}
	return false;
}

/* Section 9: FAULT_CODE became other than 0. */
static void report_fault(struct rvx_board *board)
{
	rvx_log(board, RVX_LOG_INFO, "fault %u: address 0x%llx, pc 0x%llx, queue %u, opcode %u",
	        board->control[RVX1_FAULT_CODE / 4],
	        (unsigned long long)rvx_regs_get64(board, RVX1_FAULT_ADDRESS),
	        (unsigned long long)rvx_regs_get64(board, RVX1_FAULT_PC),
	        board->control[RVX1_FAULT_QUEUE / 4], board->control[RVX1_FAULT_OPCODE / 4]);
	rvx_irq_raise(board, RVX1_VECTOR_FAULT);
}

/* What writes do beside being kept. */
static void act(struct rvx_board *board, uint32_t offset, unsigned width, uint32_t old_fault)
{
	if (covers(offset, width, RVX1_PT_ROOT) || covers(offset, width, RVX1_PT_ROOT + 4))
		board->space.root = rvx_regs_get64(board, RVX1_PT_ROOT);
	if (covers(offset, width, RVX1_INV_REQUEST))
		invalidate(board);
	if (covers(offset, width, RVX1_VALUE_SET) || covers(offset, width, RVX1_VALUE_SET + 4))
		rvx_value_set(board, rvx_regs_get64(board, RVX1_VALUE_SET));
	if (covers(offset, width, RVX1_FAULT_CODE) && !old_fault && board->control[RVX1_FAULT_CODE / 4])
		report_fault(board);
	if (covers(offset, width, RVX1_CP_CTRL))
		rvx_cp_control(board, board->control[RVX1_CP_CTRL / 4]);
}

void rvx_regs_store(
        struct rvx_board *board, uint32_t offset, unsigned width, uint64_t value, enum rvx_who who)
{
	uint32_t old_fault = board->control[RVX1_FAULT_CODE / 4];
	bool kept = false;

	if (!is_access(offset, width))
		return;
	if (in_window(offset)) {
		store_window(board, offset, width, value);
		return;
	}
	if (offset / 8 == RVX1_VALUE_SET / 8 && rvx_any_queue_enabled(board))
		return; /* section 3: only while no queue is enabled */
	for (unsigned i = 0; i < width / 4; i++) {
		if (!is_writable(board, offset + i * 4, who))
			continue;
		board->control[offset / 4 + i] = (uint32_t)(value >> (32 * i));
		kept = true;
	}
	if (kept)
		act(board, offset, width, old_fault);
}

void rvx_regs_reset(struct rvx_board *board)
{
	memset(board->control, 0, sizeof(board->control));
	board->control[RVX1_ID / 4] = RVX1_ID_VALUE;
	board->control[RVX1_REVISION / 4] = RVX1_REVISION_VALUE;
	board->control[RVX1_QUEUES / 4] = board->config.queues;
	rvx_regs_set64(board, RVX1_MEMORY_BYTES, board->config.memory_bytes);
	rvx_regs_set64(board, RVX1_APERTURE_BYTES, board->config.aperture_bytes);
	rvx_regs_set64(board, RVX1_CLOCK_HZ, board->clock.hz);
	board->control[RVX1_GROUP_THREADS / 4] = RVX1_MAX_GROUP_THREADS;
	board->control[RVX1_GROUP_SHARED / 4] = RVX1_MAX_SHARED;
	board->control[RVX1_STACK_SLOTS / 4] = RVX_STACK_SLOTS;
	board->space.root = 0;
}
