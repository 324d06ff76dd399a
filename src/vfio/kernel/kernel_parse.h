/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_PARSE_H
#define RIG_KERNEL_PARSE_H

/* What the kernel answers, taken apart: pure functions of (bytes, length). Private to src/vfio and its
 * tests. */

#include <stddef.h>
#include <stdint.h>

struct rig_ranges;
struct rig_vfio_region;

/* The capability with this id in the chain that starts at `first` of the structure; NULL if there is none
 * with `bytes` bytes. A chain that loops or leaves the structure ends. */
const void *rig_kparse_cap(const void *at, size_t len, uint32_t first, unsigned id, size_t bytes);

/* Region information with its capabilities, len bytes of it, page the machine's: bytes, access, fd_offset
 * and areas; fd is left alone. Areas are cut to whole pages; of more than RIG_VFIO_AREAS none
 * is taken. -EPROTO: areas outside the region or not in order. */
int rig_kparse_region(const void *at, size_t len, uint64_t page, struct rig_vfio_region *out);

/* Type1 information: page sizes (a mask), mappings that are free (UINT64_MAX where the kernel does not
 * say) and the ranges, added to the empty set: all addresses where the kernel does not say. -ENOMEM,
 * -EPROTO. */
struct rig_ktype1_info {
	uint64_t pgsizes;
	uint64_t avail;
};
int rig_kparse_type1(const void *at, size_t len, struct rig_ktype1_info *out, struct rig_ranges *ranges);

#endif
