/* SPDX-License-Identifier: MIT */
/*
 * The test driver's checks of a runtime find a bad one: this plays it. And what only a special driver asks of
 * librig.
 */
#include <errno.h>
#include "test.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "polled.h"
#include "rig_help.h"

#define WORD 300u /* in the array, far from librig's */

/* ---- A bad runtime ---- */

struct bad {
	struct polled *p;
	const struct rig_driver_module *m;
	const struct rig_driver *hot;
	void *device;
	struct rig_facts facts;
	const char *text;
};

static void open_bad(struct bad *b, const struct polled_options *options)
{
	const struct rig_opener *opener;
	char why[256];

	memset(b, 0, sizeof(*b));
	b->p = polled_new(options);
	assert_non_null(b->p);
	opener = polled_opener(b->p);
	b->m = opener->module;
	assert_int_equal(opener->make(opener->arg, rig_words() + WORD, &b->device, why, sizeof(why)), 0);
	b->facts.version = RIG_EDGE_VERSION;
	assert_int_equal(b->m->facts(b->device, &b->facts, &b->text), 0);
	b->hot = rig_driver_of(b->facts.edge);
}

static void submit_bad(struct bad *b, uint64_t value, struct rig_times *times)
{
	struct rig_run run = {0};

	(void)b->hot->submit(b->facts.edge, value, NULL, 0, NULL, 0, &run, NULL, times, &b->text);
}

static void room_bad(struct bad *b)
{
	struct rig_run run = {0};

	assert_int_equal(b->hot->room(b->facts.edge, NULL, 0, 0, &run, NULL), RIG_FITS);
}

/* The device is abandoned. */
static void end_bad(struct bad *b, const char *breach)
{
	const char *found = polled_breach(b->p);

	if (!found)
		fail_msg("%s goes unnoticed", breach);
	assert_non_null(strstr(found, breach));
}

static void a_submit_without_a_room_that_fits_is_noticed(void **state)
{
	struct polled_options o = help_options();
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	submit_bad(&b, polled_last(b.p) + 1, NULL);
	end_bad(&b, "E-104");
}

static void a_value_out_of_order_is_noticed(void **state)
{
	struct polled_options o = help_options();
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	room_bad(&b);
	submit_bad(&b, polled_last(b.p) + 2, NULL);
	end_bad(&b, "E-125");
}

static void a_commit_past_the_last_value_is_noticed(void **state)
{
	struct polled_options o = help_options();
	struct bad b;

	(void)state;
	o.batch = true;
	open_bad(&b, &o);
	(void)b.hot->commit(b.facts.edge, polled_last(b.p) + 1, &b.text);
	end_bad(&b, "E-139");
}

static void a_commit_that_is_never_needed_is_noticed(void **state)
{
	struct polled_options o = help_options();
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	(void)b.hot->commit(b.facts.edge, polled_last(b.p), &b.text);
	end_bad(&b, "E-145");
}

static void times_without_a_profile_are_noticed(void **state)
{
	struct polled_options o = help_options();
	struct rig_times times = {0};
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	room_bad(&b);
	submit_bad(&b, polled_last(b.p) + 1, &times);
	end_bad(&b, "E-133");
}

static void a_word_that_somebody_else_raises_is_noticed(void **state)
{
	struct polled_options o = help_options();
	struct rig_run run = {0};
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	rig_word_raise(rig_words() + WORD, polled_last(b.p) + 5);
	(void)b.hot->room(b.facts.edge, NULL, 0, 0, &run, NULL);
	end_bad(&b, "E-005");
}

static void freeing_the_given_word_is_noticed(void **state)
{
	struct polled_options o = help_options();
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	(void)b.m->free(b.device, b.facts.word, &b.text);
	end_bad(&b, "E-025");
}

static void a_free_after_stop_while_the_word_is_short_is_noticed(void **state)
{
	struct polled_options o = help_options();
	void *region;
	struct bad b;

	(void)state;
	o.stop_short = true;
	open_bad(&b, &o);
	assert_int_equal(b.m->alloc(b.device, RIG_DEVICE, 64, &region, &b.text), 0);
	room_bad(&b);
	submit_bad(&b, polled_last(b.p) + 1, NULL);
	b.m->stop(b.device, NULL);
	(void)b.m->free(b.device, region, &b.text);
	end_bad(&b, "E-012");
}

static void a_second_stop_is_noticed(void **state)
{
	struct polled_options o = help_options();
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	b.m->stop(b.device, NULL);
	b.m->stop(b.device, NULL);
	end_bad(&b, "E-240");
}

static void a_call_after_stop_is_noticed(void **state)
{
	struct polled_options o = help_options();
	void *region;
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	b.m->stop(b.device, NULL);
	(void)b.m->alloc(b.device, RIG_DEVICE, 64, &region, &b.text);
	end_bad(&b, "after stop");
}

static void growing_unasked_is_noticed(void **state)
{
	struct polled_options o = help_options();
	uint64_t missing;
	struct bad b;

	(void)state;
	open_bad(&b, &o);
	(void)b.m->grow(b.device, NULL, 0, 0, &missing, &b.text);
	end_bad(&b, "E-229");
}

static void a_mapping_off_a_page_is_noticed(void **state)
{
	struct polled_options o = help_options();
	void *region;
	struct bad b;

	(void)state;
	o.maps_host = true;
	open_bad(&b, &o);
	(void)b.m->map_host(b.device, (uint8_t *)b.p + 1, 64, &region, &b.text);
	end_bad(&b, "E-194");
}

static void another_self_is_noticed(void **state)
{
	struct polled_options o = help_options();
	struct rig_run run = {0};
	struct bad b;
	void *copy;

	(void)state;
	open_bad(&b, &o);
	copy = polled_copy_of_state(b.device);
	assert_non_null(copy);
	(void)b.hot->room(copy, NULL, 0, 0, &run, NULL);
	end_bad(&b, "E-101");
	free(copy);
}

/* ---- Special drivers ---- */

static uint8_t *pages;

/* E-081: behind the first member nothing can be read. */
static void put_state_at_the_end_of_its_page(struct rig_facts *facts)
{
	const struct rig_driver *table = rig_driver_of(facts->edge);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	facts->edge = pages + page - sizeof(table);
	memcpy(facts->edge, &table, sizeof(table));
}

static void nothing_of_the_state_but_its_first_member_is_read_at_the_open(void **state)
{
	struct polled_options o = help_options();
	struct polled *p = polled_new(&o);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rig_device *d;

	(void)state;
	pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	polled_edit_facts(p, put_state_at_the_end_of_its_page);
	assert_ok(rig_open(polled_opener(p), &d));
	assert_ok(rig_close(d));
	rig_device_put(d);
	assert_null(polled_breach(p));
	polled_free(p);
	(void)munmap(pages, 2 * page);
}

/* E-248: the test driver's stop clears the table's address. */
static void nothing_of_the_state_is_read_after_stop(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point = help_submit(s, NULL);

	(void)state;
	assert_ok(rig_wait(point));
	assert_ok(rig_close(b.d));
	assert_int_equal(rig_reached(point), 1);
	assert_int_equal(rig_submit(s, NULL, NULL, 0, &point), RIG_LOST);
	assert_true(rig_signaled(b.d) == rig_submitted(b.d));
	rig_submission_put(s);
	help_end(&b);
}

/* E-020 */
static void a_word_of_the_drivers_own_that_goes_back_is_not_followed(void **state)
{
	struct polled_options o = help_options();
	struct rig_submission *s;
	struct rig_point point;
	struct bench b;

	(void)state;
	o.own_word = true;
	b = help_open(&o);
	s = help_empty(b.d);
	(void)help_submit(s, NULL);
	point = help_submit(s, NULL);
	assert_int_equal(polled_run(b.p, 2), 2);
	assert_int_equal(rig_reached(point), 1);
	polled_set_word(b.p, rig_point_value(point) - 1);
	assert_int_equal(rig_signaled(b.d), rig_point_value(point));
	assert_int_equal(rig_reached(point), 1);
	assert_int_equal(rig_word_load(&rig_words()[rig_point_slot(point)]), rig_point_value(point));
	polled_set_word(b.p, rig_point_value(point));
	rig_submission_put(s);
	help_close(&b);
}

struct two {
	struct bench a, b;
	struct rig_submission *sa, *sb;
};

static void open_two(struct two *t, bool own_word)
{
	struct polled_options o = help_options();

	o.name = "A";
	o.own_word = own_word;
	t->a = help_open(&o);
	o.name = "B";
	o.own_word = false;
	o.waits = (struct rig_waits){true, true};
	t->b = help_open(&o);
	t->sa = help_empty(t->a.d);
	t->sb = help_empty(t->b.d);
}

/* E-018, E-022, E-024, E-056: B's queue never reads A's word. */
static void a_producer_with_a_word_of_its_own_is_waited_for_on_the_host(void **state)
{
	struct rig_point point, later;
	struct two t;

	(void)state;
	open_two(&t, true);
	point = help_submit(t.sa, NULL);
	assert_ok(rig_submit(t.sb, NULL, &point, 1, &later)); /* the sleep runs A's work */
	assert_int_equal(rig_reached(point), 1);
	assert_int_equal(polled_nwaits(t.b.p), 0);
	assert_int_equal(rig_word_load(&rig_words()[rig_point_slot(point)]), rig_point_value(point));
	assert_ok(rig_wait(later));
	rig_submission_put(t.sa);
	rig_submission_put(t.sb);
	help_close(&t.a);
	help_close(&t.b);
}

/* E-009 */
static void a_queue_that_waits_on_a_word_runs_on_after_its_device_is_gone(void **state)
{
	struct rig_point point, later;
	struct two t;

	(void)state;
	open_two(&t, false);
	point = help_submit(t.sa, NULL);
	assert_ok(rig_submit(t.sb, NULL, &point, 1, &later));
	assert_int_equal(polled_nwaits(t.b.p), 1);
	assert_int_equal(polled_run(t.b.p, 1), 0);
	assert_int_equal(polled_run(t.a.p, 1), 1);
	rig_submission_put(t.sa);
	help_close(&t.a);
	assert_int_equal(polled_run(t.b.p, 1), 1);
	assert_ok(rig_wait(later));
	assert_false(rig_lost(t.b.d, NULL));
	rig_submission_put(t.sb);
	help_close(&t.b);
}

/* E-102: answers that are none. */
static struct rig_driver odd_table;

static struct {
	const struct rig_driver *hot;
} odd_state = {&odd_table};

static int odd_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	(void)self, (void)parts, (void)nparts, (void)nwaits, (void)run, (void)scratch;
	return RIG_NEVER + 1;
}

static int fitting_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	(void)self, (void)parts, (void)nparts, (void)nwaits, (void)run, (void)scratch;
	return RIG_FITS;
}

static int odd_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	(void)self, (void)value, (void)parts, (void)nparts, (void)waits, (void)nwaits, (void)run;
	(void)scratch, (void)times, (void)failure;
	return RIG_COMMITTED + 1;
}

static void give_odd_table(struct rig_facts *facts)
{
	facts->edge = &odd_state;
}

/* `released`: whether all its values can be over, so that it goes with its last reference. */
static void check_odd(bool released)
{
	struct polled_options o = help_options();
	struct polled *p;
	const char *reason = NULL;
	struct rig_submission *s;
	struct rig_device *d;

	o.stop_short = true;
	p = polled_new(&o);
	polled_edit_facts(p, give_odd_table);
	assert_ok(rig_open(polled_opener(p), &d));
	s = help_empty(d);
	assert_int_equal(rig_submit(s, NULL, NULL, 0, NULL), RIG_LOST);
	assert_true(rig_lost(d, &reason));
	assert_non_null(reason);
	assert_true(reason[0]);
	rig_submission_put(s);
	rig_device_put(d);
	assert_int_equal(polled_count(p, POLLED_STOP), 1);
	assert_int_equal(polled_count(p, POLLED_RELEASE), released ? 1 : 0);
	assert_null(polled_breach(p));
}

static void a_room_that_answers_no_constant_loses_the_device_with_a_text(void **state)
{
	(void)state;
	odd_table = (struct rig_driver){.version = RIG_EDGE_VERSION, .room = odd_room, .submit = odd_submit};
	check_odd(true);
}

static void a_submit_that_answers_no_constant_loses_the_device_with_a_text(void **state)
{
	(void)state;
	odd_table =
	        (struct rig_driver){.version = RIG_EDGE_VERSION, .room = fitting_room, .submit = odd_submit};
	check_odd(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_submit_without_a_room_that_fits_is_noticed),
	        cmocka_unit_test(a_value_out_of_order_is_noticed),
	        cmocka_unit_test(a_commit_past_the_last_value_is_noticed),
	        cmocka_unit_test(a_commit_that_is_never_needed_is_noticed),
	        cmocka_unit_test(times_without_a_profile_are_noticed),
	        cmocka_unit_test(freeing_the_given_word_is_noticed),
	        cmocka_unit_test(a_free_after_stop_while_the_word_is_short_is_noticed),
	        cmocka_unit_test(a_second_stop_is_noticed),
	        cmocka_unit_test(a_call_after_stop_is_noticed),
	        cmocka_unit_test(growing_unasked_is_noticed),
	        cmocka_unit_test(a_mapping_off_a_page_is_noticed),
	        cmocka_unit_test(another_self_is_noticed),
	        cmocka_unit_test(a_word_that_somebody_else_raises_is_noticed),
	        cmocka_unit_test(nothing_of_the_state_but_its_first_member_is_read_at_the_open),
	        cmocka_unit_test(nothing_of_the_state_is_read_after_stop),
	        cmocka_unit_test(a_word_of_the_drivers_own_that_goes_back_is_not_followed),
	        cmocka_unit_test(a_producer_with_a_word_of_its_own_is_waited_for_on_the_host),
	        cmocka_unit_test(a_queue_that_waits_on_a_word_runs_on_after_its_device_is_gone),
	        cmocka_unit_test(a_room_that_answers_no_constant_loses_the_device_with_a_text),
	        cmocka_unit_test(a_submit_that_answers_no_constant_loses_the_device_with_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
