/* SPDX-License-Identifier: MIT */
#include "fw.h"
#include "fw_io.h"

static bool run_nop(struct fw *fw, struct fw_queue *q)
{
	(void)fw, (void)q;
	return true;
}

static bool run_wait(struct fw *fw, struct fw_queue *q)
{
	const struct rvx1_word_packet *w = &q->packet.packet.u.word;
	uint64_t word;

	if (!fw_bus_load(fw, q, w->address, &word) || word < w->value)
		return false;
	/* What the word's writer did before it is seen by the packets after this. */
	fw_acquire();
	return true;
}

static bool run_store(struct fw *fw, struct fw_queue *q)
{
	const struct rvx1_word_packet *w = &q->packet.packet.u.word;

	/* Everything before this packet comes before the word. */
	fw_release();
	return fw_bus_store(fw, q, w->address, &w->value, 1);
}

static bool run_stamp(struct fw *fw, struct fw_queue *q)
{
	uint64_t clock = fw_load64(RVX1_CP_ENGINES + RVX1_STAMP);

	return fw_bus_store(fw, q, q->packet.packet.u.word.address, &clock, 1);
}

/* First in line for the engine, then until its job is done. */
static bool use_engine(struct fw *fw, struct fw_queue *q, enum fw_engine_id id)
{
	if (q->job == FW_JOB_NONE)
		fw_engine_enqueue(fw, q, id);
	if (q->job != FW_JOB_DONE)
		return false;
	q->job = FW_JOB_NONE;
	return true;
}

static bool run_copy(struct fw *fw, struct fw_queue *q)
{
	return use_engine(fw, q, FW_COPIER);
}

static bool run_launch(struct fw *fw, struct fw_queue *q)
{
	return use_engine(fw, q, FW_COMPUTE);
}

static bool run_signal(struct fw *fw, struct fw_queue *q)
{
	uint64_t *semaphore = &fw->semaphores[q->packet.packet.arg], value = q->packet.packet.u.word.value;

	if (*semaphore < value)
		*semaphore = value;
	fw->stirred = true;
	return true;
}

static bool run_semaphore(struct fw *fw, struct fw_queue *q)
{
	return fw->semaphores[q->packet.packet.arg] >= q->packet.packet.u.word.value;
}

static bool run_wait_value(struct fw *fw, struct fw_queue *q)
{
	return fw->value >= q->packet.packet.u.word.value;
}

/* READ and RELEASED come before VALUE, so that who sees the value finds the ring's room and the queue's
 * progress. */
static bool run_release(struct fw *fw, struct fw_queue *q)
{
	const struct rvx1_word_packet *w = &q->packet.packet.u.word;

	if (w->value <= fw->value) {
		fw_report_packet_fault(fw, q, RVX1_FAULT_PACKET, q->read, RVX1_ACCESS_NONE);
		return false;
	}
	fw_report_released(q, w->value);
	fw_report_read(q, q->read + 1);
	fw_report_value(fw, w->value);
	return !(q->packet.packet.flags & RVX1_RELEASE_STORE) || run_store(fw, q);
}

static bool run_counters(struct fw *fw, struct fw_queue *q)
{
	return fw_bus_store(fw, q, q->packet.packet.u.word.address, q->counters, RVX1_COUNTERS);
}

static bool run_ring(struct fw *fw, struct fw_queue *q)
{
	(void)fw;
	q->ring = q->packet.packet.u.word.address;
	q->mask = q->packet.packet.arg - 1;
	return true;
}

static bool (*const runs[RVX1_OPCODES])(struct fw *fw, struct fw_queue *q) = {
        [RVX1_OP_NOP] = run_nop,
        [RVX1_OP_WAIT] = run_wait,
        [RVX1_OP_STORE] = run_store,
        [RVX1_OP_STAMP] = run_stamp,
        [RVX1_OP_COPY] = run_copy,
        [RVX1_OP_FILL] = run_copy,
        [RVX1_OP_LAUNCH] = run_launch,
        [RVX1_OP_SIGNAL] = run_signal,
        [RVX1_OP_SEMAPHORE] = run_semaphore,
        [RVX1_OP_WAIT_VALUE] = run_wait_value,
        [RVX1_OP_RELEASE] = run_release,
        [RVX1_OP_COUNTERS] = run_counters,
        [RVX1_OP_RING] = run_ring,
};

bool fw_packet_run(struct fw *fw, struct fw_queue *q)
{
	return runs[q->packet.packet.opcode](fw, q);
}
