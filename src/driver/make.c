/* SPDX-License-Identifier: MIT */
/* Making a device: boot, memory, address space, queues, poller; and the two tables of the contract. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cond.h"
#include "device.h"

const struct rig_key rig_vfio_key = {.name = "rig-vfio"};

static const struct rig_driver hot = {
        .version = RIG_EDGE_VERSION,
        .room = rig_dev_room,
        .submit = rig_dev_submit,
        .commit = rig_dev_commit,
};

/* On a board with a clock. */
static const struct rig_driver hot_timed = {
        .version = RIG_EDGE_VERSION,
        .room = rig_dev_room,
        .submit = rig_dev_submit,
        .commit = rig_dev_commit,
        .settle = rig_dev_settle,
        .measures = rig_dev_measures,
};

static int facts(void *device, struct rig_facts *facts, const char **fault)
{
	struct rig_dev *dev = device;
	uint32_t i;

	if (facts->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL, "facts of contract version %u: this driver is of version %u",
		        facts->version, RIG_EDGE_VERSION);
	if (rig_dev_check_fault(dev))
		return rig_dev_fault(dev, fault);
	memset(facts, 0, sizeof(*facts));
	facts->version = RIG_EDGE_VERSION;
	facts->arch = dev->board->arch;
	for (i = 0; i < dev->facts.npools; i++)
		facts->budget += dev->facts.pools[i].boot ? 0 : dev->facts.pools[i].bytes;
	facts->queues = dev->facts.queues;
	facts->nqueues = dev->facts.nqueues;
	facts->has_copy_engine = dev->facts.has_copy_engine;
	facts->copy_engine = dev->facts.copy_engine;
	facts->completion = dev->options.store ? RIG_STORE : RIG_HOST;
	facts->waits =
	        (struct rig_waits){.stores = rig_dev_sees_words(dev), .hosts = rig_dev_sees_words(dev)};
	facts->may_block = dev->facts.may_block;
	facts->has_hang_ms = true;
	facts->hang_ms = dev->options.hang_ms ? dev->options.hang_ms : dev->facts.hang_ms;
	facts->maps_host = true;
	facts->alignment = RIG_PAGE;
	facts->counters = dev->facts.counters;
	facts->ncounters = dev->facts.ncounters;
	facts->capability = (struct rig_capability){.key = &rig_vfio_key, .record = &dev->record};
	facts->word = &dev->word_region;
	facts->bus = rig_pci_info(dev->pci)->bdf;
	facts->edge = dev;
	return 0;
}

static int signaled(void *device, uint64_t *value, const char **fault)
{
	struct rig_dev *dev = device;

	(void)fault;
	*value = rig_word_load(dev->word);
	return 0;
}

/* Gives everything back, in reverse order of making; a part that was not made is none. */
static void release(void *device)
{
	struct rig_dev *dev = device;
	rig_dev_progress_close(dev);
	rig_dev_times_close(dev);
	rig_dev_queues_close(dev);
	rig_dev_word_fini(dev);
	rig_dev_space_close(dev);
	rig_dev_pools_close(dev);
	rig_pci_close(dev->pci);
	pthread_cond_destroy(&dev->progress.moved);
	pthread_mutex_destroy(&dev->times.lock);
	pthread_mutex_destroy(&dev->progress.lock);
	pthread_mutex_destroy(&dev->images_lock);
	pthread_mutex_destroy(&dev->lock);
	free(dev->port.state);
	free(dev->firmware_dir);
	free(dev);
}

const struct rig_driver_module rig_driver_module = {
        .version = RIG_EDGE_VERSION,
        .key = &rig_vfio_key,
        .facts = facts,
        .alloc = rig_dev_alloc,
        .free = rig_dev_free,
        .locate = rig_dev_locate,
        .peer = rig_dev_peer,
        .map_peer = rig_dev_map_peer,
        .map_host = rig_dev_map_host,
        .dma = rig_dev_dma,
        .load = rig_dev_load,
        .entry = rig_dev_entry,
        .unload = rig_dev_unload,
        .grow = rig_dev_grow,
        .signaled = signaled,
        .sleep = rig_dev_sleep,
        .stop = rig_dev_stop,
        .release = release,
};

static void stats(const struct rig_vfio_record *record, struct rig_vfio_stats *stats)
{
	struct rig_dev *dev =
	        (struct rig_dev *)((uint8_t *)(uintptr_t)record - offsetof(struct rig_dev, record));
	struct rig_mmu_stats tables = {0};
	struct rig_pci_stats pci;

	rig_pci_stats(dev->pci, &pci);
	pthread_mutex_lock(&dev->lock);
	if (dev->space)
		rig_mmu_stats(dev->space, &tables);
	stats->bus_bytes = dev->bus_bytes;
	stats->dmabuf_bytes = dev->dmabuf_bytes;
	pthread_mutex_unlock(&dev->lock);
	stats->messages = pci.messages;
	stats->served = pci.served;
	stats->dma_maps = pci.maps;
	stats->dma_bytes = pci.mapped_bytes;
	stats->table_bytes = tables.table_bytes;
	stats->memory_free = rig_dev_memory_free(dev);
	stats->times_error_ns = atomic_load_explicit(&dev->times.worst, memory_order_relaxed);
}

static void fill_record(struct rig_dev *dev)
{
	const struct rig_pci_info *info = rig_pci_info(dev->pci);
	struct rig_vfio_record *record = &dev->record;
	uint32_t i;

	record->version = RIG_EDGE_VERSION;
	record->transport = info->transport;
	record->board = dev->board->arch;
	record->firmware = dev->facts.firmware;
	record->host_pages = rig_dma_pages(dev->pci);
	record->vendor = info->vendor;
	record->device = info->device;
	for (i = 0; i < dev->facts.npools; i++)
		record->memory_bytes += dev->facts.pools[i].boot ? 0 : dev->facts.pools[i].bytes;
	record->aperture_bytes = dev->facts.memory_host ? dev->facts.memory_bar_bytes : 0;
	record->stats = stats;
}

/* What a stage says of a function that left while it ran is no more than ones read. */
static int blame(struct rig_dev *dev, const char *stage, int err)
{
	const char *why;

	if (rig_pci_gone(dev->pci, &why))
		return rig_error_set(-ENODEV, "boot stage %s: %s", stage, why);
	return rig_error_set(err, "boot stage %s: %s", stage, rig_error());
}

/* What `rigctl bench --open` times: a step of opening is over. */
static void tell(struct rig_dev *dev, const char *step, const char *name)
{
	rig_logf(&dev->options.log, RIG_LOG_DEBUG, RIG_DRIVER_STEP "%s%s", step, name);
}

static int boot(struct rig_dev *dev)
{
	uint32_t i;
	int err;

	for (i = 0; i < dev->board->nstages; i++) {
		err = dev->board->stages[i].run(&dev->port);
		if (err)
			return blame(dev, dev->board->stages[i].name, err);
		tell(dev, "boot stage ", dev->board->stages[i].name);
	}
	err = dev->board->describe(&dev->port, &dev->facts);
	if (!err)
		err = rig_dev_serial_describe(dev);
	return err ? err : rig_dev_check_facts(&dev->port, dev->board, &dev->facts);
}

/* A function that a killed process left may still run; what it was doing ends here. */
static int reset(struct rig_dev *dev)
{
	int err;

	if (!rig_pci_info(dev->pci)->resets)
		return 0;
	err = rig_pci_reset(dev->pci);
	if (err == -EBUSY) {
		rig_logf(&dev->options.log, RIG_LOG_WARN, "no reset before the boot: %s", rig_error());
		return 0;
	}
	if (err)
		return rig_error_set(err, "reset before the boot: %s", rig_error());
	tell(dev, "reset", "");
	return 0;
}

static int start_dma(struct rig_dev *dev)
{
	int err = rig_pci_set_dma_mask(dev->pci, dev->facts.system_bits);

	if (!err)
		err = rig_pci_bus_master(dev->pci, true);
	if (err)
		return rig_error_set(err, "bus mastering: %s", rig_error());
	tell(dev, "memory BAR and bus mastering", "");
	return 0;
}

/* From a taken function to one that serves submissions. */
static int bring_up(struct rig_dev *dev, rig_atomic_u64 *word)
{
	uint64_t start = rig_word_load(word);
	int err;

	atomic_store(&dev->submitted, start);
	if ((err = reset(dev)) || (err = boot(dev)) || (err = rig_dev_bus_init(dev)) ||
	        (err = start_dma(dev)) || (err = rig_dev_pools_open(dev)) ||
	        (err = rig_dev_word_init(dev, word)) || (err = rig_dev_space_open(dev)) ||
	        (err = dev->board->start_value(&dev->port, start)) || (err = rig_dev_queues_open(dev)) ||
	        (err = rig_dev_times_open(dev)))
		return err;
	if (dev->facts.clock_hz)
		dev->hot = &hot_timed;
	fill_record(dev);
	tell(dev, "pools, words, page tables, queues", "");
	err = rig_dev_progress_open(dev);
	if (!err)
		tell(dev, "interrupts and poller", "");
	return err;
}

static void init_locks(struct rig_dev *dev)
{
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->images_lock, NULL);
	pthread_mutex_init(&dev->progress.lock, NULL);
	pthread_mutex_init(&dev->times.lock, NULL);
	rig_cond_init(&dev->progress.moved);
}

static struct rig_dev *new_dev(
        struct rig_pci *pci, const struct rig_board *board, const struct rig_driver_options *options)
{
	struct rig_dev *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->hot = &hot;
	rig_dev_set_board(dev, board);
	dev->options = *options;
	dev->pci = pci;
	dev->progress.quit_fd = -1;
	for (unsigned i = 0; i < RIG_DEV_VECTORS; i++)
		dev->progress.irq_fd[i] = -1;
	dev->port.function = pci;
	dev->port.log = &dev->options.log;
	dev->port.boot_ms = options->boot_ms ? options->boot_ms : RIG_DRIVER_BOOT_MS;
	dev->port.all_messages = options->all_messages;
	dev->port.state = calloc(1, board->state_bytes);
	if (options->firmware_dir)
		dev->firmware_dir = strdup(options->firmware_dir);
	dev->port.firmware_dir = dev->firmware_dir;
	if (!dev->port.state || (options->firmware_dir && !dev->firmware_dir)) {
		free(dev->firmware_dir);
		free(dev->port.state);
		free(dev);
		return NULL;
	}
	init_locks(dev);
	return dev;
}

int rig_driver_make(struct rig_pci *pci, const struct rig_board *board,
        const struct rig_driver_options *options, rig_atomic_u64 *word, void **out, char *why,
        size_t why_bytes)
{
	struct rig_dev *dev = new_dev(pci, board, options);
	int err;

	*out = NULL;
	if (!dev) {
		snprintf(why, why_bytes, "out of host memory");
		rig_pci_close(pci);
		return -ENOMEM;
	}
	err = rig_dev_check_table(board);
	if (!err)
		err = bring_up(dev, word);
	if (err) {
		snprintf(why, why_bytes, "%s", rig_error());
		if (board->halt)
			board->halt(&dev->port);
		rig_pci_bus_master(pci, false);
		release(dev);
		return err;
	}
	rig_logf(&dev->options.log, RIG_LOG_INFO, "%s ready: firmware %s", board->arch,
	        dev->facts.firmware ? dev->facts.firmware : "none");
	*out = dev;
	return 0;
}
