/* SPDX-License-Identifier: MIT */
#include "error.h"

#include <stdarg.h>

#include "pci.h"
#include "text.h"

static _Thread_local char last[RIG_VFIO_ERROR_BYTES];

int rig_vfio_fail(int err, const char *remedy, const char *what, ...)
{
	char line[RIG_VFIO_ERROR_BYTES];
	struct rig_text text;
	va_list args;

	/* Built aside: an argument may be the last text itself. */
	rig_text_init(&text, line, sizeof(line));
	va_start(args, what);
	rig_text_addv(&text, what, args);
	va_end(args);
	rig_text_add_errno(&text, err);
	if (remedy)
		rig_text_addf(&text, "; %s", remedy);
	rig_text_init(&text, last, sizeof(last));
	rig_text_addf(&text, "%s", line);
	return err < 0 ? err : -err;
}

void rig_vfio_also(const char *what, ...)
{
	char line[RIG_VFIO_ERROR_BYTES];
	struct rig_text text;
	va_list args;

	rig_text_init(&text, line, sizeof(line));
	rig_text_addf(&text, "%s; ", last);
	va_start(args, what);
	rig_text_addv(&text, what, args);
	va_end(args);
	rig_text_init(&text, last, sizeof(last));
	rig_text_addf(&text, "%s", line);
}

void rig_vfio_restore(const char *was)
{
	struct rig_text text;

	rig_text_init(&text, last, sizeof(last));
	rig_text_addf(&text, "%s", was);
}

const char *rig_pci_error(void)
{
	return last;
}
