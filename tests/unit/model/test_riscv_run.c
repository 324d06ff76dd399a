/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "test.h"
#include "riscv_machine.h"
#include "rv_core.h"

enum {
	PAGE = RV_PAGE_SIZE,
	RA = 1,
	A0 = 10,
	A1 = 11,
	A2 = 12,
	MANY = 1000,
};
#define MAGIC      UINT64_C(0xdead0000beef0)
#define CODE       MACHINE_CODE
#define DATA       MACHINE_DATA
#define SECOND     (MACHINE_CODE + PAGE)
#define LAST_PAGE  (UINT64_MAX - PAGE + 1)
#define ALL_RIGHTS (MACHINE_R | MACHINE_W | MACHINE_X)

static void assert_fetch_fault(const struct rv_hart *hart, uint64_t pc, uint64_t address)
{
	assert_int_equal(hart->pc, pc);
	assert_int_equal(hart->cause.address, address);
	assert_int_equal(hart->cause.access, RV_FETCH);
	assert_false(hart->cause.misaligned);
}

static void a_budget_is_used_up_to_the_instruction(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	for (unsigned i = 0; i < 20; i++)
		MACHINE_CODE_AT(m, CODE + 4 * i, i_addi(A0, A0, 1));
	assert_int_equal(rv_run(m->bus, &m->hart, 4), RV_BUDGET);
	assert_int_equal(m->hart.pc, CODE + 16);
	assert_int_equal(m->hart.x[A0], 4);
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	assert_int_equal(m->hart.x[A0], 5);
	assert_int_equal(m->hart.count.instructions, 5);
	machine_free(m);
}

static void a_budget_of_zero_does_nothing(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->hart.pc = MAGIC;
	assert_int_equal(rv_run(m->bus, &m->hart, 0), RV_BUDGET);
	assert_int_equal(m->hart.pc, MAGIC);
	assert_int_equal(m->hart.count.instructions, 0);
	assert_int_equal(m->asked[RV_FETCH], 0);
	machine_free(m);
}

static void a_budget_that_ends_with_a_jump_leaves_pc_at_its_target(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_jal(RA, PAGE + 8));
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	assert_int_equal(m->hart.pc, SECOND + 8);
	assert_int_equal(m->hart.x[RA], CODE + 4);
	assert_int_equal(m->hart.count.instructions, 1);
	/* Where it went is looked at only by the next run. */
	assert_int_equal(m->asked[RV_FETCH], 1);
	machine_free(m);
}

static void the_end_of_a_page_costs_no_budget(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, SECOND - 4, C_NOP, C_NOP, i_addi(A0, A0, 1), I_ECALL);
	m->hart.pc = SECOND - 4;
	assert_int_equal(rv_run(m->bus, &m->hart, 2), RV_BUDGET);
	assert_int_equal(m->hart.pc, SECOND);
	assert_int_equal(m->hart.count.instructions, 2);
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	assert_int_equal(m->hart.pc, SECOND + 4);
	assert_int_equal(m->hart.count.instructions, 3);
	machine_free(m);
}

/* Sums with a loop over a page boundary, long and short branches, memory and a call through the end of a
 * page. */
static void load_program(struct machine *m)
{
	MACHINE_CODE_AT(m, CODE, i_addi(A0, 0, 37), i_jal(0, PAGE - 6 - 4));
	MACHINE_CODE_AT(m, SECOND - 6, i_add(A1, A1, A0), i_addi(A0, A0, -1), i_store(3, A1, A2, 8),
	        i_load(2, 5, A2, 8), i_bne(A0, 0, -16), i_addi(6, 0, 3), C_NOP, i_addi(6, 6, -1),
	        i_bne(6, 0, -4), I_ECALL);
}

static void single_steps_come_to_the_same_as_one_run(void **state)
{
	struct machine *m = machine_new();
	unsigned steps = 0;

	(void)state;
	load_program(m);
	m->hart.x[A2] = m->other.x[A2] = DATA;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	while (rv_run(m->bus, &m->other, 1) == RV_BUDGET)
		assert_int_equal(m->other.count.instructions, ++steps);
	assert_memory_equal(m->hart.x, m->other.x, RV_XREGS * sizeof(m->hart.x[0]));
	assert_int_equal(m->hart.pc, m->other.pc);
	assert_int_equal(m->hart.count.instructions, steps);
	assert_memory_equal(&m->hart.count, &m->other.count, sizeof(m->hart.count));
	assert_int_equal(m->hart.x[A1], 37 * 38 / 2);
	machine_free(m);
}

static void an_ecall_stops_at_itself_uncounted(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_addi(A0, 0, 7), I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.pc, CODE + 4);
	assert_int_equal(m->hart.x[A0], 7);
	assert_int_equal(m->hart.count.instructions, 1);
	assert_int_equal(m->hart.cause.bits, I_ECALL);
	machine_free(m);
}

static void both_breakpoints_stop_at_themselves_and_tell_their_length(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, I_EBREAK, C_EBREAK);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_EBREAK);
	assert_int_equal(m->hart.pc, CODE);
	assert_int_equal(m->hart.cause.length, 4);
	m->hart.pc += m->hart.cause.length;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_EBREAK);
	assert_int_equal(m->hart.pc, CODE + 4);
	assert_int_equal(m->hart.cause.length, 2);
	assert_int_equal(m->hart.cause.bits, C_EBREAK);
	assert_int_equal(m->hart.count.instructions, 0);
	machine_free(m);
}

static void custom_0_stops_behind_itself_counted_with_its_bits(void **state)
{
	struct machine *m = machine_new();
	uint32_t barrier = I_CUSTOM | 0x12345000;

	(void)state;
	MACHINE_CODE_AT(m, CODE, barrier, i_addi(A0, 0, 1), I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_CUSTOM);
	assert_int_equal(m->hart.pc, CODE + 4);
	assert_int_equal(m->hart.cause.bits, barrier);
	assert_int_equal(m->hart.count.instructions, 1);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A0], 1);
	machine_free(m);
}

static void custom_0_across_a_page_boundary_leaves_pc_behind_it(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, SECOND - 2, I_CUSTOM | 0x7000);
	m->hart.pc = SECOND - 2;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_CUSTOM);
	assert_int_equal(m->hart.pc, SECOND + 2);
	machine_free(m);
}

static void wfi_stops_behind_itself(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, I_WFI, I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_WFI);
	assert_int_equal(m->hart.pc, CODE + 4);
	assert_int_equal(m->hart.count.instructions, 1);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	machine_free(m);
}

static void an_illegal_instruction_stops_at_itself_with_its_bits(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_addi(A0, 0, 1), 0xffffffff);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ILLEGAL);
	assert_int_equal(m->hart.pc, CODE + 4);
	assert_int_equal(m->hart.cause.bits, 0xffffffff);
	assert_int_equal(m->hart.cause.length, 4);
	assert_int_equal(m->hart.count.instructions, 1);
	/* All zeros is the 16-bit instruction defined to be illegal; what follows is not part of it. */
	MACHINE_CODE_AT(m, SECOND, 0x0000, C_NOP);
	m->hart.pc = SECOND;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ILLEGAL);
	assert_int_equal(m->hart.cause.bits, 0);
	assert_int_equal(m->hart.cause.length, 2);
	machine_free(m);
}

static void a_return_to_an_unmapped_address_is_a_fetch_fault_there(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_addi(A0, 0, 1), i_jalr(0, RA, 0));
	m->hart.x[RA] = MAGIC;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_fetch_fault(&m->hart, MAGIC, MAGIC);
	assert_int_equal(m->hart.count.instructions, 2);
	/* And it stays there. */
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_fetch_fault(&m->hart, MAGIC, MAGIC);
	assert_int_equal(m->hart.count.instructions, 2);
	machine_free(m);
}

static void running_off_the_last_page_is_a_fetch_fault_behind_it(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, SECOND + PAGE - 4, i_addi(A0, 0, 1));
	m->hart.pc = SECOND + PAGE - 4;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_fetch_fault(&m->hart, SECOND + PAGE, SECOND + PAGE);
	assert_int_equal(m->hart.x[A0], 1);
	assert_int_equal(m->hart.count.instructions, 1);
	machine_free(m);
}

static void a_missing_second_half_is_a_fetch_fault_at_the_next_page(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	*machine_at(m, SECOND + PAGE - 2) = I_NOP & 0xff;
	m->hart.pc = SECOND + PAGE - 2;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_fetch_fault(&m->hart, SECOND + PAGE - 2, SECOND + PAGE);
	assert_int_equal(m->hart.count.instructions, 0);
	machine_free(m);
}

static void data_pages_and_io_pages_cannot_be_executed(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, DATA, I_NOP);
	m->hart.pc = DATA;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_fetch_fault(&m->hart, DATA, DATA);
	machine_page(m, 0x40000, ALL_RIGHTS | MACHINE_IO);
	m->hart.pc = 0x40000;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_fetch_fault(&m->hart, 0x40000, 0x40000);
	assert_int_equal(m->io_count, 0);
	machine_free(m);
}

static void pc_wraps_at_the_end_of_the_address_space(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, LAST_PAGE, MACHINE_X);
	MACHINE_CODE_AT(m, LAST_PAGE + PAGE - 4, i_addi(A0, 0, 1));
	m->hart.pc = LAST_PAGE + PAGE - 4;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_fetch_fault(&m->hart, 0, 0);
	assert_int_equal(m->hart.x[A0], 1);
	machine_free(m);
}

static void bit_0_of_a_jump_target_and_of_pc_is_dropped(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_jalr(RA, A0, 3));
	MACHINE_CODE_AT(m, CODE + 8, I_ECALL);
	m->hart.x[A0] = CODE + 6;
	m->hart.pc = CODE + 1;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.pc, CODE + 8);
	assert_int_equal(m->hart.x[RA], CODE + 4);
	machine_free(m);
}

static void x0_stays_zero_whatever_writes_it(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	memset(machine_at(m, DATA), 0xff, 16);
	MACHINE_CODE_AT(m, CODE, i_addi(0, 0, 5), i_load(2, 0, A0, 0), i_load(4, 0, A0, 3),
	        i_atomic(AMO_ADD, 3, 0, A0, A0), i_atomic(AMO_LR, 2, 0, 0, A0), i_csr(2, 0, 0xc02, 0),
	        0xe2000053 /* fmv.x.d x0, f0 */, i_jal(0, 4), i_add(A1, 0, 0), I_ECALL);
	m->hart.x[A0] = DATA;
	m->hart.x[A1] = 99;
	m->hart.x[0] = 77; /* also from outside */
	m->hart.f[0] = 1;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[0], 0);
	assert_int_equal(m->hart.x[A1], 0);
	machine_free(m);
}

static void code_stored_by_the_guest_is_seen_after_fence_i(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_find(m, CODE)->rights = ALL_RIGHTS;
	/* Execute CODE, overwrite it, fence.i, execute it again. */
	MACHINE_CODE_AT(m, CODE, i_addi(A0, A0, 1), i_bne(A0, A2, 8), i_jal(0, 16), i_store(2, A1, RA, 0),
	        I_FENCEI, i_jal(0, -20), I_ECALL);
	m->hart.x[RA] = CODE;
	m->hart.x[A1] = i_addi(A0, 0, 50);
	m->hart.x[A2] = 50;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A0], 50);
	machine_free(m);
}

static void fence_i_makes_the_next_instruction_fresh(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	/* The store changes the instruction behind the fence.i, which an earlier pass has decoded. */
	machine_find(m, CODE)->rights = ALL_RIGHTS;
	MACHINE_CODE_AT(m, CODE, i_store(2, A1, RA, 8), I_FENCEI, i_addi(A0, 0, 1), I_ECALL);
	m->hart.x[RA] = CODE;
	m->hart.x[A1] = i_addi(A0, 0, 1);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A0], 1);
	m->hart.pc = CODE;
	m->hart.x[A1] = i_addi(A0, 0, 2);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A0], 2);
	machine_free(m);
}

static void fence_i_of_one_hart_serves_the_others_of_the_bus(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_find(m, CODE)->rights = ALL_RIGHTS;
	MACHINE_CODE_AT(m, CODE, i_addi(A0, 0, 1), I_ECALL);
	MACHINE_CODE_AT(m, SECOND, i_store(2, A1, RA, 0), I_FENCEI, I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	m->other.pc = SECOND;
	m->other.x[RA] = CODE;
	m->other.x[A1] = i_addi(A0, 0, 2);
	assert_int_equal(rv_run(m->bus, &m->other, MANY), RV_ECALL);
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A0], 2);
	machine_free(m);
}

static void harts_of_a_bus_keep_their_registers_apart(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_addi(A0, A0, 1), i_jal(0, -4));
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(rv_run(m->bus, &m->hart, 4), RV_BUDGET);
		assert_int_equal(rv_run(m->bus, &m->other, 2), RV_BUDGET);
	}
	assert_int_equal(m->hart.x[A0], 20);
	assert_int_equal(m->other.x[A0], 10);
	machine_free(m);
}

static void counters_count_bytes_and_cycles_as_documented(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_load(0, A1, A0, 0), i_load(3, A1, A0, 0), i_store(1, A1, A0, 0),
	        i_store(3, A1, A2, 0) /* misaligned, across pages: the slow way */,
	        i_atomic(AMO_ADD, 2, A1, A1, A0), 0x02b50533 /* mul */, 0x02b54533 /* div */, I_ECALL);
	m->hart.x[A0] = DATA;
	m->hart.x[A2] = DATA + PAGE - 7;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.count.instructions, 7);
	assert_int_equal(m->hart.count.bytes_read, 1 + 8 + 4);
	assert_int_equal(m->hart.count.bytes_written, 2 + 8 + 4);
	assert_int_equal(m->hart.count.stalls, 10 + 2 + 20);
	assert_int_equal(rv_cycles(&m->hart), 7 + 27 / 8 + 32);
	machine_free(m);
}

/* Random halfwords, half of them the start of a valid encoding, to get somewhere. */
static uint64_t scramble(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void randomise(struct machine *m, uint64_t *seed)
{
	for (uint64_t va = CODE; va < CODE + 2 * PAGE; va += 4) {
		const struct rv_insn *insn =
		        rv_isa_insn(RV_OP_FIRST + (unsigned)(scramble(seed) % (RV_OP_COUNT - RV_OP_FIRST)));
		uint32_t bits = (uint32_t)scramble(seed);

		if (scramble(seed) % 4 != 0)
			bits = insn->match | (bits & ~insn->mask);
		memcpy(machine_at(m, va), &bits, sizeof(bits));
	}
	for (unsigned i = 1; i < RV_XREGS; i++)
		m->hart.x[i] =
		        scramble(seed) % 8 ? scramble(seed) % 8192 + (i % 2 ? DATA : CODE) : scramble(seed);
}

static void random_bytes_as_code_never_exceed_the_budget(void **state)
{
	struct machine *m = machine_new();
	uint64_t seed = 1;

	(void)state;
	machine_find(m, CODE)->rights = ALL_RIGHTS;
	machine_page(m, 0x40000, MACHINE_R | MACHINE_W | MACHINE_IO);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t before = m->hart.count.instructions;

		randomise(m, &seed);
		rv_bus_flush_all(m->bus);
		for (unsigned j = 0; j < 40; j++) {
			m->hart.pc = CODE + scramble(&seed) % (2 * PAGE);
			rv_run(m->bus, &m->hart, 100);
		}
		assert_true(m->hart.count.instructions - before <= 4000);
		assert_int_equal(m->hart.x[0], 0);
	}
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_budget_is_used_up_to_the_instruction),
	        cmocka_unit_test(a_budget_of_zero_does_nothing),
	        cmocka_unit_test(a_budget_that_ends_with_a_jump_leaves_pc_at_its_target),
	        cmocka_unit_test(the_end_of_a_page_costs_no_budget),
	        cmocka_unit_test(single_steps_come_to_the_same_as_one_run),
	        cmocka_unit_test(an_ecall_stops_at_itself_uncounted),
	        cmocka_unit_test(both_breakpoints_stop_at_themselves_and_tell_their_length),
	        cmocka_unit_test(custom_0_stops_behind_itself_counted_with_its_bits),
	        cmocka_unit_test(custom_0_across_a_page_boundary_leaves_pc_behind_it),
	        cmocka_unit_test(wfi_stops_behind_itself),
	        cmocka_unit_test(an_illegal_instruction_stops_at_itself_with_its_bits),
	        cmocka_unit_test(a_return_to_an_unmapped_address_is_a_fetch_fault_there),
	        cmocka_unit_test(running_off_the_last_page_is_a_fetch_fault_behind_it),
	        cmocka_unit_test(a_missing_second_half_is_a_fetch_fault_at_the_next_page),
	        cmocka_unit_test(data_pages_and_io_pages_cannot_be_executed),
	        cmocka_unit_test(pc_wraps_at_the_end_of_the_address_space),
	        cmocka_unit_test(bit_0_of_a_jump_target_and_of_pc_is_dropped),
	        cmocka_unit_test(x0_stays_zero_whatever_writes_it),
	        cmocka_unit_test(code_stored_by_the_guest_is_seen_after_fence_i),
	        cmocka_unit_test(fence_i_makes_the_next_instruction_fresh),
	        cmocka_unit_test(fence_i_of_one_hart_serves_the_others_of_the_bus),
	        cmocka_unit_test(harts_of_a_bus_keep_their_registers_apart),
	        cmocka_unit_test(counters_count_bytes_and_cycles_as_documented),
	        cmocka_unit_test(random_bytes_as_code_never_exceed_the_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
