/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "bits.h"
#include "error.h"
#include "le.h"
#include "pci_private.h"

static int check(const struct rig_pci *f, unsigned off, unsigned width)
{
	uint64_t end = rig_min_u64(f->region[RIG_VFIO_CONFIG].info.bytes, RIG_PCI_CONFIG_BYTES);

	if (width > 4 || !rig_is_pow2(width) || !rig_is_aligned(off, width) ||
	        !rig_span_fits(off, width, end))
		return rig_vfio_fail(EINVAL, NULL, "configuration space: %u bytes at %#x of %#x", width, off,
		        (unsigned)end);
	return 0;
}

int rig_pci_config_read(struct rig_pci *f, unsigned off, unsigned width, uint32_t *value)
{
	unsigned char bytes[4] = {0};
	int err = check(f, off, width);

	*value = UINT32_MAX;
	if (err)
		return err;
	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	err = rig_gone_settle(&f->gone, f->ops->read(f->transport, RIG_VFIO_CONFIG, off, bytes, width));
	if (!err)
		*value = rig_get_le32(bytes);
	return err;
}

int rig_pci_config_write(struct rig_pci *f, unsigned off, unsigned width, uint32_t value)
{
	unsigned char bytes[4];
	int err = check(f, off, width);

	if (err)
		return err;
	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	rig_put_le32(bytes, value);
	return rig_gone_settle(&f->gone, f->ops->write(f->transport, RIG_VFIO_CONFIG, off, bytes, width));
}

int rig_config_command(struct rig_pci *f, uint32_t set, uint32_t clear, uint32_t *was)
{
	uint32_t now = 0;
	int err;

	pthread_mutex_lock(&f->config_lock);
	err = rig_pci_config_read(f, RIG_PCI_COMMAND, 2, &now);
	if (!err && ((now | set) & ~clear) != now)
		err = rig_pci_config_write(f, RIG_PCI_COMMAND, 2, (now | set) & ~clear);
	pthread_mutex_unlock(&f->config_lock);
	if (was)
		*was = now;
	return err;
}

/* Capability lists: PCI Local Bus Specification 3.0, 6.7; PCI Express Base Specification 5.0, 7.6.3. */
#define CAPABILITIES          0x34u
#define STATUS                0x06u
#define STATUS_CAPABILITIES   0x10u
#define CAPABILITY_LEAST      0x40u
#define EXTENDED_CAPABILITIES 0x100u

unsigned rig_pci_capability(struct rig_pci *f, uint8_t id, unsigned after)
{
	uint32_t status = 0, at = CAPABILITIES, head;
	bool passed = !after;

	if (rig_pci_config_read(f, STATUS, 2, &status) || !(status & STATUS_CAPABILITIES) ||
	        rig_pci_config_read(f, CAPABILITIES, 1, &at))
		return 0;
	for (unsigned steps = RIG_PCI_COMMON_CONFIG_BYTES / 4; steps && (at &= ~3u) >= CAPABILITY_LEAST;
	        steps--) {
		if (rig_pci_config_read(f, at, 2, &head))
			return 0;
		if (passed && (head & 0xffu) == id)
			return at;
		passed = passed || at == after;
		at = head >> 8;
	}
	return 0;
}

unsigned rig_pci_extended_capability(struct rig_pci *f, uint16_t id, unsigned after)
{
	uint32_t at = EXTENDED_CAPABILITIES, head;
	bool passed = !after;

	for (unsigned steps = RIG_PCI_CONFIG_BYTES / 4; steps && at >= EXTENDED_CAPABILITIES; steps--) {
		if (at + 4 > f->region[RIG_VFIO_CONFIG].info.bytes || rig_pci_config_read(f, at, 4, &head) ||
		        head == UINT32_MAX)
			return 0;
		if (passed && (head & 0xffffu) == id)
			return at;
		passed = passed || at == after;
		at = head >> 20 & ~3u;
	}
	return 0;
}

int rig_pci_bus_master(struct rig_pci *f, bool on)
{
	return rig_config_command(f, on ? RIG_PCI_COMMAND_MASTER : 0, on ? 0 : RIG_PCI_COMMAND_MASTER, NULL);
}

int rig_pci_memory_decode(struct rig_pci *f, bool on)
{
	return rig_config_command(f, on ? RIG_PCI_COMMAND_MEMORY : 0, on ? 0 : RIG_PCI_COMMAND_MEMORY, NULL);
}

/* What a BAR register says of its kind (section 6.2.5.1); its size is the region's. */
static int identify_bar(struct rig_pci *f, unsigned i, bool *wide)
{
	const struct rig_region *r = &f->region[RIG_VFIO_BAR0 + i];
	struct rig_pci_bar *bar = &f->info.bar[i];
	uint32_t v;
	int err = rig_pci_config_read(f, RIG_PCI_BAR0 + i * 4, 4, &v);

	bar->bytes = r->info.bytes;
	bar->readable = r->info.readable;
	bar->writable = r->info.writable;
	bar->mappable = r->mapped > 0;
	bar->wide = !err && !(v & RIG_PCI_BAR_IO) && (v & RIG_PCI_BAR_TYPE) == RIG_PCI_BAR_WIDE;
	bar->prefetchable = !err && !(v & RIG_PCI_BAR_IO) && (v & RIG_PCI_BAR_PREFETCHABLE);
	*wide = bar->wide;
	return err;
}

static int identify_bars(struct rig_pci *f)
{
	int err = 0;

	for (unsigned i = 0; i < RIG_PCI_BARS && !err; i++) {
		bool wide;

		err = identify_bar(f, i, &wide);
		i += wide; /* the next register is its upper half */
	}
	return err;
}

int rig_config_identify(struct rig_pci *f)
{
	struct rig_pci_info *info = &f->info;
	uint32_t id, class, sub;
	int err = rig_pci_config_read(f, RIG_PCI_VENDOR_ID, 4, &id);

	if (err)
		return err;
	if ((id & 0xffffu) == RIG_PCI_NO_VENDOR)
		return rig_vfio_fail(
		        ENODEV, "is it powered, and its link up?", "configuration space reads all ones");
	err = rig_pci_config_read(f, RIG_PCI_REVISION, 4, &class);
	if (!err)
		err = rig_pci_config_read(f, RIG_PCI_SUBSYSTEM_VENDOR, 4, &sub);
	if (err)
		return err;
	info->vendor = (uint16_t)id;
	info->device = (uint16_t)(id >> 16);
	info->revision = (uint8_t) class;
	info->class_code = class >> 8;
	info->subsystem_vendor = (uint16_t)sub;
	info->subsystem = (uint16_t)(sub >> 16);
	return identify_bars(f);
}

int rig_pci_check(struct rig_pci *f)
{
	char why[RIG_GONE_BYTES];
	uint32_t id;
	int err = rig_pci_config_read(f, RIG_PCI_VENDOR_ID, 2, &id);

	if (!err && id == f->info.vendor)
		return 0;
	if (err)
		rig_pci_lose(f, "its configuration space does not answer");
	if (!err) {
		(void)snprintf(why, sizeof(why), "%sits vendor id reads %#06x, it was %#06x",
		        id == UINT16_MAX ? "it answers all ones: " : "", id, f->info.vendor);
		rig_pci_lose(f, why);
	}
	return rig_gone_fail(&f->gone);
}
