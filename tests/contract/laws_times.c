/* SPDX-License-Identifier: MIT */
/* Times and measures. A driver that times nothing leaves all of it 0, which is allowed; then most of
   these skip. One with settle or counters has a clock, and times what it can. */
#include <stdlib.h>
#include <string.h>

#include "conform_groups.h"
#include "dut.h"

#define UNTOUCHED UINT64_C(0xABABABABABABABAB)

static void settle(struct dut *d, uint64_t value)
{
	const char *failure = NULL;
	int answer;

	if (!d->hot->settle)
		return;
	answer = d->hot->settle(d->facts.edge, value, &failure);
	conform_check(d->c, answer == RIG_OK, "settle of %llu answered %d: %s", (unsigned long long)value,
	        answer, failure ? failure : "no text");
}

/* A copy that is timed, as the next value. */
static uint64_t timed(struct dut *d, const struct rig_part *part, struct rig_times *times)
{
	struct dut_work work = {.parts = part, .nparts = 1, .times = times};

	return dut_submit(d, &work);
}

static bool has_clock(const struct dut *d)
{
	return d->hot->settle || d->facts.ncounters;
}

struct copies {
	struct dut d;
	struct rig_part part;
};

static void set_up(struct conform *c, struct copies *t)
{
	uint8_t *host;
	void *mid, *in;

	dut_open(c, &t->d, 0);
	in = dut_alloc_host(&t->d, 2048, &host);
	mid = dut_alloc(&t->d, RIG_DEVICE, 2048);
	t->part = dut_copy(&t->d, mid, 0, in, 0, 2048);
}

static void times_are_both_zero_or_a_start_before_an_end(struct conform *c)
{
	enum { TIMES = 20 };
	struct rig_times times[TIMES] = {{0}};
	uint64_t first, i;
	struct copies t;

	set_up(c, &t);
	first = t.d.last + 1;
	for (i = 0; i < TIMES; i++)
		(void)timed(&t.d, &t.part, &times[i]);
	dut_wait(&t.d, t.d.last);
	for (i = 0; i < TIMES; i++) {
		settle(&t.d, first + i);
		conform_check(c, !times[i].start == !times[i].end && times[i].start <= times[i].end,
		        "value %llu started at %llu and ended at %llu", (unsigned long long)(first + i),
		        (unsigned long long)times[i].start, (unsigned long long)times[i].end);
		conform_check(c, times[i].end || !has_clock(&t.d), "value %llu is not timed",
		        (unsigned long long)(first + i));
	}
	dut_close(&t.d);
}

static void need_times(struct copies *t)
{
	struct rig_times times = {0};
	uint64_t value = timed(&t->d, &t->part, &times);

	dut_wait(&t->d, value);
	settle(&t->d, value);
	conform_check(t->d.c, times.end || !has_clock(&t->d), "the driver has %s and times nothing",
	        t->d.hot->settle ? "settle" : "counters");
	if (!times.end)
		conform_skip(t->d.c, "the driver times nothing");
}

static void no_value_starts_before_the_end_of_the_one_before(struct conform *c)
{
	enum { TIMES = 50 };
	struct rig_times times[TIMES] = {{0}};
	struct copies t;
	uint64_t first, i;

	set_up(c, &t);
	need_times(&t);
	first = t.d.last + 1;
	for (i = 0; i < TIMES; i++)
		(void)timed(&t.d, &t.part, &times[i]);
	dut_wait(&t.d, t.d.last);
	for (i = 0; i < TIMES; i++)
		settle(&t.d, first + i);
	for (i = 1; i < TIMES; i++)
		conform_check(c, !times[i].end || times[i].start >= times[i - 1].end,
		        "value %llu starts at %llu, before the end %llu of the one before",
		        (unsigned long long)(first + i), (unsigned long long)times[i].start,
		        (unsigned long long)times[i - 1].end);
	dut_close(&t.d);
}

/* What the correlation of clocks may be off by: generous, since the driver's header states its own. */
#define SLACK_NS UINT64_C(5000000)

static void times_lie_between_submit_and_the_word(struct conform *c)
{
	enum { TIMES = 20 };
	struct copies t;
	unsigned i;

	set_up(c, &t);
	need_times(&t);
	for (i = 0; i < TIMES; i++) {
		struct rig_times times = {0};
		uint64_t before = rig_now_ns(), value = timed(&t.d, &t.part, &times), after;

		dut_wait(&t.d, value);
		after = rig_now_ns();
		settle(&t.d, value);
		conform_check(c, times.start + SLACK_NS >= before && times.end <= after + SLACK_NS,
		        "work submitted after %llu and seen at %llu ran from %llu to %llu",
		        (unsigned long long)before, (unsigned long long)after,
		        (unsigned long long)times.start, (unsigned long long)times.end);
	}
	dut_close(&t.d);
}

static void settling_twice_changes_nothing(struct conform *c)
{
	struct rig_times times = {0}, first;
	struct copies t;
	uint64_t value;

	set_up(c, &t);
	if (!t.d.hot->settle)
		conform_skip(c, "the driver has no settle");
	value = timed(&t.d, &t.part, &times);
	dut_wait(&t.d, value);
	settle(&t.d, value);
	first = times;
	settle(&t.d, value);
	conform_check(
	        c, first.start == times.start && first.end == times.end, "a second settle changed the times");
	dut_close(&t.d);
}

static void settling_the_latest_first_keeps_the_order(struct conform *c)
{
	enum { TIMES = 10 };
	struct rig_times times[TIMES] = {{0}};
	struct copies t;
	uint64_t first;
	int i;

	set_up(c, &t);
	if (!t.d.hot->settle)
		conform_skip(c, "the driver has no settle");
	first = t.d.last + 1;
	for (i = 0; i < TIMES; i++)
		(void)timed(&t.d, &t.part, &times[i]);
	dut_wait(&t.d, t.d.last);
	for (i = TIMES - 1; i >= 0; i--)
		settle(&t.d, first + (uint64_t)i);
	for (i = 1; i < TIMES; i++)
		conform_check(c, !times[i].end || times[i].start >= times[i - 1].end,
		        "value %llu starts before the end of the one before",
		        (unsigned long long)first + (unsigned)i);
	dut_close(&t.d);
}

static void settle_does_not_wait_for_later_work(struct conform *c)
{
	struct rig_times times = {0};
	struct rig_wait gate;
	struct copies t;
	uint64_t value;

	set_up(c, &t);
	if (!t.d.hot->settle)
		conform_skip(c, "the driver has no settle");
	gate = dut_gate(&t.d, 0);
	value = timed(&t.d, &t.part, &times);
	dut_wait(&t.d, value);
	(void)dut_copy_after(&t.d, &t.part, &gate);
	settle(&t.d, value); /* the gate opens below */
	dut_open_gate(&gate);
	dut_wait(&t.d, t.d.last);
	dut_close(&t.d);
}

static void times_of_one_value_are_its_own(struct conform *c)
{
	struct rig_times times[3] = {{UNTOUCHED, UNTOUCHED}, {0, 0}, {UNTOUCHED, UNTOUCHED}};
	struct copies t;
	uint64_t value;

	set_up(c, &t);
	value = timed(&t.d, &t.part, &times[1]);
	(void)dut_run(&t.d, &t.part, 1);
	dut_wait(&t.d, t.d.last);
	settle(&t.d, value);
	conform_check(c,
	        times[0].start == UNTOUCHED && times[0].end == UNTOUCHED && times[2].start == UNTOUCHED &&
	                times[2].end == UNTOUCHED,
	        "what lies beside the pair was written");
	dut_close(&t.d);
}

/* ---- Measures ---- */

enum { LAUNCHES = 3, ROW_HEAD = 3 };

struct measured {
	struct dut d;
	struct rig_times times;
	uint64_t value, *rows;
	size_t row;
};

static size_t row_words(const struct dut *d)
{
	size_t n = ROW_HEAD;
	uint32_t i;

	for (i = 0; i < d->facts.ncounters; i++)
		n += d->facts.counters[i].values;
	return n;
}

/* LAUNCHES launches in one timed value, reached and settled; rows are zero, with a row of canary behind. */
static void set_up_measured(struct conform *c, struct measured *t)
{
	struct rig_conform_add p = {.add = 1};
	struct rig_part parts[LAUNCHES];
	struct dut_work work;
	struct dut_launch l;
	size_t i;

	memset(t, 0, sizeof(*t));
	dut_open(c, &t->d, 0);
	if (!t->d.facts.ncounters)
		conform_skip(c, "the device has no counters");
	memset(&t->times, 0, sizeof(t->times));
	(void)dut_load(&t->d);
	p.dst = dut_alloc_cells(&t->d, 4096).address;
	dut_launch(&t->d, &l, "conform_add", &p, sizeof(p), 4, 4);
	for (i = 0; i < LAUNCHES; i++)
		parts[i] = l.part;
	work = (struct dut_work){.parts = parts, .nparts = LAUNCHES, .run = &l.run, .times = &t->times};
	t->value = dut_submit(&t->d, &work);
	dut_wait(&t->d, t->value);
	settle(&t->d, t->value);
	t->row = row_words(&t->d);
	t->rows = calloc((LAUNCHES + 1) * t->row, sizeof(*t->rows));
	conform_check(c, t->rows, "no host memory");
	for (i = 0; i < t->row; i++)
		t->rows[LAUNCHES * t->row + i] = UNTOUCHED;
}

static void measure(struct measured *t, uint64_t *out)
{
	const char *failure = NULL;
	int answer = t->d.hot->measures(t->d.facts.edge, t->value, out, &failure);

	conform_check(
	        t->d.c, answer == RIG_OK, "measures answered %d: %s", answer, failure ? failure : "no text");
}

static void measures_are_a_row_a_launch_within_the_values_times(struct conform *c)
{
	struct measured t;
	size_t i, k;

	set_up_measured(c, &t);
	measure(&t, t.rows);
	for (i = 0; i < t.row; i++)
		conform_check(c, t.rows[LAUNCHES * t.row + i] == UNTOUCHED,
		        "measures wrote behind the last launch's row");
	for (i = 0; i < LAUNCHES; i++) {
		const uint64_t *row = t.rows + i * t.row;

		conform_check(c, row[0] <= 1, "row %zu has status %llu", i, (unsigned long long)row[0]);
		for (k = 1; k < t.row && !row[0]; k++)
			conform_check(c, !row[k], "row %zu is not measured and has numbers", i);
		conform_check(c, row[0], "launch %zu of an idle device is not measured", i);
		conform_check(c, !row[0] || row[1] <= row[2], "launch %zu starts at %llu and ends at %llu", i,
		        (unsigned long long)row[1], (unsigned long long)row[2]);
		conform_check(c,
		        !row[0] || !t.times.end ||
		                (row[1] + SLACK_NS >= t.times.start && row[2] <= t.times.end + SLACK_NS),
		        "launch %zu is not within its value's times", i);
	}
	measure(&t, NULL);
	free(t.rows);
	dut_close(&t.d);
}

static void measures_are_read_again_until_they_are_freed(struct conform *c)
{
	struct measured t;
	uint64_t *again;

	set_up_measured(c, &t);
	again = calloc(LAUNCHES * t.row, sizeof(*again));
	conform_check(c, again, "no host memory");
	measure(&t, t.rows);
	measure(&t, again);
	conform_check(c, !memcmp(again, t.rows, LAUNCHES * t.row * sizeof(*again)),
	        "a second read answers other numbers");
	measure(&t, NULL);
	free(again);
	free(t.rows);
	dut_close(&t.d);
}

static const struct conform_law laws[] = {
        LAW(times_are_both_zero_or_a_start_before_an_end, "E-134 E-135 E-136 E-137 E-151"),
        LAW(no_value_starts_before_the_end_of_the_one_before, "E-164"),
        LAW(times_lie_between_submit_and_the_word, "E-134"),
        LAW(settling_twice_changes_nothing, "E-153"),
        LAW(settling_the_latest_first_keeps_the_order, "E-163"),
        LAW(settle_does_not_wait_for_later_work, "E-157"),
        LAW(times_of_one_value_are_its_own, "E-134"),
        LAW(measures_are_a_row_a_launch_within_the_values_times, "E-169 E-170 E-171 E-172 E-174 E-178"),
        LAW(measures_are_read_again_until_they_are_freed, "E-175 E-178"),
};
CONFORM_GROUP(times, laws);
