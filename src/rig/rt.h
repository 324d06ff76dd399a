/* SPDX-License-Identifier: MIT */
/*
 * What the files of librig share.
 *
 * Locks, outermost first: a name (open.c) > the registry (slot.c) > a device's `lock`. A device's `memory`
 * lock and a memory's `maps` lock are innermost. No lock but a name is held while the library waits, calls a
 * cold function of a driver or a program's callback. A device's `lock` is held across its hot calls unless
 * the driver may block in them; then `turn` keeps the calls one at a time.
 */
#ifndef RT_H
#define RT_H

#include <pthread.h>

#include "hook.h"
#include "rt_device.h"
#include "rt_memory.h"
#include "rt_point.h"
#include "rt_work.h"

#endif
