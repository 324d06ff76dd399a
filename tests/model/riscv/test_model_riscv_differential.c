/* SPDX-License-Identifier: MIT */
/*
 * The interpreter against qemu-riscv64, instruction by instruction: after each one, all registers and fcsr
 * must be the same, and all memory at the end. A failure names seed, instruction and register. RV_SEED=n runs
 * that seed alone, RV_SEEDS=n that many from 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test.h"
#include "rv.h"
#include "rv_isa.h"
#include "rvgen.h"

#define SEEDS    200u
#define LIMIT    UINT64_C(10000000) /* instructions of a program; a tenth of it is plenty */
#define MAX_ROWS 512u
#define REGS     32u

static unsigned covered[MAX_ROWS];

static uint64_t word(const struct rvoutput *output, unsigned record, unsigned offset)
{
	uint64_t value;

	memcpy(&value, output->bytes + (size_t)record * RVGEN_RECORD + offset, sizeof(value));
	return value;
}

static const char *register_name(unsigned offset, char name[8])
{
	if (offset == 0)
		return "fcsr";
	if (offset < RVGEN_F0)
		snprintf(name, 8, "x%u", offset / 8);
	else
		snprintf(name, 8, "f%u", (offset - RVGEN_F0) / 8);
	return name;
}

/* The registers the fields of an instruction name, as they were before it. */
static void print_operands(const struct rvgen_step *step, const struct rvoutput *output, unsigned before)
{
	uint32_t wide = (step->bits & 3) == 3 ? step->bits : rv_isa_expand((uint16_t)step->bits);
	const unsigned regs[] = {wide >> 15 & 31, wide >> 20 & 31, wide >> 27};

	for (unsigned i = 0; i < 3; i++)
		print_error("  recorded before: x%-2u %016llx  f%-2u %016llx\n", regs[i],
		        regs[i] ? (unsigned long long)word(output, before, regs[i] * 8) : 0, regs[i],
		        (unsigned long long)word(output, before, RVGEN_F0 + regs[i] * 8));
}

static void report(const struct rvgen *gen, uint64_t seed, unsigned record, unsigned offset,
        const struct rvoutput *expected, const struct rvoutput *got)
{
	static const struct rvgen_step start = {"start", 0, 3};
	const struct rvgen_step *step = record == 0 ? &start : &gen->steps[record - 1];
	char name[8];

	print_error("seed %llu, step %u, %s (0x%08x) at 0x%llx: %s is %016llx, qemu has %016llx\n",
	        (unsigned long long)seed, record, step->name, step->bits, (unsigned long long)step->pc,
	        register_name(offset, name), (unsigned long long)word(got, record, offset),
	        (unsigned long long)word(expected, record, offset));
	if (record > 0)
		print_operands(step, expected, record - 1);
}

/* The number of steps that differ; only the first few matter, later ones may follow from them. */
static unsigned compare(
        const struct rvgen *gen, uint64_t seed, const struct rvoutput *expected, const struct rvoutput *got)
{
	unsigned bad = 0;

	for (unsigned record = 0; record <= gen->count && bad < 3; record++) {
		bool differs = false;

		for (unsigned offset = 0; offset < RVGEN_RECORD; offset += 8) {
			if (word(expected, record, offset) == word(got, record, offset))
				continue;
			report(gen, seed, record, offset, expected, got);
			differs = true;
		}
		bad += differs;
	}
	return bad;
}

static void count_rows(const struct rvgen *gen)
{
	for (unsigned i = 0; i < gen->count; i++)
		for (unsigned row = 0; row < rvgen_rows(); row++)
			covered[row] += gen->steps[i].name == rvgen_row_name(row);
}

static bool same(uint64_t seed)
{
	struct rvgen *gen = malloc(sizeof(*gen));
	struct rvoutput expected, got;
	unsigned bad = 1;

	assert_non_null(gen);
	rvgen_make(gen, seed);
	count_rows(gen);
	rvprogram_run_qemu(gen->program, &expected);
	rvprogram_run_interpreter(gen->program, seed, LIMIT, &got);
	if (expected.end[0] || got.end[0] || expected.length != got.length)
		print_error("seed %llu: %s %s (%zu and %zu bytes)\n", (unsigned long long)seed, expected.end,
		        got.end, expected.length, got.length);
	else
		bad = compare(gen, seed, &expected, &got);
	if (bad == 0 && memcmp(expected.bytes, got.bytes, got.length) != 0) {
		print_error("seed %llu: memory differs at the end\n", (unsigned long long)seed);
		bad = 1;
	}
	free(expected.bytes);
	free(got.bytes);
	free(gen->program);
	free(gen);
	return bad == 0;
}

static void every_instruction_leaves_the_registers_qemu_leaves(void **unused)
{
	const char *one = getenv("RV_SEED");
	const char *many = getenv("RV_SEEDS");
	uint64_t first = one ? strtoull(one, NULL, 0) : 1;
	uint64_t last = one ? first : many ? strtoull(many, NULL, 0) : SEEDS;
	unsigned failed = 0;

	(void)unused;
	if (!rvprogram_have_qemu()) {
		print_message("qemu-riscv64 (package qemu-user) is missing\n");
		skip();
	}
	for (uint64_t seed = first; seed <= last && failed < 5; seed++)
		failed += !same(seed);
	assert_int_equal(failed, 0);
}

/* Runs after the test above, which counts. */
static void every_instruction_of_the_table_was_compared(void **unused)
{
	unsigned missing = 0;
	unsigned least = 0;

	(void)unused;
	if (!rvprogram_have_qemu() || getenv("RV_SEED"))
		skip();
	assert_true(rvgen_rows() < MAX_ROWS);
	for (unsigned row = 0; row < rvgen_rows(); row++) {
		if (rvgen_row_traps(row))
			continue;
		if (covered[row] == 0)
			print_error("%s was never tried\n", rvgen_row_name(row));
		missing += covered[row] == 0;
		if (covered[row] < covered[least] || rvgen_row_traps(least))
			least = row;
	}
	print_message("%u instructions, the rarest (%s) tried %u times\n", rvgen_rows(),
	        rvgen_row_name(least), covered[least]);
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_instruction_leaves_the_registers_qemu_leaves),
	        cmocka_unit_test(every_instruction_of_the_table_was_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
