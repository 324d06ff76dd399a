/* SPDX-License-Identifier: MIT */
/* rigctl on another machine's devices: --via HOST:PORT and --key FILE before the command. */
#ifndef VIA_H
#define VIA_H

#include "rig_remote.h"
#include "rigctl.h"

struct via {
	const char *machine, *key; /* machine NULL: this one */
	struct rig_remote_job *job;
};

extern struct via via;

/* The key's file, or NULL. */
const char *via_key(void);
/* Connects on first use. 0, or an exit status after a complaint. */
int via_connect(void);
/* open_device there. */
int via_open(const char *text, struct rig_device **device);
/* Ends the connection, if there is one. */
void via_close(void);
/* Runs the command there; main's. */
int via_dispatch(const struct command *command, int argc, char **argv);

#endif
