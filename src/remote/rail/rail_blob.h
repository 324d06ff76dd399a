/* SPDX-License-Identifier: MIT */
/* The blobs of rail.h as bytes. Pure functions; what is read is checked for form, not for sense. */
#ifndef RIG_RAIL_BLOB_H
#define RIG_RAIL_BLOB_H

#include "fabric.h"
#include "rail.h"

enum { RIG_RAIL_PROVIDER = 8 }; /* bytes of a provider's name with its end */

enum rig_rail_blob_kind {
	RIG_BLOB_OFFER = 1,
	RIG_BLOB_ANSWER,
	RIG_BLOB_END,
};

/* Of an offer and of an answer. */
struct rig_rail_hello {
	char provider[RIG_RAIL_PROVIDER];
	uint64_t piece;
	struct rig_conn_address address;
	struct rig_fabric_target mailbox; /* eight bytes that the other side may write, for notes without
	bytes */
};

/* One direction of an end. */
struct rig_rail_shape {
	uint64_t n, hash;
};

/* Of an end. */
struct rig_rail_ticket {
	uint64_t id;
	uint32_t slot; /* how notes to this end name it */
	struct rig_rail_shape send, receive;
	struct rig_fabric_target inbound;
};

void rig_rail_blob_hello(
        struct rig_rail_blob *blob, enum rig_rail_blob_kind kind, const struct rig_rail_hello *hello);
void rig_rail_blob_ticket(struct rig_rail_blob *blob, const struct rig_rail_ticket *ticket);

/* -EPROTO with a text: another kind or version, or not as long as it says. */
int rig_rail_parse_hello(
        const struct rig_rail_blob *blob, enum rig_rail_blob_kind kind, struct rig_rail_hello *hello);
int rig_rail_parse_ticket(const struct rig_rail_blob *blob, struct rig_rail_ticket *ticket);

#endif
