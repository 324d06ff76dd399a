/* SPDX-License-Identifier: MIT */
#include "rvx_options.h"

#include "rvx1/regs.h"

#include <string.h>
/* cmocka wants the lines above */
#include "test.h"

#define MAX_WORDS 8
#define MIB       (1ull << 20)

/* Parses "--fd 5" and the words. */
static enum rvx_wish parse(
        struct rvx_options *out, const char *a, const char *b, const char *c, const char *d)
{
	const char *argv[MAX_WORDS] = {"rvx1-model", "--fd", "5", a, b, c, d};
	int argc = 3;

	while (argv[argc])
		argc++;
	return rvx_options_parse(argc, (char **)(uintptr_t)argv, out);
}

static void without_options_it_is_the_board_of_the_manual(void **state)
{
	struct rvx_options o;

	(void)state;
	assert_int_equal(parse(&o, NULL, NULL, NULL, NULL), RVX_RUN);
	assert_true(o.config.memory_bytes == 256 * MIB && o.config.aperture_bytes == 256 * MIB);
	assert_int_equal(o.config.queues, 2);
	assert_int_equal(o.fd, 5);
	assert_null(o.socket);
}

static void one_of_fd_and_socket_is_needed(void **state)
{
	char *none[] = {(char *)(uintptr_t) "rvx1-model", NULL};
	struct rvx_options o;

	(void)state;
	assert_int_equal(rvx_options_parse(1, none, &o), RVX_MISUSED);
	assert_int_equal(parse(&o, "--socket", "/tmp/x", NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--fd", "x", NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--fd", "-1", NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "more", NULL, NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--help", NULL, NULL, NULL), RVX_HELP);
	assert_int_equal(parse(&o, "--version", NULL, NULL, NULL), RVX_VERSION);
	assert_int_equal(parse(&o, "--nothing", NULL, NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "-q", NULL, NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--queues", NULL, NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--log=1", NULL, NULL, NULL), RVX_MISUSED);
}

static void sizes_are_numbers_with_a_suffix(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {{"0", 0}, {"4096", 4096}, {"3K", 3 << 10}, {"64M", 64 * MIB}, {"8G", 8192 * MIB},
	        {"0x10", 16}};
	static const char *const bad[] = {
	        "", "M", "-1", "1T", "1MM", "64 M", " 1", "99999999999999999999", "18446744073709551615K"};
	uint64_t value;

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(rvx_parse_size(good[i].text, &value), 0);
		assert_true(value == good[i].value);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(rvx_parse_size(bad[i], &value) < 0);
}

static void memory_is_64_mib_to_8_gib_in_steps_of_2(void **state)
{
	static const char *const good[] = {"64M", "66M", "8G"}, *const bad[] = {
	                                                                "62M", "65M", "8194M", "16G", "x"};
	struct rvx_options o;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(parse(&o, "--memory", good[i], NULL, NULL), RVX_RUN);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(parse(&o, "--memory", bad[i], NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--memory", "66M", NULL, NULL), RVX_RUN);
	assert_true(o.config.aperture_bytes == 64 * MIB);
}

static void the_aperture_is_a_power_of_two_up_to_the_memory(void **state)
{
	static const char *const bad[] = {"8M", "48M", "128M", "0"};
	struct rvx_options o;

	(void)state;
	assert_int_equal(parse(&o, "--memory", "64M", "--aperture", "16M"), RVX_RUN);
	assert_true(o.config.aperture_bytes == 16 * MIB);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(parse(&o, "--memory", "64M", "--aperture", bad[i]), RVX_MISUSED);
}

static void queues_and_drift_are_checked(void **state)
{
	struct rvx_options o;

	(void)state;
	assert_int_equal(parse(&o, "--queues", "8", "--clock-drift-ppm", "-100"), RVX_RUN);
	assert_int_equal(o.config.queues, 8);
	assert_int_equal(o.config.drift_ppm, -100);
	assert_int_equal(parse(&o, "--queues", "1", NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--queues", "9", NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--clock-drift-ppm", "101", NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--clock-drift-ppm", "", NULL, NULL), RVX_MISUSED);
}

static void the_clock_has_a_frequency_and_jumps_when_told_to(void **state)
{
	static const char *const bad[] = {
	        "", "5", "5/", "/5", "0/5", "5/0", "5/5/5", "1000001/1", "1/1000001"};
	struct rvx_options o;

	(void)state;
	assert_int_equal(parse(&o, "--clock-hz", "1000000", "--clock-step", "250/40"), RVX_RUN);
	assert_int_equal(o.config.clock_hz, 1000000);
	assert_int_equal(o.config.clock_step_us, 250);
	assert_int_equal(o.config.clock_step_ms, 40);
	assert_int_equal(parse(&o, "--clock-hz", "999999", NULL, NULL), RVX_MISUSED);
	assert_int_equal(parse(&o, "--clock-hz", "4000000001", NULL, NULL), RVX_MISUSED);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(&o, "--clock-step", bad[i], NULL, NULL), RVX_MISUSED);
}

static void faults_come_as_lists_and_may_be_repeated(void **state)
{
	struct rvx_options o;

	(void)state;
	assert_int_equal(
	        parse(&o, "--fault", "hang,late=3,dma-unmapped=4", "--fault", "halt=2,corrupt-stamp"),
	        RVX_RUN);
	assert_int_equal(o.config.plan.unmapped, 4);
	assert_int_equal(o.config.plan.stamp, 1);
	assert_int_equal(o.config.plan.hang, 1);
	assert_int_equal(o.config.plan.late_ms, 3);
	assert_int_equal(o.config.plan.halt, 2);
	assert_int_equal(o.config.plan.die, 0);
	assert_int_equal(parse(&o, "--fault", "die-boot,refuse-boot,refuse-reset", NULL, NULL), RVX_RUN);
	assert_true(o.config.plan.die_boot && o.config.plan.refuse_boot && o.config.plan.refuse_reset);
}

static void unknown_faults_and_wrong_numbers_are_refused(void **state)
{
	static const char *const bad[] = {"", "explode", "hang=", "hang=0", "hang=x", "hang=1x", "late",
	        "late=-1", "die-boot=1", "hang,,late=1", "han", "hang2"};
	struct rvx_options o;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(&o, "--fault", bad[i], NULL, NULL), RVX_MISUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(without_options_it_is_the_board_of_the_manual),
	        cmocka_unit_test(one_of_fd_and_socket_is_needed),
	        cmocka_unit_test(sizes_are_numbers_with_a_suffix),
	        cmocka_unit_test(memory_is_64_mib_to_8_gib_in_steps_of_2),
	        cmocka_unit_test(the_aperture_is_a_power_of_two_up_to_the_memory),
	        cmocka_unit_test(queues_and_drift_are_checked),
	        cmocka_unit_test(the_clock_has_a_frequency_and_jumps_when_told_to),
	        cmocka_unit_test(faults_come_as_lists_and_may_be_repeated),
	        cmocka_unit_test(unknown_faults_and_wrong_numbers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
