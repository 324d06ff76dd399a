/* SPDX-License-Identifier: MIT */
#include "doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_private.h"
#include "text.h"
#include "tree.h"

/* Every finding there is, in the order in which they are shown: a row here, a function that looks, and no
 * more. */
static const struct rig_doctor_row rows[] = {
        {"absent", RIG_STOP, RIG_OF_ABSENT, rig_look_absent, "this machine has no such function"},
        {"iommu-absent", RIG_STOP, RIG_OF_MACHINE, rig_look_iommu_absent,
                "the machine shows the kernel no IOMMU: it has none, or it is off in firmware setup"},
        {"iommu-off", RIG_FIX, RIG_OF_MACHINE, rig_look_iommu_off,
                "there are no IOMMU groups: the kernel does not use an IOMMU"},
        {"no-group", RIG_STOP, RIG_OF_FUNCTION, rig_look_no_group,
                "the function is in no IOMMU group, while others are: the IOMMU does not cover it"},
        {"noiommu", RIG_FIX, RIG_OF_FUNCTION, rig_look_noiommu,
                "the function is given out without an IOMMU: it then reaches all memory, and the device "
                "string must ask for it"},
        {"noiommu-on", RIG_NOTE, RIG_OF_FUNCTION, rig_look_noiommu_on,
                "the function is given out without an IOMMU, as the device string asks: it reaches all "
                "memory"},
        {"noiommu-off", RIG_FIX, RIG_OF_FUNCTION, rig_look_noiommu_off,
                "the device string asks for no-IOMMU, and the switch that says that the function may reach "
                "all memory is off"},
        {"noiommu-absent", RIG_STOP, RIG_OF_FUNCTION, rig_look_noiommu_absent,
                "the device string asks for no-IOMMU, which this kernel was built without: it needs another "
                "kernel, with CONFIG_VFIO_NOIOMMU"},
        {"noiommu-refused", RIG_FIX, RIG_OF_FUNCTION, rig_look_noiommu_refused,
                "the device string asks for no-IOMMU, which the kernel refuses for a function behind an "
                "IOMMU"},
        {"no-remapping", RIG_FIX, RIG_OF_MACHINE, rig_look_remapping,
                "interrupts are not remapped: a function can forge any interrupt, so VFIO refuses the IOMMU "
                "until the "
                "switch says that this risk is taken; first try to switch remapping on in firmware setup"},
        {"unsafe-interrupts", RIG_NOTE, RIG_OF_MACHINE, rig_look_unsafe,
                "the switch for unsafe interrupts is on: a function that is given out can forge any "
                "interrupt of the "
                "machine where they are not remapped"},
        {"vfio-pci", RIG_FIX, RIG_OF_MACHINE, rig_look_vfio_pci, "the driver vfio-pci is not loaded"},
        {"back-end", RIG_FIX, RIG_OF_MACHINE, rig_look_back_end,
                "what maps memory for functions, vfio_iommu_type1 or iommufd, is not loaded"},
        {"no-node", RIG_FIX, RIG_OF_FUNCTION, rig_look_no_cdev,
                "the function has no node of its own, which iommufd needs"},
        {"vmd", RIG_STOP, RIG_OF_FUNCTION, rig_look_vmd,
                "the function is behind a controller that makes a bus of its own (Intel VMD): it cannot be "
                "given out alone, and is gone without the controller's driver"},
        {"in-use", RIG_STOP, RIG_OF_FUNCTION, rig_look_in_use, "the machine works through this function"},
        {"driver-held", RIG_FIX, RIG_OF_FUNCTION, rig_look_driver_held,
                "a process has a node of the function's driver open, and an unbind would wait for it without "
                "an end"},
        {"driver", RIG_FIX, RIG_OF_FUNCTION, rig_look_driver, "the function is not with vfio-pci"},
        {"denylist", RIG_FIX, RIG_OF_FUNCTION, rig_look_denied,
                "vfio-pci refuses functions of this kind (its denylist), for they have faults by which who "
                "uses one can hang the machine or reach what is not theirs"},
        {"mate-in-use", RIG_STOP, RIG_OF_FUNCTION, rig_look_mates_used,
                "another member of the IOMMU group cannot leave its driver, and the group can only be given "
                "out whole"},
        {"group-mate", RIG_FIX, RIG_OF_FUNCTION, rig_look_mates,
                "another member of the IOMMU group is with a kernel driver, and the group can only be given "
                "out whole"},
        {"acs", RIG_NOTE, RIG_OF_FUNCTION, rig_look_acs,
                "the group is large because this does not isolate what is below it (ACS): its functions can "
                "reach each "
                "other past the IOMMU. Another slot may help; a kernel patched to split the group hides this "
                "and "
                "changes nothing"},
        {"rmrr", RIG_STOP, RIG_OF_FUNCTION, rig_look_rmrr,
                "firmware reserved memory for the function that must stay mapped one to one (RMRR): the "
                "kernel refuses "
                "it to VFIO (EINVAL). Switch off what uses it in firmware setup: USB legacy support, a "
                "storage or "
                "management agent, shared graphics memory"},
        {"token", RIG_FIX, RIG_OF_FUNCTION, rig_look_token,
                "the physical function of this virtual one is with vfio-pci: who opens the virtual one needs "
                "its owner's token"},
        {"power", RIG_FIX, RIG_OF_FUNCTION, rig_look_power,
                "the function sleeps or is powered off, and does not answer"},
        {"link", RIG_FIX, RIG_OF_FUNCTION, rig_look_link,
                "configuration space reads all ones: the function has no power, or its link is down. If "
                "looking "
                "for it again does not help, the machine must be switched off and on, or the card seated "
                "again"},
        {"aspm", RIG_NOTE, RIG_OF_FUNCTION, rig_look_aspm,
                "the link may sleep (ASPM L1); with some boards reads are all ones for a moment when it "
                "wakes"},
        {"holder", RIG_FIX, RIG_OF_FUNCTION, rig_look_holder, "another process has the function"},
        {"node-missing", RIG_FIX, RIG_OF_FUNCTION, rig_look_node_missing,
                "a node by which the function is opened is not there"},
        {"node-stale", RIG_FIX, RIG_OF_FUNCTION, rig_look_node_stale,
                "a node has another number than the kernel's device: it was made before the number changed"},
        {"device-cgroup", RIG_FIX, RIG_OF_FUNCTION, rig_look_node_denied,
                "the control group of this process allows no access to a node (EPERM), whatever its mode"},
        {"permission", RIG_FIX, RIG_OF_FUNCTION, rig_look_node,
                "this user may not open a node by which the function is opened"},
        {"new-id", RIG_NOTE, RIG_OF_FUNCTION, rig_look_new_id,
                "vfio-pci took the function by its ids, so it takes every function of the same kind; rigctl "
                "bind names "
                "one function only"},
        {"virtual-functions", RIG_NOTE, RIG_OF_FUNCTION, rig_look_virtuals,
                "the function has virtual functions, which vanish when its driver changes"},
        {"memlock", RIG_FIX, RIG_OF_MACHINE, rig_look_memlock,
                "less memory may be locked (RLIMIT_MEMLOCK) than the function needs pinned (type1 counts it "
                "once for each function's address space, iommufd once for each user)"},
        {"entry-limit", RIG_FIX, RIG_OF_MACHINE, rig_look_entries,
                "the kernel allows fewer DMA mappings than are needed (ENOSPC)"},
        {"mask", RIG_STOP, RIG_OF_FUNCTION, rig_look_mask,
                "too few of the addresses that the function can form are free for its memory"},
        {"width", RIG_NOTE, RIG_OF_FUNCTION, rig_look_width,
                "the IOMMU translates fewer address bits than a pointer has; mappings go below"},
        {"reserved", RIG_NOTE, RIG_OF_FUNCTION, rig_look_reserved,
                "addresses that mappings must avoid (EINVAL); the library does"},
        {"huge-none", RIG_NOTE, RIG_OF_MACHINE, rig_look_huge_none,
                "there are no huge pages; without an IOMMU they are needed, with one memory is mapped in "
                "smaller pieces"},
        {"huge-node", RIG_NOTE, RIG_OF_FUNCTION, rig_look_huge_node,
                "the function's node has no free huge page while another has"},
        {"huge-pages", RIG_NOTE, RIG_OF_MACHINE, rig_look_huge, "huge pages by size and node"},
        {"lockdown", RIG_NOTE, RIG_OF_MACHINE, rig_look_lockdown,
                "the kernel is locked down: BARs through sysfs and /dev/mem are closed, no-IOMMU too. VFIO "
                "with an "
                "IOMMU works"},
        {"reset", RIG_NOTE, RIG_OF_FUNCTION, rig_look_reset, "how the function can be reset"},
        {"framebuffer", RIG_FIX, RIG_OF_FUNCTION, rig_look_framebuffer,
                "the screen that firmware set up lies in a BAR of the function: VFIO cannot have that BAR "
                "(EBUSY, or reads of all ones) while it is claimed"},
        {"bars", RIG_NOTE, RIG_OF_FUNCTION, rig_look_bars, "the function's memory BARs"},
        {"bar-small", RIG_NOTE, RIG_OF_FUNCTION, rig_look_bar_small,
                "a BAR could show more of the board's memory"},
        {"bar-page", RIG_NOTE, RIG_OF_FUNCTION, rig_look_bar_page,
                "a BAR is smaller than a page or does not begin at one: it may not be mappable, and then "
                "each access is a "
                "system call"},
        {"port", RIG_NOTE, RIG_OF_FUNCTION, rig_look_port,
                "no port of this library drives this kind of function"},
        {"kernel", RIG_NOTE, RIG_OF_MACHINE, rig_look_kernel,
                "what the kernel offers, and what is taken of it"},
};

const char *rig_severity_name(enum rig_severity severity)
{
	static const char *const names[] = {[RIG_NOTE] = "note", [RIG_FIX] = "fix", [RIG_STOP] = "stop"};

	return names[severity];
}

/* -- Findings -- */

/* What files hold is anybody's: only what prints. */
static void printable(char *text)
{
	for (; *text; text++)
		if ((*text < ' ' && *text != '\n') || *text > '~')
			*text = '?';
}

struct rig_finding *rig_found(struct rig_exam *x, const char *file, const char *content, ...)
{
	struct rig_diagnosis *out = x->out;
	struct rig_finding *f = &x->spare;
	va_list args;

	if (x->row->severity > out->verdict)
		out->verdict = x->row->severity;
	if (out->count < RIG_DIAGNOSIS_FINDINGS)
		f = &out->finding[out->count++];
	else
		out->cut = true;
	memset(f, 0, sizeof(*f));
	f->id = x->row->id;
	f->severity = x->row->severity;
	f->text = x->row->text;
	snprintf(f->file, sizeof(f->file), "%s", file);
	va_start(args, content);
	vsnprintf(f->content, sizeof(f->content), content, args);
	va_end(args);
	printable(f->file);
	printable(f->content);
	return f;
}

void rig_command(struct rig_finding *f, const char *format, ...)
{
	size_t at = strlen(f->command);
	va_list args;

	if (at && at + 1 < sizeof(f->command))
		f->command[at++] = '\n';
	va_start(args, format);
	vsnprintf(f->command + at, sizeof(f->command) - at, format, args);
	va_end(args);
	printable(f->command);
}

/* -- Facts that several looks need -- */

const char *rig_attribute_path(const char *bdf, const char *name)
{
	static _Thread_local char paths[4][RIG_FINDING_FILE];
	static _Thread_local unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, RIG_FINDING_FILE, RIG_PCI_DEVICES "/%s/%s", bdf, name);
	return path;
}

bool rig_attribute(const struct rig_exam *x, const char *bdf, const char *name, char *to, size_t bytes)
{
	return rig_ksysfs_line(x->root, rig_attribute_path(bdf, name), to, bytes);
}

bool rig_is_isolated(const struct rig_exam *x)
{
	return x->s.group >= 0 && !x->s.noiommu;
}

static int real_group(void *arg, const char *name)
{
	const struct rig_exam *x = arg;
	char path[RIG_FINDING_FILE], text[RIG_KSYSFS_NAME];

	snprintf(path, sizeof(path), RIG_GROUPS "/%s/name", name);
	return !rig_ksysfs_line(x->root, path, text, sizeof(text)) || strcmp(text, "vfio-noiommu") != 0;
}

bool rig_has_iommu(const struct rig_exam *x)
{
	return rig_tree_each(x->root, RIG_GROUPS, real_group, (void *)(uintptr_t)x) != 0;
}

unsigned rig_kernel_release(const struct rig_exam *x)
{
	return rig_ksysfs_release(x->root);
}

struct field {
	const char *name;
	char *text;
};

static int is_field(void *arg, char *line)
{
	const struct field *f = arg;
	size_t n = strlen(f->name);

	if (strncmp(line, f->name, n) != 0)
		return 0;
	line += n;
	snprintf(f->text, RIG_FIELD, "%s", line + strspn(line, " \t"));
	return 1;
}

bool rig_field(const struct rig_exam *x, const char *path, const char *name, char text[RIG_FIELD])
{
	struct field f = {.name = name, .text = text};
	char *all = rig_tree_read(x->root, path, NULL);
	bool found = rig_tree_lines(all, is_field, &f) != 0;

	free(all);
	if (!found)
		*text = 0;
	return found;
}

/* The first user namespace maps every id to itself (user_namespaces(7)). What a later one gives counts
 * in it alone. */
static bool is_in_first_namespace(const struct rig_exam *x)
{
	unsigned long inside, outside, count;
	char line[RIG_FIELD];

	return !rig_ksysfs_line(x->root, "/proc/self/uid_map", line, sizeof(line)) ||
	       (sscanf(line, "%lu %lu %lu", &inside, &outside, &count) == 3 && !inside && !outside &&
	               count == UINT32_MAX);
}

bool rig_has_capability(const struct rig_exam *x, unsigned capability)
{
	char text[RIG_FIELD];

	return rig_field(x, "/proc/self/status", "CapEff:", text) &&
	       (strtoull(text, NULL, 16) >> capability & 1) && is_in_first_namespace(x);
}

/* -- The examination -- */

static bool is_among(const char *ids, const char *id)
{
	size_t n = strlen(id);

	for (const char *at = ids; (at = strstr(at, id)); at += n)
		if ((at == ids || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

static bool applies(const struct rig_exam *x, const struct rig_doctor_row *row)
{
	if (x->ask->only && !is_among(x->ask->only, row->id))
		return false;
	switch (row->scope) {
	case RIG_OF_FUNCTION:
		return x->function;
	case RIG_OF_ABSENT:
		return *x->s.bdf && !x->function;
	default:
		return true;
	}
}

/* -- In one line -- */

/* What is done by hand is marked with a '#' where commands are listed. */
static void add_commands(struct rig_text *t, const char *text)
{
	const char *joint = "; run: ";

	while (*text) {
		size_t n = strcspn(text, "\n");
		bool hand = *text == '#';

		rig_text_addf(t, "%s%.*s", hand ? "; " : joint, (int)n - 2 * hand, text + 2 * hand);
		joint = hand ? "; run: " : "; ";
		text += n + (text[n] == '\n');
	}
}

void rig_doctor_line(const struct rig_diagnosis *d, char *line, size_t bytes)
{
	struct rig_text t;

	rig_text_init(&t, line, bytes);
	*line = 0;
	for (unsigned i = 0; i < d->count; i++) {
		const struct rig_finding *f = &d->finding[i];

		if (i == 0 || f->id != f[-1].id)
			rig_text_addf(&t, "%s%s", i ? "; " : "", f->text);
		rig_text_addf(&t, " (%s: %s)", f->file, f->content);
		add_commands(&t, f->command);
	}
}

/* -- */

int rig_doctor_examine(const struct rig_doctor_ask *ask, struct rig_diagnosis *out)
{
	struct rig_exam x = {
	        .ask = ask, .root = ask->root, .out = out, .pin = ask->pin ? ask->pin : RIG_DOCTOR_PIN};
	int err = ask->bdf ? rig_ksysfs_read(ask->root, ask->bdf, &x.s) : 0;

	memset(out, 0, sizeof(*out));
	if (err == -EINVAL)
		return err;
	x.function = ask->bdf && !err;
	if (!x.function)
		x.s.group = -1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		x.row = &rows[i];
		if (applies(&x, &rows[i]))
			rows[i].look(&x);
	}
	return 0;
}
