/* SPDX-License-Identifier: MIT */
/* Whether the machine works through a function: its disks and its network. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "kernel_sysfs.h"
#include "tree.h"

/* What stands on what is followed so deep, and so often: a folder of links can hold itself many times
 * over. */
enum { NAME = 64, DEEPEST = 8, MOST_STEPS = 512 };

struct use {
	const char *root, *bdf;
	const char *over; /* the disk or interface that is looked at */
	unsigned depth, steps;
	char *text;
	size_t bytes;
};

static int say(struct use *u, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Answers 1, which ends the walk. */
static int say(struct use *u, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(u->text, u->bytes, format, args);
	va_end(args);
	return 1;
}

/* Whether the class's entry is a device below the function. */
static bool below(const char *root, const char *path, const char *bdf)
{
	char real[PATH_MAX];

	return rig_tree_real(root, path, real, sizeof(real)) && rig_tree_part(real, bdf);
}

/* -- Disks -- */

/* A kernel's name has ! where the name below /dev has /. */
static void node_name(const char *root, const char *disk, char *to, size_t bytes)
{
	char path[PATH_MAX], mapped[NAME];

	snprintf(path, sizeof(path), "/sys/class/block/%s/dm/name", disk);
	if (rig_ksysfs_line(root, path, mapped, sizeof(mapped)))
		snprintf(to, bytes, "/dev/mapper/%s", mapped);
	else
		snprintf(to, bytes, "/dev/%s", disk);
	for (; *to; to++)
		if (*to == '!')
			*to = '/';
}

struct mounted {
	char number[NAME]; /* "8:1" */
	char node[NAME * 2], plain[NAME * 2];
	char where[RIG_FINDING_FILE];
};

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw" (proc_pid_mountinfo(5)). */
static int is_mount(void *arg, char *line)
{
	struct mounted *m = arg;
	char *dash = strstr(line, " - "), *at = line, *number, *where, *source = NULL;

	if (dash) {
		*dash = 0;
		dash += strlen(" - ");
		(void)rig_tree_word(&dash);
		source = rig_tree_word(&dash);
	}
	(void)rig_tree_word(&at);
	(void)rig_tree_word(&at);
	number = rig_tree_word(&at);
	(void)rig_tree_word(&at);
	where = rig_tree_word(&at);
	if (!number || !where)
		return 0;
	if (strcmp(number, m->number) != 0 &&
	        (!source || (strcmp(source, m->node) != 0 && strcmp(source, m->plain) != 0)))
		return 0;
	snprintf(m->where, sizeof(m->where), "%s", where);
	return 1;
}

/* "/dev/sda1 / ext4 rw 0 0", and /proc/swaps, whose first word is the same. */
static int is_source(void *arg, char *line)
{
	struct mounted *m = arg;
	char *at = line, *source = rig_tree_word(&at), *where = rig_tree_word(&at);

	if (!source || (strcmp(source, m->node) != 0 && strcmp(source, m->plain) != 0))
		return 0;
	snprintf(m->where, sizeof(m->where), "%s", where ? where : "?");
	return 1;
}

static int in_file(
        const char *root, const char *path, int (*each)(void *arg, char *line), struct mounted *m, bool *read)
{
	char *text = rig_tree_read(root, path, NULL);
	int answer;

	if (text)
		*read = true;
	answer = rig_tree_lines(text, each, m);
	free(text);
	return answer;
}

static int has_member(void *arg, const char *filesystem)
{
	const struct use *u = arg;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/fs/btrfs/%s/devices/%s", filesystem, u->over);
	return rig_tree_exists(u->root, path);
}

static int check_disk(void *arg, const char *disk);

/* Mounted, swapped to, or a part of what is. */
static int check_node(struct use *u, const char *disk)
{
	struct mounted m = {{0}, {0}, {0}, {0}};
	char path[PATH_MAX];
	bool read = false;

	node_name(u->root, disk, m.node, sizeof(m.node));
	snprintf(m.plain, sizeof(m.plain), "/dev/%s", disk);
	snprintf(path, sizeof(path), "/sys/class/block/%s/dev", disk);
	(void)rig_ksysfs_line(u->root, path, m.number, sizeof(m.number));
	if (in_file(u->root, "/proc/self/mountinfo", is_mount, &m, &read) ||
	        in_file(u->root, "/proc/1/mountinfo", is_mount, &m, &read) ||
	        in_file(u->root, "/proc/mounts", is_source, &m, &read))
		return say(u, "%s is mounted on %s", m.node, m.where);
	if (!read)
		return say(u, "it has the disk %s, and what is mounted cannot be read", m.node);
	if (in_file(u->root, "/proc/swaps", is_source, &m, &read))
		return say(u, "%s is swapped to", m.node);
	u->over = disk;
	if (rig_tree_each(u->root, "/sys/fs/btrfs", has_member, u))
		return say(u, "%s is part of a mounted btrfs", m.node);
	return 0;
}

/* And what is made of it: dm and md. */
static int check_disk(void *arg, const char *disk)
{
	struct use *u = arg;
	char path[PATH_MAX];
	int answer;

	if (u->steps++ == MOST_STEPS)
		return say(u, "more stands on the disk %s than can be followed", disk);
	answer = check_node(u, disk);
	if (answer || u->depth >= DEEPEST)
		return answer;
	snprintf(path, sizeof(path), "/sys/class/block/%s/holders", disk);
	u->depth++;
	answer = rig_tree_each(u->root, path, check_disk, u);
	u->depth--;
	return answer;
}

struct disks {
	const char *root, *bdf;
	char real[PATH_MAX]; /* of the disk that is looked at */
	int (*each)(void *arg, const char *disk);
	void *arg;
};

/* The controllers of an NVMe subsystem are links in it, beside the disks that are reached through any of
 * them. */
static int is_controller(void *arg, const char *name)
{
	const struct disks *d = arg;
	char path[PATH_MAX * 2];

	snprintf(path, sizeof(path), "%s/%s", d->real, name);
	return strncmp(name, "nvme", 4) == 0 && below(d->root, path, d->bdf);
}

static bool through_subsystem(struct disks *d)
{
	char *end = strstr(d->real, "/nvme-subsystem/");

	if (!end)
		return false;
	end = strchr(end + strlen("/nvme-subsystem/"), '/');
	if (!end)
		return false;
	*end = 0;
	return rig_tree_each(d->root, d->real, is_controller, d) != 0;
}

static int pick_disk(void *arg, const char *disk)
{
	struct disks *d = arg;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/block/%s", disk);
	if (!rig_tree_real(d->root, path, d->real, sizeof(d->real)))
		return 0;
	if (!rig_tree_part(d->real, d->bdf) && !through_subsystem(d))
		return 0;
	return d->each(d->arg, disk);
}

int rig_doctor_disks(const char *root, const char *bdf, int (*each)(void *arg, const char *disk), void *arg)
{
	struct disks d = {.root = root, .bdf = bdf, .each = each, .arg = arg};

	return rig_tree_each(root, "/sys/class/block", pick_disk, &d);
}

/* -- The network -- */

#define DEFAULT_V4 "00000000"
#define DEFAULT_V6 "00000000000000000000000000000000"
#define SCOPE_LINK "20"

/* "Iface Destination Gateway Flags RefCnt Use Metric Mask ...": any address of an interface is also a
 * route. */
static int is_route(void *arg, char *line)
{
	struct use *u = arg;
	char *at = line, *name = rig_tree_word(&at), *to = rig_tree_word(&at);

	if (!name || !to || strcmp(name, u->over) != 0)
		return 0;
	return say(u, "interface %s has %s", name,
	        strcmp(to, DEFAULT_V4) == 0 ? "the default route" : "an address or a route");
}

/* "address index prefix scope flags name": the link's own address comes by itself. */
static int is_address(void *arg, char *line)
{
	struct use *u = arg;
	char *at = line, *word[6];

	for (unsigned i = 0; i < 6; i++) {
		word[i] = rig_tree_word(&at);
		if (!word[i])
			return 0;
	}
	if (strcmp(word[5], u->over) != 0 || strcmp(word[3], SCOPE_LINK) == 0)
		return 0;
	return say(u, "interface %s has an IPv6 address", u->over);
}

/* "destination prefix source prefix next-hop metric refs use flags name". */
static int is_default6(void *arg, char *line)
{
	struct use *u = arg;
	char *at = line, *to = rig_tree_word(&at), *prefix = rig_tree_word(&at), *word, *last = NULL;

	while ((word = rig_tree_word(&at)))
		last = word;
	if (!to || !prefix || !last || strcmp(to, DEFAULT_V6) != 0 || strcmp(prefix, "00") != 0)
		return 0;
	return strcmp(last, u->over) == 0 ? say(u, "interface %s has the IPv6 default route", u->over) : 0;
}

static int in_table(struct use *u, const char *path, int (*each)(void *arg, char *line))
{
	char *text = rig_tree_read(u->root, path, NULL);
	int answer = rig_tree_lines(text, each, u);

	free(text);
	return answer;
}

static int check_interface(struct use *u, const char *name);

/* "upper_bond0": bonds, bridges, VLANs. */
static int check_upper(void *arg, const char *name)
{
	struct use *u = arg;

	return strncmp(name, "upper_", 6) == 0 && u->depth < DEEPEST ? check_interface(u, name + 6) : 0;
}

static int check_interface(struct use *u, const char *name)
{
	char path[PATH_MAX];
	int answer;

	if (u->steps++ == MOST_STEPS)
		return say(u, "more stands on interface %s than can be followed", name);
	u->over = name;
	answer = in_table(u, "/proc/net/route", is_route);
	if (!answer)
		answer = in_table(u, "/proc/net/ipv6_route", is_default6);
	if (!answer)
		answer = in_table(u, "/proc/net/if_inet6", is_address);
	if (answer)
		return answer;
	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	u->depth++;
	answer = rig_tree_each(u->root, path, check_upper, u);
	u->depth--;
	return answer;
}

static int pick_interface(void *arg, const char *name)
{
	struct use *u = arg;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	return below(u->root, path, u->bdf) ? check_interface(u, name) : 0;
}

bool rig_doctor_in_use(const char *root, const char *bdf, char *text, size_t bytes)
{
	struct use u = {.root = root, .bdf = bdf, .text = text, .bytes = bytes};

	*text = 0;
	return rig_doctor_disks(root, bdf, check_disk, &u) ||
	       rig_tree_each(root, "/sys/class/net", pick_interface, &u);
}
