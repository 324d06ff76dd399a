/* SPDX-License-Identifier: MIT */
/* The end of a device: nothing runs any more, and the word says so. */
#include "device.h"

/* All work is complete and nothing went wrong: the function need not be reset. */
static bool is_quiet(struct rig_dev *dev)
{
	return !rig_dev_check_fault(dev) && rig_dev_progress(dev) == atomic_load(&dev->submitted);
}

/* A device process that hung up has given up its session, and our memory with it; one that only fell silent
   is made to, if it is ours. */
static bool is_gone(struct rig_dev *dev)
{
	const char *why;

	if (!rig_pci_gone(dev->pci, &why))
		return false;
	if (dev->options.end)
		dev->options.end(dev->options.process);
	return true;
}

/* Whether no work can run any more. */
static bool end_work(struct rig_dev *dev)
{
	/* What has left would keep a reset waiting for its return. */
	(void)rig_pci_check(dev->pci);
	if (is_gone(dev))
		return true;
	dev->board->halt(&dev->port);
	rig_pci_bus_master(dev->pci, false);
	if (!rig_pci_reset(dev->pci) || is_gone(dev) || rig_dev_serial_idle(dev))
		return true;
	rig_logf(&dev->options.log, RIG_LOG_ERROR, "stop: reset refused (%s): the device's memory is kept",
	        rig_error());
	return false;
}

void rig_dev_stop(void *device, const char *reason)
{
	struct rig_dev *dev = device;
	bool quiet = !reason && is_quiet(dev);

	rig_dev_progress_close(dev);
	if (quiet)
		rig_pci_bus_master(dev->pci, false);
	if (!quiet && !end_work(dev))
		return;
	/* Before the word, because memory is given back once that shows the last value. */
	rig_dma_deny(dev->pci);
	rig_word_raise(dev->word, atomic_load(&dev->submitted));
}
