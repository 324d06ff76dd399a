/* SPDX-License-Identifier: MIT */
/*
 * What a driver's module exports for rig-conform, the conformance suite (docs/conformance.md).
 *
 * `rig-conform module:FILE.so[:TEXT]` loads FILE.so and looks for the functions below by name. The module
 * links librig_edge, or leaves its symbols undefined: the program has them. It never links librig. Both
 * functions are called in the process that runs a law, one process a law, before the law starts; neither
 * opens a device.
 */
#ifndef RIG_CONFORM_H
#define RIG_CONFORM_H

#include "rig_edge.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The opener of the index-th device, from 0; it lives until the process ends. `text` is what stood after
 * the file's name, "" if nothing did. NULL, with the reason in rig_error(): there is no such device (laws
 * that need two skip), or `text` is wrong. Openers of different indices have different names and may be
 * open at the same time.
 */
typedef const struct rig_opener *(*rig_conform_opener_fn)(const char *text, unsigned index);
#define RIG_CONFORM_OPENER "rig_conform_opener"

/*
 * Code for the laws that launch some, which skip without it. One binary, that the devices' load takes, with
 * these functions; each has the parameters of the struct of its name, without padding, and states their
 * number or nothing.
 *
 *   conform_add      adds `add` to dst[i], i the thread's place in the grid: its group's index, dimension 0
 *                    first, times the threads of a group, plus its index in the group, dimension 0 first
 *   conform_move     the only thread stores *src in *dst
 *   conform_forever  never ends
 *   conform_fault    does what the device reports as a fault
 *
 * The last two may be missing: `forever` and `fault` say so. A conform_add that is limited to fewer threads
 * than the device runs says so in rig_entry.threads.
 */
struct rig_conform_code {
	uint32_t version; /* RIG_EDGE_VERSION */
	const void *binary;
	size_t bytes;
	bool forever, fault;
};

struct rig_conform_add {
	uint64_t dst; /* of uint32_t */
	uint32_t add, reserved;
};

struct rig_conform_move {
	uint64_t dst, src; /* of uint32_t */
};

/* The code for devices of this architecture (rig_facts.arch), or NULL. Optional. */
typedef const struct rig_conform_code *(*rig_conform_code_fn)(const char *arch);
#define RIG_CONFORM_CODE "rig_conform_code"

#ifdef __cplusplus
}
#endif

#endif
