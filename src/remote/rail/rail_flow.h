/* SPDX-License-Identifier: MIT */
/*
 * One direction of a rail as arithmetic: which bytes a count names, in how many pieces they go, and how far
 * a direction has come where pieces are done in any order. Pure; one thread at a time.
 */
#ifndef RIG_RAIL_FLOW_H
#define RIG_RAIL_FLOW_H

#include "rig_remote_abi.h"

/* Counts that may be under way at once: those above `done` and at most this far. */
#define RIG_FLOW_WINDOW 256u

struct rig_flow {
	struct rig_remote_transfer *transfers; /* its own copy */
	size_t n;                              /* 0: nothing goes this way, and nothing below is asked */
	size_t piece;                          /* bytes of one write */
	size_t from_bytes, to_bytes;           /* of a copy at the sender and at the receiver */
	uint64_t most;                         /* counts to send at once */
	uint64_t done;                         /* every count up to this one is done */
	uint64_t pieces[RIG_FLOW_WINDOW];      /* done of each count of the window, at count % window */
};

/* Where a piece of a count is. */
struct rig_flow_piece {
	size_t from, to; /* its first byte in outbound and in inbound, copies counted in */
	size_t bytes;
	bool last; /* of its count */
};

/* Of checked transfers. -ENOMEM. */
int rig_flow_init(struct rig_flow *flow, const struct rig_remote_transfer *transfers, size_t n, size_t piece);
void rig_flow_fini(struct rig_flow *flow);

/* The piece of `count`, 1 <= count, that starts `offset` bytes into its transfer. */
struct rig_flow_piece rig_flow_piece(const struct rig_flow *flow, uint64_t count, size_t offset);

/* Whether pieces of `count` may be under way. */
bool rig_flow_in_window(const struct rig_flow *flow, uint64_t count);

/* Whether pieces of `count`, the next to send, may be handed on: in the window, and beside no other that
   lands on one of its bytes, for the later one's have to stay. So not before the same transfer of the run
   before the last is done; and where two transfers of a run overlap, one count at a time. */
bool rig_flow_may_begin(const struct rig_flow *flow, uint64_t count);

/* One more piece of `count` is done; moves `done` as far as it goes. -EPROTO: not in the window, or more
   pieces than it
 * has. */
int rig_flow_mark(struct rig_flow *flow, uint64_t count);

/* The count in the window whose lowest bits are `low` of `bits` bits; 0: none. 2^bits is at least two
   windows. */
uint64_t rig_flow_widen(const struct rig_flow *flow, uint32_t low, unsigned bits);

/* A number for the transfers, for both sides to compare. */
uint64_t rig_flow_hash(const struct rig_flow *flow);

#endif
