/* SPDX-License-Identifier: MIT */
#ifndef RIG_THREAD_H
#define RIG_THREAD_H

/* The library's own threads. */

#include <pthread.h>

/* May run on every CPU. */
#define RIG_THREAD_ANY (-1)

/* Starts a thread that takes none of the program's signals: their handlers are written for the program's
 * threads. What a fault of its own raises stays deliverable. `cpu` is the one it runs on, or RIG_THREAD_ANY.
 * 0 or what pthread_create(3) said, negative; -EINVAL: no such CPU. */
int rig_thread_start(pthread_t *thread, int cpu, void *(*run)(void *), void *arg);

#endif
