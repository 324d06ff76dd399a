/* SPDX-License-Identifier: MIT */
/* rig_pci_open: a device string and options become a taken function. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "pci.h"
#include "take.h"

/* What no driver reads here is refused, rather than dropped. */
static int check_spec(const struct rig_spec *spec)
{
	const char *option = spec->store             ? "completion"
	                     : spec->dmabuf          ? "dma"
	                     : spec->hang_ms         ? "hang"
	                     : *spec->firmware       ? "firmware"
	                     : spec->poller_cpu >= 0 ? "poller"
	                                             : NULL;

	return option ? rig_error_set(-EINVAL, "%s: option %s is a driver's, and a function alone has none",
	                        spec->base, option)
	              : 0;
}

int rig_pci_open(const char *device, const struct rig_pci_options *options, struct rig_pci **out)
{
	static const struct rig_pci_options none = {.version = RIG_EDGE_VERSION};
	struct rig_taken taken = {0};
	struct rig_log log;
	struct rig_take_options how;
	struct rig_spec spec;
	int err;

	if (!out)
		return rig_error_set(-EINVAL, "out is NULL");
	*out = NULL;
	if (!options)
		options = &none;
	if (options->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL, "options of contract version %u: this library is of version %u",
		        options->version, RIG_EDGE_VERSION);
	err = rig_spec_parse(device, &spec);
	if (!err)
		err = check_spec(&spec);
	if (!err)
		err = rig_take_check(&spec, options->fds, options->vf_token);
	if (err)
		return err;
	if (options->vf_token && !*spec.token)
		strcpy(spec.token, options->vf_token);
	log = (struct rig_log){.fn = options->log, .arg = options->log_arg};
	how = (struct rig_take_options){.fds = options->fds,
	        .log = &log,
	        .guard = options->guard,
	        .reset_ms = options->reset_ms,
	        .iova_base = options->iova_base,
	        .arena_limit = options->arena_limit};
	err = rig_take(&spec, &how, &taken);
	*out = taken.pci;
	return err;
}
