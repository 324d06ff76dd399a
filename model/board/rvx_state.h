/* SPDX-License-Identifier: MIT */
/*
 * The board's parts in one place, for the files that join them. What a part alone does is in its own header.
 */
#ifndef RVX_STATE_H
#define RVX_STATE_H

#include "rv.h"
#include "rvx_board.h"
#include "rvx_clock.h"
#include "rvx_compute.h"
#include "rvx_copier.h"
#include "rvx_memory.h"
#include "rvx_mischief.h"
#include "rvx_space.h"
#include "rvx1/regs.h"
#include "vfu.h"

#include <stdbool.h>
#include <stdint.h>

#define RVX_CONTROL_BYTES 0x1000u
#define RVX_LATE_VALUES   1024u

struct rvx_cp {
	struct rv_bus *bus;
	struct rv_hart hart;
	uint64_t start_ns; /* no instruction before that host time */
	bool asleep;       /* in wfi */
	bool in_slice;     /* rv_run() is on the stack, of the processor or of an engine */
	bool hold_due;     /* CP_CTRL was written meanwhile, also without RUN: act when the slice is over */
	bool control_due;
	unsigned transfers;         /* to system memory without an address here, in this slice */
	bool halting;               /* --fault halt: this store does not return */
	enum rvx1_access bus_error; /* section 5.4 */
	uint64_t bus_address;
};

/* Section 9: which ARM was answered. */
struct rvx_arm {
	uint64_t value;
	bool raised;
};

/* VALUEs on their way, with --fault late. */
struct rvx_late {
	struct {
		uint64_t due_ns, value;
	} queue[RVX_LATE_VALUES];
	uint64_t first, count;
};

struct rvx_board {
	struct rvx_config config;
	struct rvx_mischief mischief;
	struct vfu_device *vfu;

	struct rvx_memory memory;
	struct rvx_memory bar0; /* only the status page of it is used: what a client maps */
	struct rvx_memory doorbells;
	uint32_t control[RVX_CONTROL_BYTES / 4];
	uint64_t value; /* VALUE as the processor released it; the status page shows it, at once or late */

	struct rvx_clock clock;
	struct rvx_dma dma;
	struct rvx_space space;
	struct rvx_cp cp;
	struct rvx_compute compute;
	struct rvx_copier copier;
	struct rvx_arm arm;
	struct rvx_late late;

	bool stirred;     /* something happened that the processor or an engine may care about */
	bool gone;        /* --fault gone: off the bus */
	uint64_t gone_ns; /* host time at which it goes; 0: never */
	bool lost_client; /* a client went; the board is to be reset before the next */
	uint16_t command; /* COMMAND as last seen */
	bool listening;
};

enum rvx_who {
	RVX_HOST,
	RVX_CP,
};

static inline uint8_t *rvx_status(const struct rvx_board *board)
{
	return board->bar0.host + RVX1_STATUS;
}

void rvx_log(const struct rvx_board *board, enum rvx_log_level level, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* rvx_regs.c: BAR0's control page, any width and offset in it. What the rules of section 3 refuse reads zero
 * and drops writes. */
uint64_t rvx_regs_load(struct rvx_board *board, uint32_t offset, unsigned width);
void rvx_regs_store(
        struct rvx_board *board, uint32_t offset, unsigned width, uint64_t value, enum rvx_who who);
void rvx_regs_reset(struct rvx_board *board);
uint64_t rvx_regs_get64(const struct rvx_board *board, uint32_t offset);
void rvx_regs_set64(struct rvx_board *board, uint32_t offset, uint64_t value);
bool rvx_any_queue_enabled(const struct rvx_board *board);

/* rvx_value.c: VALUE, on its way to the status page. */
void rvx_value_set(struct rvx_board *board, uint64_t value);
void rvx_value_release(struct rvx_board *board, uint64_t value);
void rvx_value_reset(struct rvx_board *board);
void rvx_value_tick(struct rvx_board *board, uint64_t now_ns); /* shows what is due */

/* rvx_cp.c: the command processor. */
int rvx_cp_open(struct rvx_board *board);
void rvx_cp_close(struct rvx_board *board);
void rvx_cp_control(
        struct rvx_board *board, uint32_t value); /* a write of CP_CTRL; in a slice it waits for the end */
void rvx_cp_slice_over(struct rvx_board *board);  /* does what waited */
void rvx_cp_hold(struct rvx_board *board);        /* into reset */
void rvx_cp_forget(struct rvx_board *board);      /* translations of system memory */
void rvx_cp_step(struct rvx_board *board, uint64_t now_ns); /* until wfi, or some thousand instructions */
bool rvx_cp_running(const struct rvx_board *board);

/* rvx_map.c: the processor's address map (section 5.2), the callbacks of its bus. */
extern const struct rv_bus_ops rvx_map_ops;

/* rvx_irq.c */
void rvx_irq_raise(struct rvx_board *board, unsigned vector);
void rvx_irq_check(struct rvx_board *board); /* section 9: compares VALUE with ARM */
void rvx_irq_reset(struct rvx_board *board);

/* rvx_board.c: everything to its reset value (section 2), board memory excepted. */
void rvx_board_reset(struct rvx_board *board);
void rvx_board_forget_system(struct rvx_board *board); /* nothing keeps an address of system memory */
void rvx_board_leave(struct rvx_board *board);         /* --fault gone */

#endif
