/* SPDX-License-Identifier: MIT */
/* The ARGs of rigctl run: a kernel's parameters, in order, each at its own alignment. */
#ifndef RIGCTL_RUN_ARGS_H
#define RIGCTL_RUN_ARGS_H

#include "rig.h"

enum arg_kind { ARG_IN, ARG_OUT, ARG_INOUT, ARG_ZERO, ARG_SCALAR };

enum { MAX_RUN_ARGS = 256, MAX_SCALAR = 8 };

struct run_arg {
	enum arg_kind kind;
	const char *file; /* read before the launch; NULL: none */
	const char *to;   /* written after it; NULL: none */
	uint8_t *bytes;   /* the file's, or NULL for zeroes */
	uint64_t count;   /* bytes of the buffer */
	uint32_t at;      /* offset among the parameters */
	uint32_t size;    /* there: 8 for a buffer */
	uint8_t scalar[MAX_SCALAR];
	struct rig_buffer *buffer;
};

struct run_args {
	struct run_arg arg[MAX_RUN_ARGS];
	unsigned count;
	uint32_t end;    /* of the last parameter */
	uint32_t align;  /* the largest parameter's */
	uint32_t params; /* bytes of all of them, a multiple of align */
};

/* Takes one ARG, and reads its file: 0, or EXIT_USAGE after a complaint. */
int add_arg(struct run_args *args, char *text);
void free_args(struct run_args *args);

/* Reads a whole file; *bytes is the caller's (never NULL). 0, or a negative errno. */
int read_file(const char *path, uint8_t **bytes, uint64_t *count);
int write_file(const char *path, const uint8_t *bytes, uint64_t count);
/* Whether write_file can open every file to write: 0, or EXIT_USAGE after a complaint. Leaves them as they
 * were, or not there. */
int check_outputs(const struct run_args *args);

#endif
