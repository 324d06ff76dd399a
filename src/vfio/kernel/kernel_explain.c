/* SPDX-License-Identifier: MIT */
/* What failed, in words that say what to do about it: what the doctor finds of it, in the doctor's words. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "error.h"
#include "kernel_private.h"
#include "kernel_space.h"

enum { LINE = RIG_VFIO_ERROR_BYTES, WHAT = 256 };

static enum rig_doctor_way way_of(const struct rig_kernel *k)
{
	static const enum rig_doctor_way ways[] = {[RIG_PCI_ANY] = RIG_DOCTOR_ANY,
	        [RIG_PCI_IOMMUFD] = RIG_DOCTOR_IOMMUFD,
	        [RIG_PCI_TYPE1] = RIG_DOCTOR_TYPE1,
	        [RIG_PCI_NOIOMMU] = RIG_DOCTOR_NOIOMMU};

	return ways[k->way];
}

/* What the doctor finds of the kinds in ask.only, in one line; "" for nothing. */
static void find(const struct rig_kernel *k, struct rig_doctor_ask ask, char *line, size_t bytes)
{
	struct rig_diagnosis *found = calloc(1, sizeof(*found));

	*line = 0;
	ask.root = k->env->root;
	ask.bdf = *k->sysfs.bdf ? k->sysfs.bdf : NULL;
	if (!ask.way)
		ask.way = way_of(k);
	if (found && rig_doctor_examine(&ask, found) == 0)
		rig_doctor_line(found, line, bytes);
	free(found);
}

/* otherwise: what to say where the doctor finds nothing; may be NULL. */
static int say(const struct rig_kernel *k, int err, struct rig_doctor_ask ask, const char *otherwise,
        const char *what, ...) __attribute__((format(printf, 5, 6)));

static int say(const struct rig_kernel *k, int err, struct rig_doctor_ask ask, const char *otherwise,
        const char *what, ...)
{
	char line[LINE], attempt[WHAT];
	va_list args;

	va_start(args, what);
	vsnprintf(attempt, sizeof(attempt), what, args);
	va_end(args);
	find(k, ask, line, sizeof(line));
	return rig_vfio_fail(err, *line ? line : otherwise, "%s", attempt);
}

static const char *name_of(const struct rig_kernel *k)
{
	return *k->sysfs.bdf ? k->sysfs.bdf : "the function";
}

#define ASK(...) ((struct rig_doctor_ask){__VA_ARGS__})

/* -- Before anything is opened -- */

int rig_kexplain_absent(const struct rig_kernel *k, int err, const char *bdf)
{
	if (err == -EINVAL)
		return rig_vfio_fail(err, "write it as 0000:65:00.0", "\"%.32s\" is no PCI address", bdf);
	return say(k, err, ASK(.only = "absent"), NULL, "%s", bdf);
}

int rig_kexplain_driver(const struct rig_kernel *k)
{
	const struct rig_ksysfs *s = &k->sysfs;

	if (rig_is_vfio_driver(s->driver))
		return 0;
	return say(k, *s->driver ? EBUSY : ENODEV, ASK(.only = "in-use vfio-pci driver"), NULL, "%s", s->bdf);
}

int rig_kexplain_held(const struct rig_kernel *k)
{
	char line[LINE];

	find(k, ASK(.only = "holder"), line, sizeof(line));
	return *line ? rig_vfio_fail(EBUSY, line, "%s", name_of(k)) : -EBUSY;
}

int rig_kexplain_no_group(const struct rig_kernel *k)
{
	return say(k, ENODEV, ASK(.only = "iommu-absent iommu-off no-group noiommu"),
	        "switch the IOMMU on in firmware setup, or ask for transport=noiommu", "%s: no IOMMU group",
	        name_of(k));
}

/* -- Opening -- */

int rig_kexplain_node(const struct rig_kernel *k, int err, const char *path)
{
	const char *ids = NULL;

	if (err == ENOENT || err == ENXIO || err == ENODEV)
		ids = "vfio-pci back-end driver no-group";
	else if (err == EACCES || err == EPERM)
		ids = "permission";
	else if (err == EBUSY)
		ids = "holder";
	if (!ids)
		return rig_vfio_fail(err, NULL, "%s: opening %s", name_of(k), path);
	return say(k, err, ASK(.only = ids),
	        err == EBUSY
	                ? "who has it is not to be seen: descriptors of this process's own, made without the "
	                  "library, or a process of another user (rigctl doctor as root names that)"
	                : NULL,
	        "%s: opening %s", name_of(k), path);
}

int rig_kexplain_back_end(const struct rig_kernel *k, const char *what)
{
	return say(k, ENOTSUP, ASK(.only = "back-end no-node"), "modprobe vfio_iommu_type1 or iommufd",
	        "%s: %s", name_of(k), what);
}

int rig_kexplain_viable(const struct rig_kernel *k)
{
	return say(k, EBUSY, ASK(.only = "mate-in-use group-mate"),
	        "one of its functions is with a kernel driver: rigctl bind --group lists it with --dry-run",
	        "%s: group %d is not viable", name_of(k), k->sysfs.group);
}

int rig_kexplain_attach(const struct rig_kernel *k, int err, const char *what)
{
	const char *ids = "rmrr", *otherwise = NULL;

	if (err == -EPERM) {
		ids = "rmrr no-remapping lockdown";
		otherwise = "rigctl doctor as root may see why";
	} else if (err == -EBUSY) {
		ids = "rmrr holder";
		otherwise = "another process has the group, or it is in another container";
	}
	return say(k, err, ASK(.only = ids), otherwise, "%s: group %d: %s", name_of(k), k->sysfs.group, what);
}

int rig_kexplain_device(const struct rig_kernel *k, int err, const char *what)
{
	const char *ids = "power link", *otherwise = NULL;

	err = err < 0 ? err : -err;
	if (err == -EBUSY) {
		ids = "holder";
		otherwise = "another process has it open";
	} else if (err == -EACCES) {
		ids = "token";
		otherwise =
		        *k->token ? "the token is not the one that the physical function's owner set" : NULL;
	} else if (err == -EINVAL && *k->token) {
		otherwise = "leave vf-token out: it is neither a physical function with virtual ones nor a "
		            "virtual "
		            "one of a physical one that VFIO gave out";
	} else if (err == -EPERM) {
		ids = "lockdown";
		otherwise = k->way == RIG_PCI_NOIOMMU ? "no-IOMMU needs CAP_SYS_RAWIO" : NULL;
	}
	return say(k, err, ASK(.only = ids), otherwise, "%s: %s%s", name_of(k), what,
	        *k->token ? " with the token given" : "");
}

int rig_kexplain_asleep(const struct rig_kernel *k)
{
	return say(k, ENODEV, ASK(.only = "power", .seen.open = true), NULL, "%s: power state %s", name_of(k),
	        k->sysfs.power);
}

int rig_kexplain_ones(const struct rig_kernel *k)
{
	return say(k, ENODEV, ASK(.only = "power link", .seen = {.open = true, .ones = true}), NULL, "%s",
	        name_of(k));
}

/* -- Mapping -- */

/* Another device's registers are no memory, and are not counted. Asked where mapping would be refused. */
static bool is_memory(const struct rig_vfio_map *map)
{
	return madvise(map->host, (size_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_READ) == 0;
}

int rig_kexplain_pin(const struct rig_kernel *k, const struct rig_vfio_map *map)
{
	char line[LINE];

	if (!k->limited)
		return 0;
	find(k,
	        ASK(.only = "memlock", .pin = map->bytes,
	                .seen = {.open = true, .certain = true, .pinned = k->space->pinned}),
	        line, sizeof(line));
	if (!*line || !is_memory(map))
		return 0;
	return rig_vfio_fail(ENOMEM, line, "pinning %" PRIu64 " KiB", map->bytes >> 10);
}

int rig_kexplain_need(const struct rig_kernel *k, uint64_t bytes)
{
	char line[LINE];

	/* Whichever way it goes, it is this much and more. */
	find(k, ASK(.only = "memlock", .pin = bytes, .way = RIG_DOCTOR_IOMMUFD, .seen.certain = true), line,
	        sizeof(line));
	return *line ? rig_vfio_fail(ENOMEM, line, "%s", name_of(k)) : 0;
}

void rig_kexplain_soon(const struct rig_kernel *k, uint64_t bytes, char *text, size_t len)
{
	find(k, ASK(.only = "memlock", .pin = bytes), text, len);
}

static int no_room(const struct rig_kernel *k, const struct rig_vfio_map *map)
{
	return say(k, ENOSPC, ASK(.only = "entry-limit", .seen = {.full = true, .mappings = k->space->count}),
	        NULL, "mapping %" PRIu64 " KiB", map->bytes >> 10);
}

int rig_kexplain_map(const struct rig_kernel *k, int err, const struct rig_vfio_map *map)
{
	switch (err) {
	case ENOMEM:
		return say(k, ENOMEM,
		        ASK(.only = "memlock", .pin = map->bytes,
		                .seen = {.open = true, .unlocked = true, .pinned = k->space->pinned}),
		        "free memory: RLIMIT_MEMLOCK does not stop it", "pinning %" PRIu64 " KiB",
		        map->bytes >> 10);
	case ENOSPC:
		return no_room(k, map);
	case EEXIST:
		return rig_vfio_fail(EEXIST, NULL,
		        "[%#" PRIx64 ", +%#" PRIx64 ") is mapped already in the address space", map->iova,
		        map->bytes);
	case EFAULT:
		return rig_vfio_fail(EFAULT, "map memory that is there and allows it",
		        "pinning %#" PRIx64 " bytes at %p", map->bytes, map->host);
	case EINVAL:
		return say(k, EINVAL, ASK(.only = "width reserved"), NULL,
		        "mapping [%#" PRIx64 ", +%#" PRIx64 "): outside what the IOMMU takes", map->iova,
		        map->bytes);
	default:
		return rig_vfio_fail(
		        err, NULL, "mapping [%#" PRIx64 ", +%#" PRIx64 ")", map->iova, map->bytes);
	}
}
