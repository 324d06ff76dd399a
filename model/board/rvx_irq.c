/* SPDX-License-Identifier: MIT */
/* Interrupts (manual, section 9). */
#include "rvx_state.h"

#define DISARMED UINT64_MAX

void rvx_irq_raise(struct rvx_board *board, unsigned vector)
{
	struct rvx_mischief *mischief = &board->mischief;

	if (board->gone)
		return;
	if (rvx_mischief_due(&mischief->irqs, mischief->plan.lose_irq)) {
		rvx_log(board, RVX_LOG_INFO, "fault lose-irq: vector %u is not sent", vector);
		return;
	}
	vfu_irq(board->vfu, vector);
}

void rvx_irq_check(struct rvx_board *board)
{
	uint64_t armed = rvx_load64(board->doorbells.host + RVX1_DOORBELL_ARM);
	uint64_t value = rvx_load64(rvx_status(board) + RVX1_STATUS_VALUE);
	struct rvx_arm *arm = &board->arm;

	if (armed != arm->value) {
		arm->value = armed;
		arm->raised = false;
	}
	if (arm->raised || armed == DISARMED || value <= armed)
		return;
	arm->raised = true;
	rvx_irq_raise(board, RVX1_VECTOR_COMPLETE);
}

void rvx_irq_reset(struct rvx_board *board)
{
	board->arm = (struct rvx_arm){0};
}
