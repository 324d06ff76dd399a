/* SPDX-License-Identifier: MIT */
#include "rmt_rail_over.h"

#include "clock.h"
#include "rail_private.h"

#define GRACE_NS (UINT64_C(300) * RIG_NS_PER_MS)
#define LOOK_NS  RIG_NS_PER_MS

void rig_rmt_rail_await_cause(bool (*known)(void *arg), void *arg)
{
	struct rig_deadline grace = rig_deadline_in(NULL, GRACE_NS);

	while (!known(arg) && !rig_deadline_passed(&grace))
		rig_deadline_sleep(&grace, LOOK_NS);
}

/* An end whose other side has ended is in the registry no longer. */
bool rig_rmt_rail_is_over(const struct rig_remote_end *end)
{
	struct rig_rail_half *half = rig_registry_get(end->counts.at);

	if (half)
		rig_rail_half_put(half);
	return !half;
}
