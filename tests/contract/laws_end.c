/* SPDX-License-Identifier: MIT */
/* The end: stop, faults, what comes after. */
#include <stdlib.h>
#include <string.h>

#include "conform_groups.h"
#include "dut.h"

#define MS 1000000u

enum { BYTES = 256, LOOKS = 30 /* a millisecond apart */ };

static void stop_leaves_what_was_done(struct conform *c)
{
	uint8_t *src, *dst;
	struct rig_part copy;
	void *in, *out;
	struct dut d;

	dut_open(c, &d, 0);
	in = dut_alloc_host(&d, BYTES, &src);
	out = dut_alloc(&d, RIG_DEVICE, BYTES);
	dut_pattern(src, BYTES, 1);
	copy = dut_copy(&d, out, 0, in, 0, BYTES);
	dut_wait(&d, dut_run(&d, &copy, 1));
	dst = malloc(BYTES);
	conform_check(c, dst, "no host memory");
	memcpy(dst, src, BYTES);
	dut_stop(&d, NULL);
	conform_check(c, dut_shown(&d) == d.last, "stop of an idle device changed the word to %llu",
	        (unsigned long long)dut_shown(&d));
	conform_check(c, !memcmp(src, dst, BYTES), "stop changed host memory");
	free(dst);
	dut_release(&d);
}

struct held {
	struct dut d;
	struct rig_wait gate;
	uint8_t *src, *dst;
	struct rig_part copy;
};

/* Copies to host memory that wait for a gate. */
static void hold(struct conform *c, struct held *h)
{
	void *in, *mid, *out;
	struct rig_part there;
	unsigned i;

	dut_open(c, &h->d, 0);
	in = dut_alloc_host(&h->d, BYTES, &h->src);
	mid = dut_alloc(&h->d, RIG_DEVICE, BYTES);
	out = dut_alloc_host(&h->d, BYTES, &h->dst);
	dut_pattern(h->src, BYTES, 1);
	memset(h->dst, 0, BYTES);
	there = dut_copy(&h->d, mid, 0, in, 0, BYTES);
	h->copy = dut_copy(&h->d, out, 0, mid, 0, BYTES);
	h->gate = dut_gate(&h->d, 0);
	dut_wait(&h->d, dut_run(&h->d, &there, 1));
	for (i = 0; i < 3; i++)
		(void)dut_copy_after(&h->d, &h->copy, &h->gate);
}

static void stop_does_not_wait_for_work(struct conform *c)
{
	struct held h;

	hold(c, &h);
	dut_stop(&h.d, "a law's reason"); /* the gate never opens */
	dut_release(&h.d);
}

static void after_stop_the_word_comes_to_the_last_submitted_value(struct conform *c)
{
	struct held h;

	hold(c, &h);
	dut_stop(&h.d, "a law's reason");
	conform_check(c, dut_await(&h.d, h.d.last),
	        "the word stands at %llu, short of the last submitted value %llu",
	        (unsigned long long)dut_shown(&h.d), (unsigned long long)h.d.last);
	conform_check(c, dut_shown(&h.d) == h.d.last,
	        "the word shows %llu, past the last submitted value %llu",
	        (unsigned long long)dut_shown(&h.d), (unsigned long long)h.d.last);
	dut_release(&h.d);
}

static void no_work_runs_once_stop_has_raised_the_word(struct conform *c)
{
	struct held h;
	unsigned i;

	hold(c, &h);
	dut_stop(&h.d, "a law's reason");
	conform_check(c, dut_await(&h.d, h.d.last), "the word stays short of the last submitted value");
	dut_open_gate(&h.gate);
	for (i = 0; i < LOOKS; i++) {
		conform_check(c, !h.dst[0] && !h.dst[BYTES - 1], "dropped work wrote memory after stop");
		dut_nap();
	}
	dut_release(&h.d);
}

static void regions_are_located_and_freed_after_stop(struct conform *c)
{
	struct rig_location before, after;
	struct dut d;
	void *region;

	dut_open(c, &d, 0);
	region = dut_alloc(&d, RIG_DEVICE, BYTES);
	before = dut_locate(&d, region);
	dut_stop(&d, NULL);
	after = dut_locate(&d, region);
	conform_check(
	        c, before.address == after.address && before.handle == after.handle, "stop moved a region");
	conform_check(
	        c, d.facts.arch[0] && d.facts.nqueues < UINT32_MAX / 2, "the facts are gone after stop");
	dut_release(&d);
}

static void a_stopped_device_opens_again_and_works(struct conform *c)
{
	struct held h;
	struct dut d;

	hold(c, &h);
	dut_stop(&h.d, "a law's reason");
	dut_release(&h.d);
	dut_open(c, &d, 0);
	dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

/* Launches a function without end or with a fault. */
static void launch_bad(struct conform *c, struct dut *d, const char *function, bool fault)
{
	const struct rig_conform_code *code;
	struct dut_launch l;

	dut_open(c, d, 0);
	code = dut_load(d);
	if (!(fault ? code->fault : code->forever))
		conform_skip(c, "the code of the laws has no %s", function);
	dut_launch(d, &l, function, "", 0, 1, 1);
	(void)dut_run_launch(d, &l);
}

static void endless_work_is_ended_by_stop(struct conform *c)
{
	struct dut d;
	unsigned i;

	launch_bad(c, &d, "conform_forever", false);
	for (i = 0; i < LOOKS; i++) {
		conform_check(c, dut_shown(&d) < d.last, "endless work is reached");
		dut_nap();
	}
	dut_stop(&d, "no progress for 1 ms");
	dut_release(&d);
	dut_open(c, &d, 0);
	dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

/* Sleeps until the device says that it faulted. */
static const char *await_fault(struct dut *d)
{
	uint64_t end = rig_now_ns() + dut_wait_ms(d->c) * MS;
	const char *fault = NULL;

	while (!fault && rig_now_ns() < end && dut_shown(d) < d->last)
		if (d->m->sleep(d->device, dut_shown(d), 100, &fault) == RIG_FAULT)
			conform_check(d->c, fault && fault[0], "sleep answered RIG_FAULT without a text");
	conform_check(d->c, fault, "a fault is not known after %llu ms, and the word stands at %llu of %llu",
	        (unsigned long long)dut_wait_ms(d->c), (unsigned long long)dut_shown(d),
	        (unsigned long long)d->last);
	return fault;
}

static void a_fault_is_told_by_sleep_and_the_word_stays(struct conform *c)
{
	struct dut d;

	launch_bad(c, &d, "conform_fault", true);
	(void)await_fault(&d);
	conform_check(c, dut_shown(&d) < d.last, "the word shows the value that faulted");
	dut_stop(&d, "faulted");
	dut_release(&d);
}

static void a_submit_after_a_fault_fails_with_its_text_or_leaves_the_word(struct conform *c)
{
	const char *failure = NULL;
	char text[CONFORM_TEXT];
	struct dut_work work = {0};
	uint64_t shown;
	struct dut d;
	int answer;

	launch_bad(c, &d, "conform_fault", true);
	(void)await_fault(&d);
	shown = dut_shown(&d);
	(void)dut_room(&d, &work);
	answer = d.hot->submit(
	        d.facts.edge, d.last + 1, NULL, 0, NULL, 0, &(struct rig_run){0}, d.scratch, NULL, &failure);
	d.last++;
	conform_check(c, answer != RIG_FAILED || (failure && failure[0]),
	        "submit answered RIG_FAILED without a text");
	conform_check(c, dut_shown(&d) == shown, "the word moved after the fault");
	(void)strncpy(text, failure ? failure : "", sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	dut_stop(&d, "faulted");
	conform_check(c, !failure || !strcmp(text, failure), "the failure's text changed at stop");
	dut_release(&d);
}

static void a_faults_text_lives_until_release(struct conform *c)
{
	char text[CONFORM_TEXT];
	const char *fault;
	struct dut d;

	launch_bad(c, &d, "conform_fault", true);
	fault = await_fault(&d);
	(void)strncpy(text, fault, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	dut_stop(&d, fault);
	conform_check(c, !strncmp(text, fault, sizeof(text) - 1),
	        "the text was \"%s\" and is \"%s\" after stop", text, fault);
	dut_release(&d);
}

static void a_device_that_faulted_opens_again_and_works(struct conform *c)
{
	struct dut d;

	launch_bad(c, &d, "conform_fault", true);
	(void)await_fault(&d);
	dut_stop(&d, "faulted");
	dut_release(&d);
	dut_open(c, &d, 0);
	dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

static const struct conform_law laws[] = {
        LAW(stop_leaves_what_was_done, "E-026"),
        LAW(stop_does_not_wait_for_work, "E-026"),
        LAW(after_stop_the_word_comes_to_the_last_submitted_value, "E-012"),
        LAW(no_work_runs_once_stop_has_raised_the_word, "E-012"),
        LAW(regions_are_located_and_freed_after_stop, "E-051 E-072"),
        LAW(a_stopped_device_opens_again_and_works, "E-034"),
        LAW(endless_work_is_ended_by_stop, "E-062"),
        LAW(a_fault_is_told_by_sleep_and_the_word_stays, "E-100 E-002"),
        LAW(a_submit_after_a_fault_fails_with_its_text_or_leaves_the_word, "E-107"),
        LAW(a_faults_text_lives_until_release, "E-108"),
        LAW(a_device_that_faulted_opens_again_and_works, "E-034"),
};
CONFORM_GROUP(ending, laws);
