/* SPDX-License-Identifier: MIT */
/* Where the library finds the files that come with it: the firmware image and the model. */
#ifndef RIG_FIND_H
#define RIG_FIND_H

#include <stddef.h>

enum rig_find { RIG_FIND_FIRMWARE, RIG_FIND_MODEL };

/*
 * The path of file `name`: in `first` (may be NULL), in the folder that the environment variable `variable` names, in
 * the build folder, in the installed libexec folder; the first that exists. -ENOENT: `path` then lists the folders
 * that were tried. -ENAMETOOLONG.
 */
int rig_find_file(const char *first, const char *variable, enum rig_find what, const char *name, char *path,
        size_t bytes);

#endif
