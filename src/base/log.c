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

static void keep(void *arg, int level, const char *text)
{
	struct rig_log_late *late = arg;
	struct rig_log_line *line = &late->line[late->count];

	if (late->count == RIG_LOG_LATE) {
		if (!late->more++ || level < late->worst)
			late->worst = level;
		return;
	}
	line->level = level;
	snprintf(line->text, sizeof(line->text), "%s", text);
	late->count++;
}

struct rig_log rig_log_later(struct rig_log_late *late)
{
	return (struct rig_log){.fn = keep, .arg = late};
}

void rig_log_say(struct rig_log_late *late, const struct rig_log *log)
{
	for (unsigned i = 0; i < late->count; i++)
		rig_logf(log, late->line[i].level, "%s", late->line[i].text);
	if (late->more)
		rig_logf(log, late->worst, "%u more lines", late->more);
	late->count = late->more = 0;
}
