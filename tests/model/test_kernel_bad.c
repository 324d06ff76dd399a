/* SPDX-License-Identifier: MIT */
/* Kernels that do what they must not: the fault each gives, and that a reset ends it (docs/rvx1.md, section
 * 10). */
#include "test.h"
#include <linux/pci_regs.h>
#include <string.h>

#include "kernel_image.h"
#include "rvx1/packet.h"

#define THREADS 4u

static struct kernel_board board;

static void launch(void)
{
	const uint32_t grid[3] = {1, 1, 1}, group[3] = {THREADS, 1, 1};
	const uint64_t params = 0;

	kernel_launch(&board, &params, sizeof(params), grid, group, 0);
}

/* Opens a board, runs the kernel, checks what every fault has; the board stays open. */
static void fault(const char *name, uint32_t code, uint32_t access)
{
	struct rvx_client *c = &board.client;

	kernel_open(&board, name);
	launch();
	rvx_await_fault(c, code);
	assert_int_equal(rvx_reg32(c, RVX1_FAULT_ACCESS), access);
	assert_int_equal(rvx_reg32(c, RVX1_FAULT_QUEUE), 0);
	assert_int_equal(rvx_reg32(c, RVX1_FAULT_OPCODE), RVX1_OP_LAUNCH);
	assert_int_equal(rvx_reg64(c, RVX1_FAULT_VALUE), 1);
	assert_int_equal(rvx_reg64(c, RVX1_FAULT_ENTRY), board.entry);
	assert_true(rvx_reg32(c, RVX1_FAULT_THREAD) < THREADS);
	assert_in_range(rvx_reg64(c, RVX1_FAULT_PC), board.entry - 0x1000, board.entry + 0x1000);
	assert_int_equal(rvx_read(c, RVX1_BAR_REGS, RVX1_STATUS + RVX1_STATUS_VALUE, 8), 0);
}

/* The firmware made that many passes more. */
static void await_beats(uint32_t n)
{
	uint32_t from = rvx_reg32(&board.client, RVX1_FW_HEARTBEAT);
	double deadline = rvx_seconds() + RVX_DEADLINE_S;

	while (rvx_reg32(&board.client, RVX1_FW_HEARTBEAT) - from < n)
		if (rvx_seconds() > deadline)
			fail_msg("FW_HEARTBEAT stands still at %u", from);
}

static void reading_address_zero_is_a_page_fault(void **state)
{
	(void)state;
	fault("read_null", RVX1_FAULT_PAGE, RVX1_ACCESS_READ);
	assert_int_equal(rvx_reg64(&board.client, RVX1_FAULT_ADDRESS), 0);
	kernel_close(&board);
}

static void writing_outside_every_buffer_is_a_page_fault(void **state)
{
	(void)state;
	fault("write_outside", RVX1_FAULT_PAGE, RVX1_ACCESS_WRITE);
	assert_int_equal(rvx_reg64(&board.client, RVX1_FAULT_ADDRESS), (32ull << 40) + 0x10);
	kernel_close(&board);
}

static void writing_code_is_a_page_fault(void **state)
{
	(void)state;
	fault("write_code", RVX1_FAULT_PAGE, RVX1_ACCESS_WRITE);
	assert_int_equal(rvx_reg64(&board.client, RVX1_FAULT_ADDRESS), board.entry);
	kernel_close(&board);
}

static void recursion_ends_in_the_guard_below_the_stack(void **state)
{
	uint64_t address;

	(void)state;
	fault("recurse", RVX1_FAULT_PAGE, RVX1_ACCESS_WRITE);
	address = rvx_reg64(&board.client, RVX1_FAULT_ADDRESS) - KERNEL_STACK_VA;
	assert_true(address / RVX1_STACK_PITCH < KERNEL_SLOTS);
	assert_in_range(address % RVX1_STACK_PITCH, 0, RVX1_STACK_PITCH - RVX1_STACK_BYTES - 1);
	kernel_close(&board);
}

static void garbage_is_an_illegal_instruction(void **state)
{
	(void)state;
	fault("garbage", RVX1_FAULT_ILLEGAL, RVX1_ACCESS_NONE);
	assert_int_not_equal(rvx_reg32(&board.client, RVX1_FAULT_INSN), 0);
	kernel_close(&board);
}

static void a_barrier_short_of_a_thread_is_a_fault(void **state)
{
	(void)state;
	fault("barrier_short", RVX1_FAULT_BARRIER, RVX1_ACCESS_NONE);
	kernel_close(&board);
}

static void a_trap_is_a_fault(void **state)
{
	(void)state;
	fault("trap", RVX1_FAULT_TRAP, RVX1_ACCESS_NONE);
	kernel_close(&board);
}

static void a_misaligned_atomic_is_a_fault(void **state)
{
	(void)state;
	kernel_open(&board, "misaligned");
	launch();
	rvx_await_fault(&board.client, RVX1_FAULT_MISALIGNED);
	kernel_close(&board);
}

static void an_endless_kernel_holds_its_queue_and_no_other(void **state)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_STORE};

	(void)state;
	kernel_open(&board, "loop_forever");
	launch();
	p.u.word.address = KERNEL_DATA;
	p.u.word.value = 5;
	memset(kernel_data(&board, 0), 0, 8);
	rvx_put(&board.queues[1], &p);
	rvx_ring(&board.queues[1]);
	rvx_await_word(&board.client, kernel_data(&board, 0), 5);
	await_beats(3);
	assert_int_equal(rvx_read(&board.client, RVX1_BAR_REGS, RVX1_STATUS + RVX1_STATUS_VALUE, 8), 0);
	kernel_close(&board);
}

static void after_a_fault_nothing_starts_and_a_reset_board_works(void **state)
{
	const uint64_t params = KERNEL_DATA_VA;

	(void)state;
	fault("trap", RVX1_FAULT_TRAP, RVX1_ACCESS_NONE);
	rvx_release(&board.queues[1], 1);
	await_beats(3);
	assert_int_equal(rvx_read(&board.client, RVX1_BAR_REGS, RVX1_STATUS + RVX1_STATUS_VALUE, 8), 0);
	rvx_reset_flr(&board.client);
	rvx_command(&board.client, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	kernel_start(&board, "globals");
	kernel_run(&board, &params, sizeof(params), 1, 1, 0);
	assert_int_equal(*(uint64_t *)kernel_data(&board, 0), 1);
	kernel_close(&board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(reading_address_zero_is_a_page_fault),
	        cmocka_unit_test(writing_outside_every_buffer_is_a_page_fault),
	        cmocka_unit_test(writing_code_is_a_page_fault),
	        cmocka_unit_test(recursion_ends_in_the_guard_below_the_stack),
	        cmocka_unit_test(garbage_is_an_illegal_instruction),
	        cmocka_unit_test(a_barrier_short_of_a_thread_is_a_fault),
	        cmocka_unit_test(a_trap_is_a_fault),
	        cmocka_unit_test(a_misaligned_atomic_is_a_fault),
	        cmocka_unit_test(an_endless_kernel_holds_its_queue_and_no_other),
	        cmocka_unit_test(after_a_fault_nothing_starts_and_a_reset_board_works),
	};

	return cmocka_run_group_tests_name("kernels: bad ones", tests, NULL, NULL);
}
