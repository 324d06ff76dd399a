/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>

#include "rig_edge.h"

#define TEXT_BYTES 1024

static _Thread_local char text[TEXT_BYTES];
static _Thread_local unsigned locks;

const char *rig_error(void)
{
	return text;
}

int rig_error_set(int code, const char *format, ...)
{
	/* Through a second buffer, since an argument may be the old text itself. */
	char next[TEXT_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(next, sizeof(next), format, args);
	va_end(args);
	memcpy(text, next, sizeof(text));
	return code;
}

unsigned rig_locks_held(void)
{
	return locks;
}

void rig_locks_add(int change)
{
	locks += (unsigned)change;
}
