/* SPDX-License-Identifier: MIT */
#include "rail_private.h"
#include "rmt_rail_over.h"

/* An end whose other side has ended is in the registry no longer. */
bool rig_rmt_rail_is_over(const struct rig_remote_end *end)
{
	struct rig_rail_half *half = rig_registry_get(end->counts.at);

	if (half)
		rig_rail_half_put(half);
	return !half;
}
