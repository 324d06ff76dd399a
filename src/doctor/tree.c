/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 4096 };

static bool full(const char *root, const char *path, char *to)
{
	return snprintf(to, PATH_MAX, "%s%s", root, path) < PATH_MAX;
}

bool rig_tree_exists(const char *root, const char *path)
{
	char at[PATH_MAX];

	return full(root, path, at) && access(at, F_OK) == 0;
}

/* Files of /proc and /sys do not say how long they are. */
static char *read_all(FILE *file, size_t *bytes)
{
	char *text = NULL, *more;
	size_t room = 0, n;

	*bytes = 0;
	do {
		room += PIECE + room;
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
	char at[PATH_MAX], *text;
	FILE *file;
	size_t n;

	if (!full(root, path, at))
		return NULL;
	file = fopen(at, "re");
	if (!file)
		return NULL;
	text = read_all(file, &n);
	(void)fclose(file);
	if (bytes)
		*bytes = n;
	return text;
}

static int shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int rig_tree_each(const char *root, const char *path, int (*each)(void *arg, const char *name), void *arg)
{
	struct dirent **names;
	char at[PATH_MAX];
	int i, count, answer = 0;

	if (!full(root, path, at))
		return 0;
	count = scandir(at, &names, shown, alphasort);
	for (i = 0; i < count; i++) {
		if (!answer)
			answer = each(arg, names[i]->d_name);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	return answer;
}

int rig_tree_lines(char *text, int (*each)(void *arg, char *line), void *arg)
{
	char *line;
	int answer = 0;

	while (!answer && text && (line = strsep(&text, "\n")))
		if (*line)
			answer = each(arg, line);
	return answer;
}

bool rig_tree_real(const char *root, const char *path, char *to, size_t bytes)
{
	char at[PATH_MAX], real[PATH_MAX], top[PATH_MAX] = "";
	size_t skip;

	if (!full(root, path, at) || !realpath(at, real) || (*root && !realpath(root, top)))
		return false;
	skip = strcmp(top, "/") == 0 ? 0 : strlen(top);
	if (strncmp(real, top, skip) != 0)
		return false; /* a link that leads out of the tree */
	return snprintf(to, bytes, "%s", real + skip) < (int)bytes;
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
