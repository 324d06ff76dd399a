/* SPDX-License-Identifier: MIT */
#include "regs_dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 256 };

static bool parse_line(const char *text, struct regs_line *out)
{
	int end = 0;

	return sscanf(text, "%39s %" SCNu32 " %" SCNx64 " %" SCNu32 " %" SCNx64 " %n", out->name, &out->bar,
	               &out->offset, &out->width, &out->value, &end) == 5 &&
	       !text[end] && (out->width == 4 || out->width == 8);
}

unsigned regs_dump_parse(const char *text, struct regs_dump *out)
{
	char line[LINE];

	out->count = 0;
	for (unsigned number = 1; *text; number++) {
		size_t n = strcspn(text, "\n");

		if (n >= sizeof(line))
			return number;
		memcpy(line, text, n);
		line[n] = 0;
		text += n + (text[n] == '\n');
		if (line[0] == '#' || !line[strspn(line, " \t\r")])
			continue;
		if (out->count == REGS_MOST || !parse_line(line, &out->line[out->count]))
			return number;
		out->count++;
	}
	return 0;
}

const struct regs_line *regs_dump_find(const struct regs_dump *dump, const char *name)
{
	for (unsigned i = 0; i < dump->count; i++)
		if (!strcmp(dump->line[i].name, name))
			return &dump->line[i];
	return NULL;
}

bool regs_is_wanted(const char *name, char *const *names, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(name, names[i], n) && (!name[n] || name[n] == '.'))
			return true;
	}
	return count == 0;
}
