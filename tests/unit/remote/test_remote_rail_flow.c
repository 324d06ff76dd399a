/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "test.h"

#include "rail_flow.h"

static const struct rig_remote_transfer three[3] = {{0, 512, 100}, {100, 0, 300}, {400, 300, 1}};

static void a_count_names_run_transfer_and_copy(void **state)
{
	struct rig_flow flow;

	(void)state;
	assert_int_equal(rig_flow_init(&flow, three, 3, 1000), 0);
	assert_int_equal(flow.from_bytes, 512);
	assert_int_equal(flow.to_bytes, 768);
	for (uint64_t c = 1; c < 1000; c++) {
		uint64_t run = (c - 1) / 3, j = (c - 1) % 3;
		struct rig_flow_piece piece = rig_flow_piece(&flow, c, 0);

		assert_int_equal(piece.from, run % 2 * 512 + (uint64_t)three[j].src);
		assert_int_equal(piece.to, run % 2 * 768 + (uint64_t)three[j].dst);
		assert_int_equal(piece.bytes, three[j].length);
		assert_true(piece.last);
	}
	rig_flow_fini(&flow);
}

static void pieces_cover_a_transfer_once(void **state)
{
	struct rig_flow flow;

	(void)state;
	for (size_t length = 1; length < 30; length++) {
		struct rig_remote_transfer t = {5, 9, (int64_t)length};
		size_t offset = 0, pieces = 0;
		struct rig_flow_piece piece;

		assert_int_equal(rig_flow_init(&flow, &t, 1, 7), 0);
		do {
			piece = rig_flow_piece(&flow, 1, offset);
			assert_int_equal(piece.from, 5 + offset);
			assert_int_equal(piece.to, 9 + offset);
			assert_in_range(piece.bytes, 1, 7);
			offset += piece.bytes;
			pieces++;
		} while (!piece.last);
		assert_int_equal(offset, length);
		for (size_t i = 0; i < pieces; i++) {
			assert_int_equal(flow.done, 0);
			assert_int_equal(rig_flow_mark(&flow, 1), 0);
		}
		assert_int_equal(flow.done, 1);
		rig_flow_fini(&flow);
	}
}

/* Pieces of a window in a random order: done is always the longest whole prefix. */
static void pieces_in_any_order_move_done_as_far_as_all_before_are_there(void **state)
{
	enum { ROUNDS = 50, SPREAD = 40 };
	struct rig_flow flow;

	(void)state;
	srand(7);
	assert_int_equal(rig_flow_init(&flow, three, 3, 64), 0);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t first = flow.done + 1, left[SPREAD], total = 0;

		for (int i = 0; i < SPREAD; i++) {
			uint64_t length = (uint64_t)three[(first + (uint64_t)i - 1) % 3].length;

			left[i] = (length + 63) / 64;
			total += left[i];
		}
		while (total) {
			int i = rand() % SPREAD, prefix = 0;

			if (!left[i])
				continue;
			left[i]--;
			total--;
			assert_int_equal(rig_flow_mark(&flow, first + (uint64_t)i), 0);
			while (prefix < SPREAD && !left[prefix])
				prefix++;
			assert_int_equal(flow.done, first - 1 + (uint64_t)prefix);
		}
	}
	rig_flow_fini(&flow);
}

static void what_is_outside_the_window_or_too_much_is_refused(void **state)
{
	struct rig_flow flow;

	(void)state;
	assert_int_equal(rig_flow_init(&flow, three, 3, 1000), 0);
	assert_int_equal(rig_flow_mark(&flow, 0), -EPROTO);
	assert_int_equal(rig_flow_mark(&flow, RIG_FLOW_WINDOW + 1), -EPROTO);
	assert_int_equal(rig_flow_mark(&flow, RIG_FLOW_WINDOW), 0);
	assert_int_equal(rig_flow_mark(&flow, RIG_FLOW_WINDOW), -EPROTO);
	assert_int_equal(rig_flow_mark(&flow, 1), 0);
	assert_int_equal(rig_flow_mark(&flow, 1), -EPROTO);
	assert_int_equal(flow.done, 1);
	assert_false(rig_flow_in_window(&flow, 1));
	assert_true(rig_flow_in_window(&flow, 2));
	rig_flow_fini(&flow);
}

/* Marks what is under way and looks how many may begin. */
static uint64_t may_begin_after(struct rig_flow *flow, uint64_t done)
{
	uint64_t c = done;

	while (flow->done < done)
		assert_int_equal(rig_flow_mark(flow, flow->done + 1), 0);
	while (rig_flow_may_begin(flow, c + 1))
		c++;
	return c - done;
}

static void what_lands_on_bytes_under_way_waits(void **state)
{
	/* Beside each other, to the byte; and on one byte. */
	static const struct rig_remote_transfer apart[3] = {{0, 300, 10}, {0, 0, 100}, {0, 100, 200}},
	                                        one[3] = {{0, 300, 10}, {0, 0, 101}, {0, 100, 200}};
	struct rig_remote_transfer many[RIG_FLOW_WINDOW];
	struct rig_flow flow;

	(void)state;
	assert_int_equal(rig_flow_init(&flow, apart, 3, 1000), 0);
	assert_int_equal(may_begin_after(&flow, 0), 6);
	assert_int_equal(may_begin_after(&flow, 7), 6);
	assert_false(rig_flow_may_begin(&flow, 7));
	rig_flow_fini(&flow);
	assert_int_equal(rig_flow_init(&flow, one, 3, 1000), 0);
	assert_int_equal(may_begin_after(&flow, 0), 1);
	assert_int_equal(may_begin_after(&flow, 7), 1);
	rig_flow_fini(&flow);
	for (int64_t i = 0; i < RIG_FLOW_WINDOW; i++)
		many[i] = (struct rig_remote_transfer){0, i, 1};
	assert_int_equal(rig_flow_init(&flow, many, RIG_FLOW_WINDOW, 1000), 0);
	assert_int_equal(may_begin_after(&flow, 0), RIG_FLOW_WINDOW);
	rig_flow_fini(&flow);
}

static void a_count_is_known_by_its_lowest_bits(void **state)
{
	static const uint64_t starts[] = {
	        0, 1, 32766, 32767, 32768, 65535, (UINT64_C(1) << 40) - 3, RIG_RAIL_FAILED - 300};
	struct rig_flow flow;

	(void)state;
	assert_int_equal(rig_flow_init(&flow, three, 3, 1000), 0);
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		flow.done = starts[i];
		for (uint64_t c = flow.done + 1; c <= flow.done + RIG_FLOW_WINDOW; c++)
			assert_true(rig_flow_widen(&flow, (uint32_t)(c & 0x7fff), 15) == c);
		assert_true(!rig_flow_widen(&flow, (uint32_t)(flow.done & 0x7fff), 15));
		assert_true(
		        !rig_flow_widen(&flow, (uint32_t)((flow.done + RIG_FLOW_WINDOW + 1) & 0x7fff), 15));
	}
	rig_flow_fini(&flow);
}

static void different_transfers_have_different_numbers(void **state)
{
	struct rig_remote_transfer other[3] = {{0, 512, 100}, {100, 0, 300}, {400, 300, 2}};
	struct rig_flow a, b;

	(void)state;
	assert_int_equal(rig_flow_init(&a, three, 3, 1000), 0);
	assert_int_equal(rig_flow_init(&b, other, 3, 1000), 0);
	assert_true(rig_flow_hash(&a) != rig_flow_hash(&b));
	b.transfers[2].length = 1;
	assert_true(rig_flow_hash(&a) == rig_flow_hash(&b));
	rig_flow_fini(&a);
	rig_flow_fini(&b);
}

static void changing_the_callers_array_changes_nothing(void **state)
{
	struct rig_remote_transfer t = {0, 0, 8};
	struct rig_flow flow;

	(void)state;
	assert_int_equal(rig_flow_init(&flow, &t, 1, 1000), 0);
	t.length = 9;
	assert_int_equal(rig_flow_piece(&flow, 1, 0).bytes, 8);
	rig_flow_fini(&flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_count_names_run_transfer_and_copy),
	        cmocka_unit_test(pieces_cover_a_transfer_once),
	        cmocka_unit_test(pieces_in_any_order_move_done_as_far_as_all_before_are_there),
	        cmocka_unit_test(what_is_outside_the_window_or_too_much_is_refused),
	        cmocka_unit_test(what_lands_on_bytes_under_way_waits),
	        cmocka_unit_test(a_count_is_known_by_its_lowest_bits),
	        cmocka_unit_test(different_transfers_have_different_numbers),
	        cmocka_unit_test(changing_the_callers_array_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
