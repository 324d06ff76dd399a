/* SPDX-License-Identifier: MIT */
#include "kernel_sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

#define DEVICES "/sys/bus/pci/devices"
#define GROUPS  "/sys/kernel/iommu_groups"

/* Bits of a resource's flags (Linux's ioport.h, as the file "resource" shows them). */
#define RESOURCE_MEMORY 0x200u

/* Since when drivers say themselves whether they do DMA through the kernel. */
enum { ASKS_DRIVERS = 5019 };

#define CLASS_PCI_BRIDGE     0x0604u
#define CLASS_CARDBUS_BRIDGE 0x0607u

/* Of a configuration header (PCI Local Bus 3.0, section 6.2.1). */
#define HEADER_TYPE     0x0eu
#define HEADER_LAYOUT   0x7f
#define HEADER_FUNCTION 0

bool rig_ksysfs_line(const char *root, const char *path, char *to, size_t bytes)
{
	return rig_tree_line(root, path, to, bytes);
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

/* A number as far as an int goes; -1 for any other. */
static int bounded(const char *text)
{
	long n = strtol(text, NULL, 10);

	return n >= 0 && n <= INT_MAX ? (int)n : -1;
}

static int number_or(const char *root, const char *bdf, const char *name, int otherwise)
{
	char text[32];

	if (!attribute(root, bdf, name, text, sizeof(text)) ||
	        (!isdigit((unsigned char)*text) && *text != '-'))
		return otherwise;
	return bounded(text);
}

bool rig_ksysfs_link(const char *root, const char *path, char *to, size_t bytes)
{
	char target[PATH_MAX];
	const char *last;

	*to = 0;
	if (!rig_tree_link(root, path, target, sizeof(target)))
		return false;
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
	s->group = isdigit((unsigned char)*text) ? bounded(text) : -1;
	snprintf(path, sizeof(path), GROUPS "/%d/name", s->group);
	s->noiommu = s->group >= 0 && rig_ksysfs_line(root, path, text, sizeof(text)) &&
	             strcmp(text, "vfio-noiommu") == 0;
}

static int pick_cdev(void *arg, const char *name)
{
	struct rig_ksysfs *s = arg;

	if (!strstr(name, "vfio") || strlen(name) >= sizeof(s->cdev))
		return 0;
	strcpy(s->cdev, name);
	return 1;
}

/* vfio-dev/ holds one folder from Linux 6.1, named like the node; with a number if the kernel makes
 * that node (from 6.6, CONFIG_VFIO_DEVICE_CDEV). */
static void read_cdev(const char *root, struct rig_ksysfs *s)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DEVICES "/%s/vfio-dev", s->bdf);
	(void)rig_tree_each(root, path, pick_cdev, s);
	snprintf(path, sizeof(path), DEVICES "/%s/vfio-dev/%s/dev", s->bdf, s->cdev);
	if (!rig_tree_exists(root, path))
		*s->cdev = 0;
}

struct resources {
	struct rig_ksysfs *s;
	unsigned bar;
};

/* One line a BAR: first, last and flags. */
static int read_resource(void *arg, char *line)
{
	struct resources *r = arg;
	uint64_t first, last, flags;

	if (r->bar == RIG_KSYSFS_BARS ||
	        sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64, &first, &last, &flags) != 3)
		return 1;
	if (last > first && last - first < UINT64_MAX && (flags & RESOURCE_MEMORY)) {
		r->s->bar[r->bar] = first;
		r->s->bar_bytes[r->bar] = last - first + 1;
	}
	r->bar++;
	return 0;
}

static void read_resources(const char *root, struct rig_ksysfs *s)
{
	struct resources r = {.s = s};
	char path[PATH_MAX], *text;

	snprintf(path, sizeof(path), DEVICES "/%s/resource", s->bdf);
	text = rig_tree_read(root, path, NULL);
	(void)rig_tree_lines(text, read_resource, &r);
	free(text);
}

/* -- Drivers -- */

/* Whether the driver's module is one of those that use this one. */
static bool is_holder(const char *root, const char *folder, const char *of)
{
	char path[PATH_MAX], module[RIG_KSYSFS_NAME];

	snprintf(path, sizeof(path), "%s/driver/module", folder);
	if (!rig_ksysfs_link(root, path, module, sizeof(module)))
		return false;
	snprintf(path, sizeof(path), "/sys/module/%s/holders/%s", of, module);
	return rig_tree_exists(root, path);
}

/*
 * Whether what drives the device in the folder gives it out through VFIO. From Linux 6.1 such a device
 * has the folder vfio-dev. Before, the driver is the general one of its bus, or its module stands on
 * VFIO's: variants for one kind of function have names of their own.
 */
static bool is_vfio(const char *root, const char *folder, const char *driver)
{
	static const char *const general[] = {"vfio-pci", "vfio-platform", "vfio-amba", "vfio-fsl-mc"};
	char path[PATH_MAX];

	if (!*driver)
		return false;
	snprintf(path, sizeof(path), "%s/vfio-dev", folder);
	if (rig_tree_exists(root, path))
		return true;
	for (size_t i = 0; i < sizeof(general) / sizeof(general[0]); i++)
		if (strcmp(driver, general[i]) == 0)
			return true;
	return is_holder(root, folder, "vfio_pci_core") || is_holder(root, folder, "vfio_platform_base");
}

int rig_ksysfs_read(const char *root, const char *bdf, struct rig_ksysfs *out)
{
	char path[PATH_MAX], text[RIG_KSYSFS_NAME];

	memset(out, 0, sizeof(*out));
	if (!rig_bdf_name(bdf, out->bdf))
		return -EINVAL;
	bdf = out->bdf;
	snprintf(path, sizeof(path), DEVICES "/%s", bdf);
	if (!rig_tree_exists(root, path))
		return errno == EACCES ? -EACCES : -ENOENT;
	out->vendor = number(root, bdf, "vendor");
	out->device = number(root, bdf, "device");
	out->class_code = number(root, bdf, "class");
	link_name(root, bdf, "driver", out->driver, sizeof(out->driver));
	out->vfio = is_vfio(root, path, out->driver);
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

/* -- Groups -- */

/* The header says it; where nobody may read that, the class does. */
static bool is_bridge(const char *root, const char *folder, unsigned class_code)
{
	char path[PATH_MAX], *config;
	bool bridge = class_code >> 8 == CLASS_PCI_BRIDGE || class_code >> 8 == CLASS_CARDBUS_BRIDGE;
	size_t bytes;

	snprintf(path, sizeof(path), "%s/config", folder);
	config = rig_tree_read(root, path, &bytes);
	if (config && bytes > HEADER_TYPE && config[0] != '\xff')
		bridge = (config[HEADER_TYPE] & HEADER_LAYOUT) != HEADER_FUNCTION;
	free(config);
	return bridge;
}

static void read_member(const char *root, const char *folder, struct rig_ksysfs_member *m)
{
	char path[PATH_MAX], text[RIG_KSYSFS_NAME];

	snprintf(path, sizeof(path), "%s/subsystem", folder);
	(void)rig_ksysfs_link(root, path, m->bus, sizeof(m->bus));
	if (!*m->bus && rig_bdf_is_name(m->name))
		strcpy(m->bus, "pci");
	snprintf(path, sizeof(path), "%s/driver", folder);
	(void)rig_ksysfs_link(root, path, m->driver, sizeof(m->driver));
	m->vfio = is_vfio(root, folder, m->driver);
	if (!rig_ksysfs_is_function(m))
		return;
	snprintf(path, sizeof(path), "%s/class", folder);
	if (rig_ksysfs_line(root, path, text, sizeof(text)))
		m->class_code = (unsigned)strtoul(text, NULL, 0);
	m->bridge = is_bridge(root, folder, m->class_code);
}

enum { FOLDER = 256 };

struct group {
	const char *root, *folder;
	int (*each)(void *arg, const struct rig_ksysfs_member *member);
	void *arg;
};

static int visit_member(void *arg, const char *name)
{
	const struct group *g = arg;
	struct rig_ksysfs_member m;
	char folder[FOLDER];

	memset(&m, 0, sizeof(m));
	if (strlen(name) >= sizeof(m.name))
		return 0;
	strcpy(m.name, name);
	snprintf(folder, sizeof(folder), "%.100s/%s", g->folder, name);
	read_member(g->root, folder, &m);
	return g->each(g->arg, &m);
}

int rig_ksysfs_group(const char *root, int group,
        int (*each)(void *arg, const struct rig_ksysfs_member *member), void *arg)
{
	char folder[PATH_MAX];
	struct group g = {.root = root, .folder = folder, .each = each, .arg = arg};

	snprintf(folder, sizeof(folder), GROUPS "/%d/devices", group);
	return rig_tree_each(root, folder, visit_member, &g);
}

bool rig_ksysfs_is_function(const struct rig_ksysfs_member *member)
{
	return strcmp(member->bus, "pci") == 0 && rig_bdf_is_name(member->name);
}

/*
 * Until Linux 5.18 (drivers/vfio/vfio.c, vfio_dev_viable) a bridge counted whatever drove it, and of
 * drivers only pci-stub; the ports' driver did not on what is no bridge, as an event collector. From
 * 5.19 drivers say it themselves (driver_managed_dma): pci-stub and pcieport do, wherever they are, and
 * a bridge's other drivers do not.
 */
bool rig_ksysfs_is_viable(const struct rig_ksysfs_member *member, unsigned release)
{
	bool early = release && release < ASKS_DRIVERS;

	if (!*member->driver || member->vfio || strcmp(member->driver, "pci-stub") == 0)
		return true;
	return early ? member->bridge : strcmp(member->driver, "pcieport") == 0;
}

unsigned rig_ksysfs_release(const char *root)
{
	char text[64], *end;
	unsigned long major, minor;

	if (!rig_ksysfs_line(root, "/proc/sys/kernel/osrelease", text, sizeof(text)))
		return 0;
	major = strtoul(text, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major < 1000 && minor < 1000 ? (unsigned)(major * 1000 + minor) : 0;
}

/* -- Reserved regions -- */

struct direct {
	char *text;
	size_t bytes;
};

static int is_direct(void *arg, char *line)
{
	struct direct *d = arg;
	const char *kind = strrchr(line, ' ');

	/* "direct-relaxable" does not stand in the way. */
	if (!kind || strcmp(kind, " direct") != 0)
		return 0;
	snprintf(d->text, d->bytes, "%s", line);
	return 1;
}

bool rig_ksysfs_direct_region(const char *root, int group, char *text, size_t bytes)
{
	struct direct d = {.text = text, .bytes = bytes};
	char path[PATH_MAX], *regions;
	bool found;

	snprintf(path, sizeof(path), GROUPS "/%d/reserved_regions", group);
	regions = rig_tree_read(root, path, NULL);
	found = rig_tree_lines(regions, is_direct, &d) != 0;
	free(regions);
	return found;
}
