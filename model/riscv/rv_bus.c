/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rv_core.h"

static void forget_translations(struct rv_bus *bus)
{
	for (unsigned i = 0; i < RV_TLB_ENTRIES; i++) {
		bus->loads[i].tag = RV_NO_TAG;
		bus->stores[i].tag = RV_NO_TAG;
	}
}

static void forget_code(struct rv_bus *bus)
{
	for (unsigned set = 0; set < RV_CODE_SETS; set++)
		for (unsigned way = 0; way < RV_CODE_WAYS; way++)
			bus->code[set][way].va = RV_NO_TAG;
	bus->changed = true;
}

int rv_bus_alloc(struct rv_bus **out, const struct rv_bus_ops *ops, void *ctx)
{
	struct rv_bus *bus;

	if (!ops->translate || !ops->load != !ops->store)
		return -EINVAL;
	bus = calloc(1, sizeof(*bus));
	if (!bus)
		return -ENOMEM;
	bus->ops = ops;
	bus->ctx = ctx;
	rv_bus_flush_all(bus);
	*out = bus;
	return 0;
}

void rv_bus_free(struct rv_bus *bus)
{
	free(bus);
}

void rv_bus_flush_all(struct rv_bus *bus)
{
	forget_translations(bus);
	forget_code(bus);
}

void rv_bus_flush_code(struct rv_bus *bus)
{
	forget_code(bus);
}

/* `first` and `last` are page addresses; both inclusive, so that the end of the address space has a name. */
static void drop(uint64_t *page, uint64_t first, uint64_t last)
{
	if (*page >= first && *page <= last)
		*page = RV_NO_TAG;
}

void rv_bus_flush(struct rv_bus *bus, uint64_t va, uint64_t length)
{
	uint64_t first = va & ~RV_PAGE_MASK;
	uint64_t end = va + (length - 1);
	uint64_t last = (end < va ? UINT64_MAX : end) & ~RV_PAGE_MASK;
	/* The last instruction of a page may reach into the next one. */
	uint64_t first_code = first == 0 ? 0 : first - RV_PAGE_SIZE;

	if (length == 0)
		return;
	for (unsigned i = 0; i < RV_TLB_ENTRIES; i++) {
		drop(&bus->loads[i].tag, first, last);
		drop(&bus->stores[i].tag, first, last);
	}
	for (unsigned set = 0; set < RV_CODE_SETS; set++)
		for (unsigned way = 0; way < RV_CODE_WAYS; way++)
			drop(&bus->code[set][way].va, first_code, last);
	bus->changed = true;
}

void rv_hart_init(struct rv_hart *hart)
{
	*hart = (struct rv_hart){0};
}

uint64_t rv_cycles(const struct rv_hart *hart)
{
	const struct rv_count *count = &hart->count;

	return count->instructions + (count->bytes_read + count->bytes_written) / 8 + count->stalls;
}

enum rv_done rv_fault(struct rv_hart *hart, uint64_t address, enum rv_access access)
{
	hart->cause.address = address;
	hart->cause.access = access;
	return RV_DONE_FAULT;
}

/* Give a page an empty place among the decoded ones. */
static struct rv_codepage *claim(struct rv_bus *bus, struct rv_codepage *set, uint64_t page, const void *host)
{
	struct rv_codepage *code = &set[bus->victim++ % RV_CODE_WAYS];

	for (unsigned way = 0; way < RV_CODE_WAYS; way++)
		if (set[way].va == RV_NO_TAG)
			code = &set[way];
	memset(code->slot, 0, sizeof(code->slot));
	code->slot[RV_PAGE_SLOTS].code = RV_OP_page_end;
	code->slot[RV_PAGE_SLOTS + 1].code = RV_OP_page_end;
	code->host = host;
	code->va = page;
	return code;
}

struct rv_codepage *rv_code_find(struct rv_bus *bus, struct rv_hart *hart, uint64_t va)
{
	uint64_t page = va & ~RV_PAGE_MASK;
	struct rv_codepage *set = bus->code[page / RV_PAGE_SIZE % RV_CODE_SETS];
	void *host;

	for (unsigned way = 0; way < RV_CODE_WAYS; way++)
		if (set[way].va == page)
			return &set[way];
	if (bus->ops->translate(bus->ctx, page, RV_FETCH, &host) != RV_MAP_HOST) {
		rv_fault(hart, va, RV_FETCH);
		return NULL;
	}
	return claim(bus, set, page, host);
}

/* The first halfword of the page behind `code`. */
static bool fetch_behind(struct rv_bus *bus, const struct rv_codepage *code, uint32_t *half)
{
	void *host;

	if (bus->ops->translate(bus->ctx, code->va + RV_PAGE_SIZE, RV_FETCH, &host) != RV_MAP_HOST)
		return false;
	*half = __atomic_load_n((const uint16_t *)host, __ATOMIC_RELAXED);
	return true;
}

bool rv_code_fill(struct rv_bus *bus, struct rv_hart *hart, struct rv_codepage *code, struct rv_slot *slot)
{
	unsigned index = (unsigned)(slot - code->slot);
	uint32_t bits = __atomic_load_n(&code->host[index], __ATOMIC_RELAXED);
	uint32_t upper = 0;

	if ((bits & 3) == 3) {
		if (index + 1 < RV_PAGE_SLOTS) {
			upper = __atomic_load_n(&code->host[index + 1], __ATOMIC_RELAXED);
		} else if (!fetch_behind(bus, code, &upper)) {
			rv_fault(hart, code->va + RV_PAGE_SIZE, RV_FETCH);
			return false;
		}
	}
	rv_decode(slot, bits | upper << 16, index);
	return true;
}
