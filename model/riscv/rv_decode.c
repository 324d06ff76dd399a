/* SPDX-License-Identifier: MIT */
#include "rv_core.h"

static const struct rv_insn isa[] = {
#define ROW(name, match, mask, format) {#name, match, mask, RV_FMT_##format},
        RV_ISA(ROW)
#undef ROW
};

const struct rv_insn *rv_isa_insn(unsigned code)
{
	return &isa[code - RV_OP_FIRST];
}

unsigned rv_isa_find(uint32_t bits)
{
	for (unsigned code = RV_OP_FIRST; code < RV_OP_COUNT; code++) {
		const struct rv_insn *insn = rv_isa_insn(code);

		if ((bits & insn->mask) == insn->match)
			return code;
	}
	return RV_OP_illegal;
}

static uint32_t field(uint32_t bits, unsigned high, unsigned low)
{
	return bits << (31 - high) >> (31 - high + low);
}

/* Bits 31:20 sign-extended. */
static int32_t imm_i(uint32_t bits)
{
	return (int32_t)bits >> 20;
}

static int32_t imm_s(uint32_t bits)
{
	return (int32_t)(((uint32_t)((int32_t)bits >> 25) << 5) | field(bits, 11, 7));
}

static int32_t imm_b(uint32_t bits)
{
	uint32_t sign = (uint32_t)((int32_t)bits >> 31) << 12;

	return (int32_t)(sign | field(bits, 7, 7) << 11 | field(bits, 30, 25) << 5 | field(bits, 11, 8) << 1);
}

static int32_t imm_j(uint32_t bits)
{
	uint32_t sign = (uint32_t)((int32_t)bits >> 31) << 20;

	return (int32_t)(sign | field(bits, 19, 12) << 12 | field(bits, 20, 20) << 11 |
	                 field(bits, 30, 21) << 1);
}

static bool writes_x(enum rv_format format)
{
	switch (format) {
	case RV_FMT_FLOAD:
	case RV_FMT_FFF:
	case RV_FMT_FFF_RM:
	case RV_FMT_FFFF_RM:
	case RV_FMT_FF_RM:
	case RV_FMT_FX_RM:
	case RV_FMT_FX:
		return false;
	default:
		return true;
	}
}

static bool has_rm(enum rv_format format)
{
	switch (format) {
	case RV_FMT_FFF_RM:
	case RV_FMT_FFFF_RM:
	case RV_FMT_FF_RM:
	case RV_FMT_FX_RM:
	case RV_FMT_XF_RM:
		return true;
	default:
		return false;
	}
}

static int32_t immediate(enum rv_format format, uint32_t bits)
{
	switch (format) {
	case RV_FMT_U:
		return (int32_t)(bits & ~RV_PAGE_MASK);
	case RV_FMT_J:
		return imm_j(bits);
	case RV_FMT_B:
		return imm_b(bits);
	case RV_FMT_I:
	case RV_FMT_LOAD:
	case RV_FMT_FLOAD:
		return imm_i(bits);
	case RV_FMT_STORE:
	case RV_FMT_FSTORE:
		return imm_s(bits);
	case RV_FMT_SHIFT:
		return (int32_t)field(bits, 25, 20);
	case RV_FMT_CSR:
	case RV_FMT_CSRI:
		return (int32_t)field(bits, 31, 20);
	default:
		return 0;
	}
}

static uint8_t far_code(unsigned code)
{
	switch (code) {
	case RV_OP_jal:
		return RV_OP_jal_far;
	default:
		return (uint8_t)(RV_OP_beq_far + (code - RV_OP_beq));
	}
}

/* A jump inside the page becomes a move of the slot pointer, any other one is marked far. */
static void aim(struct rv_slot *slot, unsigned slot_index)
{
	int32_t target = (int32_t)slot_index + slot->imm / 2;

	if (target < 0 || target >= (int32_t)RV_PAGE_SLOTS)
		slot->code = far_code(slot->code);
	else
		slot->imm /= 2;
}

void rv_decode(struct rv_slot *slot, uint32_t bits, unsigned slot_index)
{
	bool compressed = (bits & 3) != 3;
	uint32_t wide = compressed ? rv_isa_expand((uint16_t)bits) : bits;
	unsigned code = rv_isa_find(wide);
	enum rv_format format = code == RV_OP_illegal ? RV_FMT_NONE : rv_isa_insn(code)->format;

	*slot = (struct rv_slot){
	        .code = (uint8_t)code,
	        .rd = (uint8_t)field(wide, 11, 7),
	        .rs1 = (uint8_t)field(wide, 19, 15),
	        .rs2 = (uint8_t)field(wide, 24, 20),
	        .rs3 = (uint8_t)field(wide, 31, 27),
	        .rm = (uint8_t)field(wide, 14, 12),
	        .slots = compressed ? 1 : 2,
	        .imm = immediate(format, wide),
	        .bits = compressed ? bits & UINT16_MAX : bits,
	};
	if (slot->rd == 0 && writes_x(format))
		slot->rd = RV_SINK;
	if (has_rm(format) && (slot->rm == 5 || slot->rm == 6))
		slot->code = RV_OP_illegal;
	if (format == RV_FMT_J || format == RV_FMT_B)
		aim(slot, slot_index);
}
