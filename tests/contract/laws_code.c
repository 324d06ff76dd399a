/* SPDX-License-Identifier: MIT */
/* Code: binaries, functions, launches. */
#include <stdlib.h>
#include <string.h>

#include "conform_groups.h"
#include "dut.h"

enum { CELLS = 4096 };

struct launches {
	struct dut d;
	const struct rig_conform_code *code;
	struct dut_cells memory;
	void *region; /* of the memory */
	uint64_t address;
	uint32_t *cells; /* at its host side */
};

static void set_up(struct conform *c, struct launches *t)
{
	dut_open(c, &t->d, 0);
	t->code = dut_load(&t->d);
	t->memory = dut_alloc_cells(&t->d, CELLS * 4);
	t->region = t->memory.region;
	t->address = t->memory.address;
	t->cells = (uint32_t *)(void *)t->memory.host;
}

static void prepare_add(
        struct launches *t, struct dut_launch *l, uint32_t add, uint32_t groups, uint32_t threads)
{
	struct rig_conform_add p = {.dst = t->address, .add = add};

	dut_launch(&t->d, l, "conform_add", &p, sizeof(p), groups, threads);
}

static void check_cells(struct launches *t, uint32_t n, uint32_t want)
{
	uint32_t i;

	dut_pull_cells(&t->d, &t->memory);
	for (i = 0; i < CELLS; i++)
		conform_check(t->d.c, t->cells[i] == (i < n ? want : 0), "cell %u of %u holds %u, not %u", i,
		        n, t->cells[i], i < n ? want : 0);
}

static void every_thread_of_a_grid_runs_once(struct conform *c)
{
	static const uint32_t shapes[][6] = {{1, 1, 1, 1, 1, 1}, {7, 1, 1, 1, 1, 1}, {1, 1, 1, 16, 1, 1},
	        {3, 5, 2, 4, 2, 2}, {16, 4, 1, 8, 1, 1}, {1, 1, 9, 1, 1, 5}};
	struct dut_launch l;
	struct launches t;
	size_t i;

	set_up(c, &t);
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const uint32_t *s = shapes[i];

		memset(t.cells, 0, CELLS * 4);
		dut_push_cells(&t.d, &t.memory);
		prepare_add(&t, &l, 3, 1, 1);
		memcpy(dut_block(&l)->groups, s, 3 * sizeof(*s));
		memcpy(dut_block(&l)->threads, s + 3, 3 * sizeof(*s));
		dut_wait(&t.d, dut_run_launch(&t.d, &l));
		check_cells(&t, s[0] * s[1] * s[2] * s[3] * s[4] * s[5], 3);
	}
	dut_close(&t.d);
}

static void addresses_of_the_runs_buffers_are_added_to_parameters(struct conform *c)
{
	struct rig_conform_add p = {.dst = 4 * 10, .add = 5};
	struct rig_ref ref = {.at = 0, .slot = 0};
	struct rig_slot slot;
	struct dut_launch l;
	struct launches t;
	uint32_t i;

	set_up(c, &t);
	slot = (struct rig_slot){
	        .address = t.address + 4 * 20, .handle = dut_locate(&t.d, t.region).handle, .offset = 4 * 20};
	dut_launch(&t.d, &l, "conform_add", &p, sizeof(p), 4, 1);
	l.part.u.launch.refs = &ref;
	l.part.u.launch.nrefs = 1;
	l.run.slots = &slot;
	l.run.nslots = 1;
	dut_wait(&t.d, dut_run_launch(&t.d, &l));
	dut_pull_cells(&t.d, &t.memory);
	for (i = 0; i < CELLS; i++)
		conform_check(
		        c, t.cells[i] == (i >= 30 && i < 34 ? 5u : 0u), "cell %u holds %u", i, t.cells[i]);
	dut_close(&t.d);
}

static void launches_follow_each_other_in_value_order(struct conform *c)
{
	enum { TIMES = 100 };
	struct rig_conform_move p;
	struct dut_launch l;
	struct launches t;
	uint32_t i;

	set_up(c, &t);
	t.cells[0] = 77;
	dut_push_cells(&t.d, &t.memory);
	/* Each moves what the one before moved. */
	for (i = 0; i < TIMES; i++) {
		p = (struct rig_conform_move){.dst = t.address + 4 * (i + 1), .src = t.address + 4 * i};
		dut_launch(&t.d, &l, "conform_move", &p, sizeof(p), 1, 1);
		(void)dut_run_launch(&t.d, &l);
	}
	dut_wait(&t.d, t.d.last);
	dut_pull_cells(&t.d, &t.memory);
	conform_check(c, t.cells[TIMES] == 77, "after %d moves in a row the last cell holds %u", TIMES,
	        t.cells[TIMES]);
	dut_close(&t.d);
}

static void values_on_different_queues_follow_each_other(struct conform *c)
{
	enum { TIMES = 100 };
	struct dut_launch l;
	struct rig_part out;
	struct launches t;
	uint8_t *host;
	void *to;
	uint32_t i;

	set_up(c, &t);
	to = dut_alloc_host(&t.d, 4 * TIMES, &host);
	for (i = 0; i < TIMES; i++) {
		prepare_add(&t, &l, 1, 1, 1);
		(void)dut_run_launch(&t.d, &l);
		out = dut_copy(&t.d, to, 4 * (uint64_t)i, t.region, 0, 4);
		(void)dut_run(&t.d, &out, 1);
	}
	dut_wait(&t.d, t.d.last);
	for (i = 0; i < TIMES; i++)
		conform_check(c, ((uint32_t *)(void *)host)[i] == i + 1, "the copy after launch %u saw %u",
		        i + 1, ((uint32_t *)(void *)host)[i]);
	dut_close(&t.d);
}

/* In turn, a copy after the launch and a launch after the copy. */
static void parts_start_after_the_parts_of_other_queues_they_name(struct conform *c)
{
	enum { TIMES = 100 };
	static const uint32_t first[] = {0};
	struct rig_part parts[2];
	struct dut_work work;
	struct dut_launch l;
	struct launches t;
	uint8_t *host;
	uint32_t i;
	void *to;

	set_up(c, &t);
	to = dut_alloc_host(&t.d, 4 * TIMES, &host);
	for (i = 0; i < TIMES; i++) {
		prepare_add(&t, &l, 1, 1, 1);
		parts[i & 1] = l.part;
		parts[!(i & 1)] = dut_copy(&t.d, to, 4 * (uint64_t)i, t.region, 0, 4);
		parts[1].after = first;
		parts[1].nafter = 1;
		work = (struct dut_work){.parts = parts, .nparts = 2, .run = &l.run};
		(void)dut_submit(&t.d, &work);
	}
	dut_wait(&t.d, t.d.last);
	for (i = 0; i < TIMES; i++)
		conform_check(c, ((uint32_t *)(void *)host)[i] == (i & 1 ? i : i + 1),
		        "the copy %s launch %u saw %u", i & 1 ? "before" : "after", i + 1,
		        ((uint32_t *)(void *)host)[i]);
	dut_close(&t.d);
}

static void a_copy_engine_of_its_own_copies_beside_a_launch(struct conform *c)
{
	enum { BYTES = 64 };
	struct rig_part parts[2];
	struct dut_work work;
	struct dut_launch l;
	struct launches t;
	uint64_t end;
	uint8_t *host;
	void *to;

	set_up(c, &t);
	if (!t.code->forever)
		conform_skip(c, "the code of the laws has no conform_forever");
	if (t.memory.here)
		conform_skip(c, "what a copy brings to this process is here with its whole value");
	to = dut_alloc_host(&t.d, BYTES, &host);
	memset(host, 0, BYTES);
	dut_launch(&t.d, &l, "conform_forever", "", 0, 1, 1);
	parts[0] = l.part;
	parts[1] = dut_fill(&t.d, to, 0, BYTES, 9);
	if (parts[1].queue == parts[0].queue)
		conform_skip(c, "copies share the queue of launches");
	work = (struct dut_work){.parts = parts, .nparts = 2, .run = &l.run};
	(void)dut_submit(&t.d, &work);
	for (end = rig_now_ns() + dut_wait_ms(c) * 1000000u; host[BYTES - 1] != 9; dut_nap())
		conform_check(c, rig_now_ns() < end, "a copy beside an endless launch is not made");
	conform_check(c, dut_shown(&t.d) < t.d.last, "a value with an endless launch is reached");
	dut_stop(&t.d, "no progress for 1 ms");
	dut_release(&t.d);
}

static void a_launch_waits_for_its_word(struct conform *c)
{
	struct dut_work work;
	struct rig_wait gate;
	struct dut_launch l;
	struct launches t;
	unsigned i;

	set_up(c, &t);
	gate = dut_gate(&t.d, 0);
	prepare_add(&t, &l, 1, 1, 1);
	work = (struct dut_work){.parts = &l.part, .nparts = 1, .waits = &gate, .nwaits = 1, .run = &l.run};
	(void)dut_submit(&t.d, &work);
	for (i = 0; i < 10; i++) {
		conform_check(c, !t.cells[0], "the launch ran before the word it waits for");
		dut_nap();
	}
	dut_open_gate(&gate);
	dut_wait(&t.d, t.d.last);
	check_cells(&t, 1, 1);
	dut_close(&t.d);
}

/* Whether load takes it; the place that it may ask for is never called. */
static int try_load(struct dut *d, const void *bytes, size_t n)
{
	struct rig_code code = {.version = RIG_EDGE_VERSION};
	const char *fault = NULL;
	int answer = d->m->load(d->device, bytes, n, &code, &fault);

	conform_check(d->c, answer <= 0 && answer != RIG_FAULT, "load answered %d: %s", answer,
	        fault ? fault : "no text");
	if (!answer && code.kind == RIG_LOADED)
		conform_check(
		        d->c, !d->m->unload(d->device, code.image, &fault), "unload faulted: %s", fault);
	return answer;
}

static void what_is_no_binary_is_refused_with_a_reason_and_nothing_is_harmed(struct conform *c)
{
	static uint8_t noise[1000];
	struct dut d;
	size_t n;

	dut_open(c, &d, 0);
	dut_pattern(noise, sizeof(noise), 3);
	for (n = 0; n <= sizeof(noise); n += 1 + n / 3) {
		(void)rig_error_set(0, "%s", "");
		conform_check(c, try_load(&d, noise, n) < 0, "load takes %zu bytes of noise", n);
		conform_check(c, rig_error()[0], "load refuses without a reason in rig_error()");
	}
	dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

static void a_binary_cut_short_does_no_harm(struct conform *c)
{
	struct launches t;
	struct dut_launch l;
	uint8_t *cut;
	size_t n;

	set_up(c, &t);
	for (n = 0; n < t.code->bytes; n += 1 + n / 5) {
		cut = malloc(n + 1); /* at its true size: a read behind it is seen by ASan */
		conform_check(c, cut, "no host memory");
		memcpy(cut, t.code->binary, n);
		(void)try_load(&t.d, cut, n);
		free(cut);
	}
	prepare_add(&t, &l, 1, 1, 1);
	dut_wait(&t.d, dut_run_launch(&t.d, &l));
	check_cells(&t, 1, 1);
	dut_close(&t.d);
}

static void a_place_writes_its_bytes_and_none_behind(struct conform *c)
{
	enum { CANARY = 64 };
	struct rig_code answer = {.version = RIG_EDGE_VERSION};
	const char *fault = NULL;
	struct launches t;
	uint8_t *buffer;
	void *region, *image = NULL;
	unsigned i;

	set_up(c, &t);
	conform_check(c, !t.d.m->load(t.d.device, t.code->binary, t.code->bytes, &answer, &fault),
	        "load answered: %s", rig_error());
	if (answer.kind != RIG_PLACE) {
		(void)t.d.m->unload(t.d.device, answer.image, &fault);
		conform_skip(c, "the driver places code itself");
	}
	region = dut_alloc(&t.d, RIG_DEVICE, answer.bytes);
	buffer = calloc(1, answer.bytes + CANARY);
	conform_check(c, buffer, "no host memory");
	memset(buffer + answer.bytes, 0xA5, CANARY);
	conform_check(c,
	        !answer.place(t.d.device, t.code->binary, t.code->bytes, region, buffer, &image) && image,
	        "place makes no image");
	for (i = 0; i < CANARY; i++)
		conform_check(c, buffer[answer.bytes + i] == 0xA5, "place wrote behind its %llu bytes",
		        (unsigned long long)answer.bytes);
	conform_check(c, !t.d.m->unload(t.d.device, image, &fault), "unload faulted: %s", fault);
	free(buffer);
	dut_close(&t.d);
}

static void a_place_that_is_not_called_leaves_nothing(struct conform *c)
{
	enum { TIMES = 200 };
	struct launches t;
	unsigned i;

	set_up(c, &t);
	for (i = 0; i < TIMES; i++)
		conform_check(c, !try_load(&t.d, t.code->binary, t.code->bytes),
		        "load refuses at the %u-th time: %s", i, rig_error());
	dut_close(&t.d);
}

static void images_come_and_go(struct conform *c)
{
	enum { TIMES = 30 };
	struct dut_launch l;
	struct launches t;
	unsigned i;

	set_up(c, &t);
	for (i = 1; i <= TIMES; i++) {
		prepare_add(&t, &l, 1, 1, 2);
		dut_wait(&t.d, dut_run_launch(&t.d, &l));
		check_cells(&t, 2, i);
		dut_unload(&t.d);
		(void)dut_load(&t.d);
	}
	dut_close(&t.d);
}

static void an_unknown_function_is_absent_and_the_image_unharmed(struct conform *c)
{
	struct rig_entry entry = {.version = RIG_EDGE_VERSION};
	static const char *const names[] = {
	        "", "conform", "conform_adder", "no such function", "conform_add "};
	const char *fault = NULL;
	uint64_t missing = 0;
	struct dut_launch l;
	struct launches t;
	size_t i;

	set_up(c, &t);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int answer = t.d.m->entry(t.d.device, t.d.image, names[i], &entry, &missing, &fault);

		conform_check(c, answer == RIG_ABSENT, "entry of \"%s\" answered %d", names[i], answer);
	}
	prepare_add(&t, &l, 1, 1, 1);
	dut_wait(&t.d, dut_run_launch(&t.d, &l));
	dut_close(&t.d);
}

static void an_entry_is_the_same_the_second_time(struct conform *c)
{
	struct rig_entry first, again;
	struct launches t;

	set_up(c, &t);
	first = dut_entry(&t.d, "conform_add");
	(void)dut_entry(&t.d, "conform_move");
	again = dut_entry(&t.d, "conform_add");
	conform_check(c,
	        first.code == again.code && first.launch == again.launch && first.params == again.params &&
	                first.threads == again.threads,
	        "entry answers something else the second time");
	conform_check(c, first.launch, "launch is 0 although a queue runs launches");
	conform_check(c, !first.has_params || first.params <= sizeof(struct rig_conform_add),
	        "the function reads %u parameter bytes of %zu", first.params, sizeof(struct rig_conform_add));
	dut_close(&t.d);
}

static void an_image_serves_until_it_is_unloaded(struct conform *c)
{
	enum { TIMES = 60 };
	struct dut_launch l;
	struct launches t;
	unsigned i;

	set_up(c, &t);
	prepare_add(&t, &l, 1, 1, 1);
	for (i = 0; i < TIMES; i++)
		(void)dut_run_launch(&t.d, &l);
	dut_wait(&t.d, t.d.last);
	dut_unload(&t.d);
	check_cells(&t, 1, TIMES);
	dut_close(&t.d);
}

static const struct conform_law laws[] = {
        LAW(every_thread_of_a_grid_runs_once, "E-095 E-217 E-218"),
        LAW(addresses_of_the_runs_buffers_are_added_to_parameters, "E-095 E-185 E-221"),
        LAW(launches_follow_each_other_in_value_order, "E-096 E-097 E-127"),
        LAW(values_on_different_queues_follow_each_other, "E-097 E-127"),
        LAW(parts_start_after_the_parts_of_other_queues_they_name, "E-128"),
        LAW(a_copy_engine_of_its_own_copies_beside_a_launch, "E-098"),
        LAW(a_launch_waits_for_its_word, "E-126"),
        LAW(what_is_no_binary_is_refused_with_a_reason_and_nothing_is_harmed, "E-026"),
        LAW(a_binary_cut_short_does_no_harm, "E-026"),
        LAW(a_place_writes_its_bytes_and_none_behind, "E-212"),
        LAW(a_place_that_is_not_called_leaves_nothing, "E-214"),
        LAW(images_come_and_go, "E-210 E-218"),
        LAW(an_unknown_function_is_absent_and_the_image_unharmed, "E-226"),
        LAW(an_entry_is_the_same_the_second_time, "E-218 E-220 E-221"),
        LAW(an_image_serves_until_it_is_unloaded, "E-218"),
};
CONFORM_GROUP(code, laws);
