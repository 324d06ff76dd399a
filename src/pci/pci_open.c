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

static int check_options(const struct rig_pci_options *options, const struct rig_spec *spec)
{
	const struct rig_pci_fds *fds = options->fds;
	unsigned char uuid[16];

	if (options->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL, "options of contract version %u: this library is of version %u",
		        options->version, RIG_EDGE_VERSION);
	if ((fds || options->vf_token) && spec->kind != RIG_SPEC_PCI)
		return rig_error_set(-EINVAL, "%s: fds and vf_token are of PCI functions", spec->base);
	if (fds && (fds->device < 0 || ((fds->group < 0 || fds->container < 0) && fds->iommufd < 0)))
		return rig_error_set(-EINVAL,
		        "%s: fds are a device with its group and container, or with its iommufd", spec->base);
	if (options->vf_token && !rig_pci_token_parse(options->vf_token, uuid))
		return rig_error_set(-EINVAL,
		        "vf_token \"%.64s\": a UUID, as 00112233-4455-6677-8899-aabbccddeeff",
		        options->vf_token);
	return 0;
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
	err = rig_spec_parse(device, &spec);
	if (!err)
		err = check_spec(&spec);
	if (!err)
		err = check_options(options, &spec);
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
