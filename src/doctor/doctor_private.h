/* SPDX-License-Identifier: MIT */
#ifndef RIG_DOCTOR_PRIVATE_H
#define RIG_DOCTOR_PRIVATE_H

/* How a finding is made: a row of the table in doctor.c, and a function that looks. Private to src/doctor. */

#include <stdbool.h>
#include <stddef.h>

#include "doctor.h"
#include "kernel_sysfs.h"

#define RIG_PCI_DEVICES "/sys/bus/pci/devices"
#define RIG_PCI_DRIVERS "/sys/bus/pci/drivers"
#define RIG_GROUPS      "/sys/kernel/iommu_groups"
#define RIG_TYPE1       "/sys/module/vfio_iommu_type1"

struct rig_exam;

/* What is looked at: the machine, a function with or without a group, or one that is not there. */
enum rig_doctor_scope { RIG_OF_MACHINE, RIG_OF_FUNCTION, RIG_OF_ABSENT };

struct rig_doctor_row {
	const char *id;
	enum rig_severity severity;
	enum rig_doctor_scope scope;
	void (*look)(struct rig_exam *x); /* calls rig_found for whatever it finds, which may be nothing */
	const char *text;
};

struct rig_exam {
	const struct rig_doctor_ask *ask;
	const char *root;
	uint64_t pin;
	bool function; /* a function is asked for, and there */
	struct rig_ksysfs
	        s; /* of it; bdf is what was asked for also if it is not there, "" for the machine */
	const struct rig_doctor_row *row;
	struct rig_diagnosis *out;
	struct rig_finding spare; /* when the diagnosis is full */
};

/* A new finding of the row that is looked for, with its evidence. Never NULL. */
struct rig_finding *rig_found(struct rig_exam *x, const char *file, const char *content, ...)
        __attribute__((format(printf, 3, 4)));
/* Adds a command, on a line of its own. */
void rig_command(struct rig_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An attribute of a function (bdf) in one line; false and "" without it. */
bool rig_attribute(const struct rig_exam *x, const char *bdf, const char *name, char *to, size_t bytes);
/* The path of it, valid until the next call but three. */
const char *rig_attribute_path(const char *bdf, const char *name);

/* The function's group is one of an IOMMU. */
bool rig_is_isolated(const struct rig_exam *x);
/* Whether the machine has a group that is not made up by vfio for no-IOMMU. */
bool rig_has_iommu(const struct rig_exam *x);
/* The kernel's release as major * 1000 + minor; 0: unknown. */
unsigned rig_kernel_release(const struct rig_exam *x);
/* Whether the user has a capability (capabilities(7)) that counts on the machine: not one of a user
 * namespace. */
bool rig_has_capability(const struct rig_exam *x, unsigned capability);

/* The rest of the line of a file that begins with name; false and "" without one. */
enum { RIG_FIELD = 1024 };
bool rig_field(const struct rig_exam *x, const char *path, const char *name, char text[RIG_FIELD]);

/* -- bridges.c -- */

/* Calls each for the bridges above a function, nearest first. */
int rig_bridges(const char *root, const char *bdf, int (*each)(void *arg, const char *bridge), void *arg);
/* The function that makes the bus on which this one hangs, as Intel VMD does; false: the machine does. */
bool rig_bridges_owner(const char *root, const char *bdf, char owner[RIG_BDF_TEXT]);
/* What the bridge's configuration space says about access control services: whether it isolates what is below
 * it. */
enum rig_acs { RIG_ACS_UNKNOWN, RIG_ACS_NONE, RIG_ACS_OFF, RIG_ACS_ON };
enum rig_acs rig_bridge_acs(const char *root, const char *bridge);
/* The largest of the bridge's memory windows, in bytes; 0: says nothing. */
uint64_t rig_bridge_window(const char *root, const char *bridge);

/* -- The looks -- */

void rig_look_kernel(struct rig_exam *x);
void rig_look_iommu_off(struct rig_exam *x);
void rig_look_iommu_absent(struct rig_exam *x);
void rig_look_remapping(struct rig_exam *x);
void rig_look_unsafe(struct rig_exam *x);
void rig_look_vfio_pci(struct rig_exam *x);
void rig_look_back_end(struct rig_exam *x);
void rig_look_no_cdev(struct rig_exam *x);
void rig_look_lockdown(struct rig_exam *x);

void rig_look_memlock(struct rig_exam *x);
void rig_look_entries(struct rig_exam *x);
void rig_look_huge_none(struct rig_exam *x);
void rig_look_huge_node(struct rig_exam *x);
void rig_look_huge(struct rig_exam *x);

void rig_look_vmd(struct rig_exam *x);
void rig_look_denied(struct rig_exam *x);
void rig_look_absent(struct rig_exam *x);
void rig_look_port(struct rig_exam *x);
void rig_look_in_use(struct rig_exam *x);
void rig_look_driver(struct rig_exam *x);
void rig_look_new_id(struct rig_exam *x);
void rig_look_virtuals(struct rig_exam *x);
void rig_look_token(struct rig_exam *x);
void rig_look_power(struct rig_exam *x);
void rig_look_link(struct rig_exam *x);
void rig_look_aspm(struct rig_exam *x);
void rig_look_reset(struct rig_exam *x);
void rig_look_holder(struct rig_exam *x);
void rig_look_driver_held(struct rig_exam *x);

void rig_look_noiommu(struct rig_exam *x);
void rig_look_noiommu_on(struct rig_exam *x);
void rig_look_noiommu_off(struct rig_exam *x);
void rig_look_noiommu_absent(struct rig_exam *x);
void rig_look_noiommu_refused(struct rig_exam *x);
void rig_look_no_group(struct rig_exam *x);
void rig_look_mates(struct rig_exam *x);
void rig_look_mates_used(struct rig_exam *x);
void rig_look_acs(struct rig_exam *x);
void rig_look_rmrr(struct rig_exam *x);
void rig_look_reserved(struct rig_exam *x);
void rig_look_width(struct rig_exam *x);
void rig_look_mask(struct rig_exam *x);
void rig_look_node_missing(struct rig_exam *x);
void rig_look_node_stale(struct rig_exam *x);
void rig_look_node_denied(struct rig_exam *x);
void rig_look_node(struct rig_exam *x);

void rig_look_framebuffer(struct rig_exam *x);
void rig_look_bars(struct rig_exam *x);
void rig_look_bar_small(struct rig_exam *x);
void rig_look_bar_page(struct rig_exam *x);

#endif
