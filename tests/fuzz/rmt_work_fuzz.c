/* SPDX-License-Identifier: MIT */
/* Any bytes as a message of work: what is accepted is what a writer wrote, byte for byte, and keeps to every
   bound that the agent relies on. */
#include <stdlib.h>
#include <string.h>

#include "rmt_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void demand(bool holds)
{
	if (!holds)
		abort();
}

static void demand_part(const struct rig_rmt_work *work, uint32_t i)
{
	const struct rig_rmt_part *part = &work->parts[i];
	uint64_t all;
	uint32_t k;

	for (k = 0; k < part->nafter; k++)
		demand(part->after[k] < i);
	if (part->kind != RIG_COPY)
		return;
	demand(part->rows && part->row_bytes && part->dst.where != RIG_RMT_FOREIGN &&
	        part->dst.where != RIG_RMT_FOREIGN_PARCEL);
	if (part->dst.where != RIG_RMT_HERE || (!part->fill && part->src.where != RIG_RMT_HERE))
		demand(!__builtin_mul_overflow(part->rows, part->row_bytes, &all) &&
		        all <= RIG_RMT_LOCAL_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct rig_rmt_out out = {0};
	struct rig_rmt_work work;
	uint32_t i;

	if (rig_rmt_work_parse(bytes, length, &work))
		return 0;
	demand(work.nwaits <= RIG_RMT_WAITS && work.nparts <= RIG_RMT_PARTS);
	demand(work.local_in <= RIG_RMT_LOCAL_BYTES && work.local_out <= RIG_RMT_LOCAL_BYTES);
	for (i = 0; i < work.nparts; i++)
		demand_part(&work, i);
	rig_rmt_work_put(&out, &work);
	demand(out.bad || (out.used == length && !memcmp(out.at, bytes, length)));
	rig_rmt_out_free(&out);
	rig_rmt_work_free(&work);
	return 0;
}
