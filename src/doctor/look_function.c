/* SPDX-License-Identifier: MIT */
/* A function: who drives it, whether it is awake, who has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_private.h"
#include "text.h"
#include "tree.h"

enum { LINE = 256 };

void rig_look_absent(struct rig_exam *x)
{
	struct rig_finding *f = rig_found(x, RIG_PCI_DEVICES, "no %s", x->s.bdf);

	rig_command(f, "echo 1 > /sys/bus/pci/rescan");
	rig_command(f, "rigctl list");
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

	if (!rig_is_vfio_driver(x->s.driver) && rig_doctor_in_use(x->root, x->s.bdf, text, sizeof(text)))
		(void)rig_found(x, rig_attribute_path(x->s.bdf, "driver"), "%s, and %s", x->s.driver, text);
}

void rig_look_driver(struct rig_exam *x)
{
	struct rig_finding *f;
	char text[LINE];

	if (rig_is_vfio_driver(x->s.driver) || rig_doctor_in_use(x->root, x->s.bdf, text, sizeof(text)))
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

static bool reads_ones(const struct rig_exam *x)
{
	size_t bytes;
	char *config = rig_tree_read(x->root, rig_attribute_path(x->s.bdf, "config"), &bytes);
	bool ones = config && bytes >= 2 && config[0] == '\xff' && config[1] == '\xff';

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
	const char *dot = strrchr(s->x->s.bdf, ':');
	struct rig_ksysfs other;

	if (strncmp(bdf, s->x->s.bdf, (size_t)(dot - s->x->s.bdf) + 1) != 0 ||
	        strcmp(bdf, s->x->s.bdf) == 0 || rig_ksysfs_read(s->x->root, bdf, &other))
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
