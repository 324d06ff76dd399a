/* SPDX-License-Identifier: MIT */
/*
 * The cold thread's work, inside: what a device is asked about its memory and code. A handler reads a
 * request's numbers and puts down what it answers: 0; a negative errno with its text in rig_error();
 * RIG_FAULT, as the device is lost; MALFORMED.
 */
#ifndef AGENT_COLD_H
#define AGENT_COLD_H

#include "agent_device.h"

enum { MALFORMED = 1 }; /* beside every errno that a driver answers */

/* Loses the device: RIG_FAULT. */
int device_faulted(struct device *d, const char *fault);

/* ---- agent_code.c ---- */

int code_take(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out);
int code_load(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out);
int code_entry(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out);
int code_unload(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out);
/* Of an image that is off the table. */
void code_drop(struct device *d, struct image *image);

#endif
