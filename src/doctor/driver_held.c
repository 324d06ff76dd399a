/* SPDX-License-Identifier: MIT */
/* Who has nodes open that a function's kernel driver made. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "kernel_sysfs.h"
#include "tree.h"

/* A driver's nodes lie up to so deep below the function (drm/card0/card0-DP-1/drm_dp_aux0), and are few. */
enum { DEEPEST = 4, MOST_NODES = 64, MOST_FOLDERS = 1024, NAME = 48, COMM = 17 };

struct search {
	const char *root;
	struct rig_ksysfs s;
	char node[MOST_NODES][NAME]; /* names below /dev, without folders */
	unsigned nodes, folders, depth;
	const char *path; /* the folder that is looked at: of the function, or of descriptors */
	long number;      /* of the driver's own node (/dev/nvidia0); -1: unknown */
	const char *pid;
	int (*each)(void *arg, const char *who, const char *node, const char *file);
	void *arg;
	int answer; /* of each */
};

/* -- The nodes -- */

static int visit(void *arg, const char *name);

/* A device has its number in "dev", and its name is that of its node. */
static void look_into(struct search *q, const char *folder, const char *name)
{
	char path[PATH_MAX];
	const char *before = q->path;

	if (snprintf(path, sizeof(path), "%s/dev", folder) >= (int)sizeof(path))
		return;
	if (q->depth && q->nodes < MOST_NODES && strlen(name) < NAME && rig_tree_exists(q->root, path))
		strcpy(q->node[q->nodes++], name);
	if (q->depth == DEEPEST)
		return;
	q->depth++;
	q->path = folder;
	(void)rig_tree_each(q->root, folder, visit, q);
	q->path = before;
	q->depth--;
}

static int visit(void *arg, const char *name)
{
	struct search *q = arg;
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof(folder), "%s/%s", q->path, name) >= (int)sizeof(folder) ||
	        rig_bdf_is_name(name) || !rig_tree_is_folder(q->root, folder))
		return 0;
	if (++q->folders > MOST_FOLDERS)
		return 1;
	look_into(q, folder, name);
	return 0;
}

static int read_minor(void *arg, char *line)
{
	return sscanf(line, "Device Minor: %ld", (long *)arg) == 1;
}

/* A driver that is no device of the kernel's model says in its own way which node is the function's. */
static void find_number(struct search *q)
{
	char path[PATH_MAX], *text;

	q->number = -1;
	snprintf(path, sizeof(path), "/proc/driver/%s/gpus/%s/information", q->s.driver, q->s.bdf);
	text = rig_tree_read(q->root, path, NULL);
	(void)rig_tree_lines(text, read_minor, &q->number);
	free(text);
}

/* "nvidia0" of the driver nvidia: the function's, or for all that is to be seen one of the driver's. */
static bool is_named_after_driver(const struct search *q, const char *name)
{
	size_t n = strlen(q->s.driver);

	if (strncmp(name, q->s.driver, n) != 0 || !isdigit((unsigned char)name[n]))
		return false;
	return q->number < 0 || strtol(name + n, NULL, 10) == q->number;
}

static bool is_node(const struct search *q, const char *target)
{
	const char *name = strrchr(target, '/');

	if (strncmp(target, "/dev/", 5) != 0)
		return false;
	name++;
	for (unsigned i = 0; i < q->nodes; i++)
		if (strcmp(name, q->node[i]) == 0)
			return true;
	return is_named_after_driver(q, name);
}

/* -- The processes -- */

static int check_descriptor(void *arg, const char *name)
{
	char path[PATH_MAX], target[PATH_MAX], comm[COMM], who[64];
	struct search *q = arg;

	if (snprintf(path, sizeof(path), "%s/%s", q->path, name) >= (int)sizeof(path) ||
	        !rig_tree_link(q->root, path, target, sizeof(target)) || !is_node(q, target))
		return 0;
	snprintf(who, sizeof(who), "/proc/%.32s/comm", q->pid);
	(void)rig_tree_line(q->root, who, comm, sizeof(comm));
	snprintf(who, sizeof(who), "%.32s (%s)", q->pid, comm);
	q->answer = q->each(q->arg, who, target, path);
	return q->answer ? 1 : -1; /* one descriptor of a process is enough */
}

/* A process once, however many nodes it has: -1 ends its descriptors, 1 everything. */
static int check_process(void *arg, const char *pid)
{
	struct search *q = arg;
	char folder[64];

	if (!isdigit((unsigned char)*pid) || strtol(pid, NULL, 10) == (long)getpid())
		return 0;
	snprintf(folder, sizeof(folder), "/proc/%.32s/fd", pid);
	q->pid = pid;
	q->path = folder;
	return rig_tree_each(q->root, folder, check_descriptor, q) > 0;
}

int rig_doctor_driver_holders(const char *root, const char *bdf,
        int (*each)(void *arg, const char *who, const char *node, const char *file), void *arg)
{
	struct search q = {.root = root, .each = each, .arg = arg};
	char folder[PATH_MAX];

	if (rig_ksysfs_read(root, bdf, &q.s) || !*q.s.driver || q.s.vfio)
		return 0;
	find_number(&q);
	snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s", q.s.bdf);
	look_into(&q, folder, "");
	(void)rig_tree_each(root, "/proc", check_process, &q);
	return q.answer;
}
