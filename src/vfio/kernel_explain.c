/* SPDX-License-Identifier: MIT */
/* What failed, in words that say what to do about it. */
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error.h"
#include "kernel_private.h"
#include "text.h"

enum { WORDS = 256 };

/* Bridges stay with their drivers: the kernel counts them as harmless (PCI class 0x0604). */
#define CLASS_BRIDGE 0x0604u

struct mates {
	struct rig_text text;
	bool any;
};

static bool harmless(const char *driver, unsigned class_code)
{
	return !*driver || strncmp(driver, "vfio-", 5) == 0 || strcmp(driver, "pci-stub") == 0 ||
	       (strcmp(driver, "pcieport") == 0 && class_code >> 8 == CLASS_BRIDGE);
}

static int add_mate(void *arg, const char *bdf, const char *driver, unsigned class_code)
{
	struct mates *m = arg;

	if (harmless(driver, class_code))
		return 0;
	rig_text_addf(&m->text, "%s%s is bound to %s", m->any ? ", " : "", bdf, driver);
	m->any = true;
	return 0;
}

int rig_kexplain_absent(const struct rig_kernel *k, int err, const char *bdf)
{
	(void)k;
	if (err == -EINVAL)
		return rig_vfio_fail(err, "write it as 0000:65:00.0", "\"%.32s\" is no PCI address", bdf);
	return rig_vfio_fail(err, "rigctl list shows what there is; echo 1 > /sys/bus/pci/rescan looks again",
	        "no function %s on this machine", bdf);
}

int rig_kexplain_viable(const struct rig_kernel *k)
{
	char words[WORDS], remedy[WORDS];
	struct mates m = {.any = false};

	rig_text_init(&m.text, words, sizeof(words));
	(void)rig_ksysfs_group(k->env->root, k->sysfs.group, add_mate, &m);
	snprintf(remedy, sizeof(remedy),
	        "run: rigctl bind --group %s (it lists the group first with --dry-run)", k->sysfs.bdf);
	return rig_vfio_fail(EBUSY, remedy, "group %d is not viable: %s", k->sysfs.group,
	        m.any ? words : "one of its functions is with a kernel driver");
}

int rig_kexplain_driver(const struct rig_ksysfs *s)
{
	char remedy[64];

	if (strncmp(s->driver, "vfio-", 5) == 0 || strstr(s->driver, "_vfio_pci"))
		return 0;
	snprintf(remedy, sizeof(remedy), "run: rigctl bind %s", s->bdf);
	if (*s->driver)
		return rig_vfio_fail(EBUSY, remedy, "%s is with the kernel driver %s, not with vfio-pci",
		        s->bdf, s->driver);
	return rig_vfio_fail(ENODEV, remedy, "%s is bound to no driver; it must be with vfio-pci", s->bdf);
}

int rig_kexplain_node(const struct rig_kernel *k, int err, const char *path)
{
	char remedy[WORDS];

	switch (err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		snprintf(remedy, sizeof(remedy),
		        "modprobe vfio-pci (and vfio_iommu_type1 or iommufd); run: rigctl bind %s",
		        k->sysfs.bdf);
		break;
	case EACCES:
	case EPERM:
		snprintf(remedy, sizeof(remedy), "as root: chown %u %s, or rigctl bind --user %u %s",
		        (unsigned)getuid(), path, (unsigned)getuid(), k->sysfs.bdf);
		break;
	case EBUSY:
		snprintf(remedy, sizeof(remedy), "another process has it: fuser -v %s names it", path);
		break;
	default:
		return rig_vfio_fail(err, NULL, "opening %s", path);
	}
	return rig_vfio_fail(err, remedy, "opening %s for %s", path, k->sysfs.bdf);
}

/* Whether interrupts are remapped: EPERM means no, unless the switch allows it. */
static const char *why_no_attach(const struct rig_kernel *k, int err, char *words, size_t bytes)
{
	char region[128];

	if (rig_ksysfs_direct_region(k->env->root, k->sysfs.group, region, sizeof(region))) {
		snprintf(words, bytes,
		        "firmware reserved the region %s for the function (RMRR): switch off what uses it in "
		        "firmware "
		        "setup (USB legacy support, storage agents, graphics memory)",
		        region);
		return words;
	}
	if (err == EPERM)
		return "no interrupt remapping here? then a function can forge interrupts; who accepts that: "
		       "echo 1 > "
		       "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts (or iommufd's)";
	if (err == EBUSY)
		return "another process has the group, or it is in another container";
	return NULL;
}

int rig_kexplain_attach(const struct rig_kernel *k, int err, const char *what)
{
	char words[WORDS * 2];
	int e = err < 0 ? -err : err;

	return rig_vfio_fail(e, why_no_attach(k, e, words, sizeof(words)), "%s, group %d: %s", k->sysfs.bdf,
	        k->sysfs.group, what);
}

int rig_kexplain_device(const struct rig_kernel *k, int err, const char *what)
{
	const char *remedy = NULL;
	int e = err < 0 ? -err : err;

	if (e == EBUSY)
		remedy = "another process has it open";
	else if (e == EACCES)
		remedy = "a virtual function needs the token of its physical function's owner, which is not "
		         "supported yet";
	else if (e == EPERM)
		remedy = "no-IOMMU needs CAP_SYS_RAWIO";
	return rig_vfio_fail(e, remedy, "%s: %s", k->sysfs.bdf, what);
}

/* -- Mapping -- */

static bool may_lock_all(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & (1u << CAP_IPC_LOCK));
}

/* "VmLck:	 64 kB" of /proc/self/status, in bytes. */
static uint64_t locked_now(const char *name)
{
	char line[128];
	uint64_t kib = 0;
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtoull(line + strlen(name), NULL, 10);
	if (file)
		(void)fclose(file);
	return kib << 10;
}

static int memlock(const struct rig_vfio_map *map, uint64_t space_bytes)
{
	struct rlimit limit = {0};
	char remedy[WORDS];
	uint64_t need = space_bytes + map->bytes, locked = locked_now("VmLck:") + locked_now("VmPin:");

	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	if (may_lock_all() || limit.rlim_cur == RLIM_INFINITY)
		return rig_vfio_fail(ENOMEM, "free memory",
		        "pinning %#" PRIx64 " bytes for the device; RLIMIT_MEMLOCK does not stop it",
		        map->bytes);
	if (need < locked + map->bytes)
		need = locked + map->bytes;
	snprintf(remedy, sizeof(remedy),
	        "ulimit -l %" PRIu64 " (as root; or LimitMEMLOCK= of the service, or CAP_IPC_LOCK)",
	        (need + 1023) >> 10);
	return rig_vfio_fail(ENOMEM, remedy,
	        "pinning %" PRIu64 " KiB for the device: %" PRIu64
	        " KiB are locked, RLIMIT_MEMLOCK is %" PRIu64 " KiB",
	        map->bytes >> 10, locked >> 10, (uint64_t)limit.rlim_cur >> 10);
}

int rig_kexplain_map(int err, const struct rig_vfio_map *map, uint64_t space_bytes, uint64_t mappings)
{
	switch (err) {
	case ENOMEM:
		return memlock(map, space_bytes);
	case ENOSPC:
		return rig_vfio_fail(ENOSPC,
		        "map larger pieces, or as root: echo N > "
		        "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit "
		        "(65,535 by default) before the container is opened",
		        "%" PRIu64
		        " mappings exist, which is all that the module parameter dma_entry_limit allows",
		        mappings);
	case EEXIST:
		return rig_vfio_fail(EEXIST, NULL,
		        "[%#" PRIx64 ", +%#" PRIx64 ") is mapped already in the address space", map->iova,
		        map->bytes);
	case EFAULT:
		return rig_vfio_fail(EFAULT, "map memory that is there and allows it",
		        "pinning %#" PRIx64 " bytes at %p", map->bytes, map->host);
	case EINVAL:
		return rig_vfio_fail(EINVAL,
		        "the IOMMU's ranges: /sys/kernel/iommu_groups/N/reserved_regions",
		        "mapping [%#" PRIx64 ", +%#" PRIx64 "): outside what the IOMMU takes", map->iova,
		        map->bytes);
	default:
		return rig_vfio_fail(
		        err, NULL, "mapping [%#" PRIx64 ", +%#" PRIx64 ")", map->iova, map->bytes);
	}
}
