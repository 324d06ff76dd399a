/* SPDX-License-Identifier: MIT */
/* room: what fits, what fits later, and what never does. */
#include <stdlib.h>
#include <string.h>

#include "conform_groups.h"
#include "dut.h"

#define MS 1000000u

static const uint32_t known[] = {RIG_WORDS, RIG_FILL, RIG_COPY, RIG_LAUNCH};

static void expect_never(
        struct dut *d, const struct rig_part *part, const struct rig_run *run, const char *what)
{
	struct dut_work work = {.parts = part, .nparts = 1, .run = run};
	int answer = dut_room(d, &work);

	conform_check(d->c, answer == RIG_NEVER, "room answered %d, not RIG_NEVER, for %s", answer, what);
}

static void still_works(struct dut *d)
{
	dut_wait(d, dut_run(d, NULL, 0));
	dut_close(d);
}

static void nothing_fits_an_idle_device(struct conform *c)
{
	struct dut_work work = {0};
	struct dut d;

	dut_open(c, &d, 0);
	conform_check(c, dut_room(&d, &work) == RIG_FITS, "room of no parts does not answer RIG_FITS");
	still_works(&d);
}

static void parts_of_no_kind_never_fit(struct conform *c)
{
	static const uint32_t unknown[] = {0, RIG_LAUNCH + 1, 31, 32, UINT32_MAX};
	struct dut d;
	size_t i;

	dut_open(c, &d, 0);
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]) && d.facts.nqueues; i++) {
		struct rig_part part = {.kind = unknown[i]};

		(void)rig_error_set(0, "%s", "");
		expect_never(&d, &part, NULL, "a part of an unknown kind");
		conform_check(c, rig_error()[0], "RIG_NEVER without a reason in rig_error()");
	}
	still_works(&d);
}

static int fill_nothing(void *context, const void *arg, uint64_t value)
{
	(void)context;
	(void)arg;
	(void)value;
	return 0;
}

/* A part of the kind that a device which runs it would take, or refuse for a launch's function alone. */
static struct rig_part some_part(struct dut *d, uint32_t kind, void *region)
{
	static const uint32_t word[1];
	struct rig_part part = {.kind = kind};

	if (kind == RIG_WORDS) {
		part.u.words.words = word;
		part.u.words.count = 1;
	} else if (kind == RIG_FILL) {
		part.u.fill.fill = fill_nothing;
	} else if (kind == RIG_COPY) {
		part.u.copy.dst = (struct rig_copy_side){
		        .slot = RIG_FIXED, .handle = dut_locate(d, region).handle, .pitch = 1};
		part.u.copy.row_bytes = part.u.copy.rows = 1;
		part.u.copy.fill = true;
	}
	return part;
}

static void work_of_kinds_that_a_queue_does_not_list_never_fits(struct conform *c)
{
	_Alignas(16) struct rig_block block = {.groups = {1, 1, 1}, .threads = {1, 1, 1}};
	struct rig_run run = {.args = &block, .args_bytes = sizeof(block)};
	struct dut d;
	void *region;
	uint32_t q;
	size_t i;

	dut_open(c, &d, 0);
	region = dut_alloc(&d, RIG_DEVICE, 64);
	for (q = 0; q < d.facts.nqueues; q++)
		for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			struct rig_part part = some_part(&d, known[i], region);

			part.queue = q;
			if (!(d.facts.queues[q].runs & RIG_RUNS(known[i])))
				expect_never(&d, &part, &run, "work of a kind that the queue does not list");
		}
	still_works(&d);
}

static void work_larger_than_any_queue_never_fits_or_grows(struct conform *c)
{
	enum { PARTS = 4096 };
	struct rig_part *parts = calloc(PARTS, sizeof(*parts));
	struct dut_work work = {.parts = parts, .nparts = PARTS};
	uint32_t queue, word = 0;
	struct dut d;
	void *region;
	int answer;

	dut_open(c, &d, 0);
	conform_check(c, parts, "no host memory");
	if (dut_has_queue(&d, RIG_WORDS, &queue)) {
		struct rig_part part = {.queue = queue, .kind = RIG_WORDS};

		part.u.words.words = &word;
		part.u.words.count = UINT32_MAX;
		expect_never(&d, &part, NULL, "UINT32_MAX words");
	}
	if (dut_has_queue(&d, RIG_FILL, &queue)) {
		struct rig_part part = {.queue = queue, .kind = RIG_FILL};

		part.u.fill = (struct rig_fill_part){.fill = fill_nothing, .ring_units = UINT32_MAX};
		expect_never(&d, &part, NULL, "a fill of UINT32_MAX units");
		part.u.fill = (struct rig_fill_part){.fill = fill_nothing, .segment_bytes = UINT32_MAX};
		expect_never(&d, &part, NULL, "a fill of UINT32_MAX bytes of the segment");
	}
	if (d.facts.has_copy_engine) {
		uint32_t i;

		region = dut_alloc(&d, RIG_DEVICE, 64);
		for (i = 0; i < PARTS; i++)
			parts[i] = dut_fill(&d, region, 0, 64, (uint8_t)i);
		dut_more_scratch(&d, PARTS);
		answer = dut_room(&d, &work);
		conform_check(c, answer != RIG_LATER, "room answered RIG_LATER of an idle device");
	}
	still_works(&d);
	free(parts);
}

/* Fills the device behind a gate until room says no, lets it run a value at a time, and asks again. */
static void submit_after_fits_succeeds_up_to_the_last_place(struct conform *c)
{
	enum { MOST = 100000 };
	struct rig_wait gate;
	struct dut_work work;
	unsigned n = 0;
	struct dut d;

	dut_open(c, &d, 0);
	gate = dut_gate(&d, 0);
	work = (struct dut_work){.waits = &gate, .nwaits = 1};
	while (n < MOST && dut_room(&d, &work) == RIG_FITS) {
		gate.value = ++n;
		(void)dut_submit_now(&d, &work);
	}
	conform_check(c, n && dut_shown(&d) == d.base,
	        "the device took %u values and shows %llu behind a closed gate", n,
	        (unsigned long long)(dut_shown(&d) - d.base));
	if (n == MOST) {
		dut_open_gate(&gate);
		dut_wait(&d, d.last);
		conform_skip(c, "the device takes %u values and more", n);
	}
	conform_check(c, dut_room(&d, &work) == RIG_LATER, "a full device answers %d, not RIG_LATER",
	        dut_room(&d, &work));
	gate.value = n;
	dut_open_gate(&gate);
	dut_wait(&d, d.last);
	conform_check(c, dut_room(&d, &work) == RIG_FITS, "an idle device answers %d, not RIG_FITS",
	        dut_room(&d, &work));
	dut_close(&d);
}

static void later_turns_into_fits_as_values_are_reached(struct conform *c)
{
	enum { MOST = 100000 };
	struct rig_wait gate;
	struct dut_work work;
	uint64_t opened = 0;
	unsigned n = 0;
	struct dut d;

	dut_open(c, &d, 0);
	gate = dut_gate(&d, 0);
	work = (struct dut_work){.waits = &gate, .nwaits = 1};
	while (n < MOST && dut_room(&d, &work) == RIG_FITS) {
		gate.value = ++n;
		(void)dut_submit_now(&d, &work);
	}
	while (n < MOST && opened < n && dut_room(&d, &work) != RIG_FITS) {
		gate.value = ++opened;
		dut_open_gate(&gate);
		dut_wait(&d, d.base + opened);
	}
	conform_check(
	        c, opened < n || n == MOST, "all %u values were reached before room answered RIG_FITS", n);
	gate.value = n;
	dut_open_gate(&gate);
	dut_wait(&d, d.last);
	dut_close(&d);
}

/* Each is the last to be reached once. */
static void as_many_waits_as_room_lets_in_are_waited_for(struct conform *c)
{
	enum { WAITS = 24, LOOKS = 10 };
	struct rig_wait waits[WAITS];
	struct dut_work work = {.waits = waits};
	uint64_t value;
	struct dut d;
	unsigned i, k, last;

	dut_open(c, &d, 0);
	for (i = 0; i < WAITS; i++)
		waits[i] = dut_gate(&d, i);
	work.nwaits = WAITS;
	while (work.nwaits > 1 && dut_room(&d, &work) == RIG_NEVER)
		work.nwaits--;
	for (last = 0; last < work.nwaits; last++) {
		value = dut_submit(&d, &work);
		for (i = 1; i <= work.nwaits; i++) {
			for (k = 0; k < LOOKS && i == work.nwaits; k++)
				dut_nap();
			conform_check(c, dut_shown(&d) < value,
			        "the value is reached with wait %u of %u open, %u-th in turn", last,
			        work.nwaits, i);
			dut_open_gate(&waits[(last + i) % work.nwaits]);
		}
		dut_wait(&d, value);
		for (i = 0; i < work.nwaits; i++)
			waits[i].value++;
	}
	dut_close(&d);
}

/* The smallest work that the queues must grow for; skips if there is none. */
static void find_growth(struct dut *d, struct dut_work *work, uint32_t most)
{
	int answer = RIG_FITS;

	for (work->nparts = 2; work->nparts <= most; work->nparts *= 2) {
		answer = dut_room(d, work);
		if (answer == RIG_GROW || answer == RIG_NEVER)
			break;
	}
	if (answer != RIG_GROW)
		conform_skip(d->c, "room never asks to grow");
}

static void queues_that_grew_never_ask_for_it_again(struct conform *c)
{
	enum { MOST = 8192, TIMES = 5 };
	struct rig_part *parts = calloc(MOST, sizeof(*parts));
	struct dut_work work = {.parts = parts};
	struct rig_wait gate;
	uint8_t *host;
	struct dut d;
	void *region, *to;
	uint32_t i;

	dut_open(c, &d, 0);
	conform_check(c, parts, "no host memory");
	region = dut_alloc(&d, RIG_DEVICE, 64);
	to = dut_alloc_host(&d, MOST, &host);
	memset(host, 0, MOST);
	gate = dut_gate(&d, 0);
	dut_more_scratch(&d, MOST);
	parts[0] = dut_fill(&d, region, 0, 64, 7);
	(void)dut_run(&d, parts, 1);
	for (i = 0; i < MOST; i++)
		parts[i] = dut_copy(&d, to, i, region, i % 64, 1);
	find_growth(&d, &work, MOST);
	(void)dut_copy_after(&d, parts, &gate); /* in flight on the queues as they are */
	dut_grow(&d, &work);
	conform_check(c, dut_room(&d, &work) != RIG_GROW,
	        "room of %u parts asks to grow again after RIG_GROWN", work.nparts);
	dut_open_gate(&gate);
	for (i = 0; i < TIMES; i++) {
		(void)dut_submit(&d, &work);
		dut_wait(&d, d.last);
	}
	for (i = 0; i < work.nparts; i++)
		conform_check(c, host[i] == 7, "part %u of %u did not run", i, work.nparts);
	dut_close(&d);
	free(parts);
}

struct limits {
	struct dut d;
	struct dut_launch l;
	struct dut_cells cells;
};

enum { CELLS = 8192 };

static void set_up(struct conform *c, struct limits *t)
{
	struct rig_conform_add p = {.add = 1};

	dut_open(c, &t->d, 0);
	(void)dut_load(&t->d);
	t->cells = dut_alloc_cells(&t->d, CELLS * 4);
	p.dst = t->cells.address;
	dut_launch(&t->d, &t->l, "conform_add", &p, sizeof(p), 1, 1);
}

static void an_empty_grid_or_group_never_fits(struct conform *c)
{
	struct limits t;
	unsigned i;

	set_up(c, &t);
	for (i = 0; i < 6; i++) {
		uint32_t *size = i < 3 ? &dut_block(&t.l)->groups[i] : &dut_block(&t.l)->threads[i - 3];

		*size = 0;
		expect_never(&t.d, &t.l.part, &t.l.run, i < 3 ? "an empty grid" : "an empty group");
		*size = 1;
	}
	dut_wait(&t.d, dut_run_launch(&t.d, &t.l));
	dut_close(&t.d);
}

static void a_group_out_of_every_limit_never_fits(struct conform *c)
{
	struct limits t;
	unsigned i;

	set_up(c, &t);
	for (i = 0; i < 3; i++) {
		dut_block(&t.l)->threads[i] = UINT32_MAX;
		expect_never(&t.d, &t.l.part, &t.l.run, "a group of UINT32_MAX threads");
		dut_block(&t.l)->threads[i] = 1;
	}
	/* A product that wraps to 0 in 32 bits and in 64. */
	memcpy(dut_block(&t.l)->threads, (uint32_t[3]){1u << 22, 1u << 21, 1u << 21}, 3 * sizeof(uint32_t));
	expect_never(&t.d, &t.l.part, &t.l.run, "a group of 2^64 threads");
	dut_close(&t.d);
}

static void a_group_over_the_functions_limit_never_fits(struct conform *c)
{
	struct rig_entry entry;
	struct limits t;

	set_up(c, &t);
	entry = dut_entry(&t.d, "conform_add");
	if (!entry.has_threads)
		conform_skip(c, "the device does not state the most threads of the function");
	dut_block(&t.l)->threads[0] = entry.threads + 1;
	expect_never(&t.d, &t.l.part, &t.l.run, "one thread more than the function may have");
	dut_close(&t.d);
}

static void a_group_of_as_many_threads_as_stated_runs(struct conform *c)
{
	struct rig_entry entry;
	struct limits t;
	uint32_t i, n;

	set_up(c, &t);
	entry = dut_entry(&t.d, "conform_add");
	if (!entry.has_threads || entry.threads > CELLS)
		conform_skip(c, "the device does not state the most threads of the function");
	n = entry.threads;
	dut_block(&t.l)->threads[0] = n;
	dut_wait(&t.d, dut_run_launch(&t.d, &t.l));
	dut_pull_cells(&t.d, &t.cells);
	for (i = 0; i < n; i++)
		conform_check(c, ((uint32_t *)(void *)t.cells.host)[i] == 1,
		        "thread %u of %u did not run once", i, n);
	dut_close(&t.d);
}

static void more_shared_memory_than_there_can_be_never_fits(struct conform *c)
{
	struct limits t;

	set_up(c, &t);
	dut_block(&t.l)->shared = UINT32_MAX;
	expect_never(&t.d, &t.l.part, &t.l.run, "UINT32_MAX bytes of shared memory");
	dut_close(&t.d);
}

static const struct conform_law laws[] = {
        LAW(nothing_fits_an_idle_device, "E-115"),
        LAW(parts_of_no_kind_never_fit, "E-120 E-102"),
        LAW(work_of_kinds_that_a_queue_does_not_list_never_fits, "E-053 E-119"),
        LAW(work_larger_than_any_queue_never_fits_or_grows, "E-118"),
        LAW(submit_after_fits_succeeds_up_to_the_last_place, "E-115"),
        LAW(later_turns_into_fits_as_values_are_reached, "E-116"),
        LAW(as_many_waits_as_room_lets_in_are_waited_for, "E-126"),
        LAW(queues_that_grew_never_ask_for_it_again, "E-117 E-230"),
        LAW(an_empty_grid_or_group_never_fits, "E-121"),
        LAW(a_group_out_of_every_limit_never_fits, "E-122"),
        LAW(a_group_over_the_functions_limit_never_fits, "E-123"),
        LAW(a_group_of_as_many_threads_as_stated_runs, "E-224"),
        LAW(more_shared_memory_than_there_can_be_never_fits, "E-124"),
};
CONFORM_GROUP(room, laws);
