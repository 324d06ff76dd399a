/* SPDX-License-Identifier: MIT */
/* Board memory of another device of this driver, as work of this one reaches it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "device.h"
#include "peer.h"

bool rig_dev_peer(void *device, void *other)
{
	const struct rig_dev *dev = device, *lender = other;

	if (dev == lender)
		return false;
	if (!lender->facts.memory_bar_bytes) {
		(void)rig_error_set(0, "the board's memory is in no BAR");
		return false;
	}
	return !rig_pci_reaches(dev->pci, lender->pci, lender->facts.memory_bar);
}

static int never(const char *why)
{
	return rig_error_set(RIG_NEVER_MAPS, "%s", why);
}

/* What another device can map of the region: board memory of the lender's own, inside its aperture. NULL, or
   why it is not. */
static const char *no_loan(const struct rig_dev *lender, const struct rig_region *region)
{
	if (region->peer)
		return "the memory is another device's already: borrow it of that one";
	if (region->kind != RIG_DEVICE && region->kind != RIG_MAPPED)
		return "the memory is the host's";
	if (!lender->facts.memory_bar_bytes)
		return "the board's memory is in no BAR";
	if (region->pa + region->bytes > lender->facts.memory_bar_bytes)
		return "the memory lies outside the aperture: allocate RIG_MAPPED memory";
	return NULL;
}

static int map(
        struct rig_dev *dev, struct rig_dev *lender, const struct rig_region *loan, struct rig_region *region)
{
	int err = rig_pci_map_peer(dev->pci, lender->pci, lender->facts.memory_bar, loan->pa, loan->bytes,
	        RIG_DMA_READ | RIG_DMA_WRITE, &region->dma);

	if (err)
		return err;
	err = rig_dev_map_system(dev, region->dma.iova, region->bytes);
	if (err)
		rig_dma_unmap(dev->pci, &region->dma);
	return err;
}

static int refuse(struct rig_dev *dev, const struct rig_dev *lender, int err, const char **fault)
{
	const char *why;

	if (err == -ENOMEM || err == -ENOSPC || err == -EEXIST)
		return RIG_NO_ROOM;
	if (rig_pci_gone(dev->pci, NULL)) {
		rig_dev_set_fault(dev, "mapping another device's memory failed: %s", rig_error());
		return rig_dev_fault(dev, fault);
	}
	if (rig_pci_gone(lender->pci, &why))
		return rig_error_set(RIG_NEVER_MAPS, "the other device is gone: %s", why);
	return RIG_NEVER_MAPS;
}

int rig_dev_map_peer(void *device, void *other, void *at, void **out, const char **fault)
{
	struct rig_dev *dev = device, *lender = other;
	const struct rig_region *loan = at;
	const char *why = no_loan(lender, loan);
	struct rig_region *region;
	int err;

	if (why)
		return never(why);
	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	region = calloc(1, sizeof(*region));
	if (!region)
		return rig_error_set(RIG_NO_ROOM, "out of host memory");
	region->kind = RIG_DEVICE;
	region->peer = true;
	region->bytes = loan->bytes;
	pthread_mutex_lock(&dev->lock);
	err = map(dev, lender, loan, region);
	pthread_mutex_unlock(&dev->lock);
	if (!err) {
		region->address = dev->facts.system_va + region->dma.iova;
		*out = region;
		return RIG_MAPS;
	}
	free(region);
	return refuse(dev, lender, err, fault);
}
