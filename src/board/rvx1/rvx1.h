/* SPDX-License-Identifier: MIT */
/*
 * The RVX-1 port, inside: the state of one board and the parts of its table. Written against docs/rvx1.md
 * revision 1.0; "section" in these files means that manual's.
 */
#ifndef RIG_BOARD_RVX1_H
#define RIG_BOARD_RVX1_H

#include "rig_board.h"
#include "rvx1/packet.h"
#include "rvx1/regs.h"

/* This port's layout of device-virtual addresses (section 6): board memory, system memory and stacks. */
#define RVX1_BOARD_VA    0x10000000000ull  /* 1 TiB + board address */
#define RVX1_SYSTEM_VA   0x400000000000ull /* 64 TiB + bus address */
#define RVX1_SYSTEM_BITS 46u
#define RVX1_STACK_VA    0x8000000000ull /* 512 GiB */

struct rvx1 {
	struct rig_win regs;      /* BAR0 whole: messages */
	struct rig_win status;    /* its status page, mapped where possible */
	struct rig_win doorbells; /* BAR4 */
	struct rig_win memory;    /* BAR2 whole */
	uint64_t memory_bytes;
	uint64_t aperture_bytes;
	uint64_t clock_hz;
	uint32_t queues;
	uint32_t group_threads, group_shared, stack_slots;
	uint32_t invalidations;
	char firmware[128];
};

static inline struct rvx1 *rvx1_of(struct rig_port *port)
{
	return (struct rvx1 *)port->state;
}

/* boot.c */
extern const struct rig_board_stage rvx1_stages[];
enum { RVX1_STAGES = 3 };
int rvx1_describe(struct rig_port *port, struct rig_board_facts *facts);
int rvx1_poke(struct rig_port *port, uint64_t pa, const void *bytes, uint64_t count);
int rvx1_root(struct rig_port *port, uint64_t pa);
int rvx1_invalidate(struct rig_port *port, uint64_t va, uint64_t bytes);
int rvx1_start_value(struct rig_port *port, uint64_t value);
int rvx1_enable(struct rig_port *port, uint32_t queue, uint64_t ring, uint64_t units);
void rvx1_halt(struct rig_port *port);

/* packets.c */
int rvx1_check(
        struct rig_port *port, const struct rig_part *part, const struct rig_run *run, struct rig_need *need);
void rvx1_step(struct rig_port *port, void *units, const struct rig_step *step);
int rvx1_part(struct rig_port *port, const struct rig_part *part, const struct rig_run *run,
        const struct rig_need *need, const struct rig_place *place);
void rvx1_ring(struct rig_port *port, uint32_t queue, uint64_t position);

/* rvx1_progress.c */
uint64_t rvx1_completed(struct rig_port *port);
bool rvx1_failed(struct rig_port *port);
int rvx1_alive(struct rig_port *port);
void rvx1_fault(struct rig_port *port, char *text, size_t bytes);
/* Why the command processor halted, in one line. */
void rvx1_halt_text(const struct rig_win *regs, char *text, size_t bytes);
void rvx1_arm(struct rig_port *port, uint64_t seen);
uint64_t rvx1_clock(struct rig_port *port);

/* rvx1_format.c */
extern const struct rig_mmu_format rvx1_format;

/* rvx1_image.c */
int rvx1_image_bytes(const void *binary, size_t bytes, uint64_t *need);
int rvx1_image_place(const void *binary, size_t bytes, uint64_t base, uint8_t *buffer);
int rvx1_image_find(const void *binary, size_t bytes, const char *name, struct rig_board_function *function);

/* registers.c */
enum { RVX1_REGISTERS = 90 };
extern const struct rig_board_register rvx1_registers[RVX1_REGISTERS];

extern const struct rig_board rvx1_board;

#endif
