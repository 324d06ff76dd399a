/* SPDX-License-Identifier: MIT */
/* Compiled kernels on the board, under the project's firmware: what docs/kernels.md promises them. */
#include "test.h"
#include <math.h>
#include <string.h>

#include "kernel_image.h"

#define AT(offset) (KERNEL_DATA_VA + (offset))

static struct kernel_board board;

static void threads_know_their_place_in_three_dimensions(void **state)
{
	const uint32_t grid[3] = {2, 3, 4}, group[3] = {4, 3, 2};
	const struct {
		uint64_t out;
		uint32_t capacity;
	} params = {AT(0), 24 * 24};

	(void)state;
	kernel_open(&board, "ids");
	kernel_launch(&board, &params, sizeof(params), grid, group, 256);
	rvx_await_value(&board.client, board.value);

	const uint32_t *found = kernel_data(&board, 0);

	for (uint32_t g = 0; g < 24; g++)
		for (uint32_t t = 0; t < 24; t++, found += 16) {
			const uint32_t want[16] = {t % 4, t / 4 % 3, t / 12, g % 2, g / 2 % 3, g / 6, 4, 3, 2,
			        2, 3, 4, 256, g * 24 + t, 0, 0x1D5};

			assert_memory_equal(found, want, sizeof(want));
		}
	kernel_close(&board);
}

struct atomics {
	uint64_t add64;
	uint32_t add32, or32;
	uint16_t add16, sub16;
	uint8_t add8, xor8, nand8, and8;
	uint64_t most;
	uint32_t locked, lock;
	uint16_t most16;
	uint8_t swapped, taken;
	uint32_t first;
};

static void atomics_of_every_width_lose_nothing(void **state)
{
	const uint64_t params = AT(0);
	const uint32_t threads = 40 * 100;

	(void)state;
	kernel_open(&board, "atomics");
	struct atomics *r = kernel_data(&board, 0);

	memset(r, 0, sizeof(*r));
	kernel_run(&board, &params, sizeof(params), 40, 100, 0);
	assert_int_equal(r->add64, threads);
	assert_int_equal(r->add32, threads);
	assert_int_equal(r->or32, UINT32_MAX);
	assert_int_equal(r->add16, threads);
	assert_int_equal(r->sub16, 0x10000 - threads);
	assert_int_equal(r->add8, threads % 256);
	assert_int_equal(r->xor8, 0);
	assert_int_equal(r->nand8, 0);
	assert_int_equal(r->and8, 0);
	assert_int_equal(r->most, threads);
	assert_int_equal(r->locked, threads);
	assert_int_equal(r->most16, threads - 1);
	assert_int_equal(r->swapped, 1);
	assert_int_equal(r->first, 1);
	kernel_close(&board);
}

static void expect(double x, double *want)
{
	int64_t n = (int64_t)(x * 1000), divisor = (n & 7) - 3;
	const double all[16] = {sin(x), cos(x), exp(x / 64), log(fabs(x) + 1), sqrt(fabs(x)),
	        pow(fabs(x) + 0.5, 1.5), fma(x, x, 1.0 / 3), floor(x) + ceil(x) + rint(x), atan2(x, 3),
	        fmod(x, 0.7), (double)sinf((float)x), (double)sqrtf(fabsf((float)x)),
	        (double)expf((float)x / 64), (double)(n / (divisor ? divisor : 5)), (double)(n % 1000003),
	        (double)((uint32_t)n / 7u)};

	memcpy(want, all, sizeof(all));
}

static void libm_and_division_agree_with_the_host(void **state)
{
	const uint32_t count = 200;
	const struct {
		uint64_t in, out;
		uint32_t count;
	} params = {AT(0), AT(0x10000), count};

	(void)state;
	kernel_open(&board, "math");
	double *in = kernel_data(&board, 0), want[16];
	const double *out = kernel_data(&board, 0x10000);

	for (uint32_t i = 0; i < count; i++)
		in[i] = ((double)i - 100) * 1.371;
	kernel_run(&board, &params, sizeof(params), 4, 50, 0);
	for (uint32_t i = 0; i < count; i++) {
		expect(in[i], want);
		for (unsigned j = 0; j < 16; j++) {
			double bound = (j >= 10 && j <= 12 ? 1e-6 : 1e-13) * (1 + fabs(want[j]));

			if (!(fabs(out[16 * i + j] - want[j]) <= bound))
				fail_msg("result %u of %g: %.17g, the host says %.17g", j, in[i],
				        out[16 * i + j], want[j]);
		}
	}
	kernel_close(&board);
}

static void barriers_order_shared_memory_which_starts_as_zero(void **state)
{
	const uint64_t params[3] = {AT(0), AT(0x20000), AT(0x30000)};

	(void)state;
	kernel_open(&board, "shared");
	uint32_t *in = kernel_data(&board, 0), *dirty = kernel_data(&board, 0x30000);
	const uint32_t *sums = kernel_data(&board, 0x20000);

	*dirty = 0;
	for (uint32_t i = 0; i < 5000; i++)
		in[i] = i;
	kernel_run(&board, params, sizeof(params), 5, 1000, 4000);
	for (uint32_t g = 0; g < 5; g++)
		assert_int_equal(sums[g], g * 1000000 + 999 * 500);
	assert_int_equal(*dirty, 0);
	kernel_close(&board);
}

static void globals_tables_and_recursion_work_and_globals_stay(void **state)
{
	const uint64_t params = AT(0);

	(void)state;
	kernel_open(&board, "globals");
	for (uint64_t n = 1; n <= 3; n++) {
		const uint64_t want[8] = {n, 40 + n, 42, 610, 'e' + 3, 14, 40, 'z'};

		kernel_run(&board, &params, sizeof(params), 1, 1, 0);
		assert_memory_equal(kernel_data(&board, 0), want, sizeof(want));
	}
	kernel_close(&board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(threads_know_their_place_in_three_dimensions),
	        cmocka_unit_test(atomics_of_every_width_lose_nothing),
	        cmocka_unit_test(libm_and_division_agree_with_the_host),
	        cmocka_unit_test(barriers_order_shared_memory_which_starts_as_zero),
	        cmocka_unit_test(globals_tables_and_recursion_work_and_globals_stay),
	};

	return cmocka_run_group_tests_name("kernels: good ones", tests, NULL, NULL);
}
