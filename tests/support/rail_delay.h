/* SPDX-License-Identifier: MIT */
#ifndef RIG_RAIL_DELAY_H
#define RIG_RAIL_DELAY_H

/*
 * A provider that is late. Linking test_rail_delay puts this between the rail engine and libfabric: writes
 * are held back and begun in any order, and what happened is told late and in any order, as no promise of
 * fabric.h forbids. A write's bytes are read when it is begun, so that a source that is written again too
 * early shows at the receiver; and each completed write's source is compared with what went, so that it shows
 * here, even where the wrong bytes were not seen.
 *
 * Counts are watched too: what the engine stores to `sent` and `arrived` is known here before it does.
 */

#include "rig_remote_abi.h"

/* Writes whose source changed before they were told to be done; since the start. */
unsigned rail_delay_spoilt(void);
/* Writes and notes that overtook an earlier one. */
unsigned rail_delay_overtaken(void);

/* The most that the engine has stored, or is about to, to the count of the end; 0: nothing. */
uint64_t rail_delay_stored(const struct rig_remote_end *end, enum rig_remote_count count);
/* Forgets them. */
void rail_delay_forget(void);

#endif
