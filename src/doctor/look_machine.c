/* SPDX-License-Identifier: MIT */
/* The machine: its IOMMU, what of VFIO is loaded, what the kernel is and allows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_private.h"
#include "text.h"
#include "tree.h"

#define CMDLINE      "/proc/cmdline"
#define CPUINFO      "/proc/cpuinfo"
#define INTERRUPTS   "/proc/interrupts"
#define LOCKDOWN     "/sys/kernel/security/lockdown"
#define TABLES       "/sys/firmware/acpi/tables"
#define UNSAFE_TYPE1 RIG_TYPE1 "/parameters/allow_unsafe_interrupts"
#define UNSAFE_IOMMU "/sys/module/iommufd/parameters/allow_unsafe_interrupts"
#define VFIO         "/sys/module/vfio"
#define NOIOMMU      VFIO "/parameters/enable_unsafe_noiommu_mode"
#define IOMMUFD      "/sys/class/misc/iommu"

enum { LINE = 512 };

/* When the kernel got what the library uses (major * 1000 + minor). */
enum { HAS_CDEV = 6006, HAS_PEER_DMABUF = 6019 };

static bool is_on(const char *text)
{
	return *text == 'Y' || *text == 'y' || *text == '1';
}

static bool switch_on(const struct rig_exam *x, const char *path)
{
	char text[16];

	return rig_ksysfs_line(x->root, path, text, sizeof(text)) && is_on(text);
}

/* -- No IOMMU -- */

/* The tables by which firmware tells of an IOMMU: Intel, AMD, Arm, virtual. */
static const char *firmware_table(const struct rig_exam *x)
{
	static const char *const names[] = {"DMAR", "IVRS", "IORT", "VIOT"};
	char path[sizeof(TABLES) + 8];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), TABLES "/%s", names[i]);
		if (rig_tree_exists(x->root, path))
			return names[i];
	}
	return NULL;
}

static bool in_file(const struct rig_exam *x, const char *path, const char *what)
{
	char *text = rig_tree_read(x->root, path, NULL);
	bool found = text && strstr(text, what);

	free(text);
	return found;
}

/* A board without ACPI is described by a device tree, where a translating unit has the property #iommu-
 * cells. */
#define DEVICE_TREE "/sys/firmware/devicetree/base"

enum { TREE_DEPTH = 2 };

struct units {
	const struct rig_exam *x;
	const char *folder;
	unsigned depth;
	char found[RIG_FINDING_FILE]; /* a unit's folder */
};

static int find_unit(void *arg, const char *name)
{
	struct units *u = arg;
	const char *before = u->folder;
	char folder[RIG_FINDING_FILE - 16], path[RIG_FINDING_FILE];
	int answer = 0;

	if (snprintf(folder, sizeof(folder), "%s/%s", u->folder, name) >= (int)sizeof(folder) ||
	        !rig_tree_is_folder(u->x->root, folder))
		return 0;
	snprintf(path, sizeof(path), "%s/#iommu-cells", folder);
	if (rig_tree_exists(u->x->root, path)) {
		strcpy(u->found, folder);
		return 1;
	}
	u->folder = folder;
	if (++u->depth < TREE_DEPTH)
		answer = rig_tree_each(u->x->root, folder, find_unit, u);
	u->depth--;
	u->folder = before;
	return answer;
}

/* The machine is described by a device tree; unit: the folder of its IOMMU in that, "" if it has none. */
static bool is_board(const struct rig_exam *x, char unit[RIG_FINDING_FILE])
{
	struct units u = {.x = x, .folder = DEVICE_TREE};

	if (firmware_table(x) || !rig_tree_exists(x->root, DEVICE_TREE))
		return false;
	(void)rig_tree_each(x->root, DEVICE_TREE, find_unit, &u);
	strcpy(unit, u.found);
	return true;
}

static void found_board_off(struct rig_exam *x, const char *unit)
{
	char path[RIG_FINDING_FILE], status[16];
	struct rig_finding *f;

	snprintf(path, sizeof(path), "%.140s/status", unit);
	if (rig_ksysfs_line(x->root, path, status, sizeof(status)) && strcmp(status, "okay") != 0 &&
	        strcmp(status, "ok") != 0) {
		rig_command(rig_found(x, path, "%s", status), "# the board's device tree must have status = "
		                                              "\"okay\" there, and an iommu-map at the PCIe "
		                                              "controller");
		return;
	}
	f = rig_found(x, unit, "an IOMMU, and no group");
	rig_command(f, "# the board's device tree must have an iommu-map at the PCIe controller, and the "
	               "kernel a driver "
	               "of that unit (CONFIG_ARM_SMMU, CONFIG_ARM_SMMU_V3, CONFIG_ROCKCHIP_IOMMU, ...)");
	rig_command(f, "# kernel command line: take away iommu=off and iommu.passthrough=1; then reboot");
}

static bool lacks_iommu(const struct rig_exam *x)
{
	return !rig_has_iommu(x) && rig_tree_exists(x->root, "/sys/bus/pci") &&
	       !(x->function && x->s.noiommu) && x->ask->way != RIG_DOCTOR_NOIOMMU;
}

void rig_look_iommu_absent(struct rig_exam *x)
{
	char unit[RIG_FINDING_FILE];
	struct rig_finding *f;

	if (!lacks_iommu(x))
		return;
	if (is_board(x, unit)) {
		if (!*unit)
			(void)rig_found(x, DEVICE_TREE, "no node with #iommu-cells");
		return;
	}
	if (!rig_tree_exists(x->root, TABLES) || firmware_table(x))
		return;
	f = rig_found(x, TABLES, "no table DMAR, IVRS, IORT or VIOT");
	if (in_file(x, CPUINFO, " hypervisor"))
		rig_command(f, "# the hypervisor must give this virtual machine an IOMMU (QEMU: -device "
		               "intel-iommu,intremap=on with "
		               "-machine q35,kernel-irqchip=split; or -device virtio-iommu-pci)");
	else
		rig_command(f, "# firmware setup: switch on %s",
		        in_file(x, CPUINFO, "AuthenticAMD")   ? "IOMMU (AMD-Vi)"
		        : in_file(x, CPUINFO, "GenuineIntel") ? "VT-d"
		                                              : "the IOMMU or SMMU");
	rig_command(f, "# without one, if the device may reach all memory: echo Y > " NOIOMMU
	               "; then DEVICE,transport=noiommu");
}

void rig_look_iommu_off(struct rig_exam *x)
{
	char line[LINE], unit[RIG_FINDING_FILE];
	struct rig_finding *f;

	if (!lacks_iommu(x))
		return;
	if (is_board(x, unit)) {
		if (*unit)
			found_board_off(x, unit);
		return;
	}
	if (rig_tree_exists(x->root, TABLES) && !firmware_table(x))
		return;
	(void)rig_ksysfs_line(x->root, CMDLINE, line, sizeof(line));
	f = rig_found(x, CMDLINE, "%s", line);
	if (in_file(x, CPUINFO, "GenuineIntel"))
		rig_command(f, "# kernel command line: add intel_iommu=on (and iommu=pt: only functions "
		               "given out are translated), "
		               "take away iommu=off and intel_iommu=off; then reboot");
	else if (in_file(x, CPUINFO, "AuthenticAMD"))
		rig_command(f, "# kernel command line: take away amd_iommu=off and iommu=off (it is on by "
		               "itself; add iommu=pt: only "
		               "functions given out are translated); then reboot");
	else
		rig_command(f, "# kernel command line: take away iommu=off and arm-smmu.disable_bypass=0; "
		               "firmware must "
		               "describe the SMMU; then reboot");
	if (!strstr(line, "iommu="))
		rig_command(f, "# Debian: GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub");
}

/* Loaded or built in; then its parameters are those that it was built with. */
static bool has_vfio(const struct rig_exam *x)
{
	return rig_tree_exists(x->root, VFIO) || rig_tree_exists(x->root, RIG_PCI_DRIVERS "/vfio-pci");
}

void rig_look_noiommu_absent(struct rig_exam *x)
{
	if (x->ask->way == RIG_DOCTOR_NOIOMMU && x->s.group < 0 && has_vfio(x) &&
	        !rig_tree_exists(x->root, NOIOMMU))
		(void)rig_found(x, VFIO "/parameters", "no enable_unsafe_noiommu_mode");
}

/* The kernel looks at its switch when the driver takes the function. */
void rig_look_noiommu_off(struct rig_exam *x)
{
	if (x->ask->way != RIG_DOCTOR_NOIOMMU || x->s.group >= 0 || switch_on(x, NOIOMMU))
		return;
	if (rig_tree_exists(x->root, NOIOMMU))
		rig_command(rig_found(x, NOIOMMU, "N"), "echo Y > " NOIOMMU);
	else if (rig_tree_exists(x->root, "/sys/module") && !has_vfio(x))
		rig_command(rig_found(x, "/sys/module", "no vfio with that switch"),
		        "modprobe vfio enable_unsafe_noiommu_mode=1");
}

/* -- Interrupt remapping -- */

/*
 * The names of interrupt controllers. An x86 has an IO-APIC or is called by its vendor, and the names
 * begin with IR- where interrupts are remapped. On Arm an ITS isolates the interrupts of functions, and
 * a GICv2m does not. What else there is says nothing: nobody is told to switch a protection off on a
 * guess.
 */
static bool lacks_remapping(const struct rig_exam *x, const char **shown)
{
	char *text = rig_tree_read(x->root, INTERRUPTS, NULL);
	bool lacks = false;

	if (text &&
	        (strstr(text, "IO-APIC") || (strstr(text, "PCI-MSI") && in_file(x, CPUINFO, "vendor_id")))) {
		lacks = !strstr(text, "IR-IO-APIC") && !strstr(text, "IR-PCI-MSI");
		*shown = "no interrupt controller's name begins with IR-";
	} else if (text && strstr(text, "GICv2m")) {
		lacks = !strstr(text, "ITS-");
		*shown = "interrupts of functions come through GICv2m, and there is no ITS";
	}
	free(text);
	return lacks && rig_has_iommu(x);
}

void rig_look_remapping(struct rig_exam *x)
{
	bool type1 = rig_tree_exists(x->root, RIG_TYPE1), iommufd = rig_tree_exists(x->root, UNSAFE_IOMMU);
	const char *shown = "";
	struct rig_finding *f;

	if (!lacks_remapping(x, &shown) || switch_on(x, UNSAFE_TYPE1) ||
	        (!type1 && switch_on(x, UNSAFE_IOMMU)))
		return;
	f = rig_found(x, INTERRUPTS, "%s", shown);
	if (type1)
		rig_command(f, "echo Y > " UNSAFE_TYPE1);
	if (iommufd)
		rig_command(f, "echo Y > " UNSAFE_IOMMU);
	if (!type1 && !iommufd)
		rig_command(f, "modprobe vfio_iommu_type1 allow_unsafe_interrupts=1");
}

void rig_look_unsafe(struct rig_exam *x)
{
	if (switch_on(x, UNSAFE_TYPE1))
		(void)rig_found(x, UNSAFE_TYPE1, "Y");
	if (switch_on(x, UNSAFE_IOMMU))
		(void)rig_found(x, UNSAFE_IOMMU, "Y");
}

/* -- What is loaded -- */

void rig_look_vfio_pci(struct rig_exam *x)
{
	struct rig_finding *f;

	if (!rig_tree_exists(x->root, RIG_PCI_DRIVERS) ||
	        rig_tree_exists(x->root, RIG_PCI_DRIVERS "/vfio-pci") || (x->function && x->s.vfio))
		return;
	f = rig_found(x, RIG_PCI_DRIVERS, "no vfio-pci");
	rig_command(f, "modprobe vfio-pci");
	rig_command(f, "# without such a module: another kernel, with CONFIG_VFIO_PCI");
}

void rig_look_back_end(struct rig_exam *x)
{
	bool type1 = rig_tree_exists(x->root, RIG_TYPE1), iommufd = rig_tree_exists(x->root, IOMMUFD);
	enum rig_doctor_way way = x->ask->way;
	struct rig_finding *f;

	if (!rig_tree_exists(x->root, "/sys/module") || (x->function && x->s.noiommu) ||
	        way == RIG_DOCTOR_NOIOMMU)
		return;
	if (way == RIG_DOCTOR_TYPE1 ? type1 : way == RIG_DOCTOR_IOMMUFD ? iommufd : type1 || iommufd)
		return;
	f = rig_found(x, way == RIG_DOCTOR_IOMMUFD ? "/sys/class/misc" : "/sys/module", "%s",
	        way == RIG_DOCTOR_TYPE1     ? "no vfio_iommu_type1"
	        : way == RIG_DOCTOR_IOMMUFD ? "no iommu"
	                                    : "no vfio_iommu_type1; no " IOMMUFD);
	rig_command(f, "modprobe %s",
	        way == RIG_DOCTOR_TYPE1     ? "vfio_iommu_type1"
	        : way == RIG_DOCTOR_IOMMUFD ? "iommufd"
	                                    : "vfio_iommu_type1 || modprobe iommufd");
	rig_command(f, "# without such a module: another kernel, with %s",
	        way == RIG_DOCTOR_TYPE1     ? "CONFIG_VFIO_IOMMU_TYPE1"
	        : way == RIG_DOCTOR_IOMMUFD ? "CONFIG_IOMMUFD"
	                                    : "CONFIG_VFIO_IOMMU_TYPE1 or CONFIG_IOMMUFD");
}

/* Only who asks for iommufd needs one. */
void rig_look_no_cdev(struct rig_exam *x)
{
	char line[64];

	if (x->ask->way != RIG_DOCTOR_IOMMUFD || *x->s.cdev || !x->s.vfio)
		return;
	(void)rig_ksysfs_line(x->root, "/proc/sys/kernel/osrelease", line, sizeof(line));
	rig_command(rig_found(x, rig_attribute_path(x->s.bdf, "vfio-dev"), "none%s%s",
	                    *line ? "; Linux " : "", line),
	        "# take another kernel, Linux 6.6 or later with CONFIG_VFIO_DEVICE_CDEV, or transport=type1");
}

void rig_look_lockdown(struct rig_exam *x)
{
	char line[LINE];

	if (!rig_ksysfs_line(x->root, LOCKDOWN, line, sizeof(line)) || strstr(line, "[none]"))
		return;
	(void)rig_found(x, LOCKDOWN, "%s", line);
}

/* -- What there is, and which of it -- */

/* The order of kernel_select.c: the function's node where it exists and serves, else its group. */
static void add_choice(struct rig_exam *x, struct rig_text *t, bool iommufd, bool type1)
{
	if (!x->function)
		return;
	if (x->s.noiommu)
		rig_text_addf(t, "; taken: no-IOMMU, if transport=noiommu asks for it");
	else if (iommufd && *x->s.cdev)
		rig_text_addf(t, "; taken: iommufd, because the function has the node %s%s", x->s.cdev,
		        type1 ? " (type1 if that does not serve)" : "");
	else if (type1 || iommufd)
		rig_text_addf(t, "; taken: type1, because the function has no node of its own%s",
		        x->s.vfio ? "" : " yet");
}

void rig_look_kernel(struct rig_exam *x)
{
	bool iommufd = rig_tree_exists(x->root, IOMMUFD), type1 = rig_tree_exists(x->root, RIG_TYPE1);
	unsigned release = rig_kernel_release(x);
	char line[64], content[RIG_FINDING_CONTENT];
	struct rig_text t;

	if (!release)
		return;
	(void)rig_ksysfs_line(x->root, "/proc/sys/kernel/osrelease", line, sizeof(line));
	rig_text_init(&t, content, sizeof(content));
	rig_text_addf(&t, "Linux %s: %s, %s", line, type1 ? "type1" : "no type1",
	        iommufd ? "iommufd" : "no iommufd");
	if (switch_on(x, NOIOMMU))
		rig_text_addf(&t, ", no-IOMMU (its switch is on)");
	if (release < HAS_CDEV)
		rig_text_addf(&t, ", no nodes for functions (from 6.6)");
	if (release < HAS_PEER_DMABUF && iommufd)
		rig_text_addf(&t, ", peer mappings by type1 only (iommufd: from 6.19)");
	add_choice(x, &t, iommufd, type1);
	(void)rig_found(x, "/proc/sys/kernel/osrelease", "%s", content);
}
