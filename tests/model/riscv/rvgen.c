/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "rv_isa.h"
#include "rvgen.h"
#include "rvvalue.h"

enum {
	RA = 1,
	REGS = 32,
	JAL = 0x0000006f,
	JALR = 0x00000067,
	ADDI = 0x00000013,
	SD = 0x00003023,
	FSD = 0x00003027,
	LD = 0x00003003,
	LR_W = 0x1000202f,
	LR_D = 0x1000302f,
	CSRRS = 0x00002073,
	CSRRWI = 0x00005073,
	C_ADDI = 0x0001,
	CSR_FFLAGS = 1,
	CSR_FRM = 2,
	CSR_FCSR = 3,
	RM_DYN = 7,
	TRIES = 2000,     /* random encodings tried for one that may be a step */
	FLOAT_REPEAT = 3, /* steps of a floating-point row for one of another */
	MAX_SKIP = 60,    /* bytes a jump under test leaps over */
};

struct state {
	struct rvgen *gen;
	struct rvprogram *program;
	struct rvrandom random;
	unsigned log;  /* x register: where the next record goes */
	unsigned link; /* x register: back from the recorder */
	uint64_t recorder;
};

static unsigned field(uint32_t bits, unsigned high, unsigned low)
{
	return bits << (31 - high) >> (31 - high + low);
}

#define RD(bits)  field(bits, 11, 7)
#define RS1(bits) field(bits, 19, 15)
#define RS2(bits) field(bits, 24, 20)
#define RS3(bits) field(bits, 31, 27)

static uint32_t enc_i(uint32_t op, unsigned rd, unsigned rs1, uint32_t imm)
{
	return op | rd << 7 | rs1 << 15 | imm << 20;
}

static uint32_t enc_s(uint32_t op, unsigned rs2, unsigned rs1, uint32_t imm)
{
	return op | (imm & 31) << 7 | rs1 << 15 | rs2 << 20 | imm >> 5 << 25;
}

static uint32_t enc_jal(unsigned rd, int64_t offset)
{
	uint32_t o = (uint32_t)offset;

	return JAL | rd << 7 | (o & 0xff000) | (o >> 11 & 1) << 20 | (o >> 1 & 0x3ff) << 21 |
	       (o >> 20 & 1) << 31;
}

static int32_t imm_i(uint32_t bits)
{
	return (int32_t)bits >> 20;
}

static int32_t imm_s(uint32_t bits)
{
	return (int32_t)(((uint32_t)((int32_t)bits >> 25) << 5) | field(bits, 11, 7));
}

/* Of a branch or a jal. */
static int32_t offset_of(enum rv_format format, uint32_t bits)
{
	uint32_t sign = (uint32_t)((int32_t)bits >> 31);

	if (format == RV_FMT_B)
		return (int32_t)(sign << 12 | field(bits, 7, 7) << 11 | field(bits, 30, 25) << 5 |
		                 field(bits, 11, 8) << 1);
	return (int32_t)(sign << 20 | field(bits, 19, 12) << 12 | field(bits, 20, 20) << 11 |
	                 field(bits, 30, 21) << 1);
}

static unsigned compressed_rows(void)
{
	unsigned count = 0;

	while (rv_isa_compressed(count))
		count++;
	return count;
}

unsigned rvgen_rows(void)
{
	return RV_OP_COUNT - RV_OP_FIRST + compressed_rows();
}

/* NULL for a row of the 32-bit table. */
static const struct rv_compressed *compressed(unsigned row)
{
	unsigned wide = RV_OP_COUNT - RV_OP_FIRST;

	return row < wide ? NULL : rv_isa_compressed(row - wide);
}

const char *rvgen_row_name(unsigned row)
{
	return compressed(row) ? compressed(row)->name : rv_isa_insn(RV_OP_FIRST + row)->name;
}

bool rvgen_row_traps(unsigned row)
{
	static const char *const traps[] = {"ecall", "ebreak", "wfi", "custom0", "c_ebreak"};

	for (unsigned i = 0; i < sizeof(traps) / sizeof(traps[0]); i++)
		if (strcmp(traps[i], rvgen_row_name(row)) == 0)
			return true;
	return false;
}

/* Registers */

static bool is_ours(const struct state *state, unsigned reg)
{
	return reg == state->log || reg == state->link;
}

/* An x register the program may set. */
static bool is_free(const struct state *state, unsigned reg)
{
	return reg != 0 && !is_ours(state, reg);
}

static unsigned free_reg(struct state *state)
{
	unsigned reg;

	do {
		reg = rvrandom_below(&state->random, REGS);
	} while (!is_free(state, reg));
	return reg;
}

static void set_x(struct state *state, unsigned reg, uint64_t value)
{
	if (is_free(state, reg))
		rvprogram_load_x(state->program, reg, value);
}

static void set_f(struct state *state, unsigned reg, uint64_t value)
{
	rvprogram_load_f(state->program, reg, value, state->link);
}

/* The recorder: store everything at the log register, advance it, return. */
static void emit_recorder(struct state *state)
{
	struct rvprogram *program = state->program;
	unsigned scratch = free_reg(state);

	state->recorder = rvprogram_here(program);
	for (unsigned reg = 1; reg < REGS; reg++)
		rvprogram_emit32(program, enc_s(SD, reg, state->log, reg * 8));
	for (unsigned reg = 0; reg < REGS; reg++)
		rvprogram_emit32(program, enc_s(FSD, reg, state->log, RVGEN_F0 + reg * 8));
	rvprogram_emit32(program, enc_i(CSRRS, scratch, 0, CSR_FCSR));
	rvprogram_emit32(program, enc_s(SD, scratch, state->log, 0));
	rvprogram_emit32(program, enc_i(LD, scratch, state->log, scratch * 8));
	rvprogram_emit32(program, enc_i(ADDI, state->log, state->log, RVGEN_RECORD));
	rvprogram_emit32(program, enc_i(JALR, 0, state->link, 0));
}

static void emit_record(struct state *state)
{
	int64_t offset = (int64_t)(state->recorder - rvprogram_here(state->program));

	rvprogram_emit32(state->program, enc_jal(state->link, offset));
}

/* Instructions that show in the record whether they were executed. */
static void emit_filler(struct state *state, unsigned bytes)
{
	uint32_t add_one = C_ADDI | free_reg(state) << 7 | 1 << 2;

	for (unsigned i = 0; i < bytes; i += 2)
		rvprogram_emit16(state->program, add_one);
}

/* Choosing encodings */

struct choice {
	const char *name;
	uint32_t bits; /* as emitted */
	uint32_t wide; /* what it means, 32 bits */
	unsigned code;
	enum rv_format format;
	unsigned length;
};

static bool writes_x(enum rv_format format)
{
	switch (format) {
	case RV_FMT_U:
	case RV_FMT_J:
	case RV_FMT_I:
	case RV_FMT_SHIFT:
	case RV_FMT_R:
	case RV_FMT_LOAD:
	case RV_FMT_LR:
	case RV_FMT_AMO:
	case RV_FMT_CSR:
	case RV_FMT_CSRI:
	case RV_FMT_XF_RM:
	case RV_FMT_XF:
	case RV_FMT_XFF:
		return true;
	default:
		return false;
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

/* Formats whose rs1 is an address: the program must be able to set it. */
static bool has_base(const struct choice *choice)
{
	switch (choice->format) {
	case RV_FMT_LOAD:
	case RV_FMT_STORE:
	case RV_FMT_FLOAD:
	case RV_FMT_FSTORE:
	case RV_FMT_LR:
	case RV_FMT_AMO:
		return true;
	default:
		return choice->code == RV_OP_jalr;
	}
}

static bool is_jump(const struct choice *choice)
{
	return choice->format == RV_FMT_B || choice->format == RV_FMT_J;
}

/* The distance a jump can have as a step: over a filler, or back over a filler and a jal. */
static bool may_leap(const struct choice *choice)
{
	int32_t offset = offset_of(choice->format, choice->wide);

	return (offset >= (int32_t)choice->length && offset <= MAX_SKIP) ||
	       (offset <= -4 && offset >= -MAX_SKIP);
}

static bool may_be_step(const struct state *state, const struct choice *choice)
{
	if (writes_x(choice->format) && is_ours(state, RD(choice->wide)))
		return false;
	if (has_base(choice) && !is_free(state, RS1(choice->wide)))
		return false;
	if (has_rm(choice->format) && (field(choice->wide, 14, 12) == 5 || field(choice->wide, 14, 12) == 6))
		return false;
	if (is_jump(choice) && !may_leap(choice))
		return false;
	/* Only the floating-point CSRs exist for both sides. */
	if (choice->format == RV_FMT_CSR || choice->format == RV_FMT_CSRI)
		return field(choice->wide, 31, 20) >= CSR_FFLAGS && field(choice->wide, 31, 20) <= CSR_FCSR;
	return true;
}

/* A random instruction of the row, of which the fields with few good values are drawn from those. */
static uint32_t draw_wide(struct state *state, const struct rv_insn *insn)
{
	uint32_t bits = (uint32_t)rvrandom_next(&state->random);
	int64_t skip = 4 + 2 * (int64_t)rvrandom_below(&state->random, MAX_SKIP / 2 - 1);

	if (rvrandom_chance(&state->random, 30))
		skip = -skip;
	if (insn->format == RV_FMT_CSR || insn->format == RV_FMT_CSRI)
		bits = (bits & 0xfffff) | (1 + rvrandom_below(&state->random, 3)) << 20;
	if (insn->format == RV_FMT_J)
		bits = enc_jal(RD(bits), skip);
	if (insn->format == RV_FMT_B)
		bits = (bits & 0x01fff07f) | ((uint32_t)skip & 0x1e) << 7 |
		       ((uint32_t)skip >> 5 & 0x3f) << 25 | ((uint32_t)skip >> 11 & 1) << 7 |
		       ((uint32_t)skip >> 12 & 1) << 31;
	return insn->match | (bits & ~insn->mask);
}

static bool draw(struct state *state, unsigned row, struct choice *choice)
{
	const struct rv_compressed *narrow = compressed(row);

	for (unsigned i = 0; i < TRIES; i++) {
		if (narrow) {
			choice->bits =
			        narrow->match | (rvrandom_next(&state->random) & 0xffffu & ~narrow->mask);
			choice->wide = rv_isa_expand((uint16_t)choice->bits);
			if (rv_isa_find_compressed((uint16_t)choice->bits) != narrow || choice->wide == 0)
				continue;
		} else {
			choice->bits = draw_wide(state, rv_isa_insn(RV_OP_FIRST + row));
			choice->wide = choice->bits;
		}
		choice->name = rvgen_row_name(row);
		choice->length = narrow ? 2 : 4;
		choice->code = rv_isa_find(choice->wide);
		choice->format = rv_isa_insn(choice->code)->format;
		if (may_be_step(state, choice))
			return true;
	}
	return false;
}

/* Steps */

static void emit_step(struct state *state, const struct choice *choice)
{
	struct rvgen *gen = state->gen;

	gen->steps[gen->count++] =
	        (struct rvgen_step){choice->name, rvprogram_here(state->program), choice->bits};
	rvprogram_emit(state->program, choice->bits);
}

static void step_jump(struct state *state, const struct choice *choice)
{
	int32_t offset = offset_of(choice->format, choice->wide);
	unsigned back = (unsigned)-offset;

	if (choice->format == RV_FMT_B && rvrandom_chance(&state->random, 70)) {
		uint64_t value = rvvalue_int(&state->random);

		set_x(state, RS1(choice->wide), value);
		set_x(state, RS2(choice->wide),
		        rvrandom_chance(&state->random, 40) ? value : rvvalue_int(&state->random));
	}
	if (offset > 0) {
		emit_step(state, choice);
		emit_filler(state, (unsigned)offset - choice->length);
		return;
	}
	rvprogram_emit32(state->program, enc_jal(0, 4 + back));
	emit_filler(state, back - 4);
	rvprogram_emit32(state->program, enc_jal(0, 4 + choice->length));
	emit_step(state, choice);
}

static void step_jalr(struct state *state, const struct choice *choice)
{
	unsigned skip = 2 * rvrandom_below(&state->random, MAX_SKIP / 2);
	unsigned pool = rvprogram_load_x(state->program, RS1(choice->wide), 0);
	uint64_t target = rvprogram_here(state->program) + choice->length + skip;

	/* Bit 0 of the sum is dropped. */
	state->program->pool[pool] =
	        target + rvrandom_below(&state->random, 2) - (uint64_t)(int64_t)imm_i(choice->wide);
	emit_step(state, choice);
	emit_filler(state, skip);
}

/* An address in the lower half of the data area. The upper half is for sc without lr. */
static uint64_t data_address(struct state *state, bool aligned)
{
	uint32_t offset = rvrandom_below(&state->random, RVPROGRAM_DATA_SIZE / 2 - 16);

	if (rvrandom_chance(&state->random, 20)) /* around the end of a page */
		offset = 4096 - 12 + rvrandom_below(&state->random, 16);
	return RVPROGRAM_DATA + (aligned ? offset & ~7u : offset);
}

static void step_memory(struct state *state, const struct choice *choice)
{
	bool store = choice->format == RV_FMT_STORE || choice->format == RV_FMT_FSTORE;
	int32_t offset = store ? imm_s(choice->wide) : imm_i(choice->wide);
	uint64_t address = data_address(state, rvrandom_chance(&state->random, 60));

	set_x(state, RS1(choice->wide), address - (uint64_t)(int64_t)offset);
	emit_step(state, choice);
}

static void step_atomic(struct state *state, const struct choice *choice)
{
	bool conditional = choice->code == RV_OP_sc_w || choice->code == RV_OP_sc_d;
	bool wide = choice->code >= RV_OP_lr_d;
	unsigned base = RS1(choice->wide);
	uint64_t address = data_address(state, true);
	unsigned other;

	if (conditional && rvrandom_chance(&state->random, 25)) {
		set_x(state, base, address + RVPROGRAM_DATA_SIZE / 2);
		emit_step(state, choice);
		return;
	}
	set_x(state, RS2(choice->wide), rvvalue_int(&state->random));
	set_x(state, base, wide ? address : address + 4 * rvrandom_below(&state->random, 2));
	if (conditional) {
		do {
			other = free_reg(state);
		} while (other == base);
		rvprogram_emit32(state->program, (wide ? LR_D : LR_W) | other << 7 | base << 15);
		if (rvrandom_chance(&state->random, 25)) /* change what was reserved */
			rvprogram_emit32(state->program, enc_s(SD, base, base, 0));
	}
	emit_step(state, choice);
}

static bool takes_singles(uint32_t wide)
{
	unsigned low = wide & 0x7f;
	bool is_single = field(wide, 26, 25) == 0;
	/* Conversions between the formats name the result's. */
	bool swapped = low == 0x53 && field(wide, 31, 27) == 0x08;

	return is_single != swapped;
}

static void set_float_operands(struct state *state, const struct choice *choice)
{
	bool singles = takes_singles(choice->wide) != rvrandom_chance(&state->random, 4);
	uint64_t values[3];

	if (rvrandom_chance(&state->random, 15))
		return; /* whatever earlier steps left */
	if (singles)
		rvvalue_singles(&state->random, values);
	else
		rvvalue_doubles(&state->random, values);
	set_f(state, RS1(choice->wide), values[0]);
	if (choice->format != RV_FMT_FF_RM && choice->format != RV_FMT_XF_RM && choice->format != RV_FMT_XF)
		set_f(state, RS2(choice->wide), values[1]);
	if (choice->format == RV_FMT_FFFF_RM)
		set_f(state, RS3(choice->wide), values[2]);
}

static void step_float(struct state *state, const struct choice *choice)
{
	if (choice->format == RV_FMT_FX_RM || choice->format == RV_FMT_FX)
		set_x(state, RS1(choice->wide), rvvalue_int(&state->random));
	else
		set_float_operands(state, choice);
	if (rvrandom_chance(&state->random, 30))
		rvprogram_emit32(
		        state->program, enc_i(CSRRWI, 0, rvrandom_below(&state->random, 5), CSR_FRM));
	/* Clear the flags, or leave inexact alone, which selects the other implementation. */
	if (rvrandom_chance(&state->random, 60))
		rvprogram_emit32(
		        state->program, enc_i(CSRRWI, 0, rvrandom_below(&state->random, 2), CSR_FFLAGS));
	emit_step(state, choice);
}

static void step_int(struct state *state, const struct choice *choice)
{
	uint64_t values[2];

	if (rvrandom_chance(&state->random, 80)) {
		rvvalue_ints(&state->random, values);
		set_x(state, RS1(choice->wide), values[0]);
		set_x(state, RS2(choice->wide), values[1]);
	}
	emit_step(state, choice);
}

static void step(struct state *state, const struct choice *choice)
{
	switch (choice->format) {
	case RV_FMT_B:
	case RV_FMT_J:
		step_jump(state, choice);
		break;
	case RV_FMT_LOAD:
	case RV_FMT_STORE:
	case RV_FMT_FLOAD:
	case RV_FMT_FSTORE:
		step_memory(state, choice);
		break;
	case RV_FMT_LR:
	case RV_FMT_AMO:
		step_atomic(state, choice);
		break;
	case RV_FMT_U:
	case RV_FMT_R:
	case RV_FMT_I:
	case RV_FMT_SHIFT:
	case RV_FMT_CSR:
	case RV_FMT_CSRI:
	case RV_FMT_NONE:
		if (choice->code == RV_OP_jalr)
			step_jalr(state, choice);
		else
			step_int(state, choice);
		break;
	default:
		step_float(state, choice);
		break;
	}
	emit_record(state);
	/* A rounding mode that does not exist would make the next instruction with a dynamic one illegal. */
	if (choice->format == RV_FMT_CSR || choice->format == RV_FMT_CSRI)
		rvprogram_emit32(
		        state->program, enc_i(CSRRWI, 0, rvrandom_below(&state->random, 5), CSR_FRM));
}

static void choose_ours(struct state *state)
{
	/* Not x2: only it can be the base of the compressed stack accesses. */
	do {
		state->log = 1 + rvrandom_below(&state->random, REGS - 1);
		state->link = 1 + rvrandom_below(&state->random, REGS - 1);
	} while (state->log == state->link || state->log == 2 || state->link == 2);
}

static void emit_start(struct state *state)
{
	uint64_t values[3];

	emit_recorder(state);
	state->program->entry = rvprogram_here(state->program);
	for (unsigned reg = 0; reg < REGS; reg++) {
		set_x(state, reg, rvvalue_int(&state->random));
		rvvalue_doubles(&state->random, values);
		set_f(state, reg, values[0]);
	}
	rvprogram_load_x(state->program, state->log, RVPROGRAM_LOG);
	emit_record(state);
}

static void emit_row(struct state *state, unsigned row)
{
	struct choice choice;

	if (!rvgen_row_traps(row) && state->gen->count < RVGEN_STEPS && draw(state, row, &choice))
		step(state, &choice);
}

/* Rows in a random order: those of floating point often, as they have most to get wrong. */
static void emit_steps(struct state *state)
{
	unsigned rows = rvgen_rows();
	unsigned order[RVGEN_STEPS];
	unsigned count = 0;

	for (unsigned row = 0; row < rows; row++) {
		unsigned repeat = row + RV_OP_FIRST >= RV_OP_fmadd_s && !compressed(row) ? FLOAT_REPEAT : 1;

		for (unsigned i = 0; i < repeat; i++)
			order[count++] = row;
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned j = i + rvrandom_below(&state->random, count - i);
		unsigned row = order[j];

		order[j] = order[i];
		emit_row(state, row);
	}
}

void rvgen_make(struct rvgen *gen, uint64_t seed)
{
	struct state state = {.gen = gen, .random = {seed}};

	*gen = (struct rvgen){.program = rvprogram_new()};
	state.program = gen->program;
	if (!state.program)
		abort();
	for (size_t i = 0; i < sizeof(state.program->data); i++)
		state.program->data[i] = (uint8_t)rvrandom_next(&state.random);
	choose_ours(&state);
	emit_start(&state);
	emit_steps(&state);
	rvprogram_write(state.program, RVPROGRAM_LOG, (uint64_t)(gen->count + 1) * RVGEN_RECORD);
	rvprogram_write(state.program, RVPROGRAM_DATA, RVPROGRAM_DATA_SIZE);
	rvprogram_exit(state.program);
	rvprogram_finish(state.program);
}
