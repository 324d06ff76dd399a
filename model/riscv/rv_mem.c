/* SPDX-License-Identifier: MIT */
/* The slow way to memory: fills the soft TLBs, splits misaligned accesses, calls the MMIO callbacks. */
#include <string.h>
#include "rv_core.h"

#define MAX_WIDTH 8u

void *rv_mem_host(struct rv_bus *bus, uint64_t va, enum rv_access access, enum rv_map *map)
{
	uint64_t page = va & ~RV_PAGE_MASK;
	struct rv_tlb *tlb = access == RV_STORE ? bus->stores : bus->loads;
	struct rv_tlb *entry = &tlb[page / RV_PAGE_SIZE % RV_TLB_ENTRIES];
	void *host;

	if (entry->tag != page) {
		*map = bus->ops->translate(bus->ctx, page, access, &host);
		if (*map != RV_MAP_HOST)
			return NULL;
		entry->tag = page;
		entry->add = (uintptr_t)host - (uintptr_t)page;
	}
	*map = RV_MAP_HOST;
	return (void *)(entry->add + (uintptr_t)va);
}

/* Up to 8 bytes of guest memory: `width` bytes at `va`, `first` of them before the end of the page. */
struct span {
	uint64_t va;
	unsigned width;
	unsigned first;
};

static struct span span_of(uint64_t va, unsigned width)
{
	uint64_t room = RV_PAGE_SIZE - (va & RV_PAGE_MASK);

	return (struct span){va, width, room < width ? (unsigned)room : width};
}

/* One access inside one page by callback: whole when aligned, else byte by byte. */
static enum rv_done mmio_load(
        struct rv_bus *bus, struct rv_hart *hart, uint64_t va, unsigned width, uint8_t *bytes)
{
	unsigned step = va % width == 0 && (width & (width - 1)) == 0 ? width : 1;
	uint64_t value = 0;

	for (unsigned i = 0; i < width; i += step) {
		if (!bus->ops->load || !bus->ops->load(bus->ctx, va + i, step, &value))
			return rv_fault(hart, va + i, RV_LOAD);
		memcpy(bytes + i, &value, step);
	}
	return RV_DONE;
}

static enum rv_done mmio_store(
        struct rv_bus *bus, struct rv_hart *hart, uint64_t va, unsigned width, const uint8_t *bytes)
{
	unsigned step = va % width == 0 && (width & (width - 1)) == 0 ? width : 1;

	for (unsigned i = 0; i < width; i += step) {
		uint64_t value = 0;

		memcpy(&value, bytes + i, step);
		if (!bus->ops->store || !bus->ops->store(bus->ctx, va + i, step, value))
			return rv_fault(hart, va + i, RV_STORE);
	}
	return RV_DONE;
}

/* Host memory of an aligned width is one access, so that it is never torn; anything else goes by bytes. */
static void copy_in(uint8_t *bytes, const void *host, unsigned width)
{
	uint64_t value = 0;

	if ((uintptr_t)host % width != 0 || (width & (width - 1)) != 0) {
		for (unsigned i = 0; i < width; i++)
			bytes[i] = __atomic_load_n((const uint8_t *)host + i, __ATOMIC_RELAXED);
		return;
	}
	switch (width) {
	case 1:
		value = __atomic_load_n((const uint8_t *)host, __ATOMIC_RELAXED);
		break;
	case 2:
		value = __atomic_load_n((const uint16_t *)host, __ATOMIC_RELAXED);
		break;
	case 4:
		value = __atomic_load_n((const uint32_t *)host, __ATOMIC_RELAXED);
		break;
	default:
		value = __atomic_load_n((const uint64_t *)host, __ATOMIC_RELAXED);
		break;
	}
	memcpy(bytes, &value, width);
}

static void copy_out(void *host, const uint8_t *bytes, unsigned width)
{
	uint64_t value = 0;

	if ((uintptr_t)host % width != 0 || (width & (width - 1)) != 0) {
		for (unsigned i = 0; i < width; i++)
			__atomic_store_n((uint8_t *)host + i, bytes[i], __ATOMIC_RELAXED);
		return;
	}
	memcpy(&value, bytes, width);
	switch (width) {
	case 1:
		__atomic_store_n((uint8_t *)host, (uint8_t)value, __ATOMIC_RELAXED);
		break;
	case 2:
		__atomic_store_n((uint16_t *)host, (uint16_t)value, __ATOMIC_RELAXED);
		break;
	case 4:
		__atomic_store_n((uint32_t *)host, (uint32_t)value, __ATOMIC_RELAXED);
		break;
	default:
		__atomic_store_n((uint64_t *)host, value, __ATOMIC_RELAXED);
		break;
	}
}

static enum rv_done load_part(
        struct rv_bus *bus, struct rv_hart *hart, uint64_t va, unsigned width, uint8_t *bytes)
{
	enum rv_map map;
	void *host = rv_mem_host(bus, va, RV_LOAD, &map);

	if (map == RV_MAP_MMIO)
		return mmio_load(bus, hart, va, width, bytes);
	if (!host)
		return rv_fault(hart, va, RV_LOAD);
	copy_in(bytes, host, width);
	return RV_DONE;
}

static enum rv_done load(struct rv_bus *bus, struct rv_hart *hart, struct span span, uint64_t *value)
{
	uint8_t bytes[MAX_WIDTH] = {0};
	enum rv_done done = load_part(bus, hart, span.va, span.first, bytes);

	if (done == RV_DONE && span.first < span.width)
		done = load_part(
		        bus, hart, span.va + span.first, span.width - span.first, bytes + span.first);
	memcpy(value, bytes, sizeof(bytes));
	return done;
}

static enum rv_done store_part(
        struct rv_bus *bus, struct rv_hart *hart, uint64_t va, unsigned width, const uint8_t *bytes)
{
	enum rv_map map;
	void *host = rv_mem_host(bus, va, RV_STORE, &map);

	if (map == RV_MAP_MMIO)
		return mmio_store(bus, hart, va, width, bytes);
	if (!host)
		return rv_fault(hart, va, RV_STORE);
	copy_out(host, bytes, width);
	return RV_DONE;
}

static enum rv_done store(struct rv_bus *bus, struct rv_hart *hart, struct span span, uint64_t value)
{
	uint8_t bytes[MAX_WIDTH];
	enum rv_done done;
	enum rv_map map;

	memcpy(bytes, &value, sizeof(bytes));
	if (span.first < span.width) {
		/* Both pages are asked before either is written: a fault leaves no half store. */
		rv_mem_host(bus, span.va, RV_STORE, &map);
		if (map == RV_MAP_FAULT)
			return rv_fault(hart, span.va, RV_STORE);
		rv_mem_host(bus, span.va + span.first, RV_STORE, &map);
		if (map == RV_MAP_FAULT)
			return rv_fault(hart, span.va + span.first, RV_STORE);
	}
	done = store_part(bus, hart, span.va, span.first, bytes);
	if (done == RV_DONE && span.first < span.width)
		done = store_part(
		        bus, hart, span.va + span.first, span.width - span.first, bytes + span.first);
	return done;
}

static unsigned width_of(unsigned code)
{
	switch (code) {
	case RV_OP_lb:
	case RV_OP_lbu:
	case RV_OP_sb:
		return 1;
	case RV_OP_lh:
	case RV_OP_lhu:
	case RV_OP_sh:
		return 2;
	case RV_OP_lw:
	case RV_OP_lwu:
	case RV_OP_sw:
	case RV_OP_flw:
	case RV_OP_fsw:
		return 4;
	default:
		return 8;
	}
}

static void set_loaded(struct rv_hart *hart, const struct rv_slot *op, uint64_t value)
{
	switch (op->code) {
	case RV_OP_lb:
		hart->x[op->rd] = (uint64_t)(int8_t)value;
		break;
	case RV_OP_lh:
		hart->x[op->rd] = (uint64_t)(int16_t)value;
		break;
	case RV_OP_lw:
		hart->x[op->rd] = (uint64_t)(int32_t)value;
		break;
	case RV_OP_flw:
		hart->f[op->rd] = value | RV_NAN_BOX;
		break;
	case RV_OP_fld:
		hart->f[op->rd] = value;
		break;
	default:
		hart->x[op->rd] = value;
		break;
	}
}

enum rv_done rv_mem_slow(struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op)
{
	unsigned width = width_of(op->code);
	struct span span = span_of(hart->x[op->rs1] + (uint64_t)op->imm, width);
	enum rv_format format = rv_isa_insn(op->code)->format;
	enum rv_done done;
	uint64_t value;

	if (format == RV_FMT_STORE || format == RV_FMT_FSTORE) {
		value = format == RV_FMT_STORE ? hart->x[op->rs2] : hart->f[op->rs2];
		done = store(bus, hart, span, value);
		if (done == RV_DONE)
			hart->count.bytes_written += width;
		return done;
	}
	done = load(bus, hart, span, &value);
	if (done == RV_DONE) {
		set_loaded(hart, op, value);
		hart->count.bytes_read += width;
	}
	return done;
}
