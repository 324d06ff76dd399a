/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "error.h"
#include "pci_private.h"

/* Between two looks at the vendor id. Ready times are milliseconds to seconds (PCIe 2.0 section 6.6). */
#define LOOK_NS RIG_NS_PER_MS

/* After a reset configuration space may answer all ones, or not at all, until the function is ready. */
static int await_ready(struct rig_pci *f)
{
	struct rig_deadline until = rig_deadline_in(NULL, f->reset_ms * RIG_NS_PER_MS);
	uint32_t id = 0;

	for (;;) {
		int err = rig_pci_config_read(f, RIG_PCI_VENDOR_ID, 2, &id);

		if (!err && id == f->info.vendor)
			return 0;
		if (rig_gone_is(&f->gone))
			return err ? err : rig_gone_fail(&f->gone);
		if (rig_deadline_passed(&until))
			break;
		rig_deadline_sleep(&until, LOOK_NS);
	}
	rig_pci_lose(f, "it did not come back from its reset");
	return rig_vfio_fail(ETIMEDOUT, "power the function off and on",
	        "after the reset its vendor id reads %#06x for %u ms", id, f->reset_ms);
}

/* A reset can be refused because the function is not there any more, and then it is gone, not unwilling. */
static int reset(struct rig_pci *f, bool ours)
{
	int err = rig_gone_settle(&f->gone, f->ops->reset(f->transport, f->reset_ms, ours));
	int there = err && !rig_gone_is(&f->gone) ? rig_pci_check(f) : 0;

	return there ? there : err;
}

/* Refused (EBUSY), it touched nothing. A kernel whose reset fails has revoked the dma-bufs all the same. */
static int reset_among_peers(struct rig_pci *f, bool ours, uint32_t command)
{
	char why[RIG_VFIO_ERROR_BYTES];
	int err = reset(f, ours);

	if (!err)
		return 0;
	snprintf(why, sizeof(why), "%s", rig_error());
	if (err == -EBUSY)
		(void)rig_config_command(f, command, ~command, NULL);
	else if (!rig_gone_is(&f->gone))
		rig_peer_renew(f);
	return rig_error_set(err, "%s", why);
}

static int reset_all(struct rig_pci *f, bool ours)
{
	uint32_t command;
	int err;

	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	if (!f->info.resets)
		return rig_vfio_fail(ENOTSUP, NULL, "the function offers no reset");
	err = f->ops->reset_check ? f->ops->reset_check(f->transport, ours) : 0;
	if (!err)
		err = rig_config_command(f, 0, RIG_PCI_COMMAND_MASTER, &command);
	if (!err)
		err = reset_among_peers(f, ours, command);
	if (!err)
		err = await_ready(f);
	if (!err)
		err = rig_config_command(f, command, ~command, NULL);
	if (!err)
		err = rig_irq_rearm(f);
	if (!err)
		rig_peer_renew(f);
	return err;
}

int rig_pci_reset(struct rig_pci *f)
{
	return reset_all(f, false);
}

int rig_pci_reset_bus(struct rig_pci *f)
{
	return reset_all(f, true);
}
