/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_SYSFS_H
#define RIG_KERNEL_SYSFS_H

/*
 * What sysfs says about one PCI function (Documentation/ABI/testing/sysfs-bus-pci). Reads only; everything
 * below a root that may be a captured tree. For src/doctor, src/vfio and tools. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bdf.h"

enum { RIG_KSYSFS_NAME = 64, RIG_KSYSFS_NODE = 32, RIG_KSYSFS_BARS = 6 };

struct rig_ksysfs {
	char bdf[RIG_BDF_TEXT];
	unsigned vendor, device, class_code;
	char driver[RIG_KSYSFS_NAME];        /* "" if none */
	bool vfio;                           /* which gives the function out through VFIO */
	int group;                           /* -1: none */
	bool virtual;                        /* of another function (physfn) */
	bool noiommu;                        /* the group is one that vfio made up, with no IOMMU behind it */
	char cdev[RIG_KSYSFS_NODE];          /* below /dev/vfio/devices, "" if none */
	char power[16];                      /* "D0", "D3cold", ...; "unknown", "" on older kernels */
	int link_width;                      /* lanes now; -1: says nothing (no PCIe, or an older kernel) */
	int link_most;                       /* lanes it has; 0 or -1: no link, as inside a root complex */
	int numa;                            /* -1: unknown */
	uint64_t bar[RIG_KSYSFS_BARS];       /* bus addresses; 0: none */
	uint64_t bar_bytes[RIG_KSYSFS_BARS]; /* 0: none */
};

/* What is in an IOMMU group, on whatever bus. */
struct rig_ksysfs_member {
	char name[RIG_KSYSFS_NAME];   /* of a function its address */
	char bus[RIG_KSYSFS_NAME];    /* "pci", "platform", ...; "" unknown */
	unsigned class_code;          /* of a function */
	bool bridge;                  /* a function whose configuration header is a bridge's */
	char driver[RIG_KSYSFS_NAME]; /* "" if none */
	bool vfio;                    /* which gives it out through VFIO */
};

/* bdf in any form that bdf.h reads; the result has Linux's. -EINVAL: it has none. -ENOENT: no such function
 * here; -EACCES: it may not be looked at. Then bdf alone is set, unless it has no form. */
int rig_ksysfs_read(const char *root, const char *bdf, struct rig_ksysfs *out);

/* The first line of a file below root, without its end; false and "" if it cannot be read. */
bool rig_ksysfs_line(const char *root, const char *path, char *to, size_t bytes);

/* The last part of where a link below root points to; false and "" if there is none or it does not fit. */
bool rig_ksysfs_link(const char *root, const char *path, char *to, size_t bytes);

/* Calls each for every member of the group, sorted by name, until it answers other than 0, which is the
 * answer. */
int rig_ksysfs_group(const char *root, int group,
        int (*each)(void *arg, const struct rig_ksysfs_member *member), void *arg);

/* Whether it is a function of PCI, and not a device of another bus. */
bool rig_ksysfs_is_function(const struct rig_ksysfs_member *member);

/* Whether the group can be given out although this is in it: it has no driver, or one that does no DMA of its
 * own, by the rule of the kernel of that release (major * 1000 + minor; 0: a recent one). */
bool rig_ksysfs_is_viable(const struct rig_ksysfs_member *member, unsigned release);

/* The kernel's release in that form; 0: unknown. */
unsigned rig_ksysfs_release(const char *root);

/* Whether the group has a region of its own that firmware wants mapped one to one (RMRR): "direct" in
 * reserved_regions. text gets the first such line. */
bool rig_ksysfs_direct_region(const char *root, int group, char *text, size_t bytes);

#endif
