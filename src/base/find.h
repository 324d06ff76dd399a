/* SPDX-License-Identifier: MIT */
/* Where the library finds the files that come with it: the firmware image and the model. */
#ifndef RIG_FIND_H
#define RIG_FIND_H

#include <stddef.h>

enum rig_find { RIG_FIND_FIRMWARE, RIG_FIND_MODEL };

/*
 * The path of file `name`: in `only`, an option's folder, if that is not NULL; else in the folder that
 * RIG_FIRMWARE_DIR or RIG_MODEL_DIR names, if it names one; else in the build folder if this code runs from
 * there, in libexec/rig-vfio beside the folder this code was loaded from, or in the configured libexec
 * folder, the first that has it. (An installed library does not look into the folder it was built in:
 * somebody else may have that name by now.)
 *
 * A folder that somebody named and that lacks the file is an error: another's file would be a surprise.
 * -ENOENT or
 * -ENAMETOOLONG: `path` then is the message, "NAME: not in ...".
 */
int rig_find_file(const char *only, enum rig_find what, const char *name, char *path, size_t bytes);

#endif
