/* SPDX-License-Identifier: MIT */
#include "test.h"
#include "riscv_machine.h"

enum {
	A0 = 10,
	A1 = 11,
	MANY = 1000,
	RW = 1,
	RS = 2,
	RC = 3,
	RWI = 5,
	RSI = 6,
	RCI = 7,
	FFLAGS = 1,
	FRM = 2,
	FCSR = 3,
	CYCLE = 0xc00,
	TIME = 0xc01,
	INSTRET = 0xc02,
};
#define CODE MACHINE_CODE

static enum rv_stop run_one(struct machine *m, uint32_t bits)
{
	MACHINE_CODE_AT(m, CODE, bits, I_ECALL);
	rv_bus_flush(m->bus, CODE, 4);
	m->hart.pc = CODE;
	return rv_run(m->bus, &m->hart, MANY);
}

static void fflags_and_frm_are_fields_of_fcsr(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->hart.x[A0] = UINT64_MAX;
	assert_int_equal(run_one(m, i_csr(RW, A1, FCSR, A0)), RV_ECALL);
	assert_int_equal(m->hart.fcsr, 0xff);
	assert_int_equal(run_one(m, i_csr(RCI, A1, FRM, 2)), RV_ECALL);
	assert_int_equal(m->hart.x[A1], 7);
	assert_int_equal(m->hart.fcsr, 0xbf);
	assert_int_equal(run_one(m, i_csr(RWI, A1, FFLAGS, 9)), RV_ECALL);
	assert_int_equal(m->hart.x[A1], 31);
	assert_int_equal(m->hart.fcsr, 0xa9);
	assert_int_equal(run_one(m, i_csr(RSI, A1, FFLAGS, 2)), RV_ECALL);
	assert_int_equal(m->hart.x[A1], 9);
	assert_int_equal(m->hart.fcsr, 0xab);
	assert_int_equal(m->csr_reads + m->csr_writes, 0);
	machine_free(m);
}

static void counters_read_as_of_the_instruction_itself(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->clock = 12345;
	MACHINE_CODE_AT(m, CODE, I_NOP, I_NOP, i_csr(RS, A0, INSTRET, 0), i_csr(RS, A1, CYCLE, 0),
	        i_csr(RS, 12, TIME, 0), I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A0], 2);
	assert_int_equal(m->hart.x[A1], 3);
	assert_int_equal(m->hart.x[12], 12345);
	machine_free(m);
}

static void time_without_a_clock_is_cycles(void **state)
{
	struct rv_bus_ops ops = {.translate = machine_ops.translate};
	struct machine *m = machine_new_with(&ops);

	(void)state;
	MACHINE_CODE_AT(m, CODE, I_NOP, i_csr(RS, A0, TIME, 0), I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A0], 1);
	machine_free(m);
}

static void writing_a_read_only_csr_is_illegal_and_reading_it_is_not(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->csr_value = 6;
	m->hart.x[A0] = 0; /* the register's number counts, not its value */
	assert_int_equal(run_one(m, i_csr(RW, A1, INSTRET, 0)), RV_ILLEGAL);
	assert_int_equal(run_one(m, i_csr(RS, A1, CYCLE, A0)), RV_ILLEGAL);
	assert_int_equal(run_one(m, i_csr(RCI, A1, TIME, 1)), RV_ILLEGAL);
	assert_int_equal(run_one(m, i_csr(RS, A1, MACHINE_CSR_READ, A0)), RV_ILLEGAL);
	assert_int_equal(m->hart.cause.bits, i_csr(RS, A1, MACHINE_CSR_READ, A0));
	assert_int_equal(m->hart.pc, CODE);
	assert_int_equal(run_one(m, i_csr(RC, A1, MACHINE_CSR_READ, 0)), RV_ECALL);
	assert_int_equal(m->hart.x[A1], 6);
	assert_int_equal(run_one(m, i_csr(RSI, A1, INSTRET, 0)), RV_ECALL);
	assert_int_equal(m->csr_writes, 0);
	machine_free(m);
}

static void other_csrs_are_read_and_written_by_the_callbacks(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->csr_value = 0xf0;
	m->hart.x[A0] = 0x3c;
	assert_int_equal(run_one(m, i_csr(RS, A1, MACHINE_CSR, A0)), RV_ECALL);
	assert_int_equal(m->hart.x[A1], 0xf0);
	assert_int_equal(m->csr_value, 0xfc);
	assert_int_equal(run_one(m, i_csr(RC, A0, MACHINE_CSR, A0)), RV_ECALL);
	assert_int_equal(m->hart.x[A0], 0xfc);
	assert_int_equal(m->csr_value, 0xc0);
	assert_int_equal(m->csr_reads, 2);
	assert_int_equal(m->csr_writes, 2);
	machine_free(m);
}

static void a_swap_into_x0_does_not_read_and_a_set_of_nothing_does_not_write(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->hart.x[A0] = 9;
	assert_int_equal(run_one(m, i_csr(RW, 0, MACHINE_CSR, A0)), RV_ECALL);
	assert_int_equal(m->csr_value, 9);
	assert_int_equal(m->csr_reads, 0);
	assert_int_equal(m->csr_writes, 1);
	assert_int_equal(run_one(m, i_csr(RS, A1, MACHINE_CSR, 0)), RV_ECALL);
	assert_int_equal(run_one(m, i_csr(RCI, A1, MACHINE_CSR, 0)), RV_ECALL);
	assert_int_equal(m->csr_reads, 2);
	assert_int_equal(m->csr_writes, 1);
	machine_free(m);
}

static void csrs_nobody_has_are_illegal(void **state)
{
	struct rv_bus_ops ops = {.translate = machine_ops.translate};
	struct machine *m = machine_new();
	struct machine *bare = machine_new_with(&ops);

	(void)state;
	m->hart.x[A1] = 5;
	assert_int_equal(run_one(m, i_csr(RS, A1, 0x300, 0)), RV_ILLEGAL);
	assert_int_equal(run_one(m, i_csr(RW, 0, 0x300, A0)), RV_ILLEGAL);
	assert_int_equal(run_one(bare, i_csr(RS, A1, MACHINE_CSR, 0)), RV_ILLEGAL);
	assert_int_equal(run_one(bare, i_csr(RW, 0, MACHINE_CSR, A0)), RV_ILLEGAL);
	assert_int_equal(m->hart.x[A1], 5);
	assert_int_equal(m->hart.count.instructions, 0);
	machine_free(m);
	machine_free(bare);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(fflags_and_frm_are_fields_of_fcsr),
	        cmocka_unit_test(counters_read_as_of_the_instruction_itself),
	        cmocka_unit_test(time_without_a_clock_is_cycles),
	        cmocka_unit_test(writing_a_read_only_csr_is_illegal_and_reading_it_is_not),
	        cmocka_unit_test(other_csrs_are_read_and_written_by_the_callbacks),
	        cmocka_unit_test(a_swap_into_x0_does_not_read_and_a_set_of_nothing_does_not_write),
	        cmocka_unit_test(csrs_nobody_has_are_illegal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
