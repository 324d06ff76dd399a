/* SPDX-License-Identifier: MIT */
/* The command line of rvx1-model. */
#ifndef RVX_OPTIONS_H
#define RVX_OPTIONS_H

#include "rvx_board.h"

#include <stdbool.h>

struct rvx_options {
	struct rvx_config config; /* log excepted */
	int fd;                   /* -1: none */
	const char *socket;       /* NULL: none; of argv */
	bool log;
};

enum rvx_wish {
	RVX_RUN,
	RVX_HELP,
	RVX_VERSION,
	RVX_MISUSED, /* said why on stderr */
};

/* Reads the command line. Everything in `out` is in range after RVX_RUN. */
enum rvx_wish rvx_options_parse(int argc, char **argv, struct rvx_options *out);

void rvx_options_help(void);

/* A size such as 256M: a number and K, M, G or nothing. -EINVAL: it is none, or more than 64 bits. */
int rvx_parse_size(const char *text, uint64_t *out);

#endif
