/* SPDX-License-Identifier: MIT */
/* The nodes by which a function is opened: whether they are there, are the kernel's, and may be opened. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "doctor_private.h"
#include "tree.h"

#define STATUS "/proc/self/status"
#define CGROUP "/proc/self/cgroup"
#define LISTS  "/sys/fs/cgroup/devices"

#define CAP_DAC_OVERRIDE 1u /* capabilities(7) */

enum { PATH = 160 };

/* -- One node -- */

struct node {
	char path[PATH];    /* "/dev/vfio/12" */
	char kernels[PATH]; /* the file with the number that the kernel gave it: "243:0" */
	bool found, numbered;
	unsigned mode, uid, gid, major, minor;
};

/* A captured tree has in place of the folder a file, a line a node: "600 0 0 /dev/vfio/12 f3:0", the
 * number in hex. */
static int is_node(void *arg, char *line)
{
	struct node *n = arg;
	char path[PATH];
	int count =
	        sscanf(line, "%o %u %u %159s %x:%x", &n->mode, &n->uid, &n->gid, path, &n->major, &n->minor);

	n->found = count >= 4 && strcmp(path, n->path) == 0;
	n->numbered = count == 6;
	return n->found;
}

static void read_node(const struct rig_exam *x, struct node *n)
{
	struct stat st;
	char *text;

	if (rig_tree_stat(x->root, n->path, &st)) {
		n->found = true;
		n->numbered = S_ISCHR(st.st_mode);
		n->major = major(st.st_rdev);
		n->minor = minor(st.st_rdev);
		n->mode = st.st_mode & 0777u;
		n->uid = st.st_uid;
		n->gid = st.st_gid;
		return;
	}
	text = rig_tree_read(x->root, "/dev/vfio", NULL);
	(void)rig_tree_lines(text, is_node, n);
	free(text);
}

/* The number that the kernel's device has now; false: it does not say. */
static bool kernels_number(const struct rig_exam *x, const struct node *n, unsigned *major, unsigned *minor)
{
	char line[32];

	return rig_ksysfs_line(x->root, n->kernels, line, sizeof(line)) &&
	       sscanf(line, "%u:%u", major, minor) == 2;
}

/* -- Who asks -- */

struct user {
	const struct rig_exam *x;
	unsigned uid, gid;
	bool all; /* CAP_DAC_OVERRIDE */
};

/* The effective ids are the second of four. */
static bool read_user(const struct rig_exam *x, struct user *u)
{
	char text[RIG_FIELD];

	*u = (struct user){.x = x, .gid = UINT_MAX};
	if (!rig_field(x, STATUS, "Uid:", text) || sscanf(text, "%*u %u", &u->uid) != 1)
		return false;
	if (rig_field(x, STATUS, "Gid:", text))
		(void)sscanf(text, "%*u %u", &u->gid);
	u->all = rig_has_capability(x, CAP_DAC_OVERRIDE);
	return true;
}

static int has_group(void *arg, char *line)
{
	static const char name[] = "Groups:";
	const unsigned *gid = arg;
	char *word, *at = line + sizeof(name) - 1;

	if (strncmp(line, name, sizeof(name) - 1) != 0)
		return 0;
	while ((word = rig_tree_word(&at)))
		if (strtoul(word, NULL, 10) == *gid)
			return 1;
	return 0;
}

/* A user has up to 65,536 groups. */
static bool is_in_group(const struct user *u, unsigned gid)
{
	char *text = u->gid == gid ? NULL : rig_tree_read(u->x->root, STATUS, NULL);
	bool in = u->gid == gid || rig_tree_lines(text, has_group, &gid);

	free(text);
	return in;
}

static bool may_open(const struct user *u, const struct node *n)
{
	if (u->all)
		return true;
	if (n->uid == u->uid)
		return (n->mode & 0600) == 0600;
	if (is_in_group(u, n->gid))
		return (n->mode & 060) == 060;
	return (n->mode & 06) == 06;
}

/* -- The control group -- */

/* "c 10:200 rwm", "c 243:* rwm", "a *:* rwm" (the first version of cgroups; the second shows nothing). */
static int is_allowed(void *arg, char *line)
{
	const struct node *n = arg;
	char kind, which[2][16], rights[8];

	if (sscanf(line, "%c %15[0-9*]:%15[0-9*] %7s", &kind, which[0], which[1], rights) != 4)
		return 0;
	if (kind != 'a' && (kind != 'c' || !strchr(rights, 'r') || !strchr(rights, 'w')))
		return 0;
	return (*which[0] == '*' || strtoul(which[0], NULL, 10) == n->major) &&
	       (*which[1] == '*' || strtoul(which[1], NULL, 10) == n->minor);
}

/* "4:devices:/docker/4a6f". */
static int is_devices(void *arg, char *line)
{
	char *at = strstr(line, ":devices:");

	if (!at)
		return 0;
	snprintf(arg, PATH, "%s", at + strlen(":devices:"));
	return 1;
}

static bool is_denied(const struct rig_exam *x, const struct node *n, char *file)
{
	char group[PATH] = "", *text = rig_tree_read(x->root, CGROUP, NULL);
	bool denied;

	(void)rig_tree_lines(text, is_devices, group);
	free(text);
	if (!*group || !n->numbered)
		return false;
	snprintf(file, RIG_FINDING_FILE, LISTS "%.120s/devices.list", strcmp(group, "/") == 0 ? "" : group);
	text = rig_tree_read(x->root, file, NULL);
	denied = text && !rig_tree_lines(text, is_allowed, (void *)(uintptr_t)n);
	free(text);
	return denied;
}

/* -- The nodes of a way -- */

/* The group's node and the container's, or the function's own and iommufd's. */
struct way {
	struct node node[2];
	bool serves; /* all are there, are the kernel's, and may be opened */
};

static bool is_stale(const struct rig_exam *x, const struct node *n)
{
	unsigned major, minor;

	return n->found && n->numbered && kernels_number(x, n, &major, &minor) &&
	       (major != n->major || minor != n->minor);
}

static void read_way(const struct rig_exam *x, const struct user *u, struct way *w)
{
	char file[RIG_FINDING_FILE];

	w->serves = true;
	for (unsigned i = 0; i < 2; i++) {
		struct node *n = &w->node[i];

		read_node(x, n);
		if (!n->found || is_stale(x, n) || is_denied(x, n, file) || !may_open(u, n))
			w->serves = false;
	}
}

static struct node node(const char *folder, const char *name, const char *kernels)
{
	struct node n;

	memset(&n, 0, sizeof(n));
	snprintf(n.path, sizeof(n.path), "%s/%s", folder, name);
	snprintf(n.kernels, sizeof(n.kernels), "%s/dev", kernels);
	return n;
}

static void read_group_way(const struct rig_exam *x, const struct user *u, struct way *w)
{
	char name[32], kernels[PATH];

	snprintf(name, sizeof(name), "%s%d", x->s.noiommu ? "noiommu-" : "", x->s.group);
	snprintf(kernels, sizeof(kernels), "/sys/class/vfio/%s", name);
	w->node[0] = node("/dev/vfio", name, kernels);
	w->node[1] = node("/dev/vfio", "vfio", "/sys/class/misc/vfio");
	read_way(x, u, w);
}

static void read_cdev_way(const struct rig_exam *x, const struct user *u, struct way *w)
{
	char kernels[PATH];

	snprintf(kernels, sizeof(kernels), RIG_PCI_DEVICES "/%s/vfio-dev/%.63s", x->s.bdf, x->s.cdev);
	w->node[0] = node("/dev/vfio/devices", x->s.cdev, kernels);
	w->node[1] = node("/dev", "iommu", "/sys/class/misc/iommu");
	read_way(x, u, w);
}

/* The nodes of which something is in the way; false where one way serves, or nothing can be told. Where
 * either would do and neither does, the group's nodes are named, which every kernel has. */
static bool choose(const struct rig_exam *x, struct user *u, struct way *w)
{
	bool cdev = x->ask->way == RIG_DOCTOR_IOMMUFD || (x->ask->way == RIG_DOCTOR_ANY && *x->s.cdev);
	bool group = x->ask->way != RIG_DOCTOR_IOMMUFD;

	if (x->s.group < 0 || !x->s.vfio || (!group && !*x->s.cdev) || !rig_tree_exists(x->root, "/dev") ||
	        (*x->root && !rig_tree_exists(x->root, "/dev/vfio")) || !read_user(x, u))
		return false;
	if (cdev) {
		read_cdev_way(x, u, w);
		if (w->serves)
			return false;
	}
	if (group && !(cdev && !rig_tree_exists(x->root, RIG_TYPE1)))
		read_group_way(x, u, w);
	return !w->serves;
}

/* -- What is found -- */

void rig_look_node_missing(struct rig_exam *x)
{
	struct rig_finding *f;
	struct user u;
	struct way w;

	for (unsigned i = 0; choose(x, &u, &w) && i < 2; i++) {
		const char *path = w.node[i].path;

		if (w.node[i].found)
			continue;
		f = rig_found(x, path, "no such node");
		rig_command(f,
		        "# in a container: start it with the node (docker, podman: --device %s; Kubernetes: "
		        "by a "
		        "device plugin)",
		        path);
		rig_command(f,
		        "# on the machine itself: /dev must be a devtmpfs, which has each node while its "
		        "device is "
		        "there: ls -l %s; udevadm trigger",
		        path);
	}
}

void rig_look_node_stale(struct rig_exam *x)
{
	unsigned major, minor;
	struct rig_finding *f;
	struct user u;
	struct way w;

	for (unsigned i = 0; choose(x, &u, &w) && i < 2; i++) {
		const struct node *n = &w.node[i];

		if (!is_stale(x, n) || !kernels_number(x, n, &major, &minor))
			continue;
		f = rig_found(
		        x, n->path, "%u:%u, while %s is %u:%u", n->major, n->minor, n->kernels, major, minor);
		rig_command(f, "# in a container: start it again; it keeps the nodes of its start");
		rig_command(f, "rm %s; mknod -m %o %s c %u %u   # as root, on the machine itself", n->path,
		        n->mode, n->path, major, minor);
	}
}

void rig_look_node_denied(struct rig_exam *x)
{
	char file[RIG_FINDING_FILE];
	struct rig_finding *f;
	struct user u;
	struct way w;

	for (unsigned i = 0; choose(x, &u, &w) && i < 2; i++) {
		const struct node *n = &w.node[i];

		if (!n->found || (!is_denied(x, n, file) && !x->ask->seen.denied))
			continue;
		if (!is_denied(x, n, file))
			snprintf(file, sizeof(file), "%s", n->path);
		f = rig_found(x, file, "%s, %u:%u", n->path, n->major, n->minor);
		rig_command(
		        f, "# in a container: start it with the node (docker, podman: --device %s)", n->path);
		rig_command(f, "# of a service: DeviceAllow=%s rw, or PrivateDevices=no", n->path);
	}
}

void rig_look_node(struct rig_exam *x)
{
	struct rig_finding *f;
	struct user u;
	struct way w;

	for (unsigned i = 0; choose(x, &u, &w) && i < 2; i++) {
		const struct node *n = &w.node[i];

		if (!n->found || may_open(&u, n))
			continue;
		f = rig_found(x, n->path, "mode %03o, owner %u, group %u; the user is %u", n->mode, n->uid,
		        n->gid, u.uid);
		/* The second is no function's, so bind does not hand it over. */
		if (i == 0)
			rig_command(f, "rigctl bind --user %u %s   # as root; or: chown %u %s", u.uid,
			        x->s.bdf, u.uid, n->path);
		else if (strcmp(n->path, "/dev/vfio/vfio") == 0)
			rig_command(f, "chmod 666 %s   # as root; by itself it gives no function to anybody",
			        n->path);
		else
			rig_command(f, "chown %u %s   # as root", u.uid, n->path);
	}
}
