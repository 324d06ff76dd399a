/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "test.h"
#include "riscv_machine.h"

enum {
	PAGE = RV_PAGE_SIZE,
	A0 = 10,
	A1 = 11,
	A2 = 12,
	MANY = 1000,
};
#define CODE      MACHINE_CODE
#define DATA      MACHINE_DATA
#define BOUNDARY  (MACHINE_DATA + PAGE)
#define END       (MACHINE_DATA + 2 * PAGE) /* nothing is mapped there */
#define IO        UINT64_C(0x40000)
#define LAST_PAGE (UINT64_MAX - PAGE + 1)
#define PATTERN   UINT64_C(0x8877665544332211)

/* Run one instruction followed by ecall. */
static enum rv_stop run_one(struct machine *m, uint32_t bits)
{
	MACHINE_CODE_AT(m, CODE, bits, I_ECALL);
	rv_bus_flush(m->bus, CODE, 4);
	m->hart.pc = CODE;
	return rv_run(m->bus, &m->hart, MANY);
}

static void assert_data_fault(const struct machine *m, enum rv_access access, uint64_t address)
{
	assert_int_equal(m->hart.pc, CODE);
	assert_int_equal(m->hart.cause.access, access);
	assert_int_equal(m->hart.cause.address, address);
	assert_false(m->hart.cause.misaligned);
}

static uint64_t peek(struct machine *m, uint64_t va, unsigned width)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < width; i++)
		value |= (uint64_t)*machine_at(m, va + i) << 8 * i;
	return value;
}

static void poke(struct machine *m, uint64_t va, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		*machine_at(m, va + i) = (uint8_t)(value >> 8 * i);
}

static void loads_work_at_every_offset_around_a_page_boundary(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	for (unsigned i = 0; i < 32; i++)
		*machine_at(m, BOUNDARY - 16 + i) = (uint8_t)(0x81 + 7 * i);
	for (unsigned shift = 0; shift < 4; shift++) {
		unsigned width = 1u << shift;

		for (uint64_t va = BOUNDARY - 12; va <= BOUNDARY + 4; va++) {
			uint64_t value = peek(m, va, width);
			unsigned unused_bits = 64 - 8 * width;

			m->hart.x[A0] = va;
			assert_int_equal(run_one(m, i_load(shift, A1, A0, 0)), RV_ECALL);
			assert_int_equal(
			        m->hart.x[A1], (uint64_t)((int64_t)(value << unused_bits) >> unused_bits));
			if (shift == 3)
				continue;
			assert_int_equal(run_one(m, i_load(shift + 4, A1, A0, 0)), RV_ECALL);
			assert_int_equal(m->hart.x[A1], value);
		}
	}
	machine_free(m);
}

static void stores_work_at_every_offset_around_a_page_boundary(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->hart.x[A1] = PATTERN;
	for (unsigned shift = 0; shift < 4; shift++) {
		unsigned width = 1u << shift;

		for (uint64_t va = BOUNDARY - 12; va <= BOUNDARY + 4; va++) {
			poke(m, va - 1, 1, 0xee);
			poke(m, va + width, 1, 0xee);
			m->hart.x[A0] = va;
			assert_int_equal(run_one(m, i_store(shift, A1, A0, 0)), RV_ECALL);
			assert_int_equal(peek(m, va, width), PATTERN & UINT64_MAX >> (64 - 8 * width));
			assert_int_equal(peek(m, va - 1, 1), 0xee);
			assert_int_equal(peek(m, va + width, 1), 0xee);
		}
	}
	machine_free(m);
}

static void floating_point_accesses_cross_pages_and_box_singles(void **state)
{
	struct machine *m = machine_new();
	uint32_t flw = i_load(2, 3, A0, 0) | 4;
	uint32_t fld = i_load(3, 3, A0, 0) | 4;
	uint32_t fsd = i_store(3, 3, A0, 0) | 4;

	(void)state;
	m->hart.x[A0] = BOUNDARY - 3;
	poke(m, BOUNDARY - 3, 8, PATTERN);
	assert_int_equal(run_one(m, flw), RV_ECALL);
	assert_int_equal(m->hart.f[3], UINT64_C(0xffffffff00000000) | (PATTERN & UINT32_MAX));
	assert_int_equal(run_one(m, fld), RV_ECALL);
	assert_int_equal(m->hart.f[3], PATTERN);
	poke(m, BOUNDARY - 3, 8, 0);
	assert_int_equal(run_one(m, fsd), RV_ECALL);
	assert_int_equal(peek(m, BOUNDARY - 3, 8), PATTERN);
	machine_free(m);
}

static void a_store_that_faults_on_its_second_page_changes_nothing(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->hart.x[A0] = END - 1;
	m->hart.x[A1] = PATTERN;
	assert_int_equal(run_one(m, i_store(3, A1, A0, 0)), RV_FAULT);
	assert_data_fault(m, RV_STORE, END);
	assert_int_equal(peek(m, END - 1, 1), 0);
	assert_int_equal(m->hart.count.bytes_written, 0);
	assert_int_equal(m->hart.count.instructions, 0);
	machine_free(m);
}

static void a_load_that_faults_changes_no_register(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->hart.x[A0] = END - 4;
	m->hart.x[A1] = 42;
	assert_int_equal(run_one(m, i_load(3, A1, A0, 0)), RV_FAULT);
	assert_data_fault(m, RV_LOAD, END);
	assert_int_equal(m->hart.x[A1], 42);
	m->hart.x[A0] = END;
	assert_int_equal(run_one(m, i_load(2, A1, A0, 4)), RV_FAULT);
	assert_data_fault(m, RV_LOAD, END + 4);
	assert_int_equal(m->hart.x[A1], 42);
	assert_int_equal(m->hart.count.bytes_read, 0);
	machine_free(m);
}

static void the_last_bytes_before_nothing_can_be_accessed(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	m->hart.x[A0] = END;
	m->hart.x[A1] = PATTERN;
	assert_int_equal(run_one(m, i_store(3, A1, A0, -8)), RV_ECALL);
	assert_int_equal(run_one(m, i_load(3, A2, A0, -8)), RV_ECALL);
	assert_int_equal(m->hart.x[A2], PATTERN);
	machine_free(m);
}

static void a_read_only_page_that_was_read_cannot_be_written(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_find(m, DATA)->rights = MACHINE_R;
	m->hart.x[A0] = DATA;
	assert_int_equal(run_one(m, i_load(3, A1, A0, 0)), RV_ECALL);
	assert_int_equal(run_one(m, i_store(3, A1, A0, 0)), RV_FAULT);
	assert_data_fault(m, RV_STORE, DATA);
	/* And a misaligned one from a writable page into it. */
	machine_find(m, BOUNDARY)->rights = MACHINE_R;
	machine_find(m, DATA)->rights = MACHINE_R | MACHINE_W;
	m->hart.x[A0] = BOUNDARY - 2;
	assert_int_equal(run_one(m, i_store(2, A1, A0, 0)), RV_FAULT);
	assert_data_fault(m, RV_STORE, BOUNDARY);
	machine_free(m);
}

static void an_access_across_the_end_of_the_address_space_wraps(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, LAST_PAGE, MACHINE_R | MACHINE_W);
	m->hart.x[A0] = UINT64_MAX - 1;
	m->hart.x[A1] = PATTERN;
	assert_int_equal(run_one(m, i_store(2, A1, A0, 0)), RV_FAULT);
	assert_data_fault(m, RV_STORE, 0);
	machine_page(m, 0, MACHINE_R | MACHINE_W);
	assert_int_equal(run_one(m, i_store(2, A1, A0, 0)), RV_ECALL);
	assert_int_equal(peek(m, 0, 2), PATTERN >> 16 & 0xffff);
	assert_int_equal(run_one(m, i_load(2, A2, A0, 0)), RV_ECALL);
	assert_int_equal(m->hart.x[A2], PATTERN & UINT32_MAX);
	machine_free(m);
}

static void assert_io(const struct machine *m, unsigned index, struct machine_io expected)
{
	assert_true(index < m->io_count);
	assert_int_equal(m->io[index].store, expected.store);
	assert_int_equal(m->io[index].va, expected.va);
	assert_int_equal(m->io[index].width, expected.width);
	assert_int_equal(m->io[index].value, expected.value);
}

static void io_accesses_arrive_in_their_width(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, IO, MACHINE_R | MACHINE_W | MACHINE_IO);
	m->io_value = PATTERN;
	m->hart.x[A0] = IO + 8;
	for (unsigned shift = 0; shift < 4; shift++) {
		unsigned width = 1u << shift;

		m->io_count = 0;
		m->hart.x[A1] = PATTERN;
		assert_int_equal(run_one(m, i_store(shift, A1, A0, 0)), RV_ECALL);
		assert_int_equal(run_one(m, i_load(shift, A2, A0, 0)), RV_ECALL);
		assert_int_equal(m->io_count, 2);
		assert_io(m, 0,
		        (struct machine_io){true, IO + 8, width, PATTERN & UINT64_MAX >> (64 - 8 * width)});
		assert_io(m, 1, (struct machine_io){false, IO + 8, width, 0});
	}
	m->io_value = 0x80;
	run_one(m, i_load(0, A2, A0, 0));
	assert_int_equal(m->hart.x[A2], -128);
	run_one(m, i_load(4, A2, A0, 0));
	assert_int_equal(m->hart.x[A2], 128);
	machine_free(m);
}

static void a_misaligned_io_access_arrives_as_bytes(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, IO, MACHINE_R | MACHINE_W | MACHINE_IO);
	m->hart.x[A0] = IO + 6;
	m->hart.x[A1] = PATTERN;
	assert_int_equal(run_one(m, i_store(2, A1, A0, 0)), RV_ECALL);
	assert_int_equal(m->io_count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_io(m, i, (struct machine_io){true, IO + 6 + i, 1, PATTERN >> 8 * i & 0xff});
	machine_free(m);
}

static void a_refused_io_access_is_a_fault(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, IO, MACHINE_R | MACHINE_W | MACHINE_IO);
	m->io_refuses = true;
	m->hart.x[A0] = IO;
	assert_int_equal(run_one(m, i_load(2, A1, A0, 4)), RV_FAULT);
	assert_data_fault(m, RV_LOAD, IO + 4);
	assert_int_equal(run_one(m, i_store(2, A1, A0, 8)), RV_FAULT);
	assert_data_fault(m, RV_STORE, IO + 8);
	machine_free(m);
}

static void io_pages_of_a_bus_without_io_callbacks_are_faults(void **state)
{
	struct rv_bus_ops ops = {.translate = machine_ops.translate};
	struct machine *m = machine_new_with(&ops);

	(void)state;
	machine_page(m, IO, MACHINE_R | MACHINE_W | MACHINE_IO);
	m->hart.x[A0] = IO;
	assert_int_equal(run_one(m, i_load(3, A1, A0, 0)), RV_FAULT);
	assert_data_fault(m, RV_LOAD, IO);
	assert_int_equal(run_one(m, i_store(0, A1, A0, 0)), RV_FAULT);
	assert_data_fault(m, RV_STORE, IO);
	machine_free(m);
}

static void a_callback_may_flush_the_code_that_is_running(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, IO, MACHINE_R | MACHINE_W | MACHINE_IO);
	m->hart.x[A0] = IO;
	MACHINE_CODE_AT(m, CODE, i_store(2, A1, A0, 0), i_addi(A2, 0, 1), I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	/* All of it is decoded now; the flush by the store must make the change behind it seen. */
	MACHINE_CODE_AT(m, CODE + 4, i_addi(A2, 0, 2));
	m->io_flushes = true;
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 2);
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(loads_work_at_every_offset_around_a_page_boundary),
	        cmocka_unit_test(stores_work_at_every_offset_around_a_page_boundary),
	        cmocka_unit_test(floating_point_accesses_cross_pages_and_box_singles),
	        cmocka_unit_test(a_store_that_faults_on_its_second_page_changes_nothing),
	        cmocka_unit_test(a_load_that_faults_changes_no_register),
	        cmocka_unit_test(the_last_bytes_before_nothing_can_be_accessed),
	        cmocka_unit_test(a_read_only_page_that_was_read_cannot_be_written),
	        cmocka_unit_test(an_access_across_the_end_of_the_address_space_wraps),
	        cmocka_unit_test(io_accesses_arrive_in_their_width),
	        cmocka_unit_test(a_misaligned_io_access_arrives_as_bytes),
	        cmocka_unit_test(a_refused_io_access_is_a_fault),
	        cmocka_unit_test(io_pages_of_a_bus_without_io_callbacks_are_faults),
	        cmocka_unit_test(a_callback_may_flush_the_code_that_is_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
