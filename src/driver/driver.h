/* SPDX-License-Identifier: MIT */
/*
 * The contract's driver over a taken function and a board: what opens one. The rest of the folder is in
 * device.h.
 */
#ifndef RIG_DRIVER_H
#define RIG_DRIVER_H

#include "log.h"
#include "rig_board.h"
#include "rig_edge.h"

struct rig_pci;

struct rig_driver_options {
	bool store;               /* completion by a store of the device, not by polling */
	int64_t hang_ms;          /* 0: the board's */
	unsigned boot_ms;         /* deadline of a boot stage; 0: RIG_DRIVER_BOOT_MS */
	const char *firmware_dir; /* NULL: none; copied */
	bool dmabuf;              /* dma answers dma-bufs, not bus addresses */
	bool all_messages;        /* tests: map no window */
	struct rig_log log;       /* copied */
	/* For who started the function's process; NULL: nobody. Called by stop when the function is gone, it
	   makes sure that its process does nothing any more. */
	void (*end)(void *process);
	void *process;
	bool pinned; /* the poller runs on `cpu` alone and never sleeps */
	int cpu;
};

#define RIG_DRIVER_BOOT_MS 10000u

/* How a line of the log (RIG_LOG_DEBUG) begins that says that a step of opening is over; its name follows. */
#define RIG_DRIVER_STEP "open: "

/* The cold functions of every device that rig_driver_make makes. */
extern const struct rig_driver_module rig_driver_module;

/*
 * Boots `board` on the taken function `pci`, with its word at `word`. The device owns `pci` from the call on,
 * also when it fails: then the function was given back, *out is NULL and `why` says
 * what failed.
 */
int rig_driver_make(struct rig_pci *pci, const struct rig_board *board,
        const struct rig_driver_options *options, rig_atomic_u64 *word, void **out, char *why,
        size_t why_bytes);

#endif
