/* SPDX-License-Identifier: MIT */
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <dirent.h>
#include <unistd.h>

/* Linux's Documentation/userspace-api/vfio.rst and iommufd.rst; headers before 6.2 lack them. */
#define BIND_IOMMUFD   _IO(VFIO_TYPE, VFIO_BASE + 18)
#define ATTACH_IOMMUFD _IO(VFIO_TYPE, VFIO_BASE + 19)
#define DETACH_IOMMUFD _IO(VFIO_TYPE, VFIO_BASE + 20)
#define IOAS_ALLOC     _IO(VFIO_TYPE, 0x81)
#define IOAS_MAP       _IO(VFIO_TYPE, 0x85)
#define IOAS_UNMAP     _IO(VFIO_TYPE, 0x86)
#define MAP_FIXED_IOVA 1u
#define MAP_WRITEABLE  2u
#define MAP_READABLE   4u

struct bind_iommufd {
	uint32_t argsz, flags;
	int32_t iommufd;
	uint32_t out_devid;
};
struct attach_iommufd {
	uint32_t argsz, flags, pt_id;
};
struct detach_iommufd {
	uint32_t argsz, flags;
};
struct ioas_alloc {
	uint32_t size, flags, out_ioas_id;
};
struct ioas_map {
	uint32_t size, flags, ioas_id, reserved;
	uint64_t user_va, length, iova;
};
struct ioas_unmap {
	uint32_t size, ioas_id;
	uint64_t iova, length;
};

#define PATH_BYTES 300

static _Noreturn void end(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static int must(int answer, const char *what)
{
	if (answer < 0)
		end(what);
	return answer;
}

void raw_check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "not so: %s\n", what);
	exit(1);
}

enum raw_transport raw_transport_of(const char *name)
{
	raw_check(!strcmp(name, "type1") || !strcmp(name, "iommufd") || !strcmp(name, "noiommu"),
	        "the transport is type1, iommufd or noiommu");
	return !strcmp(name, "type1") ? RAW_TYPE1 : !strcmp(name, "iommufd") ? RAW_IOMMUFD : RAW_NOIOMMU;
}

/* The group's node, which is viable. */
static int group_of(const char *address, const char *prefix)
{
	struct vfio_group_status status = {.argsz = sizeof(status)};
	char path[PATH_BYTES], link[PATH_BYTES];
	ssize_t n;
	int group;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group", address);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		end(path);
	link[n] = 0;
	snprintf(path, sizeof(path), "/dev/vfio/%s%s", prefix, strrchr(link, '/') + 1);
	group = must(open(path, O_RDWR | O_CLOEXEC), path);
	must(ioctl(group, VFIO_GROUP_GET_STATUS, &status), "VFIO_GROUP_GET_STATUS");
	raw_check(status.flags & VFIO_GROUP_FLAGS_VIABLE, "the group is viable");
	return group;
}

static void open_group(struct raw *raw, const char *address)
{
	const bool bare = raw->transport == RAW_NOIOMMU;

	raw->container = must(open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC), "/dev/vfio/vfio");
	raw->group = group_of(address, bare ? "noiommu-" : "");
	must(ioctl(raw->group, VFIO_GROUP_SET_CONTAINER, &raw->container), "VFIO_GROUP_SET_CONTAINER");
	must(ioctl(raw->container, VFIO_SET_IOMMU, bare ? VFIO_NOIOMMU_IOMMU : VFIO_TYPE1v2_IOMMU),
	        "VFIO_SET_IOMMU");
	raw->device = must(ioctl(raw->group, VFIO_GROUP_GET_DEVICE_FD, address), "VFIO_GROUP_GET_DEVICE_FD");
}

void raw_join(struct raw *raw, const char *address, const struct raw *with)
{
	*raw = (struct raw){.transport = with->transport, .container = dup(with->container)};
	raw->group = group_of(address, "");
	must(ioctl(raw->group, VFIO_GROUP_SET_CONTAINER, &raw->container), "VFIO_GROUP_SET_CONTAINER");
	raw->device = must(ioctl(raw->group, VFIO_GROUP_GET_DEVICE_FD, address), "VFIO_GROUP_GET_DEVICE_FD");
}

/* "vfio0" of the folder /sys/bus/pci/devices/ADDRESS/vfio-dev. */
static void open_cdev(struct raw *raw, const char *address)
{
	struct bind_iommufd bind = {.argsz = sizeof(bind)};
	struct attach_iommufd attach = {.argsz = sizeof(attach)};
	struct ioas_alloc alloc = {.size = sizeof(alloc)};
	char path[PATH_BYTES];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vfio-dev", address);
	dir = opendir(path);
	if (!dir)
		end(path);
	while ((entry = readdir(dir)) && strncmp(entry->d_name, "vfio", 4) != 0)
		;
	raw_check(entry, "the function has a cdev");
	snprintf(path, sizeof(path), "/dev/vfio/devices/%s", entry->d_name);
	closedir(dir);
	raw->container = must(open("/dev/iommu", O_RDWR | O_CLOEXEC), "/dev/iommu");
	raw->device = must(open(path, O_RDWR | O_CLOEXEC), path);
	bind.iommufd = raw->container;
	must(ioctl(raw->device, BIND_IOMMUFD, &bind), "VFIO_DEVICE_BIND_IOMMUFD");
	must(ioctl(raw->container, IOAS_ALLOC, &alloc), "IOMMU_IOAS_ALLOC");
	raw->ioas = attach.pt_id = alloc.out_ioas_id;
	must(ioctl(raw->device, ATTACH_IOMMUFD, &attach), "VFIO_DEVICE_ATTACH_IOMMUFD_PT");
}

void raw_open(struct raw *raw, const char *address, enum raw_transport transport)
{
	*raw = (struct raw){.transport = transport, .container = -1, .group = -1, .device = -1};
	if (transport == RAW_IOMMUFD)
		open_cdev(raw, address);
	else
		open_group(raw, address);
}

void raw_detach(const struct raw *raw)
{
	struct detach_iommufd detach = {.argsz = sizeof(detach)};

	if (raw->transport == RAW_IOMMUFD)
		must(ioctl(raw->device, DETACH_IOMMUFD, &detach), "VFIO_DEVICE_DETACH_IOMMUFD_PT");
}

void raw_close(struct raw *raw)
{
	close(raw->device);
	if (raw->group >= 0)
		close(raw->group);
	close(raw->container);
}

void raw_map(const struct raw *raw, void *host, uint64_t iova, uint64_t bytes)
{
	struct vfio_iommu_type1_dma_map map = {.argsz = sizeof(map),
	        .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
	        .vaddr = (uintptr_t)host,
	        .iova = iova,
	        .size = bytes};
	struct ioas_map ioas = {.size = sizeof(ioas),
	        .flags = MAP_FIXED_IOVA | MAP_WRITEABLE | MAP_READABLE,
	        .ioas_id = raw->ioas,
	        .user_va = (uintptr_t)host,
	        .length = bytes,
	        .iova = iova};

	if (raw->transport == RAW_IOMMUFD)
		must(ioctl(raw->container, IOAS_MAP, &ioas), "IOMMU_IOAS_MAP");
	else
		must(ioctl(raw->container, VFIO_IOMMU_MAP_DMA, &map), "VFIO_IOMMU_MAP_DMA");
}

void raw_unmap(const struct raw *raw, uint64_t iova, uint64_t bytes)
{
	struct vfio_iommu_type1_dma_unmap unmap = {.argsz = sizeof(unmap), .iova = iova, .size = bytes};
	struct ioas_unmap ioas = {.size = sizeof(ioas), .ioas_id = raw->ioas, .iova = iova, .length = bytes};

	if (raw->transport == RAW_IOMMUFD) {
		must(ioctl(raw->container, IOAS_UNMAP, &ioas), "IOMMU_IOAS_UNMAP");
		raw_check(ioas.length == bytes, "exactly the mapping was unmapped");
	} else {
		must(ioctl(raw->container, VFIO_IOMMU_UNMAP_DMA, &unmap), "VFIO_IOMMU_UNMAP_DMA");
		raw_check(unmap.size == bytes, "exactly the mapping was unmapped");
	}
}

bool raw_unmap_any(const struct raw *raw, uint32_t ioas, uint64_t iova, uint64_t bytes)
{
	while (ioas--) {
		struct ioas_unmap unmap = {
		        .size = sizeof(unmap), .ioas_id = ioas, .iova = iova, .length = bytes};

		if (!ioctl(raw->container, IOAS_UNMAP, &unmap))
			return true;
	}
	return false;
}

static struct vfio_region_info region(const struct raw *raw, unsigned index)
{
	struct vfio_region_info info = {.argsz = sizeof(info), .index = index};

	must(ioctl(raw->device, VFIO_DEVICE_GET_REGION_INFO, &info), "VFIO_DEVICE_GET_REGION_INFO");
	return info;
}

uint64_t raw_region_bytes(const struct raw *raw, unsigned index)
{
	return region(raw, index).size;
}

void *raw_region_map(const struct raw *raw, unsigned index, uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, raw->device,
	        (off_t)region(raw, index).offset);

	if (at == MAP_FAILED)
		end("mapping a region");
	return at;
}

uint64_t raw_read(const struct raw *raw, unsigned index, uint64_t offset, unsigned bytes)
{
	uint64_t value = 0;

	if (pread(raw->device, &value, bytes, (off_t)(region(raw, index).offset + offset)) != (ssize_t)bytes)
		end("reading a region");
	return value;
}

void raw_write(const struct raw *raw, unsigned index, uint64_t offset, unsigned bytes, uint64_t value)
{
	if (pwrite(raw->device, &value, bytes, (off_t)(region(raw, index).offset + offset)) != (ssize_t)bytes)
		end("writing a region");
}

void raw_enable(const struct raw *raw)
{
	uint64_t command = raw_read(raw, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, 2);

	raw_write(raw, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, 2,
	        command | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

unsigned raw_vectors(const struct raw *raw)
{
	struct vfio_irq_info info = {.argsz = sizeof(info), .index = VFIO_PCI_MSIX_IRQ_INDEX};

	must(ioctl(raw->device, VFIO_DEVICE_GET_IRQ_INFO, &info), "VFIO_DEVICE_GET_IRQ_INFO");
	return info.count;
}

int raw_vector_event(const struct raw *raw, unsigned vector)
{
	_Alignas(struct vfio_irq_set) char room[sizeof(struct vfio_irq_set) + sizeof(int)];
	struct vfio_irq_set set = {.argsz = sizeof(room),
	        .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
	        .index = VFIO_PCI_MSIX_IRQ_INDEX,
	        .start = vector,
	        .count = 1};
	int event = must(eventfd(0, EFD_CLOEXEC), "eventfd");

	memcpy(room, &set, sizeof(set));
	memcpy(room + sizeof(set), &event, sizeof(event));
	must(ioctl(raw->device, VFIO_DEVICE_SET_IRQS, room), "VFIO_DEVICE_SET_IRQS");
	return event;
}

void raw_reset(const struct raw *raw)
{
	must(ioctl(raw->device, VFIO_DEVICE_RESET), "VFIO_DEVICE_RESET");
}

void raw_signal(const struct raw *raw, unsigned index)
{
	struct vfio_irq_set set = {.argsz = sizeof(set),
	        .flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER,
	        .index = index,
	        .count = 1};

	must(ioctl(raw->device, VFIO_DEVICE_SET_IRQS, &set), "VFIO_DEVICE_SET_IRQS");
}
