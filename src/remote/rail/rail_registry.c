/* SPDX-License-Identifier: MIT */
/* A chained hash of the process's live ends by the address of their counts, which is all that ready_fn is
   given. */
#include <errno.h>

#include "rail_private.h"

enum { BUCKETS = 4096, PAGE_BITS = 12 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rig_rail_half *buckets[BUCKETS];

static struct rig_rail_half **bucket_of(const void *counts)
{
	return &buckets[((uintptr_t)counts >> PAGE_BITS) % BUCKETS];
}

void rig_registry_add(struct rig_rail_half *half)
{
	struct rig_rail_half **bucket = bucket_of(half->counts.at);

	(void)pthread_mutex_lock(&lock);
	half->registry_next = *bucket;
	*bucket = half;
	(void)pthread_mutex_unlock(&lock);
}

void rig_registry_remove(struct rig_rail_half *half)
{
	struct rig_rail_half **at = bucket_of(half->counts.at);

	(void)pthread_mutex_lock(&lock);
	while (*at && *at != half)
		at = &(*at)->registry_next;
	if (*at)
		*at = half->registry_next;
	(void)pthread_mutex_unlock(&lock);
}

struct rig_rail_half *rig_registry_get(const void *counts)
{
	struct rig_rail_half *half;

	(void)pthread_mutex_lock(&lock);
	half = *bucket_of(counts);
	while (half && half->counts.at != counts)
		half = half->registry_next;
	if (half)
		rig_rail_half_get(half);
	(void)pthread_mutex_unlock(&lock);
	return half;
}
