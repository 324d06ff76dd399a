/* SPDX-License-Identifier: MIT */
/*
 * A board in plain memory, on which the firmware's code runs as host code (firmware/fw_io.h): registers,
 * doorbells, board memory, a piece of system memory, engines that do nothing until told, and a log of the
 * firmware's stores. One at a time.
 */
#ifndef FW_FAKE_H
#define FW_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rvx1/packet.h>
#include <rvx1/regs.h>

#include "fw.h"

#define FAKE_MEMORY    RVX1_MIN_MEMORY
#define FAKE_QUEUES    3u
#define FAKE_ENTRIES   16u
#define FAKE_RING(q)   (0x100000u + (q)*0x10000u) /* board address of queue q's ring */
#define FAKE_WORDS     0x200000u                  /* board memory for packets to use */
#define FAKE_BUS       0x7000000000ull            /* system memory from here answers */
#define FAKE_BUS_BYTES 0x1000u
#define FAKE_SYSTEM    (RVX1_SYSTEM | FAKE_BUS)

/* Everything zero, the firmware booted. */
void fake_init(struct fw *fw);
void fake_fini(void);

/* As the host: registers of BAR0, words at processor addresses. */
uint32_t fake_reg32(uint32_t offset);
uint64_t fake_reg64(uint32_t offset);
void fake_set_reg32(uint32_t offset, uint32_t value);
void fake_set_reg64(uint32_t offset, uint64_t value);
uint64_t fake_word(uint64_t address);
void fake_set_word(uint64_t address, uint64_t value);
uint64_t fake_status(uint32_t offset);
uint64_t fake_read(unsigned queue); /* READ in the status page */

/* Enables a queue on its ring in board memory, from packet 0. */
void fake_enable(unsigned queue);

/* Writes the packet in the queue's slot and rings. */
void fake_push(unsigned queue, const struct rvx1_packet *packet);
void fake_push_word(unsigned queue, unsigned opcode, uint32_t arg, uint64_t address, uint64_t value);

/* Engine registers, and the end of the engine's job: DONE or FAULTED. */
uint32_t fake_engine32(uint32_t offset);
uint64_t fake_engine64(uint32_t offset);
void fake_set_engine64(uint32_t offset, uint64_t value);
void fake_end_job(uint32_t engine, uint32_t state);

/* Passes until nothing moves. */
void fake_run(struct fw *fw);

/* Where in the log the first store to the address since the last fake_log_clear() is; -1: nowhere. */
int fake_stored(uint64_t address);
void fake_log_clear(void);

#endif
