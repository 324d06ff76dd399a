/* SPDX-License-Identifier: MIT */
#include "fw.h"
#include "fw_io.h"
#include "fw_version.h"

#define REG(offset) (RVX1_CP_REGS + (offset))
#define MAJOR_SHIFT 16u

static bool known_board(const struct fw *fw)
{
	return fw_load32(REG(RVX1_ID)) == RVX1_ID_VALUE &&
	       fw_load32(REG(RVX1_REVISION)) >> MAJOR_SHIFT == RVX1_REVISION_VALUE >> MAJOR_SHIFT &&
	       fw->nqueues > 0 && fw->nqueues <= RVX1_MAX_QUEUES && fw->memory_bytes >= RVX1_MIN_MEMORY &&
	       fw->memory_bytes <= RVX1_MAX_MEMORY;
}

bool fw_boot(struct fw *fw)
{
	fw_store32(REG(RVX1_FW_STATE), RVX1_FW_BOOTING);
	fw_store32(REG(RVX1_FW_VERSION), FW_VERSION);
	fw->nqueues = fw_load32(REG(RVX1_QUEUES));
	fw->memory_bytes = fw_load64(REG(RVX1_MEMORY_BYTES));
	if (!known_board(fw)) {
		fw_store32(REG(RVX1_FW_STATE), RVX1_FW_FAILED);
		return false;
	}
	for (uint32_t i = 0; i < fw->nqueues; i++)
		fw->queues[i].id = i;
	fw_engine_init(fw);
	fw_store32(REG(RVX1_FW_STATE), RVX1_FW_READY);
	return true;
}

/* Whether a queue waits for what another may have done in this pass, or has packets left. */
static bool may_go_on(const struct fw *fw)
{
	if (!fw->stirred || fw->faulted)
		return false;
	for (uint32_t i = 0; i < fw->nqueues; i++) {
		const struct fw_queue *q = &fw->queues[i];

		if (q->read < q->written && q->job == FW_JOB_NONE)
			return true;
	}
	return false;
}

bool fw_pass(struct fw *fw)
{
	fw_report_pass(fw);
	if (fw->faulted)
		return false;
	fw->stirred = false;
	fw_engine_serve(fw);
	for (uint32_t i = 0; i < fw->nqueues && !fw->faulted; i++)
		fw_queue_serve(fw, &fw->queues[i]);
	return may_go_on(fw);
}

#ifdef __riscv

static struct fw state;

/* From crt0.S. */
_Noreturn void fw_main(void);
_Noreturn void fw_main(void)
{
	if (!fw_boot(&state))
		for (;;)
			fw_sleep();
	for (;;)
		if (!fw_pass(&state))
			fw_sleep();
}

#endif
