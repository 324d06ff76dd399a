/* SPDX-License-Identifier: MIT */
/* The blobs of rails: what is taken is written again as the same bytes, and keeps its bounds. */
#include <stdlib.h>
#include <string.h>

#include "rail_blob.h"

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_same(const struct rig_rail_blob *a, const struct rig_rail_blob *b)
{
	CHECK(a->bytes == b->bytes && !memcmp(a->at, b->at, a->bytes));
}

static void try_hello(const struct rig_rail_blob *blob, enum rig_rail_blob_kind kind)
{
	struct rig_rail_hello hello;
	struct rig_rail_blob again;

	if (rig_rail_parse_hello(blob, kind, &hello))
		return;
	CHECK(hello.address.bytes <= RIG_FABRIC_ADDRESS);
	CHECK(memchr(hello.provider, 0, sizeof(hello.provider)));
	rig_rail_blob_hello(&again, kind, &hello);
	check_same(blob, &again);
}

static void try_ticket(const struct rig_rail_blob *blob)
{
	struct rig_rail_ticket ticket;
	struct rig_rail_blob again;

	if (rig_rail_parse_ticket(blob, &ticket))
		return;
	CHECK(ticket.slot <= UINT16_MAX);
	rig_rail_blob_ticket(&again, &ticket);
	check_same(blob, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct rig_rail_blob blob = {.bytes = length};

	/* A length beyond the blob is what a careless channel might hand over. */
	memcpy(blob.at, bytes, length < sizeof(blob.at) ? length : sizeof(blob.at));
	try_hello(&blob, RIG_BLOB_OFFER);
	try_hello(&blob, RIG_BLOB_ANSWER);
	try_ticket(&blob);
	return 0;
}
