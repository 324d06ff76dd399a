/* SPDX-License-Identifier: MIT */
/*
 * RISC-V instructions as words, for code written by hand in tests. Registers by number, immediates
 * sign-extended.
 */
#ifndef RVX_ASM_H
#define RVX_ASM_H

#include <stdint.h>

enum rvx_register {
	ZERO = 0,
	RA = 1,
	SP = 2,
	T0 = 5,
	T1 = 6,
	T2 = 7,
	S0 = 8,
	S1 = 9,
	A0 = 10,
	A1 = 11,
	A2 = 12,
	A3 = 13,
	A4 = 14,
	A5 = 15,
};

#define RV_I(op, f3, rd, rs1, imm)                                                                           \
	(((uint32_t)(imm)&0xFFFu) << 20 | (uint32_t)(rs1) << 15 | (f3) << 12 | (uint32_t)(rd) << 7 | (op))
#define RV_R(op, f3, f7, rd, rs1, rs2)                                                                       \
	((uint32_t)(f7) << 25 | (uint32_t)(rs2) << 20 | (uint32_t)(rs1) << 15 | (f3) << 12 |                 \
	        (uint32_t)(rd) << 7 | (op))
#define RV_S(f3, rs2, rs1, imm)                                                                              \
	((((uint32_t)(imm) >> 5) & 0x7Fu) << 25 | (uint32_t)(rs2) << 20 | (uint32_t)(rs1) << 15 |            \
	        (f3) << 12 | ((uint32_t)(imm)&0x1Fu) << 7 | 0x23u)
#define RV_B(f3, rs1, rs2, off)                                                                              \
	((((uint32_t)(off) >> 12) & 1u) << 31 | (((uint32_t)(off) >> 5) & 0x3Fu) << 25 |                     \
	        (uint32_t)(rs2) << 20 | (uint32_t)(rs1) << 15 | (f3) << 12 |                                 \
	        (((uint32_t)(off) >> 1) & 0xFu) << 8 | (((uint32_t)(off) >> 11) & 1u) << 7 | 0x63u)

#define ADDI(rd, rs1, imm)     RV_I(0x13u, 0u, rd, rs1, imm)
#define LI(rd, imm)            ADDI(rd, ZERO, imm)
#define MV(rd, rs1)            ADDI(rd, rs1, 0)
#define NOP                    ADDI(ZERO, ZERO, 0)
#define SLLI(rd, rs1, shamt)   RV_I(0x13u, 1u, rd, rs1, shamt)
#define LUI(rd, imm20)         ((uint32_t)(imm20) << 12 | (uint32_t)(rd) << 7 | 0x37u)
#define ADD(rd, rs1, rs2)      RV_R(0x33u, 0u, 0u, rd, rs1, rs2)
#define OR(rd, rs1, rs2)       RV_R(0x33u, 6u, 0u, rd, rs1, rs2)
#define MUL(rd, rs1, rs2)      RV_R(0x33u, 0u, 1u, rd, rs1, rs2)
#define LW(rd, rs1, imm)       RV_I(0x03u, 2u, rd, rs1, imm)
#define LWU(rd, rs1, imm)      RV_I(0x03u, 6u, rd, rs1, imm)
#define LD(rd, rs1, imm)       RV_I(0x03u, 3u, rd, rs1, imm)
#define LBU(rd, rs1, imm)      RV_I(0x03u, 4u, rd, rs1, imm)
#define SB(rs2, rs1, imm)      RV_S(0u, rs2, rs1, imm)
#define SW(rs2, rs1, imm)      RV_S(2u, rs2, rs1, imm)
#define SD(rs2, rs1, imm)      RV_S(3u, rs2, rs1, imm)
#define BEQ(rs1, rs2, off)     RV_B(0u, rs1, rs2, off)
#define BNE(rs1, rs2, off)     RV_B(1u, rs1, rs2, off)
#define JALR(rd, rs1, imm)     RV_I(0x67u, 0u, rd, rs1, imm)
#define RET                    JALR(ZERO, RA, 0)
#define J_SELF                 0x0000006Fu
#define CSRR(rd, csr)          RV_I(0x73u, 2u, rd, ZERO, csr)
#define AMOADD_D(rd, rs2, rs1) RV_R(0x2Fu, 3u, 0u, rd, rs1, rs2)
#define AMOADD_W(rd, rs2, rs1) RV_R(0x2Fu, 2u, 0u, rd, rs1, rs2)
#define ECALL                  0x00000073u
#define EBREAK                 0x00100073u
#define WFI                    0x10500073u
#define FENCE_I                0x0000100Fu
#define BARRIER                0x0000000Bu
#define UNKNOWN                0xFFFFFFFFu /* no instruction */

#endif
