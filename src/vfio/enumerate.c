/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pciaccess.h>

#include "enumerate.h"

/* The last component of a link in the function's sysfs folder, "" if there is none. */
static void read_link(const char *address, const char *name, char *to, size_t bytes)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t n;

	*to = 0;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", address, name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return;
	target[n] = 0;
	last = strrchr(target, '/');
	last = last ? last + 1 : target;
	if (strlen(last) < bytes)
		strcpy(to, last);
}

static void describe(struct pci_device *device, struct rig_pci_found *found)
{
	char group[32];
	const char *name;

	memset(found, 0, sizeof(*found));
	snprintf(found->address, sizeof(found->address), "%04x:%02x:%02x.%x",
	        (unsigned)device->domain & 0xFFFF, (unsigned)device->bus & 0xFF, (unsigned)device->dev & 0x1F,
	        (unsigned)device->func & 7);
	found->vendor = device->vendor_id;
	found->device = device->device_id;
	found->class_code = device->device_class & 0xFFFFFF;
	name = pci_device_get_vendor_name(device);
	snprintf(found->vendor_name, sizeof(found->vendor_name), "%s", name ? name : "");
	name = pci_device_get_device_name(device);
	snprintf(found->device_name, sizeof(found->device_name), "%s", name ? name : "");
	read_link(found->address, "driver", found->driver, sizeof(found->driver));
	read_link(found->address, "iommu_group", group, sizeof(group));
	found->iommu_group = *group ? atoi(group) : -1;
}

int rig_pci_enumerate(int (*each)(void *arg, const struct rig_pci_found *found), void *arg)
{
	struct pci_device_iterator *functions;
	struct pci_device *device;
	struct rig_pci_found found;
	int answer = 0;

	if (pci_system_init())
		return -ENOSYS;
	functions = pci_slot_match_iterator_create(NULL);
	while (!answer && functions && (device = pci_device_next(functions))) {
		describe(device, &found);
		answer = each(arg, &found);
	}
	pci_iterator_destroy(functions);
	pci_system_cleanup();
	return answer;
}
