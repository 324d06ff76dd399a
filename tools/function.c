/* SPDX-License-Identifier: MIT */
#include "function.h"

#include <stdio.h>

#include "log.h"
#include "rigctl.h"

enum { WHY = 1024 };

static void say(void *arg, int level, const char *text)
{
	(void)arg;
	(void)level;
	fprintf(stderr, "rigctl: %s\n", text);
}

int take_function(const char *text, struct function *out)
{
	static const struct rig_log log = {.fn = say};
	struct rig_pci_options options = {.fd = -1, .guard = true, .log = verbose ? &log : NULL};
	struct rig_spec spec;
	char why[WHY];

	*out = (struct function){NULL, NULL};
	if (rig_spec_parse(text, &spec))
		return complain(EXIT_USAGE, "%s", rig_error());
	options.path = spec.path;
	options.which = spec.transport;
	options.kind = spec.kind == RIG_SPEC_SIM         ? RIG_PCI_VFIO_USER_FD
	               : spec.kind == RIG_SPEC_VFIO_USER ? RIG_PCI_VFIO_USER_PATH
	                                                 : RIG_PCI_ADDRESS;
	if (spec.kind == RIG_SPEC_SIM && rig_sim_start(&spec, &out->sim, &options.fd))
		return complain(EXIT_OPEN, "cannot open %s: %s", text, rig_error());
	if (!rig_pci_open(&out->pci, &options, why, sizeof(why)))
		return 0;
	give_function_back(out);
	return complain(EXIT_OPEN, "cannot open %s: %s", text, reason(why, spec.base));
}

void give_function_back(struct function *function)
{
	rig_pci_close(function->pci);
	if (function->sim)
		rig_sim_end(function->sim);
	*function = (struct function){NULL, NULL};
}
