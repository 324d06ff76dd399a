/* SPDX-License-Identifier: MIT */
/* The command processor: start, slices, halt (manual, sections 5.1 and 5.5). */
#include "rvx_state.h"

#include <string.h>
#include <unistd.h>

#define SLICE_INSTRUCTIONS 8192u
#define SLOW_INSTRUCTIONS  256u /* where each access may be an exchange of messages */
#define NS_PER_MS          1000000ull
#define DIED               1

static void set_state(struct rvx_board *board, uint32_t state)
{
	board->control[RVX1_CP_STATE / 4] = state;
	rvx_store32(rvx_status(board) + RVX1_STATUS_CP, state);
}

static uint32_t state_of(const struct rvx_board *board)
{
	return board->control[RVX1_CP_STATE / 4];
}

bool rvx_cp_running(const struct rvx_board *board)
{
	return state_of(board) == RVX1_CP_RUNNING;
}

int rvx_cp_open(struct rvx_board *board)
{
	return rv_bus_alloc(&board->cp.bus, &rvx_map_ops, board);
}

void rvx_cp_close(struct rvx_board *board)
{
	rv_bus_free(board->cp.bus);
	board->cp.bus = NULL;
}

void rvx_cp_forget(struct rvx_board *board)
{
	rv_bus_flush(board->cp.bus, RVX1_SYSTEM, RVX1_BUS_MASK + 1);
}

static void halt(struct rvx_board *board, uint32_t code, uint64_t pc)
{
	board->control[RVX1_HALT_CODE / 4] = code;
	rvx_regs_set64(board, RVX1_HALT_PC, pc);
	set_state(board, RVX1_CP_HALTED);
	rvx_log(board, RVX_LOG_INFO, "processor halted: code %u at 0x%llx", code, (unsigned long long)pc);
	rvx_irq_raise(board, RVX1_VECTOR_FAULT);
}

static void start(struct rvx_board *board)
{
	const struct rvx_plan *plan = &board->mischief.plan;

	if (plan->die_boot) {
		rvx_log(board, RVX_LOG_INFO, "fault die-boot");
		_exit(DIED);
	}
	if (plan->refuse_boot) {
		halt(board, RVX1_HALT_REFUSED, 0);
		return;
	}
	rv_bus_flush_all(board->cp.bus);
	rv_hart_init(&board->cp.hart);
	board->cp.hart.pc = rvx_regs_get64(board, RVX1_CP_ENTRY);
	board->cp.asleep = false;
	board->cp.halting = false;
	board->cp.start_ns = rvx_now_ns() + plan->slow_ms * NS_PER_MS;
	if (plan->gone_ms)
		board->gone_ns = rvx_now_ns() + plan->gone_ms * NS_PER_MS;
	set_state(board, RVX1_CP_RUNNING);
	rvx_log(board, RVX_LOG_INFO, "processor started at 0x%llx", (unsigned long long)board->cp.hart.pc);
}

/* What the firmware wrote about itself and its faults goes with it. */
static void clear_firmware(struct rvx_board *board)
{
	board->control[RVX1_HALT_CODE / 4] = RVX1_HALT_NONE;
	rvx_regs_set64(board, RVX1_HALT_PC, 0);
	memset(&board->control[RVX1_FW_STATE / 4], 0, RVX1_FW_HEARTBEAT + 4 - RVX1_FW_STATE);
	memset(&board->control[RVX1_FAULT_CODE / 4], 0, RVX1_FAULT_OPCODE + 4 - RVX1_FAULT_CODE);
	rvx_store32(rvx_status(board) + RVX1_STATUS_FAULT, RVX1_FAULT_NONE);
}

void rvx_cp_hold(struct rvx_board *board)
{
	set_state(board, RVX1_CP_RESET);
	clear_firmware(board);
	board->cp.asleep = false;
	board->cp.bus_error = RVX1_ACCESS_NONE;
	board->cp.bus_address = 0;
	rvx_compute_reset(&board->compute);
	rvx_copier_reset(&board->copier);
	for (uint32_t q = 0; q < RVX1_MAX_QUEUES; q++)
		board->control[(RVX1_QUEUE_BASE + q * RVX1_QUEUE_PITCH + RVX1_QUEUE_CTRL) / 4] = 0;
}

/*
 * A client's register accesses are served while a transfer waits for its answer, in the middle of a slice,
 * where neither the processor nor an engine can be stopped.
 */
void rvx_cp_control(struct rvx_board *board, uint32_t value)
{
	if (board->cp.in_slice) {
		board->cp.control_due = true;
		board->cp.hold_due |= !(value & RVX1_CP_CTRL_RUN);
		return;
	}
	if (!(value & RVX1_CP_CTRL_RUN))
		rvx_cp_hold(board);
	else if (state_of(board) == RVX1_CP_RESET)
		start(board);
}

void rvx_cp_slice_over(struct rvx_board *board)
{
	bool hold = board->cp.hold_due, control = board->cp.control_due;

	board->cp.in_slice = false;
	board->cp.hold_due = false;
	board->cp.control_due = false;
	if (hold)
		rvx_cp_hold(board);
	if (control)
		rvx_cp_control(board, board->control[RVX1_CP_CTRL / 4]);
}

/* Section 5.5: why the processor can not go on. */
static void stop(struct rvx_board *board, enum rv_stop why)
{
	const struct rv_hart *hart = &board->cp.hart;

	switch (why) {
	case RV_ECALL:
	case RV_EBREAK:
		halt(board, RVX1_HALT_BREAK, hart->pc);
		return;
	case RV_FAULT:
		if (board->cp.halting)
			halt(board, RVX1_HALT_BREAK, hart->pc);
		else if (hart->cause.access == RV_FETCH)
			halt(board, RVX1_HALT_FETCH, hart->pc);
		else
			halt(board, RVX1_HALT_ACCESS, hart->pc);
		return;
	case RV_CUSTOM: /* pc is behind it */
		halt(board, RVX1_HALT_ILLEGAL, hart->pc - hart->cause.length);
		return;
	case RV_ILLEGAL:
	default:
		halt(board, RVX1_HALT_ILLEGAL, hart->pc);
		return;
	}
}

void rvx_cp_step(struct rvx_board *board, uint64_t now_ns)
{
	board->cp.asleep = false;
	if (!rvx_cp_running(board))
		return;
	if (now_ns < board->cp.start_ns) {
		board->cp.asleep = true;
		return;
	}
	unsigned budget = board->cp.transfers ? SLOW_INSTRUCTIONS : SLICE_INSTRUCTIONS;
	board->cp.transfers = 0;
	enum rv_stop why = rv_run(board->cp.bus, &board->cp.hart, budget);
	if (why == RV_WFI)
		board->cp.asleep = true;
	else if (why != RV_BUDGET)
		stop(board, why);
}
