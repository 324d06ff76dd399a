/* SPDX-License-Identifier: MIT */
/* A function: who drives it, whether it is awake, who has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_private.h"
#include "text.h"
#include "tree.h"

/* HEADER: bytes of the identity at the beginning of configuration space. */
enum { LINE = 256, HEADER = 16 };

void rig_look_absent(struct rig_exam *x)
{
	struct rig_finding *f = rig_found(x, RIG_PCI_DEVICES, "no %s", x->s.bdf);

	rig_command(f, "echo 1 > /sys/bus/pci/rescan");
	rig_command(f, "rigctl list");
}

/* A VMD gives its devices' requests its own address, so that they are in its group; and it is their
 * bus: without its driver they are gone. */
void rig_look_vmd(struct rig_exam *x)
{
	char owner[RIG_BDF_TEXT];
	struct rig_ksysfs s;

	if (!rig_bridges_owner(x->root, x->s.bdf, owner) || rig_ksysfs_read(x->root, owner, &s))
		return;
	rig_command(rig_found(x, rig_attribute_path(owner, "driver"), "%s is behind %s, %04x:%04x with %s",
	                    x->s.bdf, owner, s.vendor, s.device, *s.driver ? s.driver : "no driver"),
	        "# firmware setup: switch VMD off for the slot; the function is then one of the machine's "
	        "own");
}

/* -- Denied -- */

/* drivers/vfio/pci/vfio_pci.c, vfio_pci_dev_in_denylist: Intel's QuickAssist, and since 6.9 its data
 * movers. */
#define INTEL 0x8086u

static const struct {
	unsigned device, since;
} denied[] = {{0x19e2, 5009}, {0x19e3, 5009}, {0x37c8, 5009}, {0x37c9, 5009}, {0x0435, 5009}, {0x0443, 5009},
        {0x0b25, 6009}, {0x0cfe, 6009}};

#define DENYLIST "/sys/module/vfio_pci/parameters/disable_denylist"

/* Who reads it may read it as off: only Y switches the list off. */
static bool is_list_off(const struct rig_exam *x)
{
	char line[8];

	return rig_ksysfs_line(x->root, DENYLIST, line, sizeof(line)) && *line == 'Y';
}

void rig_look_denied(struct rig_exam *x)
{
	unsigned release = rig_kernel_release(x), since = 0;

	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		if (x->s.vendor == INTEL && x->s.device == denied[i].device)
			since = denied[i].since;
	if (!since || x->s.vfio || is_list_off(x) || (release && release < denied[0].since))
		return;
	rig_command(rig_found(x, rig_attribute_path(x->s.bdf, "device"),
	                    "%04x:%04x is in the list since Linux %u.%u%s", x->s.vendor, x->s.device,
	                    since / 1000, since % 1000,
	                    release && release < since ? ", and in some earlier kernels" : ""),
	        "# only if whoever uses the function is trusted with the whole machine: modprobe -r "
	        "vfio-pci; modprobe "
	        "vfio-pci disable_denylist=1");
}

void rig_look_port(struct rig_exam *x)
{
	unsigned mask;

	if (x->ask->port && !x->ask->port(x->s.vendor, x->s.device, &mask))
		(void)rig_found(x, rig_attribute_path(x->s.bdf, "device"), "%04x:%04x, class %06x",
		        x->s.vendor, x->s.device, x->s.class_code);
}

void rig_look_in_use(struct rig_exam *x)
{
	char text[LINE];

	if (!x->s.vfio && rig_doctor_in_use(x->root, x->s.bdf, text, sizeof(text)))
		(void)rig_found(x, rig_attribute_path(x->s.bdf, "driver"), "%s, and %s", x->s.driver, text);
}

void rig_look_driver(struct rig_exam *x)
{
	char text[LINE], owner[RIG_BDF_TEXT];
	struct rig_finding *f;

	if (rig_bridges_owner(x->root, x->s.bdf, owner))
		return;
	if (x->s.vfio || rig_doctor_in_use(x->root, x->s.bdf, text, sizeof(text)))
		return;
	f = rig_found(x, rig_attribute_path(x->s.bdf, "driver"), "%s%s", *x->s.driver ? x->s.driver : "none",
	        strstr(x->s.driver, "uio") ? ", which gives functions out without the IOMMU's protection"
	                                   : "");
	rig_command(f, "rigctl bind %s", x->s.bdf);
}

/* new_id leaves no mark of its own, but driver_override would be set. */
void rig_look_new_id(struct rig_exam *x)
{
	char line[LINE];

	if (strcmp(x->s.driver, "vfio-pci") != 0 ||
	        !rig_attribute(x, x->s.bdf, "driver_override", line, sizeof(line)) ||
	        (*line && strcmp(line, "(null)") != 0))
		return;
	(void)rig_found(x, rig_attribute_path(x->s.bdf, "driver_override"), "%s", *line ? line : "empty");
}

void rig_look_virtuals(struct rig_exam *x)
{
	char line[32];

	if (rig_attribute(x, x->s.bdf, "sriov_numvfs", line, sizeof(line)) && strtol(line, NULL, 10) > 0)
		(void)rig_found(x, rig_attribute_path(x->s.bdf, "sriov_numvfs"), "%s", line);
}

void rig_look_token(struct rig_exam *x)
{
	char owner[RIG_KSYSFS_NAME];
	struct rig_ksysfs physical;
	struct rig_finding *f;

	if (x->ask->token ||
	        !rig_ksysfs_link(x->root, rig_attribute_path(x->s.bdf, "physfn"), owner, sizeof(owner)) ||
	        rig_ksysfs_read(x->root, owner, &physical) || strcmp(physical.driver, "vfio-pci") != 0)
		return;
	f = rig_found(x, rig_attribute_path(x->s.bdf, "physfn"), "%s, which is with vfio-pci", owner);
	rig_command(f, "# the device string with the owner's token: %s,vf-token=UUID", x->s.bdf);
	rig_command(f, "rigctl unbind %s   # its kernel driver then makes the virtual functions", owner);
}

/* -- Awake -- */

void rig_look_power(struct rig_exam *x)
{
	struct rig_finding *f;

	/* Runtime power management puts what nobody has open into D3hot, and opening takes it out. */
	if (strcmp(x->s.power, "D3cold") != 0 && strcmp(x->s.power, "error") != 0 &&
	        !(x->ask->seen.open && strcmp(x->s.power, "D3hot") == 0))
		return;
	f = rig_found(x, rig_attribute_path(x->s.bdf, "power_state"), "%s", x->s.power);
	rig_command(f, "echo 0 > %s; echo on > %s", rig_attribute_path(x->s.bdf, "d3cold_allowed"),
	        rig_attribute_path(x->s.bdf, "power/control"));
	rig_command(f, "echo 1 > %s; echo 1 > /sys/bus/pci/rescan   # if it stays off",
	        rig_attribute_path(x->s.bdf, "remove"));
}

/* A virtual function's vendor and device id read ffff by specification (SR-IOV 1.1, section 3.4.1), and
 * nothing else of it does. */
static bool reads_ones(const struct rig_exam *x)
{
	size_t bytes, ids = x->s.virtual ? HEADER : sizeof(uint16_t);
	char *config = rig_tree_read(x->root, rig_attribute_path(x->s.bdf, "config"), &bytes);
	bool ones = config && bytes >= ids && (unsigned char)*config == UINT8_MAX &&
	            memcmp(config, config + 1, ids - 1) == 0;

	free(config);
	return ones || x->ask->seen.ones;
}

/* A width of 0 alone says little: virtual machines show it for links that work. */
void rig_look_link(struct rig_exam *x)
{
	char lanes[48] = "";

	if (!reads_ones(x))
		return;
	if (x->s.link_most > 0)
		snprintf(lanes, sizeof(lanes), "; %d of %d lanes", x->s.link_width, x->s.link_most);
	rig_command(rig_found(x, rig_attribute_path(x->s.bdf, "config"), "vendor id ffff%s", lanes),
	        "echo 1 > %s; echo 1 > /sys/bus/pci/rescan", rig_attribute_path(x->s.bdf, "remove"));
}

void rig_look_aspm(struct rig_exam *x)
{
	char line[32];

	if (!rig_attribute(x, x->s.bdf, "link/l1_aspm", line, sizeof(line)) || *line != '1')
		return;
	rig_command(rig_found(x, rig_attribute_path(x->s.bdf, "link/l1_aspm"), "1"),
	        "echo 0 > %s   # if reads flicker", rig_attribute_path(x->s.bdf, "link/l1_aspm"));
}

/* -- Reset -- */

struct slot {
	const struct rig_exam *x;
	struct rig_text text;
};

/* A bus reset hits everything on the bus. */
static int add_other(void *arg, const char *bdf)
{
	struct slot *s = arg;
	struct rig_bdf here, there;
	struct rig_ksysfs other;

	if (!rig_bdf_parse(s->x->s.bdf, &here) || !rig_bdf_parse(bdf, &there) ||
	        here.domain != there.domain || here.bus != there.bus || rig_bdf_compare(&here, &there) == 0 ||
	        rig_ksysfs_read(s->x->root, bdf, &other))
		return 0;
	rig_text_addf(&s->text, "%s%s (%s)", s->text.used ? ", " : "; it resets also ", bdf,
	        *other.driver ? other.driver : "no driver");
	return 0;
}

static bool is_alone(const char *methods)
{
	return strstr(methods, "flr") || strstr(methods, "pm") || strstr(methods, "device_specific") ||
	       strstr(methods, "acpi");
}

void rig_look_reset(struct rig_exam *x)
{
	char methods[64], others[LINE] = "";
	struct slot s = {.x = x};

	if (rig_kernel_release(x) < 5015 || !rig_tree_exists(x->root, rig_attribute_path(x->s.bdf, "vendor")))
		return;
	if (!rig_attribute(x, x->s.bdf, "reset_method", methods, sizeof(methods)) || !*methods) {
		(void)rig_found(x, rig_attribute_path(x->s.bdf, "reset_method"),
		        "none: the function keeps what its last user left in it");
		return;
	}
	rig_text_init(&s.text, others, sizeof(others));
	if (!is_alone(methods))
		(void)rig_tree_each(x->root, RIG_PCI_DEVICES, add_other, &s);
	(void)rig_found(x, rig_attribute_path(x->s.bdf, "reset_method"), "%s%s", methods, others);
}

/* -- Who has it -- */

void rig_look_holder(struct rig_exam *x)
{
	char text[LINE], file[RIG_FINDING_FILE];

	if (!rig_doctor_holder(x->root, x->s.bdf, text, sizeof(text), file, sizeof(file)))
		return;
	rig_command(
	        rig_found(x, file, "%s", text), "kill %lu   # or wait for its end", strtoul(text, NULL, 10));
}

static int found_driver_holder(void *arg, const char *who, const char *node, const char *file)
{
	struct rig_exam *x = arg;

	rig_command(rig_found(x, file, "%s has %s, of %s", who, node, x->s.driver),
	        "kill %lu   # or wait for its end", strtoul(who, NULL, 10));
	return 0;
}

void rig_look_driver_held(struct rig_exam *x)
{
	(void)rig_doctor_driver_holders(x->root, x->s.bdf, found_driver_holder, x);
}
