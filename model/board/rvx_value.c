/* SPDX-License-Identifier: MIT */
/* VALUE: what the processor released, and what the status page shows of it (manual, sections 7.1 and 8). */
#include "rvx_state.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000ull

static void show(struct rvx_board *board, uint64_t value)
{
	rvx_store64(rvx_status(board) + RVX1_STATUS_VALUE, value);
	rvx_irq_check(board);
}

void rvx_value_set(struct rvx_board *board, uint64_t value)
{
	board->value = value;
	board->late.count = 0;
	show(board, value);
}

static void show_first(struct rvx_board *board)
{
	struct rvx_late *late = &board->late;
	uint64_t value = late->queue[late->first % RVX_LATE_VALUES].value;

	late->first++;
	late->count--;
	show(board, value);
}

void rvx_value_release(struct rvx_board *board, uint64_t value)
{
	struct rvx_late *late = &board->late;

	board->value = value;
	board->stirred = true;
	if (!board->mischief.plan.late_ms) {
		show(board, value);
		return;
	}
	if (late->count == RVX_LATE_VALUES)
		show_first(board);
	uint64_t slot = (late->first + late->count++) % RVX_LATE_VALUES;
	late->queue[slot].due_ns = rvx_now_ns() + board->mischief.plan.late_ms * NS_PER_MS;
	late->queue[slot].value = value;
}

void rvx_value_tick(struct rvx_board *board, uint64_t now_ns)
{
	struct rvx_late *late = &board->late;

	while (late->count && late->queue[late->first % RVX_LATE_VALUES].due_ns <= now_ns)
		show_first(board);
}

void rvx_value_reset(struct rvx_board *board)
{
	board->value = 0;
	board->late.first = 0;
	board->late.count = 0;
}
