/* SPDX-License-Identifier: MIT */
#include "rv_core.h"

enum {
	CSR_FFLAGS = 0x001,
	CSR_FRM = 0x002,
	CSR_FCSR = 0x003,
	CSR_CYCLE = 0xc00,
	CSR_TIME = 0xc01,
	CSR_INSTRET = 0xc02,
	CSR_READ_ONLY = 0xc00, /* these two bits of a CSR number */
};

static bool read_csr(struct rv_bus *bus, struct rv_hart *hart, unsigned csr, uint64_t *value)
{
	switch (csr) {
	case CSR_FFLAGS:
		*value = hart->fcsr & RV_FFLAGS;
		return true;
	case CSR_FRM:
		*value = hart->fcsr >> RV_FRM_SHIFT;
		return true;
	case CSR_FCSR:
		*value = hart->fcsr;
		return true;
	case CSR_CYCLE:
		*value = rv_cycles(hart);
		return true;
	case CSR_TIME:
		*value = bus->ops->time ? bus->ops->time(bus->ctx) : rv_cycles(hart);
		return true;
	case CSR_INSTRET:
		*value = hart->count.instructions;
		return true;
	default:
		return bus->ops->csr_read && bus->ops->csr_read(bus->ctx, hart, csr, value);
	}
}

static bool write_csr(struct rv_bus *bus, struct rv_hart *hart, unsigned csr, uint64_t value)
{
	uint32_t low = (uint32_t)value;

	if ((csr & CSR_READ_ONLY) == CSR_READ_ONLY)
		return false;
	switch (csr) {
	case CSR_FFLAGS:
		hart->fcsr = (hart->fcsr & ~RV_FFLAGS) | (low & RV_FFLAGS);
		return true;
	case CSR_FRM:
		hart->fcsr = (hart->fcsr & RV_FFLAGS) | (low << RV_FRM_SHIFT & RV_FCSR_MASK);
		return true;
	case CSR_FCSR:
		hart->fcsr = low & RV_FCSR_MASK;
		return true;
	default:
		return bus->ops->csr_write && bus->ops->csr_write(bus->ctx, hart, csr, value);
	}
}

/* rs1 is a register, or for the immediate forms the operand itself; either way number 0 means "do not set or
 * clear", even when the register happens to hold 0. */
enum rv_done rv_csr(struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op)
{
	enum rv_format format = rv_isa_insn(op->code)->format;
	uint64_t operand = format == RV_FMT_CSRI ? op->rs1 : hart->x[op->rs1];
	bool swap = op->code == RV_OP_csrrw || op->code == RV_OP_csrrwi;
	bool clear = op->code == RV_OP_csrrc || op->code == RV_OP_csrrci;
	bool read = !swap || op->rd != RV_SINK;
	bool write = swap || op->rs1 != 0;
	unsigned csr = (unsigned)op->imm;
	uint64_t old = 0;

	if (write && (csr & CSR_READ_ONLY) == CSR_READ_ONLY)
		return RV_DONE_ILLEGAL;
	if (read && !read_csr(bus, hart, csr, &old))
		return RV_DONE_ILLEGAL;
	if (!swap)
		operand = clear ? old & ~operand : old | operand;
	if (write && !write_csr(bus, hart, csr, operand))
		return RV_DONE_ILLEGAL;
	hart->x[op->rd] = old;
	return RV_DONE;
}
