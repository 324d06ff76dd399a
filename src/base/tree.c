/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 4096, FIRST_NAMES = 64 };

/* -- Paths -- */

/* How much of a real path is the root's, which must be its beginning: a link may lead elsewhere. */
static bool root_length(const char *root, const char *real, size_t *length)
{
	char top[PATH_MAX];

	*length = 0;
	if (!*root)
		return true;
	if (!realpath(root, top))
		return false;
	*length = strcmp(top, "/") == 0 ? 0 : strlen(top);
	if (strncmp(real, top, *length) == 0 && (real[*length] == '/' || !real[*length]))
		return true;
	errno = ENOENT;
	return false;
}

/* Where it really is, in the machine's file system. */
static bool find(const char *root, const char *path, char real[PATH_MAX], size_t *length)
{
	char at[PATH_MAX];

	errno = ENAMETOOLONG;
	return snprintf(at, sizeof(at), "%s%s", root, path) < (int)sizeof(at) && realpath(at, real) &&
	       root_length(root, real, length);
}

/* The same with links of this machine left to the kernel, whose own files they lead to. */
static bool locate(const char *root, const char *path, char at[PATH_MAX])
{
	size_t length;

	if (*root)
		return find(root, path, at, &length);
	errno = ENAMETOOLONG;
	return snprintf(at, PATH_MAX, "%s", path) < PATH_MAX;
}

bool rig_tree_real(const char *root, const char *path, char *to, size_t bytes)
{
	char real[PATH_MAX];
	size_t length;

	return find(root, path, real, &length) && snprintf(to, bytes, "%s", real + length) < (int)bytes;
}

bool rig_tree_stat(const char *root, const char *path, struct stat *st)
{
	char at[PATH_MAX];

	return locate(root, path, at) && stat(at, st) == 0;
}

bool rig_tree_exists(const char *root, const char *path)
{
	struct stat st;

	return rig_tree_stat(root, path, &st);
}

/* The folder is resolved, what is in it is not. */
static bool locate_in(const char *root, const char *path, char at[PATH_MAX])
{
	char folder[PATH_MAX];
	const char *last = strrchr(path, '/');
	size_t n = last ? (size_t)(last - path) : 0;

	if (!*root || !last)
		return locate(root, path, at);
	if (n >= sizeof(folder))
		return false;
	memcpy(folder, path, n);
	folder[n] = 0;
	if (!locate(root, folder, at) || strlen(at) + strlen(last) >= PATH_MAX)
		return false;
	strcat(at, last);
	return true;
}

bool rig_tree_is_folder(const char *root, const char *path)
{
	char at[PATH_MAX];
	struct stat st;

	return locate_in(root, path, at) && lstat(at, &st) == 0 && S_ISDIR(st.st_mode);
}

bool rig_tree_link(const char *root, const char *path, char *to, size_t bytes)
{
	char at[PATH_MAX];
	ssize_t n = locate_in(root, path, at) ? readlink(at, to, bytes) : -1;

	if (n < 0 || (size_t)n == bytes)
		n = 0;
	to[n] = 0;
	return n > 0;
}

/* -- Files -- */

static FILE *open_file(const char *root, const char *path)
{
	char at[PATH_MAX];
	struct stat st;

	if (!locate(root, path, at) || stat(at, &st) || !S_ISREG(st.st_mode))
		return NULL;
	return fopen(at, "re");
}

/* Files of /proc and /sys do not say how long they are. */
static char *read_all(FILE *file, size_t *bytes)
{
	char *text = NULL, *more;
	size_t room = 0, n;

	*bytes = 0;
	do {
		room += PIECE + room;
		if (room > RIG_TREE_MOST)
			room = RIG_TREE_MOST;
		more = realloc(text, room + 1);
		if (!more)
			break;
		text = more;
		n = fread(text + *bytes, 1, room - *bytes, file);
		*bytes += n;
	} while (*bytes == room && room < RIG_TREE_MOST);
	if (!more || ferror(file)) {
		free(text);
		return NULL;
	}
	text[*bytes] = 0;
	return text;
}

char *rig_tree_read(const char *root, const char *path, size_t *bytes)
{
	FILE *file = open_file(root, path);
	char *text;
	size_t n;

	if (!file)
		return NULL;
	text = read_all(file, &n);
	(void)fclose(file);
	if (bytes)
		*bytes = n;
	return text;
}

bool rig_tree_line(const char *root, const char *path, char *to, size_t bytes)
{
	FILE *file = open_file(root, path);
	bool any;

	*to = 0;
	if (!file)
		return false;
	any = fgets(to, (int)bytes, file) != NULL;
	(void)fclose(file);
	if (!any)
		*to = 0;
	to[strcspn(to, "\n")] = 0;
	return any;
}

/* -- Folders -- */

struct names {
	char **name;
	size_t count, room;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_name(struct names *n, const char *name)
{
	if (n->count == n->room) {
		size_t room = n->room ? 2 * n->room : FIRST_NAMES;
		char **more = realloc(n->name, room * sizeof(*more));

		if (!more)
			return false;
		n->name = more;
		n->room = room;
	}
	n->name[n->count] = strdup(name);
	return n->name[n->count] && ++n->count < RIG_TREE_NAMES;
}

static struct names list(const char *root, const char *path)
{
	struct names n = {NULL, 0, 0};
	struct dirent *entry;
	char at[PATH_MAX];
	DIR *dir = locate(root, path, at) ? opendir(at) : NULL;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !add_name(&n, entry->d_name))
			break;
	if (dir)
		closedir(dir);
	if (n.count)
		qsort(n.name, n.count, sizeof(*n.name), by_name);
	return n;
}

int rig_tree_each(const char *root, const char *path, int (*each)(void *arg, const char *name), void *arg)
{
	struct names n = list(root, path);
	int answer = 0;

	for (size_t i = 0; i < n.count; i++) {
		if (!answer)
			answer = each(arg, n.name[i]);
		free(n.name[i]);
	}
	free(n.name);
	return answer;
}

/* -- Text -- */

int rig_tree_lines(char *text, int (*each)(void *arg, char *line), void *arg)
{
	char *line;
	int answer = 0;

	while (!answer && text && (line = strsep(&text, "\n")))
		if (*line)
			answer = each(arg, line);
	return answer;
}

bool rig_tree_part(const char *path, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = path; (at = strchr(at, '/')); at++)
		if (strncmp(at + 1, name, n) == 0 && (at[1 + n] == '/' || !at[1 + n]))
			return true;
	return false;
}

char *rig_tree_word(char **at)
{
	char *word;

	while ((word = strsep(at, " \t")))
		if (*word)
			return word;
	return NULL;
}
