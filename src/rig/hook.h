/* SPDX-License-Identifier: MIT */
/*
 * Places at which a test may hold a thread of the library, to make it meet another there. They exist only in
 * the tests' own build of these files (RT_HOOKS, tests/support/held.h): elsewhere rig_rt_hook is nothing.
 */
#ifndef HOOK_H
#define HOOK_H

struct rig_device;

enum rig_rt_hook_point {
	RT_HOOK_ENTERED,    /* a counted call begins; no lock */
	RT_HOOK_TURN_WAITS, /* the turn is another thread's: about to sleep for it; the device's lock */
	RT_HOOK_TURN,       /* the turn is taken, room is not asked yet; the device's lock */
	RT_HOOK_LATER,      /* room said later: about to wait; no lock, no turn */
	RT_HOOK_RECORDED,   /* what the queue will wait for is recorded, submit comes; the device's lock */
	RT_HOOK_COMMIT,     /* the turn is taken, commit comes; the device's lock */
	RT_HOOK_LOST,       /* the device is lost, nobody is told yet; no lock */
	RT_HOOK_STOP,       /* stop comes; no lock */
	RT_HOOK_ENDED,      /* stop returned, nothing was given back yet; no lock */
	RT_HOOK_EARLIER,    /* an open found a device of its name that is not stopped; the name's lock */
	RT_HOOK_PUT,        /* a memory's last reference is gone, it is nowhere yet; no lock */
	RT_HOOK_CACHING,    /* a memory is about to be the cache's; the device's `memory` lock */
	RT_HOOK_REUSE,      /* memory is wanted, the cache was not asked yet; no lock */
	RT_HOOK_POINTS,
};

#ifdef RT_HOOKS
void rig_rt_hook(enum rig_rt_hook_point point, const struct rig_device *d);
#else
#define rig_rt_hook(point, d) ((void)0)
#endif

#endif
