/* SPDX-License-Identifier: MIT */
/* ARM and the completion interrupt (docs/rvx1.md, section 9). VALUE_SET stands for the firmware. */
#include "rvx_asm.h"
#include "rvx_client.h"

#include <stdlib.h>
#include <string.h>
/* cmocka wants the lines above */
#include "test.h"

#define CODE 0x20000ull

static struct rvx_client client;
static struct rvx_client *const c = &client;

static int begin(void **state)
{
	/* A processor that only sleeps, so that the board looks at ARM by itself. */
	static const uint32_t code[] = {WFI, BEQ(ZERO, ZERO, -4)};
	struct rvx_config config = rvx_client_config();

	(void)state;
	rvx_client_open(c, &config);
	rvx_client_map(c);
	rvx_start_code(c, CODE, code, 2);
	return 0;
}

static int end(void **state)
{
	(void)state;
	rvx_client_close(c);
	return 0;
}

static void arm(uint64_t value)
{
	__atomic_store_n((uint64_t *)(void *)(c->doorbells + RVX1_DOORBELL_ARM), value, __ATOMIC_SEQ_CST);
}

static void value(uint64_t v)
{
	rvx_set64(c, RVX1_VALUE_SET, v);
}

/* Whatever the board was to do about what was stored before, it has done: its main loop went round. */
static void settle(void)
{
	for (unsigned i = 0; i < 8; i++)
		rvx_reg32(c, RVX1_ID);
}

static bool raised(void)
{
	settle();
	return rvx_has_irq(c, RVX1_VECTOR_COMPLETE);
}

static void after_a_reset_it_is_armed_for_the_first_value(void **state)
{
	(void)state;
	assert_false(raised());
	value(1);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
}

static void each_value_of_arm_raises_once(void **state)
{
	(void)state;
	arm(5);
	value(5);
	assert_false(raised());
	value(6);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
	value(7);
	value(8);
	assert_false(raised());
	arm(8);
	assert_false(raised());
	value(9);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
}

static void an_arm_that_is_passed_already_raises_at_once(void **state)
{
	(void)state;
	value(10);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
	arm(9);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
	assert_false(raised());
	arm(3);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
}

static void all_ones_disarm(void **state)
{
	(void)state;
	arm(UINT64_MAX);
	value(10);
	assert_false(raised());
	value(UINT64_MAX);
	assert_false(raised());
	arm(UINT64_MAX - 1);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
}

static void whatever_the_order_no_wakeup_is_lost(void **state)
{
	(void)state;
	value(1);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
	for (uint64_t v = 2; v < 500; v++) {
		if (v % 2) {
			arm(v - 1);
			value(v);
		} else {
			value(v);
			arm(v - 1);
		}
		rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
	}
}

static void a_reset_arms_again(void **state)
{
	(void)state;
	arm(100);
	value(50);
	assert_false(raised());
	assert_int_equal(rvx_reset_message(c), 0);
	rvx_command(c, 6);
	assert_false(raised());
	value(1);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(after_a_reset_it_is_armed_for_the_first_value),
	        TEST(each_value_of_arm_raises_once),
	        TEST(an_arm_that_is_passed_already_raises_at_once),
	        TEST(all_ones_disarm),
	        TEST(whatever_the_order_no_wakeup_is_lost),
	        TEST(a_reset_arms_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
