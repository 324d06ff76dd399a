/* SPDX-License-Identifier: MIT */
/*
 * Whether this process is a forked child of the one that made the word array. Noticed through a page that
 * the system wipes at fork, so that also a child of a bare clone() notices, and asking costs one load.
 */
#ifndef EDGE_FORK_H
#define EDGE_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "rig_edge.h"

/* Not 0 in the process that owns the array, and before the array was made. Set once by rig_words(). */
extern RIG_API const uint32_t *rig_edge_alive;

/* True in a child that no atfork handler has run in (see rig_edge_reborn). */
static inline bool rig_edge_forked(void)
{
	return __atomic_load_n(__atomic_load_n(&rig_edge_alive, __ATOMIC_RELAXED), __ATOMIC_RELAXED) == 0;
}

/* Marks the page again, for a child whose objects were all declared lost: new devices may be opened there. */
RIG_API void rig_edge_reborn(void);

#endif
