/* SPDX-License-Identifier: MIT */
#include "segment.h"

#include <errno.h>

int rig_segment_init(struct rig_segment *segment, uint64_t bytes, struct rig_mark *marks, uint32_t nmarks)
{
	if (!rig_is_pow2(bytes) || bytes > UINT64_MAX >> 1 || !marks || !rig_is_pow2(nmarks))
		return -EINVAL;
	*segment = (struct rig_segment){
	        .bytes = bytes,
	        .mask = bytes - 1,
	        .marks = {.at = marks, .mask = nmarks - 1},
	};
	return 0;
}
