/* SPDX-License-Identifier: MIT */
/* lr, sc and the AMOs, as atomics of the host: other processes share the memory. */
#include "rv_core.h"

/* Another thread winning this often in one instruction means the line is contended: give up the turn. */
#define CAS_TRIES 64

static uint64_t widen(uint64_t value, unsigned width)
{
	return width == 4 ? (uint64_t)(int32_t)value : value;
}

static uint64_t combine_d(unsigned code, uint64_t memory, uint64_t operand)
{
	switch (code) {
	case RV_OP_amoadd_d:
		return memory + operand;
	case RV_OP_amoxor_d:
		return memory ^ operand;
	case RV_OP_amoand_d:
		return memory & operand;
	case RV_OP_amoor_d:
		return memory | operand;
	case RV_OP_amomin_d:
		return (int64_t)memory < (int64_t)operand ? memory : operand;
	case RV_OP_amomax_d:
		return (int64_t)memory > (int64_t)operand ? memory : operand;
	case RV_OP_amominu_d:
		return memory < operand ? memory : operand;
	case RV_OP_amomaxu_d:
		return memory > operand ? memory : operand;
	default:
		return operand;
	}
}

/* Sign-extended words keep their order, signed and unsigned, so one set of rules serves both widths. */
static uint64_t combine(const struct rv_slot *op, unsigned width, uint64_t memory, uint64_t operand)
{
	unsigned code = width == 8 ? op->code : op->code + (unsigned)(RV_OP_amoswap_d - RV_OP_amoswap_w);

	return combine_d(code, widen(memory, width), widen(operand, width));
}

static uint64_t host_load(const void *host, unsigned width)
{
	if (width == 4)
		return __atomic_load_n((const uint32_t *)host, __ATOMIC_SEQ_CST);
	return __atomic_load_n((const uint64_t *)host, __ATOMIC_SEQ_CST);
}

static bool host_cas(void *host, unsigned width, uint64_t expected, uint64_t value)
{
	uint32_t expected_w = (uint32_t)expected;

	if (width == 4)
		return __atomic_compare_exchange_n((uint32_t *)host, &expected_w, (uint32_t)value, false,
		        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return __atomic_compare_exchange_n(
	        (uint64_t *)host, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static enum rv_done host_amo(struct rv_hart *hart, const struct rv_slot *op, void *host, unsigned width)
{
	for (unsigned i = 0; i < CAS_TRIES; i++) {
		uint64_t memory = host_load(host, width);

		if (!host_cas(host, width, memory, combine(op, width, memory, hart->x[op->rs2])))
			continue;
		hart->x[op->rd] = widen(memory, width);
		return RV_DONE;
	}
	return RV_DONE_RETRY;
}

static enum rv_done mmio_load(struct rv_bus *bus, struct rv_hart *hart, uint64_t va, unsigned width,
        enum rv_access access, uint64_t *value)
{
	if (!bus->ops->load || !bus->ops->load(bus->ctx, va, width, value))
		return rv_fault(hart, va, access);
	return RV_DONE;
}

static enum rv_done mmio_store(
        struct rv_bus *bus, struct rv_hart *hart, uint64_t va, unsigned width, uint64_t value)
{
	uint64_t low = width == 4 ? (uint32_t)value : value;

	if (!bus->ops->store || !bus->ops->store(bus->ctx, va, width, low))
		return rv_fault(hart, va, RV_STORE);
	return RV_DONE;
}

static enum rv_done mmio_amo(
        struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op, uint64_t va, unsigned width)
{
	uint64_t memory = 0;
	enum rv_done done = mmio_load(bus, hart, va, width, RV_STORE, &memory);

	if (done == RV_DONE)
		done = mmio_store(bus, hart, va, width, combine(op, width, memory, hart->x[op->rs2]));
	if (done == RV_DONE)
		hart->x[op->rd] = widen(memory, width);
	return done;
}

static enum rv_done amo(
        struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op, uint64_t va, unsigned width)
{
	enum rv_map map;
	void *host = rv_mem_host(bus, va, RV_STORE, &map);
	enum rv_done done;

	if (map == RV_MAP_FAULT)
		return rv_fault(hart, va, RV_STORE);
	done = host ? host_amo(hart, op, host, width) : mmio_amo(bus, hart, op, va, width);
	if (done == RV_DONE) {
		hart->count.bytes_read += width;
		hart->count.bytes_written += width;
	}
	return done;
}

static enum rv_done load_reserved(
        struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op, uint64_t va, unsigned width)
{
	enum rv_map map;
	void *host = rv_mem_host(bus, va, RV_LOAD, &map);
	uint64_t value = 0;

	if (map == RV_MAP_FAULT)
		return rv_fault(hart, va, RV_LOAD);
	if (host)
		value = host_load(host, width);
	else if (mmio_load(bus, hart, va, width, RV_LOAD, &value) != RV_DONE)
		return RV_DONE_FAULT;
	hart->reserved_address = va;
	hart->reserved_value = widen(value, width);
	hart->reserved_width = width;
	hart->x[op->rd] = widen(value, width);
	hart->count.bytes_read += width;
	return RV_DONE;
}

static enum rv_done mmio_conditional(struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op,
        uint64_t va, unsigned width, bool *stored)
{
	uint64_t memory = 0;
	enum rv_done done = mmio_load(bus, hart, va, width, RV_STORE, &memory);

	*stored = done == RV_DONE && widen(memory, width) == hart->reserved_value;
	return *stored ? mmio_store(bus, hart, va, width, hart->x[op->rs2]) : done;
}

static enum rv_done store_conditional(
        struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op, uint64_t va, unsigned width)
{
	bool stored = hart->reserved_width == width && hart->reserved_address == va;
	enum rv_done done = RV_DONE;
	enum rv_map map;
	void *host;

	if (stored) {
		host = rv_mem_host(bus, va, RV_STORE, &map);
		if (map == RV_MAP_FAULT)
			return rv_fault(hart, va, RV_STORE);
		if (host)
			stored = host_cas(host, width, hart->reserved_value, hart->x[op->rs2]);
		else
			done = mmio_conditional(bus, hart, op, va, width, &stored);
	}
	if (done != RV_DONE)
		return done;
	hart->reserved_width = 0;
	hart->x[op->rd] = stored ? 0 : 1;
	hart->count.bytes_written += stored ? width : 0;
	return RV_DONE;
}

enum rv_done rv_atomic(struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op)
{
	uint64_t va = hart->x[op->rs1];
	unsigned width = op->code >= RV_OP_lr_d ? 8 : 4;
	bool reserve = op->code == RV_OP_lr_w || op->code == RV_OP_lr_d;
	enum rv_done done;

	if (va % width != 0) {
		hart->cause.misaligned = true;
		return rv_fault(hart, va, reserve ? RV_LOAD : RV_STORE);
	}
	if (reserve)
		done = load_reserved(bus, hart, op, va, width);
	else if (op->code == RV_OP_sc_w || op->code == RV_OP_sc_d)
		done = store_conditional(bus, hart, op, va, width);
	else
		done = amo(bus, hart, op, va, width);
	if (done == RV_DONE)
		hart->count.stalls += RV_STALL_ATOMIC;
	return done;
}
