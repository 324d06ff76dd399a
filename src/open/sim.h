/* SPDX-License-Identifier: MIT */
/* The bundled model as a process of our own, at the other end of a socketpair. */
#ifndef RIG_OPEN_SIM_H
#define RIG_OPEN_SIM_H

#include "spec.h"

struct rig_sim;

/* Starts rvx1-model (found as find.h says, variable RIG_MODEL_DIR). *fd is our end, which the caller owns;
   the model ends when it is closed, by whoever ends this process too. Negative errno with rig_error(). */
int rig_sim_start(const struct rig_spec *spec, struct rig_sim **out, int *fd);

/* Ends the process at once; when it returns it does nothing any more. rig_sim_end is still owed. */
void rig_sim_kill(void *sim);

/* After *fd was closed: waits for the process to be gone, kills it if it takes longer than a few seconds. */
void rig_sim_end(void *sim);

#endif
