/* SPDX-License-Identifier: MIT */
/* What of a device is used is not given back meanwhile, whatever a controller says and whichever device
   ends. */
#include "agent_inside.h"
#include "system.h"

enum { BYTES = 4096 };

static const char *const plain[INSIDE_DRIVERS] = {"", ""};

/* P1's mapping of P0's memory is under way. */
static uint32_t begin_mapping(struct talk *t, struct inside *in, uint32_t region)
{
	struct rig_rmt_out out = {0};
	uint32_t request;

	inside_stop(in, 1, POLLED_MAP_PEER);
	rig_rmt_put32(&out, 1);
	rig_rmt_put32(&out, 0);
	rig_rmt_put32(&out, region);
	request = talk_ask(t, RIG_RMT_MAP_PEER, &out);
	inside_await_stopped(in, 1);
	return request;
}

/* The mapping stays behind, until the end. */
static void a_device_is_not_stopped_while_another_maps_its_memory(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t region, mapping, stop;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	talk_open(&t, "P1");
	region = talk_alloc(&t, 0, BYTES);
	mapping = begin_mapping(&t, in, region);
	stop = talk_stop(&t, 0);
	inside_assert_none(in, 0, POLLED_STOP, 0);
	inside_assert_none(in, 0, POLLED_FREE, 0);
	inside_go(in, 1);
	assert_int_equal(talk_await(&t, mapping), 0);
	assert_int_equal(talk_await(&t, stop), 0);
	talk_end(&t);
	inside_end(in);
}

static void a_region_is_not_freed_before_another_devices_mapping_of_it(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t region, mapping;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	talk_open(&t, "P1");
	region = talk_alloc(&t, 0, BYTES);
	mapping = begin_mapping(&t, in, region);
	talk_free(&t, 0, region);
	inside_assert_none(in, 0, POLLED_FREE, 0);
	inside_go(in, 1);
	assert_int_equal(talk_await(&t, mapping), 0);
	inside_assert_none(in, 0, POLLED_FREE, 0);
	talk_free(&t, 1, talk_number(&t, mapping));
	inside_await(in, 0, POLLED_FREE, 1);
	talk_end(&t);
	inside_end(in);
}

static void a_region_is_not_freed_before_a_copy_of_another_agents_is_taken_from_it(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t region;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	region = talk_alloc(&t, 0, BYTES);
	inside_stop(in, 0, POLLED_ROOM);
	talk_fetch(&t, 1, 0, region, BYTES);
	inside_await_stopped(in, 0);
	talk_free(&t, 0, region);
	inside_assert_none(in, 0, POLLED_FREE, 0);
	inside_go(in, 0);
	inside_await(in, 0, POLLED_FREE, 1);
	talk_end(&t);
	inside_end(in);
}

/* As if new ones kept coming. */
static void a_region_is_freed_though_copies_from_others_are_under_way(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t copied, freed;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	copied = talk_alloc(&t, 0, BYTES);
	freed = talk_alloc(&t, 0, BYTES);
	polled_gate(in->drivers[0], 0);
	talk_fetch(&t, 1, 0, copied, BYTES);
	inside_await(in, 0, POLLED_SUBMIT, 1);
	talk_free(&t, 0, freed);
	inside_await(in, 0, POLLED_FREE, 1);
	polled_gate(in->drivers[0], UINT64_MAX);
	talk_end(&t);
	inside_end(in);
}

static void memory_that_work_under_way_names_is_not_freed(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t from, to;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	from = talk_alloc(&t, 0, BYTES);
	to = talk_alloc(&t, 0, BYTES);
	polled_gate(in->drivers[0], 0);
	talk_copy(&t, 0, 1, to, from, BYTES);
	inside_await(in, 0, POLLED_SUBMIT, 1);
	talk_free(&t, 0, from);
	inside_assert_none(in, 0, POLLED_FREE, 0);
	polled_gate(in->drivers[0], UINT64_MAX);
	talk_await_value(&t, 0, 1);
	inside_await(in, 0, POLLED_FREE, 1);
	talk_end(&t);
	inside_end(in);
}

/* What waits for the work to be complete must not wait for ever, nor give back before the stop. */
static void memory_that_work_of_a_lost_device_names_is_freed_after_its_stop(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t from, to, stop;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	from = talk_alloc(&t, 0, BYTES);
	to = talk_alloc(&t, 0, BYTES);
	polled_gate(in->drivers[0], 0);
	talk_copy(&t, 0, 1, to, from, BYTES);
	inside_await(in, 0, POLLED_SUBMIT, 1);
	inside_stop(in, 0, POLLED_STOP);
	talk_free(&t, 0, from);
	stop = talk_stop(&t, 0);
	inside_await_stopped(in, 0);
	inside_assert_none(in, 0, POLLED_FREE, 0);
	inside_go(in, 0);
	assert_int_equal(talk_await(&t, stop), 0);
	polled_gate(in->drivers[0], UINT64_MAX);
	talk_end(&t);
	inside_end(in);
}

/* Whoever waits for the work must not keep the end waiting, of the device or of the job. */
static void an_end_does_not_wait_for_memory_on_its_way_back(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t from, to, i;

	(void)state;
	talk_begin(&t, in, 1);
	for (i = 0; i < INSIDE_DRIVERS; i++) {
		talk_open(&t, in->names[i]);
		from = talk_alloc(&t, i, BYTES);
		to = talk_alloc(&t, i, BYTES);
		polled_gate(in->drivers[i], 0);
		talk_copy(&t, i, 1, to, from, BYTES);
		inside_await(in, i, POLLED_SUBMIT, 1);
		talk_free(&t, i, from);
	}
	assert_int_equal(talk_await(&t, talk_stop(&t, 0)), 0);
	inside_await(in, 0, POLLED_RELEASE, 1);
	talk_end(&t);
	inside_end(in);
}

static void memory_that_another_device_has_mapped_outlives_its_own_device(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t mapped;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	talk_open(&t, "P1");
	mapped = talk_map(&t, 1, 0, talk_alloc(&t, 0, BYTES));
	assert_int_equal(talk_await(&t, talk_stop(&t, 0)), 0);
	inside_assert_none(in, 0, POLLED_FREE, 0);
	assert_int_equal(polled_count(in->drivers[0], POLLED_RELEASE), 0);
	talk_free(&t, 1, mapped);
	inside_await(in, 0, POLLED_RELEASE, 1);
	/* And its name is free. */
	talk_open(&t, "P0");
	talk_end(&t);
	inside_end(in);
}

static void devices_that_have_mapped_each_others_memory_both_end(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	talk_open(&t, "P1");
	(void)talk_map(&t, 1, 0, talk_alloc(&t, 0, BYTES));
	(void)talk_map(&t, 0, 1, talk_alloc(&t, 1, BYTES));
	assert_int_equal(talk_await(&t, talk_stop(&t, 0)), 0);
	assert_int_equal(talk_await(&t, talk_stop(&t, 1)), 0);
	inside_await(in, 0, POLLED_RELEASE, 1);
	inside_await(in, 1, POLLED_RELEASE, 1);
	talk_end(&t);
	inside_end(in);
}

static void memory_that_a_device_which_does_not_stop_has_mapped_stays(void **state)
{
	static const char *const stuck[INSIDE_DRIVERS] = {"", "lie=stop_short"};
	struct inside *in;
	struct talk t;
	uint32_t mapped, own;

	(void)state;
	/* What such a device has stays, and nothing names it. */
	if (SYS_ASAN)
		skip();
	in = inside_start(stuck, NULL);
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	talk_open(&t, "P1");
	mapped = talk_map(&t, 1, 0, talk_alloc(&t, 0, BYTES));
	own = talk_alloc(&t, 1, BYTES);
	polled_gate(in->drivers[1], 0);
	talk_copy(&t, 1, 1, mapped, own, BYTES);
	inside_await(in, 1, POLLED_SUBMIT, 1);
	talk_end(&t);
	inside_end_stuck(in);
	assert_int_equal(polled_count(in->drivers[0], POLLED_FREE), 0);
	assert_int_equal(polled_count(in->drivers[0], POLLED_RELEASE), 0);
}

static void code_that_work_under_way_launches_is_not_unloaded(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;
	uint32_t image;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	image = talk_load(&t, 0);
	polled_gate(in->drivers[0], 0);
	talk_launch(&t, 0, 1, talk_entry(&t, 0, image, "free").function);
	inside_await(in, 0, POLLED_SUBMIT, 1);
	talk_unload(&t, 0, image);
	inside_assert_none(in, 0, POLLED_UNLOAD, 0);
	polled_gate(in->drivers[0], UINT64_MAX);
	talk_await_value(&t, 0, 1);
	inside_await(in, 0, POLLED_UNLOAD, 1);
	talk_end(&t);
	inside_end(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_device_is_not_stopped_while_another_maps_its_memory),
	        cmocka_unit_test(a_region_is_not_freed_before_another_devices_mapping_of_it),
	        cmocka_unit_test(a_region_is_not_freed_before_a_copy_of_another_agents_is_taken_from_it),
	        cmocka_unit_test(a_region_is_freed_though_copies_from_others_are_under_way),
	        cmocka_unit_test(memory_that_work_under_way_names_is_not_freed),
	        cmocka_unit_test(memory_that_work_of_a_lost_device_names_is_freed_after_its_stop),
	        cmocka_unit_test(an_end_does_not_wait_for_memory_on_its_way_back),
	        cmocka_unit_test(memory_that_another_device_has_mapped_outlives_its_own_device),
	        cmocka_unit_test(devices_that_have_mapped_each_others_memory_both_end),
	        cmocka_unit_test(memory_that_a_device_which_does_not_stop_has_mapped_stays),
	        cmocka_unit_test(code_that_work_under_way_launches_is_not_unloaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
