/* SPDX-License-Identifier: MIT */
#ifndef RIG_COND_H
#define RIG_COND_H

/* Conditions whose waits end by the monotonic clock. */

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Ends with pthread_cond_destroy. */
void rig_cond_init(pthread_cond_t *cond);

/* The end of a wait that begins now, for pthread_cond_timedwait. More than a hundred years are a hundred. */
struct timespec rig_cond_end(uint64_t ns);
struct timespec rig_cond_end_ms(uint64_t ms);

/* Waits once and at most so long: 0 (told, or awake for nothing) or ETIMEDOUT. */
int rig_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns);
int rig_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms);

#endif
