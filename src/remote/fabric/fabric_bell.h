/* SPDX-License-Identifier: MIT */
/*
 * A bell: memory of a process that another process of the same user on the machine opens too, to wake who
 * sleeps at it. For providers that cannot wake. A bell that cannot be opened is not rung, and who sleeps
 * looks by time.
 *
 * One thread sleeps; any number ring, which costs one load while nobody sleeps.
 */
#ifndef RIG_FABRIC_BELL_H
#define RIG_FABRIC_BELL_H

#include <stdint.h>

struct rig_bell;

/* A new bell; *fd, which stays the bell's, names it to others of this machine as /proc/<pid>/fd/<fd>. */
int rig_bell_make(struct rig_bell **bell, int *fd);

/* The bell of another process. -ESTALE: that file is no bell. */
int rig_bell_open(uint64_t pid, uint64_t fd, struct rig_bell **bell);

/* NULL is allowed. */
void rig_bell_close(struct rig_bell *bell);

/* From here until rig_bell_sleep returns a ring is not lost: the caller says that it will sleep, looks once
   more for
 * what would have rung, and sleeps or cancels. */
void rig_bell_will_sleep(struct rig_bell *bell);
void rig_bell_cancel(struct rig_bell *bell);

/* At most `ns`; RIG_CLOCK_NEVER: without end. */
void rig_bell_sleep(struct rig_bell *bell, uint64_t ns);

/* Wakes the sleeper, if there is one. NULL is allowed. */
void rig_bell_ring(struct rig_bell *bell);

#endif
