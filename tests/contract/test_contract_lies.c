/* SPDX-License-Identifier: MIT */
/*
 * The laws themselves: an honest driver keeps each, under every way it can be, and each has a driver that
 * breaks it (polled_lies.h), which the law finds.
 */
#include "test.h"
#include <stdio.h>
#include <string.h>

#include "conform_groups.h"
#include "dut.h"
#include "polled.h"
#include "polled_module.h"

#define DEADLINE_MS 120000u
#define LIE_MS      3000u /* a law that a lie keeps from ending has failed */
#define LIE_WAIT_MS 300u  /* what is waited for then does not come */

static const struct rig_opener *opener_of(const struct conform_source *source, unsigned index)
{
	return rig_conform_opener(source->arg, index);
}

static const struct rig_conform_code *code_of(const struct conform_source *source, const char *arch)
{
	(void)source;
	return rig_conform_code(arch);
}

static const char *complaint_of(const struct conform_source *source)
{
	(void)source;
	return polled_complaint();
}

static struct conform_source source_of(const char *text)
{
	return (struct conform_source){
	        .opener = opener_of, .code = code_of, .complaint = complaint_of, .arg = text};
}

static void keeps_every_law(const char *text, unsigned most_skipped)
{
	struct conform_source source = source_of(text);
	const struct conform_group *const *group;
	struct conform_result r;
	unsigned skipped = 0;
	size_t i;

	for (group = conform_groups; *group; group++)
		for (i = 0; i < (*group)->n; i++) {
			conform_run(&(*group)->laws[i], &source, DEADLINE_MS, false, &r);
			if (r.end == CONFORM_FAILED)
				fail_msg("%s: %s: %s", text, (*group)->laws[i].name, r.text);
			if (r.end == CONFORM_SKIPPED && ++skipped > most_skipped)
				fail_msg("%s: more than %u laws skipped: %s: %s", text, most_skipped,
				        (*group)->laws[i].name, r.text);
		}
}

static void an_honest_driver_keeps_every_law(void **state)
{
	(void)state;
	keeps_every_law("settle,grows", 1);
}

static void so_does_one_that_commits_when_asked(void **state)
{
	(void)state;
	keeps_every_law("batch,times", 7);
}

static void so_does_one_with_a_word_of_its_own(void **state)
{
	(void)state;
	keeps_every_law("own_word,place", 13);
}

static void so_does_one_whose_memory_the_host_addresses(void **state)
{
	(void)state;
	keeps_every_law("hosts,store,place", 11);
}

static void breaks(const char *lie, const char *name, const char *options)
{
	char text[CONFORM_TEXT];
	struct conform_source source;
	const struct conform_law *law = conform_find(name);
	struct conform_result r;

	if (!law)
		fail_msg("there is no law %s", name);
	(void)snprintf(text, sizeof(text), "%s,lie=%s", options, lie);
	source = source_of(text);
	source.wait_ms = LIE_WAIT_MS;
	conform_run(law, &source, LIE_MS, false, &r);
	if (r.end != CONFORM_FAILED)
		fail_msg("%s does not find the lie %s: %s", name, lie,
		        r.end == CONFORM_PASSED ? "passed" : r.text);
}

/* A test for each pair of a lie and a law. */
#define PAIR(lie, law, options) {#lie "_breaks_" #law, #lie, #law, options},

static const struct pair {
	const char *name, *lie, *law, *options;
} pairs[] = {POLLED_LIES(PAIR)};

enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]) };

static void a_lie_breaks_its_law(void **state)
{
	const struct pair *p = *state;

	breaks(p->lie, p->law, p->options);
}

static void every_law_has_a_driver_that_breaks_it(void **state)
{
	const struct conform_group *const *group;
	size_t i, k;

	(void)state;
	for (group = conform_groups; *group; group++)
		for (i = 0; i < (*group)->n; i++) {
			for (k = 0; k < PAIRS && strcmp(pairs[k].law, (*group)->laws[i].name); k++)
				;
			if (k == PAIRS)
				fail_msg("no lie breaks %s", (*group)->laws[i].name);
		}
}

static void a_law_that_crashes_has_failed_alone(void **state)
{
	(void)state;
	breaks("reads_behind", "a_binary_cut_short_does_no_harm", "");
}

int main(void)
{
	static struct CMUnitTest tests[PAIRS + 6] = {
	        cmocka_unit_test(an_honest_driver_keeps_every_law),
	        cmocka_unit_test(so_does_one_that_commits_when_asked),
	        cmocka_unit_test(so_does_one_with_a_word_of_its_own),
	        cmocka_unit_test(so_does_one_whose_memory_the_host_addresses),
	        cmocka_unit_test(every_law_has_a_driver_that_breaks_it),
	        cmocka_unit_test(a_law_that_crashes_has_failed_alone),
	};
	size_t i;

	for (i = 0; i < PAIRS; i++)
		tests[6 + i] = (struct CMUnitTest){.name = pairs[i].name,
		        .test_func = a_lie_breaks_its_law,
		        .initial_state = (void *)(uintptr_t)&pairs[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
