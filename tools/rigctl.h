/* SPDX-License-Identifier: MIT */
/*
 * rigctl: one file a command, cmd_NAME.c, and unbind beside bind. A command is a literal of struct command,
 * listed in main.c; its --help and its part of the man page (help.c) come from that literal.
 */
#ifndef RIGCTL_H
#define RIGCTL_H

#include <stdbool.h>
#include <stdio.h>

#include "rig.h"

/* Exit statuses. The reason of any but DONE is on stderr, in one line. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_OPEN = 3 };

struct option_help {
	const char *name; /* "--grid X[,Y[,Z]]" */
	const char *text;
};

struct command {
	const char *name;
	const char *synopsis;              /* after "rigctl NAME " */
	const char *summary;               /* one line */
	const char *text;                  /* paragraphs, '\n' between them */
	const struct option_help *options; /* ends with a NULL name */
	const char *via;                   /* what it does with --via; NULL: it is of this machine */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; answers an exit status */
};

extern const struct command command_list, command_doctor, command_info, command_bind, command_unbind,
        command_run, command_bench, command_regs, command_reset, command_agents;

/* All, with a NULL at the end. */
extern const struct command *const commands[];

/* Of rigctl, and of a command; the man page. */
void print_help(FILE *to);
void print_command_help(const struct command *command);
int print_man(void);

/* Prints "rigctl COMMAND: ..." and a newline to stderr; returns `status`. */
int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Of every command that opens a device. */
extern bool verbose;

/* Opens DEVICE: 0, or an exit status after a complaint (EXIT_USAGE for a malformed string, EXIT_OPEN). */
int open_device(const char *text, struct rig_device **device);
/* A failure's text without the name that it may begin with, for where DEVICE stands before it. */
const char *reason(const char *text, const char *name);
/* Closes it and drops the reference; waits for its process. */
void close_device(struct rig_device *device);

/* Takes DEVICE's function, without booting its board: as open_device. rig_pci_close of it is owed. */
struct rig_taken;
int take_function(const char *text, struct rig_taken *out);

#endif
