/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "rig_edge.h"

#define NS_PER_S UINT64_C(1000000000)

uint64_t rig_now_ns(void)
{
	struct timespec now;

	/* Cannot fail: the clock exists and the pointer is good. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}
