/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "rvx1.h"

uint64_t rvx1_completed(struct rig_port *port)
{
	uint64_t value = rig_win_load64(&rvx1_of(port)->status, RVX1_STATUS_VALUE);

	/* VALUE before the work's effects, because the board stored them in the other order. */
	rig_from_device();
	return value;
}

bool rvx1_failed(struct rig_port *port)
{
	const struct rig_win *status = &rvx1_of(port)->status;

	return rig_win_load32(status, RVX1_STATUS_FAULT) != RVX1_FAULT_NONE ||
	       rig_win_load32(status, RVX1_STATUS_CP) != RVX1_CP_RUNNING;
}

/* By registers: the status page may be memory that outlives the process behind it. */
int rvx1_alive(struct rig_port *port)
{
	struct rvx1 *rvx1 = rvx1_of(port);
	uint32_t id = rig_win_load32(&rvx1->regs, RVX1_ID);
	uint32_t state = rig_win_load32(&rvx1->regs, RVX1_CP_STATE);

	if (id == UINT32_MAX)
		return rig_error_set(-ENODEV,
		        "the function answers all ones: it left the bus, or its memory decoding is off");
	if (id != RVX1_ID_VALUE)
		return rig_error_set(
		        -ENODEV, "the function's ID became 0x%08x: it is not the board any more", id);
	if (state == RVX1_CP_RESET)
		return rig_error_set(-ENODEV,
		        "the function was reset from outside: its command processor is held in reset");
	return 0;
}

void rvx1_arm(struct rig_port *port, uint64_t seen)
{
	rig_win_store64(&rvx1_of(port)->doorbells, RVX1_DOORBELL_ARM, seen); /* queue 0's */
}

uint64_t rvx1_clock(struct rig_port *port)
{
	return rig_win_load64(&rvx1_of(port)->regs, RVX1_CLOCK);
}

static const char *fault_name(uint32_t code)
{
	static const char *const names[] = {
	        [RVX1_FAULT_NONE] = "no fault",
	        [RVX1_FAULT_PAGE] = "page fault",
	        [RVX1_FAULT_BUS] = "system memory did not answer",
	        [RVX1_FAULT_ILLEGAL] = "illegal instruction",
	        [RVX1_FAULT_MISALIGNED] = "misaligned access",
	        [RVX1_FAULT_BARRIER] = "a barrier that not every thread of the group reached",
	        [RVX1_FAULT_TRAP] = "ecall or ebreak",
	        [RVX1_FAULT_PACKET] = "refused packet",
	        [RVX1_FAULT_LAUNCH] = "launch out of the board's limits",
	};

	return code < sizeof(names) / sizeof(names[0]) ? names[code] : "unknown fault";
}

static const char *access_name(uint32_t access)
{
	static const char *const names[] = {"access", "read", "write", "fetch"};

	return access < sizeof(names) / sizeof(names[0]) ? names[access] : "access";
}

static const char *halt_name(uint32_t code)
{
	static const char *const names[] = {"no reason given", "fetch outside memory", "illegal instruction",
	        "access outside its map", "it stopped itself", "the board refused to start it"};

	return code < sizeof(names) / sizeof(names[0]) ? names[code] : "unknown reason";
}

void rvx1_halt_text(const struct rig_win *regs, char *text, size_t bytes)
{
	uint32_t code = rig_win_load32(regs, RVX1_HALT_CODE);

	snprintf(text, bytes, "command processor halted at pc 0x%" PRIx64 ": %s (HALT_CODE %u)",
	        rig_win_load64(regs, RVX1_HALT_PC), halt_name(code), code);
}

/* Whether FAULT_ADDRESS lies in a thread's guard page. */
static bool in_guard(uint64_t address)
{
	return address >= RVX1_STACK_VA &&
	       address < RVX1_STACK_VA + RVX1_MAX_GROUP_THREADS * (uint64_t)RVX1_STACK_PITCH &&
	       (address - RVX1_STACK_VA) % RVX1_STACK_PITCH < RVX1_STACK_PITCH - RVX1_STACK_BYTES;
}

/* What the thread did: only what the code has registers for. */
static void fault_cause(const struct rig_win *regs, uint32_t code, char *text, size_t bytes)
{
	uint64_t address = rig_win_load64(regs, RVX1_FAULT_ADDRESS);

	if (code == RVX1_FAULT_PAGE || code == RVX1_FAULT_BUS || code == RVX1_FAULT_MISALIGNED)
		snprintf(text, bytes, "%s%s: %s of 0x%" PRIx64, in_guard(address) ? "stack overflow, " : "",
		        fault_name(code), access_name(rig_win_load32(regs, RVX1_FAULT_ACCESS)), address);
	else if (code == RVX1_FAULT_ILLEGAL)
		snprintf(text, bytes, "%s 0x%08x", fault_name(code), rig_win_load32(regs, RVX1_FAULT_INSN));
	else
		snprintf(text, bytes, "%s", fault_name(code));
}

static void packet_fault(const struct rig_win *regs, uint32_t code, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s: %s of 0x%" PRIx64 ", packet opcode %u, queue %u, value %" PRIu64,
	        fault_name(code), access_name(rig_win_load32(regs, RVX1_FAULT_ACCESS)),
	        rig_win_load64(regs, RVX1_FAULT_ADDRESS), rig_win_load32(regs, RVX1_FAULT_OPCODE),
	        rig_win_load32(regs, RVX1_FAULT_QUEUE), rig_win_load64(regs, RVX1_FAULT_VALUE));
}

static void thread_fault(struct rig_port *port, uint32_t code, char *text, size_t bytes)
{
	const struct rig_win *regs = &rvx1_of(port)->regs;
	uint64_t pc = rig_win_load64(regs, RVX1_FAULT_PC);
	char cause[160], place[96];

	fault_cause(regs, code, cause, sizeof(cause));
	rig_port_code_name(port, rig_win_load64(regs, RVX1_FAULT_ENTRY), pc, place, sizeof(place));
	snprintf(text, bytes,
	        "%s at pc 0x%" PRIx64 ", kernel %s, group %u,%u,%u, thread %u, queue %u, value %" PRIu64,
	        cause, pc, place, rig_win_load32(regs, RVX1_FAULT_GROUP),
	        rig_win_load32(regs, RVX1_FAULT_GROUP + 4), rig_win_load32(regs, RVX1_FAULT_GROUP + 8),
	        rig_win_load32(regs, RVX1_FAULT_THREAD), rig_win_load32(regs, RVX1_FAULT_QUEUE),
	        rig_win_load64(regs, RVX1_FAULT_VALUE));
}

void rvx1_fault(struct rig_port *port, char *text, size_t bytes)
{
	const struct rig_win *regs = &rvx1_of(port)->regs;
	uint32_t code = rig_win_load32(regs, RVX1_FAULT_CODE);

	if (code == RVX1_FAULT_NONE)
		rvx1_halt_text(regs, text, bytes);
	else if (rig_win_load32(regs, RVX1_FAULT_OPCODE) == RVX1_OP_LAUNCH)
		thread_fault(port, code, text, bytes);
	else
		packet_fault(regs, code, text, bytes);
}
