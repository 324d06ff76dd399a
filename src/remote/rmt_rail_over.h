/* SPDX-License-Identifier: MIT */
#ifndef RMT_RAIL_OVER_H
#define RMT_RAIL_OVER_H

#include "rig_remote_abi.h"

/* Whether the other side has ended the rail of an end that is held. Any thread. */
bool rig_rmt_rail_is_over(const struct rig_remote_end *end);

#endif
