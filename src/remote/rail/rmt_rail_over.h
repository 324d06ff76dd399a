/* SPDX-License-Identifier: MIT */
#ifndef RMT_RAIL_OVER_H
#define RMT_RAIL_OVER_H

/* What a controller and an agent both ask of their rail engines' links. */

#include <stdbool.h>

#include "rig_remote_abi.h"

/* Of a link's finish, ns. A copy that is the first by it waits for that: less than boards take for a hang. */
#define RIG_RMT_LINK_NS UINT64_C(5000000000)

/* Who ends a link under way says why on its own connection, about then: that is the cause. Waits a moment
   until it is known. */
void rig_rmt_rail_await_cause(bool (*known)(void *arg), void *arg);

/* Whether the other side has ended the rail of an end that is held. Any thread. */
bool rig_rmt_rail_is_over(const struct rig_remote_end *end);

#endif
