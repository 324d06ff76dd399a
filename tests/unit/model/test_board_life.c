/* SPDX-License-Identifier: MIT */
/* Opening and closing a board: what it refuses, what it leaves behind. */
#include "allocs.h"
#include "counters.h"
#include "rvx_board.h"

#include "rvx1/regs.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
/* cmocka wants the lines above */
#include "test.h"

#define MIB (1ull << 20)

static struct rvx_config config_of(uint64_t memory, uint64_t aperture, uint32_t queues, int drift)
{
	return (struct rvx_config){
	        .memory_bytes = memory, .aperture_bytes = aperture, .queues = queues, .drift_ppm = drift};
}

static void a_configuration_out_of_range_is_refused(void **state)
{
	const struct rvx_config bad[] = {
	        config_of(62 * MIB, 32 * MIB, 2, 0),
	        config_of(65 * MIB, 64 * MIB, 2, 0),
	        config_of(8194 * MIB, 64 * MIB, 2, 0),
	        config_of(64 * MIB, 128 * MIB, 2, 0),
	        config_of(64 * MIB, 8 * MIB, 2, 0),
	        config_of(64 * MIB, 48 * MIB, 2, 0),
	        config_of(64 * MIB, 64 * MIB, 1, 0),
	        config_of(64 * MIB, 64 * MIB, 9, 0),
	        config_of(64 * MIB, 64 * MIB, 2, 101),
	        config_of(64 * MIB, 64 * MIB, 2, -101),
	};
	struct rvx_config clocks[4];
	struct rvx_board *board = NULL;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rvx_board_open(&bad[i], &board), -EINVAL);
		assert_null(board);
	}
	for (unsigned i = 0; i < 4; i++)
		clocks[i] = config_of(64 * MIB, 64 * MIB, 2, 0);
	clocks[0].clock_hz = 999999;
	clocks[1].clock_hz = 4000000001;
	clocks[2].clock_step_us = 1000001;
	clocks[3].clock_step_ms = 1000001;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rvx_board_open(&clocks[i], &board), -EINVAL);
}

static void the_default_aperture_is_the_largest_power_of_two_inside(void **state)
{
	(void)state;
	assert_true(rvx_default_aperture(64 * MIB) == 64 * MIB);
	assert_true(rvx_default_aperture(126 * MIB) == 64 * MIB);
	assert_true(rvx_default_aperture(128 * MIB) == 128 * MIB);
	assert_true(rvx_default_aperture(8192 * MIB) == 8192 * MIB);
}

/* A board with a client that hangs up. */
static int scenario(void)
{
	struct rvx_config config = config_of(64 * MIB, 64 * MIB, 2, 0);
	struct rvx_board *board = NULL;
	int pair[2];
	int err = rvx_board_open(&config, &board);

	if (err)
		return err;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	err = rvx_board_attach(board, pair[1]);
	close(pair[0]);
	if (!err)
		err = rvx_board_run(board, NULL, NULL);
	rvx_board_close(board);
	return err;
}

static void a_closed_board_leaves_nothing(void **state)
{
	struct test_counts before;

	(void)state;
	assert_int_equal(scenario(), 0);
	test_counts_take(&before);
	assert_int_equal(scenario(), 0);
	test_counts_same(&before);
	rvx_board_close(NULL);
}

static void without_memory_it_fails_cleanly_wherever_that_happens(void **state)
{
	struct test_counts before;

	(void)state;
	test_counts_take(&before);
	for (uint64_t k = 1;; k++) {
		test_allocs_fail_at(k);
		int err = scenario();
		bool failed = test_allocs_failed();
		test_allocs_fail_at(0);
		test_counts_same(&before);
		if (!failed) {
			assert_int_equal(err, 0);
			assert_true(k > 3);
			break;
		}
		assert_true(err == -ENOMEM || err == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_configuration_out_of_range_is_refused),
	        cmocka_unit_test(the_default_aperture_is_the_largest_power_of_two_inside),
	        cmocka_unit_test(a_closed_board_leaves_nothing),
	        cmocka_unit_test(without_memory_it_fails_cleanly_wherever_that_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
