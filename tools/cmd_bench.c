/* SPDX-License-Identifier: MIT */
#include "rigctl.h"
static int run(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return complain(EXIT_USAGE, "to come");
}
static const struct option_help options[] = {{0}};
const struct command command_bench = {.name = "bench",
        .synopsis = "DEVICE",
        .summary = "measure",
        .text = "",
        .options = options,
        .run = run};
