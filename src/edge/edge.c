/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "rig_edge.h"

#define TEXT_BYTES 1024
#define NS_PER_S   UINT64_C(1000000000)

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

uint64_t rig_now_ns(void)
{
	struct timespec now;

	/* Cannot fail: the clock exists and the pointer is good. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}
