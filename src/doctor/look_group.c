/* SPDX-License-Identifier: MIT */
/* The IOMMU group: its other functions, its addresses, its node. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_private.h"
#include "text.h"
#include "tree.h"

enum { LINE = 256, ADDRESS_BITS = 64 };

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
	bool needed; /* those that cannot leave their driver; else those that can */
	unsigned release;
};

/* Why it cannot leave its driver: the machine works through it, or the function is reached through it, as
 * through the controller of a board's bus. */
static bool is_needed(const struct rig_exam *x, const struct rig_ksysfs_member *mate, char *why, size_t bytes)
{
	char real[PATH_MAX];

	if (rig_doctor_in_use(x->root, mate->name, why, bytes))
		return true;
	snprintf(why, bytes, "the function is reached through it");
	return !mate->bridge &&
	       rig_tree_real(x->root, rig_attribute_path(x->s.bdf, ""), real, sizeof(real)) &&
	       rig_tree_part(real, mate->name);
}

/* How a mate leaves its driver. A bridge has no use for vfio-pci, and a device of another bus has its own. */
static void command_mate(struct rig_exam *x, struct rig_finding *f, const struct rig_ksysfs_member *mate)
{
	if (rig_ksysfs_is_function(mate) && !mate->bridge && mate->class_code >> 16 != CLASS_BRIDGES)
		rig_command(f, "rigctl bind %s   # or the whole group: rigctl bind --group %s", mate->name,
		        x->s.bdf);
	else if (*mate->bus)
		rig_command(
		        f, "echo %s > /sys/bus/%s/drivers/%s/unbind", mate->name, mate->bus, mate->driver);
	else
		rig_command(f, "# take %s away from %s", mate->name, mate->driver);
}

static int check_mate(void *arg, const struct rig_ksysfs_member *mate)
{
	struct mates *m = arg;
	struct rig_exam *x = m->x;
	char why[LINE] = "", where[LINE] = "", file[RIG_FINDING_FILE];
	struct rig_finding *f;
	bool needed;

	if (strcmp(mate->name, x->s.bdf) == 0 || rig_ksysfs_is_viable(mate, m->release))
		return 0;
	needed = is_needed(x, mate, why, sizeof(why));
	if (needed != m->needed)
		return 0;
	snprintf(file, sizeof(file), RIG_PCI_DEVICES "/%s/driver", mate->name);
	if (!rig_ksysfs_is_function(mate)) {
		snprintf(file, sizeof(file), RIG_GROUPS "/%d/devices/%s/driver", x->s.group, mate->name);
		snprintf(where, sizeof(where), " (bus %s)", *mate->bus ? mate->bus : "unknown");
	}
	f = rig_found(x, file, "group %d: %s%s is with %s%s%s", x->s.group, mate->name, where, mate->driver,
	        needed ? ", and " : "", needed ? why : "");
	if (!needed)
		command_mate(x, f, mate);
	return 0;
}

static void look_mates(struct rig_exam *x, bool needed)
{
	struct mates m = {.x = x, .needed = needed, .release = rig_kernel_release(x)};

	if (rig_is_isolated(x))
		(void)rig_ksysfs_group(x->root, x->s.group, check_mate, &m);
}

void rig_look_mates(struct rig_exam *x)
{
	look_mates(x, false);
}

void rig_look_mates_used(struct rig_exam *x)
{
	look_mates(x, true);
}

/* -- Why the group is large -- */

/* Whether it is a function of another slot than the function's. */
static int is_elsewhere(void *arg, const struct rig_ksysfs_member *mate)
{
	const struct rig_exam *x = arg;
	struct rig_bdf here, there;

	if (mate->bridge || !rig_bdf_parse(x->s.bdf, &here) || !rig_bdf_parse(mate->name, &there))
		return 0;
	there.function = here.function;
	return rig_bdf_compare(&here, &there) != 0;
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
	if (!*x->s.driver || x->s.vfio || !rig_attribute(x, x->s.bdf, "dma_mask_bits", line, sizeof(line)))
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
