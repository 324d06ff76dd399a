/* SPDX-License-Identifier: MIT */
/* The firmware's queues on a board in plain memory: docs/rvx1.md, sections 5.1, 7 and 8. */
#include "test.h"
#include <string.h>

#include "fw_fake.h"
#include "fw_version.h"

#define STATUS_AT(offset) (RVX1_CP_REGS + RVX1_STATUS + (offset))
#define SYSTEM_WORD       (FAKE_SYSTEM + 0x40)

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

static void boot_shows_version_then_ready(void **state)
{
	(void)state;
	assert_int_equal(fake_reg32(RVX1_FW_STATE), RVX1_FW_READY);
	assert_int_equal(fake_reg32(RVX1_FW_VERSION), FW_VERSION);
}

static void a_board_of_another_revision_is_refused(void **state)
{
	struct fw other = {0};

	(void)state;
	fake_set_reg32(RVX1_REVISION, 2u << 16);
	assert_false(fw_boot(&other));
	assert_int_equal(fake_reg32(RVX1_FW_STATE), RVX1_FW_FAILED);
}

static void each_pass_adds_one_to_the_heartbeat_and_shows_the_clock(void **state)
{
	uint32_t before = fake_reg32(RVX1_FW_HEARTBEAT);

	(void)state;
	fake_set_reg64(RVX1_CLOCK, 12345);
	assert_false(fw_pass(&fw));
	assert_int_equal(fake_reg32(RVX1_FW_HEARTBEAT), before + 1);
	assert_int_equal(fake_status(RVX1_STATUS_CLOCK), 12345);
}

static void packets_run_in_order_up_to_the_doorbell(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_STORE, 0, FAKE_WORDS, 1);
	fake_push_word(0, RVX1_OP_STORE, 0, FAKE_WORDS, 2);
	fake_run(&fw);
	assert_int_equal(fake_word(FAKE_WORDS), 2);
	assert_int_equal(fake_read(0), 2);
	assert_int_equal(fake_read(1), 0);
}

static void the_ring_wraps_and_numbers_go_on(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 3 * FAKE_ENTRIES; n++) {
		fake_push_word(0, RVX1_OP_STORE, 0, FAKE_WORDS, n);
		fake_run(&fw);
		assert_int_equal(fake_word(FAKE_WORDS), n);
		assert_int_equal(fake_read(0), n);
	}
}

static void a_full_ring_runs(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < FAKE_ENTRIES; n++)
		fake_push_word(0, RVX1_OP_NOP, 0, 0, 0);
	fake_run(&fw);
	assert_int_equal(fake_read(0), FAKE_ENTRIES);
}

static void wait_holds_its_queue_only_until_the_word_is_reached(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_WAIT, 0, SYSTEM_WORD, 5);
	fake_push_word(0, RVX1_OP_STORE, 0, FAKE_WORDS, 1);
	fake_push_word(1, RVX1_OP_STORE, 0, FAKE_WORDS + 8, 2);
	fake_set_word(SYSTEM_WORD, 4);
	fake_run(&fw);
	assert_int_equal(fake_word(FAKE_WORDS), 0);
	assert_int_equal(fake_word(FAKE_WORDS + 8), 2);
	fake_set_word(SYSTEM_WORD, 6);
	fake_run(&fw);
	assert_int_equal(fake_word(FAKE_WORDS), 1);
	assert_int_equal(fake_read(0), 2);
}

static void a_packet_is_copied_before_it_is_checked(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_WAIT, 0, FAKE_WORDS, 5);
	fake_run(&fw);
	fake_set_word(FAKE_RING(0) + 8, 3); /* an address no rule would let pass */
	fake_set_word(FAKE_WORDS, 5);
	fake_run(&fw);
	assert_int_equal(fake_read(0), 1);
	assert_int_equal(fake_reg32(RVX1_FAULT_CODE), RVX1_FAULT_NONE);
}

static void stores_reach_system_memory(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_STORE, 0, SYSTEM_WORD, 0x1122334455667788);
	fake_run(&fw);
	assert_int_equal(fake_word(SYSTEM_WORD), 0x1122334455667788);
}

static void stamp_stores_the_clock(void **state)
{
	(void)state;
	fake_set_engine64(RVX1_STAMP, 987654321);
	fake_push_word(0, RVX1_OP_STAMP, 0, FAKE_WORDS, 0);
	fake_run(&fw);
	assert_int_equal(fake_word(FAKE_WORDS), 987654321);
}

static void signal_raises_a_semaphore_and_never_lowers_it(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_SEMAPHORE, 63, 0, 7);
	fake_push_word(1, RVX1_OP_SIGNAL, 63, 0, 6);
	fake_run(&fw);
	assert_int_equal(fake_read(0), 0);
	fake_push_word(1, RVX1_OP_SIGNAL, 63, 0, 9);
	fake_push_word(1, RVX1_OP_SIGNAL, 63, 0, 1);
	fake_run(&fw);
	assert_int_equal(fake_read(0), 1);
	fake_push_word(0, RVX1_OP_SEMAPHORE, 63, 0, 9);
	fake_run(&fw);
	assert_int_equal(fake_read(0), 2);
}

static void release_shows_progress_then_value_then_the_word(void **state)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_RELEASE, .flags = RVX1_RELEASE_STORE};

	(void)state;
	p.u.word.address = SYSTEM_WORD;
	p.u.word.value = 3;
	fake_push_word(1, RVX1_OP_WAIT_VALUE, 0, 0, 3);
	fake_push(0, &p);
	fake_run(&fw);
	assert_int_equal(fake_status(RVX1_STATUS_VALUE), 3);
	assert_int_equal(fake_status(RVX1_STATUS_QUEUE + RVX1_STATUS_RELEASED), 3);
	assert_int_equal(fake_word(SYSTEM_WORD), 3);
	assert_int_equal(fake_read(1), 1);

	int read = fake_stored(STATUS_AT(RVX1_STATUS_QUEUE + RVX1_STATUS_READ));
	int released = fake_stored(STATUS_AT(RVX1_STATUS_QUEUE + RVX1_STATUS_RELEASED));
	int value = fake_stored(STATUS_AT(RVX1_STATUS_VALUE)), word = fake_stored(SYSTEM_WORD);

	assert_true(read >= 0 && released >= 0 && read < value && released < value && value < word);
}

static void release_without_the_flag_stores_nothing(void **state)
{
	(void)state;
	fake_push_word(0, RVX1_OP_RELEASE, 0, 0, 8);
	fake_run(&fw);
	assert_int_equal(fake_status(RVX1_STATUS_VALUE), 8);
	assert_int_equal(fake_stored(SYSTEM_WORD), -1);
}

static void value_set_before_enable_is_where_values_start(void **state)
{
	(void)state;
	fake_fini();
	fake_init(&fw);
	fake_set_reg64(
	        RVX1_STATUS + RVX1_STATUS_VALUE, 100); /* what the board does on a write of VALUE_SET */
	fake_enable(0);
	fake_push_word(0, RVX1_OP_RELEASE, 0, 0, 101);
	fake_push_word(0, RVX1_OP_RELEASE, 0, 0, 101);
	fake_run(&fw);
	assert_int_equal(fake_status(RVX1_STATUS_VALUE), 101);
	assert_int_equal(fake_reg32(RVX1_FAULT_CODE), RVX1_FAULT_PACKET);
	assert_int_equal(fake_reg64(RVX1_FAULT_ADDRESS), 1);
	assert_int_equal(fake_reg64(RVX1_FAULT_VALUE), 102);
}

static void a_ring_packet_goes_on_elsewhere_with_the_next_number(void **state)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_STORE};

	(void)state;
	p.u.word.address = FAKE_WORDS;
	p.u.word.value = 77;
	for (unsigned i = 0; i < 20; i++) { /* so that slots differ in rings of 16 and 32 */
		fake_push_word(0, RVX1_OP_NOP, 0, 0, 0);
		fake_run(&fw);
	}
	for (unsigned i = 0; i < sizeof(p) / 8; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)&p + 8 * i, sizeof(word));
		fake_set_word(0x300000 + 21 * sizeof(p) + 8 * i, word);
	}
	fake_push_word(0, RVX1_OP_RING, 32, 0x300000, 0);
	fake_push_word(0, RVX1_OP_INVALID, 0, 0, 0); /* in the old ring, where nobody reads it */
	fake_run(&fw);
	assert_int_equal(fake_reg32(RVX1_FAULT_CODE), RVX1_FAULT_NONE);
	assert_int_equal(fake_word(FAKE_WORDS), 77);
	assert_int_equal(fake_read(0), 22);
}

static void a_queue_enabled_again_reads_its_registers_again(void **state)
{
	uint32_t base = RVX1_QUEUE_BASE;

	(void)state;
	fake_push_word(0, RVX1_OP_WAIT, 0, FAKE_WORDS, 1); /* dropped with the queue */
	fake_run(&fw);
	fake_set_reg32(base + RVX1_QUEUE_CTRL, 0);
	fake_run(&fw);
	fake_set_reg64(base + RVX1_QUEUE_RING, FAKE_RING(2) + 0x8000);
	fake_set_reg64(base + RVX1_QUEUE_START, 40);
	fake_set_reg32(base + RVX1_QUEUE_CTRL, RVX1_QUEUE_ENABLE);
	fake_set_word(FAKE_RING(2) + 0x8000 + (40 % FAKE_ENTRIES) * RVX1_PACKET_BYTES, RVX1_OP_NOP);
	fake_run(&fw);
	assert_int_equal(fake_read(0), 40);
	fake_set_word(RVX1_CP_DOORBELLS, 40);
	fake_run(&fw);
	assert_int_equal(fake_read(0), 40);
	fake_set_word(RVX1_CP_DOORBELLS, 41);
	fake_run(&fw);
	assert_int_equal(fake_read(0), 41);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(boot_shows_version_then_ready),
	        TEST(a_board_of_another_revision_is_refused),
	        TEST(each_pass_adds_one_to_the_heartbeat_and_shows_the_clock),
	        TEST(packets_run_in_order_up_to_the_doorbell),
	        TEST(the_ring_wraps_and_numbers_go_on),
	        TEST(a_full_ring_runs),
	        TEST(wait_holds_its_queue_only_until_the_word_is_reached),
	        TEST(a_packet_is_copied_before_it_is_checked),
	        TEST(stores_reach_system_memory),
	        TEST(stamp_stores_the_clock),
	        TEST(signal_raises_a_semaphore_and_never_lowers_it),
	        TEST(release_shows_progress_then_value_then_the_word),
	        TEST(release_without_the_flag_stores_nothing),
	        TEST(value_set_before_enable_is_where_values_start),
	        TEST(a_ring_packet_goes_on_elsewhere_with_the_next_number),
	        TEST(a_queue_enabled_again_reads_its_registers_again),
	};

	return cmocka_run_group_tests_name("firmware: queues", tests, NULL, NULL);
}
