/* SPDX-License-Identifier: MIT */
/* Any bytes as each of the other messages, the first byte says which, as a key file's line, and as the peer's
   part of the proof: what is accepted is what a writer wrote, byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "rmt_chan.h"
#include "rmt_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void demand_same(struct rig_rmt_out *out, const uint8_t *bytes, size_t n)
{
	if (!out->bad && (out->used != n || memcmp(out->at, bytes, n) != 0))
		abort();
	rig_rmt_out_free(out);
}

static void try_join(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_out out = {0};
	struct rig_rmt_join join;

	if (rig_rmt_join_parse(bytes, n, &join))
		return;
	rig_rmt_join_put(&out, &join);
	demand_same(&out, bytes, n);
}

static void try_answer(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_out out = {0};
	struct rig_rmt_answer answer;

	if (rig_rmt_answer_parse(&in, &answer))
		return;
	rig_rmt_answer_put(&out, &answer);
	rig_rmt_put_bytes(&out, in.at, in.left);
	demand_same(&out, bytes, n);
}

static void try_facts(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_out out = {0};
	static struct rig_rmt_facts facts;

	if (rig_rmt_facts_parse(&in, &facts))
		return;
	rig_rmt_facts_put(&out, &facts);
	demand_same(&out, bytes, n);
}

static void try_region(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_out out = {0};
	struct rig_rmt_region region;

	if (rig_rmt_region_parse(&in, &region))
		return;
	rig_rmt_region_put(&out, &region);
	demand_same(&out, bytes, n);
}

static void try_entry(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_out out = {0};
	struct rig_rmt_entry entry;

	if (rig_rmt_entry_parse(&in, &entry))
		return;
	rig_rmt_entry_put(&out, &entry);
	demand_same(&out, bytes, n);
}

static void try_reached(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_out out = {0};
	static struct rig_rmt_reached reached;

	if (rig_rmt_reached_parse(bytes, n, &reached))
		return;
	rig_rmt_reached_put(&out, &reached);
	demand_same(&out, bytes, n);
}

static void try_fetch(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_out out = {0};
	struct rig_rmt_fetch fetch;

	if (rig_rmt_fetch_parse(bytes, n, &fetch))
		return;
	rig_rmt_fetch_put(&out, &fetch);
	demand_same(&out, bytes, n);
}

static void try_want(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_out out = {0};
	struct rig_rmt_want want;

	if (rig_rmt_want_parse(bytes, n, &want))
		return;
	rig_rmt_want_put(&out, &want);
	demand_same(&out, bytes, n);
}

static void try_claim(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_out out = {0};
	struct rig_rmt_claim claim;

	if (rig_rmt_claim_parse(bytes, n, &claim))
		return;
	rig_rmt_claim_put(&out, &claim);
	demand_same(&out, bytes, n);
}

static void try_number(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_out out = {0};
	uint32_t number;

	if (rig_rmt_number_parse(bytes, n, &number))
		return;
	rig_rmt_put32(&out, number);
	demand_same(&out, bytes, n);
}

static void try_rail(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_out out = {0};
	struct rig_rmt_rail rail;

	if (rig_rmt_rail_parse(&in, &rail))
		return;
	rig_rmt_rail_put(&out, &rail, rail.transfers, rail.transfers + rail.nsend);
	demand_same(&out, bytes, n);
	free(rail.transfers);
}

static void try_key(const uint8_t *bytes, size_t n)
{
	struct rig_rmt_key key;

	(void)rig_rmt_key_parse((const char *)bytes, n, &key);
	if (n >= 4)
		(void)rig_rmt_record_bytes((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
		                           (uint32_t)bytes[2] << 8 | bytes[3]);
}

/* Who does not have the key is believed by neither side. */
static void try_proof(const uint8_t *bytes, size_t n)
{
	const struct rig_rmt_key key = {{1}};
	uint8_t in[RIG_RMT_REPLY + RIG_RMT_PROOF] = {0}, out[RIG_RMT_REPLY];
	struct rig_rmt_pake p;

	memcpy(in, bytes, n < sizeof(in) ? n : sizeof(in));
	if (rig_rmt_pake_init(&p, false, &key))
		return;
	if (!rig_rmt_pake_reply(&p, in, out) && !rig_rmt_pake_check(&p, in + RIG_RMT_REPLY, out))
		abort();
	rig_rmt_pake_fini(&p);
	if (rig_rmt_pake_init(&p, true, &key))
		return;
	rig_rmt_pake_hello(&p, out);
	if (!rig_rmt_pake_prove(&p, in, out) && !rig_rmt_pake_end(&p, in + RIG_RMT_REPLY))
		abort();
	rig_rmt_pake_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static void (*const tries[])(const uint8_t *, size_t) = {try_join, try_answer, try_facts, try_region,
	        try_entry, try_reached, try_fetch, try_rail, try_key, try_proof, try_want, try_claim,
	        try_number};

	if (length)
		tries[bytes[0] % (sizeof(tries) / sizeof(tries[0]))](bytes + 1, length - 1);
	return 0;
}
