/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "rail_flow.h"

#define FNV_START UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* Where a transfer lands. */
struct landing {
	int64_t from, to;
};

static int compare_landings(const void *a, const void *b)
{
	const struct landing *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* 1: two transfers of a run land on one byte; 0: none do; -ENOMEM. */
static int overlaps(const struct rig_remote_transfer *transfers, size_t n)
{
	struct landing *landings = calloc(n, sizeof(*landings));
	int found = 0;

	if (!landings)
		return rig_error_set(-ENOMEM, "no memory for %zu transfers", n);
	for (size_t i = 0; i < n; i++)
		landings[i] = (struct landing){transfers[i].dst, transfers[i].dst + transfers[i].length};
	qsort(landings, n, sizeof(*landings), compare_landings);
	for (size_t i = 1; i < n && !found; i++)
		found = landings[i].from < landings[i - 1].to;
	free(landings);
	return found;
}

/* One for both copies of each transfer. */
static uint64_t counts_at_once(size_t n)
{
	return 2 * n < RIG_FLOW_WINDOW ? 2 * n : RIG_FLOW_WINDOW;
}

int rig_flow_init(struct rig_flow *flow, const struct rig_remote_transfer *transfers, size_t n, size_t piece)
{
	int overlapping;

	*flow = (struct rig_flow){.n = n, .piece = piece};
	if (!n)
		return 0;
	overlapping = overlaps(transfers, n);
	if (overlapping < 0)
		return overlapping;
	flow->most = overlapping ? 1 : counts_at_once(n);
	flow->transfers = calloc(n, sizeof(*transfers));
	if (!flow->transfers)
		return rig_error_set(-ENOMEM, "no memory for %zu transfers", n);
	memcpy(flow->transfers, transfers, n * sizeof(*transfers));
	flow->from_bytes = rig_remote_copy_bytes(transfers, n, false);
	flow->to_bytes = rig_remote_copy_bytes(transfers, n, true);
	return 0;
}

void rig_flow_fini(struct rig_flow *flow)
{
	free(flow->transfers);
	*flow = (struct rig_flow){0};
}

static const struct rig_remote_transfer *transfer_of(const struct rig_flow *flow, uint64_t count)
{
	return &flow->transfers[(count - 1) % flow->n];
}

struct rig_flow_piece rig_flow_piece(const struct rig_flow *flow, uint64_t count, size_t offset)
{
	const struct rig_remote_transfer *transfer = transfer_of(flow, count);
	size_t copy = (size_t)((count - 1) / flow->n % 2), left = (size_t)transfer->length - offset;

	return (struct rig_flow_piece){
	        .from = copy * flow->from_bytes + (size_t)transfer->src + offset,
	        .to = copy * flow->to_bytes + (size_t)transfer->dst + offset,
	        .bytes = left < flow->piece ? left : flow->piece,
	        .last = left <= flow->piece,
	};
}

static uint64_t pieces_of(const struct rig_flow *flow, uint64_t count)
{
	size_t length = (size_t)transfer_of(flow, count)->length;

	return length / flow->piece + (length % flow->piece != 0);
}

bool rig_flow_in_window(const struct rig_flow *flow, uint64_t count)
{
	return count > flow->done && count - flow->done <= RIG_FLOW_WINDOW;
}

bool rig_flow_may_begin(const struct rig_flow *flow, uint64_t count)
{
	return count > flow->done && count - flow->done <= flow->most;
}

int rig_flow_mark(struct rig_flow *flow, uint64_t count)
{
	uint64_t *next = &flow->pieces[count % RIG_FLOW_WINDOW];

	if (!rig_flow_in_window(flow, count) || *next >= pieces_of(flow, count))
		return -EPROTO;
	++*next;
	if (count != flow->done + 1)
		return 0;
	while (*next && *next == pieces_of(flow, flow->done + 1)) {
		*next = 0;
		flow->done++;
		next = &flow->pieces[(flow->done + 1) % RIG_FLOW_WINDOW];
	}
	return 0;
}

uint64_t rig_flow_widen(const struct rig_flow *flow, uint32_t low, unsigned bits)
{
	uint64_t ahead = (low - flow->done) & ((UINT64_C(1) << bits) - 1);

	return ahead && ahead <= RIG_FLOW_WINDOW ? flow->done + ahead : 0;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	for (unsigned i = 0; i < sizeof(value); i++)
		hash = (hash ^ (value >> 8 * i & 0xff)) * FNV_PRIME;
	return hash;
}

uint64_t rig_flow_hash(const struct rig_flow *flow)
{
	uint64_t hash = mix(FNV_START, flow->n);

	for (size_t i = 0; i < flow->n; i++) {
		hash = mix(hash, (uint64_t)flow->transfers[i].src);
		hash = mix(hash, (uint64_t)flow->transfers[i].dst);
		hash = mix(hash, (uint64_t)flow->transfers[i].length);
	}
	return hash;
}
