/* SPDX-License-Identifier: MIT */
/*
 * Which instructions are none, against qemu-riscv64: every 16-bit encoding, and 32-bit ones that differ by a
 * few bits from existing ones, that the interpreter's decoder refuses must raise SIGILL there at the same
 * address, and ebreak SIGTRAP. That what the decoder accepts exists there is the differential test's part.
 *
 * The guest program handles the signals itself: it logs address and signal and skips 4 bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test.h"
#include "rv.h"
#include "rv_core.h"
#include "rv_isa.h"
#include "rvprogram.h"
#include "rvvalue.h"

enum {
	/* registers */
	RA = 1,
	T0 = 5,
	T1 = 6,
	T2 = 7,
	A0 = 10,
	A1 = 11,
	A2 = 12,
	A3 = 13,
	A7 = 17,
	/* encodings */
	ADDI = 0x00000013,
	LD = 0x00003003,
	SD = 0x00003023,
	JALR = 0x00000067,
	ECALL = 0x00000073,
	EBREAK = 0x00100073,
	CSRRWI = 0x00005073,
	C_NOP = 0x0001,
	C_EBREAK = 0x9002,
	CSR_FRM = 2,
	/* Linux */
	SYS_RT_SIGACTION = 134,
	SIGNAL_ILL = 4,
	SIGNAL_TRAP = 5,
	ACTION_FLAGS = 0x40000004, /* SA_SIGINFO | SA_NODEFER */
	CONTEXT_PC = 176,          /* of ucontext_t */
	MASK_SIZE = 8,
	/* the data area */
	ACTION_AT = 0,  /* struct sigaction */
	CURSOR_AT = 64, /* where the next entry of the log goes */
	/* the log */
	ENTRY = 16, /* address, signal */
	PER_PROGRAM = 20000,
	NEAR_MISSES = 400, /* an instruction of the table */
	PROBES_MAX = 200000,
};

static uint32_t enc_i(uint32_t op, unsigned rd, unsigned rs1, uint32_t imm)
{
	return op | rd << 7 | rs1 << 15 | imm << 20;
}

static uint32_t enc_s(uint32_t op, unsigned rs2, unsigned rs1, uint32_t imm)
{
	return op | (imm & 31) << 7 | rs1 << 15 | rs2 << 20 | imm >> 5 << 25;
}

static uint32_t probes[PROBES_MAX];
static unsigned probe_count;

static void add_probe(uint32_t bits)
{
	if (probe_count < PROBES_MAX)
		probes[probe_count++] = bits;
}

static bool is_illegal(uint32_t bits)
{
	struct rv_slot slot;

	rv_decode(&slot, bits, 0);
	return slot.code == RV_OP_illegal;
}

static void add_compressed(void)
{
	for (uint32_t bits = 0; bits <= UINT16_MAX; bits++)
		if ((bits & 3) != 3 && is_illegal(bits))
			add_probe(bits);
}

static void add_near_misses(struct rvrandom *random)
{
	for (unsigned code = RV_OP_FIRST; code < RV_OP_COUNT; code++) {
		const struct rv_insn *insn = rv_isa_insn(code);

		for (unsigned i = 0; i < NEAR_MISSES; i++) {
			uint32_t flip = UINT32_C(4) << rvrandom_below(random, 30);
			uint32_t more = UINT32_C(4) << rvrandom_below(random, 30);
			uint32_t bits = insn->match | ((uint32_t)rvrandom_next(random) & ~insn->mask);

			bits ^= flip | (i % 2 ? more : 0);
			if ((bits & 0x1f) != 0x1f && is_illegal(bits))
				add_probe(bits);
		}
	}
}

/* The signal handler: (signal, info, context). */
static uint64_t emit_handler(struct rvprogram *program)
{
	uint64_t start = rvprogram_here(program);

	rvprogram_load_x(program, T0, RVPROGRAM_DATA + CURSOR_AT);
	rvprogram_emit32(program, enc_i(LD, T1, T0, 0));
	rvprogram_emit32(program, enc_i(LD, T2, A2, CONTEXT_PC));
	rvprogram_emit32(program, enc_s(SD, T2, T1, 0));
	rvprogram_emit32(program, enc_s(SD, A0, T1, 8));
	rvprogram_emit32(program, enc_i(ADDI, T1, T1, ENTRY));
	rvprogram_emit32(program, enc_s(SD, T1, T0, 0));
	rvprogram_emit32(program, enc_i(ADDI, T2, T2, 4));
	rvprogram_emit32(program, enc_s(SD, T2, A2, CONTEXT_PC));
	rvprogram_emit32(program, enc_i(JALR, 0, RA, 0));
	return start;
}

static void emit_sigaction(struct rvprogram *program, unsigned number)
{
	rvprogram_load_x(program, A0, number);
	rvprogram_load_x(program, A1, RVPROGRAM_DATA + ACTION_AT);
	rvprogram_load_x(program, A2, 0);
	rvprogram_load_x(program, A3, MASK_SIZE);
	rvprogram_load_x(program, A7, SYS_RT_SIGACTION);
	rvprogram_emit32(program, ECALL);
}

static void set_data(struct rvprogram *program, unsigned at, uint64_t value)
{
	memcpy(program->data + at, &value, sizeof(value));
}

struct expected {
	uint64_t pc;
	uint64_t number;
};

/* Emit probes [first, first + count) and what they must log. */
static struct rvprogram *make(const uint32_t *bits, unsigned count, struct expected *expected)
{
	struct rvprogram *program = rvprogram_new();

	assert_non_null(program);
	set_data(program, ACTION_AT, emit_handler(program));
	set_data(program, ACTION_AT + 8, ACTION_FLAGS);
	set_data(program, CURSOR_AT, RVPROGRAM_LOG);
	program->entry = rvprogram_here(program);
	emit_sigaction(program, SIGNAL_ILL);
	emit_sigaction(program, SIGNAL_TRAP);
	/* A dynamic rounding mode that does not exist: the floating-point probes that use it trap too. */
	rvprogram_emit32(program, enc_i(CSRRWI, 0, 5, CSR_FRM));
	for (unsigned i = 0; i < count; i++) {
		bool is_break = bits[i] == EBREAK || bits[i] == C_EBREAK;

		expected[i] = (struct expected){rvprogram_here(program), is_break ? SIGNAL_TRAP : SIGNAL_ILL};
		rvprogram_emit(program, bits[i]);
		if ((bits[i] & 3) != 3)
			rvprogram_emit16(program, C_NOP);
	}
	rvprogram_write(program, RVPROGRAM_LOG, (uint64_t)count * ENTRY);
	rvprogram_exit(program);
	rvprogram_finish(program);
	return program;
}

/* The number of probes that did not trap as expected. */
static unsigned check(
        const uint32_t *bits, unsigned count, const struct expected *expected, const struct rvoutput *output)
{
	unsigned logged = 0;
	unsigned bad = 0;

	for (unsigned i = 0; i < count; i++) {
		struct expected entry = {0};

		if ((size_t)(logged + 1) * ENTRY <= output->length)
			memcpy(&entry, output->bytes + (size_t)logged * ENTRY, sizeof(entry));
		if (entry.pc == expected[i].pc)
			logged++;
		if (entry.pc == expected[i].pc && entry.number == expected[i].number)
			continue;
		if (bad++ < 10)
			print_error("0x%08x does not raise signal %llu in qemu\n", bits[i],
			        (unsigned long long)expected[i].number);
	}
	return bad;
}

static unsigned probe(const uint32_t *bits, unsigned count)
{
	struct expected *expected = calloc(count, sizeof(*expected));
	struct rvprogram *program;
	struct rvoutput output;
	unsigned bad;

	assert_non_null(expected);
	program = make(bits, count, expected);
	rvprogram_run_qemu(program, &output);
	if (output.end[0])
		print_error("%s\n", output.end);
	bad = check(bits, count, expected, &output) + (output.end[0] != '\0');
	free(output.bytes);
	free(program);
	free(expected);
	return bad;
}

static void what_the_decoder_refuses_is_illegal_in_qemu(void **unused)
{
	struct rvrandom random = {1};
	unsigned bad = 0;

	(void)unused;
	if (!rvprogram_have_qemu()) {
		print_message("qemu-riscv64 (package qemu-user) is missing\n");
		skip();
	}
	probe_count = 0;
	add_compressed();
	add_near_misses(&random);
	print_message("%u encodings\n", probe_count);
	assert_true(probe_count > 4000 && probe_count < PROBES_MAX);
	for (unsigned i = 0; i < probe_count; i += PER_PROGRAM)
		bad += probe(probes + i, probe_count - i < PER_PROGRAM ? probe_count - i : PER_PROGRAM);
	assert_int_equal(bad, 0);
}

/* frm is 5 in the guest program. */
static void dynamic_rounding_by_a_mode_that_does_not_exist_is_illegal_in_qemu_too(void **unused)
{
	unsigned count = 0;

	(void)unused;
	if (!rvprogram_have_qemu()) {
		print_message("qemu-riscv64 (package qemu-user) is missing\n");
		skip();
	}
	probe_count = 0;
	for (unsigned code = RV_OP_fmadd_s; code < RV_OP_COUNT; code++) {
		const struct rv_insn *insn = rv_isa_insn(code);
		struct rv_slot slot;

		rv_decode(&slot, insn->match | (7u << 12 & ~insn->mask), 0);
		if (slot.rm != RV_RM_DYN)
			continue;
		count++;
		add_probe(slot.bits);
	}
	assert_true(count > 30);
	assert_int_equal(probe(probes, probe_count), 0);
}

static void both_breakpoints_trap_in_qemu(void **unused)
{
	const uint32_t bits[] = {EBREAK, C_EBREAK};

	(void)unused;
	if (!rvprogram_have_qemu()) {
		print_message("qemu-riscv64 (package qemu-user) is missing\n");
		skip();
	}
	assert_int_equal(probe(bits, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(what_the_decoder_refuses_is_illegal_in_qemu),
	        cmocka_unit_test(dynamic_rounding_by_a_mode_that_does_not_exist_is_illegal_in_qemu_too),
	        cmocka_unit_test(both_breakpoints_trap_in_qemu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
