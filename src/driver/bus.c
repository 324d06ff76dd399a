/* SPDX-License-Identifier: MIT */
/* How other PCI functions reach board memory: by bus addresses, which are the memory BAR's address plus the
   offset in it, or through dma-bufs; and the memory that stays theirs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bdf.h"
#include "bits.h"
#include "device.h"
#include "peer.h"

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
	return err ? rig_error_set(err, "BAR%u's address: %s", dev->facts.memory_bar, rig_error()) : 0;
}

static int no_dma(struct rig_dma_answer *answer, const char *reason)
{
	answer->kind = RIG_NO_DMA;
	answer->reason = reason;
	return RIG_NO_DMA;
}

/* Reasons live until release: one is kept, that of the first refused dma-buf. */
static const char *explain(struct rig_dev *dev, const char *why)
{
	if (!*dev->no_dmabuf)
		snprintf(dev->no_dmabuf, sizeof(dev->no_dmabuf), "%s", why);
	return dev->no_dmabuf;
}

/* ---- Bus addresses hold until the process exits, whoever has the function open ---- */

struct given {
	struct given *next;
	char bdf[RIG_BDF_TEXT];
	uint64_t address, bytes;
};

/* Only ever added to, so that no lock is needed, which a child of fork could find locked. */
static _Atomic(struct given *) all_given;

/* Addresses of a simulated bus end with the process that simulates it. */
static int remember(const struct rig_dev *dev, const struct rig_bus_range *range)
{
	const char *bdf = rig_pci_info(dev->pci)->bdf;
	struct given *g;

	if (!bdf)
		return 0;
	g = malloc(sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct given){.address = range->address, .bytes = range->bytes};
	snprintf(g->bdf, sizeof(g->bdf), "%s", bdf);
	g->next = atomic_load_explicit(&all_given, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
	        &all_given, &g->next, g, memory_order_release, memory_order_relaxed))
		;
	return 0;
}

/* What of [pa, pa + bytes) lies in the pool is not handed out. */
static int exclude_from(
        struct rig_tlsf *pool, const struct rig_board_pool *facts, uint64_t pa, uint64_t bytes)
{
	uint64_t first = rig_max_u64(pa, facts->pa), end = rig_min_u64(pa + bytes, facts->pa + facts->bytes);

	return first < end ? rig_tlsf_take(pool, first, end - first) : 0;
}

static int exclude(struct rig_dev *dev, uint64_t pa, uint64_t bytes)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < dev->facts.npools && !err; i++)
		if (dev->pools[i])
			err = exclude_from(dev->pools[i], &dev->facts.pools[i], pa, bytes);
	return err ? rig_error_set(err,
	                     "keeping 0x%" PRIx64 " + 0x%" PRIx64
	                     " of board memory, whose bus addresses were given out",
	                     pa, bytes)
	           : 0;
}

int rig_dev_bus_exclude(struct rig_dev *dev)
{
	const char *bdf = rig_pci_info(dev->pci)->bdf;
	uint64_t base = bdf && dev->facts.memory_bar_bytes ? bar_address(dev) : 0;
	const struct given *g = atomic_load_explicit(&all_given, memory_order_acquire);
	int err = 0;

	for (; base && g && !err; g = g->next) {
		/* A function that was removed and found again may lie elsewhere. */
		if (strcmp(g->bdf, bdf) != 0 || g->address < base ||
		        !rig_span_fits(g->address - base, g->bytes, dev->facts.memory_bar_bytes))
			continue;
		err = exclude(dev, g->address - base, g->bytes);
		dev->bus_bytes += g->bytes;
	}
	return err;
}

/* ---- What is freed, and not given back ---- */

static bool is_held(const struct rig_region *region)
{
	return region->bused || (region->has_dmabuf && rig_dmabuf_is_shared(region->dmabuf));
}

static void close_dmabuf(struct rig_region *region)
{
	if (region->has_dmabuf)
		close(region->dmabuf);
	region->has_dmabuf = false;
}

bool rig_dev_keep(struct rig_dev *dev, struct rig_region *region)
{
	if (!is_held(region)) {
		close_dmabuf(region);
		return false;
	}
	/* The array that tells bus addresses lives until release. */
	region->next = dev->kept;
	dev->kept = region;
	dev->dmabuf_bytes += region->bused ? 0 : region->bytes;
	return true;
}

bool rig_dev_reap(struct rig_dev *dev)
{
	struct rig_region **at = &dev->kept, *region;
	bool any = false;

	while ((region = *at)) {
		if (is_held(region)) {
			at = &region->next;
			continue;
		}
		*at = region->next;
		dev->dmabuf_bytes -= region->bytes;
		rig_dev_give(dev, region->pa);
		close_dmabuf(region);
		free(region);
		any = true;
	}
	return any;
}

void rig_dev_drop_kept(struct rig_dev *dev)
{
	struct rig_region *region;

	while ((region = dev->kept)) {
		dev->kept = region->next;
		close_dmabuf(region);
		free(region);
	}
}

/* ---- Answers ---- */

static int answer_bus(struct rig_dev *dev, struct rig_region *region, struct rig_dma_answer *answer)
{
	struct rig_bus_range range = {.address = bar_address(dev), .bytes = region->bytes};

	if (!range.address)
		return no_dma(answer, "the memory BAR has no bus address");
	range.address += region->pa;
	if (!region->bused) {
		if (remember(dev, &range))
			return no_dma(answer, "out of host memory to remember the addresses");
		region->bus = range;
		region->bused = true;
		dev->bus_bytes += range.bytes;
	}
	answer->kind = RIG_BUS;
	answer->ranges = &region->bus;
	answer->nranges = 1;
	return RIG_BUS;
}

/* The driver keeps a reference of its own: by it it learns whether there are others. */
static int answer_dmabuf(struct rig_dev *dev, struct rig_region *region, struct rig_dma_answer *answer)
{
	int fd;

	if (!region->has_dmabuf) {
		int err = rig_pci_export(
		        dev->pci, dev->facts.memory_bar, region->pa, region->bytes, &region->dmabuf);

		if (err)
			return no_dma(answer, explain(dev, rig_error()));
		region->has_dmabuf = true;
	}
	fd = fcntl(region->dmabuf, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return no_dma(answer, "out of descriptors");
	answer->kind = RIG_DMABUF;
	answer->fd = fd;
	answer->offset = 0;
	return RIG_DMABUF;
}

int rig_dev_dma(void *device, void *at, struct rig_dma_answer *answer, const char **fault)
{
	struct rig_dev *dev = device;
	struct rig_region *region = at;
	int kind;

	answer->fd = -1;
	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	if (region->peer)
		return no_dma(answer, "the memory is another device's: ask that one");
	if (region->kind != RIG_DEVICE && region->kind != RIG_MAPPED)
		return no_dma(answer,
		        "the memory is the host's: another function reaches it through a mapping of its own");
	if (!dev->facts.memory_bar_bytes)
		return no_dma(answer, "the board's memory is in no BAR");
	if (region->pa + region->bytes > dev->facts.memory_bar_bytes)
		return no_dma(answer, "the memory lies outside the aperture: allocate RIG_MAPPED memory");
	pthread_mutex_lock(&dev->lock);
	kind = dev->options.dmabuf ? answer_dmabuf(dev, region, answer) : answer_bus(dev, region, answer);
	pthread_mutex_unlock(&dev->lock);
	return kind;
}
