/* SPDX-License-Identifier: MIT */
#include "kernel_sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices"
#define GROUPS  "/sys/kernel/iommu_groups"

/* Bits of a resource's flags (Linux's ioport.h, as the file "resource" shows them). */
#define RESOURCE_MEMORY 0x200u

bool rig_is_vfio_driver(const char *driver)
{
	return strncmp(driver, "vfio-", 5) == 0 || strstr(driver, "_vfio_pci");
}

bool rig_ksysfs_is_bdf(const char *text)
{
	return rig_bdf_is_name(text);
}

bool rig_ksysfs_line(const char *root, const char *path, char *to, size_t bytes)
{
	char full[PATH_MAX];
	FILE *file;
	bool any;

	*to = 0;
	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return false;
	file = fopen(full, "re");
	if (!file)
		return false;
	any = fgets(to, (int)bytes, file) != NULL;
	(void)fclose(file);
	if (!any)
		*to = 0;
	to[strcspn(to, "\n")] = 0;
	return any;
}

static bool attribute(const char *root, const char *bdf, const char *name, char *to, size_t bytes)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DEVICES "/%s/%s", bdf, name);
	return rig_ksysfs_line(root, path, to, bytes);
}

static unsigned number(const char *root, const char *bdf, const char *name)
{
	char text[32];

	return attribute(root, bdf, name, text, sizeof(text)) ? (unsigned)strtoul(text, NULL, 0) : 0;
}

static int number_or(const char *root, const char *bdf, const char *name, int otherwise)
{
	char text[32];

	if (!attribute(root, bdf, name, text, sizeof(text)) ||
	        (!isdigit((unsigned char)*text) && *text != '-'))
		return otherwise;
	return (int)strtol(text, NULL, 10);
}

bool rig_ksysfs_link(const char *root, const char *path, char *to, size_t bytes)
{
	char full[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t n;

	*to = 0;
	snprintf(full, sizeof(full), "%s%s", root, path);
	n = readlink(full, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = 0;
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	if (strlen(last) >= bytes)
		return false;
	strcpy(to, last);
	return true;
}

static void link_name(const char *root, const char *bdf, const char *name, char *to, size_t bytes)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DEVICES "/%s/%s", bdf, name);
	(void)rig_ksysfs_link(root, path, to, bytes);
}

static void read_group(const char *root, struct rig_ksysfs *s)
{
	char text[RIG_KSYSFS_NAME], path[PATH_MAX];

	link_name(root, s->bdf, "iommu_group", text, sizeof(text));
	s->group = *text ? (int)strtol(text, NULL, 10) : -1;
	snprintf(path, sizeof(path), GROUPS "/%d/name", s->group);
	s->noiommu = s->group >= 0 && rig_ksysfs_line(root, path, text, sizeof(text)) &&
	             strcmp(text, "vfio-noiommu") == 0;
}

/* vfio-dev/ holds one folder, named like the node. */
static void read_cdev(const char *root, struct rig_ksysfs *s)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s" DEVICES "/%s/vfio-dev", root, s->bdf);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (strstr(entry->d_name, "vfio") && strlen(entry->d_name) < sizeof(s->cdev))
			strcpy(s->cdev, entry->d_name);
	closedir(dir);
}

/* One line a BAR: first, last and flags. */
static void read_resources(const char *root, struct rig_ksysfs *s)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s" DEVICES "/%s/resource", root, s->bdf);
	file = fopen(path, "re");
	if (!file)
		return;
	for (unsigned i = 0; i < RIG_KSYSFS_BARS; i++) {
		uint64_t first, last, flags;

		if (fscanf(file, "%" SCNx64 " %" SCNx64 " %" SCNx64, &first, &last, &flags) != 3)
			break;
		if (last <= first || !(flags & RESOURCE_MEMORY))
			continue;
		s->bar[i] = first;
		s->bar_bytes[i] = last - first + 1;
	}
	(void)fclose(file);
}

int rig_ksysfs_read(const char *root, const char *bdf, struct rig_ksysfs *out)
{
	char path[PATH_MAX], text[RIG_KSYSFS_NAME];

	memset(out, 0, sizeof(*out));
	if (!rig_bdf_name(bdf, out->bdf))
		return -EINVAL;
	bdf = out->bdf;
	snprintf(path, sizeof(path), "%s" DEVICES "/%s", root, bdf);
	if (access(path, F_OK) < 0)
		return errno == EACCES ? -EACCES : -ENOENT;
	out->vendor = number(root, bdf, "vendor");
	out->device = number(root, bdf, "device");
	out->class_code = number(root, bdf, "class");
	link_name(root, bdf, "driver", out->driver, sizeof(out->driver));
	(void)attribute(root, bdf, "power_state", out->power, sizeof(out->power));
	out->link_width = number_or(root, bdf, "current_link_width", -1);
	out->link_most = number_or(root, bdf, "max_link_width", -1);
	out->numa = number_or(root, bdf, "numa_node", -1);
	link_name(root, bdf, "physfn", text, sizeof(text));
	out->virtual = *text;
	read_group(root, out);
	read_cdev(root, out);
	read_resources(root, out);
	return 0;
}

int rig_ksysfs_group(const char *root, int group,
        int (*each)(void *arg, const char *bdf, const char *driver, unsigned class_code), void *arg)
{
	char path[PATH_MAX], driver[RIG_KSYSFS_NAME];
	struct dirent *entry;
	int answer = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s" GROUPS "/%d/devices", root, group);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (!answer && (entry = readdir(dir))) {
		if (!rig_ksysfs_is_bdf(entry->d_name))
			continue;
		link_name(root, entry->d_name, "driver", driver, sizeof(driver));
		answer = each(arg, entry->d_name, driver, number(root, entry->d_name, "class"));
	}
	closedir(dir);
	return answer;
}

bool rig_ksysfs_direct_region(const char *root, int group, char *text, size_t bytes)
{
	char path[PATH_MAX], line[128];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s" GROUPS "/%d/reserved_regions", root, group);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		const char *kind = strrchr(line, ' ');

		/* "direct-relaxable" does not stand in the way. */
		found = kind && strcmp(kind, " direct\n") == 0;
	}
	(void)fclose(file);
	if (found)
		snprintf(text, bytes, "%.*s", (int)strcspn(line, "\n"), line);
	return found;
}
