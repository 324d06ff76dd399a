/* SPDX-License-Identifier: MIT */
/* rigctl reset: the function's reset, and how long it takes until the function answers again. */
#include <stdio.h>

#include "clock.h"
#include "rigctl.h"
#include "pci.h"
#include "take.h"

static int run(int argc, char **argv)
{
	struct rig_taken function;
	uint64_t begin;
	int status, err;

	if (argc != 2 || argv[1][0] == '-')
		return complain(EXIT_USAGE, "it takes a DEVICE and nothing else");
	status = take_function(argv[1], &function);
	if (status)
		return status;
	begin = rig_clock_ns();
	err = rig_pci_reset(function.pci);
	if (err)
		status = complain(EXIT_FAILED, "%s: %s", argv[1], rig_error());
	else
		printf("%s over %s: reset, ready after %.3f ms\n", argv[1],
		        rig_pci_info(function.pci)->transport, (double)(rig_clock_ns() - begin) / 1e6);
	rig_pci_close(function.pci);
	return status;
}

static const struct option_help options[] = {{NULL, NULL}};

const struct command command_reset = {
        .name = "reset",
        .synopsis = "DEVICE",
        .summary = "reset a device's function and say how long until it is ready",
        .text = "Refused while another process has it, and where the reset would hit functions of others. "
                "(The kernel may "
                "reset a function also when it is opened and closed.)",
        .options = options,
        .run = run,
};
