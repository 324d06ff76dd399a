/* SPDX-License-Identifier: MIT */
/* BAR0 by name (sections 3 to 8). Left out: the window's memory, which is no register, and the MSI-X
   table. */
#include "rvx1.h"

#define R32(name)                                                                                            \
	{                                                                                                    \
#name, RVX1_BAR_REGS, RVX1_##name, 4                                                         \
	}
#define R64(name)                                                                                            \
	{                                                                                                    \
#name, RVX1_BAR_REGS, RVX1_##name, 8                                                         \
	}
#define PART(name, part)                                                                                     \
	{                                                                                                    \
#name "." #part, RVX1_BAR_REGS, RVX1_##name + 4u * part, 4                                   \
	}
#define STATUS(name, width)                                                                                  \
	{                                                                                                    \
		"STATUS." #name, RVX1_BAR_REGS, RVX1_STATUS + RVX1_STATUS_##name, width                      \
	}

#define QUEUE_REGISTER(q, name, width)                                                                       \
	{                                                                                                    \
		"QUEUE" #q "." #name, RVX1_BAR_REGS,                                                         \
		        RVX1_QUEUE_BASE + q *RVX1_QUEUE_PITCH + RVX1_QUEUE_##name, width                     \
	}
#define QUEUE_STATUS(q, name)                                                                                \
	{                                                                                                    \
		"QUEUE" #q "." #name, RVX1_BAR_REGS,                                                         \
		        RVX1_STATUS + RVX1_STATUS_QUEUE + q *RVX1_STATUS_PITCH + RVX1_STATUS_##name, 8       \
	}
#define QUEUE(q)                                                                                             \
	QUEUE_REGISTER(q, RING, 8), QUEUE_REGISTER(q, ENTRIES, 4), QUEUE_REGISTER(q, CTRL, 4),               \
	        QUEUE_REGISTER(q, START, 8), QUEUE_STATUS(q, READ), QUEUE_STATUS(q, RELEASED)

const struct rig_board_register rvx1_registers[RVX1_REGISTERS] = {
        R32(ID),
        R32(REVISION),
        R32(QUEUES),
        R64(MEMORY_BYTES),
        R64(APERTURE_BYTES),
        R64(CLOCK_HZ),
        R64(CLOCK),
        R32(GROUP_THREADS),
        R32(GROUP_SHARED),
        R32(STACK_SLOTS),
        R32(CP_CTRL),
        R32(CP_STATE),
        R64(CP_ENTRY),
        R32(HALT_CODE),
        R64(HALT_PC),
        R32(FW_STATE),
        R32(FW_VERSION),
        R32(FW_HEARTBEAT),
        R64(WINDOW_ADDRESS),
        R64(PT_ROOT),
        R64(INV_ADDRESS),
        R64(INV_BYTES),
        R32(INV_REQUEST),
        R32(INV_ACK),
        R32(FAULT_CODE),
        R32(FAULT_QUEUE),
        R64(FAULT_VALUE),
        R64(FAULT_ADDRESS),
        R32(FAULT_ACCESS),
        R64(FAULT_PC),
        R64(FAULT_ENTRY),
        PART(FAULT_GROUP, 0),
        PART(FAULT_GROUP, 1),
        PART(FAULT_GROUP, 2),
        R32(FAULT_THREAD),
        R32(FAULT_INSN),
        R32(FAULT_OPCODE),
        R64(VALUE_SET),
        STATUS(VALUE, 8),
        STATUS(FAULT, 4),
        STATUS(CP, 4),
        STATUS(CLOCK, 8),
        QUEUE(0),
        QUEUE(1),
        QUEUE(2),
        QUEUE(3),
        QUEUE(4),
        QUEUE(5),
        QUEUE(6),
        QUEUE(7),
};
