/* SPDX-License-Identifier: MIT */
/* The IOMMU group: its other functions, its addresses, its node. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor_private.h"
#include "text.h"
#include "tree.h"

enum { LINE = 256, ADDRESS_BITS = 64 };

/* Bridges stay with their driver, which the kernel counts as harmless if it is the ports' (pcieport). */
#define CLASS_BRIDGE  0x0604u
#define CLASS_BRIDGES 0x06u /* of all kinds: rigctl bind takes none */

static struct rig_finding *found_noiommu(struct rig_exam *x)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), RIG_GROUPS "/%d/name", x->s.group);
	return rig_found(x, path, "vfio-noiommu");
}

void rig_look_noiommu(struct rig_exam *x)
{
	if (x->s.noiommu && x->ask->way != RIG_DOCTOR_NOIOMMU)
		rig_command(found_noiommu(x), "rigctl info %s,transport=noiommu   # as root", x->s.bdf);
}

void rig_look_noiommu_on(struct rig_exam *x)
{
	if (x->s.noiommu && x->ask->way == RIG_DOCTOR_NOIOMMU)
		(void)found_noiommu(x);
}

void rig_look_noiommu_refused(struct rig_exam *x)
{
	if (rig_is_isolated(x) && x->ask->way == RIG_DOCTOR_NOIOMMU)
		rig_command(rig_found(x, rig_attribute_path(x->s.bdf, "iommu_group"), "group %d", x->s.group),
		        "# leave transport=noiommu out");
}

void rig_look_no_group(struct rig_exam *x)
{
	if (x->s.group < 0 && rig_has_iommu(x) && x->ask->way != RIG_DOCTOR_NOIOMMU)
		(void)rig_found(x, rig_attribute_path(x->s.bdf, "iommu_group"), "no such link");
}

/* -- Mates -- */

struct mates {
	struct rig_exam *x;
	bool used; /* those that cannot leave their driver; else those that can */
};

static bool is_harmless(const char *driver, unsigned class_code)
{
	return !*driver || rig_is_vfio_driver(driver) || strcmp(driver, "pci-stub") == 0 ||
	       (strcmp(driver, "pcieport") == 0 && class_code >> 8 == CLASS_BRIDGE);
}

static int check_mate(void *arg, const char *bdf, const char *driver, unsigned class_code)
{
	struct mates *m = arg;
	struct rig_finding *f;
	char why[LINE];
	bool used;

	if (strcmp(bdf, m->x->s.bdf) == 0 || is_harmless(driver, class_code))
		return 0;
	used = rig_doctor_in_use(m->x->root, bdf, why, sizeof(why));
	if (used != m->used)
		return 0;
	f = rig_found(m->x, rig_attribute_path(bdf, "driver"), "group %d: %s is with %s%s%s", m->x->s.group,
	        bdf, driver, used ? ", and " : "", used ? why : "");
	if (!used && class_code >> 16 == CLASS_BRIDGES)
		rig_command(f, "echo %s > " RIG_PCI_DRIVERS "/%s/unbind", bdf, driver);
	else if (!used)
		rig_command(
		        f, "rigctl bind %s   # or the whole group: rigctl bind --group %s", bdf, m->x->s.bdf);
	return 0;
}

void rig_look_mates(struct rig_exam *x)
{
	struct mates m = {.x = x};

	if (rig_is_isolated(x))
		(void)rig_ksysfs_group(x->root, x->s.group, check_mate, &m);
}

void rig_look_mates_used(struct rig_exam *x)
{
	struct mates m = {.x = x, .used = true};

	if (rig_is_isolated(x))
		(void)rig_ksysfs_group(x->root, x->s.group, check_mate, &m);
}

/* -- Why the group is large -- */

/* Whether bdf is in another slot than the function. */
static int is_elsewhere(void *arg, const char *bdf, const char *driver, unsigned class_code)
{
	const struct rig_exam *x = arg;
	const char *dot = strchr(x->s.bdf, '.');

	(void)driver;
	return class_code >> 8 != CLASS_BRIDGE && strncmp(bdf, x->s.bdf, (size_t)(dot - x->s.bdf) + 1) != 0;
}

static int blame_bridge(void *arg, const char *bridge)
{
	static const char *const how[] = {
	        [RIG_ACS_NONE] = "has no ACS", [RIG_ACS_OFF] = "has ACS, but not switched on"};
	struct rig_exam *x = arg;
	enum rig_acs acs = rig_bridge_acs(x->root, bridge);

	if (acs == RIG_ACS_NONE || acs == RIG_ACS_OFF)
		(void)rig_found(x, rig_attribute_path(bridge, "config"), "bridge %s %s", bridge, how[acs]);
	return 0;
}

void rig_look_acs(struct rig_exam *x)
{
	if (rig_is_isolated(x) && rig_ksysfs_group(x->root, x->s.group, is_elsewhere, x))
		(void)rig_bridges(x->root, x->s.bdf, blame_bridge, x);
}

/* -- Addresses -- */

void rig_look_rmrr(struct rig_exam *x)
{
	char path[PATH_MAX], type[64], region[LINE];

	if (!rig_is_isolated(x) || !rig_ksysfs_direct_region(x->root, x->s.group, region, sizeof(region)))
		return;
	snprintf(path, sizeof(path), RIG_GROUPS "/%d/type", x->s.group);
	(void)rig_ksysfs_line(x->root, path, type, sizeof(type));
	snprintf(path, sizeof(path), RIG_GROUPS "/%d/reserved_regions", x->s.group);
	(void)rig_found(x, path, "%s (group %d%s%s)", region, x->s.group, *type ? ", type " : "", type);
}

struct reserved {
	struct rig_text text;
	uint64_t below, taken; /* bytes below the mask's end, and of these reserved */
};

static int add_reserved(void *arg, char *line)
{
	struct reserved *r = arg;
	uint64_t first, last;
	char kind[32];

	if (sscanf(line, "%" SCNx64 " %" SCNx64 " %31s", &first, &last, kind) != 3 || last < first)
		return 0;
	if (strcmp(kind, "direct") != 0)
		rig_text_addf(&r->text, "%s%#" PRIx64 " to %#" PRIx64 " %s", r->text.used ? "; " : "", first,
		        last, kind);
	if (first <= r->below)
		r->taken += (last < r->below ? last : r->below) - first + 1;
	return 0;
}

/* below: the last address that counts. */
static const char *add_all(
        struct rig_exam *x, struct reserved *r, uint64_t below, char *content, size_t bytes)
{
	static _Thread_local char path[RIG_FINDING_FILE];
	char *text;

	*r = (struct reserved){.below = below};
	rig_text_init(&r->text, content, bytes);
	snprintf(path, sizeof(path), RIG_GROUPS "/%d/reserved_regions", x->s.group);
	text = rig_tree_read(x->root, path, NULL);
	(void)rig_tree_lines(text, add_reserved, r);
	free(text);
	return path;
}

void rig_look_reserved(struct rig_exam *x)
{
	char content[RIG_FINDING_CONTENT];
	struct reserved r;
	const char *path;

	if (!rig_is_isolated(x))
		return;
	path = add_all(x, &r, UINT64_MAX, content, sizeof(content));
	if (r.text.used)
		(void)rig_found(x, path, "%s", content);
}

/* Intel's capability register: MGAW, bits 16 to 21, is the width less one (VT-d specification, section
 * 11.4.2). */
static unsigned iommu_width(const struct rig_exam *x, char *path, size_t bytes)
{
	char real[PATH_MAX], line[32];

	if (!rig_tree_real(x->root, rig_attribute_path(x->s.bdf, "iommu"), real, sizeof(real)))
		return 0;
	if (snprintf(path, bytes, "%.120s/intel-iommu/cap", real) >= (int)bytes ||
	        !rig_ksysfs_line(x->root, path, line, sizeof(line)))
		return 0;
	return (unsigned)(strtoull(line, NULL, 16) >> 16 & 0x3f) + 1;
}

enum { POINTER_BITS = 48 };

void rig_look_width(struct rig_exam *x)
{
	char path[RIG_FINDING_FILE];
	unsigned width = rig_is_isolated(x) ? iommu_width(x, path, sizeof(path)) : 0;

	if (width && width < POINTER_BITS)
		(void)rig_found(x, path, "%u bits: mappings go below %" PRIu64 " GiB", width,
		        UINT64_C(1) << (width - 30));
}

/* What is asked for; what the port says; what the kernel's driver set, for vfio-pci sets none. */
static unsigned mask_bits(const struct rig_exam *x)
{
	unsigned mask = x->ask->mask;
	char line[32];

	if (!mask && x->ask->port)
		(void)x->ask->port(x->s.vendor, x->s.device, &mask);
	if (mask)
		return mask;
	if (!*x->s.driver || rig_is_vfio_driver(x->s.driver) ||
	        !rig_attribute(x, x->s.bdf, "dma_mask_bits", line, sizeof(line)))
		return 0;
	return (unsigned)strtoul(line, NULL, 10);
}

void rig_look_mask(struct rig_exam *x)
{
	char path[RIG_FINDING_FILE], content[RIG_FINDING_CONTENT];
	unsigned mask = mask_bits(x), width;
	struct reserved r;
	uint64_t room;

	if (!mask || mask >= ADDRESS_BITS || !rig_is_isolated(x))
		return;
	width = iommu_width(x, path, sizeof(path));
	if (width && width < mask)
		mask = width;
	(void)add_all(x, &r, (UINT64_C(1) << mask) - 1, content, sizeof(content));
	room = r.below + 1 > r.taken ? r.below + 1 - r.taken : 0;
	if (room < x->pin)
		(void)rig_found(x, rig_attribute_path(x->s.bdf, "dma_mask_bits"),
		        "%u bits, of which %" PRIu64 " MiB are not reserved; needed %" PRIu64 " MiB", mask,
		        room >> 20, x->pin >> 20);
}

/* -- The node -- */

struct node {
	const char *path; /* "/dev/vfio/12" */
	unsigned mode, uid, gid;
	bool found;
};

/* A captured tree has in place of the folder a file, a line a node: "600 0 0 /dev/vfio/12". */
static int is_node(void *arg, char *line)
{
	struct node *n = arg;
	char path[128];

	n->found = sscanf(line, "%o %u %u %127s", &n->mode, &n->uid, &n->gid, path) == 4 &&
	           strcmp(path, n->path) == 0;
	return n->found;
}

static bool read_node(const struct rig_exam *x, struct node *n)
{
	char full[PATH_MAX], *text;
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", x->root, n->path);
	if (stat(full, &st) == 0) {
		n->mode = st.st_mode & 0777u;
		n->uid = st.st_uid;
		n->gid = st.st_gid;
		return true;
	}
	snprintf(full, sizeof(full), "%s/dev/vfio", x->root);
	if (stat(full, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	text = rig_tree_read(x->root, "/dev/vfio", NULL);
	(void)rig_tree_lines(text, is_node, n);
	free(text);
	return n->found;
}

struct user {
	unsigned uid;
	unsigned gids[64];
	unsigned count;
	bool known, all; /* all: CAP_DAC_OVERRIDE */
};

#define CAP_DAC_OVERRIDE 1u /* capabilities(7) */

/* /proc/self/status: the effective ids are the second of four. */
static int read_user(void *arg, char *line)
{
	struct user *u = arg;
	unsigned id;
	char *at, *word;

	if (sscanf(line, "Uid: %*u %u", &id) == 1) {
		u->uid = id;
		u->known = true;
	} else if (sscanf(line, "Gid: %*u %u", &id) == 1) {
		u->gids[u->count++] = id;
	} else if (strncmp(line, "Groups:", 7) == 0) {
		at = line + 7;
		while ((word = rig_tree_word(&at)) && u->count < sizeof(u->gids) / sizeof(u->gids[0]))
			u->gids[u->count++] = (unsigned)strtoul(word, NULL, 10);
	} else if (strncmp(line, "CapEff:", 7) == 0) {
		u->all = strtoull(line + 7, NULL, 16) >> CAP_DAC_OVERRIDE & 1;
	}
	return 0;
}

static bool may_open(const struct user *u, const struct node *n)
{
	if (u->all)
		return true;
	if (n->uid == u->uid)
		return (n->mode & 0600) == 0600;
	for (unsigned i = 0; i < u->count; i++)
		if (u->gids[i] == n->gid)
			return (n->mode & 060) == 060;
	return (n->mode & 06) == 06;
}

/* Not even a name to complain about: it is with another driver, or the tree has none. */
static bool check_node(struct rig_exam *x, const struct user *u, struct node *n)
{
	if (!read_node(x, n))
		return false;
	return may_open(u, n);
}

/* One of the two is enough: the group's node, or the function's own together with /dev/iommu. */
void rig_look_node(struct rig_exam *x)
{
	char group[64], cdev[128];
	struct node by_group = {.path = group}, by_cdev = {.path = cdev}, iommu = {.path = "/dev/iommu"};
	struct node *n = &by_group;
	struct user u = {.known = false};
	char *status = rig_tree_read(x->root, "/proc/self/status", NULL);
	struct rig_finding *f;

	(void)rig_tree_lines(status, read_user, &u);
	free(status);
	if (!u.known || x->s.group < 0 || !rig_is_vfio_driver(x->s.driver))
		return;
	snprintf(group, sizeof(group), "/dev/vfio/%s%d", x->s.noiommu ? "noiommu-" : "", x->s.group);
	snprintf(cdev, sizeof(cdev), "/dev/vfio/devices/%s", x->s.cdev);
	if (x->ask->way != RIG_DOCTOR_IOMMUFD && check_node(x, &u, &by_group))
		return;
	if (x->ask->way != RIG_DOCTOR_TYPE1 && *x->s.cdev && check_node(x, &u, &by_cdev) &&
	        check_node(x, &u, &iommu))
		return;
	/* Where either would do, the group's node is named, which every kernel has. */
	if (x->ask->way == RIG_DOCTOR_IOMMUFD)
		n = check_node(x, &u, &by_cdev) ? &iommu : &by_cdev;
	if (!read_node(x, n))
		return;
	f = rig_found(
	        x, n->path, "mode %03o, owner %u, group %u; the user is %u", n->mode, n->uid, n->gid, u.uid);
	if (n != &iommu)
		rig_command(f, "rigctl bind --user %u %s   # as root; or: chown %u %s", u.uid, x->s.bdf,
		        u.uid, n->path);
	/* It is no function's, so bind does not hand it over. */
	if (x->ask->way == RIG_DOCTOR_IOMMUFD && read_node(x, &iommu) && !may_open(&u, &iommu))
		rig_command(f, "chown %u %s   # as root", u.uid, iommu.path);
}
