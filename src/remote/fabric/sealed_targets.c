/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include <sodium.h>

#include "sealed.h"

void rig_sealed_targets_init(struct rig_sealed_targets *targets)
{
	*targets = (struct rig_sealed_targets){.bucket = {NULL}};
	(void)pthread_rwlock_init(&targets->lock, NULL);
}

void rig_sealed_targets_fini(struct rig_sealed_targets *targets)
{
	(void)pthread_rwlock_destroy(&targets->lock);
}

/* Keys are random: each bucket gets as many. */
static struct rig_sealed_target **place_of(struct rig_sealed_targets *targets, uint64_t key)
{
	struct rig_sealed_target **at = &targets->bucket[key % RIG_SEALED_BUCKETS];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

int rig_sealed_target_add(struct rig_sealed_targets *targets, void *at, size_t bytes, uint64_t *key)
{
	struct rig_sealed_target *target = calloc(1, sizeof(*target)), **place;

	if (!target)
		return rig_error_set(-ENOMEM, "no memory to let another machine write to memory");
	target->at = at;
	target->bytes = bytes;
	(void)pthread_rwlock_wrlock(&targets->lock);
	do {
		randombytes_buf(&target->key, sizeof(target->key));
		place = place_of(targets, target->key);
	} while (*place);
	*place = target;
	(void)pthread_rwlock_unlock(&targets->lock);
	*key = target->key;
	return 0;
}

void rig_sealed_target_remove(struct rig_sealed_targets *targets, uint64_t key)
{
	struct rig_sealed_target **place, *target;

	(void)pthread_rwlock_wrlock(&targets->lock);
	place = place_of(targets, key);
	target = *place;
	if (target)
		*place = target->next;
	(void)pthread_rwlock_unlock(&targets->lock);
	free(target);
}

unsigned char *rig_sealed_target_find(
        const struct rig_sealed_targets *targets, uint64_t key, uint64_t offset, size_t bytes)
{
	const struct rig_sealed_target *target = targets->bucket[key % RIG_SEALED_BUCKETS];

	while (target && target->key != key)
		target = target->next;
	if (!target || offset > target->bytes || bytes > target->bytes - offset)
		return NULL;
	return target->at + offset;
}
