/* SPDX-License-Identifier: MIT */
/* Opening: the opener, make, its word, and what a handle leaves behind. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conform_groups.h"
#include "dut.h"

#define MS          1000000u
#define SETTLE_MS   5000u
#define DESCRIPTORS 64u /* the most a make is thought to open before it could succeed */

struct held {
	unsigned descriptors, threads;
};

static struct held take(void)
{
	return (struct held){dut_descriptors(), dut_threads()};
}

/* A thread that was joined may stand in /proc for a moment. */
static void check_same(struct conform *c, struct held before, const char *after)
{
	uint64_t end = rig_now_ns() + (uint64_t)SETTLE_MS * MS;
	struct held now = take();

	while ((now.descriptors != before.descriptors || now.threads != before.threads) &&
	        rig_now_ns() < end) {
		dut_nap();
		now = take();
	}
	conform_check(c, now.descriptors == before.descriptors,
	        "%s: %u descriptors were open before, %u are now", after, before.descriptors,
	        now.descriptors);
	conform_check(c, now.threads == before.threads, "%s: there were %u threads before, %u are now", after,
	        before.threads, now.threads);
}

static void an_openers_name_has_no_machine_suffix(struct conform *c)
{
	const struct rig_opener *opener = c->source->opener(c->source, 0);

	conform_check(c, opener, "no opener: %s", rig_error());
	conform_check(c, opener->name && opener->name[0], "the opener has no name");
	conform_check(c, !strchr(opener->name, '@'), "the name %s has an @", opener->name);
}

static void taking_an_opener_opens_nothing(struct conform *c)
{
	struct held before;

	(void)rig_words();
	before = take();
	conform_check(c, c->source->opener(c->source, 0), "no opener: %s", rig_error());
	check_same(c, before, "after the opener was made");
}

static void start_at(struct conform *c, struct dut *d, rig_atomic_u64 *word, uint64_t value)
{
	char why[CONFORM_TEXT];
	int answer;

	rig_word_raise(word, value);
	answer = dut_make(c, d, 0, word, why);
	conform_check(c, !answer, "make answered %d: %.400s", answer, why);
	conform_check(c, d->base >= value, "the word held %llu before make and %llu after it",
	        (unsigned long long)value, (unsigned long long)d->base);
	dut_read_facts(d);
}

static void values_start_after_what_the_word_holds(struct conform *c)
{
	struct dut d;

	start_at(c, &d, rig_words() + DUT_WORD, 41);
	dut_wait(&d, dut_run(&d, NULL, 0));
	conform_check(c, dut_shown(&d) == d.base + 1, "the word shows %llu after value %llu",
	        (unsigned long long)dut_shown(&d), (unsigned long long)d.base + 1);
	dut_close(&d);
}

static void make_never_lowers_the_word(struct conform *c)
{
	struct dut d;

	start_at(c, &d, rig_words() + DUT_WORD, (UINT64_C(1) << 33) + 5);
	dut_close(&d);
}

static void values_go_on_past_32_bits(struct conform *c)
{
	struct dut d;
	unsigned i;

	start_at(c, &d, rig_words() + DUT_WORD, UINT32_MAX - 2);
	for (i = 0; i < 6; i++)
		dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

static void a_word_used_before_serves_the_next_device(struct conform *c)
{
	struct dut d;
	unsigned i;

	for (i = 0; i < 3; i++) {
		dut_open(c, &d, 0);
		dut_wait(&d, dut_run(&d, NULL, 0));
		conform_check(c, d.base >= i, "device %u on the word starts at %llu", i,
		        (unsigned long long)d.base);
		dut_close(&d);
	}
}

static void any_eight_aligned_bytes_serve_as_the_word(struct conform *c)
{
	/* In the middle of a page of its own. */
	uint64_t *page = aligned_alloc(4096, 8192);
	struct dut d;

	conform_check(c, page, "no host memory");
	memset(page, 0, 8192);
	start_at(c, &d, (rig_atomic_u64 *)(page + 77), 3);
	dut_wait(&d, dut_run(&d, NULL, 0));
	conform_check(c, !page[76] && !page[78], "words beside the device's were written");
	dut_close(&d);
	free(page);
}

static void a_make_under_a_runtimes_lock_takes_none_or_opens_nothing(struct conform *c)
{
	struct held before;
	char why[CONFORM_TEXT];
	struct dut d;
	int answer;

	(void)rig_words();
	before = take();
	rig_locks_add(1);
	answer = dut_make(c, &d, 0, rig_words() + DUT_WORD, why);
	rig_locks_add(-1);
	if (answer) {
		conform_check(c, answer == -22, "make under a lock answered %d: %.400s", answer, why);
		check_same(c, before, "after the refusal");
		return;
	}
	dut_read_facts(&d);
	dut_close(&d);
}

static void open_and_end(struct conform *c, bool work)
{
	struct dut d;

	dut_open(c, &d, 0);
	if (work)
		(void)dut_run(&d, NULL, 0);
	dut_stop(&d, work ? "a law's reason" : NULL);
	dut_release(&d);
}

static rlim_t first_free(void)
{
	int fd = dup(STDERR_FILENO);

	(void)close(fd);
	return (rlim_t)fd;
}

static void a_make_short_of_descriptors_fails_with_a_reason_and_opens_nothing(struct conform *c)
{
	rig_atomic_u64 *word = rig_words() + DUT_WORD;
	struct rlimit limit, less;
	struct held before;
	char why[CONFORM_TEXT];
	uint64_t held;
	struct dut d;
	unsigned k;
	int answer = -1;

	open_and_end(c, false); /* what is opened once and kept */
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	held = rig_word_load(word);
	before = take();
	for (k = 1; answer && k < DESCRIPTORS; k++) {
		less = limit;
		less.rlim_cur = first_free() + k;
		(void)setrlimit(RLIMIT_NOFILE, &less);
		answer = dut_make(c, &d, 0, word, why);
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		if (!answer)
			break;
		conform_check(c, answer < 0, "make answered %d", answer);
		conform_check(
		        c, memchr(why, 0, sizeof(why)) && why[0], "make answered %d without a text", answer);
		conform_check(c, rig_word_load(word) == held, "a make that failed wrote the word");
		check_same(c, before, "after a make that failed");
	}
	conform_check(c, !answer, "make still fails with %u descriptors: %.300s", k, why);
	dut_read_facts(&d);
	dut_close(&d);
}

static void an_unused_handle_leaves_nothing_open(struct conform *c)
{
	struct held before;
	unsigned i;

	open_and_end(c, false); /* what is opened once and kept */
	before = take();
	for (i = 0; i < 3; i++)
		open_and_end(c, false);
	check_same(c, before, "after release");
}

static void a_lost_handle_leaves_nothing_open(struct conform *c)
{
	struct held before;
	unsigned i;

	open_and_end(c, true);
	before = take();
	for (i = 0; i < 3; i++)
		open_and_end(c, true);
	check_same(c, before, "after release");
}

static void devices_of_two_names_are_open_side_by_side(struct conform *c)
{
	struct dut a, b;

	dut_open(c, &a, 0);
	dut_open(c, &b, 1);
	conform_check(c, strcmp(a.opener->name, b.opener->name) != 0, "two openers have the name %s",
	        a.opener->name);
	dut_wait(&b, dut_run(&b, NULL, 0));
	dut_close(&a);
	dut_wait(&b, dut_run(&b, NULL, 0));
	dut_close(&b);
}

static const struct conform_law laws[] = {
        LAW(an_openers_name_has_no_machine_suffix, "E-033"),
        LAW(taking_an_opener_opens_nothing, "E-032"),
        LAW(values_start_after_what_the_word_holds, "E-037"),
        LAW(make_never_lowers_the_word, "E-038"),
        LAW(values_go_on_past_32_bits, "E-006 E-037"),
        LAW(a_word_used_before_serves_the_next_device, "E-037 E-038"),
        LAW(any_eight_aligned_bytes_serve_as_the_word, "E-046"),
        LAW(a_make_under_a_runtimes_lock_takes_none_or_opens_nothing, "E-048 E-049"),
        LAW(a_make_short_of_descriptors_fails_with_a_reason_and_opens_nothing, "E-034 E-039"),
        LAW(an_unused_handle_leaves_nothing_open, "E-045"),
        LAW(a_lost_handle_leaves_nothing_open, "E-045"),
        LAW(devices_of_two_names_are_open_side_by_side, "E-047"),
};
CONFORM_GROUP(opening, laws);
