/* SPDX-License-Identifier: MIT */
/*
 * Bulk bytes between a controller and a machine, over a rail of their own: RIG_RMT_SLOTS slots each way, of
 * which a chunk of a copy takes one. A BULK message on the control connection says which chunk is in which
 * slot, in the order of the device's other messages; a CREDIT says that the slot is free again. Where no slot
 * is, or no rail, the bytes go as DATA, so that no device waits for another's.
 *
 * Any thread; `end` is set once, by rig_rmt_bulk_open, and gone after rig_rmt_bulk_close.
 */
#ifndef RMT_BULK_H
#define RMT_BULK_H

#include <pthread.h>

#include "rig_remote_abi.h"

enum {
	RIG_RMT_SLOT_BYTES = 1 << 19,
	RIG_RMT_SLOTS = 32,                         /* in both copies of an area */
	RIG_RMT_SLOT_TRANSFERS = RIG_RMT_SLOTS / 2, /* of a run */
	RIG_RMT_BULK_FROM = RIG_RMT_SLOT_BYTES,     /* a chunk of fewer bytes goes as DATA */
};

struct rig_rmt_bulk {
	pthread_mutex_t lock;
	const struct rig_remote_end *end; /* NULL: no rail */
	uint64_t next;                    /* the count of the next chunk sent */
	uint32_t busy;                    /* slots that the other side has not credited */
};

void rig_rmt_bulk_init(struct rig_rmt_bulk *b);
void rig_rmt_bulk_fini(struct rig_rmt_bulk *b);
/* The transfers of the rail, either way. */
void rig_rmt_bulk_transfers(struct rig_remote_transfer transfers[RIG_RMT_SLOT_TRANSFERS]);
/* Takes a reference of its own. */
void rig_rmt_bulk_open(struct rig_rmt_bulk *b, const struct rig_remote_end *end);
void rig_rmt_bulk_close(struct rig_rmt_bulk *b);

/* Puts n bytes, at most a slot's, on their way; *count is their chunk's. False: no slot now, or no rail. */
bool rig_rmt_bulk_put(struct rig_rmt_bulk *b, const uint8_t *bytes, size_t n, uint64_t *count);
/* Where chunk `count` is once `end`, of which the caller has a reference, shows its arrival; NULL: no such
   chunk. */
const uint8_t *rig_rmt_bulk_at(const struct rig_remote_end *end, uint64_t count);
/* The end with a reference, or NULL. */
const struct rig_remote_end *rig_rmt_bulk_end(struct rig_rmt_bulk *b);
/* The other side is done with the chunk. */
void rig_rmt_bulk_credit(struct rig_rmt_bulk *b, uint64_t count);

#endif
