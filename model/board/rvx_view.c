/* SPDX-License-Identifier: MIT */
/* What a thread sees through its bus: shared memory, the MMU, its CSRs. */
#include "rvx_compute.h"
#include "rvx_mmu.h"

#include <stdlib.h>
#include <string.h>

static enum rvx1_access access_of(enum rv_access access)
{
	switch (access) {
	case RV_FETCH:
		return RVX1_ACCESS_FETCH;
	case RV_STORE:
		return RVX1_ACCESS_WRITE;
	case RV_LOAD:
	default:
		return RVX1_ACCESS_READ;
	}
}

static enum rv_map deny(struct rvx_compute *compute, uint32_t code)
{
	compute->denied = code;
	return RV_MAP_FAULT;
}

/* Section 11: rounded up to pages, because that is what protection comes in. */
static enum rv_map map_shared(
        struct rvx_compute *compute, uint64_t offset, enum rv_access access, void **host)
{
	if (access == RV_FETCH || offset >= compute->job.shared)
		return deny(compute, RVX1_FAULT_PAGE);
	*host = compute->shared + offset;
	return RV_MAP_HOST;
}

/* A copy of a code page that has no address here. */
static enum rv_map map_copy(struct rvx_compute *compute, uint64_t page_va, uint64_t bus, void **host)
{
	struct rvx_code *code = &compute->code;
	const struct rvx_dma *dma = compute->space->dma;
	unsigned i = code->next;

	if (!code->bytes[i])
		code->bytes[i] = malloc(RV_PAGE_SIZE);
	else
		rv_bus_flush(compute->bus, code->va[i], RV_PAGE_SIZE);
	if (!code->bytes[i] || dma->read(dma->ctx, bus, code->bytes[i], RV_PAGE_SIZE))
		return deny(compute, RVX1_FAULT_BUS);
	code->va[i] = page_va;
	code->next = (i + 1) % RVX_CODE_PAGES;
	*host = code->bytes[i];
	return RV_MAP_HOST;
}

static enum rv_map map_system(
        struct rvx_compute *compute, uint64_t page_va, uint64_t bus, enum rv_access access, void **host)
{
	const struct rvx_dma *dma = compute->space->dma;
	bool writes = access == RV_STORE;

	*host = dma->at(dma->ctx, bus, RV_PAGE_SIZE, true, writes); /* atomics are stores that also read */
	if (*host)
		return RV_MAP_HOST;
	return access == RV_FETCH ? map_copy(compute, page_va, bus, host) : RV_MAP_MMIO;
}

static enum rv_map translate(void *ctx, uint64_t page_va, enum rv_access access, void **host)
{
	struct rvx_compute *compute = ctx;
	const struct rvx_space *space = compute->space;
	struct rvx_extent extent;

	if (page_va - RVX1_SHARED_BASE < RVX1_MAX_SHARED)
		return map_shared(compute, page_va - RVX1_SHARED_BASE, access, host);
	if (access == RV_FETCH && page_va == RVX1_RETURN)
		return deny(compute, RVX1_FAULT_PAGE); /* section 11: jumping there ends a thread */
	if (!rvx_mmu_walk(space->memory, space->root, page_va, access_of(access), &extent))
		return deny(compute, RVX1_FAULT_PAGE);
	uint64_t address = extent.address + (page_va - extent.first);
	if (extent.system)
		return map_system(compute, page_va, address, access, host);
	*host = space->memory->host + address;
	return RV_MAP_HOST;
}

/* The bus address of an access that takes a transfer. */
static bool bus_of(struct rvx_compute *compute, uint64_t va, enum rvx1_access access, uint64_t *bus)
{
	struct rvx_extent extent;

	if (!rvx_mmu_walk(compute->space->memory, compute->space->root, va, access, &extent) ||
	        !extent.system)
		return false;
	*bus = extent.address + (va - extent.first);
	return true;
}

static bool load(void *ctx, uint64_t va, unsigned width, uint64_t *value)
{
	struct rvx_compute *compute = ctx;
	const struct rvx_dma *dma = compute->space->dma;
	uint64_t bus;

	*value = 0;
	compute->transfers++;
	compute->denied = RVX1_FAULT_BUS;
	return bus_of(compute, va, RVX1_ACCESS_READ, &bus) && dma->read(dma->ctx, bus, value, width) == 0;
}

static bool store(void *ctx, uint64_t va, unsigned width, uint64_t value)
{
	struct rvx_compute *compute = ctx;
	const struct rvx_dma *dma = compute->space->dma;
	uint64_t bus;

	compute->transfers++;
	compute->denied = RVX1_FAULT_BUS;
	return bus_of(compute, va, RVX1_ACCESS_WRITE, &bus) && dma->write(dma->ctx, bus, &value, width) == 0;
}

static bool csr_read(void *ctx, struct rv_hart *hart, unsigned csr, uint64_t *value)
{
	const struct rvx_compute *compute = ctx;
	const struct rvx_thread *thread = hart->user;
	const struct {
		unsigned first;
		const uint32_t *of;
	} triples[] = {
	        {RVX1_CSR_THREAD_ID, thread->index},
	        {RVX1_CSR_GROUP_ID, compute->at},
	        {RVX1_CSR_GROUP_SIZE, compute->job.group},
	        {RVX1_CSR_GRID_SIZE, compute->job.grid},
	};

	if (csr == RVX1_CSR_SHARED_BYTES) {
		*value = compute->job.shared;
		return true;
	}
	for (unsigned i = 0; i < sizeof(triples) / sizeof(triples[0]); i++) {
		if (csr - triples[i].first >= 3)
			continue;
		*value = triples[i].of[csr - triples[i].first];
		return true;
	}
	return false;
}

static uint64_t read_time(void *ctx)
{
	const struct rvx_compute *compute = ctx;

	return rvx_clock_read(compute->clock);
}

const struct rv_bus_ops rvx_view_ops = {
        .translate = translate,
        .load = load,
        .store = store,
        .csr_read = csr_read,
        .time = read_time,
};

void rvx_view_fini(struct rvx_compute *compute)
{
	for (unsigned i = 0; i < RVX_CODE_PAGES; i++)
		free(compute->code.bytes[i]);
	memset(&compute->code, 0, sizeof(compute->code));
}
