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

enum { RIG_KSYSFS_NAME = 32, RIG_KSYSFS_BARS = 6 };

struct rig_ksysfs {
	char bdf[RIG_BDF_TEXT];
	unsigned vendor, device, class_code;
	char driver[RIG_KSYSFS_NAME];        /* "" if none */
	int group;                           /* -1: none */
	bool virtual;                        /* of another function (physfn) */
	bool noiommu;                        /* the group is one that vfio made up, with no IOMMU behind it */
	char cdev[RIG_KSYSFS_NAME];          /* below /dev/vfio/devices, "" if none */
	char power[16];                      /* "D0", "D3cold", ...; "unknown", "" on older kernels */
	int link_width;                      /* lanes now; -1: says nothing (no PCIe, or an older kernel) */
	int link_most;                       /* lanes it has; 0 or -1: no link, as inside a root complex */
	int numa;                            /* -1: unknown */
	uint64_t bar[RIG_KSYSFS_BARS];       /* bus addresses; 0: none */
	uint64_t bar_bytes[RIG_KSYSFS_BARS]; /* 0: none */
};

/* A driver through which VFIO gives functions out. */
bool rig_is_vfio_driver(const char *driver);

/* As Linux writes it (bdf.h). */
bool rig_ksysfs_is_bdf(const char *text);

/* bdf in any form that bdf.h reads; the result has Linux's. -EINVAL: it has none. -ENOENT: no such function
 * here; -EACCES: it may not be looked at. Then bdf alone is set, unless it has no form. */
int rig_ksysfs_read(const char *root, const char *bdf, struct rig_ksysfs *out);

/* The first line of a file below root, without its end; false and "" if it cannot be read. */
bool rig_ksysfs_line(const char *root, const char *path, char *to, size_t bytes);

/* The last part of where a link below root points to; false and "" if there is none or it does not fit. */
bool rig_ksysfs_link(const char *root, const char *path, char *to, size_t bytes);

/* Calls each for every function of the group, until it answers other than 0, which is the answer. driver
 * is "" for none. */
int rig_ksysfs_group(const char *root, int group,
        int (*each)(void *arg, const char *bdf, const char *driver, unsigned class_code), void *arg);

/* Whether the group has a region of its own that firmware wants mapped one to one (RMRR): "direct" in
 * reserved_regions. text gets the first such line. */
bool rig_ksysfs_direct_region(const char *root, int group, char *text, size_t bytes);

#endif
