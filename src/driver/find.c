/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "find.h"
#include "text.h"

#define PLACES 4

/* RIG_BUILD_* and RIG_LIBEXEC_DIR are absolute paths from CMake. */
static const char *built(enum rig_find what)
{
	return what == RIG_FIND_FIRMWARE ? RIG_BUILD_FIRMWARE_DIR : RIG_BUILD_MODEL_DIR;
}

int rig_find_file(const char *first, const char *variable, enum rig_find what, const char *name, char *path,
        size_t bytes)
{
	const char *folders[PLACES] = {first, secure_getenv(variable), built(what), RIG_LIBEXEC_DIR};
	struct rig_text tried;
	unsigned i;

	for (i = 0; i < PLACES; i++) {
		int n;

		if (!folders[i])
			continue;
		n = snprintf(path, bytes, "%s/%s", folders[i], name);
		if (n < 0 || (size_t)n >= bytes)
			return -ENAMETOOLONG;
		if (!access(path, R_OK))
			return 0;
	}
	rig_text_init(&tried, path, bytes);
	for (i = 0; i < PLACES; i++)
		if (folders[i])
			rig_text_addf(&tried, "%s%s", tried.used ? ", " : "", folders[i]);
	return -ENOENT;
}
