/* SPDX-License-Identifier: MIT */
/*
 * The instruction set as a table: name, encoding under a mask, operand format. The decoder, the dispatch
 * table of rv_run() and the tests are made from it, so an instruction missing in one of them does not compile
 * or fails the coverage test. Encodings: RISC-V unprivileged specification 20191213, chapter 24.
 *
 * Pure functions and constant data; any thread.
 */
#ifndef RV_ISA_H
#define RV_ISA_H

#include <stdint.h>

/* Operand formats: which fields hold registers, of which file, and whether there is a rounding mode. */
enum rv_format {
	RV_FMT_U,       /* x rd, imm */
	RV_FMT_J,       /* x rd, offset */
	RV_FMT_B,       /* x rs1, x rs2, offset */
	RV_FMT_I,       /* x rd, x rs1, imm */
	RV_FMT_SHIFT,   /* x rd, x rs1, 6-bit amount (5-bit ones have bit 25 in the mask) */
	RV_FMT_R,       /* x rd, x rs1, x rs2 */
	RV_FMT_LOAD,    /* x rd, offset(x rs1) */
	RV_FMT_STORE,   /* x rs2, offset(x rs1) */
	RV_FMT_FLOAD,   /* f rd, offset(x rs1) */
	RV_FMT_FSTORE,  /* f rs2, offset(x rs1) */
	RV_FMT_LR,      /* x rd, (x rs1) */
	RV_FMT_AMO,     /* x rd, x rs2, (x rs1); also sc */
	RV_FMT_CSR,     /* x rd, csr, x rs1 */
	RV_FMT_CSRI,    /* x rd, csr, 5-bit immediate */
	RV_FMT_NONE,    /* no operand the interpreter looks at */
	RV_FMT_FFF,     /* f rd, f rs1, f rs2 */
	RV_FMT_FFF_RM,  /* ... and a rounding mode */
	RV_FMT_FFFF_RM, /* f rd, f rs1, f rs2, f rs3, rounding mode */
	RV_FMT_FF_RM,   /* f rd, f rs1, rounding mode */
	RV_FMT_FX_RM,   /* f rd, x rs1, rounding mode */
	RV_FMT_XF_RM,   /* x rd, f rs1, rounding mode */
	RV_FMT_FX,      /* f rd, x rs1 */
	RV_FMT_XF,      /* x rd, f rs1 */
	RV_FMT_XFF,     /* x rd, f rs1, f rs2 */
};

/* X(name, encoding, mask, format). Each group is executed the same way by rv_run(). */
#define RV_ISA_FLOW(X) /* control transfer and system */                                                     \
	X(jal, 0x0000006f, 0x0000007f, J)                                                                    \
	X(jalr, 0x00000067, 0x0000707f, I)                                                                   \
	X(fence, 0x0000000f, 0x0000707f, NONE)                                                               \
	X(fence_i, 0x0000100f, 0x0000707f, NONE)                                                             \
	X(ecall, 0x00000073, 0xffffffff, NONE)                                                               \
	X(ebreak, 0x00100073, 0xffffffff, NONE)                                                              \
	X(wfi, 0x10500073, 0xffffffff, NONE)                                                                 \
	X(custom0, 0x0000000b, 0x0000007f, NONE)

#define RV_ISA_BRANCH(X)                                                                                     \
	X(beq, 0x00000063, 0x0000707f, B)                                                                    \
	X(bne, 0x00001063, 0x0000707f, B)                                                                    \
	X(blt, 0x00004063, 0x0000707f, B)                                                                    \
	X(bge, 0x00005063, 0x0000707f, B)                                                                    \
	X(bltu, 0x00006063, 0x0000707f, B)                                                                   \
	X(bgeu, 0x00007063, 0x0000707f, B)

#define RV_ISA_INT(X) /* x registers only */                                                                 \
	X(lui, 0x00000037, 0x0000007f, U)                                                                    \
	X(auipc, 0x00000017, 0x0000007f, U)                                                                  \
	X(addi, 0x00000013, 0x0000707f, I)                                                                   \
	X(slti, 0x00002013, 0x0000707f, I)                                                                   \
	X(sltiu, 0x00003013, 0x0000707f, I)                                                                  \
	X(xori, 0x00004013, 0x0000707f, I)                                                                   \
	X(ori, 0x00006013, 0x0000707f, I)                                                                    \
	X(andi, 0x00007013, 0x0000707f, I)                                                                   \
	X(slli, 0x00001013, 0xfc00707f, SHIFT)                                                               \
	X(srli, 0x00005013, 0xfc00707f, SHIFT)                                                               \
	X(srai, 0x40005013, 0xfc00707f, SHIFT)                                                               \
	X(add, 0x00000033, 0xfe00707f, R)                                                                    \
	X(sub, 0x40000033, 0xfe00707f, R)                                                                    \
	X(sll, 0x00001033, 0xfe00707f, R)                                                                    \
	X(slt, 0x00002033, 0xfe00707f, R)                                                                    \
	X(sltu, 0x00003033, 0xfe00707f, R)                                                                   \
	X(xor, 0x00004033, 0xfe00707f, R)                                                                    \
	X(srl, 0x00005033, 0xfe00707f, R)                                                                    \
	X(sra, 0x40005033, 0xfe00707f, R)                                                                    \
	X(or, 0x00006033, 0xfe00707f, R)                                                                     \
	X(and, 0x00007033, 0xfe00707f, R)                                                                    \
	X(addiw, 0x0000001b, 0x0000707f, I)                                                                  \
	X(slliw, 0x0000101b, 0xfe00707f, SHIFT)                                                              \
	X(srliw, 0x0000501b, 0xfe00707f, SHIFT)                                                              \
	X(sraiw, 0x4000501b, 0xfe00707f, SHIFT)                                                              \
	X(addw, 0x0000003b, 0xfe00707f, R)                                                                   \
	X(subw, 0x4000003b, 0xfe00707f, R)                                                                   \
	X(sllw, 0x0000103b, 0xfe00707f, R)                                                                   \
	X(srlw, 0x0000503b, 0xfe00707f, R)                                                                   \
	X(sraw, 0x4000503b, 0xfe00707f, R)                                                                   \
	X(mul, 0x02000033, 0xfe00707f, R)                                                                    \
	X(mulh, 0x02001033, 0xfe00707f, R)                                                                   \
	X(mulhsu, 0x02002033, 0xfe00707f, R)                                                                 \
	X(mulhu, 0x02003033, 0xfe00707f, R)                                                                  \
	X(div, 0x02004033, 0xfe00707f, R)                                                                    \
	X(divu, 0x02005033, 0xfe00707f, R)                                                                   \
	X(rem, 0x02006033, 0xfe00707f, R)                                                                    \
	X(remu, 0x02007033, 0xfe00707f, R)                                                                   \
	X(mulw, 0x0200003b, 0xfe00707f, R)                                                                   \
	X(divw, 0x0200403b, 0xfe00707f, R)                                                                   \
	X(divuw, 0x0200503b, 0xfe00707f, R)                                                                  \
	X(remw, 0x0200603b, 0xfe00707f, R)                                                                   \
	X(remuw, 0x0200703b, 0xfe00707f, R)

#define RV_ISA_MEMORY(X)                                                                                     \
	X(lb, 0x00000003, 0x0000707f, LOAD)                                                                  \
	X(lh, 0x00001003, 0x0000707f, LOAD)                                                                  \
	X(lw, 0x00002003, 0x0000707f, LOAD)                                                                  \
	X(ld, 0x00003003, 0x0000707f, LOAD)                                                                  \
	X(lbu, 0x00004003, 0x0000707f, LOAD)                                                                 \
	X(lhu, 0x00005003, 0x0000707f, LOAD)                                                                 \
	X(lwu, 0x00006003, 0x0000707f, LOAD)                                                                 \
	X(sb, 0x00000023, 0x0000707f, STORE)                                                                 \
	X(sh, 0x00001023, 0x0000707f, STORE)                                                                 \
	X(sw, 0x00002023, 0x0000707f, STORE)                                                                 \
	X(sd, 0x00003023, 0x0000707f, STORE)                                                                 \
	X(flw, 0x00002007, 0x0000707f, FLOAD)                                                                \
	X(fld, 0x00003007, 0x0000707f, FLOAD)                                                                \
	X(fsw, 0x00002027, 0x0000707f, FSTORE)                                                               \
	X(fsd, 0x00003027, 0x0000707f, FSTORE)

#define RV_ISA_CSR(X)                                                                                        \
	X(csrrw, 0x00001073, 0x0000707f, CSR)                                                                \
	X(csrrs, 0x00002073, 0x0000707f, CSR)                                                                \
	X(csrrc, 0x00003073, 0x0000707f, CSR)                                                                \
	X(csrrwi, 0x00005073, 0x0000707f, CSRI)                                                              \
	X(csrrsi, 0x00006073, 0x0000707f, CSRI)                                                              \
	X(csrrci, 0x00007073, 0x0000707f, CSRI)

#define RV_ISA_ATOMIC(X)                                                                                     \
	X(lr_w, 0x1000202f, 0xf9f0707f, LR)                                                                  \
	X(sc_w, 0x1800202f, 0xf800707f, AMO)                                                                 \
	X(amoswap_w, 0x0800202f, 0xf800707f, AMO)                                                            \
	X(amoadd_w, 0x0000202f, 0xf800707f, AMO)                                                             \
	X(amoxor_w, 0x2000202f, 0xf800707f, AMO)                                                             \
	X(amoand_w, 0x6000202f, 0xf800707f, AMO)                                                             \
	X(amoor_w, 0x4000202f, 0xf800707f, AMO)                                                              \
	X(amomin_w, 0x8000202f, 0xf800707f, AMO)                                                             \
	X(amomax_w, 0xa000202f, 0xf800707f, AMO)                                                             \
	X(amominu_w, 0xc000202f, 0xf800707f, AMO)                                                            \
	X(amomaxu_w, 0xe000202f, 0xf800707f, AMO)                                                            \
	X(lr_d, 0x1000302f, 0xf9f0707f, LR)                                                                  \
	X(sc_d, 0x1800302f, 0xf800707f, AMO)                                                                 \
	X(amoswap_d, 0x0800302f, 0xf800707f, AMO)                                                            \
	X(amoadd_d, 0x0000302f, 0xf800707f, AMO)                                                             \
	X(amoxor_d, 0x2000302f, 0xf800707f, AMO)                                                             \
	X(amoand_d, 0x6000302f, 0xf800707f, AMO)                                                             \
	X(amoor_d, 0x4000302f, 0xf800707f, AMO)                                                              \
	X(amomin_d, 0x8000302f, 0xf800707f, AMO)                                                             \
	X(amomax_d, 0xa000302f, 0xf800707f, AMO)                                                             \
	X(amominu_d, 0xc000302f, 0xf800707f, AMO)                                                            \
	X(amomaxu_d, 0xe000302f, 0xf800707f, AMO)

#define RV_ISA_FLOAT(X) /* arithmetic on f registers, no memory */                                           \
	X(fmadd_s, 0x00000043, 0x0600007f, FFFF_RM)                                                          \
	X(fmsub_s, 0x00000047, 0x0600007f, FFFF_RM)                                                          \
	X(fnmsub_s, 0x0000004b, 0x0600007f, FFFF_RM)                                                         \
	X(fnmadd_s, 0x0000004f, 0x0600007f, FFFF_RM)                                                         \
	X(fadd_s, 0x00000053, 0xfe00007f, FFF_RM)                                                            \
	X(fsub_s, 0x08000053, 0xfe00007f, FFF_RM)                                                            \
	X(fmul_s, 0x10000053, 0xfe00007f, FFF_RM)                                                            \
	X(fdiv_s, 0x18000053, 0xfe00007f, FFF_RM)                                                            \
	X(fsqrt_s, 0x58000053, 0xfff0007f, FF_RM)                                                            \
	X(fsgnj_s, 0x20000053, 0xfe00707f, FFF)                                                              \
	X(fsgnjn_s, 0x20001053, 0xfe00707f, FFF)                                                             \
	X(fsgnjx_s, 0x20002053, 0xfe00707f, FFF)                                                             \
	X(fmin_s, 0x28000053, 0xfe00707f, FFF)                                                               \
	X(fmax_s, 0x28001053, 0xfe00707f, FFF)                                                               \
	X(fcvt_w_s, 0xc0000053, 0xfff0007f, XF_RM)                                                           \
	X(fcvt_wu_s, 0xc0100053, 0xfff0007f, XF_RM)                                                          \
	X(fcvt_l_s, 0xc0200053, 0xfff0007f, XF_RM)                                                           \
	X(fcvt_lu_s, 0xc0300053, 0xfff0007f, XF_RM)                                                          \
	X(fmv_x_w, 0xe0000053, 0xfff0707f, XF)                                                               \
	X(fclass_s, 0xe0001053, 0xfff0707f, XF)                                                              \
	X(fle_s, 0xa0000053, 0xfe00707f, XFF)                                                                \
	X(flt_s, 0xa0001053, 0xfe00707f, XFF)                                                                \
	X(feq_s, 0xa0002053, 0xfe00707f, XFF)                                                                \
	X(fcvt_s_w, 0xd0000053, 0xfff0007f, FX_RM)                                                           \
	X(fcvt_s_wu, 0xd0100053, 0xfff0007f, FX_RM)                                                          \
	X(fcvt_s_l, 0xd0200053, 0xfff0007f, FX_RM)                                                           \
	X(fcvt_s_lu, 0xd0300053, 0xfff0007f, FX_RM)                                                          \
	X(fmv_w_x, 0xf0000053, 0xfff0707f, FX)                                                               \
	X(fmadd_d, 0x02000043, 0x0600007f, FFFF_RM)                                                          \
	X(fmsub_d, 0x02000047, 0x0600007f, FFFF_RM)                                                          \
	X(fnmsub_d, 0x0200004b, 0x0600007f, FFFF_RM)                                                         \
	X(fnmadd_d, 0x0200004f, 0x0600007f, FFFF_RM)                                                         \
	X(fadd_d, 0x02000053, 0xfe00007f, FFF_RM)                                                            \
	X(fsub_d, 0x0a000053, 0xfe00007f, FFF_RM)                                                            \
	X(fmul_d, 0x12000053, 0xfe00007f, FFF_RM)                                                            \
	X(fdiv_d, 0x1a000053, 0xfe00007f, FFF_RM)                                                            \
	X(fsqrt_d, 0x5a000053, 0xfff0007f, FF_RM)                                                            \
	X(fsgnj_d, 0x22000053, 0xfe00707f, FFF)                                                              \
	X(fsgnjn_d, 0x22001053, 0xfe00707f, FFF)                                                             \
	X(fsgnjx_d, 0x22002053, 0xfe00707f, FFF)                                                             \
	X(fmin_d, 0x2a000053, 0xfe00707f, FFF)                                                               \
	X(fmax_d, 0x2a001053, 0xfe00707f, FFF)                                                               \
	X(fcvt_s_d, 0x40100053, 0xfff0007f, FF_RM)                                                           \
	X(fcvt_d_s, 0x42000053, 0xfff0007f, FF_RM)                                                           \
	X(fcvt_w_d, 0xc2000053, 0xfff0007f, XF_RM)                                                           \
	X(fcvt_wu_d, 0xc2100053, 0xfff0007f, XF_RM)                                                          \
	X(fcvt_l_d, 0xc2200053, 0xfff0007f, XF_RM)                                                           \
	X(fcvt_lu_d, 0xc2300053, 0xfff0007f, XF_RM)                                                          \
	X(fmv_x_d, 0xe2000053, 0xfff0707f, XF)                                                               \
	X(fclass_d, 0xe2001053, 0xfff0707f, XF)                                                              \
	X(fle_d, 0xa2000053, 0xfe00707f, XFF)                                                                \
	X(flt_d, 0xa2001053, 0xfe00707f, XFF)                                                                \
	X(feq_d, 0xa2002053, 0xfe00707f, XFF)                                                                \
	X(fcvt_d_w, 0xd2000053, 0xfff0007f, FX_RM)                                                           \
	X(fcvt_d_wu, 0xd2100053, 0xfff0007f, FX_RM)                                                          \
	X(fcvt_d_l, 0xd2200053, 0xfff0007f, FX_RM)                                                           \
	X(fcvt_d_lu, 0xd2300053, 0xfff0007f, FX_RM)                                                          \
	X(fmv_d_x, 0xf2000053, 0xfff0707f, FX)

#define RV_ISA(X)                                                                                            \
	RV_ISA_FLOW(X)                                                                                       \
	RV_ISA_BRANCH(X)                                                                                     \
	RV_ISA_INT(X)                                                                                        \
	RV_ISA_MEMORY(X)                                                                                     \
	RV_ISA_CSR(X)                                                                                        \
	RV_ISA_ATOMIC(X)                                                                                     \
	RV_ISA_FLOAT(X)

/* What a decoded slot does. First what is no instruction, then the table in its order. */
enum rv_code {
	RV_OP_undecoded, /* zero, so that a cleared page is undecoded */
	RV_OP_page_end,  /* the slots behind a page */
	RV_OP_illegal,
	RV_OP_jal_far, /* _far: the target is in another page */
	RV_OP_beq_far,
	RV_OP_bne_far,
	RV_OP_blt_far,
	RV_OP_bge_far,
	RV_OP_bltu_far,
	RV_OP_bgeu_far,
#define RV_ENUM(name, match, mask, format) RV_OP_##name,
	RV_ISA(RV_ENUM)
#undef RV_ENUM
	        RV_OP_COUNT
};
#define RV_OP_FIRST RV_OP_jal /* the first code that has an rv_insn */

/* One instruction of the table. */
struct rv_insn {
	const char *name;
	uint32_t match;
	uint32_t mask;
	enum rv_format format;
};

/* The row of a code in [RV_OP_FIRST, RV_OP_COUNT). Lives forever. */
const struct rv_insn *rv_isa_insn(unsigned code);

/* The code of a 32-bit instruction, by the table alone: rounding modes 5 and 6 are not looked at.
 * RV_OP_illegal when no row matches. */
unsigned rv_isa_find(uint32_t bits);

/* One compressed instruction. Rows are searched in order, the first match counts. */
struct rv_compressed {
	const char *name;
	uint16_t match;
	uint16_t mask;
	uint32_t (*expand)(uint32_t bits); /* 0: this operand is reserved */
};

/* Row `index` of the compressed table, or NULL behind the last. */
const struct rv_compressed *rv_isa_compressed(unsigned index);

/* The row of a 16-bit instruction (bits 1:0 not 3), or NULL when none matches. */
const struct rv_compressed *rv_isa_find_compressed(uint16_t bits);

/* The 32-bit instruction a 16-bit one stands for, or 0 when it is reserved. */
uint32_t rv_isa_expand(uint16_t bits);

#endif
