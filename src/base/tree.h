/* SPDX-License-Identifier: MIT */
#ifndef RIG_DOCTOR_TREE_H
#define RIG_DOCTOR_TREE_H

/*
 * Files below a root. Private to src/doctor. Any thread.
 *
 * With a root other than "" they are a stranger's: a link that leads out of the tree or in a circle is
 * of a file that does not exist, as is a path that does not fit PATH_MAX; what is no regular file is
 * not opened, for a pipe would hold the reader up; and no more is read of a file or a folder than is
 * said here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Bytes of a file, and names of a folder. */
#define RIG_TREE_MOST  ((size_t)4 << 20)
#define RIG_TREE_NAMES ((size_t)1 << 17)

/* Whether there is something, links followed; errno says why not. */
bool rig_tree_stat(const char *root, const char *path, struct stat *st);
bool rig_tree_exists(const char *root, const char *path);

/* Whether there is a folder, and no link to one. */
bool rig_tree_is_folder(const char *root, const char *path);

/* The file from its beginning, 0-terminated, in memory of the caller's; NULL if it cannot be read. */
char *rig_tree_read(const char *root, const char *path, size_t *bytes);

/* The first line of a file, without its end; false and "" if it cannot be read or is empty. */
bool rig_tree_line(const char *root, const char *path, char *to, size_t bytes);

/* Where a link points to, as it says; false and "" if there is none or it does not fit. */
bool rig_tree_link(const char *root, const char *path, char *to, size_t bytes);

/* Calls each for every name in a folder, sorted, until it answers other than 0, which is the answer. 0 if
 * there is no such folder. */
int rig_tree_each(const char *root, const char *path, int (*each)(void *arg, const char *name), void *arg);

/* Calls each for every line of the text, cut into a terminated string in place. */
int rig_tree_lines(char *text, int (*each)(void *arg, char *line), void *arg);

/* Where a file or folder below root really is, all links resolved, without the root. */
bool rig_tree_real(const char *root, const char *path, char *to, size_t bytes);

/* Whether "/name/" is a part of path, or its end. */
bool rig_tree_part(const char *path, const char *name);

/* The next of the words separated by spaces and tabs, terminated; NULL at the end. */
char *rig_tree_word(char **at);

#endif
