/* SPDX-License-Identifier: MIT */
/* Bus addresses of board memory: the memory BAR's address plus the offset in it. */
#include <errno.h>
#include <inttypes.h>

#include "device.h"

#define CONFIG_BAR0 0x10u
#define BAR_ADDRESS (~0xFu)
/* Where functions without a bus of their own are said to lie: above any machine's memory. */
#define SIMULATED_BUS 0x380000000000ull

static uint64_t bar_address(struct rig_dev *dev)
{
	unsigned at = CONFIG_BAR0 + 4 * dev->facts.memory_bar;
	uint32_t low, high = 0;

	/* What the system says is right: the BAR's register may hold what the kernel shows a guest, or
	   nothing. */
	if (rig_pci_info(dev->pci)->bar[dev->facts.memory_bar].bus)
		return rig_pci_info(dev->pci)->bar[dev->facts.memory_bar].bus;
	if (rig_pci_config_read(dev->pci, at, 4, &low))
		return 0;
	if (rig_pci_info(dev->pci)->bar[dev->facts.memory_bar].wide &&
	        rig_pci_config_read(dev->pci, at + 4, 4, &high))
		return 0;
	return (uint64_t)high << 32 | (low & BAR_ADDRESS);
}

/* A device process has no bus, and so nobody gave its BARs addresses: this does, so that the answers of dma
   are those of a bus, though a simulated one. Reset cleared what was there. */
int rig_dev_bus_init(struct rig_dev *dev)
{
	unsigned at = CONFIG_BAR0 + 4 * dev->facts.memory_bar;
	int err;

	if (rig_pci_info(dev->pci)->bdf)
		return 0;
	dev->record.simulated_bus = true;
	if (!dev->facts.memory_bar_bytes)
		return 0;
	err = rig_pci_config_write(dev->pci, at, 4, (uint32_t)SIMULATED_BUS);
	if (!err)
		err = rig_pci_config_write(dev->pci, at + 4, 4, (uint32_t)(SIMULATED_BUS >> 32));
	return err ? rig_error_set(err, "BAR%u's address: %s", dev->facts.memory_bar, rig_pci_error()) : 0;
}

static int no_dma(struct rig_dma_answer *answer, const char *reason)
{
	answer->kind = RIG_NO_DMA;
	answer->reason = reason;
	return RIG_NO_DMA;
}

int rig_dev_dma(void *device, void *at, struct rig_dma_answer *answer, const char **fault)
{
	struct rig_dev *dev = device;
	struct rig_region *region = at;
	uint64_t base;

	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	if (region->kind != RIG_DEVICE && region->kind != RIG_MAPPED)
		return no_dma(answer,
		        "the memory is the host's: another function reaches it through a mapping of its own");
	if (!dev->facts.memory_bar_bytes)
		return no_dma(answer, "the board's memory is in no BAR");
	if (region->pa + region->bytes > dev->facts.memory_bar_bytes)
		return no_dma(answer, "the memory lies outside the aperture: allocate RIG_MAPPED memory");
	base = bar_address(dev);
	if (!base)
		return no_dma(answer, "the memory BAR has no bus address");
	region->exported = true;
	region->bus = (struct rig_bus_range){.address = base + region->pa, .bytes = region->bytes};
	answer->kind = RIG_BUS;
	answer->ranges = &region->bus;
	answer->nranges = 1;
	return RIG_BUS;
}
