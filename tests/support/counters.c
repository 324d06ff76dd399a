/* SPDX-License-Identifier: MIT */
#include "counters.h"

#include "allocs.h"

#include "test.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_FDS 1 /* the directory stream that counts */

static unsigned count_fds(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/fd");

	if (!dir)
		fail_msg("cannot read /proc/self/fd");
	for (const struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n - OWN_FDS;
}

/* A mapping that code under test made, as opposed to heap, stacks, libraries and a sanitizer's own. */
static bool counts(const char *line)
{
	const char *mode = strchr(line, ' ');

	return (mode && strlen(mode) > 4 && mode[4] == 's') || strstr(line, "/memfd:") ||
	       strstr(line, "anon_inode") || strstr(line, "/dev/");
}

static unsigned count_mappings(void)
{
	char line[512];
	unsigned n = 0;
	FILE *file = fopen("/proc/self/maps", "re");

	if (!file)
		fail_msg("cannot read /proc/self/maps");
	while (fgets(line, sizeof(line), file))
		n += counts(line);
	fclose(file);
	return n;
}

/* Children of every thread, from the kernel's own list where it has one. */
static unsigned count_children(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/task");

	if (!dir)
		fail_msg("cannot read /proc/self/task");
	for (const struct dirent *e; (e = readdir(dir));) {
		char path[300];
		int pid;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/children", e->d_name);
		FILE *file = fopen(path, "re");
		while (file && fscanf(file, "%d", &pid) == 1)
			n++;
		if (file)
			fclose(file);
	}
	closedir(dir);
	return n;
}

void test_counts_take(struct test_counts *counts)
{
	*counts = (struct test_counts){
	        .fds = count_fds(),
	        .mappings = count_mappings(),
	        .blocks = test_allocs_live(),
	        .children = count_children(),
	};
}

static void same(const char *what, unsigned before, unsigned now)
{
	if (before != now)
		fail_msg("%s: %u before, %u now", what, before, now);
}

void test_counts_same(const struct test_counts *before)
{
	struct test_counts now;

	test_counts_take(&now);
	same("open descriptors", before->fds, now.fds);
	same("device and shared mappings", before->mappings, now.mappings);
	same("live heap blocks", before->blocks, now.blocks);
	same("child processes", before->children, now.children);
}
