/* SPDX-License-Identifier: MIT */
#ifndef RIG_GUARD_H
#define RIG_GUARD_H

/*
 * Keeps the process alive when a mapped window vanishes under an access: a device that was pulled, a device
 * process that cut its file short. Private to src/vfio.
 *
 * One process-wide SIGBUS handler, installed by the first guard and put back if something replaced it since;
 * it is never taken away. A fault inside a guarded range gets a page of all ones in its place and marks the
 * function gone; a fault anywhere else goes to the handler that was there before, or is fatal as it would
 * have been, also where that handler passes it on to this one.
 */

#include <stdint.h>

struct rig_gone;

/* The most ranges guarded at once in a process. The handler searches them without a lock. */
enum { RIG_GUARD_RANGES = 1024 };

/* Guards whole pages [at, at + bytes) until rig_guard_remove; gone outlives that. -ENOSPC: all ranges are
 * taken. Any thread. */
int rig_guard_add(void *at, uint64_t bytes, struct rig_gone *gone);

/* Before the range is unmapped. A range that is not guarded is allowed. */
void rig_guard_remove(void *at);

/* In a child of fork, which has none of what is guarded: at those addresses anything may come to lie. */
void rig_guard_forked(void);

#endif
