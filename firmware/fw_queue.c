/* SPDX-License-Identifier: MIT */
#include "fw.h"
#include "fw_io.h"

#define SHARE          64u /* packets of a queue in one pass */
#define REG_OF(q, at)  (RVX1_CP_REGS + RVX1_QUEUE_BASE + (q)->id * RVX1_QUEUE_PITCH + (at))
#define DOORBELL_OF(q) (RVX1_CP_DOORBELLS + (q)->id * RVX1_DOORBELL_PITCH + RVX1_DOORBELL_WRITE)

static void refuse(struct fw *fw, const struct fw_queue *q)
{
	fw_report_packet_fault(fw, q, RVX1_FAULT_PACKET, q->read, RVX1_ACCESS_NONE);
}

static bool any_enabled(const struct fw *fw)
{
	for (uint32_t i = 0; i < fw->nqueues; i++)
		if (fw->queues[i].enabled)
			return true;
	return false;
}

static void enable(struct fw *fw, struct fw_queue *q)
{
	/* The host wrote the registers before CTRL. */
	fw_acquire();
	/* VALUE_SET may have changed it while no queue was enabled, and only then. */
	if (!any_enabled(fw))
		fw->value = fw_load64(RVX1_CP_REGS + RVX1_STATUS + RVX1_STATUS_VALUE);
	uint32_t entries = fw_load32(REG_OF(q, RVX1_QUEUE_ENTRIES));

	*q = (struct fw_queue){.id = q->id, .enabled = true};
	q->ring = fw_load64(REG_OF(q, RVX1_QUEUE_RING));
	q->read = fw_load64(REG_OF(q, RVX1_QUEUE_START));
	q->mask = entries - 1;
	fw_report_start(q);
	if (!fw_check_ring(q->ring, entries, fw->memory_bytes))
		refuse(fw, q);
}

static void disable(struct fw *fw, struct fw_queue *q)
{
	fw_engine_leave(fw, q);
	q->enabled = false;
	q->holds = false;
	q->written = q->read;
}

/* Follows CTRL. */
static void follow(struct fw *fw, struct fw_queue *q)
{
	bool on = fw_load32(REG_OF(q, RVX1_QUEUE_CTRL)) & RVX1_QUEUE_ENABLE;

	if (on && !q->enabled)
		enable(fw, q);
	else if (!on && q->enabled)
		disable(fw, q);
}

/* Whether the host has written a packet that was not run. */
static bool has_next(struct fw_queue *q)
{
	if (q->read < q->written)
		return true;
	q->written = fw_load64(DOORBELL_OF(q));
	/* The host wrote the packets before the doorbell. */
	fw_acquire();
	return q->read < q->written;
}

/* Copies the next packet, which the host could change at any time, and checks the copy. */
static bool fetch(struct fw *fw, struct fw_queue *q)
{
	uint64_t address = q->ring + (q->read & q->mask) * RVX1_PACKET_BYTES;

	if (!has_next(q) || !fw_bus_load_packet(fw, q, address))
		return false;
	q->holds = true;
	if (fw_check_packet(&q->packet, fw->memory_bytes))
		return true;
	refuse(fw, q);
	return false;
}

/* Runs the packet in hand or the next one. False: there is none, it waits, or it faulted. */
static bool run_one(struct fw *fw, struct fw_queue *q)
{
	if (!q->holds && !fetch(fw, q))
		return false;
	if (!fw_packet_run(fw, q))
		return false;
	q->holds = false;
	q->read++;
	return true;
}

void fw_queue_serve(struct fw *fw, struct fw_queue *q)
{
	unsigned n = 0;

	follow(fw, q);
	if (!q->enabled)
		return;
	while (n < SHARE && !fw->faulted && run_one(fw, q))
		n++;
	if (n == SHARE)
		fw->stirred = true;
	fw_report_read(q, q->read);
}
