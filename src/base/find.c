/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "find.h"
#include "text.h"

#define PLACES 3

/* The program or library that this code is in, with no link in its path; false if the system does not
   tell. */
static bool own_path(char path[PATH_MAX])
{
	Dl_info info;

	/* The name of a program is what it was called by, which need not be a path. */
	if (dladdr((void *)(uintptr_t)&rig_find_file, &info) && info.dli_fname && info.dli_fname[0] == '/' &&
	        realpath(info.dli_fname, path))
		return true;
	return realpath("/proc/self/exe", path) != NULL;
}

/* RIG_BUILD_* and RIG_LIBEXEC_DIR are absolute paths from CMake. */
static const char *built(enum rig_find what, const char *own)
{
	size_t length = strlen(RIG_BUILD_DIR);

	if (strncmp(own, RIG_BUILD_DIR, length) != 0 || own[length] != '/')
		return NULL;
	return what == RIG_FIND_FIRMWARE ? RIG_BUILD_FIRMWARE_DIR : RIG_BUILD_MODEL_DIR;
}

/* PREFIX/libexec/rig-vfio for PREFIX/lib/librig_vfio.so and PREFIX/bin/rigctl. */
static const char *beside(const char *own, char folder[PATH_MAX])
{
	static const char libexec[] = "/libexec/rig-vfio";
	char *slash;
	unsigned i;

	strcpy(folder, own);

	for (i = 0; i < 2; i++) {
		slash = strrchr(folder, '/');
		if (!slash)
			return NULL;
		*slash = 0;
	}
	if (strlen(folder) + sizeof(libexec) > PATH_MAX)
		return NULL;
	return strcat(folder, libexec);
}

static int enter(const char *folder, const char *name, char *path, size_t bytes)
{
	int n = snprintf(path, bytes, "%s/%s", folder, name);

	if (n < 0 || (size_t)n >= bytes)
		return -ENAMETOOLONG;
	return access(path, R_OK) ? -ENOENT : 0;
}

static int find_in(const char *folder, const char *from, const char *name, char *path, size_t bytes)
{
	int err = enter(folder, name, path, bytes);

	if (err == -ENOENT)
		snprintf(path, bytes, "%s: not in %s, the folder that %s names", name, folder, from);
	else if (err)
		snprintf(path, bytes, "%s: the name of its folder is too long", name);
	return err;
}

int rig_find_file(const char *only, enum rig_find what, const char *name, char *path, size_t bytes)
{
	const char *variable = what == RIG_FIND_FIRMWARE ? "RIG_FIRMWARE_DIR" : "RIG_MODEL_DIR";
	const char *set = secure_getenv(variable);
	char own[PATH_MAX], installed[PATH_MAX];
	bool known = own_path(own);
	const char *folders[PLACES] = {
	        known ? built(what, own) : NULL, known ? beside(own, installed) : NULL, RIG_LIBEXEC_DIR};
	struct rig_text tried;
	unsigned i;

	if (only)
		return find_in(only, "the option", name, path, bytes);
	if (set && *set)
		return find_in(set, variable, name, path, bytes);
	for (i = 0; i < PLACES; i++)
		if (folders[i] && !enter(folders[i], name, path, bytes))
			return 0;
	rig_text_init(&tried, path, bytes);
	rig_text_addf(&tried, "%s: not in ", name);
	for (i = 0; i < PLACES; i++)
		if (folders[i])
			rig_text_addf(&tried, "%s, ", folders[i]);
	rig_text_addf(&tried, "and %s names no other folder", variable);
	return -ENOENT;
}
