/* SPDX-License-Identifier: MIT */
#include "rvx_copier.h"

#include <string.h>

#define PAGE_BYTES 4096u
#define NOWHERE    0x00E0000000000000ull
#define PART_COST  64u /* what looking up a part costs, in bytes copied */

/* One end of a part of a row: either a host address or a bus address that takes transfers. */
struct end {
	uint8_t *host;
	uint64_t bus;
};

void rvx_copier_init(struct rvx_copier *copier, const struct rvx_space *space)
{
	memset(copier, 0, sizeof(*copier));
	copier->space = space;
}

void rvx_copier_reset(struct rvx_copier *copier)
{
	rvx_engine_reset(&copier->engine);
	rvx_copier_forget(copier);
}

void rvx_copier_forget(struct rvx_copier *copier)
{
	copier->from.bytes = 0;
	copier->to.bytes = 0;
}

void rvx_copier_start(struct rvx_copier *copier)
{
	const struct rvx_engine *engine = &copier->engine;
	uint32_t fill = engine->word[RVX1_COPIER_FILL / 4];

	copier->job = (struct rvx_copier_job){
	        .src = rvx_engine_get64(engine, RVX1_COPIER_SRC),
	        .dst = rvx_engine_get64(engine, RVX1_COPIER_DST),
	        .row_bytes = rvx_engine_get64(engine, RVX1_COPIER_ROW_BYTES),
	        .rows = rvx_engine_get64(engine, RVX1_COPIER_ROWS),
	        .src_pitch = rvx_engine_get64(engine, RVX1_COPIER_SRC_PITCH),
	        .dst_pitch = rvx_engine_get64(engine, RVX1_COPIER_DST_PITCH),
	        .fill = (fill & RVX1_FILL_ON) != 0,
	        .byte = (uint8_t)fill,
	};
	copier->row = 0;
	copier->done = 0;
	rvx_copier_forget(copier);
	if (!copier->job.rows || !copier->job.row_bytes)
		rvx_engine_finish(&copier->engine);
}

static bool refuse(struct rvx_copier *copier, uint32_t code, enum rvx1_access access, uint64_t va)
{
	struct rvx_refusal refusal = {.code = code, .access = access, .address = va};

	rvx_engine_refuse(&copier->engine, &refusal);
	return false;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --fault dma-unmapped: what va would be if the table's entry led nowhere. Above what any IOMMU translates,
   and below what the processor reaches. */
static void lead_astray(uint64_t va, struct rvx_extent *extent)
{
	*extent = (struct rvx_extent){
	        .first = va, .bytes = UINT64_MAX - va, .address = NOWHERE, .system = true};
}

/* Resolves va and shortens *n to what can be done there in one go. False: faulted. */
static bool resolve(struct rvx_copier *copier, struct rvx_extent *extent, uint64_t va,
        enum rvx1_access access, uint64_t *n, struct end *end)
{
	const struct rvx_space *space = copier->space;
	bool writes = access == RVX1_ACCESS_WRITE;

	if (writes && copier->job.astray) {
		lead_astray(va, extent);
	} else if (!rvx_extent_serves(extent, va, access)) {
		extent->bytes = 0;
		if (!rvx_mmu_walk(space->memory, space->root, va, access, extent)) {
			extent->bytes = 0;
			return refuse(copier, RVX1_FAULT_PAGE, access, va);
		}
	}
	uint64_t offset = va - extent->first;
	*n = least(*n, extent->bytes - offset);
	if (!extent->system) {
		end->host = space->memory->host + extent->address + offset;
		return true;
	}
	end->bus = extent->address + offset;
	end->host = space->dma->at(space->dma->ctx, end->bus, *n, !writes, writes);
	if (end->host)
		return true;
	/* Not in one mapping as a whole; its first page may still be. */
	uint64_t page = least(*n, PAGE_BYTES - end->bus % PAGE_BYTES);
	end->host = space->dma->at(space->dma->ctx, end->bus, page, !writes, writes);
	*n = end->host ? page : least(*n, RVX_COPIER_BOUNCE);
	return true;
}

/*
 * One transfer, shortened to the page where a longer one failed, so that the fault's address is the page that
 * does not answer. False: faulted.
 */
static bool carry(struct rvx_copier *copier, const struct end *end, uint8_t *bytes, uint64_t *n, uint64_t va,
        enum rvx1_access access)
{
	const struct rvx_dma *dma = copier->space->dma;
	uint64_t page = least(*n, PAGE_BYTES - end->bus % PAGE_BYTES);

	for (;;) {
		int err = access == RVX1_ACCESS_READ ? dma->read(dma->ctx, end->bus, bytes, *n)
		                                     : dma->write(dma->ctx, end->bus, bytes, *n);
		if (!err)
			return true;
		if (*n == page)
			return refuse(copier, RVX1_FAULT_BUS, access, va);
		*n = page;
	}
}

/* Fetches the source of a part: *from becomes an address here. False: faulted. */
static bool fetch(struct rvx_copier *copier, uint64_t va, uint64_t *n, uint8_t **from)
{
	struct end end = {0};

	if (copier->job.fill) {
		*from = NULL;
		return true;
	}
	if (!resolve(copier, &copier->from, va, RVX1_ACCESS_READ, n, &end))
		return false;
	*from = end.host ? end.host : copier->bounce;
	return end.host || carry(copier, &end, copier->bounce, n, va, RVX1_ACCESS_READ);
}

/* Copies up to `budget` bytes of the present row; what was done, or 0: faulted. */
static uint64_t copy_part(struct rvx_copier *copier, uint64_t budget)
{
	const struct rvx_copier_job *job = &copier->job;
	uint64_t src = job->src + copier->row * job->src_pitch + copier->done;
	uint64_t dst = job->dst + copier->row * job->dst_pitch + copier->done;
	uint64_t n = least(job->row_bytes - copier->done, budget);
	struct end to = {0};
	uint8_t *from;

	if (!resolve(copier, &copier->to, dst, RVX1_ACCESS_WRITE, &n, &to) || !fetch(copier, src, &n, &from))
		return 0;
	if (!to.host) {
		if (!from)
			memset(copier->bounce, job->byte, n);
		else if (from != copier->bounce)
			memcpy(copier->bounce, from, n);
		return carry(copier, &to, copier->bounce, &n, dst, RVX1_ACCESS_WRITE) ? n : 0;
	}
	if (from)
		memmove(to.host, from, n);
	else
		memset(to.host, job->byte, n);
	return n;
}

void rvx_copier_step(struct rvx_copier *copier, uint64_t budget)
{
	while (rvx_engine_state(&copier->engine) == RVX1_ENGINE_RUNNING && budget) {
		uint64_t n = copy_part(copier, budget);
		if (!n)
			return;
		budget -= least(budget, n + PART_COST);
		copier->done += n;
		if (copier->done < copier->job.row_bytes)
			continue;
		copier->done = 0;
		if (++copier->row == copier->job.rows) {
			__atomic_thread_fence(
			        __ATOMIC_SEQ_CST); /* bytes before DONE, for whoever sees DONE */
			rvx_engine_finish(&copier->engine);
		}
	}
}
