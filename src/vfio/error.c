/* SPDX-License-Identifier: MIT */
#include "error.h"

#include <stdarg.h>

#include "text.h"

int rig_vfio_fail(int err, const char *remedy, const char *what, ...)
{
	char line[RIG_VFIO_ERROR_BYTES];
	struct rig_text text;
	va_list args;

	rig_text_init(&text, line, sizeof(line));
	va_start(args, what);
	rig_text_addv(&text, what, args);
	va_end(args);
	rig_text_add_errno(&text, err);
	if (remedy)
		rig_text_addf(&text, "; %s", remedy);
	return rig_error_set(err < 0 ? err : -err, "%s", line);
}
