/* SPDX-License-Identifier: MIT */
/* Inside the interpreter: decoded code, the bus, and what rv_run() calls. Not for users of rv.h. */
#ifndef RV_CORE_H
#define RV_CORE_H

#include "rv.h"
#include "rv_isa.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "guest memory is accessed in place: the host must be little-endian"
#endif

#define RV_PAGE_MASK   ((uint64_t)RV_PAGE_SIZE - 1)
#define RV_PAGE_SLOTS  (RV_PAGE_SIZE / 2) /* an instruction may start at every halfword */
#define RV_TLB_ENTRIES 512u               /* each of loads and stores; a power of two */
#define RV_CODE_SETS   16u                /* a power of two */
#define RV_CODE_WAYS   4u
#define RV_SINK        RV_XREGS   /* the x register that takes results for x0 */
#define RV_NO_TAG      UINT64_MAX /* no page and no (page | low address bits) compares equal */

#define RV_OPCODE_LOW 0x7fu /* bits 6:0 of an instruction, the major opcode */

/* fcsr */
#define RV_FFLAGS    0x1fu
#define RV_FRM_SHIFT 5
#define RV_FCSR_MASK 0xffu
#define RV_RM_DYN    7u /* in an instruction: take frm */

/* A single in an f register: the upper half is all ones. */
#define RV_NAN_BOX UINT64_C(0xffffffff00000000)

/* Extra cycles, as rv_cycles() documents. */
#define RV_STALL_MUL    2u
#define RV_STALL_DIV    20u
#define RV_STALL_FP     3u
#define RV_STALL_FPDIV  20u
#define RV_STALL_ATOMIC 10u
#define RV_STALL_FENCE  5u
#define RV_STALL_FENCEI 50u

/* One decoded instruction. */
struct rv_slot {
	uint8_t code; /* enum rv_code */
	uint8_t rd;   /* an x register 0 is RV_SINK here */
	uint8_t rs1;  /* csrr?i: the immediate */
	uint8_t rs2;
	uint8_t rs3;
	uint8_t rm;
	uint8_t slots; /* length in halfwords, 1 or 2 */
	uint8_t spare;
	int32_t imm;   /* bytes; of a branch inside the page: slots; of a CSR instruction: its number */
	uint32_t bits; /* as fetched */
};

/* A code page. Its slots are decoded one by one when first executed. */
struct rv_codepage {
	uint64_t va; /* or RV_NO_TAG */
	const uint16_t *host;
	/* Two ends: the last instruction may reach one halfword into the next page. */
	struct rv_slot slot[RV_PAGE_SLOTS + 2];
};

struct rv_tlb {
	uint64_t tag;  /* page address or RV_NO_TAG */
	uintptr_t add; /* host address minus guest address */
};

struct rv_bus {
	const struct rv_bus_ops *ops;
	void *ctx;
	const struct rv_hart *last; /* who ran last; compared only */
	bool changed;               /* code was flushed while rv_run() holds a page */
	unsigned victim;            /* the way to replace next */
	struct rv_tlb loads[RV_TLB_ENTRIES];
	struct rv_tlb stores[RV_TLB_ENTRIES];
	struct rv_codepage code[RV_CODE_SETS][RV_CODE_WAYS];
};

/* What executing one instruction out of line came to. */
enum rv_done {
	RV_DONE,
	RV_DONE_FAULT, /* cause is set */
	RV_DONE_ILLEGAL,
	RV_DONE_RETRY, /* not executed for now (contended memory): give the host a turn */
};

/* Set cause for a fault; returns RV_DONE_FAULT. */
enum rv_done rv_fault(struct rv_hart *hart, uint64_t address, enum rv_access access);

/* rv_bus.c: forget decoded code only (fence.i). */
void rv_bus_flush_code(struct rv_bus *bus);
/* The page of va for executing, or NULL with cause set. */
struct rv_codepage *rv_code_find(struct rv_bus *bus, struct rv_hart *hart, uint64_t va);
/* Decode one slot in place; false with cause set when the second half cannot be fetched. */
bool rv_code_fill(struct rv_bus *bus, struct rv_hart *hart, struct rv_codepage *code, struct rv_slot *slot);

/* rv_decode.c: pure. `slot_index` is the place in the page, for branches. */
void rv_decode(struct rv_slot *slot, uint32_t bits, unsigned slot_index);

/* rv_mem.c: one load or store instruction that missed the TLB, is misaligned, or is MMIO. */
enum rv_done rv_mem_slow(struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op);
/* Host memory of an aligned access, or NULL: *map says whether it is MMIO or a fault. */
void *rv_mem_host(struct rv_bus *bus, uint64_t va, enum rv_access access, enum rv_map *map);

/* rv_atomic.c, rv_csr.c */
enum rv_done rv_atomic(struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op);
enum rv_done rv_csr(struct rv_bus *bus, struct rv_hart *hart, const struct rv_slot *op);

/* rv_fp.c: one function an instruction; false is an illegal instruction (rounding mode). */
#define RV_PROTO(name, match, mask, format)                                                                  \
	bool rv_exec_##name(struct rv_hart *hart, const struct rv_slot *op);
RV_ISA_FLOAT(RV_PROTO)
#undef RV_PROTO

#endif
