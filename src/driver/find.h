/* SPDX-License-Identifier: MIT */
/* Where the library finds the files that come with it: the firmware image and the model. */
#ifndef RIG_FIND_H
#define RIG_FIND_H

#include <stddef.h>

enum rig_find { RIG_FIND_FIRMWARE, RIG_FIND_MODEL };

/*
 * The path of file `name`: in `first` (may be NULL), in the folder that the environment variable `variable` names, in
 * the build folder if this code runs from there, in libexec/rig-vfio beside the folder this code was loaded from, in the
 * configured libexec folder; the first that exists. (An installed library does not look into the folder it was built in:
 * somebody else may have that name by now.) -ENOENT: `path` then lists the folders
 * that were tried. -ENAMETOOLONG.
 */
int rig_find_file(const char *first, const char *variable, enum rig_find what, const char *name, char *path,
        size_t bytes);

#endif
