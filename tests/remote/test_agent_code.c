/* SPDX-License-Identifier: MIT */
/* Numbers of functions, where a later image lies where an earlier one did. */
#include <string.h>

#include "agent_inside.h"

enum { BYTES = 4096 };

static const char *const plain[INSIDE_DRIVERS] = {"", ""};

static struct rig_driver_module module;
static int (*entry_of)(void *, void *, const char *, struct rig_entry *, uint64_t *, const char **);
static uintptr_t place;
static _Atomic uint64_t calls;

/* Every image's function is launched at the same place, and has code of its own. */
static int same_place(void *device, void *image, const char *name, struct rig_entry *entry,
        uint64_t *short_bytes, const char **fault)
{
	int answer = entry_of(device, image, name, entry, short_bytes, fault);

	place = place ? place : entry->launch;
	entry->launch = place;
	entry->code = ++calls;
	return answer;
}

static const struct rig_opener *at_the_same_place(struct polled *p)
{
	static struct rig_opener openers[INSIDE_DRIVERS], *opener;

	opener = opener == &openers[0] ? &openers[1] : &openers[0];
	*opener = *polled_opener(p);
	module = *opener->module;
	entry_of = module.entry;
	module.entry = same_place;
	opener->module = &module;
	place = 0;
	return opener;
}

static uint64_t launched(struct inside *in)
{
	uint32_t n;

	return polled_parts(in->drivers[0], &n)[0].u.launch.code;
}

static void a_function_of_a_later_image_at_the_place_of_an_earlier_ones_is_another(void **state)
{
	struct inside *in = inside_start(plain, at_the_same_place);
	struct rig_rmt_entry first, second;
	uint32_t image;
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	image = talk_load(&t, 0);
	first = talk_entry(&t, 0, image, "free");
	talk_launch(&t, 0, 1, first.function);
	talk_await_value(&t, 0, 1);
	assert_true(launched(in) == first.code);
	talk_unload(&t, 0, image);
	second = talk_entry(&t, 0, talk_load(&t, 0), "free");
	assert_int_not_equal(second.function, first.function);
	talk_launch(&t, 0, 2, second.function);
	talk_await_value(&t, 0, 2);
	assert_true(launched(in) == second.code);
	talk_end(&t);
	inside_end(in);
}

static void a_launch_of_an_image_that_is_gone_runs_nothing(void **state)
{
	struct inside *in = inside_start(plain, at_the_same_place);
	struct rig_rmt_entry first;
	uint32_t image;
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	image = talk_load(&t, 0);
	first = talk_entry(&t, 0, image, "free");
	talk_unload(&t, 0, image);
	(void)talk_entry(&t, 0, talk_load(&t, 0), "free");
	talk_launch(&t, 0, 1, first.function);
	talk_await_lost(&t, 0);
	assert_non_null(strstr(t.reason, "names function"));
	assert_int_equal(polled_count(in->drivers[0], POLLED_SUBMIT), 0);
	talk_end(&t);
	inside_end(in);
}

/* Work that never ends holds up no answer: what comes later follows it by the device's order. */
static void code_is_loaded_and_unloaded_behind_work_that_does_not_end(void **state)
{
	static const char *const placing[INSIDE_DRIVERS] = {"place", ""};
	struct inside *in = inside_start(placing, NULL);
	uint32_t from, to, image;
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	from = talk_alloc(&t, 0, BYTES);
	to = talk_alloc(&t, 0, BYTES);
	polled_gate(in->drivers[0], 0);
	talk_copy(&t, 0, 1, to, from, BYTES);
	inside_await(in, 0, POLLED_SUBMIT, 1);
	image = talk_load(&t, 0);
	talk_launch(&t, 0, 2, talk_entry(&t, 0, image, "free").function);
	inside_await(in, 0, POLLED_SUBMIT, 3);
	talk_unload(&t, 0, image);
	talk_unload(&t, 0, talk_load(&t, 0));
	talk_free(&t, 0, from);
	(void)talk_alloc(&t, 0, BYTES);
	assert_int_equal(polled_count(in->drivers[0], POLLED_UNLOAD), 0);
	polled_gate(in->drivers[0], UINT64_MAX);
	talk_await_value(&t, 0, 2);
	inside_await(in, 0, POLLED_UNLOAD, 2);
	talk_end(&t);
	inside_end(in);
}

static void a_device_ends_with_code_on_its_way(void **state)
{
	static const char *const placing[INSIDE_DRIVERS] = {"place", ""};
	struct inside *in = inside_start(placing, NULL);
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	polled_gate(in->drivers[0], 0);
	(void)talk_load(&t, 0);
	inside_await(in, 0, POLLED_SUBMIT, 1);
	/* The hot thread stands at this one's room, and those behind it do not leave the queue. */
	inside_stop(in, 0, POLLED_ROOM);
	(void)talk_load(&t, 0);
	inside_await_stopped(in, 0);
	(void)talk_load(&t, 0);
	(void)talk_stop(&t, 0);
	inside_go(in, 0);
	talk_end(&t);
	inside_end(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_function_of_a_later_image_at_the_place_of_an_earlier_ones_is_another),
	        cmocka_unit_test(code_is_loaded_and_unloaded_behind_work_that_does_not_end),
	        cmocka_unit_test(a_device_ends_with_code_on_its_way),
	        cmocka_unit_test(a_launch_of_an_image_that_is_gone_runs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
