/* SPDX-License-Identifier: MIT */
/* A function that is taken, without its board being booted. */
#ifndef RIGCTL_FUNCTION_H
#define RIGCTL_FUNCTION_H

#include "pci.h"
#include "sim.h"

struct function {
	struct rig_pci *pci;
	struct rig_sim *sim; /* NULL if it is not of this process */
};

/* Takes DEVICE: 0, or an exit status after a complaint, as open_device. */
int take_function(const char *text, struct function *out);
void give_function_back(struct function *function);

#endif
