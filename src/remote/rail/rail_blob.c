/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "rail_blob.h"

/* Raised with every change of a blob or of what a note means. */
#define VERSION 2u

struct writer {
	struct rig_rail_blob *blob;
};

struct reader {
	const struct rig_rail_blob *blob;
	size_t at;
	bool bad;
};

static void put_bytes(struct writer *w, const void *bytes, size_t n)
{
	/* Every blob's size is fixed below and fits. */
	memcpy(w->blob->at + w->blob->bytes, bytes, n);
	w->blob->bytes += n;
}

static void put(struct writer *w, uint64_t value)
{
	uint8_t bytes[sizeof(value)];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	put_bytes(w, bytes, sizeof(bytes));
}

static void take_bytes(struct reader *r, void *bytes, size_t n)
{
	if (r->blob->bytes > sizeof(r->blob->at) || n > r->blob->bytes - r->at) {
		r->bad = true;
		memset(bytes, 0, n);
		return;
	}
	memcpy(bytes, r->blob->at + r->at, n);
	r->at += n;
}

static uint64_t take(struct reader *r)
{
	uint8_t bytes[sizeof(uint64_t)];
	uint64_t value = 0;

	take_bytes(r, bytes, sizeof(bytes));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	return value;
}

static struct writer begin(struct rig_rail_blob *blob, enum rig_rail_blob_kind kind)
{
	struct writer w = {blob};

	blob->bytes = 0;
	put_bytes(&w, "rig-rail", 8);
	put(&w, VERSION);
	put(&w, kind);
	return w;
}

static int begin_reading(struct reader *r, enum rig_rail_blob_kind kind)
{
	char mark[8];
	uint64_t version, is;

	take_bytes(r, mark, sizeof(mark));
	version = take(r);
	is = take(r);
	if (r->bad || memcmp(mark, "rig-rail", sizeof(mark)))
		return rig_error_set(-EPROTO, "no blob of a rail");
	if (version != VERSION)
		return rig_error_set(-EPROTO, "the other side's rails have version %llu, here it is %u",
		        (unsigned long long)version, VERSION);
	if (is != kind)
		return rig_error_set(-EPROTO, "a blob of kind %llu where %u is expected",
		        (unsigned long long)is, (unsigned)kind);
	return 0;
}

static int end_reading(const struct reader *r)
{
	if (r->bad || r->at != r->blob->bytes)
		return rig_error_set(
		        -EPROTO, "a blob of a rail with %zu bytes, not what its kind has", r->blob->bytes);
	return 0;
}

static void put_target(struct writer *w, const struct rig_fabric_target *target)
{
	put(w, target->address);
	put(w, target->key);
}

static struct rig_fabric_target take_target(struct reader *r)
{
	struct rig_fabric_target target = {.address = take(r)};

	target.key = take(r);
	return target;
}

void rig_rail_blob_hello(
        struct rig_rail_blob *blob, enum rig_rail_blob_kind kind, const struct rig_rail_hello *hello)
{
	struct writer w = begin(blob, kind);

	put_bytes(&w, hello->provider, sizeof(hello->provider));
	put(&w, hello->piece);
	put_bytes(&w, hello->address.token, sizeof(hello->address.token));
	put_bytes(&w, hello->address.key, sizeof(hello->address.key));
	put(&w, hello->address.aes);
	put(&w, hello->address.bytes);
	put_bytes(&w, hello->address.address, sizeof(hello->address.address));
	put(&w, hello->address.bell_pid);
	put(&w, hello->address.bell_fd);
	put_target(&w, &hello->mailbox);
}

int rig_rail_parse_hello(
        const struct rig_rail_blob *blob, enum rig_rail_blob_kind kind, struct rig_rail_hello *hello)
{
	struct reader r = {.blob = blob};
	uint64_t bytes, aes;
	int code = begin_reading(&r, kind);

	if (code)
		return code;
	take_bytes(&r, hello->provider, sizeof(hello->provider));
	hello->piece = take(&r);
	take_bytes(&r, hello->address.token, sizeof(hello->address.token));
	take_bytes(&r, hello->address.key, sizeof(hello->address.key));
	aes = take(&r);
	bytes = take(&r);
	take_bytes(&r, hello->address.address, sizeof(hello->address.address));
	hello->address.bell_pid = take(&r);
	hello->address.bell_fd = take(&r);
	hello->mailbox = take_target(&r);
	code = end_reading(&r);
	if (code)
		return code;
	if (bytes > sizeof(hello->address.address) || aes > 1 ||
	        !memchr(hello->provider, 0, sizeof(hello->provider)))
		return rig_error_set(-EPROTO, "a blob of a rail whose lengths are out of bounds");
	hello->address.aes = aes;
	hello->address.bytes = (uint32_t)bytes;
	return 0;
}

void rig_rail_blob_ticket(struct rig_rail_blob *blob, const struct rig_rail_ticket *ticket)
{
	struct writer w = begin(blob, RIG_BLOB_END);

	put(&w, ticket->id);
	put(&w, ticket->slot);
	put(&w, ticket->send.n);
	put(&w, ticket->send.hash);
	put(&w, ticket->receive.n);
	put(&w, ticket->receive.hash);
	put_target(&w, &ticket->inbound);
}

int rig_rail_parse_ticket(const struct rig_rail_blob *blob, struct rig_rail_ticket *ticket)
{
	struct reader r = {.blob = blob};
	uint64_t slot;
	int code = begin_reading(&r, RIG_BLOB_END);

	if (code)
		return code;
	ticket->id = take(&r);
	slot = take(&r);
	ticket->send.n = take(&r);
	ticket->send.hash = take(&r);
	ticket->receive.n = take(&r);
	ticket->receive.hash = take(&r);
	ticket->inbound = take_target(&r);
	code = end_reading(&r);
	if (code)
		return code;
	if (slot > UINT16_MAX)
		return rig_error_set(-EPROTO, "a blob of a rail whose slot is out of bounds");
	ticket->slot = (uint32_t)slot;
	return 0;
}
