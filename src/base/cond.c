/* SPDX-License-Identifier: MIT */
#include "cond.h"

#define MS_PER_S  1000u
#define NS_PER_MS 1000000u
#define NS_PER_S  1000000000u
/* A hundred years: their end is told in seconds of any width. */
#define MOST_S UINT64_C(3155760000)

void rig_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
}

static struct timespec end_in(uint64_t s, uint64_t ns)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)(s < MOST_S ? s : MOST_S);
	end.tv_nsec += (long)ns;
	if (end.tv_nsec >= (long)NS_PER_S) {
		end.tv_sec++;
		end.tv_nsec -= (long)NS_PER_S;
	}
	return end;
}

struct timespec rig_cond_end(uint64_t ns)
{
	return end_in(ns / NS_PER_S, ns % NS_PER_S);
}

struct timespec rig_cond_end_ms(uint64_t ms)
{
	return end_in(ms / MS_PER_S, ms % MS_PER_S * NS_PER_MS);
}

int rig_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
	struct timespec end = rig_cond_end(ns);

	return pthread_cond_timedwait(cond, lock, &end);
}

int rig_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms)
{
	struct timespec end = rig_cond_end_ms(ms);

	return pthread_cond_timedwait(cond, lock, &end);
}
