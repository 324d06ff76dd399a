/* SPDX-License-Identifier: MIT */
/*
 * The interpreter loop: threaded code over decoded slots. One function, because its locals are the machine's
 * registers: `op` (the program counter), `left` (the budget), the byte counters. What is long or rare is out
 * of line; what is here is what runs hundreds of millions of times a second. With its integer instructions
 * as functions behind a table a loop of them took 105 to 111 ms in place of 78 (2026-11-29, gcc 12.2).
 */
#include "rv_core.h"

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

static uint64_t sext(uint64_t value)
{
	return (uint64_t)(int32_t)value;
}

/* Division never traps: by zero it gives all ones and the dividend, and the one overflow wraps (M, 7.2). */
static uint64_t div_s(uint64_t a, uint64_t b)
{
	if (b == 0)
		return UINT64_MAX;
	return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t rem_s(uint64_t a, uint64_t b)
{
	if (b == 0)
		return a;
	return b == UINT64_MAX ? 0 : (uint64_t)((int64_t)a % (int64_t)b);
}

static uint64_t div_u(uint64_t a, uint64_t b)
{
	return b == 0 ? UINT64_MAX : a / b;
}

static uint64_t rem_u(uint64_t a, uint64_t b)
{
	return b == 0 ? a : a % b;
}

static uint64_t mul_high(uint64_t a, uint64_t b)
{
	return (uint64_t)((s128)(int64_t)a * (int64_t)b >> 64);
}

static uint64_t mul_high_su(uint64_t a, uint64_t b)
{
	/* A negative a was taken as a + 2^64: b too much in the upper half. */
	return (uint64_t)((u128)a * b >> 64) - ((int64_t)a < 0 ? b : 0);
}

static uint64_t mul_high_u(uint64_t a, uint64_t b)
{
	return (uint64_t)((u128)a * b >> 64);
}

static enum rv_stop stop_of(enum rv_done done)
{
	return done == RV_DONE_FAULT ? RV_FAULT : done == RV_DONE_ILLEGAL ? RV_ILLEGAL : RV_BUDGET;
}

static void begin(struct rv_bus *bus, struct rv_hart *hart)
{
	hart->cause = (struct rv_cause){0};
	hart->x[0] = 0;
	hart->pc &= ~UINT64_C(1);
	hart->fcsr &= RV_FCSR_MASK;
	if (bus->last != hart)
		hart->reserved_width = 0;
	bus->last = hart;
}

#define PC() (page_va + (uint64_t)(op - page->slot) * 2)

#define DISPATCH() goto *label[op->code]
/* Execute op: one unit of the budget. */
#define EXECUTE()                                                                                            \
	do {                                                                                                 \
		if (UNLIKELY(left == 0))                                                                     \
			goto out_of_budget;                                                                  \
		left--;                                                                                      \
		DISPATCH();                                                                                  \
	} while (0)
#define NEXT()                                                                                               \
	do {                                                                                                 \
		op += op->slots;                                                                             \
		EXECUTE();                                                                                   \
	} while (0)
/* Go to an address of any page. */
#define JUMP(address)                                                                                        \
	do {                                                                                                 \
		target = (address);                                                                          \
		goto jump;                                                                                   \
	} while (0)

#define RS1 x[op->rs1]
#define RS2 x[op->rs2]
#define IMM ((uint64_t)(int64_t)op->imm)
#define INT(name, value)                                                                                     \
	op_##name : x[op->rd] = (value);                                                                     \
	NEXT();
#define SLOW_INT(name, stall, value)                                                                         \
	op_##name : x[op->rd] = (value);                                                                     \
	stalls += (stall);                                                                                   \
	NEXT();
#define BRANCH(name, condition)                                                                              \
	op_##name : if (condition)                                                                           \
	{                                                                                                    \
		op += op->imm;                                                                               \
		EXECUTE();                                                                                   \
	}                                                                                                    \
	NEXT();                                                                                              \
	op_##name##_far : if (condition) JUMP(PC() + IMM);                                                   \
	NEXT();

/* Memory: the tag compares equal only for an aligned address in a page known for this access. */
#define TLB(table) (&(table)[address / RV_PAGE_SIZE % RV_TLB_ENTRIES])
#define HIT(type)  LIKELY(tlb->tag == (address & (~RV_PAGE_MASK | (sizeof(type) - 1))))
#define HOST(type) ((type *)(tlb->add + (uintptr_t)address))
#define LOAD(name, type, set)                                                                                \
	op_##name : address = RS1 + IMM;                                                                     \
	tlb = TLB(bus->loads);                                                                               \
	if (!HIT(type))                                                                                      \
		goto memory;                                                                                 \
	set(__atomic_load_n(HOST(type), __ATOMIC_RELAXED));                                                  \
	bytes_read += sizeof(type);                                                                          \
	NEXT();
#define STORE(name, type, value)                                                                             \
	op_##name : address = RS1 + IMM;                                                                     \
	tlb = TLB(bus->stores);                                                                              \
	if (!HIT(type))                                                                                      \
		goto memory;                                                                                 \
	__atomic_store_n(HOST(type), (type)(value), __ATOMIC_RELAXED);                                       \
	bytes_written += sizeof(type);                                                                       \
	NEXT();
#define SET_X(value) (x[op->rd] = (uint64_t)(value))
#define SET_S(value) (f[op->rd] = (value) | RV_NAN_BOX)
#define SET_D(value) (f[op->rd] = (value))

/* Bring the hart up to date before something looks at it. `unfinished` instructions are begun, not done. */
#define SYNC(unfinished)                                                                                     \
	do {                                                                                                 \
		hart->pc = PC();                                                                             \
		hart->count.instructions += budget - left - (unfinished);                                    \
		hart->count.bytes_read += bytes_read;                                                        \
		hart->count.bytes_written += bytes_written;                                                  \
		hart->count.stalls += stalls;                                                                \
		budget = left + (unfinished);                                                                \
		bytes_read = bytes_written = stalls = 0;                                                     \
	} while (0)

enum rv_stop rv_run(struct rv_bus *bus, struct rv_hart *hart, uint64_t budget)
{
	static const void *const label[] = {[RV_OP_undecoded] = &&op_undecoded,
	        [RV_OP_page_end] = &&op_page_end,
	        [RV_OP_illegal] = &&op_illegal,
	        [RV_OP_jal_far] = &&op_jal_far,
	        [RV_OP_beq_far] = &&op_beq_far,
	        [RV_OP_bne_far] = &&op_bne_far,
	        [RV_OP_blt_far] = &&op_blt_far,
	        [RV_OP_bge_far] = &&op_bge_far,
	        [RV_OP_bltu_far] = &&op_bltu_far,
	        [RV_OP_bgeu_far] = &&op_bgeu_far,
#define LABEL(name, match, mask, format) [RV_OP_##name] = &&op_##name,
	        RV_ISA(LABEL)
#undef LABEL
	};
	uint64_t *const x = hart->x;
	uint64_t *const f = hart->f;
	uint64_t left = budget;
	uint64_t bytes_read = 0, bytes_written = 0, stalls = 0;
	struct rv_codepage *page;
	uint64_t page_va; /* kept here: a flush takes it from the page */
	struct rv_slot *op;
	struct rv_tlb *tlb;
	uint64_t address, target;
	enum rv_stop stop;
	enum rv_done done;

	begin(bus, hart);
	if (budget == 0)
		return RV_BUDGET;
	target = hart->pc;
	goto jump;

jump: /* to target, with the instruction before it counted */
	if (left == 0) {
		stop = RV_BUDGET;
		goto leave_at_target;
	}
	page = rv_code_find(bus, hart, target);
	if (UNLIKELY(!page)) {
		stop = RV_FAULT;
		goto leave_at_target;
	}
	bus->changed = false;
	page_va = page->va;
	op = &page->slot[(target & RV_PAGE_MASK) / 2];
	EXECUTE();

op_page_end: /* no instruction: take back its unit */
	left++;
	JUMP(PC());

op_undecoded:
	if (UNLIKELY(!rv_code_fill(bus, hart, page, op))) {
		stop = RV_FAULT;
		goto leave_at;
	}
	DISPATCH();

op_illegal:
	done = RV_DONE_ILLEGAL;
	goto not_done;

	INT(lui, IMM)
	INT(auipc, PC() + IMM)
	INT(addi, RS1 + IMM)
	INT(slti, (int64_t)RS1 < op->imm)
	INT(sltiu, RS1 < IMM)
	INT(xori, RS1 ^ IMM)
	INT(ori, RS1 | IMM)
	INT(andi, RS1 & IMM)
	INT(slli, RS1 << op->imm)
	INT(srli, RS1 >> op->imm)
	INT(srai, (uint64_t)((int64_t)RS1 >> op->imm))
	INT(add, RS1 + RS2)
	INT(sub, RS1 - RS2)
	INT(sll, RS1 << (RS2 & 63))
	INT(slt, (int64_t)RS1 < (int64_t)RS2)
	INT(sltu, RS1 < RS2)
	INT(xor, RS1 ^ RS2)
	INT(srl, RS1 >> (RS2 & 63))
	INT(sra, (uint64_t)((int64_t)RS1 >> (RS2 & 63)))
	INT(or, RS1 | RS2)
	INT(and, RS1 & RS2)
	INT(addiw, sext(RS1 + IMM))
	INT(slliw, sext(RS1 << op->imm))
	INT(srliw, sext((uint32_t)RS1 >> op->imm))
	INT(sraiw, sext((uint64_t)((int32_t)RS1 >> op->imm)))
	INT(addw, sext(RS1 + RS2))
	INT(subw, sext(RS1 - RS2))
	INT(sllw, sext(RS1 << (RS2 & 31)))
	INT(srlw, sext((uint32_t)RS1 >> (RS2 & 31)))
	INT(sraw, sext((uint64_t)((int32_t)RS1 >> (RS2 & 31))))
	SLOW_INT(mul, RV_STALL_MUL, RS1 * RS2)
	SLOW_INT(mulh, RV_STALL_MUL, mul_high(RS1, RS2))
	SLOW_INT(mulhsu, RV_STALL_MUL, mul_high_su(RS1, RS2))
	SLOW_INT(mulhu, RV_STALL_MUL, mul_high_u(RS1, RS2))
	SLOW_INT(mulw, RV_STALL_MUL, sext(RS1 * RS2))
	SLOW_INT(div, RV_STALL_DIV, div_s(RS1, RS2))
	SLOW_INT(divu, RV_STALL_DIV, div_u(RS1, RS2))
	SLOW_INT(rem, RV_STALL_DIV, rem_s(RS1, RS2))
	SLOW_INT(remu, RV_STALL_DIV, rem_u(RS1, RS2))
	SLOW_INT(divw, RV_STALL_DIV, sext(div_s(sext(RS1), sext(RS2))))
	SLOW_INT(divuw, RV_STALL_DIV, sext(div_u((uint32_t)RS1, (uint32_t)RS2)))
	SLOW_INT(remw, RV_STALL_DIV, sext(rem_s(sext(RS1), sext(RS2))))
	SLOW_INT(remuw, RV_STALL_DIV, sext(rem_u((uint32_t)RS1, (uint32_t)RS2)))

	BRANCH(beq, RS1 == RS2)
	BRANCH(bne, RS1 != RS2)
	BRANCH(blt, (int64_t)RS1 < (int64_t)RS2)
	BRANCH(bge, (int64_t)RS1 >= (int64_t)RS2)
	BRANCH(bltu, RS1 < RS2)
	BRANCH(bgeu, RS1 >= RS2)

op_jal:
	x[op->rd] = PC() + op->slots * 2u;
	op += op->imm;
	EXECUTE();

op_jal_far:
	target = PC();
	x[op->rd] = target + op->slots * 2u;
	JUMP(target + IMM);

op_jalr:
	target = (RS1 + IMM) & ~UINT64_C(1);
	x[op->rd] = PC() + op->slots * 2u;
	if (LIKELY((target & ~RV_PAGE_MASK) == page_va)) {
		op = &page->slot[(target & RV_PAGE_MASK) / 2];
		EXECUTE();
	}
	goto jump;

	LOAD(lb, int8_t, SET_X)
	LOAD(lh, int16_t, SET_X)
	LOAD(lw, int32_t, SET_X)
	LOAD(ld, uint64_t, SET_X)
	LOAD(lbu, uint8_t, SET_X)
	LOAD(lhu, uint16_t, SET_X)
	LOAD(lwu, uint32_t, SET_X)
	LOAD(flw, uint32_t, SET_S)
	LOAD(fld, uint64_t, SET_D)
	STORE(sb, uint8_t, RS2)
	STORE(sh, uint16_t, RS2)
	STORE(sw, uint32_t, RS2)
	STORE(sd, uint64_t, RS2)
	STORE(fsw, uint32_t, f[op->rs2])
	STORE(fsd, uint64_t, f[op->rs2])

memory:
	SYNC(1);
	done = rv_mem_slow(bus, hart, op);
	if (UNLIKELY(done != RV_DONE))
		goto not_done;
	goto next_after_callback;

#define ATOMIC(name, match, mask, format) op_##name:
	RV_ISA_ATOMIC(ATOMIC)
#undef ATOMIC
	SYNC(1);
	done = rv_atomic(bus, hart, op);
	if (UNLIKELY(done != RV_DONE))
		goto not_done;
	goto next_after_callback;

#define CSR(name, match, mask, format) op_##name:
	RV_ISA_CSR(CSR)
#undef CSR
	SYNC(1);
	done = rv_csr(bus, hart, op);
	if (UNLIKELY(done != RV_DONE))
		goto not_done;
	goto next_after_callback;

#define FLOAT(name, match, mask, format)                                                                     \
	op_##name : if (UNLIKELY(!rv_exec_##name(hart, op))) goto op_illegal;                                \
	NEXT();
	RV_ISA_FLOAT(FLOAT)
#undef FLOAT

op_fence:
	__sync_synchronize();
	stalls += RV_STALL_FENCE;
	NEXT();

op_fence_i:
	rv_bus_flush_code(bus);
	stalls += RV_STALL_FENCEI;
	goto next_after_callback;

op_ecall:
	stop = RV_ECALL;
	goto leave_at;

op_ebreak:
	stop = RV_EBREAK;
	goto leave_at;

op_wfi:
	stop = RV_WFI;
	goto leave_after;

op_custom0:
	stop = RV_CUSTOM;
	goto leave_after;

next_after_callback: /* the callback may have flushed the page under us */
	op += op->slots;
	if (UNLIKELY(bus->changed))
		JUMP(PC());
	EXECUTE();

not_done:
	stop = stop_of(done);
	if (done == RV_DONE_ILLEGAL) {
		hart->cause.bits = op->bits;
		hart->cause.length = op->slots * 2u;
	}
	SYNC(1);
	return stop;

leave_at:
	SYNC(1);
	if (stop != RV_FAULT) {
		hart->cause.bits = op->bits;
		hart->cause.length = op->slots * 2u;
	}
	return stop;

leave_after:
	hart->cause.bits = op->bits;
	hart->cause.length = op->slots * 2u;
	op += op->slots;
	SYNC(0);
	return stop;

out_of_budget:
	SYNC(0);
	return RV_BUDGET;

leave_at_target: /* nothing of the target has begun, there is no page of it */
	hart->count.instructions += budget - left;
	hart->count.bytes_read += bytes_read;
	hart->count.bytes_written += bytes_written;
	hart->count.stalls += stalls;
	hart->pc = target;
	return stop;
}
