/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "clock.h"

struct fake {
	uint64_t now;
	uint64_t slept;
};

static uint64_t fake_now(void *arg)
{
	return ((struct fake *)arg)->now;
}

static void fake_sleep(void *arg, uint64_t ns)
{
	struct fake *fake = arg;

	fake->now += ns;
	fake->slept += ns;
}

static void a_deadline_passes_exactly_at_its_time(void **state)
{
	struct fake fake = {.now = 1000};
	struct rig_clock clock = {fake_now, fake_sleep, &fake};
	struct rig_deadline deadline = rig_deadline_in(&clock, 500);

	(void)state;
	fake.now = 1499;
	assert_false(rig_deadline_passed(&deadline));
	assert_int_equal(rig_deadline_left(&deadline), 1);
	fake.now = 1500;
	assert_true(rig_deadline_passed(&deadline));
	assert_int_equal(rig_deadline_left(&deadline), 0);
}

static void a_deadline_beyond_the_clock_never_passes(void **state)
{
	struct fake fake = {.now = 1000};
	struct rig_clock clock = {fake_now, fake_sleep, &fake};
	struct rig_deadline deadline = rig_deadline_in(&clock, UINT64_MAX);

	(void)state;
	fake.now = UINT64_MAX;
	assert_false(rig_deadline_passed(&deadline));
	assert_int_equal(rig_deadline_left(&deadline), RIG_CLOCK_NEVER);
}

static void a_sleep_ends_at_the_deadline(void **state)
{
	struct fake fake = {.now = 1000};
	struct rig_clock clock = {fake_now, fake_sleep, &fake};
	struct rig_deadline deadline = rig_deadline_in(&clock, 500);

	(void)state;
	rig_deadline_sleep(&deadline, 400);
	assert_int_equal(fake.slept, 400);
	rig_deadline_sleep(&deadline, 400);
	assert_int_equal(fake.slept, 500);
	rig_deadline_sleep(&deadline, 400);
	assert_int_equal(fake.slept, 500);
}

static void the_real_clock_does_not_go_back_and_sleeps(void **state)
{
	uint64_t before = rig_clock_ns();

	(void)state;
	rig_clock_sleep(NULL, 1);
	assert_true(rig_clock_now(NULL) >= before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_deadline_passes_exactly_at_its_time),
	        cmocka_unit_test(a_deadline_beyond_the_clock_never_passes),
	        cmocka_unit_test(a_sleep_ends_at_the_deadline),
	        cmocka_unit_test(the_real_clock_does_not_go_back_and_sleeps),
	};

	return cmocka_run_group_tests_name("base clock", tests, NULL, NULL);
}
