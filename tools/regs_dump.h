/* SPDX-License-Identifier: MIT */
/* Dumps of registers: lines "NAME BAR OFFSET WIDTH VALUE", numbers in hexadecimal but BAR and WIDTH (bytes);
   '#' begins a comment. */
#ifndef RIGCTL_REGS_DUMP_H
#define RIGCTL_REGS_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REGS_NAME = 40, REGS_MOST = 1024 };

struct regs_line {
	char name[REGS_NAME];
	uint32_t bar, width;
	uint64_t offset, value;
};

struct regs_dump {
	struct regs_line line[REGS_MOST];
	unsigned count;
};

/* Of a dump's text, 0-terminated; 0, or the number of the line that is none. */
unsigned regs_dump_parse(const char *text, struct regs_dump *out);

/* The line of this name; NULL: none. */
const struct regs_line *regs_dump_find(const struct regs_dump *dump, const char *name);

/* Whether a register is meant by NAME..., each a name or its beginning up to a '.'; by none, all are. */
bool regs_is_wanted(const char *name, char *const *names, unsigned count);

#endif
