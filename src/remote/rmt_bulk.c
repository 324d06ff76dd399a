/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "rmt_bulk.h"

void rig_rmt_bulk_init(struct rig_rmt_bulk *b)
{
	memset(b, 0, sizeof(*b));
	b->next = 1;
	(void)pthread_mutex_init(&b->lock, NULL);
}

void rig_rmt_bulk_fini(struct rig_rmt_bulk *b)
{
	rig_rmt_bulk_close(b);
	(void)pthread_mutex_destroy(&b->lock);
}

void rig_rmt_bulk_transfers(struct rig_remote_transfer transfers[RIG_RMT_SLOT_TRANSFERS])
{
	int64_t i;

	for (i = 0; i < RIG_RMT_SLOT_TRANSFERS; i++)
		transfers[i] = (struct rig_remote_transfer){
		        i * RIG_RMT_SLOT_BYTES, i * RIG_RMT_SLOT_BYTES, RIG_RMT_SLOT_BYTES};
}

void rig_rmt_bulk_open(struct rig_rmt_bulk *b, const struct rig_remote_end *end)
{
	(void)pthread_mutex_lock(&b->lock);
	if (!b->end)
		b->end = rig_remote_end_get(end);
	(void)pthread_mutex_unlock(&b->lock);
}

void rig_rmt_bulk_close(struct rig_rmt_bulk *b)
{
	const struct rig_remote_end *end;

	(void)pthread_mutex_lock(&b->lock);
	end = b->end;
	b->end = NULL;
	(void)pthread_mutex_unlock(&b->lock);
	rig_remote_end_put(end);
}

static uint32_t slot_of(uint64_t count)
{
	return (uint32_t)((count - 1) % RIG_RMT_SLOTS);
}

/* With the lock. A credit tells that the bytes were taken; `sent`, that the rail needs them no more. */
static bool has_slot(const struct rig_rmt_bulk *b)
{
	return b->end && !(b->busy & UINT32_C(1) << slot_of(b->next)) &&
	       (b->next <= RIG_RMT_SLOTS ||
	               rig_remote_load(b->end, RIG_REMOTE_SENT) >= b->next - RIG_RMT_SLOTS);
}

bool rig_rmt_bulk_put(struct rig_rmt_bulk *b, const uint8_t *bytes, size_t n, uint64_t *count)
{
	bool has;

	(void)pthread_mutex_lock(&b->lock);
	has = has_slot(b);
	if (has) {
		uint32_t slot = slot_of(b->next);

		memcpy((uint8_t *)b->end->outbound.at + (size_t)slot * RIG_RMT_SLOT_BYTES, bytes, n);
		b->busy |= UINT32_C(1) << slot;
		*count = b->next++;
		b->end->ready(b->end->ready_arg, *count);
	}
	(void)pthread_mutex_unlock(&b->lock);
	return has;
}

const uint8_t *rig_rmt_bulk_at(const struct rig_remote_end *end, uint64_t count)
{
	if (!count || end->inbound.bytes != (size_t)RIG_RMT_SLOTS * RIG_RMT_SLOT_BYTES)
		return NULL;
	return (const uint8_t *)end->inbound.at + (size_t)slot_of(count) * RIG_RMT_SLOT_BYTES;
}

const struct rig_remote_end *rig_rmt_bulk_end(struct rig_rmt_bulk *b)
{
	const struct rig_remote_end *end;

	(void)pthread_mutex_lock(&b->lock);
	end = rig_remote_end_get(b->end);
	(void)pthread_mutex_unlock(&b->lock);
	return end;
}

void rig_rmt_bulk_credit(struct rig_rmt_bulk *b, uint64_t count)
{
	(void)pthread_mutex_lock(&b->lock);
	if (count)
		b->busy &= ~(UINT32_C(1) << slot_of(count));
	(void)pthread_mutex_unlock(&b->lock);
}
