/* SPDX-License-Identifier: MIT */
/* Boards with up to eight queues: which work goes where, and that device order holds over all of them. */
#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "raw_sim.h"
#include "rvx1/packet.h"
#include "system.h"

#define QUEUES  8u
#define COMPUTE 4u
#define BYTES   4096u

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	return test_draw(&seed, below);
}

static uint32_t compute(uint32_t i)
{
	return 2 * i;
}

static uint32_t copier(uint32_t i)
{
	return 2 * i + 1;
}

/* spin.k.c: *number = 3 * *number + add, after so many loops. */
struct spin {
	uint64_t number, loops, add;
};

static void boards_of_two_to_eight_queues_name_them_by_kind_in_turn(void **state)
{
	uint32_t n, q;

	(void)state;
	for (n = 2; n <= QUEUES; n++) {
		char text[32], name[32];
		struct raw r;

		snprintf(text, sizeof(text), "sim:queues=%u", n);
		raw_open(&r, text);
		assert_int_equal(r.facts.nqueues, n);
		assert_true(r.facts.has_copy_engine);
		assert_int_equal(r.facts.copy_engine, 1);
		for (q = 0; q < n; q++) {
			snprintf(name, sizeof(name), "%s:%u", q % 2 ? "COPY" : "COMPUTE", q / 2);
			assert_string_equal(r.facts.queues[q].name, name);
			assert_int_equal(r.facts.queues[q].runs,
			        q % 2 ? RIG_RUNS(RIG_COPY)
			              : RIG_RUNS(RIG_LAUNCH) | RIG_RUNS(RIG_WORDS) | RIG_RUNS(RIG_FILL));
		}
		raw_close(&r);
	}
}

static struct raw r;
static struct raw_memory numbers, copies;
static struct raw_work w;

static int open_eight(void **state)
{
	(void)state;
	seed = 1;
	raw_open(&r, "sim:queues=8");
	raw_kernel(&r, "spin");
	numbers = raw_memory(&r, BYTES);
	copies = raw_memory(&r, BYTES);
	w = (struct raw_work){0};
	return 0;
}

static int close_eight(void **state)
{
	(void)state;
	raw_close(&r);
	return 0;
}

static uint32_t launch(uint32_t queue, uint64_t number, uint64_t loops, uint64_t add)
{
	const struct spin params = {numbers.address + number * 8, loops, add};

	return raw_launch(&r, &w, queue, &params, sizeof(params));
}

static void a_value_is_complete_when_its_parts_on_every_queue_are(void **state)
{
	uint64_t round, i;

	(void)state;
	for (round = 1; round <= 40; round++) {
		uint32_t slow = draw(COMPUTE);

		w.n = 0;
		for (i = 0; i < COMPUTE; i++) {
			numbers.host[i] = 0;
			numbers.host[COMPUTE + i] = round * 100 + i;
			launch(compute((uint32_t)i), i, i == slow ? 20000 : 10, round + i);
			raw_copy(&w, copier((uint32_t)i), &copies, i * 8, &numbers, (COMPUTE + i) * 8, 8);
		}
		raw_wait(&r, raw_submit(&r, &w, NULL));
		for (i = 0; i < COMPUTE; i++) {
			assert_int_equal(numbers.host[i], round + i);
			assert_int_equal(copies.host[i], round * 100 + i);
		}
	}
}

static void no_part_of_a_value_runs_before_all_of_the_one_before_on_any_queue(void **state)
{
	enum { VALUES = 400 };
	uint64_t expected = 1, i;

	(void)state;
	numbers.host[0] = 1;
	/* 3x + i, of which any other order makes another number; every third value moves it there and
	   back. */
	for (i = 1; i <= VALUES; i++) {
		w.n = 0;
		if (i % 3 == 0) {
			raw_copy(&w, copier(draw(COMPUTE)), &copies, 0, &numbers, 0, 8);
			raw_submit(&r, &w, NULL);
			w.n = 0;
			raw_copy(&w, copier(draw(COMPUTE)), &numbers, 0, &copies, 0, 8);
			raw_submit(&r, &w, NULL);
			w.n = 0;
		}
		launch(compute(draw(COMPUTE)), 0, draw(400), i);
		expected = 3 * expected + i;
		raw_submit(&r, &w, NULL);
	}
	raw_wait(&r, r.last);
	assert_int_equal(numbers.host[0], expected);
}

static void parts_follow_parts_of_other_queues_all_over_the_board(void **state)
{
	enum { STEPS = 24, ROUNDS = 20 };
	uint64_t expected = 7;
	uint32_t round, i, part, before = 0;

	(void)state;
	numbers.host[0] = 7;
	for (round = 0; round < ROUNDS; round++) {
		w.n = 0;
		for (i = 0; i < STEPS; i++) {
			uint32_t next = i % 2 ? compute(draw(COMPUTE)) : copier(draw(COMPUTE));

			if (i % 4 == 0)
				part = raw_copy(&w, next, &copies, 0, &numbers, 0, 8);
			else if (i % 4 == 2)
				part = raw_copy(&w, next, &numbers, 0, &copies, 0, 8);
			else if (i % 4 == 3)
				part = launch(next, 0, draw(300), i);
			else
				part = launch(next, 1, draw(300), 0); /* of no effect on the chain */
			if (i && w.part[before].queue != next)
				raw_after(&w, part, before);
			if (i % 4 == 3)
				expected = 3 * expected + i;
			before = part;
		}
		raw_submit(&r, &w, NULL);
	}
	raw_wait(&r, r.last);
	assert_int_equal(numbers.host[0], expected);
}

static bool has_copied(void *arg)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < COMPUTE; i++)
		if (__atomic_load_n(&copies.host[i], __ATOMIC_ACQUIRE) != 5 ||
		        (i != 1 && !__atomic_load_n(&numbers.host[8 + i], __ATOMIC_ACQUIRE)))
			return false;
	return true;
}

static void a_queue_that_waits_holds_up_no_other_queue(void **state)
{
	struct raw_memory gate = raw_memory(&r, BYTES);
	uint32_t i;
	uint64_t value;

	(void)state;
	numbers.host[0] = 5;
	raw_packet(&w, compute(1), RVX1_OP_WAIT, raw_board_address(&gate), 1);
	for (i = 0; i < COMPUTE; i++) {
		raw_copy(&w, copier(i), &copies, i * 8, &numbers, 0, 8);
		launch(compute(i), 8 + i, 10, 1);
	}
	value = raw_submit(&r, &w, NULL);
	sys_await(has_copied, NULL, "the work of seven queues");
	assert_int_equal(numbers.host[8 + 1], 0);
	assert_true(rig_word_load(r.word) < value);
	__atomic_store_n(gate.host, 1, __ATOMIC_RELEASE);
	raw_wait(&r, value);
	assert_int_equal(numbers.host[8 + 1], 1);
}

static void a_word_of_another_device_holds_up_every_queue_of_the_value(void **state)
{
	rig_atomic_u64 *other = rig_words() + 9;
	const struct rig_wait wait = {.word = other, .value = 3};
	uint64_t value;
	uint32_t i;

	(void)state;
	__atomic_store_n((uint64_t *)(void *)other, 2, __ATOMIC_RELEASE);
	numbers.host[0] = 5;
	for (i = 0; i < COMPUTE; i++) {
		raw_copy(&w, copier(i), &copies, i * 8, &numbers, 0, 8);
		launch(compute(i), 8 + i, 10, 1);
	}
	w.waits = &wait;
	w.nwaits = 1;
	value = raw_submit(&r, &w, NULL);
	/* What the host does before it lets the value go on is before all of its work. */
	numbers.host[0] = 6;
	__atomic_store_n((uint64_t *)(void *)other, 3, __ATOMIC_RELEASE);
	raw_wait(&r, value);
	for (i = 0; i < COMPUTE; i++) {
		assert_int_equal(copies.host[i], 6);
		assert_int_equal(numbers.host[8 + i], 1);
	}
}

static void the_runtime_works_on_boards_of_any_number_of_queues(void **state)
{
	uint32_t n;

	(void)state;
	for (n = 2; n <= QUEUES; n += 3) {
		char text[64];

		snprintf(text, sizeof(text), "sim:queues=%u,completion=%s", n, n % 2 ? "store" : "poll");
		sys_assert_works(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_runtime_works_on_boards_of_any_number_of_queues),
	        cmocka_unit_test(boards_of_two_to_eight_queues_name_them_by_kind_in_turn),
	        cmocka_unit_test_setup_teardown(
	                a_value_is_complete_when_its_parts_on_every_queue_are, open_eight, close_eight),
	        cmocka_unit_test_setup_teardown(
	                no_part_of_a_value_runs_before_all_of_the_one_before_on_any_queue, open_eight,
	                close_eight),
	        cmocka_unit_test_setup_teardown(
	                parts_follow_parts_of_other_queues_all_over_the_board, open_eight, close_eight),
	        cmocka_unit_test_setup_teardown(
	                a_queue_that_waits_holds_up_no_other_queue, open_eight, close_eight),
	        cmocka_unit_test_setup_teardown(
	                a_word_of_another_device_holds_up_every_queue_of_the_value, open_eight, close_eight),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
