/* SPDX-License-Identifier: MIT */
/* The firmware's use of the engines, and its faults, on a board in plain memory: docs/rvx1.md, sections 5.3,
 * 5.4 and 10. */
#include "test.h"

#include "fw_fake.h"

#define NOWHERE (RVX1_SYSTEM | 0x1000) /* system memory that does not answer */

static struct fw fw;

static int setup(void **state)
{
	(void)state;
	fake_init(&fw);
	for (unsigned q = 0; q < FAKE_QUEUES; q++)
		fake_enable(q);
	fake_run(&fw);
	fake_log_clear();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_fini();
	return 0;
}

static void push_copy(unsigned queue, uint64_t dst)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_COPY};

	p.u.copy = (struct rvx1_copy_packet){
	        .dst = dst, .src = 2, .row_bytes = 3, .rows = 4, .dst_pitch = 5, .src_pitch = 6};
	fake_push(queue, &p);
}

static void push_launch(unsigned queue, uint64_t entry)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_LAUNCH};

	p.u.launch = (struct rvx1_launch_packet){.entry = entry,
	        .params = 2,
	        .stacks = 3,
	        .grid = {4, 5, 6},
	        .group = {7, 8, 9},
	        .shared = 10,
	        .slots = 11};
	fake_push(queue, &p);
}

static void copy_registers_are_the_packets(void **state)
{
	(void)state;
	push_copy(0, 1);
	fake_run(&fw);
	assert_int_equal(fake_engine64(RVX1_COPIER + RVX1_COPIER_DST), 1);
	assert_int_equal(fake_engine64(RVX1_COPIER + RVX1_COPIER_SRC), 2);
	assert_int_equal(fake_engine64(RVX1_COPIER + RVX1_COPIER_ROW_BYTES), 3);
	assert_int_equal(fake_engine64(RVX1_COPIER + RVX1_COPIER_ROWS), 4);
	assert_int_equal(fake_engine64(RVX1_COPIER + RVX1_COPIER_DST_PITCH), 5);
	assert_int_equal(fake_engine64(RVX1_COPIER + RVX1_COPIER_SRC_PITCH), 6);
	assert_int_equal(fake_engine32(RVX1_COPIER + RVX1_COPIER_FILL), 0);
	assert_int_equal(fake_engine32(RVX1_COPIER + RVX1_ENGINE_STATE), RVX1_ENGINE_RUNNING);
}

static void fill_is_a_copy_of_a_byte_and_leaves_no_trace(void **state)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_FILL, .arg = 0};

	(void)state;
	p.u.copy = (struct rvx1_copy_packet){.dst = 1, .row_bytes = 3, .rows = 4, .dst_pitch = 5};
	fake_push(0, &p);
	push_copy(0, 1);
	fake_run(&fw);
	assert_int_equal(fake_engine32(RVX1_COPIER + RVX1_COPIER_FILL), RVX1_FILL_ON);
	fake_end_job(RVX1_COPIER, RVX1_ENGINE_DONE);
	fake_run(&fw);
	assert_int_equal(fake_engine32(RVX1_COPIER + RVX1_COPIER_FILL), 0);
}

static void launch_registers_are_the_packets(void **state)
{
	(void)state;
	push_launch(0, 1);
	fake_run(&fw);
	assert_int_equal(fake_engine64(RVX1_COMPUTE + RVX1_COMPUTE_ENTRY), 1);
	assert_int_equal(fake_engine64(RVX1_COMPUTE + RVX1_COMPUTE_PARAMS), 2);
	assert_int_equal(fake_engine64(RVX1_COMPUTE + RVX1_COMPUTE_STACKS), 3);
	for (unsigned d = 0; d < 3; d++) {
		assert_int_equal(fake_engine32(RVX1_COMPUTE + RVX1_COMPUTE_GRID + 4 * d), 4 + d);
		assert_int_equal(fake_engine32(RVX1_COMPUTE + RVX1_COMPUTE_GROUP + 4 * d), 7 + d);
	}
	assert_int_equal(fake_engine32(RVX1_COMPUTE + RVX1_COMPUTE_SHARED), 10);
	assert_int_equal(fake_engine32(RVX1_COMPUTE + RVX1_COMPUTE_SLOTS), 11);
}

static void a_queue_goes_on_when_its_job_is_done_and_others_meanwhile(void **state)
{
	(void)state;
	push_copy(0, 1);
	fake_push_word(0, RVX1_OP_STORE, 0, FAKE_WORDS, 1);
	fake_push_word(1, RVX1_OP_STORE, 0, FAKE_WORDS + 8, 1);
	push_launch(1, 1);
	fake_run(&fw);
	assert_int_equal(fake_word(FAKE_WORDS), 0);
	assert_int_equal(fake_word(FAKE_WORDS + 8), 1);
	assert_int_equal(fake_engine32(RVX1_COMPUTE + RVX1_ENGINE_STATE), RVX1_ENGINE_RUNNING);
	fake_end_job(RVX1_COPIER, RVX1_ENGINE_DONE);
	fake_run(&fw);
	assert_int_equal(fake_word(FAKE_WORDS), 1);
	assert_int_equal(fake_engine32(RVX1_COPIER + RVX1_ENGINE_STATE), RVX1_ENGINE_IDLE);
}

static void queues_use_an_engine_in_order_of_arrival(void **state)
{
	const unsigned order[] = {2, 0, 1};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		push_copy(order[i], order[i]);
		push_copy(order[i], 10 + order[i]); /* must not come before the others' first */
		fake_run(&fw);
	}
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(
		        fake_engine64(RVX1_COPIER + RVX1_COPIER_DST), order[i % 3] + (i < 3 ? 0 : 10));
		fake_end_job(RVX1_COPIER, RVX1_ENGINE_DONE);
		fake_run(&fw);
	}
	for (unsigned q = 0; q < 3; q++)
		assert_int_equal(fake_read(q), 2);
}

static void a_disabled_queue_leaves_the_line_and_its_running_job_ends_for_nobody(void **state)
{
	(void)state;
	push_copy(0, 1);
	fake_run(&fw);
	push_copy(1, 2);
	fake_run(&fw);
	push_copy(2, 3);
	fake_run(&fw);
	fake_set_reg32(RVX1_QUEUE_BASE + RVX1_QUEUE_CTRL, 0);
	fake_set_reg32(RVX1_QUEUE_BASE + RVX1_QUEUE_PITCH + RVX1_QUEUE_CTRL, 0);
	fake_run(&fw);
	fake_end_job(RVX1_COPIER, RVX1_ENGINE_DONE);
	fake_run(&fw);
	assert_int_equal(fake_engine64(RVX1_COPIER + RVX1_COPIER_DST), 3);
	fake_end_job(RVX1_COPIER, RVX1_ENGINE_DONE);
	fake_run(&fw);
	assert_int_equal(fake_engine32(RVX1_COPIER + RVX1_ENGINE_STATE), RVX1_ENGINE_IDLE);
	assert_int_equal(fake_read(0), 0);
	assert_int_equal(fake_read(1), 0);
	assert_int_equal(fake_read(2), 1);
}

static void counters_are_zero_before_and_the_last_launchs_after(void **state)
{
	(void)state;
	fake_set_word(FAKE_WORDS, 99);
	fake_push_word(0, RVX1_OP_COUNTERS, 0, FAKE_WORDS, 0);
	push_launch(0, 1);
	fake_push_word(0, RVX1_OP_COUNTERS, 0, FAKE_SYSTEM, 0);
	fake_push_word(1, RVX1_OP_COUNTERS, 0, FAKE_WORDS + 0x100, 0);
	fake_run(&fw);
	assert_int_equal(fake_word(FAKE_WORDS), 0);
	for (unsigned i = 0; i < RVX1_COUNTERS; i++)
		fake_set_engine64(RVX1_COMPUTE + RVX1_COMPUTE_COUNTERS + 8 * i, 50 + i);
	fake_end_job(RVX1_COMPUTE, RVX1_ENGINE_DONE);
	fake_run(&fw);
	for (unsigned i = 0; i < RVX1_COUNTERS; i++)
		assert_int_equal(fake_word(FAKE_SYSTEM + 8 * i), 50 + i);
	assert_int_equal(fake_word(FAKE_WORDS + 0x100), 0);
}

static void an_engines_fault_is_reported_whole_and_stops_every_queue(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_RELEASE, 0, 0, 6);
	push_launch(1, 0xABC0);
	fake_run(&fw);
	fake_set_engine64(
	        RVX1_COMPUTE + RVX1_ENGINE_FAULT, RVX1_FAULT_PAGE | (uint64_t)RVX1_ACCESS_WRITE << 32);
	fake_set_engine64(RVX1_COMPUTE + RVX1_ENGINE_ADDRESS, 0xDEAD);
	fake_set_engine64(RVX1_COMPUTE + RVX1_ENGINE_PC, 0xABC4);
	fake_set_engine64(RVX1_COMPUTE + RVX1_ENGINE_GROUP, 1 | 2ull << 32);
	fake_set_engine64(RVX1_COMPUTE + RVX1_ENGINE_GROUP + 8, 3 | 17ull << 32);
	fake_set_engine64(RVX1_COMPUTE + RVX1_ENGINE_INSN, 0x13);
	fake_end_job(RVX1_COMPUTE, RVX1_ENGINE_FAULTED);
	fake_push_word(0, RVX1_OP_STORE, 0, FAKE_WORDS, 1);
	fake_run(&fw);
	assert_int_equal(fake_reg32(RVX1_FAULT_CODE), RVX1_FAULT_PAGE);
	assert_int_equal((uint32_t)fake_status(RVX1_STATUS_FAULT), RVX1_FAULT_PAGE);
	assert_int_equal(fake_reg32(RVX1_FAULT_QUEUE), 1);
	assert_int_equal(fake_reg64(RVX1_FAULT_VALUE), 7);
	assert_int_equal(fake_reg64(RVX1_FAULT_ADDRESS), 0xDEAD);
	assert_int_equal(fake_reg32(RVX1_FAULT_ACCESS), RVX1_ACCESS_WRITE);
	assert_int_equal(fake_reg64(RVX1_FAULT_PC), 0xABC4);
	assert_int_equal(fake_reg64(RVX1_FAULT_ENTRY), 0xABC0);
	for (unsigned d = 0; d < 3; d++)
		assert_int_equal(fake_reg32(RVX1_FAULT_GROUP + 4 * d), 1 + d);
	assert_int_equal(fake_reg32(RVX1_FAULT_THREAD), 17);
	assert_int_equal(fake_reg32(RVX1_FAULT_INSN), 0x13);
	assert_int_equal(fake_reg32(RVX1_FAULT_OPCODE), RVX1_OP_LAUNCH);
	assert_int_equal(fake_word(FAKE_WORDS), 0);
	assert_int_equal(fake_read(0), 1);
}

static void the_code_is_the_last_field_of_a_fault(void **state)
{
	const uint32_t before[] = {
	        RVX1_FAULT_ADDRESS, RVX1_FAULT_ACCESS, RVX1_FAULT_QUEUE, RVX1_FAULT_OPCODE, RVX1_FAULT_VALUE};

	(void)state;
	fake_push_word(0, RVX1_OP_INVALID, 0, 0, 0);
	fake_run(&fw);

	int code = fake_stored(RVX1_CP_REGS + RVX1_FAULT_CODE);

	for (unsigned i = 0; i < sizeof(before) / sizeof(*before); i++)
		assert_true(fake_stored(RVX1_CP_REGS + before[i]) >= 0 &&
		            fake_stored(RVX1_CP_REGS + before[i]) < code);
	assert_true(fake_stored(RVX1_CP_REGS + RVX1_STATUS + RVX1_STATUS_FAULT) > code);
}

static void an_unwritten_slot_is_a_fault_with_its_number_and_the_heart_beats_on(void **state)
{
	uint32_t beats;

	(void)state;
	fake_push_word(2, RVX1_OP_NOP, 0, 0, 0);
	fake_push_word(2, RVX1_OP_INVALID, 0, 0, 0);
	fake_run(&fw);
	assert_int_equal(fake_reg32(RVX1_FAULT_CODE), RVX1_FAULT_PACKET);
	assert_int_equal(fake_reg32(RVX1_FAULT_QUEUE), 2);
	assert_int_equal(fake_reg64(RVX1_FAULT_ADDRESS), 1);
	assert_int_equal(fake_read(2), 1);
	beats = fake_reg32(RVX1_FW_HEARTBEAT);
	assert_false(fw_pass(&fw));
	assert_int_equal(fake_reg32(RVX1_FW_HEARTBEAT), beats + 1);
}

static void only_the_first_fault_is_reported(void **state)
{
	(void)state;
	push_launch(0, 1);
	fake_run(&fw);
	fake_push_word(1, RVX1_OP_INVALID, 0, 0, 0);
	fake_run(&fw);
	fake_set_engine64(RVX1_COMPUTE + RVX1_ENGINE_FAULT, RVX1_FAULT_ILLEGAL);
	fake_end_job(RVX1_COMPUTE, RVX1_ENGINE_FAULTED);
	fake_run(&fw);
	assert_int_equal(fake_reg32(RVX1_FAULT_CODE), RVX1_FAULT_PACKET);
	assert_int_equal(fake_reg32(RVX1_FAULT_QUEUE), 1);
}

static void check_bus_fault(uint64_t address, uint32_t access, uint32_t opcode)
{
	fake_run(&fw);
	assert_int_equal(fake_reg32(RVX1_FAULT_CODE), RVX1_FAULT_BUS);
	assert_int_equal(fake_reg64(RVX1_FAULT_ADDRESS), address);
	assert_int_equal(fake_reg32(RVX1_FAULT_ACCESS), access);
	assert_int_equal(fake_reg32(RVX1_FAULT_OPCODE), opcode);
	assert_int_equal(fake_read(0), 0);
}

static void a_store_nothing_answers_is_a_bus_fault(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_STORE, 0, NOWHERE, 1);
	check_bus_fault(NOWHERE, RVX1_ACCESS_WRITE, RVX1_OP_STORE);
}

static void a_wait_nothing_answers_is_a_bus_fault_and_not_a_large_number(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_WAIT, 0, NOWHERE, 1);
	check_bus_fault(NOWHERE, RVX1_ACCESS_READ, RVX1_OP_WAIT);
}

static void a_ring_nothing_answers_is_a_bus_fault(void **state)
{
	(void)state;
	fake_set_reg32(RVX1_QUEUE_BASE + RVX1_QUEUE_CTRL, 0);
	fake_run(&fw);
	fake_set_reg64(RVX1_QUEUE_BASE + RVX1_QUEUE_RING, NOWHERE);
	fake_set_reg32(RVX1_QUEUE_BASE + RVX1_QUEUE_CTRL, RVX1_QUEUE_ENABLE);
	fake_push_word(0, RVX1_OP_NOP, 0, 0, 0);
	check_bus_fault(NOWHERE, RVX1_ACCESS_READ, RVX1_OP_INVALID);
}

static void a_queue_on_a_bad_ring_is_a_packet_fault(void **state)
{
	(void)state;
	fake_set_reg32(RVX1_QUEUE_BASE + RVX1_QUEUE_CTRL, 0);
	fake_run(&fw);
	fake_set_reg32(RVX1_QUEUE_BASE + RVX1_QUEUE_ENTRIES, FAKE_ENTRIES + 1);
	fake_set_reg64(RVX1_QUEUE_BASE + RVX1_QUEUE_START, 33);
	fake_set_reg32(RVX1_QUEUE_BASE + RVX1_QUEUE_CTRL, RVX1_QUEUE_ENABLE);
	fake_run(&fw);
	assert_int_equal(fake_reg32(RVX1_FAULT_CODE), RVX1_FAULT_PACKET);
	assert_int_equal(fake_reg64(RVX1_FAULT_ADDRESS), 33);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(copy_registers_are_the_packets),
	        TEST(fill_is_a_copy_of_a_byte_and_leaves_no_trace),
	        TEST(launch_registers_are_the_packets),
	        TEST(a_queue_goes_on_when_its_job_is_done_and_others_meanwhile),
	        TEST(queues_use_an_engine_in_order_of_arrival),
	        TEST(a_disabled_queue_leaves_the_line_and_its_running_job_ends_for_nobody),
	        TEST(counters_are_zero_before_and_the_last_launchs_after),
	        TEST(an_engines_fault_is_reported_whole_and_stops_every_queue),
	        TEST(the_code_is_the_last_field_of_a_fault),
	        TEST(an_unwritten_slot_is_a_fault_with_its_number_and_the_heart_beats_on),
	        TEST(only_the_first_fault_is_reported),
	        TEST(a_store_nothing_answers_is_a_bus_fault),
	        TEST(a_wait_nothing_answers_is_a_bus_fault_and_not_a_large_number),
	        TEST(a_ring_nothing_answers_is_a_bus_fault),
	        TEST(a_queue_on_a_bad_ring_is_a_packet_fault),
	};

	return cmocka_run_group_tests_name("firmware: engines and faults", tests, NULL, NULL);
}
