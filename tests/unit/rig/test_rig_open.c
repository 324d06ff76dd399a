/* SPDX-License-Identifier: MIT */
/* Opening: what is refused, what the handle's life is, and which word a device gets. */
#include <pthread.h>
#include <stdatomic.h>

#include "rig_help.h"

static void open_and_close_stop_and_release_the_handle(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);

	(void)state;
	assert_string_equal(rig_name(b.d), "P0");
	assert_string_equal(rig_arch(b.d), "polled");
	assert_null(rig_bus(b.d));
	assert_int_equal(rig_cache_bytes(b.d), 0);
	assert_ptr_equal(rig_capability(b.d, &polled_key), b.p);
	assert_null(rig_capability(b.d, NULL));
	assert_false(rig_lost(b.d, NULL));
	/* E-050 */
	assert_int_equal(polled_count(b.p, POLLED_FACTS), 1);
	help_close(&b);
	/* A close is no failure of the process. */
	assert_null(rig_failure());
}

/* E-041, E-240 */
static void a_second_close_changes_nothing(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	const char *reason;

	(void)state;
	assert_ok(rig_close(b.d));
	assert_ok(rig_close(b.d));
	assert_int_equal(polled_count(b.p, POLLED_STOP), 1);
	assert_null(polled_stop_reason(b.p));
	assert_true(rig_lost(b.d, &reason));
	assert_string_equal(reason, "closed");
	help_end(&b);
}

/* E-035 */
static void an_open_name_is_refused_as_busy(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_device *again;

	(void)state;
	assert_int_equal(rig_open(polled_opener(b.p), &again), -EBUSY);
	assert_non_null(strstr(rig_error(), "P0"));
	assert_int_equal(polled_count(b.p, POLLED_MAKE), 1);
	help_close(&b);
}

static void a_closed_name_opens_again_as_another_device(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_device *again;

	(void)state;
	assert_ok(rig_close(b.d));
	assert_ok(rig_open(polled_opener(b.p), &again));
	assert_ptr_not_equal(again, b.d);
	assert_true(rig_lost(b.d, NULL));
	assert_false(rig_lost(again, NULL));
	assert_ok(rig_close(again));
	rig_device_put(again);
	help_end(&b);
}

static void open_devices_are_listed_until_they_close(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct rig_device *found[4];
	struct bench a, b;

	(void)state;
	o1.name = "P1";
	assert_int_equal(rig_devices(found, 4), 0);
	a = help_open(&o);
	b = help_open(&o1);
	assert_int_equal(rig_devices(NULL, 0), 2);
	assert_int_equal(rig_devices(found, 1), 2);
	assert_ptr_equal(found[0], a.d);
	rig_device_put(found[0]);
	assert_int_equal(rig_devices(found, 4), 2);
	assert_ptr_equal(found[1], b.d);
	rig_device_put(found[0]);
	rig_device_put(found[1]);
	help_close(&a);
	assert_int_equal(rig_devices(NULL, 0), 1);
	help_close(&b);
}

static void another_contract_version_is_refused_naming_both(void **state)
{
	struct polled_options o = help_options();
	struct polled *p = polled_new(&o);
	struct rig_opener opener = *polled_opener(p);
	struct rig_driver_module module = *opener.module;
	struct rig_open_options options = {.version = 9};
	struct rig_device *d;

	(void)state;
	opener.version = 7;
	assert_int_equal(rig_open(&opener, &d), -EINVAL);
	assert_non_null(strstr(rig_error(), "7"));
	assert_non_null(strstr(rig_error(), "1"));
	opener.version = RIG_EDGE_VERSION;
	module.version = 8;
	opener.module = &module;
	assert_int_equal(rig_open(&opener, &d), -EINVAL);
	assert_non_null(strstr(rig_error(), "8"));
	assert_int_equal(rig_open_with(polled_opener(p), &options, &d), -EINVAL);
	assert_int_equal(polled_count(p, POLLED_MAKE), 0);
	polled_free(p);
}

static void a_name_with_a_machine_suffix_is_refused(void **state)
{
	struct polled_options o = help_options();
	struct polled *p;
	struct rig_device *d;

	(void)state;
	o.name = "P0@there";
	p = polled_new(&o);
	assert_int_equal(rig_open(polled_opener(p), &d), -EINVAL);
	polled_free(p);
	o.name = "";
	p = polled_new(&o);
	assert_int_equal(rig_open(polled_opener(p), &d), -EINVAL);
	polled_free(p);
}

static void a_thread_that_holds_a_lock_may_not_open(void **state)
{
	struct polled_options o = help_options();
	struct polled *p = polled_new(&o);
	struct rig_device *d;

	(void)state;
	rig_locks_add(1);
	assert_int_equal(rig_open(polled_opener(p), &d), -EINVAL);
	rig_locks_add(-1);
	assert_int_equal(polled_count(p, POLLED_MAKE), 0);
	polled_free(p);
}

/* E-034, E-039, E-040 */
static void failing_opens_use_up_no_slots(void **state)
{
	struct polled_options o = help_options();
	struct polled *p = polled_new(&o);
	struct rig_device *d;
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		polled_fail(p, POLLED_MAKE, 1, POLLED_REFUSES);
		assert_int_equal(rig_open(polled_opener(p), &d), -ENXIO);
	}
	assert_string_equal(rig_error(), "P0: injected refusal of make");
	assert_ok(rig_open(polled_opener(p), &d));
	assert_ok(rig_close(d));
	rig_device_put(d);
	assert_null(polled_breach(p));
	polled_free(p);
}

/* E-013: reuse after a clean close; 70,000 opens are more than there are slots. */
static void closed_devices_give_their_slots_back(void **state)
{
	struct polled_options o = help_options();
	struct polled *p;
	struct rig_submission *s;
	struct rig_device *d;
	uint64_t last = 0;
	int i;

	(void)state;
	o.capacity = 1;
	p = polled_new(&o);
	for (i = 0; i < 70000; i++) {
		assert_ok(rig_open(polled_opener(p), &d));
		s = help_empty(d);
		/* Values of a slot never repeat. */
		last = rig_point_value(help_submit(s, NULL));
		rig_submission_put(s);
		assert_ok(rig_close(d));
		rig_device_put(d);
	}
	assert_true(last >= 70000);
	assert_null(polled_breach(p));
	assert_int_equal(polled_left(p), 0);
	polled_free(p);
}

/* E-013: a word that stays short is never handed out again. */
static void a_short_word_keeps_its_slot(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct rig_submission *s;
	struct rig_point point, other;
	struct bench b, c;
	int i;

	(void)state;
	o.stop_short = true;
	o1.name = "P1";
	b = help_open(&o);
	s = help_empty(b.d);
	polled_gate(b.p, 0);
	point = help_submit(s, NULL);
	polled_fail(b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_wait(point), RIG_LOST);
	for (i = 0; i < 1000; i++) {
		struct rig_submission *t;

		c = help_open(&o1);
		t = help_empty(c.d);
		other = help_submit(t, NULL);
		assert_int_not_equal(rig_point_slot(other), rig_point_slot(point));
		rig_submission_put(t);
		help_close(&c);
	}
	rig_submission_put(s);
	polled_drain(b.p);
	/* Any later call finds the word. */
	c = help_open(&o1);
	help_close(&c);
	help_end(&b);
}

/* E-037: values start after what make left in the word. */
static void the_first_value_follows_what_make_raised(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_submission *s;

	(void)state;
	o.base = UINT64_C(1) << 40;
	b = help_open(&o);
	s = help_empty(b.d);
	assert_int_equal(rig_submitted(b.d), UINT64_C(1) << 40);
	assert_int_equal(rig_point_value(help_submit(s, NULL)), (UINT64_C(1) << 40) + 1);
	rig_submission_put(s);
	help_close(&b);
}

static void cache_zero(struct rig_facts *f)
{
	f->has_cache_bytes = true;
	f->cache_bytes = 0;
}

/* contract.md 2.1 */
static void a_slot_near_the_last_value_is_retired(void **state)
{
	struct polled_options o = help_options();
	struct rig_submission *s;
	struct rig_point worn;
	struct bench b;

	(void)state;
	o.base = (UINT64_C(1) << RIG_VALUE_BITS) - (UINT64_C(1) << 39);
	b = help_open(&o);
	s = help_empty(b.d);
	worn = help_submit(s, NULL);
	assert_ok(rig_wait(worn));
	rig_submission_put(s);
	help_close(&b);
	o.base = 0;
	b = help_open(&o);
	s = help_empty(b.d);
	assert_int_not_equal(rig_point_slot(help_submit(s, NULL)), rig_point_slot(worn));
	rig_submission_put(s);
	help_close(&b);
	assert_int_equal(rig_reached(worn), 1);
}

/* E-025 and E-044 together: the word of the driver's own is given back by a refused open too. */
static void a_refused_handle_gets_its_own_word_back(void **state)
{
	struct polled_options o = help_options();
	struct polled *p;
	struct rig_device *d;

	(void)state;
	o.own_word = true;
	p = polled_new(&o);
	polled_edit_facts(p, cache_zero);
	assert_int_equal(rig_open(polled_opener(p), &d), -EINVAL);
	assert_int_equal(polled_count(p, POLLED_FREE), 1);
	assert_int_equal(polled_left(p), 0);
	assert_null(polled_breach(p));
	polled_free(p);
}

/* E-043, E-044 */
static void a_fault_while_facts_are_read_fails_the_open_and_stops_the_handle(void **state)
{
	struct polled_options o = help_options();
	struct polled *p = polled_new(&o);
	struct rig_device *d;

	(void)state;
	polled_fail(p, POLLED_FACTS, 1, POLLED_FAULTS);
	assert_int_equal(rig_open(polled_opener(p), &d), -EIO);
	assert_string_equal(rig_error(), "P0: injected fault");
	assert_int_equal(polled_count(p, POLLED_STOP), 1);
	assert_int_equal(polled_left(p), 0);
	assert_null(polled_breach(p));
	polled_free(p);
}

static void engine_out_of_range(struct rig_facts *f)
{
	f->copy_engine = (int32_t)f->nqueues;
}

static void engine_negative(struct rig_facts *f)
{
	f->copy_engine = -1;
}

static void engine_without_copy(struct rig_facts *f)
{
	f->copy_engine = 0;
}

static void hang_zero(struct rig_facts *f)
{
	f->has_hang_ms = true;
	f->hang_ms = 0;
}

static void hang_negative(struct rig_facts *f)
{
	f->has_hang_ms = true;
	f->hang_ms = -1;
}

static void alignment_zero(struct rig_facts *f)
{
	f->alignment = 0;
}

static void alignment_three(struct rig_facts *f)
{
	f->alignment = 3;
}

static void alignment_negative(struct rig_facts *f)
{
	f->alignment = -4096;
}

static void edge_null(struct rig_facts *f)
{
	f->edge = NULL;
}

static const void *null_member[1];

static void edge_member_null(struct rig_facts *f)
{
	f->edge = null_member;
}

/* E-074 to E-080, E-044 */
static void facts_out_of_bounds_are_refused_by_name(void **state)
{
	static const struct {
		void (*edit)(struct rig_facts *facts);
		const char *names;
	} cases[] = {
	        {engine_out_of_range, "copy_engine"},
	        {engine_negative, "copy_engine"},
	        {engine_without_copy, "copy_engine"},
	        {hang_zero, "hang_ms"},
	        {hang_negative, "hang_ms"},
	        {cache_zero, "cache_bytes"},
	        {alignment_zero, "alignment"},
	        {alignment_three, "alignment"},
	        {alignment_negative, "alignment"},
	        {edge_null, "edge"},
	        {edge_member_null, "edge"},
	};
	struct polled_options o = help_options();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct polled *p = polled_new(&o);
		struct rig_device *d;

		polled_edit_facts(p, cases[i].edit);
		assert_int_equal(rig_open(polled_opener(p), &d), -EINVAL);
		assert_non_null(strstr(rig_error(), cases[i].names));
		assert_int_equal(polled_count(p, POLLED_STOP), 1);
		assert_int_equal(polled_left(p), 0);
		polled_free(p);
	}
}

/* E-051 */
static void facts_and_values_answer_after_the_stop(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_submission *s = help_empty(b.d);
	uint64_t value = rig_point_value(help_submit(s, NULL));
	uint32_t n;

	(void)state;
	rig_submission_put(s);
	assert_ok(rig_close(b.d));
	assert_string_equal(rig_arch(b.d), "polled");
	assert_string_equal(rig_queues(b.d, &n)[0].name, "COMPUTE:0");
	assert_int_equal(n, 2);
	assert_int_equal(rig_submitted(b.d), value);
	assert_int_equal(rig_signaled(b.d), value);
	help_end(&b);
}

static void the_handle_lives_as_long_as_the_reference(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);

	(void)state;
	assert_ok(rig_close(b.d));
	assert_int_equal(polled_count(b.p, POLLED_RELEASE), 0);
	help_end(&b);
}

static void dropping_every_reference_leaves_the_device_open(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_device *found;

	(void)state;
	rig_device_put(b.d);
	assert_int_equal(rig_devices(&found, 1), 1);
	b.d = found;
	help_close(&b);
}

/* E-028 */
static void a_driver_finds_rig_code_sync(void **state)
{
	(void)state;
	assert_true(rig_code_sync != NULL);
	rig_code_sync();
}

struct opens {
	struct polled *p;
	_Atomic int opened, busy;
};

static void *open_one(void *arg)
{
	struct opens *o = arg;
	struct rig_device *d;
	int code = rig_open(polled_opener(o->p), &d);

	if (code == 0) {
		atomic_fetch_add(&o->opened, 1);
		rig_device_put(d);
	} else if (code == -EBUSY) {
		atomic_fetch_add(&o->busy, 1);
	}
	return NULL;
}

/* E-035, E-252 */
static void of_many_threads_that_open_a_name_one_succeeds(void **state)
{
	struct polled_options o = help_options();
	struct opens opens = {.p = polled_new(&o)};
	pthread_t threads[8];
	struct rig_device *d;
	size_t i;

	(void)state;
	for (i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_one, &opens), 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(opens.opened, 1);
	assert_int_equal(opens.busy, 7);
	assert_int_equal(rig_devices(&d, 1), 1);
	assert_ok(rig_close(d));
	rig_device_put(d);
	assert_null(polled_breach(opens.p));
	polled_free(opens.p);
}

static void opens_the_other(void *arg, enum polled_call call)
{
	struct bench *other = arg;

	if (call == POLLED_MAKE && !other->d)
		assert_ok(rig_open(polled_opener(other->p), &other->d));
}

/* E-252; and the name's lock is not counted: make may lock, or open. */
static void a_make_in_flight_keeps_no_other_name_from_opening(void **state)
{
	struct polled_options o = help_options(), o1 = help_options();
	struct polled *p = polled_new(&o);
	struct bench a = {.p = p}, b;

	(void)state;
	o1.name = "P1";
	b.p = polled_new(&o1);
	b.d = NULL;
	polled_hook(p, opens_the_other, &b);
	assert_ok(rig_open(polled_opener(p), &a.d));
	assert_non_null(b.d);
	help_close(&a);
	help_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(open_and_close_stop_and_release_the_handle),
	        cmocka_unit_test(a_second_close_changes_nothing),
	        cmocka_unit_test(an_open_name_is_refused_as_busy),
	        cmocka_unit_test(a_closed_name_opens_again_as_another_device),
	        cmocka_unit_test(open_devices_are_listed_until_they_close),
	        cmocka_unit_test(another_contract_version_is_refused_naming_both),
	        cmocka_unit_test(a_name_with_a_machine_suffix_is_refused),
	        cmocka_unit_test(a_thread_that_holds_a_lock_may_not_open),
	        cmocka_unit_test(failing_opens_use_up_no_slots),
	        cmocka_unit_test(closed_devices_give_their_slots_back),
	        cmocka_unit_test(a_short_word_keeps_its_slot),
	        cmocka_unit_test(the_first_value_follows_what_make_raised),
	        cmocka_unit_test(a_slot_near_the_last_value_is_retired),
	        cmocka_unit_test(a_refused_handle_gets_its_own_word_back),
	        cmocka_unit_test(a_fault_while_facts_are_read_fails_the_open_and_stops_the_handle),
	        cmocka_unit_test(facts_out_of_bounds_are_refused_by_name),
	        cmocka_unit_test(facts_and_values_answer_after_the_stop),
	        cmocka_unit_test(the_handle_lives_as_long_as_the_reference),
	        cmocka_unit_test(dropping_every_reference_leaves_the_device_open),
	        cmocka_unit_test(a_driver_finds_rig_code_sync),
	        cmocka_unit_test(of_many_threads_that_open_a_name_one_succeeds),
	        cmocka_unit_test(a_make_in_flight_keeps_no_other_name_from_opening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
