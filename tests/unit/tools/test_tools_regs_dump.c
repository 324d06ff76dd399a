/* SPDX-License-Identifier: MIT */
/* Dumps of registers, and the tables that they are made by. */
#include "test.h"
#include <string.h>

#include "regs_dump.h"
#include "rvx1.h"

static struct regs_dump dump;

static void a_dump_is_read_line_by_line(void **state)
{
	(void)state;
	assert_int_equal(
	        regs_dump_parse(
	                "# rvx1\nID 0 0x00000 4 0x31585652\n\nQUEUE0.RING  0 0x400 8 0xffffffffffffffff",
	                &dump),
	        0);
	assert_int_equal(dump.count, 2);
	assert_string_equal(dump.line[0].name, "ID");
	assert_int_equal(dump.line[0].value, 0x31585652);
	assert_int_equal(regs_dump_find(&dump, "QUEUE0.RING")->value, UINT64_MAX);
	assert_int_equal(regs_dump_find(&dump, "QUEUE0.RING")->width, 8);
	assert_null(regs_dump_find(&dump, "QUEUE0"));
}

static void a_line_that_is_none_is_numbered(void **state)
{
	(void)state;
	assert_int_equal(regs_dump_parse("ID 0 0 4 1\nID 0 0 4\n", &dump), 2);
	assert_int_equal(regs_dump_parse("ID 0 0 3 1\n", &dump), 1);
	assert_int_equal(regs_dump_parse("ID 0 0 4 1 more\n", &dump), 1);
	assert_int_equal(regs_dump_parse("\x7f"
	                                 "ELF\n",
	                         &dump),
	        1);
}

static void names_mean_a_register_or_a_group(void **state)
{
	char *names[] = {(char[]){"QUEUE0"}, (char[]){"ID"}};

	(void)state;
	assert_true(regs_is_wanted("QUEUE0.RING", names, 2));
	assert_true(regs_is_wanted("ID", names, 2));
	assert_false(regs_is_wanted("IDLE", names, 2));
	assert_false(regs_is_wanted("QUEUE1.RING", names, 2));
	assert_true(regs_is_wanted("QUEUE1.RING", names, 0));
}

/* No register twice, each aligned and inside BAR0, none of them the window's memory or the MSI-X table. */
static void the_boards_registers_are_apart_and_have_no_side_effects(void **state)
{
	const struct rig_board *board = &rvx1_board;

	(void)state;
	assert_true(board->nregisters > 0);
	for (uint32_t i = 0; i < board->nregisters; i++) {
		const struct rig_board_register *r = &board->registers[i];

		assert_non_null(r->name);
		assert_true(strlen(r->name) < REGS_NAME);
		assert_true(r->width == 4 || r->width == 8);
		assert_int_equal(r->offset % r->width, 0);
		assert_true(r->offset + r->width <= RVX1_MSIX_TABLE);
		assert_false(r->offset >= RVX1_WINDOW && r->offset < RVX1_WINDOW + RVX1_WINDOW_BYTES);
		for (uint32_t k = 0; k < i; k++) {
			assert_string_not_equal(r->name, board->registers[k].name);
			assert_true(r->offset >= board->registers[k].offset + board->registers[k].width ||
			            r->offset + r->width <= board->registers[k].offset);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_dump_is_read_line_by_line),
	        cmocka_unit_test(a_line_that_is_none_is_numbered),
	        cmocka_unit_test(names_mean_a_register_or_a_group),
	        cmocka_unit_test(the_boards_registers_are_apart_and_have_no_side_effects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
