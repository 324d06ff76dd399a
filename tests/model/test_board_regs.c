/* SPDX-License-Identifier: MIT */
/* The board's registers, window, aperture, status page and configuration space through a client's
 * messages. */
#include "rvx_client.h"

#include "vfu_wire.h"

#include <linux/pci_regs.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the lines above */
#include "test.h"

#define ONES32   0xFFFFFFFFull
#define QUEUE(q) (RVX1_QUEUE_BASE + (q)*RVX1_QUEUE_PITCH)

static struct rvx_client client;
static struct rvx_client *const c = &client;

static int begin(void **state)
{
	struct rvx_config config = rvx_client_config();

	(void)state;
	config.aperture_bytes = RVX_MIN_APERTURE;
	config.queues = 3;
	rvx_client_open(c, &config);
	rvx_client_map(c);
	return 0;
}

static int end(void **state)
{
	(void)state;
	rvx_client_close(c);
	return 0;
}

static void it_is_the_function_of_the_manual(void **state)
{
	(void)state;
	assert_int_equal(rvx_read(c, RVX_CONFIG, PCI_VENDOR_ID, 4), 0x52581234);
	assert_int_equal(rvx_read(c, RVX_CONFIG, PCI_SUBSYSTEM_VENDOR_ID, 4), 0x00011234);
	assert_int_equal(rvx_read(c, RVX_CONFIG, PCI_CLASS_REVISION, 4), 0x12000010);
	assert_int_equal(rvx_reg32(c, RVX1_ID), RVX1_ID_VALUE);
	assert_int_equal(rvx_reg32(c, RVX1_REVISION), RVX1_REVISION_VALUE);
	assert_int_equal(rvx_reg32(c, RVX1_QUEUES), 3);
	assert_true(rvx_reg64(c, RVX1_MEMORY_BYTES) == RVX1_MIN_MEMORY);
	assert_true(rvx_reg64(c, RVX1_APERTURE_BYTES) == RVX_MIN_APERTURE);
	assert_int_equal(rvx_reg32(c, RVX1_GROUP_THREADS), RVX1_MAX_GROUP_THREADS);
	assert_int_equal(rvx_reg32(c, RVX1_GROUP_SHARED), RVX1_MAX_SHARED);
	assert_true(rvx_reg32(c, RVX1_STACK_SLOTS) >= RVX1_MAX_GROUP_THREADS);
}

static void the_clock_runs_and_is_the_same_in_halves(void **state)
{
	uint64_t a = rvx_reg64(c, RVX1_CLOCK), b = rvx_reg64(c, RVX1_CLOCK);

	(void)state;
	assert_true(b > a && rvx_reg64(c, RVX1_CLOCK_HZ) > 0);
	assert_true(rvx_reg32(c, RVX1_CLOCK) >= (uint32_t)b || rvx_reg32(c, RVX1_CLOCK + 4) > b >> 32);
}

static void other_widths_and_places_read_zero_and_drop_writes(void **state)
{
	uint8_t bytes[64];

	(void)state;
	assert_int_equal(rvx_read(c, 0, RVX1_ID, 2), 0);
	assert_int_equal(rvx_read(c, 0, RVX1_ID, 1), 0);
	assert_int_equal(rvx_read(c, 0, 4, 8), 0); /* not aligned */
	assert_int_equal(rvx_read(c, 0, 0xF00, 8), 0);
	assert_int_equal(rvx_read(c, 0, 0x3000, 8), 0);
	rvx_read_bytes(c, 0, 0, bytes, sizeof(bytes));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0);
	rvx_write(c, 0, RVX1_PT_ROOT, 2, 0x1000);
	rvx_write(c, 0, 0xF00, 4, 1);
	rvx_set32(c, RVX1_ID, 0);
	rvx_set64(c, RVX1_MEMORY_BYTES, 1);
	rvx_set32(c, RVX1_FW_STATE, RVX1_FW_READY);
	rvx_set32(c, RVX1_FAULT_CODE, 1);
	rvx_set32(c, RVX1_CP_STATE, RVX1_CP_RUNNING);
	rvx_write(c, 0, RVX1_STATUS + RVX1_STATUS_VALUE, 8, 9);
	assert_int_equal(rvx_reg32(c, RVX1_PT_ROOT), 0);
	assert_int_equal(rvx_reg32(c, 0xF00), 0);
	assert_int_equal(rvx_reg32(c, RVX1_ID), RVX1_ID_VALUE);
	assert_true(rvx_reg64(c, RVX1_MEMORY_BYTES) == RVX1_MIN_MEMORY);
	assert_int_equal(rvx_reg32(c, RVX1_FW_STATE), RVX1_FW_NONE);
	assert_int_equal(rvx_reg32(c, RVX1_FAULT_CODE), 0);
	assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RESET);
	assert_int_equal(rvx_reg64(c, RVX1_STATUS + RVX1_STATUS_VALUE), 0);
}

static void registers_of_64_bits_take_halves_in_any_order(void **state)
{
	(void)state;
	rvx_set32(c, RVX1_CP_ENTRY + 4, 0x11223344);
	rvx_set32(c, RVX1_CP_ENTRY, 0x55667788);
	assert_true(rvx_reg64(c, RVX1_CP_ENTRY) == 0x1122334455667788ull);
	rvx_set64(c, RVX1_INV_BYTES, 0xAABBCCDD00112233ull);
	assert_int_equal(rvx_reg32(c, RVX1_INV_BYTES), 0x00112233);
	assert_int_equal(rvx_reg32(c, RVX1_INV_BYTES + 4), 0xAABBCCDD);
}

static void queues_have_registers_up_to_their_number(void **state)
{
	(void)state;
	rvx_set64(c, QUEUE(2) + RVX1_QUEUE_RING, 0x4000000000001000ull);
	rvx_set64(c, QUEUE(2) + RVX1_QUEUE_ENTRIES, 1ull << 32 | 64); /* ENTRIES, then CTRL */
	rvx_set64(c, QUEUE(3) + RVX1_QUEUE_RING, 0x1000);
	assert_true(rvx_reg64(c, QUEUE(2) + RVX1_QUEUE_RING) == 0x4000000000001000ull);
	assert_int_equal(rvx_reg32(c, QUEUE(2) + RVX1_QUEUE_ENTRIES), 64);
	assert_int_equal(rvx_reg32(c, QUEUE(2) + RVX1_QUEUE_CTRL), RVX1_QUEUE_ENABLE);
	assert_int_equal(rvx_reg64(c, QUEUE(3) + RVX1_QUEUE_RING), 0);
	assert_int_equal(rvx_reg64(c, QUEUE(2) + 0x18), 0);
}

static void value_set_sets_value_while_no_queue_is_enabled(void **state)
{
	const uint64_t *value = (const uint64_t *)(const void *)(c->status + RVX1_STATUS_VALUE);

	(void)state;
	rvx_set64(c, RVX1_VALUE_SET, 77);
	assert_int_equal(*value, 77);
	rvx_set32(c, RVX1_VALUE_SET + 4, 1);
	rvx_set32(c, RVX1_VALUE_SET, 5);
	assert_true(*value == (1ull << 32 | 5));
	rvx_set32(c, QUEUE(1) + RVX1_QUEUE_CTRL, RVX1_QUEUE_ENABLE);
	rvx_set64(c, RVX1_VALUE_SET, 99);
	assert_true(*value == (1ull << 32 | 5));
	assert_true(rvx_reg64(c, RVX1_STATUS) == *value);
}

static void an_invalidation_is_acknowledged_with_its_number(void **state)
{
	(void)state;
	rvx_set64(c, RVX1_INV_ADDRESS, UINT64_MAX);
	rvx_set64(c, RVX1_INV_BYTES, UINT64_MAX);
	rvx_set32(c, RVX1_INV_REQUEST, 0xABCD);
	rvx_await_reg(c, RVX1_INV_ACK, 0xABCD);
	rvx_set64(c, RVX1_INV_BYTES, 0);
	rvx_set32(c, RVX1_INV_REQUEST, 1);
	rvx_await_reg(c, RVX1_INV_ACK, 1);
}

static void aperture_window_and_mapping_show_the_same_bytes(void **state)
{
	uint64_t at = RVX_MIN_APERTURE - 0x100;

	(void)state;
	memset(c->memory + at, 0x11, 0x100);
	rvx_set64(c, RVX1_WINDOW_ADDRESS, at + 0x7F); /* the low 8 bits do not count */
	assert_true(rvx_reg64(c, RVX1_WINDOW) == 0x1111111111111111ull);
	rvx_set32(c, RVX1_WINDOW + 0xFC, 0xDEADBEEF);
	assert_int_equal(*(uint32_t *)(void *)(c->memory + at + 0xFC), 0xDEADBEEF);
	assert_int_equal(rvx_read(c, RVX1_BAR_MEMORY, at + 0xFC, 4), 0xDEADBEEF);
	rvx_write(c, RVX1_BAR_MEMORY, at + 3, 1, 0x99);
	assert_int_equal(c->memory[at + 3], 0x99);
	assert_int_equal(rvx_read(c, 0, RVX1_WINDOW, 2), 0);
}

static void the_window_reaches_memory_behind_the_aperture(void **state)
{
	(void)state;
	rvx_set64(c, RVX1_WINDOW_ADDRESS, RVX1_MIN_MEMORY - 0x100);
	rvx_set64(c, RVX1_WINDOW + 0xF8, 0x123456789ABCDEF0ull);
	assert_true(rvx_reg64(c, RVX1_WINDOW + 0xF8) == 0x123456789ABCDEF0ull);
	rvx_set64(c, RVX1_WINDOW_ADDRESS, RVX1_MIN_MEMORY);
	rvx_set64(c, RVX1_WINDOW, 0);
	assert_true(rvx_reg64(c, RVX1_WINDOW) == UINT64_MAX);
	assert_true(rvx_reg32(c, RVX1_WINDOW + 4) == ONES32);
	rvx_set64(c, RVX1_WINDOW_ADDRESS, UINT64_MAX);
	assert_true(rvx_reg64(c, RVX1_WINDOW) == UINT64_MAX);
}

static void doorbells_are_memory(void **state)
{
	(void)state;
	rvx_write(c, RVX1_BAR_DOORBELL, RVX1_DOORBELL_PITCH, 8, 0x1234567890ull);
	assert_true(*(uint64_t *)(void *)(c->doorbells + RVX1_DOORBELL_PITCH) == 0x1234567890ull);
	*(uint64_t *)(void *)(c->doorbells + RVX1_DOORBELL_ARM) = 44;
	assert_true(rvx_read(c, RVX1_BAR_DOORBELL, RVX1_DOORBELL_ARM, 8) == 44);
}

static void without_memory_space_reads_are_ones_and_writes_dropped(void **state)
{
	(void)state;
	rvx_set64(c, RVX1_CP_ENTRY, 5);
	c->memory[0] = 1;
	rvx_command(c, PCI_COMMAND_MASTER);
	assert_int_equal(rvx_reg32(c, RVX1_ID), ONES32);
	assert_int_equal(rvx_read(c, RVX1_BAR_MEMORY, 0, 1), 0xFF);
	assert_true(rvx_read(c, RVX1_BAR_DOORBELL, 0, 8) == UINT64_MAX);
	rvx_set64(c, RVX1_CP_ENTRY, 6);
	rvx_write(c, RVX1_BAR_MEMORY, 0, 1, 2);
	rvx_write(c, RVX1_BAR_DOORBELL, 0, 8, 3);
	rvx_command(c, PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY);
	assert_int_equal(rvx_reg64(c, RVX1_CP_ENTRY), 5);
	assert_int_equal(c->memory[0], 1);
	assert_int_equal(rvx_read(c, RVX1_BAR_DOORBELL, 0, 8), 0);
}

static void reset_by_message_and_by_flr_put_everything_back(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 2; how++) {
		rvx_set64(c, RVX1_CP_ENTRY, 5);
		rvx_set64(c, RVX1_PT_ROOT, 0x1000);
		rvx_set64(c, RVX1_VALUE_SET, 7);
		rvx_set32(c, QUEUE(0) + RVX1_QUEUE_CTRL, RVX1_QUEUE_ENABLE);
		*(uint64_t *)(void *)(c->doorbells + RVX1_DOORBELL_ARM) = 44;
		c->memory[12345] = 0x42;
		uint64_t clock = rvx_reg64(c, RVX1_CLOCK);
		if (how)
			rvx_reset_flr(c);
		else
			assert_int_equal(rvx_reset_message(c), 0);
		assert_int_equal(rvx_read(c, RVX_CONFIG, PCI_COMMAND, 2), 0);
		rvx_command(c, PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY);
		assert_true(rvx_reg64(c, RVX1_CLOCK) < clock + 62500000);
		assert_int_equal(rvx_reg64(c, RVX1_CP_ENTRY), 0);
		assert_int_equal(rvx_reg64(c, RVX1_PT_ROOT), 0);
		assert_int_equal(rvx_reg32(c, QUEUE(0) + RVX1_QUEUE_CTRL), 0);
		assert_int_equal(rvx_reg64(c, RVX1_STATUS), 0);
		assert_int_equal(*(uint64_t *)(void *)(c->doorbells + RVX1_DOORBELL_ARM), 0);
		assert_int_equal(c->memory[12345], 0x42);
		assert_int_equal(rvx_reg32(c, RVX1_ID), RVX1_ID_VALUE);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(it_is_the_function_of_the_manual),
	        TEST(the_clock_runs_and_is_the_same_in_halves),
	        TEST(other_widths_and_places_read_zero_and_drop_writes),
	        TEST(registers_of_64_bits_take_halves_in_any_order),
	        TEST(queues_have_registers_up_to_their_number),
	        TEST(value_set_sets_value_while_no_queue_is_enabled),
	        TEST(an_invalidation_is_acknowledged_with_its_number),
	        TEST(aperture_window_and_mapping_show_the_same_bytes),
	        TEST(the_window_reaches_memory_behind_the_aperture),
	        TEST(doorbells_are_memory),
	        TEST(without_memory_space_reads_are_ones_and_writes_dropped),
	        TEST(reset_by_message_and_by_flr_put_everything_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
