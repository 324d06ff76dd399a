/* SPDX-License-Identifier: MIT */
#include "machine_tree.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARENT "pci0000:64"

enum { CONFIG_BYTES = 4096 };

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void remove_tree(const char *path)
{
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void full_path(const struct tree *t, const char *path, char *to)
{
	char *at;

	if (snprintf(to, PATH_MAX, "%s%s", t->root, path) >= PATH_MAX)
		fail_msg("%s is too long", path);
	for (at = to + strlen(t->root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		(void)mkdir(to, 0700);
		*at = '/';
	}
}

void tree_bytes(struct tree *t, const char *path, const void *bytes, size_t count)
{
	char full[PATH_MAX];
	FILE *file;

	full_path(t, path, full);
	file = fopen(full, "we");
	if (!file || fwrite(bytes, 1, count, file) != count || fclose(file))
		fail_msg("cannot write %s", full);
}

void tree_file(struct tree *t, const char *path, const char *text)
{
	char full[PATH_MAX];

	if (text) {
		tree_bytes(t, path, text, strlen(text));
		return;
	}
	full_path(t, path, full);
	remove_tree(full);
}

void tree_node(struct tree *t, const char *path, const char *target)
{
	char full[PATH_MAX];

	full_path(t, path, full);
	remove_tree(full);
	if (symlink(target, full))
		fail_msg("cannot link %s", full);
}

/* Relative, so that the tree can be read below any root. */
void tree_link(struct tree *t, const char *path, const char *to)
{
	char target[PATH_MAX] = "";
	size_t n = 0;

	if (*to == '/')
		for (const char *at = path + 1; (at = strchr(at, '/')); at++)
			n += (size_t)snprintf(target + n, sizeof(target) - n, "../");
	snprintf(target + n, sizeof(target) - n, "%s", *to == '/' ? to + 1 : to);
	tree_node(t, path, target);
}

void tree_attribute(struct tree *t, const char *bdf, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), TREE_DEVICES "%s/%s", bdf, name);
	tree_file(t, path, text);
}

/* -- Functions -- */

/* The function's real folder, which links are relative to. */
static void real_folder(const struct tree *t, const char *bdf, char *to)
{
	char full[PATH_MAX], real[PATH_MAX];

	snprintf(full, sizeof(full), "%s" TREE_DEVICES "%s", t->root, bdf);
	if (!realpath(full, real))
		fail_msg("no %s", full);
	snprintf(to, PATH_MAX, "%s", real + strlen(t->root));
}

void tree_bind(struct tree *t, const char *bdf, const char *driver)
{
	char path[PATH_MAX], target[256];

	tree_attribute(t, bdf, "vfio-dev", NULL);
	if (strstr(driver, "vfio") && strcmp(bdf, TREE_BDF) == 0) /* which VFIO's drivers make */
		tree_attribute(t, bdf, "vfio-dev/vfio0/dev", "511:0\n");
	real_folder(t, bdf, path);
	strcat(path, "/driver");
	if (!*driver) {
		tree_file(t, path, NULL);
		return;
	}
	snprintf(target, sizeof(target), TREE_DRIVERS "%s/bind", driver);
	tree_file(t, target, "");
	snprintf(target, sizeof(target), TREE_DRIVERS "%s/unbind", driver);
	tree_file(t, target, "");
	*strrchr(target, '/') = 0;
	tree_link(t, path, target);
}

static void join_group(struct tree *t, const char *folder, const char *bdf, int group)
{
	char path[256], target[256];

	snprintf(path, sizeof(path), "%s/iommu_group", folder);
	snprintf(target, sizeof(target), "/sys/kernel/iommu_groups/%d", group);
	tree_link(t, path, target);
	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%d/devices/%s", group, bdf);
	tree_link(t, path, folder);
}

void tree_function(struct tree *t, const char *parent, const char *bdf, const char *driver, int group)
{
	static const char *const files[][2] = {{"vendor", "0x1234\n"}, {"device", "0x5258\n"},
	        {"class", "0x120000\n"}, {"power_state", "D0\n"}, {"numa_node", "0\n"},
	        {"current_link_width", "16\n"}, {"max_link_width", "16\n"}, {"reset_method", "flr bus\n"},
	        {"driver_override", "(null)\n"}};
	char folder[128], path[256];

	snprintf(folder, sizeof(folder), "/sys/devices/%s/%s", parent, bdf);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i][0]);
		tree_file(t, path, files[i][1]);
	}
	snprintf(path, sizeof(path), TREE_DEVICES "%s", bdf);
	tree_link(t, path, folder);
	if (group >= 0)
		join_group(t, folder, bdf, group);
	tree_bind(t, bdf, driver);
}

void tree_mate(struct tree *t, const char *driver)
{
	tree_function(t, PARENT "/" TREE_BRIDGE, TREE_MATE, driver, 12);
	tree_attribute(t, TREE_MATE, "class", "0x040300\n");
}

/* ACS as extended capability 0x000d, with all that isolates supported and switched on. */
static void add_bridge(struct tree *t)
{
	uint8_t config[CONFIG_BYTES] = {
	        0x86, 0x80, [0x100] = 0x0d, 0x00, 0x01, 0x00, [0x104] = 0x1d, 0, 0x1d, 0};

	tree_function(t, PARENT, TREE_BRIDGE, "pcieport", 11);
	tree_attribute(t, TREE_BRIDGE, "class", "0x060400\n");
	tree_bytes(t, TREE_DEVICES TREE_BRIDGE "/config", config, sizeof(config));
	tree_attribute(t, TREE_BRIDGE, "resource",
	        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
	        "0x00000000fe000000 0x00000000fe0fffff 0x0000000000200200\n"
	        "0x0000004000000000 0x000000401fffffff 0x000000000024220c\n");
}

static void add_card(struct tree *t)
{
	uint8_t config[CONFIG_BYTES] = {0x34, 0x12, 0x58, 0x52};

	tree_function(t, PARENT "/" TREE_BRIDGE, TREE_BDF, "vfio-pci", 12);
	tree_attribute(t, TREE_BDF, "driver_override", "vfio-pci\n");
	tree_bytes(t, TREE_DEVICES TREE_BDF "/config", config, sizeof(config));
	tree_attribute(t, TREE_BDF, "resource",
	        "0x00000000fe000000 0x00000000fe00ffff 0x0000000000040200\n"
	        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
	        "0x0000004000000000 0x000000400fffffff 0x000000000014220c\n");
	tree_file(t, TREE_DEVICES TREE_BDF "/vfio-dev/vfio0/dev", "511:0\n");
	tree_link(t, "/sys/devices/" PARENT "/" TREE_BRIDGE "/" TREE_BDF "/iommu", "/sys/class/iommu/dmar0");
	tree_file(t, TREE_GROUP "/type", "DMA-FQ\n");
	tree_file(t, TREE_GROUP "/reserved_regions", "0x00000000fee00000 0x00000000feefffff msi\n");
}

/* Owned by whoever runs the test, and the captured user is the same. */
static void add_user(struct tree *t)
{
	char status[256];

	snprintf(status, sizeof(status),
	        "Name:\tcat\nUid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\nGroups:\t24 27 \nVmLck:\t       0 "
	        "kB\n"
	        "VmPin:\t       0 kB\nCapEff:\t0000000000000000\n",
	        getuid(), getuid(), getuid(), getuid(), getgid(), getgid(), getgid(), getgid());
	tree_file(t, "/proc/self/status", status);
	tree_file(t, "/proc/self/limits",
	        "Limit                     Soft Limit           Hard Limit           Units     \n"
	        "Max processes             63434                63434                processes \n"
	        "Max locked memory         unlimited            unlimited            bytes     \n");
	tree_file(t, "/dev/vfio/12", "");
	tree_file(t, "/dev/vfio/vfio", "");
}

static void add_machine(struct tree *t)
{
	static const char *const files[][2] = {
	        {"/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 intel_iommu=on iommu=pt\n"},
	        {"/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme\n"},
	        {"/proc/interrupts", "           CPU0\n  9:   3  IR-IO-APIC    9-fasteoi   acpi\n"
	                             " 24:   0  IR-PCI-MSI-0000:64:00.0  0-edge  PCIe PME\n"},
	        {"/proc/sys/kernel/osrelease", "6.6.12-amd64\n"},
	        {"/proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	                                 "23 22 0:20 / /proc rw shared:2 - proc proc rw\n"},
	        {"/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2  partition\t999\t0\t-2\n"},
	        {"/proc/net/route", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
	                            "eth0\t00000000\t0102A8C0\t0003\t0\t0\t0\t00000000\n"
	                            "eth0\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"},
	        {"/sys/firmware/acpi/tables/DMAR", ""},
	        {"/sys/bus/pci/drivers_probe", ""},
	        {"/sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "65535\n"},
	        {"/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "N\n"},
	        {"/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n"},
	        {"/sys/class/misc/iommu/dev", "10:125\n"},
	        {"/sys/class/iommu/dmar0/intel-iommu/cap", "d2008c402f0462\n"},
	        {"/sys/kernel/security/lockdown", "[none] integrity confidentiality\n"},
	        {"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n"},
	        {"/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "64\n"},
	        {"/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "60\n"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		tree_file(t, files[i][0], files[i][1]);
}

void tree_init(struct tree *t)
{
	memset(t, 0, sizeof(*t));
	strcpy(t->root, "/tmp/rig-tree-XXXXXX");
	if (!mkdtemp(t->root))
		fail_msg("no folder for the tree");
	add_machine(t);
	add_bridge(t);
	add_card(t);
	add_user(t);
}

void tree_fini(struct tree *t)
{
	if (*t->root)
		remove_tree(t->root);
	*t->root = 0;
}

/* -- What the machine works through -- */

void tree_disk(struct tree *t, const char *bdf, const char *name, const char *number)
{
	char path[256], target[256];

	snprintf(target, sizeof(target), TREE_DEVICES "%s/ata1/host0/block/%s/dev", bdf, name);
	tree_file(t, target, number);
	*strrchr(target, '/') = 0;
	snprintf(path, sizeof(path), "/sys/class/block/%s", name);
	tree_link(t, path, target);
}

void tree_interface(struct tree *t, const char *bdf, const char *name)
{
	char path[256], target[256];

	snprintf(target, sizeof(target), TREE_DEVICES "%s/net/%s/ifindex", bdf, name);
	tree_file(t, target, "2\n");
	*strrchr(target, '/') = 0;
	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	tree_link(t, path, target);
}

/* -- Examining -- */

void tree_assert_ask(struct tree *t, const struct rig_doctor_ask *ask, const char *ids)
{
	struct rig_doctor_ask own = *ask;
	char list[512] = "";
	enum rig_severity worst = RIG_NOTE;

	own.root = t->root;
	assert_int_equal(rig_doctor_examine(&own, &t->found), 0);
	for (unsigned i = 0; i < t->found.count; i++) {
		const struct rig_finding *f = &t->found.finding[i];

		assert_true(*f->file && *f->content && *f->text);
		worst = f->severity > worst ? f->severity : worst;
		if (f->severity == RIG_NOTE)
			continue;
		assert_true(f->severity == RIG_STOP || *f->command);
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", *list ? " " : "", f->id);
	}
	assert_string_equal(list, ids);
	assert_int_equal(t->found.verdict, worst);
}

void tree_assert(struct tree *t, const char *bdf, const char *ids)
{
	const struct rig_doctor_ask ask = {.bdf = bdf};

	tree_assert_ask(t, &ask, ids);
}

const struct rig_finding *tree_finding(
        const struct tree *t, const char *id, const char *evidence, const char *command)
{
	const struct rig_finding *near = NULL;

	for (unsigned i = 0; i < t->found.count; i++) {
		const struct rig_finding *f = &t->found.finding[i];

		if (strcmp(f->id, id) != 0)
			continue;
		if (strstr(f->content, evidence) && strstr(f->command, command))
			return f;
		near = f;
	}
	if (near)
		fail_msg("%s: \"%s\", commands \"%s\"", id, near->content, near->command);
	fail_msg("no finding %s", id);
	return NULL;
}

void tree_assert_silent(const struct tree *t, const char *id)
{
	for (unsigned i = 0; i < t->found.count; i++)
		if (strcmp(t->found.finding[i].id, id) == 0)
			fail_msg("finding %s: %s", id, t->found.finding[i].content);
}

int tree_setup(void **state)
{
	struct tree *t = malloc(sizeof(*t));

	if (!t)
		return -1;
	tree_init(t);
	*state = t;
	return 0;
}

int tree_teardown(void **state)
{
	tree_fini(*state);
	free(*state);
	return 0;
}
