/* SPDX-License-Identifier: MIT */
/*
 * What notes do to a direction: pairs of bytes are the low bits of counts in any order, beside a plain
 * model that remembers every piece. Nothing is counted twice, nothing before its time, and done only grows.
 */
#include <stdlib.h>

#include "rail_flow.h"

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { BITS = 15, TRANSFERS = 3, COUNTS = 1 << 13, STEP = 16 };

static const struct rig_remote_transfer transfers[TRANSFERS] = {{0, 0, 1}, {0, 0, 33}, {5, 9, 16}};
static const unsigned pieces[TRANSFERS] = {1, 3, 1};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static unsigned char got[COUNTS];
	uint64_t done = 0;
	struct rig_flow flow;

	memset(got, 0, sizeof(got));
	CHECK(!rig_flow_init(&flow, transfers, TRANSFERS, STEP));
	for (size_t i = 0; i + 1 < length && done + RIG_FLOW_WINDOW + 1 < COUNTS; i += 2) {
		uint32_t low = (uint32_t)(bytes[i] | bytes[i + 1] << 8) & ((1u << BITS) - 1);
		/* The high bit: a count near the last, so that inputs get anywhere. */
		uint64_t count =
		        bytes[i + 1] & 0x80 ? done + 1 + bytes[i] % 4 : rig_flow_widen(&flow, low, BITS);
		bool right = count > done && count <= done + RIG_FLOW_WINDOW &&
		             got[count] < pieces[(count - 1) % TRANSFERS];

		CHECK(!count || (count & ((1u << BITS) - 1)) == low || bytes[i + 1] & 0x80);
		if (!count)
			continue;
		CHECK(!rig_flow_mark(&flow, count) == right);
		got[count] = (unsigned char)(got[count] + right);
		while (got[done + 1] == pieces[done % TRANSFERS])
			done++;
		CHECK(flow.done == done);
	}
	rig_flow_fini(&flow);
	return 0;
}
