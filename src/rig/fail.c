/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "rt.h"

static struct rig_rt_lock lock;
static char first[RT_REASON_BYTES];
static char given[RT_REASON_BYTES];
static _Atomic bool failed;

bool rig_rt_failed(void)
{
	return atomic_load_explicit(&failed, memory_order_acquire);
}

void rig_rt_failure_note(const char *name, const char *reason)
{
	rig_rt_lock(&lock);
	if (!first[0])
		(void)snprintf(first, sizeof(first), "%s: %s", name, reason);
	rig_rt_unlock(&lock);
}

void rig_rt_failure_reborn(void)
{
	atomic_store(&lock.word, RT_FREE);
}

const char *rig_failure(void)
{
	const char *reason = NULL;

	rig_rt_lock(&lock);
	if (given[0])
		reason = given;
	else if (first[0])
		reason = first;
	rig_rt_unlock(&lock);
	return reason;
}

void rig_fail(const char *reason)
{
	struct rig_device *d = NULL;

	rig_rt_lock(&lock);
	if (!given[0])
		(void)snprintf(
		        given, sizeof(given), "%s", reason && reason[0] ? reason : "the program failed");
	rig_rt_unlock(&lock);
	atomic_store_explicit(&failed, true, memory_order_release);
	while ((d = rig_rt_next(d)))
		rig_rt_lose(d, given, false);
}
