/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "bench_stat.h"

static struct bench_times times_of(const uint64_t *ns, size_t count, uint32_t batch)
{
	struct bench_samples samples = {0};
	struct bench_times times;
	size_t i;

	for (i = 0; i < count; i++)
		bench_samples_add(&samples, ns[i]);
	times = bench_samples_times(&samples, batch);
	bench_samples_free(&samples);
	return times;
}

static void the_median_of_an_odd_number_is_the_middle_one(void **state)
{
	struct bench_times times = times_of((const uint64_t[]){900, 10, 30, 20, 5000}, 5, 1);

	(void)state;
	assert_true(times.median_ns == 30);
	assert_true(times.fastest_ns == 10);
	assert_int_equal(times.samples, 5);
}

static void the_median_of_an_even_number_is_between_the_middle_two(void **state)
{
	struct bench_times times = times_of((const uint64_t[]){40, 10, 20, 31}, 4, 1);

	(void)state;
	assert_true(times.median_ns == 25.5);
}

static void a_batch_is_divided_by_its_operations(void **state)
{
	struct bench_times times = times_of((const uint64_t[]){1000, 3000}, 2, 100);

	(void)state;
	assert_true(times.median_ns == 20);
	assert_true(times.fastest_ns == 10);
}

static void nothing_measured_is_no_samples(void **state)
{
	struct bench_times times = times_of(NULL, 0, 1);

	(void)state;
	assert_int_equal(times.samples, 0);
}

static void more_samples_than_the_most_are_dropped(void **state)
{
	struct bench_samples samples = {0};
	size_t i;

	(void)state;
	for (i = 0; i < BENCH_MAX_SAMPLES + 1; i++)
		bench_samples_add(&samples, i);
	assert_int_equal(samples.count, BENCH_MAX_SAMPLES);
	bench_samples_free(&samples);
	assert_int_equal(samples.count, 0);
}

static void times_are_told_in_three_digits_and_a_unit_that_fits(void **state)
{
	static const struct {
		double ns;
		const char *text;
	} rows[] = {
	        {0.345, "0.34 ns"},
	        {9.99, "9.99 ns"},
	        {9.996, "10.0 ns"},
	        {99.96, "100 ns"},
	        {999.4, "999 ns"},
	        {999.6, "1.00 us"},
	        {1234567, "1.23 ms"},
	        {2e9, "2.00 s"},
	        {5e12, "5000 s"},
	};
	char text[16];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bench_time_text(rows[i].ns, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_median_of_an_odd_number_is_the_middle_one),
	        cmocka_unit_test(the_median_of_an_even_number_is_between_the_middle_two),
	        cmocka_unit_test(a_batch_is_divided_by_its_operations),
	        cmocka_unit_test(nothing_measured_is_no_samples),
	        cmocka_unit_test(more_samples_than_the_most_are_dropped),
	        cmocka_unit_test(times_are_told_in_three_digits_and_a_unit_that_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
