/* SPDX-License-Identifier: MIT */
/* A function that is taken, without its board being booted. */
#ifndef RIGCTL_FUNCTION_H
#define RIGCTL_FUNCTION_H

#include "take.h"

/* Takes DEVICE: 0, or an exit status after a complaint, as open_device. rig_give_back is owed. */
int take_function(const char *text, struct rig_taken *out);

#endif
