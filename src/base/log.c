/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

void rig_logf(const struct rig_log *log, int level, const char *format, ...)
{
	char text[RIG_LOG_BYTES];
	va_list args;

	if (!log || !log->fn)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log->fn(log->arg, level, text);
}
