/* SPDX-License-Identifier: MIT */
/* Openers: a device string becomes a taken function, and that a device (rig_vfio.h). */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boards.h"
#include "driver.h"
#include "pci.h"
#include "rig_vfio.h"
#include "take.h"

struct opener {
	struct rig_opener base; /* first: what the caller has */
	struct rig_spec spec;
	struct rig_log log;
	bool guard;
	bool has_fds;
	struct rig_pci_fds fds;
	char name[RIG_SPEC_TEXT];
};

static int refuse(char *why, size_t why_bytes, int err, const char *text)
{
	snprintf(why, why_bytes, "%s", text);
	return err;
}

static int make(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	const struct opener *o = arg;
	const struct rig_board *board;
	struct rig_driver_options options = {
	        .store = o->spec.store,
	        .dmabuf = o->spec.dmabuf,
	        .hang_ms = o->spec.hang_ms,
	        .pinned = o->spec.poller_cpu >= 0,
	        .cpu = o->spec.poller_cpu,
	        .firmware_dir = o->spec.firmware[0] ? o->spec.firmware : NULL,
	        .log = o->log,
	};
	struct rig_taken taken;
	const struct rig_pci_info *info;
	int err;

	*device = NULL;
	if (!word || (uintptr_t)word % sizeof(*word))
		return refuse(why, why_bytes, -EINVAL, "the word is not at a multiple of 8");
	if (rig_locks_held())
		return refuse(why, why_bytes, -EINVAL, "make may take a lock, and this thread holds one");
	err = rig_take(&o->spec,
	        &(struct rig_take_options){
	                .fds = o->has_fds ? &o->fds : NULL, .guard = o->guard, .log = &o->log},
	        &taken);
	if (err)
		return refuse(why, why_bytes, err, rig_error());
	rig_logf(&o->log, RIG_LOG_DEBUG, RIG_DRIVER_STEP "%staking the function",
	        taken.sim ? "starting the model and " : "");
	info = rig_pci_info(taken.pci);
	board = rig_board_find(info->vendor, info->device);
	if (!board) {
		snprintf(why, why_bytes, "function %04x:%04x, which no port here drives", info->vendor,
		        info->device);
		rig_pci_close(taken.pci);
		return -ENOTSUP;
	}
	options.end = taken.sim ? rig_sim_kill : NULL;
	options.process = taken.sim;
	err = rig_driver_make(taken.pci, board, &options, word, device, why, why_bytes);
	if (err && o->spec.kind == RIG_SPEC_PCI)
		rig_explain_memory("", &o->spec, err, why, why_bytes);
	return err;
}

/* -EINVAL if the device string, which is the name where no other is given, holds what names may not. */
static int name_opener(struct opener *o, const struct rig_vfio_options *options)
{
	static atomic_uint sims;

	if (options && options->name)
		snprintf(o->name, sizeof(o->name), "%s", options->name);
	else if (o->spec.kind == RIG_SPEC_SIM)
		snprintf(o->name, sizeof(o->name), "sim%u", atomic_fetch_add(&sims, 1));
	else
		snprintf(o->name, sizeof(o->name), "%s", o->spec.base);
	if (strchr(o->name, '@'))
		return rig_error_set(
		        -EINVAL, "device \"%s\" has an '@', which names may not: give it a name", o->name);
	return 0;
}

static int check_options(const struct rig_vfio_options *options)
{
	if (!options)
		return 0;
	if (options->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL, "options of contract version %u: this library is of version %u",
		        options->version, RIG_EDGE_VERSION);
	if (options->name &&
	        (!options->name[0] || strlen(options->name) >= RIG_SPEC_TEXT || strchr(options->name, '@')))
		return rig_error_set(-EINVAL, "name \"%s\": 1 to %d characters without '@'", options->name,
		        RIG_SPEC_TEXT - 1);
	return 0;
}

static void take_fds(struct opener *o, const struct rig_vfio_fds *fds)
{
	o->has_fds = fds != NULL;
	if (fds)
		o->fds = (struct rig_pci_fds){.device = fds->device,
		        .group = fds->group,
		        .container = fds->container,
		        .iommufd = fds->iommufd};
}

int rig_vfio_opener(const char *device, const struct rig_vfio_options *options, struct rig_opener **out)
{
	struct opener *o;
	int err = check_options(options);

	if (!out)
		return rig_error_set(-EINVAL, "out is NULL");
	*out = NULL;
	if (err)
		return err;
	o = calloc(1, sizeof(*o));
	if (!o)
		return rig_error_set(-ENOMEM, "out of host memory");
	err = rig_spec_parse(device, &o->spec);
	if (!err)
		err = rig_spec_default(&o->spec, secure_getenv("RIG_SIM_HANG"));
	if (options)
		take_fds(o, options->fds);
	if (!err && options)
		err = rig_take_check(&o->spec, o->has_fds ? &o->fds : NULL, options->vf_token);
	if (!err)
		err = name_opener(o, options);
	if (err) {
		free(o);
		return err;
	}
	if (options) {
		o->log = (struct rig_log){.fn = options->log, .arg = options->log_arg};
		o->guard = options->guard;
		if (options->vf_token && !o->spec.token[0])
			strcpy(o->spec.token, options->vf_token);
	}
	o->base = (struct rig_opener){.version = RIG_EDGE_VERSION,
	        .name = o->name,
	        .module = &rig_driver_module,
	        .make = make,
	        .arg = o};
	*out = &o->base;
	return 0;
}

void rig_vfio_opener_free(struct rig_opener *opener)
{
	free(opener);
}
