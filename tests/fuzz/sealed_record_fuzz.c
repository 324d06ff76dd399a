/* SPDX-License-Identifier: MIT */
/*
 * Records of sealed connections: 24 bytes are a head, which is sealed with a payload; the rest is added to
 * the record's bytes. What was changed does not open and leaves zeros, what was not does, and no head
 * reaches beyond the memory that it is for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sealed.h"

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

enum { PAYLOAD = 200, LENT = 100, MOST = RIG_SEALED_HEAD + RIG_SEALED_MOST + RIG_SEALED_TAG };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static struct rig_sealed_way out, in, unused[2];
static struct rig_sealed_targets targets;
static uint64_t key;
static uint8_t lent[LENT];

static void begin(void)
{
	struct rig_conn_address address[2] = {{.aes = false}, {.aes = false}};
	struct rig_sealed_keys keys[2];

	for (int i = 0; i < 2; i++) {
		CHECK(!rig_sealed_keys_make(&keys[i]));
		memcpy(address[i].key, keys[i].public_key, sizeof(address[i].key));
	}
	CHECK(!rig_sealed_ways(&keys[0], false, &address[0], &address[1], &unused[0], &in));
	CHECK(!rig_sealed_ways(&keys[1], true, &address[1], &address[0], &out, &unused[1]));
	rig_sealed_targets_init(&targets);
	CHECK(!rig_sealed_target_add(&targets, lent, sizeof(lent), &key));
}

static void look_for(const struct rig_sealed_head *head)
{
	bool within = head->offset <= LENT && head->bytes <= LENT - head->offset;

	CHECK(rig_sealed_target_find(&targets, key, head->offset, head->bytes) ==
	        (within ? lent + head->offset : NULL));
	CHECK(head->key == key || !rig_sealed_target_find(&targets, head->key, head->offset, head->bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static uint8_t record[MOST], changed[MOST], to[RIG_SEALED_MOST];
	uint8_t payload[PAYLOAD] = {1, 2, 3};
	struct rig_sealed_head head, read;
	size_t n, claimed;

	if (length < RIG_SEALED_HEAD)
		return 0;
	if (!out.cipher)
		begin();
	rig_sealed_parse(bytes, &head);
	look_for(&head);
	head.bytes %= PAYLOAD + 1;
	look_for(&head);
	n = (size_t)RIG_SEALED_HEAD + head.bytes + RIG_SEALED_TAG;
	CHECK(!rig_sealed_seal(&out, &head, payload, record));
	rig_sealed_parse(record, &read);
	CHECK(read.bytes == head.bytes && read.last == head.last && read.note == head.note &&
	        read.key == head.key && read.offset == head.offset);
	memcpy(changed, record, n);
	for (size_t i = RIG_SEALED_HEAD; i < length; i++)
		changed[(i - RIG_SEALED_HEAD) % n] ^= bytes[i];
	claimed = rig_sealed_record_bytes(changed);
	CHECK(claimed <= sizeof(changed));
	if (claimed && memcmp(changed, record, n) != 0) {
		memset(to, 0xff, sizeof(to));
		CHECK(rig_sealed_open(&in, changed, to) == -EBADMSG);
		for (size_t i = 0; i < claimed - RIG_SEALED_HEAD - RIG_SEALED_TAG; i++)
			CHECK(!to[i]);
	}
	CHECK(!rig_sealed_open(&in, record, to));
	CHECK(!memcmp(to, payload, head.bytes));
	return 0;
}
