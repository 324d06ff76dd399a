/* SPDX-License-Identifier: MIT */
/*
 * The firmware of RVX-1's command processor (docs/rvx1.md, sections 5, 7 and 10): one loop over queues that
 * are state machines. Nothing in it waits: each pass does what can be done now.
 */
#ifndef FW_H
#define FW_H

#include <stdbool.h>
#include <stdint.h>

#include <rvx1/regs.h>

#include "fw_check.h"

enum fw_engine_id { FW_COMPUTE, FW_COPIER, FW_ENGINES };

/* How far a queue's work for an engine is. */
enum fw_job {
	FW_JOB_NONE,
	FW_JOB_QUEUED, /* behind others for the engine, in order of `ticket` */
	FW_JOB_RUNNING,
	FW_JOB_DONE,
};

struct fw_queue {
	union fw_packet packet; /* the copy of the packet being run, when holds */
	uint64_t ring;          /* processor address */
	uint64_t read;          /* number of the next packet, or of the one being run */
	uint64_t shown;         /* READ in the status page */
	uint64_t written;       /* the doorbell as last read */
	uint64_t ticket;
	uint64_t counters[RVX1_COUNTERS]; /* of the last launch */
	uint32_t mask;                    /* of packet numbers: entries - 1 */
	uint32_t id;
	enum fw_job job;
	enum fw_engine_id engine;
	bool enabled;
	bool holds;
};

struct fw_engine {
	uint64_t base;          /* processor address of its registers */
	struct fw_queue *owner; /* NULL also when the queue was disabled meanwhile */
	uint64_t entry;         /* of the job, for a fault's report; 0 of copies */
	uint32_t queue, opcode;
	bool running;
};

struct fw {
	struct fw_queue queues[RVX1_MAX_QUEUES];
	struct fw_engine engines[FW_ENGINES];
	uint64_t semaphores[RVX1_SEMAPHORES];
	uint64_t value;        /* VALUE */
	uint64_t memory_bytes; /* of the board */
	uint64_t tickets;      /* given out */
	uint32_t nqueues;
	uint32_t heartbeat;
	uint32_t queued[FW_ENGINES]; /* queues in line */
	bool faulted;                /* nothing is started any more */
	bool stirred;                /* in this pass: something that a queue served before it may wait for */
};

/* fw_main.c */

/* The boot handshake as far as READY. False, with FW_STATE = FAILED: not a board that this firmware knows. */
bool fw_boot(struct fw *fw);

/* One pass of the loop. False: there is nothing to do before something outside changes. */
bool fw_pass(struct fw *fw);

/* fw_queue.c: one queue */

/* Follows the queue's CTRL, then runs packets until it must wait or used its share of the pass, then also
 * stirs. */
void fw_queue_serve(struct fw *fw, struct fw_queue *q);

/* fw_packet.c: what packets do */

/* Runs the checked packet in q->packet, or goes on with it. True: it is complete. It may have faulted. */
bool fw_packet_run(struct fw *fw, struct fw_queue *q);

/* fw_engine.c */

void fw_engine_init(struct fw *fw);

/* Puts the packet of q in line for the engine. */
void fw_engine_enqueue(struct fw *fw, struct fw_queue *q, enum fw_engine_id id);

/* Takes finished jobs from the engines and starts waiting ones. */
void fw_engine_serve(struct fw *fw);

/* Leaves the line. A running job goes on for nobody. */
void fw_engine_leave(struct fw *fw, struct fw_queue *q);

/* fw_bus.c: memory that packets name, checked by fw_check_*() */

/* False: system memory did not answer, and the queue's BUS fault is reported. */
bool fw_bus_load(struct fw *fw, const struct fw_queue *q, uint64_t address, uint64_t *word);
bool fw_bus_load_packet(struct fw *fw, struct fw_queue *q, uint64_t address);
bool fw_bus_store(
        struct fw *fw, const struct fw_queue *q, uint64_t address, const uint64_t *words, unsigned n);

/* fw_report.c: what the host sees */

void fw_report_pass(struct fw *fw);

/* READ of a queue: where it starts when it is enabled; then the packets completed, never fewer than
 * before. */
void fw_report_start(struct fw_queue *q);
void fw_report_read(struct fw_queue *q, uint64_t read);

void fw_report_released(const struct fw_queue *q, uint64_t value);

/* Sets VALUE, after everything before. */
void fw_report_value(struct fw *fw, uint64_t value);

/* A fault of the packet that q runs: PACKET (address: its number) or BUS. Only the first fault is
 * reported. */
void fw_report_packet_fault(
        struct fw *fw, const struct fw_queue *q, enum rvx1_fault code, uint64_t address, uint32_t access);

/* The fault of an engine that is FAULTED. */
void fw_report_engine_fault(struct fw *fw, const struct fw_engine *e);

#endif
