/* SPDX-License-Identifier: MIT */
#include "fw.h"
#include "fw_io.h"

#define REG(offset)      (RVX1_CP_REGS + (offset))
#define STATUS(offset)   (RVX1_CP_REGS + RVX1_STATUS + (offset))
#define STATUS_OF(q, at) STATUS(RVX1_STATUS_QUEUE + (q)->id * RVX1_STATUS_PITCH + (at))

void fw_report_pass(struct fw *fw)
{
	fw_store64(STATUS(RVX1_STATUS_CLOCK), fw_load64(REG(RVX1_CLOCK)));
	fw_store32(REG(RVX1_FW_HEARTBEAT), ++fw->heartbeat);
}

void fw_report_start(struct fw_queue *q)
{
	q->shown = q->read;
	fw_store64(STATUS_OF(q, RVX1_STATUS_READ), q->read);
}

void fw_report_read(struct fw_queue *q, uint64_t read)
{
	if (read <= q->shown)
		return;
	q->shown = read;
	/* Who sees the number may use the slots of the packets before it again: their effects come first. */
	fw_release();
	fw_store64(STATUS_OF(q, RVX1_STATUS_READ), read);
}

void fw_report_released(const struct fw_queue *q, uint64_t value)
{
	fw_store64(STATUS_OF(q, RVX1_STATUS_RELEASED), value);
}

void fw_report_value(struct fw *fw, uint64_t value)
{
	fw->value = value;
	fw->stirred = true;
	/* Everything the value stands for comes before it is seen. */
	fw_release();
	fw_store64(STATUS(RVX1_STATUS_VALUE), value);
}

/* What both kinds of fault have; the code last, since it is what the host looks at. In the register before
 * the status page: who polls the page reads the registers then. */
static void finish(struct fw *fw, uint32_t queue, uint32_t opcode, uint32_t code)
{
	fw_store64(REG(RVX1_FAULT_VALUE), fw->value + 1);
	fw_store32(REG(RVX1_FAULT_QUEUE), queue);
	fw_store32(REG(RVX1_FAULT_OPCODE), opcode);
	fw_release();
	fw_store32(REG(RVX1_FAULT_CODE), code);
	fw_store32(STATUS(RVX1_STATUS_FAULT), code);
	fw->faulted = true;
}

void fw_report_packet_fault(
        struct fw *fw, const struct fw_queue *q, enum rvx1_fault code, uint64_t address, uint32_t access)
{
	if (fw->faulted)
		return;
	fw_store64(REG(RVX1_FAULT_ADDRESS), address);
	fw_store32(REG(RVX1_FAULT_ACCESS), access);
	finish(fw, q->id, q->holds ? q->packet.packet.opcode : RVX1_OP_INVALID, (uint32_t)code);
}

void fw_report_engine_fault(struct fw *fw, const struct fw_engine *e)
{
	if (fw->faulted)
		return;
	fw_store64(REG(RVX1_FAULT_ADDRESS), fw_load64(e->base + RVX1_ENGINE_ADDRESS));
	fw_store32(REG(RVX1_FAULT_ACCESS), fw_load32(e->base + RVX1_ENGINE_ACCESS));
	fw_store64(REG(RVX1_FAULT_PC), fw_load64(e->base + RVX1_ENGINE_PC));
	fw_store64(REG(RVX1_FAULT_ENTRY), e->entry);
	for (unsigned d = 0; d < 3; d++)
		fw_store32(REG(RVX1_FAULT_GROUP + 4 * d), fw_load32(e->base + RVX1_ENGINE_GROUP + 4 * d));
	fw_store32(REG(RVX1_FAULT_THREAD), fw_load32(e->base + RVX1_ENGINE_THREAD));
	fw_store32(REG(RVX1_FAULT_INSN), fw_load32(e->base + RVX1_ENGINE_INSN));
	finish(fw, e->queue, e->opcode, fw_load32(e->base + RVX1_ENGINE_FAULT));
}
