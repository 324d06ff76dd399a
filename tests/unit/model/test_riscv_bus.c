/* SPDX-License-Identifier: MIT */
#include <errno.h>
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
#define SECOND    (MACHINE_CODE + PAGE)
#define DATA      MACHINE_DATA
#define LAST_PAGE (UINT64_MAX - PAGE + 1)

static bool no_io_load(void *ctx, uint64_t va, unsigned width, uint64_t *value)
{
	(void)ctx, (void)va, (void)width, (void)value;
	return false;
}

static void a_bus_needs_translate_and_both_io_callbacks_or_none(void **state)
{
	struct rv_bus_ops none = {.load = NULL};
	struct rv_bus_ops half = {.translate = machine_ops.translate, .load = no_io_load};
	struct rv_bus *bus = NULL;

	(void)state;
	assert_int_equal(rv_bus_alloc(&bus, &none, NULL), -EINVAL);
	assert_int_equal(rv_bus_alloc(&bus, &half, NULL), -EINVAL);
	assert_null(bus);
	rv_bus_free(NULL);
}

/* Loads from both data pages and stores to both: eight instructions and an ecall. */
static void touch(struct machine *m)
{
	MACHINE_CODE_AT(m, CODE, i_load(3, A2, A0, 0), i_load(3, A2, A1, 0), i_store(3, A2, A0, 8),
	        i_store(3, A2, A1, 8), I_ECALL);
	m->hart.pc = CODE;
	m->hart.x[A0] = DATA;
	m->hart.x[A1] = DATA + PAGE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
}

static void forget_asked(struct machine *m)
{
	memset(m->asked, 0, sizeof(m->asked));
}

static void assert_asked(const struct machine *m, unsigned fetch, unsigned load, unsigned store)
{
	assert_int_equal(m->asked[RV_FETCH], fetch);
	assert_int_equal(m->asked[RV_LOAD], load);
	assert_int_equal(m->asked[RV_STORE], store);
}

static void a_translation_is_asked_for_once_an_access_kind(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	touch(m);
	assert_asked(m, 1, 2, 2);
	touch(m);
	assert_asked(m, 1, 2, 2);
	machine_free(m);
}

static void a_fault_is_asked_for_again(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_load(3, A2, A0, 0), I_ECALL);
	m->hart.x[A0] = 0x50000;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	machine_page(m, 0x50000, MACHINE_R);
	/* Restarted where it stopped, without any flush. */
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	machine_free(m);
}

static void a_flush_by_range_forgets_exactly_the_pages_it_touches(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	touch(m);
	forget_asked(m);
	rv_bus_flush(m->bus, DATA + PAGE - 1, 1);
	touch(m);
	assert_asked(m, 0, 1, 1);
	forget_asked(m);
	rv_bus_flush(m->bus, DATA + PAGE - 1, 2);
	touch(m);
	assert_asked(m, 0, 2, 2);
	forget_asked(m);
	rv_bus_flush(m->bus, DATA, 0);
	rv_bus_flush(m->bus, DATA + 2 * PAGE, PAGE);
	rv_bus_flush(m->bus, DATA - PAGE, PAGE);
	touch(m);
	assert_asked(m, 0, 0, 0);
	rv_bus_flush(m->bus, CODE, PAGE);
	touch(m);
	assert_asked(m, 1, 0, 0);
	machine_free(m);
}

static void a_flush_may_reach_past_the_end_of_the_address_space(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, LAST_PAGE, MACHINE_R);
	machine_page(m, 0, MACHINE_R);
	MACHINE_CODE_AT(m, CODE, i_load(0, A2, 0, 0), i_load(0, A2, 0, -1), I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_asked(m, 1, 2, 0);
	rv_bus_flush(m->bus, LAST_PAGE + 5, UINT64_MAX);
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_asked(m, 1, 3, 0);
	/* The whole address space but its last byte. */
	rv_bus_flush(m->bus, 0, UINT64_MAX);
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_asked(m, 2, 5, 0);
	machine_free(m);
}

static void flush_all_forgets_everything(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	touch(m);
	forget_asked(m);
	rv_bus_flush_all(m->bus);
	touch(m);
	assert_asked(m, 1, 2, 2);
	machine_free(m);
}

static void a_right_taken_away_is_gone_after_the_flush(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	touch(m);
	machine_find(m, DATA)->rights = MACHINE_R;
	rv_bus_flush(m->bus, DATA, 1);
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_int_equal(m->hart.cause.access, RV_STORE);
	assert_int_equal(m->hart.pc, CODE + 8);
	machine_free(m);
}

static void a_page_moved_to_other_memory_is_read_there_after_the_flush(void **state)
{
	struct machine *m = machine_new();
	uint8_t *first = machine_at(m, DATA);

	(void)state;
	touch(m);
	memset(machine_at(m, DATA + PAGE), 0x5a, PAGE);
	machine_find(m, DATA)->host = machine_at(m, DATA + PAGE);
	rv_bus_flush(m->bus, DATA, PAGE);
	MACHINE_CODE_AT(m, SECOND, i_load(4, A2, A0, 100), I_ECALL);
	m->hart.pc = SECOND;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 0x5a);
	machine_find(m, DATA)->host = first;
	machine_free(m);
}

static void code_changed_from_outside_is_seen_after_the_flush(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_addi(A2, 0, 1), I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	MACHINE_CODE_AT(m, CODE, i_addi(A2, 0, 2));
	rv_bus_flush(m->bus, CODE, 4);
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 2);
	machine_free(m);
}

static void an_instruction_across_pages_is_forgotten_with_its_second_page(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(m, SECOND - 2, i_addi(A2, 0, 1), I_ECALL);
	m->hart.pc = SECOND - 2;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 1);
	MACHINE_CODE_AT(m, SECOND - 2, i_addi(A2, 0, 2)); /* the immediate is in the second half */
	rv_bus_flush(m->bus, SECOND, 1);
	m->hart.pc = SECOND - 2;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 2);
	machine_find(m, SECOND)->rights = 0;
	rv_bus_flush(m->bus, SECOND, 1);
	m->hart.pc = SECOND - 2;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_int_equal(m->hart.cause.address, SECOND);
	machine_free(m);
}

/* One host page under many addresses: more code pages than the cache has places. */
static enum rv_map translate_alias(void *ctx, uint64_t page_va, enum rv_access access, void **host)
{
	struct machine *m = ctx;

	(void)page_va;
	m->asked[access]++;
	*host = m->pages[0].host;
	return RV_MAP_HOST;
}

static void more_code_pages_than_are_kept_still_execute(void **state)
{
	static const struct rv_bus_ops ops = {.translate = translate_alias};
	struct machine *m = machine_new_with(&ops);

	(void)state;
	MACHINE_CODE_AT(m, CODE, i_addi(A2, A2, 1), i_jal(0, PAGE - 4)); /* on to the same in the next page */
	m->hart.pc = 0x10000000;
	assert_int_equal(rv_run(m->bus, &m->hart, 2 * 1000), RV_BUDGET);
	assert_int_equal(m->hart.x[A2], 1000);
	assert_int_equal(m->hart.pc, 0x10000000 + 1000 * PAGE);
	m->hart.pc = 0x10000000;
	assert_int_equal(rv_run(m->bus, &m->hart, 2 * 1000), RV_BUDGET);
	assert_int_equal(m->hart.x[A2], 2000);
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_bus_needs_translate_and_both_io_callbacks_or_none),
	        cmocka_unit_test(a_translation_is_asked_for_once_an_access_kind),
	        cmocka_unit_test(a_fault_is_asked_for_again),
	        cmocka_unit_test(a_flush_by_range_forgets_exactly_the_pages_it_touches),
	        cmocka_unit_test(a_flush_may_reach_past_the_end_of_the_address_space),
	        cmocka_unit_test(flush_all_forgets_everything),
	        cmocka_unit_test(a_right_taken_away_is_gone_after_the_flush),
	        cmocka_unit_test(a_page_moved_to_other_memory_is_read_there_after_the_flush),
	        cmocka_unit_test(code_changed_from_outside_is_seen_after_the_flush),
	        cmocka_unit_test(an_instruction_across_pages_is_forgotten_with_its_second_page),
	        cmocka_unit_test(more_code_pages_than_are_kept_still_execute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
