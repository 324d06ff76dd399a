/* SPDX-License-Identifier: MIT */
/*
 * Holds threads of the library at its hook points (src/rig/hook.h), so that a test decides how two of them
 * meet. Programs that use it link test_held. All of it may be called from any thread; what waits here ends
 * the program, with a message, after HELD_SECONDS.
 */
#ifndef HELD_H
#define HELD_H

#include <pthread.h>

#include "hook.h"
#include "rig_help.h"

#define HELD_SECONDS 120

/* The next `n` threads that come to the point stop there, until it is opened; `d` NULL: on any device. */
void held_close(enum rig_rt_hook_point point, const struct rig_device *d, unsigned n);
/* Blocks until so many threads stand at the point. */
void held_await(enum rig_rt_hook_point point, unsigned n);
/* Lets them go on; later ones pass. */
void held_open(enum rig_rt_hook_point point);
/* Blocks until so many threads came to the point since held_reset, held or not. */
void held_await_came(enum rig_rt_hook_point point, unsigned n);
/* Opens all and counts anew. */
void held_reset(void);
/* First in a forked child: no point holds, none counts. */
void held_child(void);

/* The same for a kind of call of a test driver: the first one stands still in the driver. */
void held_driver(struct polled *p, enum polled_call call);
void held_driver_await(void);
void held_driver_open(void);

/* ---- Threads that do one thing ---- */

struct actor {
	int (*deed)(struct actor *a);
	/* What the deed uses. */
	struct rig_device *d;
	struct rig_submission *s;
	struct rig_buffer *buffer;
	const struct rig_opener *opener;
	struct rig_point wait; /* no point: none */
	/* What comes of it. */
	struct rig_point point;
	int code;
	pthread_t thread;
};

/* Deeds: rig_submit of `s` after `wait`, rig_wait of `wait`, rig_close of `d`, rig_open of `opener` to `d`,
   rig_buffer_create of HELD_BYTES on `d` to `buffer`, rig_buffer_put of `buffer`. */
int held_submit(struct actor *a);
int held_wait(struct actor *a);
int held_end(struct actor *a);
int held_begin(struct actor *a);
int held_create(struct actor *a);
int held_put(struct actor *a);

#define HELD_BYTES 4096u

void held_start(struct actor *a);
/* Starts it and returns once it stands at the point, which it passes on `d` (NULL: on any device). */
void held_start_at(enum rig_rt_hook_point point, const struct rig_device *d, struct actor *a);
/* Blocks until it is done; answers its code. */
int held_join(struct actor *a);
/* Opens the point, then the same. */
int held_let_go(enum rig_rt_hook_point point, struct actor *a);

#endif
