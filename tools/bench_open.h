/* SPDX-License-Identifier: MIT */
/* rigctl bench --open. */
#ifndef RIGCTL_BENCH_OPEN_H
#define RIGCTL_BENCH_OPEN_H

/* Opens the device of that string a few times, from nothing to the first completed launch, and prints a line
   a phase. An exit status; failures have been said. */
int bench_open_phases(const char *text);

#endif
