/* SPDX-License-Identifier: MIT */
/* The configuration space: a standard type 0 header and the capabilities of an endpoint. */
#include <errno.h>
#include <string.h>

#include "vfu_priv.h"

#define CAP_FIRST     0x40u
#define CAP_ALIGN     4u
#define CAP_LEN_MAX   128u
#define CONFIG_LEGACY 256u /* capabilities are linked by 8-bit offsets */

#define PM_SIZE      8u
#define EXPRESS_SIZE 60u
#define MSI_SIZE     14u
#define MSIX_SIZE    12u

#define EXPRESS_VERSION   2u
#define EXPRESS_SPEED     3u /* 8 GT/s */
#define EXPRESS_WIDTH     4u
#define EXPRESS_WIDTH_BIT 4u /* in the link registers */

static void put(uint8_t *at, unsigned size, uint32_t value)
{
	for (unsigned i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get(const uint8_t *at, unsigned size)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint32_t)at[i] << (8 * i);
	return value;
}

static bool valid(uint32_t off, unsigned size)
{
	return (size == 1 || size == 2 || size == 4) && off < VFU_CONFIG_SIZE && off % size == 0;
}

uint32_t vfu_cfg_read(const struct vfu_device *dev, uint32_t off, unsigned size)
{
	return valid(off, size) ? get(dev->cfg + off, size) : UINT32_MAX;
}

void vfu_cfg_set(struct vfu_device *dev, uint32_t off, unsigned size, uint32_t value)
{
	if (!valid(off, size))
		return;
	put(dev->cfg + off, size, value);
	if (!dev->sealed)
		put(dev->cfg_first + off, size, value);
}

uint32_t vfu_cfg_cap(const struct vfu_device *dev, uint8_t id)
{
	uint32_t at = dev->cfg[PCI_CAPABILITY_LIST], left = CONFIG_LEGACY / PCI_CAP_SIZEOF;

	/* Bounded, because a function that reads as all ones has a list that loops. */
	for (; at && left; left--) {
		if (dev->cfg[at] == id)
			return at;
		at = dev->cfg[at + PCI_CAP_LIST_NEXT];
	}
	return 0;
}

bool vfu_bus_master(const struct vfu_device *dev)
{
	return get(dev->cfg + PCI_COMMAND, 2) & PCI_COMMAND_MASTER;
}

int vfu_cfg_add_cap(struct vfu_device *dev, const uint8_t *bytes, const uint8_t *writable, size_t len)
{
	uint32_t at = dev->cap_end;

	if (dev->sealed)
		return -EBUSY;
	if (len < PCI_CAP_SIZEOF / 2 || len > CAP_LEN_MAX || at + len > CONFIG_LEGACY)
		return -ENOSPC;
	memcpy(dev->cfg + at, bytes, len);
	if (writable)
		memcpy(dev->cfg_mask + at, writable, len);
	memset(dev->cfg_mask + at, 0, PCI_CAP_LIST_NEXT + 1);
	dev->cfg[at + PCI_CAP_LIST_NEXT] = 0;
	dev->cfg[dev->cap_last] = (uint8_t)at;
	dev->cap_last = at + PCI_CAP_LIST_NEXT;
	dev->cap_end = (at + (uint32_t)len + CAP_ALIGN - 1) & ~(CAP_ALIGN - 1);
	memcpy(dev->cfg_first, dev->cfg, sizeof(dev->cfg));
	return (int)at;
}

static int add_cap(
        struct vfu_device *dev, uint32_t *at, const uint8_t *bytes, const uint8_t *writable, size_t len)
{
	int rc = vfu_cfg_add_cap(dev, bytes, writable, len);

	if (rc < 0)
		return rc;
	*at = (uint32_t)rc;
	return 0;
}

/* PCI Power Management 1.2: D0 and D3hot; what is in the registers survives the way back (No_Soft_Reset). */
static int add_pm(struct vfu_device *dev)
{
	uint8_t bytes[PM_SIZE] = {PCI_CAP_ID_PM}, writable[PM_SIZE] = {0};

	put(bytes + PCI_PM_PMC, 2, 3);
	put(bytes + PCI_PM_CTRL, 2, PCI_PM_CTRL_NO_SOFT_RESET);
	put(writable + PCI_PM_CTRL, 2, PCI_PM_CTRL_STATE_MASK);
	return add_cap(dev, &dev->cap_pm, bytes, writable, sizeof(bytes));
}

static int add_express(struct vfu_device *dev)
{
	uint8_t bytes[EXPRESS_SIZE] = {PCI_CAP_ID_EXP}, writable[EXPRESS_SIZE] = {0};
	uint32_t link = EXPRESS_SPEED | EXPRESS_WIDTH << EXPRESS_WIDTH_BIT;

	put(bytes + PCI_EXP_FLAGS, 2, EXPRESS_VERSION | PCI_EXP_TYPE_ENDPOINT << 4);
	put(bytes + PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER);
	put(bytes + PCI_EXP_DEVCTL, 2,
	        PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B);
	put(writable + PCI_EXP_DEVCTL, 2, 0xffff);
	put(bytes + PCI_EXP_LNKCAP, 4, link);
	put(writable + PCI_EXP_LNKCTL, 2, PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC);
	put(bytes + PCI_EXP_LNKSTA, 2, link);
	put(bytes + PCI_EXP_LNKCAP2, 4,
	        PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB | PCI_EXP_LNKCAP2_SLS_8_0GB);
	put(bytes + PCI_EXP_LNKCTL2, 2, EXPRESS_SPEED);
	return add_cap(dev, &dev->cap_express, bytes, writable, sizeof(bytes));
}

static int add_msi(struct vfu_device *dev)
{
	uint8_t bytes[MSI_SIZE] = {PCI_CAP_ID_MSI}, writable[MSI_SIZE] = {0};
	unsigned log = 0;

	while (1u << log < dev->config.msi_vectors)
		log++;
	put(bytes + PCI_MSI_FLAGS, 2, PCI_MSI_FLAGS_64BIT | log << 1);
	put(writable + PCI_MSI_FLAGS, 2, PCI_MSI_FLAGS_ENABLE | PCI_MSI_FLAGS_QSIZE);
	put(writable + PCI_MSI_ADDRESS_LO, 4, 0xfffffffc);
	put(writable + PCI_MSI_ADDRESS_HI, 4, UINT32_MAX);
	put(writable + PCI_MSI_DATA_64, 2, 0xffff);
	return add_cap(dev, &dev->cap_msi, bytes, writable, sizeof(bytes));
}

static int add_msix(struct vfu_device *dev)
{
	const struct vfu_msix *msix = &dev->config.msix;
	uint8_t bytes[MSIX_SIZE] = {PCI_CAP_ID_MSIX}, writable[MSIX_SIZE] = {0};

	put(bytes + PCI_MSIX_FLAGS, 2, msix->vectors - 1);
	put(writable + PCI_MSIX_FLAGS, 2, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	put(bytes + PCI_MSIX_TABLE, 4, msix->table_offset | msix->bar);
	put(bytes + PCI_MSIX_PBA, 4, msix->pba_offset | msix->bar);
	return add_cap(dev, &dev->cap_msix, bytes, writable, sizeof(bytes));
}

/* A BAR's address bits that are writable say its size: software writes ones and reads back. */
static void add_bar(struct vfu_device *dev, unsigned which)
{
	const struct vfu_bar *bar = &dev->config.bars[which];
	uint32_t off = PCI_BASE_ADDRESS_0 + 4 * which;
	uint64_t mask = ~(bar->size - 1);
	uint32_t flags = PCI_BASE_ADDRESS_SPACE_MEMORY;

	if (!bar->size)
		return;
	flags |= bar->mem64 ? PCI_BASE_ADDRESS_MEM_TYPE_64 : PCI_BASE_ADDRESS_MEM_TYPE_32;
	flags |= bar->prefetch ? PCI_BASE_ADDRESS_MEM_PREFETCH : 0;
	put(dev->cfg + off, 4, flags);
	put(dev->cfg_mask + off, 4, (uint32_t)mask);
	if (bar->mem64)
		put(dev->cfg_mask + off + 4, 4, (uint32_t)(mask >> 32));
}

static void add_header(struct vfu_device *dev)
{
	const struct vfu_config *c = &dev->config;

	put(dev->cfg + PCI_VENDOR_ID, 2, c->vendor);
	put(dev->cfg + PCI_DEVICE_ID, 2, c->device);
	put(dev->cfg_mask + PCI_COMMAND, 2,
	        PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
	                PCI_COMMAND_INTX_DISABLE);
	put(dev->cfg + PCI_STATUS, 2, PCI_STATUS_CAP_LIST);
	put(dev->cfg + PCI_REVISION_ID, 4, c->class_code << 8 | c->revision);
	put(dev->cfg_mask + PCI_CACHE_LINE_SIZE, 1, 0xff);
	put(dev->cfg + PCI_SUBSYSTEM_VENDOR_ID, 2, c->subsystem_vendor ? c->subsystem_vendor : c->vendor);
	put(dev->cfg + PCI_SUBSYSTEM_ID, 2, c->subsystem ? c->subsystem : c->device);
	put(dev->cfg_mask + PCI_INTERRUPT_LINE, 1, 0xff);
	put(dev->cfg + PCI_INTERRUPT_PIN, 1, c->intx);
	for (unsigned i = 0; i < VFU_BAR_COUNT; i++)
		add_bar(dev, i);
}

int vfu_cfg_init(struct vfu_device *dev)
{
	int rc;

	dev->cap_last = PCI_CAPABILITY_LIST;
	dev->cap_end = CAP_FIRST;
	add_header(dev);
	rc = add_pm(dev);
	if (!rc)
		rc = add_express(dev);
	if (!rc && dev->config.msi_vectors)
		rc = add_msi(dev);
	if (!rc && dev->config.msix.vectors)
		rc = add_msix(dev);
	return rc;
}

void vfu_cfg_reset(struct vfu_device *dev)
{
	memcpy(dev->cfg, dev->cfg_first, sizeof(dev->cfg));
}

int vfu_cfg_client_read(struct vfu_device *dev, uint64_t off, uint8_t *buf, size_t len)
{
	if (off > VFU_CONFIG_SIZE || len > VFU_CONFIG_SIZE - off)
		return -EINVAL;
	memcpy(buf, dev->cfg + off, len);
	return 0;
}

static void store(struct vfu_device *dev, uint32_t off, const uint8_t *buf, size_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		uint8_t mask = dev->cfg_mask[off + i];

		dev->cfg[off + i] = (uint8_t)((dev->cfg[off + i] & ~mask) | (buf[i] & mask));
	}
}

/* D1 and D2 are not there: a write of them changes nothing (PCI PM 1.2, 3.2.4). */
static void settle_power(struct vfu_device *dev, uint8_t before)
{
	uint8_t *state = dev->cfg + dev->cap_pm + PCI_PM_CTRL;
	unsigned wanted = *state & PCI_PM_CTRL_STATE_MASK;

	if (wanted == 1 || wanted == 2)
		*state = (uint8_t)((*state & ~PCI_PM_CTRL_STATE_MASK) | (before & PCI_PM_CTRL_STATE_MASK));
}

/* Initiate Function Level Reset reads as 0 and resets when 1 is written. */
static void settle_flr(struct vfu_device *dev)
{
	uint8_t *control = dev->cfg + dev->cap_express + PCI_EXP_DEVCTL;

	if (!(get(control, 2) & PCI_EXP_DEVCTL_BCR_FLR))
		return;
	put(control, 2, get(control, 2) & ~(uint32_t)PCI_EXP_DEVCTL_BCR_FLR);
	(void)vfu_do_reset(dev); /* a refusal is logged there, and hardware has no way to say more */
}

/* The bit is in the register's upper byte. */
bool vfu_cfg_is_reset(const struct vfu_device *dev, uint64_t off, const uint8_t *buf, size_t len)
{
	uint64_t at = dev->cap_express + PCI_EXP_DEVCTL + 1;

	return off <= at && at - off < len && (buf[at - off] & PCI_EXP_DEVCTL_BCR_FLR >> 8);
}

int vfu_cfg_client_write(struct vfu_device *dev, uint64_t off, const uint8_t *buf, size_t len)
{
	uint8_t power = dev->cfg[dev->cap_pm + PCI_PM_CTRL];

	if (off > VFU_CONFIG_SIZE || len > VFU_CONFIG_SIZE - off)
		return -EINVAL;
	store(dev, (uint32_t)off, buf, len);
	settle_power(dev, power);
	settle_flr(dev);
	vfu_irqs_update(dev);
	if (dev->config.config_written)
		dev->config.config_written(dev->config.ctx, (uint32_t)off, (uint32_t)len);
	return 0;
}
