/* SPDX-License-Identifier: MIT */
/*
 * What a kernel's image says about a kernel: one read-only object a kernel, exported under the name
 * RVX1_KERNEL_RECORD_PREFIX + the function's name (rvx1/kernel.h, RVX1_KERNEL). It has no relocations.
 * Little-endian. Read by loaders, which check symbol size, version and ranges. Layout only.
 */
#ifndef RVX1_KERNEL_RECORD_H
#define RVX1_KERNEL_RECORD_H

#include <stdint.h>

#define RVX1_KERNEL_RECORD_PREFIX  "rvx1_kernel_record_"
#define RVX1_KERNEL_RECORD_VERSION 1u
#define RVX1_KERNEL_MOST_PARAMS    4096u /* bytes; a runtime takes no more */

struct rvx1_kernel_record {
	uint32_t version;      /* RVX1_KERNEL_RECORD_VERSION */
	uint32_t params_bytes; /* of the packed parameters; 0: none stated */
	uint32_t threads;      /* the most threads a group; 0: the board's limit */
	uint32_t shared;       /* the most shared bytes a group; 0: the board's limit */
};

#endif
