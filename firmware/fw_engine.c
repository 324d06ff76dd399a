/* SPDX-License-Identifier: MIT */
#include "fw.h"
#include "fw_io.h"

static const uint16_t offsets[FW_ENGINES] = {[FW_COMPUTE] = RVX1_COMPUTE, [FW_COPIER] = RVX1_COPIER};

void fw_engine_init(struct fw *fw)
{
	for (unsigned i = 0; i < FW_ENGINES; i++)
		fw->engines[i] = (struct fw_engine){.base = RVX1_CP_ENGINES + offsets[i]};
}

static void write_launch(uint64_t base, const struct rvx1_launch_packet *l)
{
	fw_store64(base + RVX1_COMPUTE_ENTRY, l->entry);
	fw_store64(base + RVX1_COMPUTE_PARAMS, l->params);
	fw_store64(base + RVX1_COMPUTE_STACKS, l->stacks);
	for (unsigned d = 0; d < 3; d++) {
		fw_store32(base + RVX1_COMPUTE_GRID + 4 * d, l->grid[d]);
		fw_store32(base + RVX1_COMPUTE_GROUP + 4 * d, l->group[d]);
	}
	fw_store32(base + RVX1_COMPUTE_SHARED, l->shared);
	fw_store32(base + RVX1_COMPUTE_SLOTS, l->slots);
}

static void write_copy(uint64_t base, const struct rvx1_copy_packet *c, uint32_t fill)
{
	fw_store64(base + RVX1_COPIER_SRC, c->src);
	fw_store64(base + RVX1_COPIER_DST, c->dst);
	fw_store64(base + RVX1_COPIER_ROW_BYTES, c->row_bytes);
	fw_store64(base + RVX1_COPIER_ROWS, c->rows);
	fw_store64(base + RVX1_COPIER_SRC_PITCH, c->src_pitch);
	fw_store64(base + RVX1_COPIER_DST_PITCH, c->dst_pitch);
	fw_store32(base + RVX1_COPIER_FILL, fill);
}

static void start(struct fw *fw, struct fw_engine *e, struct fw_queue *q)
{
	const struct rvx1_packet *p = &q->packet.packet;

	if (p->opcode == RVX1_OP_LAUNCH)
		write_launch(e->base, &p->u.launch);
	else
		write_copy(e->base, &p->u.copy, p->opcode == RVX1_OP_FILL ? RVX1_FILL_ON | p->arg : 0);
	e->owner = q;
	e->queue = q->id;
	e->opcode = p->opcode;
	e->entry = p->opcode == RVX1_OP_LAUNCH ? p->u.launch.entry : 0;
	e->running = true;
	q->job = FW_JOB_RUNNING;
	fw->queued[q->engine]--;
	/* The job's registers, and what earlier packets did to memory, before the engine starts. */
	fw_release();
	fw_store32(e->base + RVX1_ENGINE_CTRL, RVX1_ENGINE_START);
}

/* The queue that came first of those in line for the engine, of which there is one. */
static struct fw_queue *next(struct fw *fw, enum fw_engine_id id)
{
	struct fw_queue *first = 0;

	for (uint32_t i = 0; i < fw->nqueues; i++) {
		struct fw_queue *q = &fw->queues[i];

		if (q->job == FW_JOB_QUEUED && q->engine == id && (!first || q->ticket < first->ticket))
			first = q;
	}
	return first;
}

static void start_next(struct fw *fw, enum fw_engine_id id)
{
	struct fw_engine *e = &fw->engines[id];

	if (fw->queued[id] && !e->running && !fw->faulted)
		start(fw, e, next(fw, id));
}

void fw_engine_enqueue(struct fw *fw, struct fw_queue *q, enum fw_engine_id id)
{
	q->job = FW_JOB_QUEUED;
	fw->queued[id]++;
	q->engine = id;
	q->ticket = fw->tickets++;
	start_next(fw, id);
}

static void done(struct fw_engine *e)
{
	struct fw_queue *q = e->owner;

	if (q && q->engine == FW_COMPUTE)
		for (unsigned i = 0; i < RVX1_COUNTERS; i++)
			q->counters[i] = fw_load64(e->base + RVX1_COMPUTE_COUNTERS + 8 * i);
	if (q)
		q->job = FW_JOB_DONE;
	fw_store32(e->base + RVX1_ENGINE_CTRL, RVX1_ENGINE_ACK);
	e->owner = 0;
	e->running = false;
}

/* Takes the engine's job when it has ended. */
static void collect(struct fw *fw, struct fw_engine *e)
{
	uint32_t state = fw_load32(e->base + RVX1_ENGINE_STATE);

	if (state != RVX1_ENGINE_DONE && state != RVX1_ENGINE_FAULTED)
		return;
	/* What the engine did comes before what the packets after it do. */
	fw_acquire();
	if (state == RVX1_ENGINE_DONE)
		done(e);
	else
		fw_report_engine_fault(fw, e);
}

void fw_engine_serve(struct fw *fw)
{
	for (unsigned i = 0; i < FW_ENGINES && !fw->faulted; i++) {
		if (fw->engines[i].running)
			collect(fw, &fw->engines[i]);
		start_next(fw, (enum fw_engine_id)i);
	}
}

void fw_engine_leave(struct fw *fw, struct fw_queue *q)
{
	for (unsigned i = 0; i < FW_ENGINES; i++)
		if (fw->engines[i].owner == q)
			fw->engines[i].owner = 0;
	if (q->job == FW_JOB_QUEUED)
		fw->queued[q->engine]--;
	q->job = FW_JOB_NONE;
}
