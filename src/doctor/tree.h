/* SPDX-License-Identifier: MIT */
#ifndef RIG_DOCTOR_TREE_H
#define RIG_DOCTOR_TREE_H

/* Files below a root, beyond one line of one (kernel_sysfs.h). Private to src/doctor. Any thread. Paths that
 * do not fit PATH_MAX are of files that do not exist. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool rig_tree_exists(const char *root, const char *path);

/* The whole file, 0-terminated, in memory of the caller's; NULL if it cannot be read. At most RIG_TREE_MOST
 * bytes. */
#define RIG_TREE_MOST ((size_t)4 << 20)
char *rig_tree_read(const char *root, const char *path, size_t *bytes);

/* Calls each for every name in a folder, sorted, until it answers other than 0, which is the answer. 0 if
 * there is no such folder. */
int rig_tree_each(const char *root, const char *path, int (*each)(void *arg, const char *name), void *arg);

/* Calls each for every line of the text, cut into a terminated string in place. */
int rig_tree_lines(char *text, int (*each)(void *arg, char *line), void *arg);

/* Where a folder below root really is, all links resolved, without the root. */
bool rig_tree_real(const char *root, const char *path, char *to, size_t bytes);

/* Whether "/name/" is a part of path, or its end. */
bool rig_tree_part(const char *path, const char *name);

/* The next of the words separated by spaces and tabs, terminated; NULL at the end. */
char *rig_tree_word(char **at);

#endif
