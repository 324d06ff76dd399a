/* SPDX-License-Identifier: MIT */
/* Who has a function: the lock that the library takes, and descriptors of its nodes. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "kernel_sysfs.h"
#include "tree.h"

/* A process's name, as the kernel cuts it. */
#define COMM_BYTES 16u
#define HOLDER     96u

struct search {
	const char *root;
	struct rig_ksysfs s;
	char group[64], cdev[96]; /* their nodes; "" if there is none */
	const char *pid, *folder; /* while descriptors are looked at */
	char *text, *file;
	size_t bytes, file_bytes;
};

/* "4711 (rigctl)" is true while process 4711 has that name: the file stays behind, and numbers come back.
   This process is no other: its own lock, taken before the nodes are, is not what stands in its way. */
static bool is_other(const char *root, const char *holder)
{
	char path[PATH_MAX], comm[COMM_BYTES + 1], name[COMM_BYTES];
	unsigned long pid;

	if (sscanf(holder, "%lu (%15[^)]", &pid, name) != 2 || pid == (unsigned long)getpid())
		return false;
	snprintf(path, sizeof(path), "/proc/%lu/comm", pid);
	return rig_ksysfs_line(root, path, comm, sizeof(comm)) && strcmp(comm, name) == 0;
}

static int check_lock(struct search *q, const char *folder)
{
	char path[PATH_MAX], holder[HOLDER];

	snprintf(path, sizeof(path), "%s/%s", folder, q->s.bdf);
	if (!rig_ksysfs_line(q->root, path, holder, sizeof(holder)) || !is_other(q->root, holder))
		return 0;
	snprintf(q->text, q->bytes, "%s", holder);
	snprintf(q->file, q->file_bytes, "%s", path);
	return 1;
}

static int check_user(void *arg, const char *user)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "/run/user/%s/rig-vfio", user);
	return check_lock(arg, folder);
}

static int check_descriptor(void *arg, const char *name)
{
	char path[PATH_MAX], target[128], comm[COMM_BYTES + 1];
	struct search *q = arg;

	snprintf(path, sizeof(path), "%s/%s", q->folder, name);
	if (!rig_tree_link(q->root, path, target, sizeof(target)))
		return 0;
	if ((!*q->group || strcmp(target, q->group) != 0) && (!*q->cdev || strcmp(target, q->cdev) != 0))
		return 0;
	snprintf(q->file, q->file_bytes, "%s", path);
	snprintf(path, sizeof(path), "/proc/%s/comm", q->pid);
	(void)rig_ksysfs_line(q->root, path, comm, sizeof(comm));
	snprintf(q->text, q->bytes, "%s (%s)", q->pid, comm);
	return 1;
}

static int check_process(void *arg, const char *pid)
{
	struct search *q = arg;
	char folder[64];

	if (!isdigit((unsigned char)*pid) || strtol(pid, NULL, 10) == (long)getpid())
		return 0;
	snprintf(folder, sizeof(folder), "/proc/%.32s/fd", pid);
	q->pid = pid;
	q->folder = folder;
	return rig_tree_each(q->root, folder, check_descriptor, q);
}

bool rig_doctor_holder(
        const char *root, const char *bdf, char *text, size_t bytes, char *file, size_t file_bytes)
{
	struct search q = {
	        .root = root, .text = text, .bytes = bytes, .file = file, .file_bytes = file_bytes};

	*text = *file = 0;
	if (rig_ksysfs_read(root, bdf, &q.s))
		return false;
	if (q.s.group >= 0)
		snprintf(
		        q.group, sizeof(q.group), "/dev/vfio/%s%d", q.s.noiommu ? "noiommu-" : "", q.s.group);
	if (*q.s.cdev)
		snprintf(q.cdev, sizeof(q.cdev), "/dev/vfio/devices/%s", q.s.cdev);
	return check_lock(&q, "/run/rig-vfio") || rig_tree_each(root, "/run/user", check_user, &q) ||
	       rig_tree_each(root, "/proc", check_process, &q);
}
