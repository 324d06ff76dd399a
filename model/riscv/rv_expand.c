/* SPDX-License-Identifier: MIT */
/* Compressed instructions: unprivileged specification 20191213, chapter 16, RV64 columns. */
#include <stddef.h>
#include "rv_isa.h"

enum reg {
	X0 = 0,
	RA = 1,
	SP = 2,
};

/* Major opcodes with funct3 (and funct7) in place, to be completed with registers and immediates. */
enum {
	ADDI = 0x00000013,
	SLLI = 0x00001013,
	SRLI = 0x00005013,
	SRAI = 0x40005013,
	ANDI = 0x00007013,
	ADDIW = 0x0000001b,
	LUI = 0x00000037,
	ADD = 0x00000033,
	SUB = 0x40000033,
	XOR = 0x00004033,
	OR = 0x00006033,
	AND = 0x00007033,
	ADDW = 0x0000003b,
	SUBW = 0x4000003b,
	LW = 0x00002003,
	LD = 0x00003003,
	FLD = 0x00003007,
	SW = 0x00002023,
	SD = 0x00003023,
	FSD = 0x00003027,
	JAL = 0x0000006f,
	JALR = 0x00000067,
	BEQ = 0x00000063,
	BNE = 0x00001063,
	EBREAK = 0x00100073,
};

/* Bits high:low of c, moved to start at bit `to`. */
static uint32_t take(uint32_t c, unsigned high, unsigned low, unsigned to)
{
	return c << (31 - high) >> (31 - high + low) << to;
}

static uint32_t sign_extend(uint32_t value, unsigned sign_bit)
{
	uint32_t sign = UINT32_C(1) << sign_bit;

	return (value ^ sign) - sign;
}

/* The register fields: full at 11:7 and 6:2, three-bit ones (x8 to x15) at 9:7 and 4:2. */
static uint32_t reg_11_7(uint32_t c)
{
	return take(c, 11, 7, 0);
}

static uint32_t reg_6_2(uint32_t c)
{
	return take(c, 6, 2, 0);
}

static uint32_t reg_9_7(uint32_t c)
{
	return 8 + take(c, 9, 7, 0);
}

static uint32_t reg_4_2(uint32_t c)
{
	return 8 + take(c, 4, 2, 0);
}

static uint32_t enc_r(uint32_t op, uint32_t rd, uint32_t rs1, uint32_t rs2)
{
	return op | rd << 7 | rs1 << 15 | rs2 << 20;
}

static uint32_t enc_i(uint32_t op, uint32_t rd, uint32_t rs1, uint32_t imm)
{
	return op | rd << 7 | rs1 << 15 | imm << 20;
}

static uint32_t enc_s(uint32_t op, uint32_t rs2, uint32_t rs1, uint32_t imm)
{
	return op | take(imm, 4, 0, 7) | rs1 << 15 | rs2 << 20 | take(imm, 11, 5, 25);
}

static uint32_t enc_b(uint32_t op, uint32_t rs1, uint32_t imm)
{
	return op | take(imm, 11, 11, 7) | take(imm, 4, 1, 8) | rs1 << 15 | take(imm, 10, 5, 25) |
	       take(imm, 12, 12, 31);
}

static uint32_t enc_j(uint32_t op, uint32_t rd, uint32_t imm)
{
	return op | rd << 7 | take(imm, 19, 12, 12) | take(imm, 11, 11, 20) | take(imm, 10, 1, 21) |
	       take(imm, 20, 20, 31);
}

/* Immediates, by the format that scatters them. */
static uint32_t imm_6(uint32_t c)
{
	return sign_extend(take(c, 12, 12, 5) | take(c, 6, 2, 0), 5);
}

static uint32_t shift_6(uint32_t c)
{
	return take(c, 12, 12, 5) | take(c, 6, 2, 0);
}

static uint32_t offset_w(uint32_t c)
{
	return take(c, 12, 10, 3) | take(c, 6, 6, 2) | take(c, 5, 5, 6);
}

static uint32_t offset_d(uint32_t c)
{
	return take(c, 12, 10, 3) | take(c, 6, 5, 6);
}

static uint32_t offset_lwsp(uint32_t c)
{
	return take(c, 12, 12, 5) | take(c, 6, 4, 2) | take(c, 3, 2, 6);
}

static uint32_t offset_ldsp(uint32_t c)
{
	return take(c, 12, 12, 5) | take(c, 6, 5, 3) | take(c, 4, 2, 6);
}

static uint32_t offset_swsp(uint32_t c)
{
	return take(c, 12, 9, 2) | take(c, 8, 7, 6);
}

static uint32_t offset_sdsp(uint32_t c)
{
	return take(c, 12, 10, 3) | take(c, 9, 7, 6);
}

static uint32_t offset_j(uint32_t c)
{
	uint32_t imm = take(c, 12, 12, 11) | take(c, 11, 11, 4) | take(c, 10, 9, 8) | take(c, 8, 8, 10) |
	               take(c, 7, 7, 6) | take(c, 6, 6, 7) | take(c, 5, 3, 1) | take(c, 2, 2, 5);

	return sign_extend(imm, 11);
}

static uint32_t offset_b(uint32_t c)
{
	uint32_t imm = take(c, 12, 12, 8) | take(c, 11, 10, 3) | take(c, 6, 5, 6) | take(c, 4, 3, 1) |
	               take(c, 2, 2, 5);

	return sign_extend(imm, 8);
}

/* Quadrant 0 */
static uint32_t c_addi4spn(uint32_t c)
{
	uint32_t imm = take(c, 12, 11, 4) | take(c, 10, 7, 6) | take(c, 6, 6, 2) | take(c, 5, 5, 3);

	return imm == 0 ? 0 : enc_i(ADDI, reg_4_2(c), SP, imm);
}

static uint32_t c_fld(uint32_t c)
{
	return enc_i(FLD, reg_4_2(c), reg_9_7(c), offset_d(c));
}

static uint32_t c_lw(uint32_t c)
{
	return enc_i(LW, reg_4_2(c), reg_9_7(c), offset_w(c));
}

static uint32_t c_ld(uint32_t c)
{
	return enc_i(LD, reg_4_2(c), reg_9_7(c), offset_d(c));
}

static uint32_t c_fsd(uint32_t c)
{
	return enc_s(FSD, reg_4_2(c), reg_9_7(c), offset_d(c));
}

static uint32_t c_sw(uint32_t c)
{
	return enc_s(SW, reg_4_2(c), reg_9_7(c), offset_w(c));
}

static uint32_t c_sd(uint32_t c)
{
	return enc_s(SD, reg_4_2(c), reg_9_7(c), offset_d(c));
}

/* Quadrant 1 */
static uint32_t c_addi(uint32_t c)
{
	return enc_i(ADDI, reg_11_7(c), reg_11_7(c), imm_6(c));
}

static uint32_t c_addiw(uint32_t c)
{
	return reg_11_7(c) == X0 ? 0 : enc_i(ADDIW, reg_11_7(c), reg_11_7(c), imm_6(c));
}

static uint32_t c_li(uint32_t c)
{
	return enc_i(ADDI, reg_11_7(c), X0, imm_6(c));
}

static uint32_t c_addi16sp(uint32_t c)
{
	uint32_t imm = take(c, 12, 12, 9) | take(c, 6, 6, 4) | take(c, 5, 5, 6) | take(c, 4, 3, 7) |
	               take(c, 2, 2, 5);

	return imm == 0 ? 0 : enc_i(ADDI, SP, SP, sign_extend(imm, 9));
}

static uint32_t c_lui(uint32_t c)
{
	uint32_t imm = imm_6(c);

	return imm == 0 ? 0 : LUI | reg_11_7(c) << 7 | imm << 12;
}

static uint32_t c_srli(uint32_t c)
{
	return enc_i(SRLI, reg_9_7(c), reg_9_7(c), shift_6(c));
}

static uint32_t c_srai(uint32_t c)
{
	return enc_i(SRAI, reg_9_7(c), reg_9_7(c), shift_6(c));
}

static uint32_t c_andi(uint32_t c)
{
	return enc_i(ANDI, reg_9_7(c), reg_9_7(c), imm_6(c));
}

static uint32_t c_sub(uint32_t c)
{
	return enc_r(SUB, reg_9_7(c), reg_9_7(c), reg_4_2(c));
}

static uint32_t c_xor(uint32_t c)
{
	return enc_r(XOR, reg_9_7(c), reg_9_7(c), reg_4_2(c));
}

static uint32_t c_or(uint32_t c)
{
	return enc_r(OR, reg_9_7(c), reg_9_7(c), reg_4_2(c));
}

static uint32_t c_and(uint32_t c)
{
	return enc_r(AND, reg_9_7(c), reg_9_7(c), reg_4_2(c));
}

static uint32_t c_subw(uint32_t c)
{
	return enc_r(SUBW, reg_9_7(c), reg_9_7(c), reg_4_2(c));
}

static uint32_t c_addw(uint32_t c)
{
	return enc_r(ADDW, reg_9_7(c), reg_9_7(c), reg_4_2(c));
}

static uint32_t c_j(uint32_t c)
{
	return enc_j(JAL, X0, offset_j(c));
}

static uint32_t c_beqz(uint32_t c)
{
	return enc_b(BEQ, reg_9_7(c), offset_b(c));
}

static uint32_t c_bnez(uint32_t c)
{
	return enc_b(BNE, reg_9_7(c), offset_b(c));
}

/* Quadrant 2 */
static uint32_t c_slli(uint32_t c)
{
	return enc_i(SLLI, reg_11_7(c), reg_11_7(c), shift_6(c));
}

static uint32_t c_fldsp(uint32_t c)
{
	return enc_i(FLD, reg_11_7(c), SP, offset_ldsp(c));
}

static uint32_t c_lwsp(uint32_t c)
{
	return reg_11_7(c) == X0 ? 0 : enc_i(LW, reg_11_7(c), SP, offset_lwsp(c));
}

static uint32_t c_ldsp(uint32_t c)
{
	return reg_11_7(c) == X0 ? 0 : enc_i(LD, reg_11_7(c), SP, offset_ldsp(c));
}

static uint32_t c_jr(uint32_t c)
{
	return reg_11_7(c) == X0 ? 0 : enc_i(JALR, X0, reg_11_7(c), 0);
}

static uint32_t c_mv(uint32_t c)
{
	return enc_r(ADD, reg_11_7(c), X0, reg_6_2(c));
}

static uint32_t c_ebreak(uint32_t c)
{
	(void)c;
	return EBREAK;
}

static uint32_t c_jalr(uint32_t c)
{
	return enc_i(JALR, RA, reg_11_7(c), 0);
}

static uint32_t c_add(uint32_t c)
{
	return enc_r(ADD, reg_11_7(c), reg_11_7(c), reg_6_2(c));
}

static uint32_t c_fsdsp(uint32_t c)
{
	return enc_s(FSD, reg_6_2(c), SP, offset_sdsp(c));
}

static uint32_t c_swsp(uint32_t c)
{
	return enc_s(SW, reg_6_2(c), SP, offset_swsp(c));
}

static uint32_t c_sdsp(uint32_t c)
{
	return enc_s(SD, reg_6_2(c), SP, offset_sdsp(c));
}

#define ROW(name, match, mask)                                                                               \
	{                                                                                                    \
#name, match, mask, name                                                                     \
	}
/* Special cases stand before the row whose mask covers them too. */
static const struct rv_compressed rows[] = {
        ROW(c_addi4spn, 0x0000, 0xe003),
        ROW(c_fld, 0x2000, 0xe003),
        ROW(c_lw, 0x4000, 0xe003),
        ROW(c_ld, 0x6000, 0xe003),
        ROW(c_fsd, 0xa000, 0xe003),
        ROW(c_sw, 0xc000, 0xe003),
        ROW(c_sd, 0xe000, 0xe003),
        ROW(c_addi, 0x0001, 0xe003),
        ROW(c_addiw, 0x2001, 0xe003),
        ROW(c_li, 0x4001, 0xe003),
        ROW(c_addi16sp, 0x6101, 0xef83),
        ROW(c_lui, 0x6001, 0xe003),
        ROW(c_srli, 0x8001, 0xec03),
        ROW(c_srai, 0x8401, 0xec03),
        ROW(c_andi, 0x8801, 0xec03),
        ROW(c_sub, 0x8c01, 0xfc63),
        ROW(c_xor, 0x8c21, 0xfc63),
        ROW(c_or, 0x8c41, 0xfc63),
        ROW(c_and, 0x8c61, 0xfc63),
        ROW(c_subw, 0x9c01, 0xfc63),
        ROW(c_addw, 0x9c21, 0xfc63),
        ROW(c_j, 0xa001, 0xe003),
        ROW(c_beqz, 0xc001, 0xe003),
        ROW(c_bnez, 0xe001, 0xe003),
        ROW(c_slli, 0x0002, 0xe003),
        ROW(c_fldsp, 0x2002, 0xe003),
        ROW(c_lwsp, 0x4002, 0xe003),
        ROW(c_ldsp, 0x6002, 0xe003),
        ROW(c_jr, 0x8002, 0xf07f),
        ROW(c_mv, 0x8002, 0xf003),
        ROW(c_ebreak, 0x9002, 0xffff),
        ROW(c_jalr, 0x9002, 0xf07f),
        ROW(c_add, 0x9002, 0xf003),
        ROW(c_fsdsp, 0xa002, 0xe003),
        ROW(c_swsp, 0xc002, 0xe003),
        ROW(c_sdsp, 0xe002, 0xe003),
};

const struct rv_compressed *rv_isa_compressed(unsigned index)
{
	return index < sizeof(rows) / sizeof(rows[0]) ? &rows[index] : NULL;
}

const struct rv_compressed *rv_isa_find_compressed(uint16_t bits)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((bits & rows[i].mask) == rows[i].match)
			return &rows[i];
	return NULL;
}

uint32_t rv_isa_expand(uint16_t bits)
{
	const struct rv_compressed *row = rv_isa_find_compressed(bits);

	return row ? row->expand(bits) : 0;
}
