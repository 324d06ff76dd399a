/* SPDX-License-Identifier: MIT */
/* The timeline word: where the device finds it and the other devices' words. */
#include <errno.h>

#include "device.h"

#define ARRAY_BYTES ((uint64_t)RIG_WORD_COUNT * sizeof(rig_atomic_u64))

/* Whether the word lies in the process's array, and where. */
static bool in_array(const rig_atomic_u64 *word, uint64_t *offset)
{
	const rig_atomic_u64 *words = rig_words();

	if (!words || word < words || word >= words + RIG_WORD_COUNT)
		return false;
	*offset = (uint64_t)((const uint8_t *)word - (const uint8_t *)words);
	return true;
}

/* The page of the word, for the device to write: nothing more of the array is writable. */
static int map_own_page(struct rig_dev *dev)
{
	uint64_t offset, in_page = (uintptr_t)dev->word % RIG_PAGE;
	uint8_t *page = (uint8_t *)dev->word - in_page;
	int err;

	if (in_array(dev->word, &offset))
		err = rig_dma_map_fd(dev->pci, rig_words_fd(), offset - in_page, RIG_PAGE, page,
		        RIG_DMA_READ | RIG_DMA_WRITE, &dev->own_page);
	else
		err = rig_dma_map_host(
		        dev->pci, page, RIG_PAGE, RIG_DMA_READ | RIG_DMA_WRITE, &dev->own_page);
	if (err)
		return rig_error_set(err, "mapping the timeline word's page: %s", rig_error());
	dev->release_address = dev->facts.system_address + dev->own_page.iova + in_page;
	return 0;
}

int rig_dev_word_init(struct rig_dev *dev, rig_atomic_u64 *word)
{
	int err;

	dev->word = word;
	dev->word_region.host = (uint8_t *)word;
	dev->word_region.bytes = sizeof(*word);
	if (!rig_words())
		return -ENOMEM;
	if (rig_dev_is_serial(dev))
		return 0; /* its worker waits on the host */
	if (rig_words_fd() < 0)
		return rig_error_set(-ENOTSUP,
		        "this child of fork got no descriptor for timeline words that a device reaches");
	err = rig_dma_map_fd(
	        dev->pci, rig_words_fd(), 0, ARRAY_BYTES, rig_words(), RIG_DMA_READ, &dev->words);
	/* In pieces of physical memory that no IOMMU joins: the host waits for other devices then. */
	if (err == -ENOSPC && rig_pci_info(dev->pci)->physical) {
		rig_logf(&dev->options.log, RIG_LOG_INFO,
		        "no IOMMU: this device cannot see other devices' words; the host waits for it");
		err = 0;
	}
	if (err)
		return rig_error_set(err, "mapping the array of timeline words: %s", rig_error());
	return dev->options.store ? map_own_page(dev) : 0;
}

bool rig_dev_sees_words(const struct rig_dev *dev)
{
	return rig_dev_is_serial(dev) || dev->words.handle;
}

void rig_dev_word_fini(struct rig_dev *dev)
{
	if (dev->own_page.handle)
		rig_dma_unmap(dev->pci, &dev->own_page);
	if (dev->words.handle)
		rig_dma_unmap(dev->pci, &dev->words);
}

uint64_t rig_dev_word_address(const struct rig_dev *dev, const rig_atomic_u64 *word)
{
	uint64_t offset;

	if (rig_dev_is_serial(dev))
		return (uintptr_t)word;
	offset = (uint64_t)((const uint8_t *)word - (const uint8_t *)dev->words.host);
	return dev->facts.system_address + dev->words.iova + offset;
}
